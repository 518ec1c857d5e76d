package instance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A step is a context event that is about to be appended.
type step struct {
	Type       string
	ToolCallID string
	text       string
	calls      []payload.ToolCall
	ids        []string        // of the calls in the log, or of the call that it makes or answers; see [namer]
	made       bool            // of a tool_call: a message of the context has the call
	given      json.RawMessage // the content; nil if [step.plain] says all of it
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
		Content    json.RawMessage   `json:"content"`
		ToolCalls  []json.RawMessage `json:"tool_calls"`
		ID         string            `json:"id"`
		ToolCallID string            `json:"tool_call_id"`
	}
	role, known := roles[s.Type]
	if !known {
		return tapedeck.Errorf(tapedeck.Invalid, "there is no event type %.100q", s.Type).
			WithHint("types are system_message, user_message, assistant_message, tool_call and tool_result")
	}
	err := json.Unmarshal(content, &d)
	if err == nil {
		err = s.readText(d.Content)
	}
	if err != nil {
		return s.shapeError(content, err)
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
	if err := s.check(role, d.Role, id); err != nil {
		return err
	}
	s.keep(content)
	return nil
}

// readText reads the member content. That of a message is a string. A tool may answer with
// any JSON: then its text, which models get, is that JSON.
func (s *step) readText(raw json.RawMessage) error {
	if s.Type == view.ResultEvent || raw == nil {
		s.text = textOf(raw)
		return nil
	}
	err := json.Unmarshal(raw, &s.text) // null leaves it empty
	var shape *json.UnmarshalTypeError
	if errors.As(err, &shape) {
		shape.Field = "content"
	}
	return err
}

// keep keeps the content as it was given, if the plain one does not say all of it. The role
// and the id of the call are added if they are missing.
func (s *step) keep(content json.RawMessage) {
	given, plain := map[string]any{}, map[string]any{}
	_ = json.Unmarshal(content, &given) // both were decoded or encoded before
	_ = json.Unmarshal(s.plain(), &plain)
	var missing tapedeck.Members
	for _, name := range []string{"role", "tool_call_id"} {
		if _, ok := given[name]; !ok && plain[name] != nil {
			given[name] = plain[name]
			missing = tapedeck.Members{name: payload.Text(plain[name].(string))}
		}
	}
	if s.given = nil; reflect.DeepEqual(given, plain) {
		return
	}
	if missing != nil {
		_ = json.Unmarshal(content, &missing)
		content, _ = json.Marshal(missing)
	}
	var b bytes.Buffer
	_ = json.Compact(&b, content)
	s.given = b.Bytes()
}

// content returns the content of the event.
func (s *step) content() json.RawMessage {
	if s.given != nil {
		return s.given
	}
	return s.plain()
}

// plain returns the content that views show if nothing else was given.
func (s *step) plain() json.RawMessage {
	var v any
	switch s.Type {
	case view.CallEvent:
		v = struct {
			ID        string `json:"id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		}{s.calls[0].ID, s.calls[0].Function.Name, s.calls[0].Function.Arguments}
	case view.ResultEvent:
		v = struct {
			ToolCallID string `json:"tool_call_id"`
			Content    string `json:"content"`
		}{s.ToolCallID, s.text}
	default:
		m := struct {
			Role      string                 `json:"role"`
			Content   string                 `json:"content"`
			ToolCalls []view.ContextToolCall `json:"tool_calls,omitempty"`
		}{Role: roles[s.Type], Content: s.text}
		for _, k := range s.calls {
			m.ToolCalls = append(m.ToolCalls, view.ContextToolCall{ID: k.ID, Type: "function", Function: view.ContextFunction{Name: k.Function.Name, Arguments: k.Function.Arguments}})
		}
		v = m
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: the values are strings
	}
	return b
}

func (s *step) check(role, given, id string) error {
	ofCall := s.Type == view.CallEvent || s.Type == view.ResultEvent
	switch {
	case s.Type == view.ResultEvent && s.ToolCallID == "":
		return tapedeck.Errorf(tapedeck.Invalid, "the tool_result has no tool_call_id")
	case ofCall && id != "" && id != s.ToolCallID:
		return tapedeck.Errorf(tapedeck.Invalid, "the content of the %s is about call %.100q, and its tool_call_id is %.100q", s.Type, id, s.ToolCallID)
	case !ofCall && given != "" && given != role:
		return tapedeck.Errorf(tapedeck.Invalid, "the role of the %s must be %s, and is %.100q", s.Type, role, given)
	}
	for n, k := range s.calls {
		what := "the tool_call"
		if s.Type == view.AssistantMessage {
			what = fmt.Sprintf("call %d of the assistant_message", n+1)
		}
		switch {
		case k.ID == "":
			return tapedeck.Errorf(tapedeck.Invalid, "%s has no id", what)
		case k.Function.Name == "":
			return tapedeck.Errorf(tapedeck.Invalid, "%s has no name", what)
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
	mark := tapedeck.Meta{Given: s.given}
	switch {
	case s.made:
		mark.Step, mark.Call, mark.Given = s.Type, s.ids[0], s.content()
	case len(s.calls) > 0:
		mark.Step, m.ToolCalls, mark.IDs = s.Type, slices.Clone(s.calls), s.others()
		for n, id := range s.ids {
			m.ToolCalls[n].ID = id
		}
	}
	if mark.Given != nil || mark.Step != "" {
		m.Metadata = mark.In(nil)
	}
	if s.Type == view.ResultEvent {
		m.ToolCallID = s.ids[0]
	}
	m.SubagentRunID = i.Subagent
	e := payload.NewEvent(payload.MessageAdded{Message: m})
	if e.Thread = i.Thread; !i.Main && i.Subagent == "" { // otherwise the thread or the sub-agent identifies the instance
		e.Instance = i.ID
	}
	return e
}

// others returns the ids of the calls in the context, nil if the log has the same.
func (s *step) others() (ids []string) {
	differ := false
	for n := range s.calls {
		ids, differ = append(ids, s.calls[n].ID), differ || s.calls[n].ID != s.ids[n]
	}
	if !differ {
		return nil
	}
	return ids
}
