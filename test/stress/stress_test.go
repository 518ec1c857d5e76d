package stress

import (
	"context"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

var duration = flag.Duration("stress.duration", 5*time.Second, "how long the test calls all verbs at once")

// patient is how much longer TestAllVerbsAtOnce calls all verbs if no call of one of them has
// succeeded yet: some verbs need a session in a rare state, and a slow machine makes few calls.
const patient = 2 * time.Minute

// TestAllVerbsAtOnce calls every verb of the real program at the same time, on the same few
// sessions. No verb may stall, or fail with internal or unavailable. Afterwards the
// server must stop with exit code 0, and verify must find no damage.
func TestAllVerbsAtOnce(t *testing.T) {
	data := keptOnFailure(t)
	w := &world{t: t, data: data, server: testserver.Start(t, data), verbs: allVerbs()}
	ctx, cancel := context.WithTimeout(t.Context(), *duration+patient)
	defer cancel()
	time.AfterFunc(*duration, func() { w.over.Store(true) })
	w.watch(ctx, cancel)
	var working sync.WaitGroup
	for i := range w.verbs {
		v := &w.verbs[i]
		for range v.workers {
			working.Go(func() { w.work(ctx, v) })
		}
	}
	working.Wait()
	cancel()
	w.watching.Wait()
	if t.Failed() {
		t.Logf("the log of the server:\n%s", w.server.Log())
		return
	}
	w.report()
	if code := w.server.Stop(t); code != 0 {
		t.Errorf("the server ended with exit code %d\n%s", code, w.server.Log())
	}
	if out, err := exec.CommandContext(t.Context(), testserver.Binary(t), "verify", "--data", data).CombinedOutput(); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

// keptOnFailure returns a new folder. If the test fails it stays, so that one can look at
// what verify complains about: a fault that needs many rounds does not come back soon.
func keptOnFailure(t *testing.T) string {
	dir, err := os.MkdirTemp("", "tapedeck-stress-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the data is kept in %s", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "data")
}

// A verb is called repeatedly by one or more workers.
type verb struct {
	name    string
	workers int
	call    func(ctx context.Context, c *caller) error

	done    atomic.Int64 // calls that have ended
	well    atomic.Int64 // calls that succeeded
	longest atomic.Int64 // the longest call that succeeded, in milliseconds
	refused atomic.Value // the newest error of a call that was refused
}

// A world is a server and the sessions in it.
type world struct {
	t        *testing.T
	data     string
	server   *testserver.Server
	verbs    []verb
	watching sync.WaitGroup
	beats    atomic.Int64
	over     atomic.Bool // the duration of the test has passed

	mu    sync.Mutex
	ids   []string
	calls map[*op]bool // the calls that are running
}

// A caller is a worker with its own client.
type caller struct {
	*client.Client
	world *world
	rng   *rand.Rand
}

// work calls a verb until ctx is done, or the test has shown enough. It does not cut the last
// call short.
func (w *world) work(ctx context.Context, v *verb) {
	conn, err := client.New(w.server.URL)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer conn.Close()
	c := &caller{Client: conn, world: w, rng: rand.New(rand.NewPCG(rand.Uint64(), 0))}
	for ctx.Err() == nil && !w.enough() {
		w.call(c, v)
	}
}

// enough reports whether the duration has passed and each verb has succeeded.
func (w *world) enough() bool {
	if !w.over.Load() {
		return false
	}
	for i := range w.verbs {
		if w.verbs[i].well.Load() == 0 {
			return false
		}
	}
	return true
}

func (w *world) call(c *caller, v *verb) {
	callCtx, o := w.begin(v)
	err := v.call(callCtx, c)
	stopped := callCtx.Err() != nil // by the watchdog, which has reported the reason
	w.end(o)
	v.done.Add(1)
	switch kind := tapedeck.KindOf(err); {
	case err == nil:
		v.well.Add(1)
		if took := time.Since(o.began).Milliseconds(); took > v.longest.Load() {
			v.longest.Store(took)
		}
	case stopped:
	case kind == tapedeck.Internal, kind == tapedeck.Unavailable:
		w.t.Errorf("%s: %v", v.name, err)
	default:
		v.refused.Store(err.Error())
	}
}

// pick returns the id of a random session.
func (c *caller) pick() string {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if len(c.world.ids) == 0 {
		return "none"
	}
	return c.world.ids[c.rng.IntN(len(c.world.ids))]
}

const maxSessions = 40

// keep records new sessions. When there are too many, it deletes the oldest.
func (c *caller) keep(ctx context.Context, ids ...string) error {
	w := c.world
	w.mu.Lock()
	w.ids = append(w.ids, ids...)
	over := max(0, len(w.ids)-maxSessions)
	old := slices.Clone(w.ids[:over])
	w.ids = slices.Delete(w.ids, 0, over)
	w.mu.Unlock()
	var errs []error
	for _, id := range old {
		errs = append(errs, c.Delete(ctx, id))
	}
	return errors.Join(errs...)
}

// forget removes a session from the list.
func (c *caller) forget(id string) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.world.ids = slices.DeleteFunc(c.world.ids, func(s string) bool { return s == id })
}

// get sends a GET request for a path.
func (c *caller) get(ctx context.Context, path string) error {
	return c.do(ctx, http.MethodGet, path, "", "")
}

func (c *caller) do(ctx context.Context, method, path, contentType, body string) error {
	req, err := http.NewRequestWithContext(ctx, method, c.BaseURL()+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode >= 500:
		return tapedeck.Errorf(tapedeck.Internal, "%s %s: %d %s", method, path, resp.StatusCode, text)
	case resp.StatusCode >= 400:
		return tapedeck.Errorf(tapedeck.Invalid, "%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	return nil
}

// report logs the calls of each verb. It fails if no call of a verb succeeded.
func (w *world) report() {
	w.t.Logf("%d beats", w.beats.Load())
	for i := range w.verbs {
		v := &w.verbs[i]
		w.t.Logf("%-14s %7d calls, %7d succeeded, the longest took %d ms", v.name, v.done.Load(), v.well.Load(), v.longest.Load())
		if v.well.Load() == 0 {
			w.t.Errorf("no call of %s succeeded, so the test does not cover it: %v", v.name, v.refused.Load())
		}
	}
	if info, err := os.Stat(filepath.Join(w.data, "tapedeck.db")); err == nil {
		w.t.Logf("the database has %d MB", info.Size()>>20)
	}
}
