package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// rests waits for people, messages or a time.
func rests(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
	note(say, "executed")
	in.Inbox.Rests()
	return silent(ctx, in, say)
}

// works executes something that does not end.
func works(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
	note(say, "executed")
	return silent(ctx, in, say)
}

// die lets the process die and starts the next one, which continues the runs with bot.
func (w *world) die(bot talker) (ended int) {
	w.Helper()
	crash(w)
	w.must(w.Shutdown(context.Background())) // of what is dead: it writes nowhere
	w.Engine = w.open(silent, durable(bot, silent))
	n, err := w.Recover(w.Context())
	w.must(err)
	synctest.Wait()
	return n
}

// Two processes in a row die while they execute a run. The third one ends the run before it
// executes anything of it, and the run can be resumed. A run is continued each time if it
// waits, if it comes further, if its process lives for a minute, and if its process is stopped.
func TestRunThatEndsItsProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		bot   talker
		after func(*world)
		ended bool
	}{
		"works": {works, func(*world) {}, true},
		"comes further": {func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			say("workflow.left", `{"element":"a","activation":"1"}`)
			return works(ctx, in, say)
		}, func(*world) {}, false},
		"waits":                    {rests, func(*world) {}, false},
		"works for a minute":       {works, func(*world) { time.Sleep(time.Minute + time.Second) }, false},
		"works, and is stopped":    {works, func(w *world) { w.must(w.Shutdown(context.Background())) }, false},
		"works, and is not listed": {works, func(w *world) { crash(w); w.leaving(works, silent) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			durably(t, c.bot, silent, func(w *world) {
				w.start("s")
				synctest.Wait()
				if n := w.die(c.bot); n != 0 {
					t.Errorf("%d runs were ended after one process died", n)
				}
				c.after(w)
				executed := strings.Count(w.notes("s"), "executed")
				n := w.die(c.bot)
				s := w.head("s")
				if ended := s.Status == tapedeck.StatusFailed && strings.Count(w.notes("s"), "executed") == executed; ended != c.ended || name == "works" && n != 1 {
					t.Fatalf("%d runs were ended, it is %s, executed %s", n, s.Status, w.notes("s"))
				}
				if !c.ended {
					return
				}
				last, _ := w.end("s")
				if !strings.Contains(string(last.Data), "the server died twice in a row") {
					t.Errorf("it ends with %s", last.Data)
				}
				if n := w.die(c.bot); n != 0 || w.Running() != 0 {
					t.Errorf("%d runs were ended, %d are driven", n, w.Running())
				}
				again, err := w.Resume(w.Context(), api.Resume{Session: "s"})
				w.must(err)
				synctest.Wait()
				if s := w.head("s"); s.Status != tapedeck.StatusRunning || len(s.Runs) != 1 || s.Runs[0].Invocation != again.Invocation {
					t.Errorf("the resumed run is %s", s.Status)
				}
			})
		})
	}
}

// Two processes in a row die while they execute a hundred runs. One of these runs ends each
// process. Only that run fails, and all others are continued.
func TestSuspectsAreTriedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions = 100
		w := newWorld(t, silent, durable(works, silent))
		for i := range sessions {
			w.create(fmt.Sprint("s", i))
			w.start(fmt.Sprint("s", i))
		}
		w.die(works) // now all are on trial
		var mu sync.Mutex
		died := false
		var executed []string
		poison := func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			mu.Lock()
			if in.Session == "s42" {
				died = true
			}
			if !died {
				executed = append(executed, in.Session)
			}
			mu.Unlock()
			return silent(ctx, in, say)
		}
		starts := 0
		for ; starts < 10; starts++ {
			mu.Lock()
			died = false
			mu.Unlock()
			w.die(poison)
			for range 70 { // seconds
				if mu.Lock(); died {
					mu.Unlock()
					break
				}
				mu.Unlock()
				time.Sleep(time.Second)
				synctest.Wait()
			}
			if w.head("s42").Status != tapedeck.StatusRunning {
				break
			}
		}
		if starts > 5 {
			t.Errorf("it took %d more deaths to find it", starts)
		}
		for i := range sessions {
			id := fmt.Sprint("s", i)
			if s := w.head(id); (s.Status == tapedeck.StatusFailed) != (id == "s42") {
				t.Errorf("%s is %s", id, s.Status)
			}
			if id != "s42" && !slices.Contains(executed, id) {
				t.Errorf("%s was not continued", id)
			}
		}
	})
}
