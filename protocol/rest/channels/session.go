package channels

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// presence translates where a user is in the session.
func (t *Translator) presence(e *event) ([]tapedeck.Event, error) {
	if e.UserID == "" {
		return nil, missing(e, "userId")
	}
	typ := tapedeck.PresenceMoved
	switch {
	case e.Type == "left" || e.Type == "leave":
		typ = tapedeck.PresenceLeft
	case !given(e.Cursor):
		typ = tapedeck.PresenceJoined
	}
	d := map[string]any{"user": e.UserID}
	if given(e.Cursor) {
		d["cursor"] = e.Cursor
	}
	for name, raw := range map[string]json.RawMessage{"lastSeen": e.LastSeen, "joinedAt": e.JoinedAt} {
		at, err := timeOf(raw)
		if err != nil {
			return nil, err
		}
		if !at.IsZero() {
			d[name] = at.UTC().Format("2006-01-02T15:04:05.000Z")
		}
	}
	return []tapedeck.Event{{Type: typ, Data: encode(d), Actor: "user:" + e.UserID}}, nil
}

// terminal translates the input or the output of a terminal.
func (t *Translator) terminal(e *event) ([]tapedeck.Event, error) {
	var data string
	if json.Unmarshal(e.Data, &data) != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the data of a terminal is a string")
	}
	typ := tapedeck.TerminalOutput
	if e.Type == "input" {
		typ = tapedeck.TerminalInput
	}
	return []tapedeck.Event{{Type: typ, Data: encode(map[string]any{
		"terminal": "main", "data": data, "id": e.ID, "source": e.Source, "kind": e.Type,
	})}}, nil
}

// workflow translates a step of a task. The workflow chooses its types, so a prefix keeps
// them apart from the types of the catalogue.
func (t *Translator) workflow(e *event) ([]tapedeck.Event, error) {
	if e.Type == "" {
		return nil, missing(e, "type")
	}
	typ := "workflow.task." + e.Type
	if err := tapedeck.CheckID("the type", typ); err != nil {
		return nil, err
	}
	d := map[string]any{"id": e.ID, "taskId": e.TaskID}
	if given(e.Payload) {
		d["payload"] = e.Payload
	}
	return []tapedeck.Event{{Type: typ, Data: encode(d), Actor: e.Actor}}, nil
}
