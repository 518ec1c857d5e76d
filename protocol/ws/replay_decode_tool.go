package ws

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A namedCall is a call that a backend has begun and not ended.
type namedCall struct {
	id, name string
	args     json.RawMessage // with which it begins again after a clear; nil if they are large
}

// maxArgs is how many bytes of the arguments of an open call a decoder remembers.
const maxArgs = 16 << 10

// findCall sets the element of the end of a call to an element that has this call open. The
// element that was named last comes first.
func (d *replayDecoder) findCall(m *replayMessage) {
	if el := d.elements[threadNamed(d.last)]; el != nil && el.call(m) >= 0 {
		return
	}
	for _, thread := range slices.Sorted(maps.Keys(d.elements)) {
		if d.elements[thread].call(m) >= 0 {
			m.ElementID, _ = payload.ElementOf(thread)
			return
		}
	}
}

// call returns the place of the open call that a message ends: by its id, or else the oldest
// of its tool; -1 for none.
func (el *element) call(m *replayMessage) int {
	return slices.IndexFunc(el.calls, func(c namedCall) bool {
		return m.ToolCallID == c.id || m.ToolCallID == "" && m.ToolName == c.name
	})
}

// ends returns the open call that a message ends, nil for none, and the run of the element.
func (el *element) ends(m *replayMessage) (*namedCall, string) {
	if el == nil {
		return nil, ""
	}
	if i := el.call(m); i >= 0 && m.Type == typeToolEnd {
		return new(el.calls[i]), el.invocation
	}
	return nil, el.invocation
}

func (el *element) toolStart(m *replayMessage) ([]payload.Payload, error) {
	if m.ToolName == "" {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the message has no toolName")
	}
	id := m.ToolCallID
	if id == "" {
		id = tapedeck.NewID("call_")
	}
	c := namedCall{id: id, name: m.ToolName}
	if len(m.ToolArgs) <= maxArgs {
		c.args = m.ToolArgs
	}
	el.calls = append(el.calls, c)
	out := []payload.Payload{payload.ToolCallStart{ToolCallID: id, ToolCallName: m.ToolName}}
	if len(m.ToolArgs) > 0 && string(m.ToolArgs) != "null" {
		out = append(out, payload.ToolCallArgs{ToolCallID: id, Delta: payload.Piece(m.ToolArgs)})
	}
	return append(out, payload.ToolCallEnd{ToolCallID: id}), nil
}

// toolEnd answers the call with the id of the message or, without one, the oldest open
// call of the tool.
func (el *element) toolEnd(m *replayMessage) ([]payload.Payload, error) {
	i := el.call(m)
	if i < 0 {
		return nil, tapedeck.Errorf(tapedeck.Conflict, "element %s has no open call of the tool %.64q", m.ElementID, m.ToolName).WithHint("send %s first", typeToolStart)
	}
	id := el.calls[i].id
	el.calls = slices.Delete(el.calls, i, i+1)
	result := ""
	switch {
	case len(m.Result) == 0:
	case json.Unmarshal(m.Result, &result) != nil: // an object, an array or a number is kept as JSON
		result = string(m.Result)
	}
	content, _ := json.Marshal(result) // a string can be encoded
	return []payload.Payload{payload.ToolCallResult{MessageID: tapedeck.NewID("msg_"), ToolCallID: id, Content: content}}, nil
}
