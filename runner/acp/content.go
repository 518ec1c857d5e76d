package acp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/proposal"
)

// A diff is the change of a file, as the protocol has it: with all of the file
// before and after. Without a text before, the file is new.
type diff struct {
	Path    string `json:"path"`
	OldText string `json:"oldText"`
	NewText string `json:"newText"`
}

// A content is what the content of a tool call says.
type content struct {
	text    string            // with a line for each change
	said    string            // without
	diffs   []json.RawMessage // the changes as they came
	changes []diff
}

// read reads the content of a tool call.
func read(raw json.RawMessage) (c content) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return c
	}
	for _, raw := range list {
		var item struct {
			Type    string `json:"type"`
			Content struct {
				Type     string `json:"type"`
				Text     string `json:"text"`
				URI      string `json:"uri"`
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
			text = in.Text
		case in.Type != "":
			text = "[" + in.Type + " " + cmp.Or(in.URI, in.Resource.URI) + "]" + in.Resource.Text
		}
		c.text, c.said = c.text+text, c.said+text
	}
	return c
}

// proposed returns what the agent asks leave for: what the question says, and
// what it does not say as the call has told it before.
func (c *conversation) proposed(k *call) *tapedeck.PermissionAction {
	t := c.tools[k.ID]
	if t == nil { // a question about no call
		t = &tool{}
	}
	input := firstOf(isObject, k.Input, t.told, t.input)
	d := proposal.FromArguments(t.name, input)
	if c.quirks.TitleIsCommand && t.kind == "execute" && d.Command == "" {
		d.Command = k.Title
	}
	said := read(firstOf(isSome, k.Content, t.content))
	for _, change := range said.changes {
		d.Changes = slices.DeleteFunc(d.Changes, func(other proposal.Change) bool { return sameFile(change.Path, other.Path) })
	}
	for _, change := range said.changes {
		d.Changes = append(d.Changes, proposal.Change{Path: change.Path, Before: change.OldText, After: change.NewText})
	}
	if text := strings.TrimSpace(said.said); text != strings.TrimSpace(d.Note) && text != d.Command {
		d.Note = strings.TrimSpace(d.Note + "\n" + text)
	}
	_ = json.Unmarshal(firstOf(isSome, k.Locations, t.locations), &d.Locations) // places that cannot be read are not shown
	return d.Action()
}

func isSome(raw json.RawMessage) bool { return len(raw) > 2 } // neither "" nor []

// firstOf returns the first of several values that is wanted.
func firstOf(wanted func(json.RawMessage) bool, values ...json.RawMessage) json.RawMessage {
	for _, v := range values {
		if wanted(v) {
			return v
		}
	}
	return nil
}

// sameFile reports whether a path may be that of the file that another names,
// perhaps from the folder of the agent.
func sameFile(path, other string) bool {
	return path == other || strings.HasSuffix(path, "/"+strings.TrimPrefix(other, "./"))
}
