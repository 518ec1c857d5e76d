package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// startMany creates sessions r0, r1, … with one run each.
func (w *world) startMany(n int, text func(i int) string) {
	w.Helper()
	for i := range n {
		id := fmt.Sprint("r", i)
		w.create(id)
		if _, err := w.Start(w.Context(), api.Task{Session: id, Text: text(i), Actor: "user:ada"}); err != nil {
			w.Fatal(err)
		}
	}
}

// TestParkedRuns: a durable run that waits has one goroutine, that of its agent. What the
// agent says after that is recorded, and so is its end.
func TestParkedRuns(t *testing.T) {
	const runs = 50
	synctest.Test(t, func(t *testing.T) {
		speak, leave := make(chan struct{}), make(chan struct{})
		w := newWorld(t, silent, durable(func(_ context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
			note(say, "before")
			<-speak
			note(say, "after")
			<-leave
			return nil
		}, silent))
		before := runtime.NumGoroutine()
		w.startMany(runs, func(int) string { return "go" })
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > runs+5 {
			t.Errorf("%d runs that wait have %d goroutines", runs, n)
		}
		close(speak)
		synctest.Wait()
		close(leave)
		synctest.Wait()
		for i := range runs {
			id := fmt.Sprint("r", i)
			if _, status := w.end(id); status != tapedeck.StatusComplete || w.notes(id) != "before|after" {
				t.Errorf("run %d is %s and noted %s", i, status, w.notes(id))
			}
		}
	})
}

// TestStoppedWhileItParks: a run that is stopped at any moment ends, also if its agent does
// not stop by itself.
func TestStoppedWhileItParks(t *testing.T) {
	const runs = 100
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		defer close(never)
		w := newWorld(t, silent, durable(func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			for i := range len(in.Task) {
				note(say, fmt.Sprint(i))
				runtime.Gosched()
			}
			if len(in.Task)%2 == 0 {
				<-ctx.Done()
				return ctx.Err()
			}
			<-never
			return nil
		}, silent))
		w.startMany(runs, func(i int) string { return "tasks"[:i%5+1] })
		var all sync.WaitGroup
		for i := range runs {
			all.Go(func() {
				for range i % 7 {
					runtime.Gosched()
				}
				if _, err := w.Cancel(w.Context(), fmt.Sprint("r", i), ""); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		for i := range runs {
			if _, status := w.end(fmt.Sprint("r", i)); status != tapedeck.StatusCancelled {
				t.Errorf("run %d is %s", i, status)
			}
		}
	})
}
