package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
)

// leaving opens an engine that leaves the runs of an earlier process, and lets it recover.
func (w *world) leaving(bot, helper talker) (ended int) {
	w.Helper()
	w.Engine = w.open(silent, func(o *engine.Options) {
		durable(bot, helper)(o)
		o.LeaveRuns = true
	})
	n, err := w.Recover(w.Context())
	w.must(err)
	synctest.Wait()
	return n
}

// An engine that leaves runs appends nothing to one that could continue. The next engine
// continues it.
func TestLeaveRuns(t *testing.T) {
	durably(t, asks, silent, func(w *world) {
		w.start("s")
		crash(w)
		before := types(w.events("s"))
		if n := w.leaving(asks, silent); n != 0 || w.Running() != 0 || types(w.events("s")) != before {
			t.Errorf("%d runs were ended, %d are driven, the events are %s", n, w.Running(), types(w.events("s")))
		}
		w.recover(asks, silent)
		if w.Running() != 1 || strings.Count(types(w.events("s")), "permission.requested") != 1 {
			t.Errorf("%d runs are driven, the events are %s", w.Running(), types(w.events("s")))
		}
	})
	durably(t, silent, silent, func(w *world) { // mute is not durable
		_, err := w.Start(w.Context(), api.Task{Session: "s", Agent: "mute", Text: "hi"})
		w.must(err)
		crash(w)
		if n := w.leaving(silent, silent); n != 1 {
			t.Errorf("%d runs were ended, want one", n)
		}
		if s := w.head("s"); s.Status != tapedeck.StatusInterrupted {
			t.Errorf("it is %s", s.Status)
		}
	})
}

// An engine whose only run waits for a person is idle, and one whose run works is not.
func TestIdleWhileAPersonIsAsked(t *testing.T) {
	for _, c := range []struct {
		name string
		bot  talker
		idle bool
	}{{"asks", asks, true}, {"works", silent, false}, {"waits for a helper", delegates, false}} {
		t.Run(c.name, func(t *testing.T) {
			durably(t, c.bot, silent, func(w *world) {
				w.start("s")
				synctest.Wait()
				idle := make(chan error, 1)
				go func() { idle <- w.AwaitIdle(w.Context()) }()
				synctest.Wait()
				if got := len(idle) == 1; got != c.idle || w.Running() == 0 {
					t.Errorf("idle: %v, %d runs", got, w.Running())
				}
			})
		})
	}
}
