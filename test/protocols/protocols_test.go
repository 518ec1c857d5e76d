package protocols

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/payload"
)

// words returns text that takes a while: the words "name1 name2 …".
func words(name string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d ", name, i+1)
	}
	return b.String()
}

// task gives the agent a task in the thread.
func (w *world) task(text, script string) api.Started {
	w.t.Helper()
	in := api.Task{Session: session, Thread: thread, Agent: w.agent, Text: text}
	if script != "" {
		in.Config = json.RawMessage(script)
	}
	started, err := w.api().Run(w.ctx, in)
	if err != nil {
		w.t.Fatal(err)
	}
	return started
}

// awaitEnd waits until a run has ended.
func (w *world) awaitEnd(run api.Started) {
	w.t.Helper()
	o := client.FollowOptions{Until: true}
	o.From, o.Invocation = run.Offset, run.Invocation
	for _, err := range w.api().Follow(w.ctx, session, o) {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// texts returns the texts of the messages with a role.
func texts(items []item, role string) (out []string) {
	for _, it := range items {
		if it.Kind == role {
			out = append(out, strings.TrimSpace(it.Text))
		}
	}
	return out
}

// unaware are the readers that do not learn of a rewind before the next run.
func unaware(r *reader) bool { return r.late }

// incomplete are the readers that do not get what is not complete.
func incomplete(r *reader) bool { return r.whole }

// The server is killed in the middle of a run, and the run is interrupted. It is resumed,
// connections break in the middle of a text, a tool call and a thought, the session goes back, and
// another run begins. All protocols show the same conversation.
func TestInterruptedRun(t *testing.T) {
	w := newWorld(t, "hello")
	defer w.stop()
	if _, err := w.api().Create(w.ctx, api.NewSession{ID: session}); err != nil {
		t.Fatal(err)
	}
	w.task("Plan a trip", `{"steps":[{"turn":true},{"think":"Which way?","rate":200},{"say":"I look.","rate":200},
		{"tool":"Read","args":{"path":"map.txt"},"ms":10,"result":"{\"km\": 120}"},{"say":"`+words("slow", 200)+`","rate":25}]}`)
	w.followAll()
	w.awaitText("slow12 ")
	w.kill()
	w.start()
	first := w.awaitSame(nil)
	if said := texts(first, payload.RoleAssistant); len(first) != 5 || !strings.HasPrefix(said[1]+" ", words("slow", 12)) || strings.Contains(said[1], "slow200") {
		t.Errorf("after the kill the conversation is %q", first)
	}

	resumed, err := w.api().Resume(w.ctx, api.Resume{Session: session, Thread: thread, Config: json.RawMessage(
		`{"steps":[{"turn":true},{"say":"` + words("again", 40) + `","rate":40},{"tool":"Bash","args":{"command":"ls -l"},"ms":3000,"result":"done"},{"think":"` + words("hm", 40) + `","rate":40},{"say":"The end."}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	w.again()
	w.awaitText("again10 ")
	w.cut()
	w.awaitCall("Bash")
	w.awaitSame(incomplete) // the log does not grow while the tool works
	w.cut()
	w.awaitSame(incomplete)
	w.awaitThought("hm10 ")
	w.cut()
	w.awaitEnd(resumed)
	second := w.awaitSame(nil)
	if said := texts(second, payload.RoleAssistant); len(second) != 10 || said[2] != strings.TrimSpace(words("again", 40)) || second[7].Result != "done" {
		t.Errorf("at the end of the second run the conversation is %q", second)
	}

	if _, err := w.api().Rewind(w.ctx, api.Rewind{Session: session, BeforeInvocation: resumed.Invocation}); err != nil {
		t.Fatal(err)
	}
	w.reloadPages()
	if back := w.awaitSame(unaware); !slices.Equal(back, first) {
		t.Errorf("after the rewind the conversation is %q", back)
	}
	next := w.task("Another way", `{"instant":true,"steps":[{"say":"By train."}]}`)
	w.again()
	w.awaitEnd(next)
	if last := w.awaitSame(nil); !slices.Equal(texts(last, payload.RoleAssistant)[2:], []string{"By train."}) {
		t.Errorf("at the end of the last run the conversation is %q", last)
	}
}

// A task waits for a run, the server is killed, and the next one runs what waits. All
// protocols show the same conversation, and none stumbles over the events of the input.
func TestQueuedRun(t *testing.T) {
	w := newWorld(t, "hello")
	defer w.stop()
	if _, err := w.api().Create(w.ctx, api.NewSession{ID: session}); err != nil {
		t.Fatal(err)
	}
	w.task("Plan a trip", `{"steps":[{"turn":true},{"say":"`+words("slow", 200)+`","rate":25}]}`)
	w.followAll()
	w.awaitText("slow12 ")
	queue := func(text, when string) api.Started {
		started, err := w.api().Run(w.ctx, api.Task{
			Session: session, Thread: thread, Agent: w.agent, Text: text, When: when, Config: json.RawMessage(`{"instant":true,"steps":[{"say":"By train."}]}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		return started
	}
	next := queue("Another way", api.WhenQueue)
	if _, err := w.api().Withdraw(w.ctx, api.Withdraw{Session: session, Input: queue("Never mind", api.WhenSteer).Input}); err != nil {
		t.Fatal(err)
	}
	w.kill()
	w.start()
	w.awaitEnd(next)
	w.reloadPages()
	w.again()
	all := w.awaitSame(nil)
	if asked, said := texts(all, payload.RoleUser), texts(all, payload.RoleAssistant); !slices.Equal(asked, []string{"Plan a trip", "Another way"}) || said[len(said)-1] != "By train." {
		t.Errorf("the conversation is %q", all)
	}
}

// A farAgent works on another server. It says half of its answer, and the other half when
// the test lets it.
type farAgent struct{ goOn chan struct{} }

func (f *farAgent) run(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		say := func(p payload.Payload) bool { return yield(payload.NewEvent(p), nil) }
		id, tool := tapedeck.NewID("msg_"), tapedeck.NewID("call_")
		if !say(payload.ToolCallStart{ToolCallID: tool, ToolCallName: "Read"}) || !say(payload.ToolCallArgs{ToolCallID: tool, Delta: `{"path":"map.txt"}`}) ||
			!say(payload.ToolCallEnd{ToolCallID: tool}) || !say(payload.ToolCallResult{MessageID: tool + "r", ToolCallID: tool, Content: json.RawMessage(`"a map"`)}) ||
			!say(payload.TextMessageStart{MessageID: id, Role: payload.RoleAssistant}) {
			return
		}
		for i, word := range strings.Fields(words(in.Task, 40)) {
			if i == 20 {
				select {
				case <-f.goOn:
				case <-ctx.Done():
					return
				}
			}
			if !say(payload.TextMessageContent{MessageID: id, Delta: payload.Piece(word + " ")}) {
				return
			}
		}
		say(payload.TextMessageEnd{MessageID: id})
	}
}

// serve serves the agent with A2A, and returns the configuration of a server that uses it.
func (f *farAgent) serve(t *testing.T) (config string) { return serveFar(t, f.run) }

func serveFar(t *testing.T, run tapedeck.RunnerFunc) (config string) {
	d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true, Agents: []deck.Agent{{Name: "helper", Runner: run}}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(d.Handler())
	t.Cleanup(func() {
		_ = d.Close(context.Background())
		s.CloseClientConnections()
		s.Close()
	})
	config = filepath.Join(t.TempDir(), "tapedeck.toml")
	text := fmt.Sprintf("[[agent]]\nname = \"team.far\"\nkind = \"a2a\"\nurl = %q\n", s.URL+"/a2a/helper")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// The server is killed in the middle of a run whose agent works elsewhere: the run
// continues. Then a client of A2A takes the session back, and a client of the HTTP API undoes
// that. All protocols show the same conversation.
func TestRunThatContinues(t *testing.T) {
	far := &farAgent{goOn: make(chan struct{})}
	w := newWorld(t, "team.far", "--config", far.serve(t))
	defer w.stop()
	if _, err := w.api().Create(w.ctx, api.NewSession{ID: session}); err != nil {
		t.Fatal(err)
	}
	run := w.task("one", "")
	w.followAll()
	w.awaitText("one20 ")
	w.kill()
	w.start()
	w.awaitSame(incomplete)
	far.goOn <- struct{}{}
	w.awaitText("one40 ")
	w.awaitEnd(run)
	first := w.awaitSame(nil)
	if said := texts(first, payload.RoleAssistant); len(first) != 3 || said[0] != strings.TrimSpace(words("one", 40)) || first[1].Result != "a map" {
		t.Errorf("at the end of the run the conversation is %q", first)
	}

	second := w.task("two", "")
	w.again()
	far.goOn <- struct{}{}
	w.awaitEnd(second)
	both := w.awaitSame(nil)
	if len(both) != 6 {
		t.Errorf("at the end of the second run the conversation is %q", both)
	}
	w.rewindOverA2A(second.Invocation)
	w.reloadPages()
	if back := w.awaitSame(unaware); !slices.Equal(back, first) {
		t.Errorf("after the rewind the conversation is %q", back)
	}
	if _, err := w.api().Undo(w.ctx, api.Undo{Session: session}); err != nil {
		t.Fatal(err)
	}
	w.reloadPages()
	if forth := w.awaitSame(nil); !slices.Equal(forth, both) {
		t.Errorf("after the undo the conversation is %q", forth)
	}
}

// An agent that works elsewhere replaces what it has said, and continues it. All protocols
// that have ids of messages show the same conversation.
func TestAgentElsewhereReplacesItsWords(t *testing.T) {
	w := newWorld(t, "team.far", "--config", serveFar(t, func(_ context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
		return func(yield func(tapedeck.Event, error) bool) {
			for _, p := range []payload.Payload{
				payload.TextMessageStart{MessageID: "m" + in.ID}, payload.TextMessageContent{MessageID: "m" + in.ID, Delta: "Three of five"}, payload.TextMessageEnd{MessageID: "m" + in.ID},
				payload.MessageAdded{Message: payload.NewMessage("m"+in.ID, payload.RoleAssistant, "Four")},
				payload.TextMessageStart{MessageID: "m" + in.ID}, payload.TextMessageContent{MessageID: "m" + in.ID, Delta: " of five"}, payload.TextMessageEnd{MessageID: "m" + in.ID},
			} {
				if !yield(payload.NewEvent(p), nil) {
					return
				}
			}
		}
	}))
	defer w.stop()
	w.readers = slices.DeleteFunc(w.readers, func(r *reader) bool { return r.parts })
	if _, err := w.api().Create(w.ctx, api.NewSession{ID: session}); err != nil {
		t.Fatal(err)
	}
	w.followAll()
	w.awaitEnd(w.task("How many?", ""))
	w.again()
	if said := texts(w.awaitSame(nil), payload.RoleAssistant); !slices.Equal(said, []string{"Four of five"}) {
		t.Errorf("the agent has said %q", said)
	}
}

// rewindOverA2A takes the session back as kagent's screen does.
func (w *world) rewindOverA2A(invocation string) {
	w.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"r1","role":"user","contextId":"` + session +
		`","parts":[{"kind":"text","text":""}],"metadata":{"kagent_rewind_before_invocation_id":"` + invocation + `"}}}}`
	resp, err := http.DefaultClient.Do(request(w.ctx, http.MethodPost, w.url+"/a2a/"+w.agent, body))
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Result a2aTask }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Result.Status.State != "completed" {
		w.t.Fatalf("the answer to the rewind is %+v, %v", answer, err)
	}
}
