package channels

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// presence translates where a user is in the session.
func (t *Translator) presence(e *event) ([]tapedeck.Event, error) {
	d := tapedeck.Members{"user": payload.Text(e.UserID), "rawEvent": e.raw}
	if given(e.Cursor) {
		d["cursor"] = e.Cursor
	}
	for name, raw := range map[string]json.RawMessage{"lastSeen": e.LastSeen, "joinedAt": e.JoinedAt} {
		at, err := timeOf(name, raw)
		if err != nil {
			return nil, err
		}
		if !at.IsZero() {
			d[name] = payload.Text(at.UTC().Format("2006-01-02T15:04:05.000Z"))
		}
	}
	return []tapedeck.Event{{Type: e.presenceType(), Data: jsonobj.AppendMembers(nil, d), Actor: "user:" + e.UserID}}, nil
}

func (e *event) presenceType() string {
	switch {
	case e.Type == "left" || e.Type == "leave":
		return tapedeck.PresenceLeft
	case given(e.Cursor):
		return tapedeck.PresenceMoved
	}
	return tapedeck.PresenceJoined
}

// terminal translates the input or the output of a terminal. Data that is no text becomes
// the text of its JSON.
func (t *Translator) terminal(e *event) ([]tapedeck.Event, error) {
	return []tapedeck.Event{{Type: e.terminalType(), Data: jsonobj.AppendMembers(nil, tapedeck.Members{
		"terminal": payload.Text(tapedeck.MainThread), "data": payload.Text(textOf(e.Data)), "id": payload.Text(e.ID),
		"source": payload.Text(e.Source), "kind": payload.Text(e.Type), "rawEvent": e.raw,
	})}}, nil
}

func (e *event) terminalType() string {
	if e.Type == "input" {
		return tapedeck.TerminalInput
	}
	return tapedeck.TerminalOutput
}

// workflow translates a step of a task.
func (t *Translator) workflow(e *event) ([]tapedeck.Event, error) {
	d := tapedeck.Members{"id": payload.Text(e.ID), "taskId": payload.Text(e.TaskID), "rawEvent": e.raw}
	if given(e.Payload) {
		d["payload"] = e.Payload
	}
	return []tapedeck.Event{{Type: e.workflowType(), Data: jsonobj.AppendMembers(nil, d), Actor: e.Actor}}, nil
}

// workflowType returns a type of the log. The workflow chooses its types, so a prefix keeps
// them apart from the types of the catalogue; one that is no id is only in the origin.
func (e *event) workflowType() string {
	if typ := view.WorkflowTaskStep + e.Type; tapedeck.CheckID("", typ) == nil {
		return typ
	}
	return view.WorkflowTaskStep + "other"
}
