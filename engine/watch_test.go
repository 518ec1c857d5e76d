package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
)

func TestTimeouts(t *testing.T) {
	speak := func(every time.Duration, typ, data string) talker {
		return func(ctx context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
			for {
				say(typ, data)
				select {
				case <-time.After(every):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
	}
	const usage, asks = `{"inputTokens":1}`, `{"id":"p","options":[]}`
	for name, tt := range map[string]struct {
		runner                 talker
		run, idle, ownRun, own time.Duration
		after                  time.Duration // it ends so long after it began; 0 for never
		code, message          string
	}{
		"too long":           {runner: speak(time.Second, "usage.reported", usage), run: time.Minute, idle: 2 * time.Second, after: time.Minute, code: "timeout", message: "because it took longer than 1m0s"},
		"too silent":         {runner: speak(time.Minute, "usage.reported", usage), run: time.Hour, idle: 30 * time.Second, after: 30 * time.Second, code: "idle_timeout", message: "because the agent said nothing for 30s"},
		"from the beginning": {runner: silent, idle: 30 * time.Second, after: 30 * time.Second, code: "idle_timeout", message: "said nothing for 30s"},
		"in time":            {runner: speak(time.Minute, "usage.reported", usage), run: 3 * time.Hour, idle: 61 * time.Second},
		"no limit":           {runner: silent},
		"its own limits":     {runner: silent, run: time.Second, idle: time.Second, ownRun: time.Minute, own: time.Hour, after: time.Minute, code: "timeout", message: "1m0s"},
		"its own silence":    {runner: silent, run: time.Hour, idle: time.Second, own: time.Minute, after: time.Minute, code: "idle_timeout", message: "1m0s"},
		"none of its own":    {runner: silent, run: time.Second, idle: time.Second, ownRun: -1, own: -1},
		"it waits for us":    {runner: speak(24*time.Hour, "permission.requested", asks), idle: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tt.runner, func(o *engine.Options) {
					o.RunTimeout, o.IdleTimeout = tt.run, tt.idle
					o.Agents[0].RunTimeout, o.Agents[0].IdleTimeout = tt.ownRun, tt.own
				})
				w.create("s")
				begin := time.Now()
				w.start("s")
				time.Sleep(2 * time.Hour)
				if tt.after == 0 {
					if s := w.head("s"); len(s.Runs) != 1 || (s.Status == tapedeck.StatusWaiting) != (name == "it waits for us") {
						t.Errorf("the session is %s with the runs %v", s.Status, s.Runs)
					}
					return
				}
				ev, status := w.end("s")
				if got := ev.Time.Sub(begin).Round(time.Second); status != tapedeck.StatusFailed || got != tt.after {
					t.Errorf("it is %s after %s, want %s", status, got, tt.after)
				}
				if data := string(ev.Data); ev.Type != tapedeck.RunError || !strings.Contains(data, `"code":"`+tt.code+`"`) || !strings.Contains(data, tt.message) {
					t.Errorf("it ended with %s", data)
				}
			})
		})
	}
}

// A slow store does not make an agent idle.
func TestSlowStoreIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
			for range 10 {
				say("usage.reported", `{"inputTokens":1}`)
				time.Sleep(9 * time.Second)
			}
			return nil
		}, func(o *engine.Options) { o.IdleTimeout = 10 * time.Second })
		w.create("s")
		w.start("s")
		w.store.lag.Store(int64(time.Minute))
		time.Sleep(time.Hour)
		if _, status := w.end("s"); status != tapedeck.StatusComplete {
			t.Errorf("the run is %s", status)
		}
	})
}

// A run that failed by a timeout can be resumed. The engine does not wait for an
// agent that does not stop.
func TestTimeoutOfADeafAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			if in.Resumes == "" {
				time.Sleep(time.Hour)
			}
			return nil
		}, func(o *engine.Options) { o.RunTimeout = time.Minute })
		w.create("s")
		w.start("s")
		time.Sleep(time.Minute + engine.DefaultKillAfter + time.Second)
		if _, status := w.end("s"); status != tapedeck.StatusFailed {
			t.Errorf("the run is %s", status)
		}
		_, err := w.Resume(w.Context(), api.Resume{Session: "s"})
		w.must(err)
		time.Sleep(2 * time.Hour)
		if _, status := w.end("s"); status != tapedeck.StatusComplete {
			t.Errorf("the run is %s", status)
		}
	})
}
