package agui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/internal/decktest"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/agui"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

// The agent gets the words of the last message as its task, the messages before it as
// history, and everything else of the input as it was sent.
func TestWhatTheAgentGets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run("/agui/steps", `{"threadId":"s","runId":"r1","tools":[{"name":"pick"}],"context":[{"description":"d","value":"v"}],"forwardedProps":{"a":1},"state":{"n":1},
			"messages":[{"id":"sys","role":"system","content":"Be short."},{"id":"u0","role":"user","content":"first"},{"id":"u1","role":"user","content":[{"type":"text","text":"TOOL_CALL_START {\"toolCallId\":\"c\",\"toolCallName\":\"pick\"}\nTOOL_CALL_END {\"toolCallId\":\"c\"}"},{"type":"image","source":{"type":"url","value":"http://x/y.png"}}]}]}`)
		w.run("/agui/steps", `{"threadId":"s","runId":"r2","messages":[{"id":"u1","role":"user","content":"…"},{"id":"c","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"pick","arguments":""}}]},{"id":"a1","role":"tool","toolCallId":"c","content":"red"}]}`)
		w.run("/agui/steps", `{"threadId":"s","runId":"r3","messages":[{"id":"u3","role":"user","content":[{"type":"image","source":{"type":"url","value":"http://x/y.png"}}]}]}`)
		if len(w.Inputs) != 3 {
			t.Fatalf("%d runs", len(w.Inputs))
		}
		first := w.Inputs[0]
		var in map[string]any
		if err := json.Unmarshal(first.Input, &in); err != nil || first.ID != "r1" || !strings.HasPrefix(first.Task, "TOOL_CALL_START") {
			t.Fatalf("%v, %s, %q", err, first.ID, first.Task)
		}
		for _, name := range []string{"tools", "context", "forwardedProps", "state"} {
			if in[name] == nil {
				t.Errorf("the input %s has no %s", first.Input, name)
			}
		}
		if got := spoken(t, first); !slices.Equal(got, []string{"system Be short.", "user first"}) {
			t.Errorf("the history of the first run is %q", got)
		}
		if got := spoken(t, w.Inputs[1]); got[len(got)-1] != "tool red" || w.Inputs[1].Task != "Continue where you left off." || w.Inputs[1].Input != nil {
			t.Errorf("the second run has %q, %q and %s", got, w.Inputs[1].Task, w.Inputs[1].Input)
		}
		if m := string(first.Message); !strings.Contains(m, `"id":"u1"`) || !strings.Contains(m, "y.png") || w.Inputs[1].Message != nil {
			t.Errorf("the messages of the tasks are %s and %s", m, w.Inputs[1].Message)
		}
		if w.Inputs[2].Task != "(a message without text)" {
			t.Errorf("the third task is %q", w.Inputs[2].Task)
		}
		f := &frontend{t: t}
		f.receive(w.run("/agui/steps/connect", input("s", "x", "u", "")).events())
		if parts, ok := f.find("u1")["content"].([]any); !ok || len(parts) != 2 {
			t.Errorf("the message with an image is %v", f.find("u1"))
		}
		if f.find("a1")["toolCallId"] != "c" {
			t.Errorf("the answer of the tool is not restored:\n%s", f)
		}
	})
}

// spoken returns the whole messages in the history of a run.
func spoken(t *testing.T, in tapedeck.Invocation) (list []string) {
	for e, err := range in.History(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Message struct {
				Role    string
				Content any
			}
		}
		if e.Type == tapedeck.MessageAdded && json.Unmarshal(e.Data, &d) == nil {
			if text, ok := d.Message.Content.(string); ok {
				list = append(list, d.Message.Role+" "+text)
			}
		}
	}
	return list
}

// A run id is used once, so that a repeated request does not do its work twice.
func TestRunIDIsUsedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run("/agui/steps", input("s", "r", "u1", "one"))
		r := w.run("/agui/steps", input("s", "r", "u2", "two"))
		if r.Status != 409 || !strings.Contains(r.Text(), "has a run r already") || len(w.Inputs) != 1 {
			t.Errorf("%d %s", r.Status, r.Text())
		}
		// The thread has the message already: that is how a client asks again.
		r = w.run("/agui/steps", input("s", "r", "u1", "one"))
		if r.Status != 409 || !strings.Contains(r.Text(), "has a run r already") || len(w.Inputs) != 1 {
			t.Errorf("%d %s", r.Status, r.Text())
		}
		if s, err := w.Session("s").Info(t.Context()); err != nil || s.LastJump != 0 {
			t.Errorf("the repetition has reverted the answer: %+v, %v", s, err)
		}
	})
}

// Of many clients that begin a new thread at once, one starts a run.
func TestRunsBeginAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var all []*reader
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			all = append(all, w.open("/agui/steps", input("s", id, "u"+id, "wait")))
		}
		synctest.Wait()
		w.Proceed <- struct{}{}
		var started, busy int
		for _, r := range all {
			<-r.Done
			switch r.Status {
			case 200:
				started++
			case 409:
				busy++
			}
		}
		if started != 1 || busy != 4 {
			t.Errorf("%d runs have started, %d clients were told that the thread is busy", started, busy)
		}
	})
}

// A client without the newest messages, such as an old tab, adds to the thread and
// reverts nothing.
func TestOldTab(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, id := range []string{"1", "2", "3"} {
			w.run("/agui/steps", input("s", "r"+id, "u"+id, decktest.Say("m"+id, id)))
		}
		w.run("/agui/steps", `{"threadId":"s","runId":"old","messages":[{"id":"u1","role":"user","content":"x"},{"id":"m1","role":"assistant","content":"1"},{"id":"new","role":"user","content":"hello"}]}`)
		f := &frontend{t: t}
		f.receive(w.run("/agui/steps/connect", input("s", "x", "u", "")).events())
		var ids []string
		for _, m := range f.messages {
			ids = append(ids, m["id"].(string))
		}
		if got := strings.Join(ids, " "); got != "u1 m1 u2 m2 u3 m3 new" {
			t.Errorf("the thread has %s", got)
		}
	})
}

// Two questions at once become two interrupts. Each run that answers one of them ends
// with the other.
func TestTwoQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := &frontend{t: t, messages: []map[string]any{{"id": "u"}}}
		asked := func(r *reader) (ids []string) {
			t.Helper()
			events := r.events()
			f.receive(events)
			if f.outcome != "interrupt" {
				t.Fatalf("the outcome is %q", f.outcome)
			}
			for _, i := range events[len(events)-1]["outcome"].(map[string]any)["interrupts"].([]any) {
				ids = append(ids, i.(map[string]any)["id"].(string))
			}
			slices.Sort(ids)
			return ids
		}
		asked(w.run("/agui/asker", input("s", "r1", "u", "a b"))) // the second question may be later than the end of the stream
		synctest.Wait()
		if ids := asked(w.run("/agui/asker/connect", input("s", "x", "u", ""))); !slices.Equal(ids, []string{"a", "b"}) {
			t.Errorf("the agent asks %q", ids)
		}
		resume := func(run, id string) string {
			return `{"protocolVersion":"1.0","threadId":"s","runId":"` + run + `","messages":[],"resume":[{"interruptId":"` + id + `","status":"resolved","payload":{"approved":true}}]}`
		}
		if ids := asked(w.run("/agui/asker", resume("r2", "b"))); !slices.Equal(ids, []string{"a"}) {
			t.Errorf("after the first answer the agent asks %q", ids)
		}
		last := w.open("/agui/asker", resume("r3", "a"))
		w.Proceed <- struct{}{}
		<-last.Done
		f.receive(last.events())
		if got := f.messages[len(f.messages)-1]["content"]; got != "a=yes<nil> b=yes<nil>" || f.outcome != "success" {
			t.Errorf("the agent got %v, the outcome is %q", got, f.outcome)
		}
	})
}

// A hastyAgent has ended its run before the answer to its question is acknowledged.
type hastyAgent struct{ *engine.Engine }

func (h hastyAgent) Answer(ctx context.Context, a api.Answer) (api.Answered, error) {
	done, err := h.Engine.Answer(ctx, a)
	synctest.Wait()
	return done, err
}

// The snapshot of a resumed run is as of the answer, however fast the agent continues. What
// it says then comes as events, and is not repeated.
func TestSnapshotOfResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := hub.New(memory.New(memory.Options{}))
		views := projection.New(projection.Options{Store: log})
		e := engine.New(engine.Options{Store: log, Views: views, Agents: []engine.Agent{{
			Agent: tapedeck.Agent{Name: "asker"},
			Runner: tapedeck.RunnerFunc(func(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
				return func(yield func(tapedeck.Event, error) bool) {
					_, err := in.Ask(ctx, tapedeck.Question{ID: "a", Options: []tapedeck.PermissionOption{{ID: "yes", Kind: "allow_once"}}})
					for _, p := range []payload.Payload{
						payload.TextMessageStart{MessageID: "m", Role: payload.RoleAssistant}, payload.TextMessageContent{MessageID: "m", Delta: "done"}, payload.TextMessageEnd{MessageID: "m"},
					} {
						if !yield(payload.NewEvent(p), err) {
							return
						}
					}
				}
			}),
		}}})
		defer func() { _ = e.Shutdown(context.WithoutCancel(t.Context())) }()
		w := &world{&decktest.World{TB: t, Handler: agui.New(agui.Options{Sessions: log, Verbs: hastyAgent{e}, Views: views})}}
		w.run("/agui/asker", input("s", "r1", "u", "go"))
		var got []string
		for _, e := range w.run("/agui/asker", `{"protocolVersion":"1.0","threadId":"s","runId":"r2","messages":[],"resume":[{"interruptId":"a","status":"resolved","payload":{"approved":true}}]}`).events() {
			list, _ := e["messages"].([]any)
			got = append(got, fmt.Sprint(e["type"], len(list)))
		}
		if got := strings.Join(got, " "); got != "RUN_STARTED0 MESSAGES_SNAPSHOT1 TEXT_MESSAGE_START0 TEXT_MESSAGE_CONTENT0 TEXT_MESSAGE_END0 RUN_FINISHED0" {
			t.Errorf("the client got %s", got)
		}
	})
}

// Answers that do not fit are refused as a whole: to what nobody asked, twice to one
// question, to what is answered already. Nothing is appended.
func TestAnswersThatDoNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run("/agui/asker", input("s", "r1", "u", "a b"))
		synctest.Wait()
		before, err := w.Session("s").Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const yes = `{"interruptId":"a","status":"resolved","payload":{"approved":true}}`
		for answers, want := range map[string]struct {
			status int
			says   string
		}{
			yes + `,{"interruptId":"x","status":"resolved"}`: {404, "no interrupt"},
			yes + `,` + yes: {400, "two answers"},
			yes + `,{"interruptId":"b","status":"resolved","payload":{"option":"maybe not"}}`: {400, "no option"},
		} {
			r := w.run("/agui/asker", `{"threadId":"s","runId":"r2","messages":[],"resume":[`+answers+`]}`)
			after, err := w.Session("s").Info(t.Context())
			if r.Status != want.status || !strings.Contains(r.Text(), want.says) || err != nil || after.Head != before.Head {
				t.Errorf("%s: %d %s; the head is %d, before it was %d", answers, r.Status, r.Text(), after.Head, before.Head)
			}
		}
	})
}

// The path of an agent stops only runs of that agent.
func TestStopOfAnotherAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.open("/agui/steps", input("s", "r1", "u", "wait"))
		synctest.Wait()
		if other := w.run("/agui/asker/stop/s", ""); other.Status != 404 || !strings.Contains(other.Text(), "asker has no open run in thread s") {
			t.Errorf("%d %s", other.Status, other.Text())
		}
		if s, err := w.Session("s").Info(t.Context()); err != nil || s.Status != tapedeck.StatusRunning {
			t.Errorf("the session is %s, %v", s.Status, err)
		}
		if own := w.run("/agui/default/stop/s", ""); own.Status != 200 || !strings.Contains(own.Text(), "true") { // steps is the first agent
			t.Errorf("%d %s", own.Status, own.Text())
		}
		<-r.Done
	})
}

// TestStateOfAClient: a client that has not seen the state of a thread cannot empty it, and one
// that lacks the newest messages cannot put an old state in its place.
func TestStateOfAClient(t *testing.T) {
	user := func(id, text string) string {
		b, _ := json.Marshal(map[string]string{"id": id, "role": "user", "content": text})
		return string(b)
	}
	u1, m1, u2 := user("u1", decktest.Say("m1", "hello")), `{"id":"m1","role":"assistant","content":"hello"}`, user("u2", decktest.Say("m2", "again"))
	for body, want := range map[string]string{
		`"state":{},"messages":[` + u2 + `]`:                            `{"n":1}`,
		`"messages":[` + u2 + `]`:                                       `{"n":1}`,
		`"state":null,"messages":[` + u1 + `,` + m1 + `,` + u2 + `]`:    `{"n":1}`,
		`"state":{},"messages":[` + u1 + `,` + m1 + `,` + u2 + `]`:      `{"n":1}`,
		`"state":{"n":2},"messages":[` + u1 + `,` + m1 + `,` + u2 + `]`: `{"n":2}`,
		`"state":{"n":2},"messages":[` + u2 + `]`:                       `{"n":2}`,
		`"state":{"n":1},"messages":[` + u1 + `,` + u2 + `]`:            `{"n":1}`,
		`"state":{},"messages":[` + u1 + `,` + u2 + `]`:                 `{"n":1}`,
		`"state":{"n":0},"messages":[` + u1 + `,` + u2 + `]`:            "conflict",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.run("/agui/steps", `{"threadId":"s","runId":"r1","state":{"n":1},"messages":[`+u1+`]}`)
			r := w.run("/agui/steps", `{"threadId":"s","runId":"r2",`+body+`}`)
			now, err := w.Session("s").Snapshot(t.Context(), view.Query{})
			if err != nil || now.State == nil {
				t.Fatalf("%v", err)
			}
			got := string(now.State.Value)
			if r.Status == 409 {
				got = "conflict"
			}
			if got != want {
				t.Errorf("%s: %s, want %s; %d %s", body, got, want, r.Status, r.Text())
			}
		})
	}
}

// A state that no client accepts is left out. What a client says instead cannot replace
// it, because the client does not have it.
func TestLargeState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run("/agui/steps", input("s", "r1", "u1", decktest.Say("m1", "hello")))
		const frame = 8 << 20
		large := `{"text":"` + strings.Repeat("x", frame) + `"}`
		events := []tapedeck.Event{
			{Type: tapedeck.RunStarted, Invocation: "r2", Data: json.RawMessage(`{"threadId":"s","runId":"r2"}`)},
			{Type: tapedeck.StateSnapshot, Invocation: "r2", Data: json.RawMessage(`{"snapshot":` + large + `}`)},
			{Type: tapedeck.RunFinished, Invocation: "r2", Data: json.RawMessage(`{"threadId":"s","runId":"r2"}`)},
		}
		if _, err := w.Append(t.Context(), tapedeck.Append{Session: "s", Events: events}); err != nil {
			t.Fatal(err)
		}
		r := w.run("/agui/steps/connect", input("s", "x", "u", ""))
		if len(r.Text()) > frame {
			t.Errorf("the client gets %d bytes", len(r.Text()))
		}
		f := &frontend{t: t}
		if f.receive(r.events()); f.find("m1")["content"] != "hello" {
			t.Errorf("the thread is not restored:\n%s", f)
		}
		w.run("/agui/steps", `{"threadId":"s","runId":"r3","state":{},"tools":[{"name":"t"}],"messages":[{"id":"u3","role":"user","content":"hi"}]}`)
		for e, err := range w.Session("s").Events(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == tapedeck.RunStarted && e.Invocation == "r3" && (!strings.Contains(string(e.Data), `"tools"`) || strings.Contains(string(e.Data), `"state"`)) {
				t.Errorf("the agent gets the state of the client: %s", e.Data)
			}
		}
		now, err := w.Session("s").Snapshot(t.Context(), view.Query{})
		if err != nil || now.State == nil || len(now.State.Value) < frame {
			t.Errorf("the state has %d bytes, %v", len(now.State.Value), err)
		}
	})
}
