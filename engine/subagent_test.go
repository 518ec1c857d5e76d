package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/view"
)

// lead starts two sub-agents at once, and one of them starts a third. All send
// events at the same time.
func lead(_ context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
	for _, ev := range parse(
		`TOOL_CALL_START {"toolCallId":"c1","toolCallName":"Task"}`, `TOOL_CALL_END {"toolCallId":"c1"}`,
		`TOOL_CALL_START {"toolCallId":"c2","toolCallName":"Task"}`, `TOOL_CALL_END {"toolCallId":"c2"}`,
		`SUBAGENT_STARTED {"subagentRunId":"a","name":"scout","parentToolCallId":"c1"}`,
		`SUBAGENT_STARTED {"subagentRunId":"b","name":"writer","parentToolCallId":"c2"}`,
		`message.added {"message":{"id":"u","role":"user","content":"look around","subagentRunId":"a"}}`,
		`TEXT_MESSAGE_START {"messageId":"a1","role":"assistant","subagentRunId":"a"}`,
		`TEXT_MESSAGE_START {"messageId":"b1","role":"assistant","subagentRunId":"b"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"a1","delta":"scout "}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"b1","delta":"writer "}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"a1","delta":"speaks","subagentRunId":"a"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"b1","delta":"speaks"}`,
		`TEXT_MESSAGE_END {"messageId":"a1"}`,
		`TOOL_CALL_START {"toolCallId":"c3","toolCallName":"Task","parentMessageId":"a1"}`, `TOOL_CALL_END {"toolCallId":"c3"}`,
		`SUBAGENT_STARTED {"subagentRunId":"n","name":"reader","parentSubagentRunId":"a","parentToolCallId":"c3"}`,
		`REASONING_START {"messageId":"n1","subagentRunId":"n"}`, `REASONING_MESSAGE_START {"messageId":"n1","role":"reasoning"}`,
		`REASONING_MESSAGE_CONTENT {"messageId":"n1","delta":"deep"}`, `REASONING_MESSAGE_END {"messageId":"n1"}`, `REASONING_END {"messageId":"n1"}`,
		`usage.reported {"inputTokens":10,"outputTokens":1,"subagentRunId":"n"}`,
		`SUBAGENT_FINISHED {"subagentRunId":"n","result":"read"}`,
		`TOOL_CALL_RESULT {"messageId":"r3","toolCallId":"c3","content":"read"}`,
		`plan.updated {"entries":[{"content":"of the scout","status":"pending"}],"subagentRunId":"a"}`,
		`SUBAGENT_ERROR {"subagentRunId":"a","message":"lost","code":"map"}`,
		`TOOL_CALL_RESULT {"messageId":"r1","toolCallId":"c1","content":"lost"}`,
		`TEXT_MESSAGE_END {"messageId":"b1"}`,
		`SUBAGENT_FINISHED {"subagentRunId":"b"}`,
		`TOOL_CALL_RESULT {"messageId":"r2","toolCallId":"c2","content":"written"}`,
		`SUBAGENT_STARTED {"subagentRunId":"a2","name":"scout","parentToolCallId":"c1"}`,
		`TEXT_MESSAGE_START {"messageId":"a2","role":"assistant","subagentRunId":"a2"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"a2","delta":"found"}`, `TEXT_MESSAGE_END {"messageId":"a2"}`,
		`SUBAGENT_FINISHED {"subagentRunId":"a2"}`,
		`usage.reported {"inputTokens":100,"outputTokens":2}`,
		`TEXT_MESSAGE_START {"messageId":"m","role":"assistant"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"all done"}`, `TEXT_MESSAGE_END {"messageId":"m"}`,
	) {
		if !say(ev.Type, string(ev.Data)) {
			break
		}
	}
	return nil
}

// byThread returns a line for each event of each thread, in order.
func (w *world) byThread(session string) map[string][]string {
	w.Helper()
	lines := map[string][]string{}
	for _, ev := range w.events(session) {
		if ev.Channel == tapedeck.ChannelSession {
			continue
		}
		lines[ev.ThreadName()] = append(lines[ev.ThreadName()], ev.Type+" "+string(ev.Data))
	}
	return lines
}

// threads returns the views of the threads by the name of the agent of their
// newest run.
func (w *world) threads(session string) (all view.Snapshot, byAgent map[string]view.Snapshot) {
	w.Helper()
	views := projection.New(projection.Options{Store: w.store})
	all, err := views.Snapshot(w.Context(), session, view.Query{})
	w.must(err)
	byAgent = map[string]view.Snapshot{}
	for _, th := range all.Threads {
		one, err := views.Snapshot(w.Context(), session, view.Query{Thread: th.Name})
		w.must(err)
		for _, r := range one.Runs {
			byAgent[r.Agent] = one
		}
	}
	return all, byAgent
}

func spoken(s view.Snapshot) string {
	var texts []string
	for _, m := range s.Messages {
		if m.Role != payload.RoleTool {
			texts = append(texts, m.Text)
		}
	}
	return strings.Join(texts, "|")
}

func TestSubagentsHaveThreads(t *testing.T) {
	inBubble(t, lead, func(w *world) {
		w.create("s")
		run := w.turn("s", "bot", "")
		lines := w.byThread("s")
		if len(lines) != 4 {
			w.Fatalf("the threads are %v", lines)
		}
		all, by := w.threads("s")
		scout, writer, reader := by["scout"], by["writer"], by["reader"]
		for agent, want := range map[string]string{
			"bot": "go|all done", "scout": "look around|scout speaks|found", "writer": "writer speaks", "reader": "deep",
		} {
			if got := spoken(by[agent]); got != want {
				w.Errorf("%s: %q, want %q", agent, got, want)
			}
		}
		for _, s := range []struct{ child, parent view.Snapshot }{{scout, by["bot"]}, {writer, by["bot"]}, {reader, scout}} {
			child, parent := s.child.Threads[0], s.parent.Threads[0]
			if child.Parent != parent.Name || !payload.IsSubThread(child.Name) || s.child.Runs[0].Parent != s.parent.Runs[0].Invocation {
				w.Errorf("thread %+v has the runs %+v, want the parent %s", child, s.child.Runs, parent.Name)
			}
		}
		if n := len(scout.Runs); n != 2 || scout.Runs[0].Status != tapedeck.StatusFailed || scout.Runs[0].Error.Code != "map" || scout.Runs[1].Status != tapedeck.StatusComplete {
			w.Errorf("the runs of the scout are %+v", scout.Runs)
		}
		if string(reader.Runs[0].Result) != `"read"` {
			w.Errorf("the result of the reader is %s", reader.Runs[0].Result)
		}
		if scout.Plan == nil || by["bot"].Plan != nil {
			w.Errorf("the plans are %+v and %+v", scout.Plan, by["bot"].Plan)
		}
		if calls := by["bot"].Calls; len(calls) != 2 || fmt.Sprint(calls[0].Threads, calls[1].Threads) != fmt.Sprintf("[%s] [%s]", scout.Threads[0].Name, writer.Threads[0].Name) {
			w.Errorf("the calls are %+v", calls)
		}
		if tasks := view.Tasks(all); len(tasks) != 1 || tasks[0].Invocation != run.Invocation {
			w.Errorf("the tasks are %+v", tasks)
		}
		for _, ev := range w.events("s") {
			if strings.Contains(string(ev.Data), `"subagentRunId"`) && !strings.HasPrefix(ev.Type, "SUBAGENT_") {
				w.Errorf("%s on thread %s still says whose it is: %s", ev.Type, ev.Thread, ev.Data)
			}
		}
	})
}

// The usage of a sub-agent counts once, and the runs of a session are those that
// users started.
func TestSubagentUsageCountsOnce(t *testing.T) {
	inBubble(t, lead, func(w *world) {
		w.create("s")
		w.turn("s", "bot", "")
		s, err := projection.New(projection.Options{Store: w.store}).Summary(w.Context(), "s", -1)
		w.must(err)
		if s.Tokens.Input != 110 || s.Tokens.Output != 3 || s.Turns != 1 || len(s.Runs) != 1 || s.Runs[tapedeck.StatusComplete] != 1 || s.ModelTurns != 2 {
			w.Errorf("the summary is %+v", s)
		}
		_, by := w.threads("s")
		for _, m := range view.Context(by["bot"], view.InThread("")) {
			if strings.Contains(m.Content, "speaks") || strings.Contains(m.Content, "deep") {
				w.Errorf("the agent gets the messages of a sub-agent: %+v", m)
			}
		}
	})
}

// busy starts sub-agents that never end.
func busy(ctx context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
	say("SUBAGENT_STARTED", `{"subagentRunId":"a","name":"scout"}`)
	say("TEXT_MESSAGE_START", `{"messageId":"a1","role":"assistant","subagentRunId":"a"}`)
	say("TEXT_MESSAGE_CONTENT", `{"messageId":"a1","delta":"half a "}`)
	say("SUBAGENT_STARTED", `{"subagentRunId":"n","name":"reader","parentSubagentRunId":"a"}`)
	say("TOOL_CALL_START", `{"toolCallId":"c","toolCallName":"Read","subagentRunId":"n"}`)
	<-ctx.Done()
	return ctx.Err()
}

// ends returns how the runs of a session ended: a line for each, in order.
func (w *world) ends(session string) (lines []string) {
	w.Helper()
	agents := map[string]string{}
	for _, ev := range w.events(session) {
		switch ev.Type {
		case tapedeck.RunStarted:
			agents[ev.Invocation] = string(ev.Data)[strings.Index(string(ev.Data), `"agent":"`)+9:]
		case tapedeck.RunFinished, tapedeck.RunError:
			agent, _, _ := strings.Cut(agents[ev.Invocation], `"`)
			var s tapedeck.Session
			s.Apply(&ev)
			lines = append(lines, agent+" "+string(s.Status))
		}
	}
	return lines
}

// However a run ends, its sub-agents end before it, each once, in the same append.
func TestSubagentsEndWithTheirRun(t *testing.T) {
	for _, tt := range []struct {
		name   string
		runner talker
		end    func(w *world, started api.Started)
		want   string
	}{
		{"cancel", busy, func(w *world, started api.Started) {
			_, err := w.Cancel(w.Context(), "s", "")
			w.must(err)
		}, "reader cancelled, scout cancelled, bot cancelled"},
		{"a crash", busy, func(w *world, _ api.Started) {
			crash(w)
			n, err := w.open(silent).Recover(w.Context())
			if err != nil || n != 1 {
				w.Errorf("recovered %d, %v", n, err)
			}
		}, "reader interrupted, scout interrupted, bot interrupted"},
		{"a shutdown", busy, func(w *world, _ api.Started) { w.must(w.Shutdown(w.Context())) }, "reader interrupted, scout interrupted, bot interrupted"},
		{"a rewind", busy, func(w *world, started api.Started) {
			_, err := w.Rewind(w.Context(), api.Rewind{Session: "s", BeforeInvocation: started.Invocation})
			w.must(err)
		}, "reader cancelled, scout cancelled, bot cancelled"},
		{"the agent fails", func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			c, cancel := context.WithCancel(ctx)
			cancel()
			_ = busy(c, in, say)
			return errors.New("oh")
		}, func(*world, api.Started) {}, "reader failed, scout failed, bot failed"},
		{"the agent forgets them", func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			c, cancel := context.WithCancel(ctx)
			cancel()
			_ = busy(c, in, say)
			return nil
		}, func(*world, api.Started) {}, "reader failed, scout failed, bot complete"},
		{"the agent ends one that has started another", func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			c, cancel := context.WithCancel(ctx)
			cancel()
			_ = busy(c, in, say)
			say("SUBAGENT_FINISHED", `{"subagentRunId":"a"}`)
			return nil
		}, func(*world, api.Started) {}, "reader failed, scout complete, bot complete"},
		{"the agent does not stop", func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			_ = busy(ctx, in, say)
			time.Sleep(time.Hour)
			return nil
		}, func(w *world, _ api.Started) {
			_, err := w.Cancel(w.Context(), "s", "")
			w.must(err)
			time.Sleep(2 * time.Hour)
		}, "reader cancelled, scout cancelled, bot cancelled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, tt.runner, func(w *world) {
				w.create("s")
				started := w.start("s")
				synctest.Wait()
				tt.end(w, started)
				synctest.Wait()
				if got := strings.Join(w.ends("s"), ", "); got != tt.want {
					w.Errorf("%s, want %s", got, tt.want)
				}
				w.byThread("s")
				if _, by := w.threads("s"); tt.name != "a rewind" && spoken(by["scout"]) != "half a " {
					w.Errorf("the scout has said %q", spoken(by["scout"]))
				}
				if head := w.head("s"); len(head.Runs) != 0 {
					w.Errorf("%v are still open", head.Runs)
				}
			})
		})
	}
}

// Only its agent can stop or continue a sub-agent.
func TestSubagentsTakeNoOrders(t *testing.T) {
	inBubble(t, busy, func(w *world) {
		w.create("s")
		started := w.start("s")
		synctest.Wait()
		runs := w.head("s").Runs
		if len(runs) != 3 || runs[1].Parent != started.Invocation || runs[2].Parent != runs[1].Invocation {
			w.Fatalf("the runs are %+v", runs)
		}
		_, err := w.Cancel(w.Context(), "s", runs[2].Invocation)
		refuses(w, err, tapedeck.Conflict, "ends with it")
		_, err = w.Start(w.Context(), api.Task{Session: "s", Thread: runs[1].Thread, Text: "go"})
		refuses(w, err, tapedeck.Conflict, "belongs to a sub-agent")
		_, err = w.Resume(w.Context(), api.Resume{Session: "s", Thread: runs[1].Thread})
		refuses(w, err, tapedeck.Conflict, "belongs to a sub-agent")
		_, err = w.Append(w.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{{
			Type: "TEXT_MESSAGE_CONTENT", Thread: runs[1].Thread, Invocation: runs[1].Invocation, Data: []byte(`{"messageId":"a1","delta":"x"}`),
		}}})
		refuses(w, err, tapedeck.Conflict, "is written by the server")
	})
}

// While the disk is busy, the deltas of each sub-agent become one event with cuts,
// in whatever order they arrive.
func TestDeltasOfSubagentsAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
			for _, id := range []string{"a", "b", "c"} {
				say("SUBAGENT_STARTED", `{"subagentRunId":"`+id+`","name":"`+id+`"}`)
				say("TEXT_MESSAGE_START", `{"messageId":"m`+id+`","role":"assistant","subagentRunId":"`+id+`"}`)
			}
			for i := range 30 {
				say("TEXT_MESSAGE_CONTENT", fmt.Sprintf(`{"messageId":"m%c","delta":"%d,"}`, "abc"[i%3], i))
				time.Sleep(time.Millisecond)
			}
			for _, id := range []string{"a", "b", "c"} {
				say("TEXT_MESSAGE_END", `{"messageId":"m`+id+`"}`)
				say("SUBAGENT_FINISHED", `{"subagentRunId":"`+id+`"}`)
			}
			return nil
		}, func(o *engine.Options) { o.KillAfter = time.Hour })
		w.create("s")
		w.store.lag.Store(int64(100 * time.Millisecond))
		w.turn("s", "bot", "")
		time.Sleep(time.Minute)
		_, by := w.threads("s")
		if spoken(by["a"]) != "0,3,6,9,12,15,18,21,24,27," || spoken(by["b"]) != "1,4,7,10,13,16,19,22,25,28," {
			t.Errorf("they have said %q and %q", spoken(by["a"]), spoken(by["b"]))
		}
		n := 0
		for _, ev := range w.events("s") {
			if ev.Type == tapedeck.TextMessageContent {
				n++
			}
		}
		if n > 4 { // the first goes at once
			t.Errorf("there are %d events with text: %s", n, lines(w.events("s")))
		}
	})
}

// begins starts a sub-agent that ends.
func begins(_ context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
	say("SUBAGENT_STARTED", `{"subagentRunId":"a","name":"scout"}`)
	say("SUBAGENT_STARTED", `{"subagentRunId":"n","name":"reader","parentSubagentRunId":"a"}`)
	say("TEXT_MESSAGE_START", `{"messageId":"m-`+in.ID+`","role":"assistant","subagentRunId":"n"}`)
	say("TEXT_MESSAGE_CONTENT", `{"messageId":"m-`+in.ID+`","delta":"read"}`)
	say("TEXT_MESSAGE_END", `{"messageId":"m-`+in.ID+`"}`)
	say("SUBAGENT_FINISHED", `{"subagentRunId":"n"}`)
	say("SUBAGENT_FINISHED", `{"subagentRunId":"a"}`)
	return nil
}

// If a thread is rewound, so are the threads of the sub-agents that were started
// in the reverted part. An undo restores them, too.
func TestJumpsTakeSubagentsAlong(t *testing.T) {
	inBubble(t, begins, func(w *world) {
		w.create("s")
		first, second := w.turn("s", "bot", ""), w.turn("s", "bot", "")
		w.turn("s", "bot", "side")
		has := func(what string, want int) {
			w.Helper()
			all, _ := w.threads("s")
			n := 0
			for _, th := range all.Threads {
				if payload.IsSubThread(th.Name) {
					n++
				}
			}
			if n != want {
				w.Errorf("%s there are %d threads of sub-agents, want %d: %+v", what, n, want, all.Threads)
			}
		}
		has("at first", 6)
		undo := func(what string, back int) {
			w.Helper()
			if _, err := w.Undo(w.Context(), api.Undo{Session: "s"}); err != nil {
				w.Errorf("%s: %v", what, err)
			}
			has("after the undo of "+what, back)
		}
		rewound := func(what string, want int, _ api.Rewound, err error) {
			w.Helper()
			w.must(err)
			has("after "+what, want)
		}
		r, err := w.Rewind(w.Context(), api.Rewind{Session: "s", BeforeInvocation: second.Invocation, Thread: "main"})
		rewound("a rewind of the thread", 4, r, err)
		undo("a rewind of the thread", 6)
		r, err = w.Clear(w.Context(), api.Clear{Session: "s", Thread: "main"})
		rewound("a clear of the thread", 2, r, err)
		w.turn("s", "bot", "")
		has("after more", 4)
		undo("a clear of the thread", 6)
		r, err = w.Rewind(w.Context(), api.Rewind{Session: "s", BeforeInvocation: first.Invocation})
		rewound("a rewind of all", 0, r, err)
		r, err = w.Rewind(w.Context(), api.Rewind{Session: "s", BeforeInvocation: r.Marker, Thread: "main"})
		rewound("the undo for one thread", 4, r, err)
		undo("that", 0)
	})
}

// The thread of a running sub-agent cannot be rewound alone, because nothing can
// stop the sub-agent.
func TestSubagentAtWorkStays(t *testing.T) {
	inBubble(t, busy, func(w *world) {
		w.create("s")
		w.start("s")
		synctest.Wait()
		thread := w.head("s").Runs[1].Thread
		_, err := w.Clear(w.Context(), api.Clear{Session: "s", Thread: thread})
		refuses(w, err, tapedeck.Conflict, "ends with it")
		_, err = w.Clear(w.Context(), api.Clear{Session: "s", Thread: "main"})
		w.must(err)
		if all, _ := w.threads("s"); len(all.Threads) != 0 {
			w.Errorf("there still is %+v", all.Threads)
		}
	})
}

// A fork in the middle of a sub-agent's run has its events so far; the run is
// interrupted there.
func TestForkAmongSubagents(t *testing.T) {
	inBubble(t, busy, func(w *world) {
		w.create("s")
		w.start("s")
		synctest.Wait()
		f, err := w.Fork(w.Context(), api.Fork{Parent: "s"})
		w.must(err)
		_, by := w.threads(f.ID)
		if spoken(by["scout"]) != "half a " || by["scout"].Runs[0].Status != tapedeck.StatusInterrupted || len(w.head(f.ID).Runs) != 0 {
			w.Errorf("the fork has %+v", by["scout"])
		}
	})
}

// TestUnknownMembersSurvive: unknown members in events of an agent and its
// sub-agent are in the log, once, and in the right run.
func TestUnknownMembersSurvive(t *testing.T) {
	said := parse(
		`SUBAGENT_STARTED {"subagentRunId":"a","name":"scout","own":{"kept":[1]}}`,
		`acme.unknown {"subagentRunId":"a","own":{"kept":[1]}}`,
		`TEXT_MESSAGE_START {"messageId":"m","role":"assistant","subagentRunId":"a","own":{"kept":[1]}}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"x","own":{"kept":[1]}}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"y","subagentRunId":"a","own":{"kept":[1]}}`,
		`TEXT_MESSAGE_END {"messageId":"m","own":{"kept":[1]}}`,
		`SUBAGENT_FINISHED {"subagentRunId":"a","own":{"kept":[1]}}`,
		`acme.unknown {"own":{"kept":[1]}}`,
	)
	inBubble(t, func(_ context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
		for _, ev := range said {
			say(ev.Type, string(ev.Data))
		}
		return nil
	}, func(w *world) {
		w.create("s")
		w.start("s")
		synctest.Wait()
		w.end("s")
		var got, want []string
		for _, ev := range w.events("s") {
			if strings.Contains(string(ev.Data), `"own":{"kept":[1]}`) {
				got = append(got, ev.Type)
			}
		}
		for _, ev := range said {
			want = append(want, ev.Type)
		}
		if !slices.Equal(got, want) {
			t.Errorf("they are in %v, want %v", got, want)
		}
	})
}
