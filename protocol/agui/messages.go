package agui

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// pageMessages is how many messages one question to the views asks for.
const pageMessages = 10_000

// conversation returns the whole conversation of a thread as of an offset.
func (h *handler) conversation(ctx context.Context, at place, head int64) (view.Snapshot, error) {
	q := view.Query{At: &head, Thread: at.lane, Limit: pageMessages}
	s, err := h.Views.Snapshot(ctx, at.session, q)
	if err != nil {
		return s, err
	}
	if head < 0 || s.At < head {
		q.At = &s.At
	}
	for earlier := s.Earlier; earlier > 0 && len(s.Messages) > 0; {
		q.Before = s.Messages[0].Offset
		page, err := h.Views.Snapshot(ctx, at.session, q)
		if err != nil {
			return s, err
		}
		if len(page.Messages) == 0 {
			break
		}
		s.Messages = append(page.Messages, s.Messages...)
		s.Calls = append(page.Calls, s.Calls...)
		earlier = page.Earlier
	}
	return s, nil
}

// form returns the form of restored messages. Each has its place in the log.
func (p profile) form() aguiwire.Form {
	return aguiwire.Form{Legacy: p == legacy, Metadata: func(raw json.RawMessage, offset int64, invocation string) tapedeck.Members {
		return metadata(raw, offset, invocation, true)
	}}
}

// clean returns a message of a client or of another agent for a client: without our
// metadata and without members that AG-UI does not define. It gets the place of e if
// marked is true; e may also repeat a message that is elsewhere.
func (p profile) clean(m payload.Message, e *tapedeck.Event, marked bool) payload.Message {
	raw, _ := json.Marshal(m.Metadata) // it was decoded from JSON
	m.Metadata, m.Extra = metadata(raw, e.Offset, e.Invocation, marked), nil
	if len(m.Metadata) == 0 {
		m.Metadata = nil
	}
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range m.ToolCalls {
		m.ToolCalls[i].Extra, m.ToolCalls[i].Function.Extra = nil, nil
	}
	if p == legacy {
		m.SubagentRunID = ""
		if m.Role == payload.RoleTool {
			m.Content = flat(m.Content)
		}
	}
	return m
}
