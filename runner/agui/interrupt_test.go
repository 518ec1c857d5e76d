package agui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// asking returns an agent that asks with these interrupts, and what it got as answers.
func asking(interrupts string) (http.Handler, func() string) {
	var mu sync.Mutex
	var got string
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var in struct {
				ThreadID, RunID string
				Resume          json.RawMessage
			}
			_ = json.NewDecoder(r.Body).Decode(&in)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "data: {\"type\":\"RUN_STARTED\",\"threadId\":%q,\"runId\":%q}\n\n", in.ThreadID, in.RunID)
			if in.Resume == nil {
				_, _ = fmt.Fprintf(w, "data: {\"type\":\"RUN_FINISHED\",\"threadId\":%q,\"runId\":%q,\"outcome\":{\"type\":\"interrupt\",\"interrupts\":%s}}\n\n", in.ThreadID, in.RunID, interrupts)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			got = string(in.Resume)
			_, _ = fmt.Fprintf(w, "data: {\"type\":\"RUN_FINISHED\",\"threadId\":%q,\"runId\":%q}\n\n", in.ThreadID, in.RunID)
		}), func() string {
			mu.Lock()
			defer mu.Unlock()
			return got
		}
}

// An interrupt becomes a question whose options fit what the agent wants as an answer.
func TestQuestions(t *testing.T) {
	for name, tt := range map[string]struct{ interrupt, options, choose, answer string }{
		"a tool": {`{"id":"i","reason":"tool_call"}`, "approve=Approve/allow_once reject=Reject/reject_once", "approve", `{"interruptId":"i","status":"resolved","payload":{"approved":true}}`},
		"a no": {`{"id":"i","reason":"tool_call","responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"},"editedArgs":{"type":"object"}},"required":["approved"]}}`,
			"approve=Approve/allow_once reject=Reject/reject_once", "reject", `{"interruptId":"i","status":"resolved","payload":{"approved":false}}`},
		"yes or no": {`{"id":"i","reason":"confirmation"}`, "approve=Approve/allow_once reject=Reject/reject_once", "reject", `{"interruptId":"i","status":"resolved","payload":false}`},
		"a choice":  {`{"id":"i","reason":"x:y","responseSchema":{"type":"string","enum":["red","blue"]}}`, "option-a=red/ option-b=blue/", "option-b", `{"interruptId":"i","status":"resolved","payload":"blue"}`},
		"a member":  {`{"id":"i","reason":"x","responseSchema":{"properties":{"size":{"enum":[1,2]}}}}`, "option-a=1/ option-b=2/", "option-a", `{"interruptId":"i","status":"resolved","payload":{"size":1}}`},
		"nobody":    {`{"id":"i","reason":"confirmation"}`, "approve=Approve/allow_once reject=Reject/reject_once", "", `{"interruptId":"i","status":"cancelled"}`},
		"a Tapedeck": {`{"id":"i","reason":"tool_call","metadata":{"tapedeck":{"options":[{"id":"ok","name":"Go","kind":"allow_always","covers":"all"}],"action":{"command":"rm x"}}}}`,
			"ok=Go/allow_always", "ok", `{"interruptId":"i","status":"resolved","payload":{"option":"ok"}}`},
		"no Tapedeck": {`{"id":"i","reason":"confirmation","metadata":{"tapedeck":{"options":[{"id":"a b"}]}}}`, "approve=Approve/allow_once reject=Reject/reject_once", "approve", `{"interruptId":"i","status":"resolved","payload":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			agent, got := asking("[" + tt.interrupt + "]")
			asked := 0
			in := tapedeck.Invocation{Task: "hi", Ask: func(_ context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
				asked++
				var options []string
				for _, o := range q.Options {
					options = append(options, o.ID+"="+o.Name+"/"+o.Kind)
				}
				if s := strings.Join(options, " "); s != tt.options {
					t.Errorf("the options are %s", s)
				}
				if name == "a Tapedeck" && (q.Action == nil || q.Action.Command != "rm x") {
					t.Errorf("the action is %+v", q.Action)
				}
				return tapedeck.Choice{ID: q.ID, Option: tt.choose}, nil
			}}
			if _, _, err := run(t, runnerOf(agent), in); err != nil || got() != "["+tt.answer+"]" || asked != 1 {
				t.Errorf("%d questions were asked, the agent got %s, %v", asked, got(), err)
			}
		})
	}
}

// An agent that answers under the id of the user's message, and then asks, gets both messages
// again: the user's with the context of the run before, and its own as it was.
func TestAnswerUnderTheIDOfTheTask(t *testing.T) {
	var second string
	round := 0
	agent := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in inputs
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
			return
		}
		s := &sender{w: w, in: &in}
		w.Header().Set("Content-Type", "text/event-stream")
		s.send(`{"type":"RUN_STARTED","threadId":%q,"runId":%q}`, in.ThreadID, in.RunID)
		if round++; round == 1 {
			id := in.Messages[len(in.Messages)-1].ID
			s.send(`{"type":"TEXT_MESSAGE_START","messageId":%q,"role":"assistant"}`, id)
			s.send(`{"type":"TEXT_MESSAGE_CONTENT","messageId":%q,"delta":"Well."}`, id)
			s.send(`{"type":"TEXT_MESSAGE_END","messageId":%q}`, id)
			s.send(`{"type":"RUN_FINISHED","threadId":%q,"runId":%q,"outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"confirmation"}]}}`, in.ThreadID, in.RunID)
			return
		}
		second = outlineOf(in)
		s.send(`{"type":"RUN_FINISHED","threadId":%q,"runId":%q}`, in.ThreadID, in.RunID)
	})
	in := tapedeck.Invocation{Task: "CONTEXT\n\nhi", Context: "CONTEXT", Ask: func(_ context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
		return tapedeck.Choice{ID: q.ID, Option: "approve"}, nil
	}}
	if _, _, err := run(t, runnerOf(agent), in); err != nil || second != "user=CONTEXT\n\nhi | assistant=Well." {
		t.Errorf("the agent gets %q, %v", second, err)
	}
}

// Several questions are pending at once, and the agent gets all answers together.
func TestSeveralQuestions(t *testing.T) {
	agent, got := asking(`[{"id":"a","reason":"confirmation"},{"id":"b","reason":"confirmation"}]`)
	var both sync.WaitGroup
	both.Add(2)
	in := tapedeck.Invocation{Task: "hi", Ask: func(_ context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
		both.Done()
		both.Wait()
		return tapedeck.Choice{ID: q.ID, Option: "approve"}, nil
	}}
	if _, _, err := run(t, runnerOf(agent), in); err != nil || got() != `[{"interruptId":"a","status":"resolved","payload":true},{"interruptId":"b","status":"resolved","payload":true}]` {
		t.Errorf("the agent got %s, %v", got(), err)
	}
}

// The question shows the call that it is about.
func TestQuestionOfACall(t *testing.T) {
	u := newUpstream()
	in := tapedeck.Invocation{Task: "ask", Ask: func(_ context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
		if q.Message != "May I?" || !strings.HasSuffix(q.ToolCallID, "-1") || q.Action == nil || q.Action.Tool != "Read" || q.Action.Command != "rm -r /tmp/x" {
			t.Errorf("the question is %+v %+v", q, q.Action)
		}
		return tapedeck.Choice{ID: q.ID, Option: "approve"}, nil
	}}
	if text, _, err := run(t, u, in); text != "answered" || err != nil || !u.hasDone() {
		t.Errorf("got %q %v", text, err)
	}
	second := u.input(1)
	if got := outlineOf(second); second.ThreadID != u.input(0).ThreadID || second.RunID == u.input(0).RunID || got != `user=ask | assistant= calls Read{"command":"rm -r /tmp/x"}` {
		t.Errorf("with the answer the agent got %s in run %s", got, second.RunID)
	}
}

// An interrupt that needs words ends the run. The next task is the answer, and the
// answers to other interrupts of the same run go with it.
func TestWords(t *testing.T) {
	agent, got := asking(`[{"id":"a","reason":"confirmation"},{"id":"b","reason":"input_required","message":"What is your name?","responseSchema":{"type":"object","properties":{"name":{"type":"string"}}}}]`)
	r, l := runnerOf(agent), &tape{}
	in := tapedeck.Invocation{Task: "hi", Ask: func(_ context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
		return tapedeck.Choice{ID: q.ID, Option: "reject"}, nil
	}}
	if text, _ := l.next(t, r, in, nil); text != "What is your name?" || got() != "" {
		t.Fatalf("got %q; the agent got %s", text, got())
	}
	l.next(t, r, tapedeck.Invocation{Task: "Ada"}, nil)
	if want := `[{"interruptId":"a","status":"resolved","payload":false},{"interruptId":"b","status":"resolved","payload":{"name":"Ada"}}]`; got() != want {
		t.Errorf("the agent got %s", got())
	}
}

// A sub-agent that waits for an answer has not ended in the log.
func TestSuspendedSubagent(t *testing.T) {
	n := 0
	agent := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		n++
		end, outcome := `,"outcome":{"type":"suspended","interruptIds":["i"]}`, `,"outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"confirmation"}]}`
		if n > 1 {
			end, outcome = "", ""
		}
		for _, e := range []string{`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, `{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"scout"}`,
			`{"type":"SUBAGENT_FINISHED","subagentRunId":"s"` + end + `}`, `{"type":"RUN_FINISHED","threadId":"t","runId":"r"` + outcome + `}`} {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
		}
	})
	_, events, err := run(t, runnerOf(agent), tapedeck.Invocation{Task: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, e := range events {
		types = append(types, e.Type)
	}
	if want := []string{tapedeck.AgentLinked, tapedeck.SubagentStarted, tapedeck.SubagentFinished}; !slices.Equal(types, want) {
		t.Errorf("the events are %v", types)
	}
}

// What an agent restates is stored only if it differs from the log. It cannot change
// what the user said to a context, nor remove an answer that it got in another way.
func TestRestated(t *testing.T) {
	var restated string
	agent := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in payload.RunInput
		_ = json.NewDecoder(r.Body).Decode(&in)
		w.Header().Set("Content-Type", "text/event-stream")
		list := in.Messages
		if restated != "" {
			list = append(list, payload.NewMessage("new", payload.RoleAssistant, restated))
		}
		raw, _ := json.Marshal(list)
		_, _ = fmt.Fprintf(w, "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\ndata: {\"type\":\"MESSAGES_SNAPSHOT\",\"messages\":%s}\n\ndata: {\"type\":\"RUN_FINISHED\"}\n\n", raw)
	})
	in := tapedeck.Invocation{Task: "C\n\nhi", Context: "C", Message: json.RawMessage(`{"id":"u","role":"user","content":"hi","metadata":{"x":{}}}`)}
	if _, events, err := run(t, runnerOf(agent), in); err != nil || len(events) != 1 {
		t.Errorf("got %v %v", events, err)
	}
	restated = "hello"
	_, events, err := run(t, runnerOf(agent), in)
	if err != nil || len(events) != 2 {
		t.Fatalf("got %v %v", events, err)
	}
	if d := decode[payload.MessagesSnapshot](t, events[1]); len(d.Messages) != 2 || d.Messages[0].Text() != "hi" || d.Messages[1].Text() != "hello" {
		t.Errorf("got %s", events[1].Data)
	}
}

// What an agent asked for in words, and the answer, stay in the conversation although
// the agent does not have them among its messages.
func TestRestatedAfterWords(t *testing.T) {
	n := 0
	agent := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		more := `data: {"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"input_required","message":"Who?"}]}}`
		if n++; n > 1 {
			more = `data: {"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u1","role":"user","content":"hi"},{"id":"new","role":"assistant","content":"Hello Ada"}]}` + "\n\n" + ended
		}
		_, _ = fmt.Fprint(w, begun+more+"\n\n")
	})
	r, l := runnerOf(agent), &tape{}
	l.next(t, r, tapedeck.Invocation{Task: "hi"}, nil)
	_, events := l.next(t, r, tapedeck.Invocation{Task: "Ada"}, nil)
	var ids []string
	for _, m := range decode[payload.MessagesSnapshot](t, events[0]).Messages {
		ids = append(ids, m.ID)
	}
	if want := []string{"u1", "agui.ask.inv_1", "u2", "new"}; !slices.Equal(ids, want) {
		t.Errorf("the messages are %v", ids)
	}
}
