package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
)

func TestCancel(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("s")
		s := w.start("s")
		synctest.Wait()
		c, err := w.Cancel(w.Context(), "s", "")
		w.must(err)
		compare(w, lines(w.events("s")[2:]), `
2 0 RUN_STARTED {"metadata":{"tapedeck":{"agent":"bot","owner":"ENG"}},"runId":"INV","threadId":"main"}
3 0 STEP_STARTED {"stepName":"s"}
4 0 TEXT_MESSAGE_START {"messageId":"m","role":"assistant"}
5 0 TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"half a "}
6 0 TOOL_CALL_START {"toolCallId":"c","toolCallName":"Read"}
7 0 TOOL_CALL_END {"toolCallId":"c","metadata":{"tapedeck":{"closed":"cancelled"}}}
8 0 TEXT_MESSAGE_END {"messageId":"m","metadata":{"tapedeck":{"closed":"cancelled"}}}
9 0 STEP_FINISHED {"stepName":"s","metadata":{"tapedeck":{"closed":"cancelled"}}}
10 0 RUN_FINISHED {"metadata":{"tapedeck":{"resumable":true}},"outcome":{"type":"cancelled"},"threadId":"main","runId":"INV"}
`)
		if want := (api.Cancelled{Session: "s", Invocation: s.Invocation, Status: tapedeck.StatusCancelled, Offset: 10, Resumable: true}); c != want {
			w.Errorf("got %+v, want %+v", c, want)
		}
		if _, status := w.end("s"); status != tapedeck.StatusCancelled {
			w.Errorf("the status is %s", status)
		}
		w.start("s")
	})
}

func TestCancelRefusals(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		cancel := func(invocation string) error {
			_, err := w.Cancel(w.Context(), "s", invocation)
			return err
		}
		w.create("s")
		refuses(w, cancel(""), tapedeck.Conflict, "nothing is running in session s")
		refuses(w, cancel("inv_x"), tapedeck.Conflict, "inv_x is not running in session s")
		_, err := w.Cancel(w.Context(), "none", "")
		refuses(w, err, tapedeck.NotFound, "no session")
		one := w.start("s")
		refuses(w, cancel("inv_x"), tapedeck.Conflict, "inv_x is not running")
		two, err := w.Start(w.Context(), api.Task{Session: "s", Thread: "other", Text: "go"})
		w.must(err)
		refuses(w, cancel(""), tapedeck.Conflict, "2 runs are open in session s | name one of them: "+one.Invocation+", "+two.Invocation)
		w.must(cancel(two.Invocation))
		w.must(cancel(""))
		refuses(w, cancel(one.Invocation), tapedeck.Conflict, "is not running")
		w.events("s")
	})
}

// A run whose agent had not begun cannot be resumed.
func TestCancelBeforeItSpoke(t *testing.T) {
	started := func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		say(tapedeck.AgentStarted, `{"pid":1,"started":"1","boot":"b"}`)
		return silent(ctx, in, say)
	}
	for name, agent := range map[string]talker{"it is silent": silent, "its process has started": started} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, agent, func(w *world) {
				w.create("s")
				w.start("s")
				synctest.Wait()
				c, err := w.Cancel(w.Context(), "s", "")
				if err != nil || c.Resumable {
					w.Errorf("got %+v, %v", c, err)
				}
				if ev, _ := w.end("s"); !strings.Contains(string(ev.Data), `"resumable":false`) {
					w.Errorf("got %s", ev.Data)
				}
			})
		})
	}
}

// The engine does not wait for an agent that does not stop, even if that never
// pauses. Later events of the agent are dropped.
func TestCancelDeafAgent(t *testing.T) {
	for name, pause := range map[string]time.Duration{"silent": 0, "speaking": time.Millisecond} {
		heard := make(chan int, 1)
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
				begin := time.Now()
				said := 0
				say("TEXT_MESSAGE_START", `{"messageId":"m"}`)
				for pause > 0 && say("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"x"}`) {
					said++
					time.Sleep(pause)
				}
				heard <- said
				time.Sleep(time.Until(begin.Add(time.Minute)))
				say("TEXT_MESSAGE_END", `{"messageId":"m"}`)
				return nil
			}, func(w *world) {
				w.create("s")
				w.start("s")
				w.store.lag.Store(int64(10 * time.Millisecond)) // slower than it speaks
				time.Sleep(time.Second)
				begin := time.Now()
				c, err := w.Cancel(w.Context(), "s", "")
				if d := time.Since(begin); err != nil || !c.Resumable || d < engine.DefaultKillAfter || d > engine.DefaultKillAfter+time.Second {
					w.Errorf("got %+v, %v after %v", c, err, d)
				}
				time.Sleep(2 * time.Minute)
				if n, kept := <-heard, said(w, w.events("s"))["m"]; len(kept) != n {
					w.Errorf("%d deltas were taken from it, %d are kept", n, len(kept))
				}
				if ev, status := w.end("s"); ev.Offset != c.Offset || status != tapedeck.StatusCancelled {
					w.Errorf("the last event is %s at %d", ev.Type, ev.Offset)
				}
			})
		})
	}
}

// Events that the agent sends while it stops are kept.
func TestCancelLastWords(t *testing.T) {
	inBubble(t, func(ctx context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
		say("TEXT_MESSAGE_START", `{"messageId":"m"}`)
		<-ctx.Done()
		time.Sleep(time.Second)
		say("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"bye"}`)
		say("TEXT_MESSAGE_END", `{"messageId":"m"}`)
		return ctx.Err()
	}, func(w *world) {
		w.create("s")
		w.start("s")
		synctest.Wait()
		w.down.Store(true) // not even an outage takes it away
		time.AfterFunc(10*time.Second, func() { w.down.Store(false) })
		_, err := w.Cancel(w.Context(), "s", "")
		w.must(err)
		if got := said(w, w.events("s"))["m"]; got != "bye" {
			w.Errorf("kept %q", got)
		}
	})
}

func TestCancelTwice(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("s")
		w.start("s")
		synctest.Wait()
		w.store.lag.Store(int64(time.Second))
		var wg sync.WaitGroup
		var got [2]api.Cancelled
		for i := range got {
			wg.Go(func() {
				var err error
				if got[i], err = w.Cancel(w.Context(), "s", ""); err != nil {
					w.Error(err)
				}
			})
		}
		wg.Wait()
		if got[0] != got[1] || got[0].Offset != 10 {
			w.Errorf("got %+v", got)
		}
	})
}

// A cancel takes effect even if its client disconnects.
func TestCancelAbandoned(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("s")
		w.start("s")
		synctest.Wait()
		w.store.lag.Store(int64(time.Minute))
		ctx, stop := context.WithTimeout(w.Context(), time.Second)
		defer stop()
		if _, err := w.Cancel(ctx, "s", ""); err != context.DeadlineExceeded {
			w.Errorf("got %v", err)
		}
		time.Sleep(time.Hour)
		if _, status := w.end("s"); status != tapedeck.StatusCancelled {
			w.Errorf("the status is %s", status)
		}
	})
}

// However a cancel and the end of a run meet, there is one end, and the cancel
// reports which.
func TestCancelRace(t *testing.T) {
	w := newWorld(t, func(_ context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
		say("TEXT_MESSAGE_START", `{"messageId":"m"}`)
		say("TEXT_MESSAGE_END", `{"messageId":"m"}`)
		return nil
	})
	outcomes := map[string]int{}
	for i := range 1000 {
		id := fmt.Sprintf("s%d", i)
		w.create(id)
		s := w.start(id)
		for range i % 50 {
			w.head(id) // a little later each time
		}
		c, err := w.Cancel(t.Context(), id, s.Invocation)
		if tapedeck.KindOf(err) == tapedeck.Conflict {
			for w.head(id).Status == tapedeck.StatusRunning {
				t.Fatalf("%v, and it is still running", err)
			}
		} else {
			w.must(err)
		}
		ev, status := w.end(id)
		outcomes[string(status)]++
		if (err == nil) != (status == tapedeck.StatusCancelled) || err == nil && c.Offset != ev.Offset {
			t.Fatalf("cancel says %+v, %v; the run ended %s at %d", c, err, status, ev.Offset)
		}
	}
	t.Log(outcomes)
}

// A cancel that arrives while the end of the run is written has not cancelled it,
// and reports that.
func TestCancelMeetsTheEnd(t *testing.T) {
	var agent, end chan struct{}
	inBubble(t, func(context.Context, tapedeck.Invocation, func(string, string) bool) error {
		<-agent
		return nil
	}, func(w *world) {
		agent, end = make(chan struct{}), make(chan struct{})
		w.create("s")
		s := w.start("s")
		w.store.before = func() { <-end } // the append of the terminal event
		close(agent)
		synctest.Wait()
		said := make(chan error)
		go func() {
			_, err := w.Cancel(w.Context(), "s", s.Invocation)
			said <- err
		}()
		synctest.Wait()
		close(end)
		refuses(t, <-said, tapedeck.Conflict, "had ended already: complete")
		w.end("s")
	})
}

// An external run has no agent to stop. A cancel ends it, and later events of its
// writer are refused.
func TestCancelExternal(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	_, err := w.Append(t.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{
		{Type: "RUN_STARTED", Thread: "t", Data: json.RawMessage(`{"runId":"r","threadId":"their own"}`)},
		{Type: "REASONING_START", Thread: "t", Data: json.RawMessage(`{"messageId":"z"}`)},
		{Type: "TEXT_MESSAGE_CHUNK", Thread: "t", Data: json.RawMessage(`{"messageId":"m","delta":"x"}`)},
	}})
	w.must(err)
	c, err := w.Cancel(t.Context(), "s", "r")
	if err != nil || !c.Resumable {
		t.Errorf("got %+v, %v", c, err)
	}
	if got := types(w.events("s")); got != "RUN_STARTED REASONING_START TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END REASONING_END RUN_FINISHED" {
		t.Error(got)
	}
	if ev, _ := w.end("s"); !strings.Contains(string(ev.Data), `"threadId":"their own"`) || ev.Thread != "t" {
		t.Errorf("it ended on %s with %s", ev.Thread, ev.Data)
	}
	_, err = w.Append(t.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{
		{Type: "TEXT_MESSAGE_CHUNK", Thread: "t", Invocation: "r", Data: json.RawMessage(`{"messageId":"m","delta":"y"}`)}}})
	refuses(t, err, tapedeck.Conflict, "run r has ended at offset 7")
	_, err = w.Cancel(t.Context(), "s", "r")
	refuses(t, err, tapedeck.Conflict, "r is not running")
}

// A run that the ledger does not know is ended as well.
func TestCancelPastTheEngine(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	w.must(w.append("s", "x.y"))
	_, err := w.store.Append(t.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{
		{Type: "RUN_STARTED", Invocation: "r", Data: json.RawMessage(`{"runId":"r","threadId":"main"}`)}}})
	w.must(err)
	_, err = w.Cancel(t.Context(), "s", "")
	w.must(err)
	w.end("s")
}
