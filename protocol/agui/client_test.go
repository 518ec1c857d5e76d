package agui_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A frontend is a front end by the rules of AG-UI: it refuses events in a wrong order,
// and builds messages and state as the official client does.
type frontend struct {
	t        testing.TB
	messages []map[string]any
	state    any
	open     map[string]bool
	running  bool
	ended    bool
	outcome  string
}

func (f *frontend) find(id any) map[string]any {
	i := slices.IndexFunc(f.messages, func(m map[string]any) bool { return m["id"] == id })
	if i < 0 {
		return nil
	}
	return f.messages[i]
}

// call returns the tool call with an id, and the place of the message that made it.
func (f *frontend) call(id any) (map[string]any, int) {
	for i, m := range f.messages {
		calls, _ := m["toolCalls"].([]any)
		for _, c := range calls {
			if c := c.(map[string]any); c["id"] == id {
				return c, i
			}
		}
	}
	return nil, -1
}

// receive applies a stream, which must be a whole run.
func (f *frontend) receive(events []map[string]any) {
	f.t.Helper()
	f.open, f.running, f.ended, f.outcome = map[string]bool{}, false, false, ""
	for i, e := range events {
		if err := f.apply(e); err != "" {
			f.t.Fatalf("event %d %v: %s", i, e, err)
		}
	}
	if !f.ended {
		f.t.Fatal("the stream ends without an end of the run")
	}
}

func (f *frontend) apply(e map[string]any) string {
	typ := e["type"].(string)
	if f.ended || !f.running && typ != "RUN_STARTED" && typ != "RUN_ERROR" {
		return "it is outside of a run"
	}
	if fault := f.order(typ, e); fault != "" {
		return fault
	}
	switch typ {
	case "RUN_STARTED":
		f.running = true
	case "RUN_ERROR":
		f.ended = true
	case "RUN_FINISHED":
		f.ended = true
		if o, ok := e["outcome"].(map[string]any); ok {
			f.outcome = o["type"].(string)
		}
	case "STATE_SNAPSHOT":
		f.state = e["snapshot"]
	case "MESSAGES_SNAPSHOT":
		f.restate(e["messages"].([]any))
	default:
		if m := f.find(e["parentMessageId"]); typ == "TOOL_CALL_START" && m != nil && m["role"] != "assistant" {
			return fmt.Sprintf("its parent is a message of the role %v", m["role"])
		}
		f.content(typ, e)
	}
	return ""
}

// order checks what may be open.
func (f *frontend) order(typ string, e map[string]any) string {
	for _, k := range [][4]string{
		{"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "messageId"}, {"TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "toolCallId"},
		{"REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END", "messageId"}, {"REASONING_START", "", "REASONING_END", "messageId"},
		{"STEP_STARTED", "", "STEP_FINISHED", "stepName"}, {"SUBAGENT_STARTED", "", "SUBAGENT_FINISHED", "subagentRunId"},
	} {
		key := fmt.Sprint(k[0], e[k[3]])
		switch {
		case typ == k[0] && f.open[key]:
			return "it is open already"
		case typ == k[0]:
			f.open[key] = true
		case (typ == k[1] || typ == k[2]) && !f.open[key]:
			return "it is not open"
		case typ == k[2], typ == "SUBAGENT_ERROR" && k[0] == "SUBAGENT_STARTED":
			delete(f.open, key)
		}
	}
	if typ == "RUN_FINISHED" && len(f.open) > 0 {
		return fmt.Sprint("something is open: ", f.open)
	}
	return ""
}

func (f *frontend) restate(list []any) {
	with := map[any]map[string]any{}
	for _, m := range list {
		with[m.(map[string]any)["id"]] = m.(map[string]any)
	}
	var kept []map[string]any
	has := map[any]bool{}
	for _, m := range f.messages {
		if n := with[m["id"]]; n != nil {
			kept, has[m["id"]] = append(kept, n), true
		}
	}
	for _, m := range list {
		if m := m.(map[string]any); !has[m["id"]] {
			kept, has[m["id"]] = append(kept, m), true
		}
	}
	f.messages = kept
}

func (f *frontend) content(typ string, e map[string]any) {
	add := func(m map[string]any) { f.messages = append(f.messages, m) }
	switch typ {
	case "TEXT_MESSAGE_START", "REASONING_MESSAGE_START":
		role, ok := e["role"].(string)
		if !ok {
			role = "assistant"
		}
		m := f.find(e["messageId"])
		if m == nil {
			m = map[string]any{"id": e["messageId"], "role": role, "content": ""}
			add(m)
		}
		if e["metadata"] != nil {
			m["metadata"] = e["metadata"]
		}
	case "TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT":
		m := f.find(e["messageId"])
		text, _ := m["content"].(string)
		m["content"] = text + e["delta"].(string)
	case "TOOL_CALL_START":
		f.startCall(e)
	case "TOOL_CALL_ARGS":
		c, _ := f.call(e["toolCallId"])
		fn := c["function"].(map[string]any)
		fn["arguments"] = fmt.Sprint(fn["arguments"], e["delta"])
	case "TOOL_CALL_RESULT":
		_, at := f.call(e["toolCallId"])
		if at < 0 {
			at = len(f.messages) - 1
		}
		for at++; at < len(f.messages) && f.messages[at]["role"] == "tool"; at++ {
		}
		m := map[string]any{"id": e["messageId"], "role": "tool", "toolCallId": e["toolCallId"], "content": e["content"], "metadata": e["metadata"]}
		f.messages = slices.Insert(f.messages, at, m)
	case "ACTIVITY_SNAPSHOT":
		m := map[string]any{"id": e["messageId"], "role": "activity", "activityType": e["activityType"], "content": e["content"], "metadata": e["metadata"]}
		if i := slices.IndexFunc(f.messages, func(m map[string]any) bool { return m["id"] == e["messageId"] }); i >= 0 {
			if e["metadata"] == nil {
				m["metadata"] = f.messages[i]["metadata"]
			}
			f.messages[i] = m
			return
		}
		add(m)
	case "ACTIVITY_DELTA":
		m := f.find(e["messageId"])
		content, _ := m["content"].(map[string]any)
		content = maps.Clone(content)
		for _, op := range e["patch"].([]any) { // this front end knows one operation, on a member of the content
			if op := op.(map[string]any); op["op"] == "replace" && content != nil {
				content[strings.TrimPrefix(fmt.Sprint(op["path"]), "/")] = op["value"]
			}
		}
		if m != nil && content != nil {
			m["content"] = content
		}
	}
}

func (f *frontend) startCall(e map[string]any) {
	if c, _ := f.call(e["toolCallId"]); c != nil {
		if e["metadata"] != nil {
			c["metadata"] = e["metadata"]
		}
		return
	}
	parent, ok := e["parentMessageId"].(string)
	if !ok {
		parent = e["toolCallId"].(string)
	}
	m := f.find(parent)
	if m == nil {
		m = map[string]any{"id": parent, "role": "assistant"}
		f.messages = append(f.messages, m)
	}
	calls, _ := m["toolCalls"].([]any)
	m["toolCalls"] = append(calls, map[string]any{
		"id": e["toolCallId"], "type": "function", "metadata": e["metadata"],
		"function": map[string]any{"name": e["toolCallName"], "arguments": ""},
	})
}

// same compares what two front ends show.
func (f *frontend) same(t testing.TB, other *frontend, what string) {
	t.Helper()
	if !reflect.DeepEqual(f.messages, other.messages) || !reflect.DeepEqual(f.state, other.state) {
		t.Errorf("%s: the front end shows\n%s\nwant\n%s", what, f, other)
	}
}

func (f *frontend) String() string {
	var b strings.Builder
	for _, m := range f.messages {
		raw, _ := json.Marshal(m)
		fmt.Fprintf(&b, "%.600s\n", raw)
	}
	return b.String() + fmt.Sprint(f.state)
}
