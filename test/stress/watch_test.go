package stress

import (
	"context"
	"crypto/sha256"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// The test measures time in beats, so that a busy machine does not fail it. A beat computes
// a hash, syncs a page to the disk and asks the server for /healthz. It then waits until
// 0.1 seconds have passed, but at least share times as long as this work took. So a call may
// take 5 seconds, and longer if the processor or the disk is busy.
const (
	beat  = 100 * time.Millisecond
	share = 5
	limit = 50 // beats that a call may take
)

// An op is a running call.
type op struct {
	verb   *verb
	beat   int64
	began  time.Time
	cancel context.CancelFunc
}

func (w *world) begin(v *verb) (context.Context, *op) {
	ctx, cancel := context.WithCancel(context.Background())
	o := &op{verb: v, beat: w.beats.Load(), began: time.Now(), cancel: cancel}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls == nil {
		w.calls = map[*op]bool{}
	}
	w.calls[o] = true
	return ctx, o
}

func (w *world) end(o *op) {
	o.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, o)
}

// watch fails the test if a call stalls or the server does not answer. It then stops all
// calls.
func (w *world) watch(ctx context.Context, stop context.CancelFunc) {
	page, err := os.Create(filepath.Join(w.t.TempDir(), "beat"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.watching.Go(func() {
		defer page.Close()
		for w.busy(ctx) {
			began := time.Now()
			if err := w.beat(page); err != nil {
				w.fail(stop, "the server does not answer: %v", err)
				return
			}
			if o := w.stalled(); o != nil {
				w.fail(stop, "%s has taken %v", o.verb.name, time.Since(o.began))
				return
			}
			<-time.After(max(beat-time.Since(began), share*time.Since(began)))
		}
	})
}

// busy reports whether the test still runs, or a call does.
func (w *world) busy(ctx context.Context) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return ctx.Err() == nil || len(w.calls) > 0
}

func (w *world) beat(page *os.File) error {
	sum := sha256.Sum256(make([]byte, 1<<20))
	if _, err := page.WriteAt(sum[:], 0); err != nil {
		return err
	}
	if err := page.Sync(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.URL+"/healthz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	w.beats.Add(1)
	return resp.Body.Close()
}

func (w *world) stalled() *op {
	w.mu.Lock()
	defer w.mu.Unlock()
	for o := range w.calls {
		if w.beats.Load()-o.beat > limit {
			return o
		}
	}
	return nil
}

// fail fails the test, prints the goroutines of the server and cancels all calls.
func (w *world) fail(stop context.CancelFunc, format string, args ...any) {
	w.t.Errorf(format, args...)
	w.server.Dump()
	stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for o := range w.calls {
		o.cancel()
	}
}
