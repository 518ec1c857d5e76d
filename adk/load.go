package adk

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"google.golang.org/adk/v2/session"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// storedIn returns the metadata of this package in an event.
func storedIn(e *tapedeck.Event) (s stored, ok bool) {
	if !bytes.Contains(e.Data, []byte(`"adk"`)) { // the usual case, without decoding
		return s, false
	}
	var d struct {
		Metadata struct {
			ADK *stored `json:"adk"`
		} `json:"metadata"`
	}
	if !e.Unpack(&d) || d.Metadata.ADK == nil {
		return s, false
	}
	return *d.Metadata.ADK, true
}

// A history is what a session's log has for ADK.
type history struct {
	jumps   []tapedeck.Jump
	records []record // those that the events of ADK are made of

	runs map[string]string // ids of all runs, with the invocations of ADK
	used map[string]bool   // ids of all tool calls
	open []item            // open in the run that is open now
	turn int               // of that run

	last record // the newest one that carries an event of ADK, active or not
}

// A record is an event of the log with the metadata of this package.
type record struct {
	tapedeck.Event
	stored stored
}

// load returns the copy of a session as its catalogue entry has it.
func (s *Service) load(ctx context.Context, k key, info *tapedeck.Session) (*conversation, error) {
	running, _ := info.Run(tapedeck.MainThread)
	h, err := s.read(ctx, info, running.Invocation)
	if err != nil {
		return nil, err
	}
	c := &conversation{
		service: s, key: k, log: info.ID, next: info.Head, titled: info.Title != "", updated: info.Created,
		runs: map[string]bool{}, calls: map[string]string{}, used: h.used,
	}
	for id := range h.runs {
		c.runs[id] = true
	}
	if invocation, ours := h.runs[running.Invocation]; ours && invocation != "" && running.Owner == "" {
		c.run = &run{id: running.Invocation, invocation: invocation, restored: true, turn: h.turn, streams: map[string]*stream{}, open: h.open}
	}
	if c.state, err = s.stateOf(ctx, info.ID, info.Head); err != nil {
		return nil, err
	}
	c.fold(h)
	return c, c.repair(ctx, h, info)
}

// repair stores a change of shared state again that a crash may have kept from its log. A
// second time it changes nothing.
func (c *conversation) repair(ctx context.Context, h *history, info *tapedeck.Session) error {
	if !h.last.stored.Shares || h.last.Offset < info.ForkedAt {
		return nil
	}
	event, err := rawEvent(&h.last.Event)
	if err != nil {
		return nil //nolint:nilerr // [conversation.fold] has logged it
	}
	return c.service.share(ctx, c.key, splitDelta(event.Actions.StateDelta), c.cause(h.last.Offset))
}

// read reads the log below the head of the entry.
func (s *Service) read(ctx context.Context, info *tapedeck.Session, running string) (*history, error) {
	h := &history{runs: map[string]string{}, used: map[string]bool{}}
	for e, err := range s.store.Events(ctx, info.ID, 0) {
		if err != nil {
			return nil, err
		}
		if e.Offset >= info.Head {
			break
		}
		if j, ok := e.Jump(); ok {
			h.jumps = append(h.jumps, j)
			continue
		}
		h.add(&e, running)
	}
	return h, nil
}

// add adds an event of the log.
func (h *history) add(e *tapedeck.Event, running string) {
	s, _ := storedIn(e)
	if s.Event {
		h.last = record{*e, s}
	}
	if e.Type == tapedeck.RunStarted {
		h.runs[e.Invocation] = s.Invocation
	}
	if id := itemOf(e); id != "" {
		if e.Type == tapedeck.ToolCallStart {
			h.used[id] = true
		}
		if running != "" && e.Invocation == running {
			h.track(e, id)
		}
	}
	if e.Invocation == running {
		h.turn = max(h.turn, e.Turn)
	}
	switch e.Type {
	case tapedeck.TextMessageStart, tapedeck.TextMessageContent, tapedeck.ReasoningMessageStart, tapedeck.ReasoningMessageContent,
		tapedeck.MessageAdded, tapedeck.ToolCallStart, tapedeck.ToolCallArgs, tapedeck.ToolCallResult:
		h.records = append(h.records, record{*e, s})
	default:
		if s.Event {
			h.records = append(h.records, record{*e, s})
		}
	}
}

// track notes what is open in the run that is open now.
func (h *history) track(e *tapedeck.Event, id string) {
	switch e.Type {
	case tapedeck.TextMessageStart, tapedeck.ReasoningMessageStart, tapedeck.ToolCallStart:
		h.open = append(h.open, item{e.Type, id})
	case tapedeck.TextMessageEnd, tapedeck.ReasoningMessageEnd, tapedeck.ToolCallEnd:
		h.open = slices.DeleteFunc(h.open, func(i item) bool { return i.id == id })
	}
}

// itemOf returns the id of the message or tool call that an event opens, continues or
// closes; "" for other events.
func itemOf(e *tapedeck.Event) string {
	var d struct {
		MessageID  string `json:"messageId"`
		ToolCallID string `json:"toolCallId"`
	}
	switch e.Type {
	case tapedeck.TextMessageStart, tapedeck.TextMessageEnd, tapedeck.ReasoningMessageStart, tapedeck.ReasoningMessageEnd:
		_ = e.Unpack(&d) // then it has no id
		return d.MessageID
	case tapedeck.ToolCallStart, tapedeck.ToolCallEnd:
		_ = e.Unpack(&d)
		return d.ToolCallID
	}
	return ""
}

// fold sets the events from the active events of the log. It leaves out what cannot be
// decoded: another program may have appended it, and must not lock ADK out.
func (c *conversation) fold(h *history) {
	active := view.NewTimeline(h.jumps).Ranges(tapedeck.MainThread, c.next)
	said := contents{}
	for i := range h.records {
		e := &h.records[i]
		for len(active) > 0 && active[0].To <= e.Offset {
			active = active[1:]
		}
		if len(active) == 0 {
			break
		}
		if e.Offset < active[0].From {
			continue
		}
		said.add(&e.Event)
		if !e.stored.Event || e.Erased() {
			continue
		}
		event, err := c.decode(e, said)
		if err != nil {
			c.service.logger.Warn("an event of ADK cannot be read", "session", c.log, "error", err)
			continue
		}
		c.events = append(c.events, event)
		c.updated = event.Timestamp
	}
}

// decode returns the event of ADK that e carries.
func (c *conversation) decode(e *record, said contents) (*session.Event, error) {
	event, err := rawEvent(&e.Event)
	if err != nil {
		return nil, err
	}
	if event.Content == nil {
		return event, nil
	}
	parts := event.Content.Parts
	kept := parts[:0]
	for i, p := range parts {
		if i < len(e.stored.Items) && e.stored.Items[i] != nil && p != nil {
			from := e.stored.Items[i]
			if p.FunctionCall != nil {
				c.calls[p.FunctionCall.ID] = from.ID
			}
			if !said.restore(p, from) {
				continue // it was erased
			}
		}
		kept = append(kept, p)
	}
	event.Content.Parts = kept
	return event, nil
}

// rawEvent returns the event of ADK that e carries, without what other events have.
func rawEvent(e *tapedeck.Event) (*session.Event, error) {
	var d struct {
		RawEvent json.RawMessage `json:"rawEvent"`
	}
	var event session.Event
	if !e.Unpack(&d) || json.Unmarshal(d.RawEvent, &event) != nil {
		return nil, tapedeck.Errorf(tapedeck.Internal, "the event at offset %d has no event of ADK", e.Offset)
	}
	return &event, nil
}
