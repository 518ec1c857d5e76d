package crash

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

var rounds = flag.Int("rounds", 8, "how often the server is killed")

const (
	writers = 8
	shared  = "shared" // the session to which all writers write, in addition to their own
)

// TestKill kills the server with -9 under load, many times, on one data folder.
// Acknowledged events exist exactly once, at the acknowledged offset. A batch without an
// acknowledgement exists completely or not at all. Offsets have no gaps. A follower that
// was connected all the time received every event exactly once. Every run has exactly
// one terminal event.
func TestKill(t *testing.T) {
	n := *rounds
	if testing.Short() {
		n = min(n, 3)
	}
	w := newWorld(t)
	w.server.Store(testserver.Start(t, w.data))
	w.prepare()
	w.follow()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("%d rounds, seed %d", n, seed)
	for range n {
		w.round(time.Duration(20+rng.IntN(130)) * time.Millisecond)
	}
	w.finish()
	t.Logf("%d appends acknowledged, %d events checked, %d runs", w.acked.Load(), w.checked, len(w.runs))
	if w.acked.Load() < int64(n) {
		t.Error("hardly any event was written; the test proves nothing")
	}
}

// A world is the state that survives the kills: what writers and followers know.
type world struct {
	t      *testing.T
	data   string
	server atomic.Pointer[testserver.Server]
	acked  atomic.Int64
	ended  func(*testserver.Server) // ends the server
	pad    string                   // makes each event longer
	insist bool                     // writers send a batch again that was refused
	again  atomic.Int64             // batches that were refused

	writers []*writer
	runs    []api.Started

	checked   int
	followers sync.WaitGroup
	stop      context.CancelFunc
	seen      sync.Map // follower name -> next offset
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, data: t.TempDir(), ended: (*testserver.Server).Kill}
	for i := range writers {
		w.writers = append(w.writers, &writer{world: w, name: fmt.Sprintf("w%d", i), acked: map[string]map[int64]string{}})
	}
	return w
}

func (w *world) client() *client.Client {
	c, err := client.New(w.server.Load().URL)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) prepare() {
	c := w.client()
	defer c.Close()
	names := []string{shared, "runs"}
	for _, wr := range w.writers {
		names = append(names, wr.name)
	}
	for _, name := range names {
		if _, err := c.Create(w.t.Context(), api.NewSession{ID: name}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// round writes for a while, kills the server, starts it again and checks.
func (w *world) round(d time.Duration) {
	w.load(d)
	w.server.Store(testserver.Start(w.t, w.data))
	w.check()
}

// load writes for a while and ends the server meanwhile.
func (w *world) load(d time.Duration) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	for _, wr := range w.writers {
		wg.Go(func() { wr.run(ctx) })
	}
	wg.Go(func() { w.startRun(ctx) })
	time.AfterFunc(d, func() { w.server.Load().Kill(); cancel() })
	wg.Wait()
	w.ended(w.server.Load())
}

// A writer appends to its own session and to the shared one, with a producer. After a
// crash it repeats batches that were not acknowledged.
type writer struct {
	*world
	name  string
	seq   map[string]int64            // per session, the next
	acked map[string]map[int64]string // session -> offset -> key
}

func (w *writer) run(ctx context.Context) {
	c := w.client()
	defer c.Close()
	for i := 0; ctx.Err() == nil; i++ {
		session := w.name
		if i%3 == 0 {
			session = shared
		}
		for !w.append(ctx, c, session) {
			if w.again.Add(1); !w.insist || ctx.Err() != nil {
				return
			}
		}
	}
}

// append appends a batch. The sequence number determines the number of its events, so
// that a repetition is the same.
func (w *writer) append(ctx context.Context, c *client.Client, session string) bool {
	if w.seq == nil {
		w.seq = map[string]int64{}
	}
	seq := w.seq[session]
	size := int(seq%5) + 1
	var body strings.Builder
	for i := range size {
		fmt.Fprintf(&body, `{"type":"test.note","data":{"key":"%s","pad":"%s"}}`+"\n", w.key(session, seq, i), w.pad)
	}
	done, err := c.Append(ctx, session, strings.NewReader(body.String()),
		client.AppendOptions{Producer: &tapedeck.Producer{ID: w.name, Seq: seq}})
	if err != nil {
		return false // killed; this batch is sent again in the next round
	}
	w.world.acked.Add(1)
	w.seq[session] = seq + 1
	if done.First < 0 {
		w.t.Errorf("%s: the newest append of a producer came back as an old duplicate", w.name)
		return false
	}
	if w.acked[session] == nil {
		w.acked[session] = map[int64]string{}
	}
	for i := range size {
		w.acked[session][done.First+int64(i)] = w.key(session, seq, i)
	}
	return true
}

func (w *writer) key(session string, seq int64, i int) string {
	return fmt.Sprintf("%s/%s/%d/%d", w.name, session, seq, i)
}

// startRun starts a run that still streams its text when the server is killed.
func (w *world) startRun(ctx context.Context) {
	c := w.client()
	defer c.Close()
	s, err := c.Run(ctx, api.Task{Session: "runs", Agent: "long", Text: "talk"})
	if err == nil {
		w.runs = append(w.runs, s)
	}
}

// check reads all sessions and compares them with what the writers know.
func (w *world) check() {
	w.t.Helper()
	for _, wr := range w.writers {
		w.checkSession(wr.name, wr.acked[wr.name])
	}
	all := map[int64]string{}
	for _, wr := range w.writers {
		for offset, key := range wr.acked[shared] {
			if other, ok := all[offset]; ok {
				w.t.Errorf("offset %d of %s was acknowledged twice: %s and %s", offset, shared, other, key)
			}
			all[offset] = key
		}
	}
	w.checkSession(shared, all)
	w.checkRuns()
}

func (w *world) checkSession(session string, acked map[int64]string) {
	w.t.Helper()
	keys := map[string]int64{}
	next := int64(0)
	for e := range w.read(session) {
		if e.Offset != next {
			w.t.Fatalf("%s: offset %d follows %d", session, e.Offset, next-1)
		}
		next++
		var d struct{ Key string }
		if e.Type != "test.note" {
			continue
		}
		if json.Unmarshal(e.Data, &d) != nil || d.Key == "" {
			w.t.Fatalf("%s: the event at %d is damaged: %s", session, e.Offset, e.Data)
		}
		if at, ok := keys[d.Key]; ok {
			w.t.Errorf("%s: %s is stored twice, at %d and %d", session, d.Key, at, e.Offset)
		}
		keys[d.Key] = e.Offset
		if want, ok := acked[e.Offset]; ok && want != d.Key {
			w.t.Errorf("%s: offset %d was acknowledged as %s, but it is %s", session, e.Offset, want, d.Key)
		}
	}
	for offset, key := range acked {
		if at, ok := keys[key]; !ok || at != offset {
			w.t.Errorf("%s: %s was acknowledged at %d and is lost", session, key, offset)
		}
	}
	w.checkBatches(session, keys)
	w.checked += len(keys)
}

// checkBatches checks that no batch is stored in part.
func (w *world) checkBatches(session string, keys map[string]int64) {
	w.t.Helper()
	for key := range keys {
		parts := strings.Split(key, "/")
		seq, _ := strconv.ParseInt(parts[2], 10, 64)
		for i := range int(seq%5) + 1 {
			if _, ok := keys[fmt.Sprintf("%s/%s/%d/%d", parts[0], parts[1], seq, i)]; !ok {
				w.t.Fatalf("%s: batch %d of %s is stored in part", session, seq, parts[0])
			}
		}
	}
}

func (w *world) checkRuns() {
	w.t.Helper()
	started, ended := map[string]bool{}, map[string]int{}
	for e := range w.read("runs") {
		switch e.Type {
		case "RUN_STARTED":
			started[e.Invocation] = true
		case "RUN_FINISHED", "RUN_ERROR":
			ended[e.Invocation]++
		}
	}
	for id := range started {
		if ended[id] != 1 {
			w.t.Errorf("run %s has %d terminal events after the restart", id, ended[id])
		}
	}
	for _, r := range w.runs {
		if !started[r.Invocation] {
			w.t.Errorf("run %s was acknowledged and is lost", r.Invocation)
		}
	}
}

func (w *world) read(session string) func(yield func(tapedeck.Event) bool) {
	return func(yield func(tapedeck.Event) bool) {
		c := w.client()
		defer c.Close()
		for from := int64(0); ; {
			p, err := c.Page(w.t.Context(), session, client.PageOptions{From: from})
			if err != nil {
				w.t.Fatal(err)
			}
			for _, r := range p.Records {
				e, err := r.Event()
				if err != nil {
					w.t.Fatal(err)
				}
				if !yield(e) {
					return
				}
			}
			if from = p.Next; p.CaughtUp() {
				return
			}
		}
	}
}

// follow starts followers that survive all kills: one uses the Go client, one works
// like the EventSource of a browser.
func (w *world) follow() {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.stop = cancel
	w.followers.Go(func() { w.followClient(ctx) })
	w.followers.Go(func() { w.followEventSource(ctx) })
}

func (w *world) followClient(ctx context.Context) {
	next := int64(0)
	o := client.FollowOptions{Locate: w.client}
	for r, err := range w.client().Follow(ctx, shared, o) {
		if ctx.Err() != nil {
			return
		}
		if err != nil || r.Offset != next {
			w.t.Errorf("client: offset %d, %v; want %d", r.Offset, err, next)
			return
		}
		next++
		w.seen.Store("client", next)
	}
}

func (w *world) followEventSource(ctx context.Context) { w.followEventSourceOf(ctx, shared) }

func (w *world) followEventSourceOf(ctx context.Context, session string) {
	last := ""
	for ctx.Err() == nil {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, w.server.Load().URL+"/api/v1/sessions/"+session+"/stream", nil)
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
			continue
		}
		for f, err := range sse.Read(resp.Body) {
			if err != nil {
				break
			}
			if f.Event != "" {
				continue
			}
			offset, _, _ := strings.Cut(f.ID, "@")
			if want := w.expected("EventSource"); offset != strconv.FormatInt(want, 10) {
				w.t.Errorf("EventSource: offset %s, want %d", f.ID, want)
				return
			}
			last = f.ID
			w.seen.Store("EventSource", w.expected("EventSource")+1)
		}
		resp.Body.Close()
	}
}

func (w *world) expected(name string) int64 {
	v, _ := w.seen.LoadOrStore(name, int64(0))
	return v.(int64)
}

// finish waits until the followers have received all events.
func (w *world) finish() {
	c := w.client()
	defer c.Close()
	s, err := c.Session(w.t.Context(), shared)
	if err != nil {
		w.t.Fatal(err)
	}
	w.awaitSeen("client", s.Head)
	w.awaitSeen("EventSource", s.Head)
	w.stop()
	w.followers.Wait()
}

// awaitSeen waits until a follower has received all events below an offset.
func (w *world) awaitSeen(follower string, head int64) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); w.expected(follower) < head; {
		if time.Now().After(deadline) {
			w.t.Errorf("%s received %d of %d events", follower, w.expected(follower), head)
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}
