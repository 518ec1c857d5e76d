package a2a_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/protocol/a2a"
)

// A rewind has no condition: a run that is open, also one that waits for an answer, is
// cancelled first. A client that waits for this run gets the task that was cancelled.
func TestRewindOfAnOpenRun(t *testing.T) {
	for _, policy := range []a2a.Policy{a2a.PerTurn, a2a.PerSession} {
		for _, task := range []string{"say Two\nwait", "ask May I?"} {
			t.Run(string(policy)+" "+task, func(t *testing.T) {
				inBubble(t, a2a.Options{Policy: policy}, func(w *world) {
					w.call03("message/send", message03("m0", "say One", ""))
					second, stream := make(chan *answer), make(chan *answer)
					go func() { second <- w.call03("message/send", message03("m1", task, "")) }()
					time.Sleep(100 * time.Millisecond)
					if strings.HasPrefix(task, "say") { // sent again, it would be an answer
						go func() { stream <- w.call03("message/stream", message03("m1", task, "")) }()
					}
					time.Sleep(time.Second) // in the bubble: until the agent waits
					open := openRun(w)
					got := w.call03("message/stream", rewindTo("r", open)).task()
					if got.Status.State != "completed" || got.words() != firstTurn {
						t.Fatalf("got %s, %s", got.Status.State, got.words())
					}
					log := w.log()
					if end := log[len(log)-2:]; !slices.Equal(end, []string{"RUN_FINISHED", "session.rewound"}) {
						t.Errorf("the log ends with %v", end)
					}
					want := []string{"canceled"}
					switch {
					case strings.HasPrefix(task, "ask"):
						want = []string{"input-required"} // it has had its answer before the rewind
					case policy == a2a.PerSession:
						want = append(want, "completed") // the task is read before the rewind, or after it
					}
					if a := (<-second).task(); !slices.Contains(want, a.Status.State) {
						t.Errorf("the client that waits gets %+v", a.Status)
					}
					if strings.HasPrefix(task, "say") {
						frames := (<-stream).frames
						if last := string(frames[len(frames)-1].Data); !strings.Contains(last, `"kind":"status-update"`) || !strings.Contains(last, `"final":true`) {
							t.Errorf("a stream of the run ends with %s", last)
						}
					}
					if got := w.saved(); words(got) != firstTurn || got[0].Status.State != "completed" {
						t.Errorf("after a reload: %v", got)
					}
				})
			})
		}
	}
}

// openRun returns the invocation of the open run.
func openRun(w *world) string {
	w.Helper()
	s, err := w.hub.Head(w.Context(), "c")
	if err != nil || len(s.Runs) != 1 {
		w.Fatalf("the open runs are %v, %v", s.Runs, err)
	}
	return s.Runs[0].Invocation
}

// The same rewind again, after its answer was lost or at once, has the same result, and
// appends nothing. After anything else it is a rewind of its own.
func TestTheSameRewindAgain(t *testing.T) {
	for _, policy := range []a2a.Policy{a2a.PerTurn, a2a.PerSession} {
		for _, task := range []string{"say Three", "wait"} {
			t.Run(string(policy)+" "+task, func(t *testing.T) {
				inBubble(t, a2a.Options{Policy: policy}, func(w *world) {
					ids := threeTurns(w)
					w.call03("message/send", withConfig(message03("m4", task, ""), `{"blocking":false}`))
					time.Sleep(time.Second) // in the bubble: until the agent waits
					rewinds := func() int {
						return len(slices.DeleteFunc(w.log(), func(e string) bool { return e != "session.rewound" }))
					}
					var wg sync.WaitGroup
					both := make([]*answer, 2)
					for i := range both {
						wg.Go(func() { both[i] = w.call03("message/stream", rewindTo("r", ids[1])) })
					}
					wg.Wait()
					again := w.call03("message/stream", rewindTo("r", ids[1]))
					for _, a := range both {
						if a.Body != again.Body || a.task().Status.State != "completed" || a.task().words() != firstTurn {
							t.Errorf("got %s\nand %s", a.Body, again.Body)
						}
					}
					if n := rewinds(); n != 1 {
						t.Errorf("there were %d rewinds", n)
					}
					if got := w.call03("message/send", rewindTo("r", ids[2])).task(); got.Status.State != "failed" {
						t.Errorf("another one: %+v", got.Status)
					}
					w.call03("message/send", message03("m5", "say Four", ""))
					if got := w.call03("message/send", rewindTo("r", ids[1])).task(); got.words() != firstTurn || got.Status.State != "completed" || rewinds() != 2 {
						t.Errorf("after a new message: %s", got.words())
					}
				})
			})
		}
	}
}

// states returns the state of the task of session c everywhere, "" if they differ.
func states(w *world) string {
	w.Helper()
	saved, listed := w.saved(), w.list(`{"contextId":"c"}`)
	if len(saved) != 1 || len(listed) != 1 {
		w.Fatalf("there are %d and %d tasks", len(saved), len(listed))
	}
	got := w.call03("tasks/get", `{"id":"c"}`).task().Status.State
	if all := w.list(fmt.Sprintf(`{"contextId":"c","status":%q}`, listed[0].Status.State)); len(all) != 1 {
		w.Errorf("it is not listed as %s", listed[0].Status.State)
	}
	kept := w.post("/api/tasks", `{"kind":"task","id":"c","contextId":"c","status":{"state":"completed"}}`)
	if stored := fmt.Sprintf(`"state":%q`, got); saved[0].Status.State != got || listed[0].Status.State != "TASK_STATE_"+strings.ToUpper(got) || !strings.Contains(kept.Body, stored) {
		w.Errorf("tasks/get says %s, a reload %s, a list %s, what is saved %s", got, saved[0].Status.State, listed[0].Status.State, kept.Body)
		return ""
	}
	return got
}

// After a rewind the task of a session is completed wherever it is read, whatever the run
// before it has come to; after an undo it is what it was. So it is after a clear.
func TestTheStateAfterARewind(t *testing.T) {
	inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
		is := func(when, want string) {
			t.Helper()
			if got := states(w); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		undo := func() {
			t.Helper()
			if _, err := w.engine.Undo(w.Context(), api.Undo{Session: "c"}); err != nil {
				t.Fatal(err)
			}
		}
		rewind := func(invocation string) {
			t.Helper()
			if got := w.call03("message/stream", rewindTo("r", invocation)).task(); got.Status.State != "completed" {
				t.Errorf("the stream says %+v", got.Status)
			}
		}
		turn := func(id, text string) string {
			a := w.call03("message/send", message03(id, text, "")).task()
			return a.History[len(a.History)-1].Metadata["kagent_invocation_id"].(string)
		}
		first, second := turn("m1", "fail with this"), turn("m2", "say Two")
		is("before", "completed")
		rewind(second)
		is("after a failed run", "completed")
		undo()
		is("undone", "completed")
		failed := turn("m3", "fail again")
		is("it has failed", "failed")
		rewind(failed)
		is("rewound", "completed")
		undo()
		is("undone", "failed")
		rewind(first)
		is("nothing is left", "completed")
		undo()
		is("undone", "failed")
		undo()
		is("the undo undone", "completed")
		turn("m4", "fail once more\nsay no")
		is("another failure", "failed")
		if _, err := w.engine.Clear(w.Context(), api.Clear{Session: "c"}); err != nil {
			t.Fatal(err)
		}
		is("cleared", "completed")
		w.call03("message/send", withConfig(message03("m5", "say Five\nagain\nwait", ""), `{"blocking":false}`))
		time.Sleep(time.Second) // in the bubble: until the agent waits
		is("a step is repeated", "working")
	})
}

// A rewind of another thread leaves the task of the session as it is.
func TestTheStateAfterARewindOfAnotherThread(t *testing.T) {
	inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
		w.call03("message/send", message03("m1", "fail with this", ""))
		if _, err := w.engine.Start(w.Context(), api.Task{Session: "c", Thread: "side", Text: "say Side", Agent: "bot"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // in the bubble: until it has ended
		if _, err := w.engine.Clear(w.Context(), api.Clear{Session: "c", Thread: "side"}); err != nil {
			t.Fatal(err)
		}
		if got := states(w); got != "failed" {
			t.Errorf("got %s", got)
		}
	})
}
