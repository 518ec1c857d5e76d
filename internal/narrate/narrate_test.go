package narrate

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
)

// record runs tell and returns a line for each event. It fails the test if the events
// are not in order.
func record(t *testing.T, tell func(*Narrator)) []string {
	t.Helper()
	v := order.NewVerifier()
	add := func(e tapedeck.Event) {
		t.Helper()
		e.Invocation, e.Thread = "inv", "main"
		if err := v.Add(&e); err != nil {
			t.Errorf("%s %s: %v", e.Type, e.Data, err)
		}
	}
	run := []byte(`{"threadId":"main","runId":"inv"}`)
	add(tapedeck.Event{Type: tapedeck.RunStarted, Data: run})
	var lines []string
	n := New("inv", func(e tapedeck.Event, err error) bool {
		if err != nil {
			lines = append(lines, "error "+err.Error())
			return true
		}
		add(e)
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %.0d", e.Type, strings.ReplaceAll(string(e.Data), "inv.", ""), e.Turn)))
		return true
	})
	tell(n)
	n.Done()
	if !n.Over() {
		add(tapedeck.Event{Type: tapedeck.RunFinished, Data: run})
	}
	return lines
}

func TestNarrator(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, tt := range []struct {
		name string
		tell func(*Narrator)
		want []string
	}{
		{"empty deltas yield no events", func(n *Narrator) { n.Say("", "", ""); n.Think("", "a", ""); n.EndMessage(""); n.Pause("") }, nil},
		{"another id is another message", func(n *Narrator) { n.Say("", "a", "1"); n.Say("", "b", "2"); n.Say("", "a", "3") }, []string{
			`TEXT_MESSAGE_START {"messageId":"m.a","role":"assistant"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m.a","delta":"1"}`, `TEXT_MESSAGE_END {"messageId":"m.a"}`,
			`TEXT_MESSAGE_START {"messageId":"m.b","role":"assistant"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m.b","delta":"2"}`, `TEXT_MESSAGE_END {"messageId":"m.b"}`,
			`TEXT_MESSAGE_START {"messageId":"m.a","role":"assistant"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m.a","delta":"3"}`, `TEXT_MESSAGE_END {"messageId":"m.a"}`,
		}},
		{"a pause ends only a message without an id", func(n *Narrator) {
			n.Say("", "", "1")
			n.Pause("")
			n.Say("", "", "2")
			n.Say("", "a", "3")
			n.Pause("")
			n.Say("", "a", "4")
		}, []string{
			`TEXT_MESSAGE_START {"messageId":"m1","role":"assistant"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"1"}`, `TEXT_MESSAGE_END {"messageId":"m1"}`,
			`TEXT_MESSAGE_START {"messageId":"m2","role":"assistant"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m2","delta":"2"}`, `TEXT_MESSAGE_END {"messageId":"m2"}`,
			`TEXT_MESSAGE_START {"messageId":"m.a","role":"assistant"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m.a","delta":"3"}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"m.a","delta":"4"}`, `TEXT_MESSAGE_END {"messageId":"m.a"}`,
		}},
		{"calls begin and are answered once", func(n *Narrator) {
			n.Turn = 2
			n.Args("c", "lost")
			n.Answered("c", Answer{Content: Text("lost")})
			n.Tool(Call{ID: "c", Name: "T"})
			n.Tool(Call{ID: "c", Name: "U"})
			n.Args("c", "{}")
			n.Called("c")
			n.Args("c", "late")
			n.Answered("c", Answer{Content: Text("yes")})
			n.Answered("c", Answer{Content: Text("again")})
		}, []string{
			`TOOL_CALL_START {"toolCallId":"c.c","toolCallName":"T"} 2`, `TOOL_CALL_ARGS {"toolCallId":"c.c","delta":"{}"} 2`, `TOOL_CALL_END {"toolCallId":"c.c"} 2`,
			`TOOL_CALL_RESULT {"messageId":"t.c","toolCallId":"c.c","content":"yes","role":"tool"} 2`,
		}},
		{"a character in two deltas comes with the second one", func(n *Narrator) {
			n.Think("", "a", "hm \xed\xa0\xbd")
			n.Think("", "a", "\xed\xba\x80 so")
			n.Say("", "a", "\xed\xa0\xbd")
			n.Tool(Call{ID: "c", Name: "T"})
			n.Args("c", `{"q":"`+"\xed\xa0\xbd")
			n.Args("c", "\xed\xba\x80"+`"}`)
			n.Input("c", nil)
			n.Say("", "a", "\xed\xba\x80\xed\xa0\xbd")
			n.Say("", "a", "!")
		}, []string{
			`REASONING_START {"messageId":"r.a"}`, `REASONING_MESSAGE_START {"messageId":"r.a","role":"reasoning"}`,
			`REASONING_MESSAGE_CONTENT {"messageId":"r.a","delta":"hm "}`, `REASONING_MESSAGE_CONTENT {"messageId":"r.a","delta":"🚀 so"}`,
			`REASONING_MESSAGE_END {"messageId":"r.a"}`, `REASONING_END {"messageId":"r.a"}`,
			`TEXT_MESSAGE_START {"messageId":"m.a","role":"assistant"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m.a","delta":"�"}`, `TEXT_MESSAGE_END {"messageId":"m.a"}`,
			`TOOL_CALL_START {"toolCallId":"c.c","toolCallName":"T"}`, `TOOL_CALL_ARGS {"toolCallId":"c.c","delta":"{\"q\":\""}`,
			`TOOL_CALL_ARGS {"toolCallId":"c.c","delta":"🚀\"}"}`, `TOOL_CALL_END {"toolCallId":"c.c"}`,
			`TEXT_MESSAGE_START {"messageId":"m.a","role":"assistant"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m.a","delta":"�"}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"m.a","delta":"�!"}`, `TEXT_MESSAGE_END {"messageId":"m.a"}`,
		}},
		{"calls without an id follow one another", func(n *Narrator) {
			for range 2 {
				n.Tool(Call{})
				n.Answered("", Answer{Failed: true})
			}
		}, []string{
			`TOOL_CALL_START {"toolCallId":"c1","toolCallName":"tool"}`, `TOOL_CALL_END {"toolCallId":"c1"}`,
			`TOOL_CALL_RESULT {"messageId":"t2","toolCallId":"c1","content":"","role":"tool","metadata":{"tapedeck":{"error":true}}}`,
			`TOOL_CALL_START {"toolCallId":"c3","toolCallName":"tool"}`, `TOOL_CALL_END {"toolCallId":"c3"}`,
			`TOOL_CALL_RESULT {"messageId":"t4","toolCallId":"c3","content":"","role":"tool","metadata":{"tapedeck":{"error":true}}}`,
		}},
		{"sub-agents with the same message id, and one that continues", func(n *Narrator) {
			n.Tool(Call{ID: "a"})
			n.Called("a")
			n.Subagent("a", "scout", "", "")
			n.Subagent("a", "another", "", "")
			n.Say("", "m", "1")
			n.Say("a", "m", "2")
			n.SubagentDone("a", "")
			n.Subagent("a", "scout", "", "")
			n.SubagentDone("a", "oh")
			n.SubagentDone("a", "twice")
			n.SubagentDone("", "never")
		}, []string{
			`TOOL_CALL_START {"toolCallId":"c.a","toolCallName":"tool"}`, `TOOL_CALL_END {"toolCallId":"c.a"}`,
			`SUBAGENT_STARTED {"subagentRunId":"s.a","name":"scout","parentToolCallId":"c.a"}`,
			`TEXT_MESSAGE_START {"messageId":"m.m","role":"assistant"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m.m","delta":"1"}`,
			`TEXT_MESSAGE_START {"messageId":"m.s.a/m","role":"assistant","subagentRunId":"s.a"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m.s.a/m","delta":"2"}`,
			`TEXT_MESSAGE_END {"messageId":"m.s.a/m"}`, `SUBAGENT_FINISHED {"subagentRunId":"s.a"}`,
			`SUBAGENT_STARTED {"subagentRunId":"s.a.2","name":"scout","parentToolCallId":"c.a"}`, `SUBAGENT_ERROR {"subagentRunId":"s.a.2","message":"oh"}`,
			`TEXT_MESSAGE_END {"messageId":"m.m"}`,
		}},
		{"a sub-agent has its own turns, plan and usage", func(n *Narrator) {
			n.NextTurn("")
			n.Tool(Call{ID: "a"})
			n.Subagent("a", "scout", "", "")
			n.SubagentTask("a", "look")
			n.SubagentTask("", "the log has it")
			n.NextTurn("a")
			n.NextTurn("a")
			n.Tool(Call{ID: "p", Name: "TodoWrite", Lane: "a"})
			n.Args("p", `{"todos":[{"content":"x"}]}`)
			n.Called("p")
			n.Plan(nil)
			n.Usage("a", payload.UsageReported{})
			n.Subagent("p", "reader", "", "")
			n.SubagentDone("a", "")
		}, []string{
			`TOOL_CALL_START {"toolCallId":"c.a","toolCallName":"tool"} 1`, `SUBAGENT_STARTED {"subagentRunId":"s.a","name":"scout","parentToolCallId":"c.a"} 1`,
			`message.added {"message":{"id":"u1","role":"user","content":"look","subagentRunId":"s.a"}}`,
			`TOOL_CALL_START {"toolCallId":"c.p","toolCallName":"TodoWrite","subagentRunId":"s.a"} 2`,
			`TOOL_CALL_ARGS {"toolCallId":"c.p","delta":"{\"todos\":[{\"content\":\"x\"}]}"} 2`, `TOOL_CALL_END {"toolCallId":"c.p"} 2`,
			`plan.updated {"entries":[{"content":"x","status":"pending"}],"subagentRunId":"s.a"} 2`, `plan.updated {"entries":[]} 1`,
			`usage.reported {"subagentRunId":"s.a"} 2`,
			`SUBAGENT_STARTED {"subagentRunId":"s.p","name":"reader","parentSubagentRunId":"s.a","parentToolCallId":"c.p"} 2`,
			`SUBAGENT_FINISHED {"subagentRunId":"s.p"} 2`, `SUBAGENT_FINISHED {"subagentRunId":"s.a"} 1`, `TOOL_CALL_END {"toolCallId":"c.a"} 1`,
		}},
		{"an id that is too long", func(n *Narrator) { n.Say("", long, "1"); n.EndMessage(""); n.Say("", long, "2") }, []string{
			`TEXT_MESSAGE_START {"messageId":"m.59b5a0f0ad1d0dec9ccc1a3af0c5cd1a","role":"assistant"}`,
		}},
		{"the same plan is yielded once", func(n *Narrator) { n.Plan(nil); n.Plan([]payload.PlanEntry{}) }, []string{`plan.updated {"entries":[]}`}},
		{"a line that is not JSON is stored as a string", func(n *Narrator) { n.Raw("x", []byte("a\x01")); n.Raw("x", []byte(`{"a":1}`)) }, []string{
			`RAW {"event":"a\u0001","source":"x"}`, `RAW {"event":{"a":1},"source":"x"}`,
		}},
		{"no event follows an error", func(n *Narrator) { n.Fail(context.Canceled); n.Say("", "", "x"); n.Fail(context.Canceled) }, []string{"error context canceled"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := record(t, tt.tell)
			if strings.HasPrefix(tt.name, "an id that is too long") {
				if len(got) != 6 || len(got[0]) > 200 || got[0] != got[3] {
					t.Errorf("%q", got)
				}
				return
			}
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestNoEventsAfterFalse(t *testing.T) {
	yielded := 0
	n := New("inv", func(tapedeck.Event, error) bool { yielded++; return false })
	n.Say("", "", "x")
	n.Fail(context.Canceled)
	n.Done()
	if yielded != 1 || !n.Over() {
		t.Errorf("%d events", yielded)
	}
}

func TestTodos(t *testing.T) {
	for _, tt := range []struct{ tool, args, want string }{
		{"TodoWrite", `{"todos":[{"content":"a","status":"in_progress","activeForm":"x","priority":"high"}]}`, "a/in_progress/high"},
		{"todo_write", `{"todos":[{"content":"a","status":"completed"},{"content":"b"}]}`, "a/completed/ b/pending/"},
		{"todowrite", `{"todos":[{"content":"a","status":"cancelled","priority":"urgent"}]}`, "a/cancelled/"},
		{"write_todos", `{"todos":[{"description":"a","status":"in-progress"}]}`, "a/in_progress/"},
		{"update_plan", `{"explanation":"e","plan":[{"step":"a","status":"inProgress"}]}`, "a/in_progress/"},
		{"TodoWrite", `{"todos":[]}`, ""},
		{"TodoWrite", `{"todos":"none"}`, "no plan"},
		{"TodoWrite", `{`, "no plan"},
		{"Bash", `{"todos":[]}`, "no plan"},
	} {
		entries, ok := Todos(tt.tool, json.RawMessage(tt.args))
		var got []string
		for _, e := range entries {
			got = append(got, e.Content+"/"+e.Status+"/"+e.Priority)
		}
		if !ok {
			got = []string{"no plan"}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.tool, tt.args, got, tt.want)
		}
	}
}

func TestPointer(t *testing.T) {
	doc := json.RawMessage(`{"a":{"b/c":[1,{"~":"x"}],"n":null},"":2}`)
	for pointer, want := range map[string]string{
		"": string(doc), "/a/b~1c/0": "1", "/a/b~1c/1/~0": `"x"`, "/": "2", "/a/n": "null",
		"/a/x": "", "/a/b~1c/2": "", "/a/b~1c/-1": "", "/a/b~1c/x": "", "a": "", "/a/n/x": "",
	} {
		if got := Pointer(doc, pointer); string(got) != want {
			t.Errorf("%q: %s, want %s", pointer, got, want)
		}
	}
	for v, want := range map[string]string{`"a"`: "a", `null`: "", ``: "", `{"a":1}`: `{"a":1}`, `7`: "7"} {
		if got := String(json.RawMessage(v)); got != want {
			t.Errorf("%s: %q", v, got)
		}
	}
}

func TestBrief(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a": "a", "a\x1b[31m\u009bb\xff": "a[31mb", strings.Repeat("é", 400): strings.Repeat("é", 300) + "…",
	} {
		if got := Brief(in, nil); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := LastLine("a\nb \n\n"); got != "b" {
		t.Errorf("%q", got)
	}
}

func events(list ...payload.Payload) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for _, p := range list {
			if !yield(payload.NewEvent(p), nil) {
				return
			}
		}
	}
}

func TestHistory(t *testing.T) {
	user := func(id, text string) payload.Payload {
		return payload.MessageAdded{Message: payload.NewMessage(id, "user", text)}
	}
	got, err := History(t.Context(), "main", 1<<20, events(
		user("u1", "do it"), user("u1", "do it"),
		payload.TextMessageStart{MessageID: "a"}, payload.TextMessageContent{MessageID: "a", Delta: "I \xed\xa0\xbd"}, payload.TextMessageContent{MessageID: "a", Delta: "\xed\xba\x80 will"},
		payload.ToolCallStart{ToolCallID: "c", ToolCallName: "Bash"}, payload.ToolCallArgs{ToolCallID: "c", Delta: `{"command":"ls"}`},
		payload.ToolCallResult{ToolCallID: "c", MessageID: "t", Content: Text(strings.Repeat("é", 5000))},
		payload.TextMessageStart{MessageID: "empty"},
	))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nUser: do it\n\nAssistant: I 🚀 will\n", "\nTool Bash: {\"command\":\"ls\"}\n→ éé", "é …\n[END OF CONVERSATION SO FAR]"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "do it") + strings.Count(got, "Assistant"); n != 2 {
		t.Errorf("a passage is there twice, or is empty:\n%s", got)
	}
	if got, err := History(t.Context(), "other", 1<<20, events(user("u1", "x"))); got != "" || err != nil {
		t.Errorf("another thread: %q, %v", got, err)
	}
	if got, err := History(t.Context(), "main", 1<<20, nil); got != "" || err != nil {
		t.Errorf("none: %q, %v", got, err)
	}
}

// A whole message replaces the one of its run that has its id, and the run can continue it.
func TestHistoryOfAReplacedMessage(t *testing.T) {
	said := func(text string) payload.Payload {
		return payload.TextMessageContent{MessageID: "m", Delta: payload.Piece(text)}
	}
	got, err := History(t.Context(), "main", 1<<20, events(
		payload.TextMessageStart{MessageID: "m"}, said("Three of five"), payload.TextMessageEnd{MessageID: "m"},
		payload.MessageAdded{Message: payload.NewMessage("m", payload.RoleAssistant, "Four")},
		payload.TextMessageStart{MessageID: "m"}, said(" of five"),
		payload.MessageAdded{Message: payload.NewMessage("u", payload.RoleUser, "draft")},
		payload.MessageAdded{Message: payload.NewMessage("u", payload.RoleUser, "fine")},
	))
	if want := "\nAssistant: Four of five\n\nUser: fine\n"; err != nil || !strings.Contains(got, want) || strings.Contains(got, "Three") {
		t.Errorf("%v: there is not only %q in\n%s", err, want, got)
	}
}

// TestHistoryOfCallsWithoutArguments has calls of agents that report no arguments.
func TestHistoryOfCallsWithoutArguments(t *testing.T) {
	titled := payload.ToolCallStart{ToolCallID: "c", ToolCallName: "execute"}
	titled.Metadata = tapedeck.Members{"acp": json.RawMessage(`{"title":"List the files"}`)}
	asked := func(action *tapedeck.PermissionAction) payload.Payload {
		return payload.PermissionRequested{Question: tapedeck.Question{ID: "p", ToolCallID: "c", Action: action}}
	}
	command := &tapedeck.PermissionAction{Tool: "execute", Command: "ls > a && date"}
	args := payload.ToolCallArgs{ToolCallID: "c", Delta: `{"command":"ls"}`}
	empty := payload.ToolCallArgs{ToolCallID: "c", Delta: `{}`}
	result := payload.ToolCallResult{ToolCallID: "c", MessageID: "t", Content: Text("a.txt")}
	for name, tt := range map[string]struct {
		events []payload.Payload
		want   string
	}{
		"a question":         {[]payload.Payload{titled, asked(command), result}, `{"command":"ls > a && date"}` + "\n→ a.txt\n"},
		"empty arguments":    {[]payload.Payload{titled, empty, asked(command), result}, `{"command":"ls > a && date"}` + "\n→ a.txt\n"},
		"without a result":   {[]payload.Payload{titled, asked(command)}, `{"command":"ls > a && date"}` + "\n→ [no result"},
		"a title":            {[]payload.Payload{titled, asked(nil), result}, "List the files\n→ a.txt\n"},
		"arguments":          {[]payload.Payload{titled, args, asked(command), result}, `{"command":"ls"}` + "\n→ a.txt\n"},
		"only a tool's name": {[]payload.Payload{titled, asked(&tapedeck.PermissionAction{Tool: "execute"})}, "List the files\n→ [no result"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := History(t.Context(), "main", 1<<20, events(tt.events...))
			if err != nil || !strings.Contains(got, "\nTool execute: "+tt.want) {
				t.Errorf("%v: there is no %q in\n%s", err, tt.want, got)
			}
		})
	}
}

// An agent uses its ids again in the next run, and that of the user's message.
func TestHistoryOfOneID(t *testing.T) {
	list := func(yield func(tapedeck.Event, error) bool) {
		for _, run := range []string{"one", "two"} {
			for _, p := range []payload.Payload{
				payload.MessageAdded{Message: payload.NewMessage("u"+run, payload.RoleUser, "ask "+run)},
				payload.TextMessageStart{MessageID: "m"}, payload.TextMessageContent{MessageID: "m", Delta: payload.Piece("say " + run)},
				payload.TextMessageStart{MessageID: "u" + run}, payload.TextMessageContent{MessageID: "u" + run, Delta: payload.Piece("more " + run)},
			} {
				e := payload.NewEvent(p)
				if e.Invocation = run; !yield(e, nil) {
					return
				}
			}
		}
	}
	got, err := History(t.Context(), "main", 1<<20, list)
	want := "User: ask one\n\nAssistant: say one\n\nAssistant: more one\n\nUser: ask two\n\nAssistant: say two\n\nAssistant: more two\n"
	if err != nil || !strings.Contains(got, want) {
		t.Errorf("%v: there is no %q in\n%s", err, want, got)
	}
}

// TestHistoryOfWholeMessages has tool calls that are members of a complete message.
func TestHistoryOfWholeMessages(t *testing.T) {
	call := payload.ToolCall{ID: "c", Type: "function", Function: payload.FunctionCall{Name: "Bash", Arguments: `{"command":"ls"}`}}
	answer := payload.NewMessage("t", payload.RoleTool, "a.txt")
	answer.ToolCallID = "c"
	got, err := History(t.Context(), "main", 1<<20, events(
		payload.MessageAdded{Message: payload.Message{ID: "a", Role: payload.RoleAssistant, ToolCalls: []payload.ToolCall{call}}},
		payload.MessageAdded{Message: answer},
	))
	if want := "\nTool Bash: {\"command\":\"ls\"}\n→ a.txt\n"; err != nil || !strings.Contains(got, want) {
		t.Errorf("%v: there is no %q in\n%s", err, want, got)
	}
}

// TestHistoryIsBounded checks that the text of a long history is bounded and has the
// newest messages.
func TestHistoryIsBounded(t *testing.T) {
	var list []payload.Payload
	for i := range 3 * maxParts {
		list = append(list, payload.MessageAdded{Message: payload.NewMessage(fmt.Sprint(i), "user", fmt.Sprintf("message %d, %s", i, strings.Repeat("x", 100)))})
	}
	got, err := History(t.Context(), "main", 10_000, events(list...))
	if err != nil || len(got) > 11_000 || !strings.Contains(got, fmt.Sprintf("message %d,", len(list)-1)) || !strings.Contains(got, "earlier parts are left out") {
		t.Errorf("%d bytes, %v: %.200s", len(got), err, got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := History(ctx, "main", 10, events(list...)); err == nil {
		t.Error("History continued after the cancel")
	}
}
