package acp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/proposal"
	"github.com/tapedeck/tapedeck/payload"
)

// A diff is the change of a file in the form of the protocol. Some agents send the whole
// file before and after, others only the piece that changes. If OldText is "", the file is
// new.
type diff struct {
	Path    string `json:"path"`
	OldText string `json:"oldText"`
	NewText string `json:"newText"`
}

// A content is the decoded content of a tool call.
type content struct {
	text    string            // the text, with a line for each change; it may end with half of a character
	plain   string            // the text without these lines, which has no halves
	diffs   []json.RawMessage // the changes, unchanged JSON
	changes []diff
}

// read decodes the content of a tool call.
func read(raw json.RawMessage) (c content) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return c
	}
	for _, raw := range list {
		var item struct {
			Type    string `json:"type"`
			Content struct {
				Type     string        `json:"type"`
				Text     payload.Piece `json:"text"`
				URI      string        `json:"uri"`
				Resource struct {
					Text string `json:"text"`
					URI  string `json:"uri"`
				} `json:"resource"`
			} `json:"content"`
			diff
		}
		if json.Unmarshal(raw, &item) != nil {
			continue
		}
		text := ""
		switch in := item.Content; {
		case item.Type == "diff":
			c.diffs, c.changes = append(c.diffs, raw), append(c.changes, item.diff)
			c.text += "[changed " + item.Path + "]\n"
		case item.Type != "content":
		case in.Type == "text":
			text = string(in.Text)
		case in.Type != "":
			text = "[" + in.Type + " " + cmp.Or(in.URI, in.Resource.URI) + "]" + in.Resource.Text
		}
		c.text, c.plain = c.text+text, c.plain+text
	}
	c.plain = payload.Whole(c.plain)
	return c
}

// proposed returns the action for which the agent asks permission. If the question lacks
// a part, proposed takes it from earlier updates of the call.
func (c *conversation) proposed(k *call) *tapedeck.PermissionAction {
	t := c.tools[k.ID]
	if t == nil { // the question is not about a call
		t = &tool{}
	}
	input := firstOf(isObject, k.Input, t.sent, t.input)
	d := proposal.FromArguments(t.name, input)
	said := read(firstOf(isSet, k.Content, t.content))
	for _, change := range said.changes {
		d.Changes = slices.DeleteFunc(d.Changes, func(other proposal.Change) bool { return sameFile(change.Path, other.Path) })
	}
	for _, change := range said.changes {
		d.Changes = append(d.Changes, proposal.Change{Path: change.Path, Before: change.OldText, After: change.NewText})
	}
	if text := strings.TrimSpace(said.plain); text != strings.TrimSpace(d.Note) && text != d.Command {
		d.Note = strings.TrimSpace(d.Note + "\n" + text)
	}
	_ = json.Unmarshal(firstOf(isSet, k.Locations, t.locations), &d.Locations) // locations that cannot be decoded are not shown
	d.Locate(c.dir)
	return d.Action()
}

func isSet(raw json.RawMessage) bool { return len(raw) > 2 } // neither "" nor []

// firstOf returns the first value that wanted accepts; nil if there is none.
func firstOf(wanted func(json.RawMessage) bool, values ...json.RawMessage) json.RawMessage {
	for _, v := range values {
		if wanted(v) {
			return v
		}
	}
	return nil
}

// sameFile reports whether two paths can name the same file. other can be relative to
// the folder of the agent.
func sameFile(path, other string) bool {
	return path == other || strings.HasSuffix(path, "/"+strings.TrimPrefix(other, "./"))
}
