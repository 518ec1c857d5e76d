package instance

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// maxMessages is the most messages of a context that are looked at.
const maxMessages = 10_000

// GetEvents returns the context of an instance from a sequence number on.
func (r *Repository) GetEvents(ctx context.Context, of view.Ref, from int) ([]view.ContextEvent, error) {
	i, err := r.find(ctx, of)
	if err != nil {
		return nil, err
	}
	events, err := r.events(ctx, &i)
	if err != nil {
		return nil, err
	}
	return events[min(max(from, 0), len(events)):], nil
}

func (r *Repository) events(ctx context.Context, i *found) ([]view.ContextEvent, error) {
	s, err := r.views.Snapshot(ctx, i.session, view.Query{At: -1, Thread: i.Thread, Limit: maxMessages})
	if err != nil {
		return nil, err
	}
	if s.Earlier > 0 {
		return nil, tapedeck.Errorf(tapedeck.TooLarge, "the context of instance %s has more than %d messages", i.ID, maxMessages)
	}
	return view.ContextEvents(s, i.Instance), nil
}

// AppendEvent appends to the context of an instance and returns what it has
// become. The content is that of the type, see [view.ContextEvent]; toolCallID may
// be left out where the content has it.
//
// A tool_call that an assistant_message before it has made is there already, and
// is returned as it is. One that none has made gets an assistant_message without
// text, which comes before it.
func (r *Repository) AppendEvent(ctx context.Context, of view.Ref, typ string, content json.RawMessage, toolCallID string) (view.ContextEvent, error) {
	i, err := r.find(ctx, of)
	if err != nil {
		return view.ContextEvent{}, err
	}
	events, err := r.events(ctx, &i)
	if err != nil {
		return view.ContextEvent{}, err
	}
	s := step{Type: typ, ToolCallID: toolCallID}
	if err := s.read(content); err != nil {
		return view.ContextEvent{}, err
	}
	if typ == view.CallEvent || typ == view.ResultEvent {
		made := slices.IndexFunc(events, func(e view.ContextEvent) bool { return e.Type == view.CallEvent && e.ToolCallID == s.ToolCallID })
		switch {
		case typ == view.CallEvent && made >= 0:
			return events[made], nil
		case typ == view.ResultEvent && made < 0:
			return view.ContextEvent{}, tapedeck.Errorf(tapedeck.Invalid, "the context of %s has no tool call %q", i.ID, s.ToolCallID).
				WithHint("append the call first")
		}
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
		return view.ContextEvent{}, tapedeck.Errorf(tapedeck.Conflict, "the event was appended at offset %d and taken back at once", done.First)
	}
	return events[n], nil
}

// DeleteEventsAfter reverts what comes after a sequence number in the context of an
// instance, and all else in its thread from there on, and returns how many context
// events these are. Nothing is deleted: it is an overwrite, which can be undone.
// -1 reverts all.
//
// A tool call that came whole with its message is one event of the log with it:
// between these it is [tapedeck.Invalid].
func (r *Repository) DeleteEventsAfter(ctx context.Context, of view.Ref, sequence int) (int, tapedeck.Rewound, error) {
	i, err := r.find(ctx, of)
	if err != nil {
		return 0, tapedeck.Rewound{}, err
	}
	events, err := r.events(ctx, &i)
	if err != nil {
		return 0, tapedeck.Rewound{}, err
	}
	first := max(sequence, -1) + 1
	if first >= len(events) {
		return 0, tapedeck.Rewound{}, nil
	}
	if first > 0 && events[first-1].Offset == events[first].Offset {
		return 0, tapedeck.Rewound{}, tapedeck.Errorf(tapedeck.Invalid, "%s %d and %s %d are one event of the log", events[first-1].Type, first-1, events[first].Type, first).
			WithHint("delete what comes after another one")
	}
	done, err := r.verbs.Overwrite(ctx, tapedeck.Overwrite{Session: i.session, FromOffset: events[first].Offset, Thread: i.Thread})
	if err != nil {
		return 0, tapedeck.Rewound{}, err
	}
	return len(events) - first, done, nil
}

// CopyEvents appends the context of one instance to that of another, up to a
// sequence number and including it, or all of it if that is nil. It returns how
// many events these are. All are appended or none.
func (r *Repository) CopyEvents(ctx context.Context, source, target view.Ref, upTo *int) (int, error) {
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
	made := map[string]bool{} // calls that are among them
	for _, e := range events {
		if e.Type == view.CallEvent {
			made[e.ToolCallID] = true
		}
	}
	a := tapedeck.Append{Session: to.session}
	for _, e := range events {
		s := step{Type: e.Type, ToolCallID: e.ToolCallID}
		if err := s.read(e.Content); err != nil {
			return 0, err
		}
		s.calls = slices.DeleteFunc(s.calls, func(k tapedeck.ToolCall) bool { return !made[k.ID] })
		if e.Type != view.CallEvent { // they are in their messages
			a.Events = append(a.Events, s.event(&to))
		}
	}
	_, err = r.verbs.Append(ctx, a)
	if err != nil {
		return 0, err
	}
	return len(events), nil
}

// A step is a context event on its way into the log.
type step struct {
	Type       string
	ToolCallID string
	text       string
	calls      []tapedeck.ToolCall
}

// roles has for each type of a message its role.
var roles = map[string]string{
	view.SystemMessage: tapedeck.RoleSystem, view.UserMessage: tapedeck.RoleUser, view.AssistantMessage: tapedeck.RoleAssistant,
	view.CallEvent: tapedeck.RoleAssistant, view.ResultEvent: tapedeck.RoleTool,
}

// read reads the content of the step's type.
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
		return tapedeck.Errorf(tapedeck.Invalid, "the content of the %s is not what the type has", s.Type).Because(err)
	}
	if d.Content != nil {
		s.text = *d.Content
	}
	id := d.ToolCallID
	switch s.Type {
	case view.CallEvent:
		id = d.ID
		s.calls = []tapedeck.ToolCall{readCall(content)}
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

// readCall reads a call, in the form of a tool_call or in that of OpenAI.
func readCall(raw json.RawMessage) tapedeck.ToolCall {
	type function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	var d struct {
		ID string `json:"id"`
		function
		Function *function `json:"function"`
	}
	_ = json.Unmarshal(raw, &d) // without id and name it is refused
	if d.Function != nil {
		d.function = *d.Function
	}
	return tapedeck.ToolCall{ID: d.ID, Type: "function", Function: tapedeck.FunctionCall{Name: d.Name, Arguments: argumentsOf(d.Arguments)}}
}

// argumentsOf returns arguments as text, which some write as JSON itself.
func argumentsOf(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // it was decoded, so it is JSON
	return b.String()
}

// event returns the event of the log that says the step.
func (s *step) event(i *found) tapedeck.Event {
	m := tapedeck.NewMessage(tapedeck.NewID("msg_"), roles[s.Type], strings.ToValidUTF8(s.text, "\uFFFD"))
	if s.text == "" && len(s.calls) > 0 {
		m.Content = nil
	}
	m.ToolCalls = s.calls
	if s.Type == view.ResultEvent {
		m.ToolCallID = s.ToolCallID
	}
	m.SubagentRunID = i.Subagent
	e := tapedeck.NewEvent(tapedeck.MessageAddedData{Message: m})
	if e.Thread = i.Thread; !i.Main && i.Subagent == "" { // else it is theirs already
		e.Instance = i.ID
	}
	return e
}
