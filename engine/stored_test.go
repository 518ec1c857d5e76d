package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
)

// When Stored returns, the log has all events that the runner yielded, however
// slow the store is.
func TestStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		seen := make(chan string, 2)
		w = newWorld(t, func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			for _, event := range []string{"agent.started", "test.second"} {
				say(event, `{"pid":4711,"started":"12","host":"h"}`)
				if err := in.Stored(ctx); err != nil {
					return err
				}
				log := w.log("s")
				seen <- log[len(log)-1].Type
			}
			return nil
		})
		w.create("s")
		w.store.lag.Store(int64(time.Second))
		w.start("s")
		for _, event := range []string{"agent.started", "test.second"} {
			if log := <-seen; !strings.HasSuffix(log, event) {
				t.Errorf("the log is %s", log)
			}
		}
	})
}

// A stopped run does not wait for the store.
func TestStoredStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan error, 1)
		w := newWorld(t, func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			<-ctx.Done()
			say("agent.started", `{"pid":4711,"started":"12","host":"h"}`)
			got <- in.Stored(context.WithoutCancel(ctx))
			return nil
		})
		w.create("s")
		w.start("s")
		synctest.Wait()
		if _, err := w.Cancel(t.Context(), "s", ""); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}
