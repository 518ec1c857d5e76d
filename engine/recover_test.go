package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/store/memory"
)

// crash takes the store away from an engine, as a crash does. The next engine
// finds the events that were written.
func crash(w *world) {
	synctest.Wait()
	dead := w.store.Store
	w.store.Store = memory.New(memory.Options{}) // the runs of the dead engine write nowhere
	w.store = &slowStore{Store: dead}
}

func TestRecover(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		const sessions = 120 // more than a page
		for i := range sessions {
			id := fmt.Sprintf("s%d", i)
			w.create(id)
			w.start(id)
		}
		_, err := w.Start(w.Context(), api.Task{Session: "s0", Thread: "other", Text: "go"})
		w.must(err)
		w.create("external")
		w.must(w.append("external", `RUN_STARTED {"runId":"r"}`))
		crash(w)

		e := w.open(silent)
		n, err := e.Recover(w.Context())
		if err != nil || n != sessions+1 {
			w.Errorf("%d runs were ended, %v; want %d", n, err, sessions+1)
		}
		n, err = e.Recover(w.Context())
		if err != nil || n != 0 {
			w.Errorf("the second time %d were ended, %v", n, err)
		}
		for i := range sessions {
			ev, status := w.end(fmt.Sprintf("s%d", i))
			if ev.Type != tapedeck.RunError || status != tapedeck.StatusInterrupted || !strings.Contains(string(ev.Data), tapedeck.CodeInterrupted) {
				w.Fatalf("it ended %s with %s %s", status, ev.Type, ev.Data)
			}
		}
		if got := types(w.events("s1")); got != "message.added RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TOOL_CALL_START TOOL_CALL_END TEXT_MESSAGE_END STEP_FINISHED RUN_ERROR" {
			w.Error(got)
		}
		if runs := w.head("external").Runs; len(runs) != 1 {
			w.Errorf("the external run was ended: %v", runs)
		}
		_, err = e.Append(w.Context(), tapedeck.Append{Session: "external", Events: parse(`RUN_FINISHED {}`)})
		w.must(err)
	})
}

// Recover does not touch the runs of this engine, and reports when it could not do
// its work.
func TestRecoverOwnAndUnavailable(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("s")
		w.start("s")
		if n, err := w.Recover(w.Context()); n != 0 || err != nil {
			w.Errorf("ended %d of its own, %v", n, err)
		}
		synctest.Wait()
		w.down.Store(true)
		_, err := w.open(silent).Recover(w.Context())
		refuses(w, err, tapedeck.Unavailable, "could not be stored")
		w.down.Store(false)
	})
}

// A session whose runs cannot be ended must not keep the runs of others open.
func TestRecoverPastAClosedSession(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("a")
		w.create("b")
		w.start("a")
		w.start("b")
		synctest.Wait()
		_, err := w.store.Append(w.Context(), tapedeck.Append{Session: "b", Close: true})
		w.must(err)
		crash(w)
		if n, err := w.open(silent).Recover(w.Context()); n != 1 || err != nil {
			w.Errorf("ended %d, %v; want 1", n, err)
		}
		w.end("a")
	})
}

func TestLease(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		for _, id := range []string{"dead", "alive", "driven", "forged"} {
			w.create(id)
		}
		w.start("driven")
		w.must(w.append("dead", `RUN_STARTED {"runId":"r"}`, `TEXT_MESSAGE_START {"messageId":"m"}`))
		w.must(w.append("alive", `RUN_STARTED {"runId":"r"}`))
		w.must(w.append("forged", `RUN_STARTED {"runId":"r","metadata":{"tapedeck":{"owner":"eng_x"}}}`))
		for range 60 {
			time.Sleep(time.Minute)
			w.must(w.append("alive", `STATE_DELTA {"delta":[]}`))
			w.must(w.append("dead", `acme.note {}`)) // of no run: others are alive
			if d := time.Since(w.head("dead").Created); d < engine.DefaultLease && len(w.head("dead").Runs) == 0 {
				w.Fatalf("it was ended after %v", d)
			}
		}
		for _, id := range []string{"dead", "forged"} {
			_, status := w.end(id)
			expired := slices.ContainsFunc(w.events(id), func(ev tapedeck.Event) bool {
				return ev.Type == tapedeck.RunError && strings.Contains(string(ev.Data), tapedeck.CodeLeaseExpired)
			})
			if status != tapedeck.StatusInterrupted || !expired {
				w.Errorf("%s ended %s, expired %v", id, status, expired)
			}
		}
		for _, id := range []string{"alive", "driven"} {
			if len(w.head(id).Runs) != 1 {
				w.Errorf("%s was ended", id)
			}
			w.events(id)
		}
	})
}

// A run with a lease of its own ends soon after its program has died, and lives as long as the
// program renews it, which leaves nothing in the log. A restart gives each run a whole lease.
func TestLeaseOfRun(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		begin := func(id, lease string) {
			w.create(id)
			w.must(w.append(id, `RUN_STARTED {"runId":"r","metadata":{"tapedeck":{"leaseMs":`+lease+`}}}`))
		}
		renew := func(e *engine.Engine, id, run string) error {
			_, err := e.Renew(w.Context(), api.Renewal{Session: id, Invocation: run})
			return err
		}
		endsWithin := func(id string, least, most time.Duration) {
			w.Helper()
			for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
				passed := time.Since(begun)
				if open := len(w.head(id).Runs) > 0; !open && passed >= least || passed > most {
					if open {
						w.Errorf("the run of %s is open after %v", id, most)
					}
					return
				} else if !open {
					w.Errorf("the run of %s ended after %v", id, passed)
					return
				}
			}
		}
		begin("dead", "15000")
		endsWithin("dead", 15*time.Second, 16100*time.Millisecond)
		if ev, status := w.end("dead"); status != tapedeck.StatusInterrupted || !strings.Contains(string(ev.Data), tapedeck.CodeLeaseExpired) {
			w.Errorf("it ended %s with %s", status, ev.Data)
		}
		refuses(w, renew(w.Engine, "dead", "r"), tapedeck.Conflict, "is not open")
		refuses(w, renew(w.Engine, "nowhere", "r"), tapedeck.NotFound, "no session")

		begin("alive", "15000")
		sub := parse(`RUN_STARTED {"threadId":"t","runId":"sub","parentRunId":"r"}`)
		sub[0].Thread = "t"
		_, err := w.Append(w.Context(), tapedeck.Append{Session: "alive", Events: sub})
		w.must(err)
		begin("huge", "9223372036854775807") // not longer than that of the server
		events := len(w.events("alive"))
		for range 200 {
			time.Sleep(14 * time.Second)
			w.must(renew(w.Engine, "alive", "r"))
			w.must(renew(w.Engine, "alive", "sub"))
		}
		if now := w.events("alive"); len(w.head("alive").Runs) != 2 || len(now) != events {
			w.Errorf("the run that was renewed has %d events more, and %v", len(now)-events, w.head("alive").Runs)
		}
		if len(w.head("huge").Runs) != 0 {
			w.Error("a run was silent for longer than the lease of the server")
		}
		for range 20 { // a sub-agent keeps the run of its parent open
			time.Sleep(14 * time.Second)
			w.must(renew(w.Engine, "alive", "sub"))
		}
		if len(w.head("alive").Runs) != 2 {
			w.Error("the run of a parent ended while its sub-agent was alive")
		}
		crash(w)
		next := w.open(silent)
		_, err = next.Recover(w.Context())
		w.must(err)
		endsWithin("alive", 15*time.Second, 16100*time.Millisecond)

		for _, id := range []string{"driven", "wrong"} {
			_, err := next.Create(w.Context(), api.NewSession{ID: id})
			w.must(err)
		}
		started, err := next.Start(w.Context(), api.Task{Session: "driven", Text: "go"})
		w.must(err)
		refuses(w, renew(next, "driven", started.Invocation), tapedeck.Conflict, "the server that drives it")
		for _, lease := range []string{"0", "999", "-1", "1.5", `"15s"`, "null", "1e99"} {
			_, err := next.Append(w.Context(), tapedeck.Append{Session: "wrong", Events: parse(`RUN_STARTED {"runId":"r","metadata":{"tapedeck":{"leaseMs":` + lease + `}}}`)})
			refuses(w, err, tapedeck.Invalid, "at least 1000, not "+lease)
		}
	})
}

// If the store is down, the sweep tries again.
func TestLeaseOutage(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		w.must(w.append("s", `RUN_STARTED {"runId":"r"}`))
		w.down.Store(true)
		time.Sleep(time.Hour)
		w.down.Store(false)
		time.Sleep(engine.DefaultLease / 2)
		w.end("s")
	})
}

// If an event of an external run arrives at the last moment, after the run was
// chosen to be ended, the run continues.
func TestLeaseLastMoment(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		w.must(w.append("s", `RUN_STARTED {"runId":"r"}`))
		w.store.lag.Store(int64(time.Minute)) // the sweep at 12:30 writes at 13:30
		time.Sleep(12*time.Minute + 45*time.Second)
		w.store.lag.Store(0)
		w.must(w.append("s", `STATE_DELTA {"delta":[]}`))
		time.Sleep(3 * time.Minute)
		if len(w.head("s").Runs) != 1 {
			w.Error("it was ended")
		}
	})
}

func TestShutdown(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("s")
		w.start("s")
		synctest.Wait()
		w.must(w.Shutdown(w.Context()))
		if ev, status := w.end("s"); status != tapedeck.StatusInterrupted || !strings.Contains(string(ev.Data), tapedeck.CodeInterrupted) {
			w.Errorf("it ended %s with %s", status, ev.Data)
		}
		_, err := w.Start(w.Context(), api.Task{Session: "s", Text: "go"})
		refuses(w, err, tapedeck.Unavailable, "the server is stopping")
		w.must(w.Shutdown(w.Context()))
	})
}

func TestShutdownStuck(t *testing.T) {
	inBubble(t, func(context.Context, tapedeck.Invocation, func(string, string) bool) error {
		time.Sleep(time.Hour)
		return nil
	}, func(w *world) {
		w.create("s")
		w.start("s")
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		refuses(w, w.Shutdown(ctx), tapedeck.Unavailable, "the next start ends them")
		if d := time.Since(begin); d != time.Second {
			w.Errorf("it took %v", d)
		}
		w.must(w.Shutdown(w.Context())) // with more patience
		if d := time.Since(begin); d > engine.DefaultKillAfter+time.Second {
			w.Errorf("it took %v", d)
		}
		w.end("s")
		time.Sleep(2 * time.Hour)
	})
}

// While the store is down no run can be ended, and Shutdown does not wait forever.
func TestShutdownOutage(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("s")
		w.start("s")
		synctest.Wait()
		w.down.Store(true)
		begin := time.Now()
		w.must(w.Shutdown(w.Context()))
		if d := time.Since(begin); d > time.Minute {
			w.Errorf("it took %v", d)
		}
		w.down.Store(false)
		if n, err := w.open(silent).Recover(w.Context()); n != 1 || err != nil {
			w.Errorf("%d were left for the next start, %v", n, err)
		}
		w.end("s")
	})
}

// Shutdown waits for a start that is under way.
func TestShutdownDuringStart(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("s")
		w.store.lag.Store(int64(time.Second))
		go func() { _, _ = w.Start(context.Background(), api.Task{Session: "s", Text: "go"}) }()
		synctest.Wait()
		w.must(w.Shutdown(w.Context()))
		if _, status := w.end("s"); status != tapedeck.StatusInterrupted {
			w.Errorf("the run is %s", status)
		}
	})
}
