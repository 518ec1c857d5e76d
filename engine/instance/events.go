package instance

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// maxMessages is the largest number of messages of a context that are read.
const maxMessages = 10_000

// GetEvents returns the context of an instance from a sequence number on. A number
// above the number of events is [tapedeck.Invalid].
func (r *Repository) GetEvents(ctx context.Context, of view.Ref, from int) ([]view.ContextEvent, error) {
	i, err := r.find(ctx, of)
	if err != nil {
		return nil, err
	}
	events, err := r.events(ctx, &i)
	if err != nil {
		return nil, err
	}
	if from > len(events) {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "sequence number %d is past the end: the context has %d events", from, len(events)).
			WithHint("read on from %d; if you have seen more, they were reverted", len(events))
	}
	return events[max(from, 0):], nil
}

func (r *Repository) events(ctx context.Context, i *found) ([]view.ContextEvent, error) {
	s, err := r.snapshot(ctx, i)
	if err != nil {
		return nil, err
	}
	return view.ContextEvents(s, i.Instance), nil
}

// snapshot returns the whole thread of an instance.
func (r *Repository) snapshot(ctx context.Context, i *found) (view.Snapshot, error) {
	s, err := r.views.Snapshot(ctx, i.session, view.Query{Thread: i.Thread, Limit: maxMessages})
	if err == nil && s.Earlier > 0 {
		err = tapedeck.Errorf(tapedeck.TooLarge, "the context of instance %s has more than %d messages", i.ID, maxMessages)
	}
	return s, err
}

// AppendEvent appends to the context of an instance and returns the resulting
// event. The content is that of the type, see [view.ContextEvent]. toolCallID may
// be empty if the content has it.
//
// A tool_call that an earlier assistant_message made is already there, and is
// returned unchanged. Any other tool_call gets an assistant_message without text
// before it.
//
// Events in the context never change: a call whose id is taken, and a second
// result of a call, are a [tapedeck.Conflict].
func (r *Repository) AppendEvent(ctx context.Context, of view.Ref, typ string, content json.RawMessage, toolCallID string) (view.ContextEvent, error) {
	free, err := r.hold(ctx, of.Session)
	if err != nil {
		return view.ContextEvent{}, err
	}
	defer free()
	i, err := r.find(ctx, of)
	if err != nil {
		return view.ContextEvent{}, err
	}
	now, err := r.snapshot(ctx, &i)
	if err != nil {
		return view.ContextEvent{}, err
	}
	s := step{Type: typ, ToolCallID: toolCallID}
	if err := s.read(content); err != nil {
		return view.ContextEvent{}, err
	}
	events := view.ContextEvents(now, i.Instance)
	if there, err := s.checkCalls(now.Calls, events, &i); err != nil || there != nil {
		return orZero(there), err
	}
	done, err := r.verbs.Append(ctx, tapedeck.Append{Session: i.session, Events: []tapedeck.Event{s.event(&i)}})
	if err != nil {
		return view.ContextEvent{}, err
	}
	if events, err = r.events(ctx, &i); err != nil {
		return view.ContextEvent{}, err
	}
	n := slices.IndexFunc(events, func(e view.ContextEvent) bool { return e.Offset == done.First && e.Type == typ })
	if n < 0 {
		return view.ContextEvent{}, tapedeck.Errorf(tapedeck.Conflict, "the event was appended at offset %d, but another request has removed it from the context", done.First)
	}
	return events[n], nil
}

func orZero(e *view.ContextEvent) view.ContextEvent {
	if e == nil {
		return view.ContextEvent{}
	}
	return *e
}

// DeleteEventsAfter reverts the events after a sequence number in the context of
// an instance, and all other events of its thread from there on. It returns how
// many context events these are. It deletes nothing: it is an overwrite, which can
// be undone. -1 reverts all events.
//
// If a message and its tool call are one event of the log, a sequence number
// between them is [tapedeck.Invalid].
func (r *Repository) DeleteEventsAfter(ctx context.Context, of view.Ref, sequence int) (int, api.Rewound, error) {
	i, err := r.find(ctx, of)
	if err != nil {
		return 0, api.Rewound{}, err
	}
	events, err := r.events(ctx, &i)
	if err != nil {
		return 0, api.Rewound{}, err
	}
	first := max(sequence, -1) + 1
	if first >= len(events) {
		return 0, api.Rewound{}, nil
	}
	if first > 0 && events[first-1].Offset == events[first].Offset {
		return 0, api.Rewound{}, tapedeck.Errorf(tapedeck.Invalid, "%s %d and %s %d are one event of the log", events[first-1].Type, first-1, events[first].Type, first).
			WithHint("delete the events after another one")
	}
	done, err := r.verbs.Overwrite(ctx, api.Overwrite{Session: i.session, FromOffset: events[first].Offset, Thread: i.Thread})
	if err != nil {
		return 0, api.Rewound{}, err
	}
	return len(events) - first, done, nil
}

// CopyEvents appends the context of one instance to that of another: up to and
// including a sequence number, or all of it if that is nil. It returns how many
// events these are. It appends all or none. A call whose id is taken in the
// target's thread gets another id, and so does its result.
func (r *Repository) CopyEvents(ctx context.Context, source, target view.Ref, upTo *int) (int, error) {
	free, err := r.hold(ctx, target.Session)
	if err != nil {
		return 0, err
	}
	defer free()
	from, err := r.find(ctx, source)
	if err != nil {
		return 0, err
	}
	to, err := r.find(ctx, target)
	if err != nil {
		return 0, err
	}
	events, err := r.events(ctx, &from)
	if err != nil {
		return 0, err
	}
	if upTo != nil {
		events = events[:min(max(*upTo+1, 0), len(events))]
	}
	if len(events) == 0 {
		return 0, nil
	}
	there, err := r.snapshot(ctx, &to)
	if err != nil {
		return 0, err
	}
	a := tapedeck.Append{Session: to.session}
	if a.Events, err = copies(events, newCallRenamer(there, &to), &to); err != nil {
		return 0, err
	}
	if _, err = r.verbs.Append(ctx, a); err != nil {
		return 0, err
	}
	return len(events), nil
}

// copies returns context events as events of the log for another instance.
func copies(events []view.ContextEvent, n *callRenamer, to *found) ([]tapedeck.Event, error) {
	made := map[string]int{} // number of calls with an id
	for _, e := range events {
		if e.Type == view.CallEvent {
			made[e.ToolCallID]++
		}
	}
	var out []tapedeck.Event
	for _, e := range events {
		if e.Type == view.CallEvent { // calls are copied with their messages
			continue
		}
		s := step{Type: e.Type, ToolCallID: e.ToolCallID}
		if err := s.read(e.Content); err != nil {
			return nil, err
		}
		s.calls = slices.DeleteFunc(s.calls, func(k payload.ToolCall) bool {
			made[k.ID]--
			return made[k.ID] < 0
		})
		n.rename(&s)
		out = append(out, s.event(to))
	}
	return out, nil
}

// A step is a context event that is about to be appended.
type step struct {
	Type       string
	ToolCallID string
	text       string
	calls      []payload.ToolCall
}

// roles has the role for each type of message.
var roles = map[string]string{
	view.SystemMessage: payload.RoleSystem, view.UserMessage: payload.RoleUser, view.AssistantMessage: payload.RoleAssistant,
	view.CallEvent: payload.RoleAssistant, view.ResultEvent: payload.RoleTool,
}

// read reads the content for the step's type.
func (s *step) read(content json.RawMessage) error {
	var d struct {
		Role       string            `json:"role"`
		Content    *string           `json:"content"`
		ToolCalls  []json.RawMessage `json:"tool_calls"`
		ID         string            `json:"id"`
		ToolCallID string            `json:"tool_call_id"`
	}
	role, known := roles[s.Type]
	if !known {
		return tapedeck.Errorf(tapedeck.Invalid, "there is no event type %.100q", s.Type).
			WithHint("types are system_message, user_message, assistant_message, tool_call and tool_result")
	}
	if err := json.Unmarshal(content, &d); err != nil {
		return s.shapeError(content, err)
	}
	if d.Content != nil {
		s.text = *d.Content
	}
	id := d.ToolCallID
	switch s.Type {
	case view.CallEvent:
		id = d.ID
		s.calls = []payload.ToolCall{readCall(content)}
	case view.AssistantMessage:
		for _, raw := range d.ToolCalls {
			s.calls = append(s.calls, readCall(raw))
		}
	}
	if s.ToolCallID == "" {
		s.ToolCallID = id
	}
	return s.check(role, d.Role, id)
}

func (s *step) check(role, given, id string) error {
	switch s.Type {
	case view.CallEvent, view.ResultEvent:
		if s.Type == view.ResultEvent && id == "" {
			id = s.ToolCallID
		}
		if id == "" || id != s.ToolCallID {
			return tapedeck.Errorf(tapedeck.Invalid, "the %s is about call %.100q and about call %.100q", s.Type, id, s.ToolCallID)
		}
	default:
		if given != "" && given != role {
			return tapedeck.Errorf(tapedeck.Invalid, "the role of a %s is %s, not %.100q", s.Type, role, given)
		}
	}
	for _, k := range s.calls {
		if k.ID == "" || k.Function.Name == "" {
			return tapedeck.Errorf(tapedeck.Invalid, "a tool call of the %s has no id or no name", s.Type)
		}
	}
	return nil
}

// event returns the step as an event of the log.
func (s *step) event(i *found) tapedeck.Event {
	m := payload.NewMessage(tapedeck.NewID("msg_"), roles[s.Type], strings.ToValidUTF8(s.text, "\uFFFD"))
	if s.text == "" && len(s.calls) > 0 {
		m.Content = nil
	}
	m.ToolCalls = s.calls
	if s.Type == view.ResultEvent {
		m.ToolCallID = s.ToolCallID
	}
	m.SubagentRunID = i.Subagent
	e := payload.NewEvent(payload.MessageAdded{Message: m})
	if e.Thread = i.Thread; !i.Main && i.Subagent == "" { // otherwise the thread or the sub-agent identifies the instance
		e.Instance = i.ID
	}
	return e
}
