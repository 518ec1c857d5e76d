package protocols

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/internal/testserver"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// The session and its thread in which everything happens. The name of the thread makes it
// an element of tapedeck.replay.v1.
const (
	session = "trip"
	element = "review"
	thread  = "thread_" + element
)

// A world is a server and the clients that follow the session, one for each protocol.
type world struct {
	t       *testing.T
	ctx     context.Context
	cancel  context.CancelFunc
	agent   string // of the tasks
	data    string
	args    []string
	server  *testserver.Server
	url     string // of the server
	readers []*reader
	done    sync.WaitGroup

	mu      sync.Mutex    // guards the following, and the conversations of the readers
	changed chan struct{} // closed at each change
	turn    int           // how often the readers were told to connect
	link    *link

	// cluster: all requests go to a second server of the same database, which forwards them
	// to server, and takes over when that one is killed.
	cluster bool
}

// A link is what the readers may use to reach the server until the test cuts it.
type link struct {
	url string
	ctx context.Context
	cut context.CancelFunc
	off bool // the test has cut it, or killed the server
}

// A reader follows the session in one protocol.
type reader struct {
	*world
	name string
	conversation

	// follow connects, continues where the reader is, and returns nil when the server
	// has ended the stream because nothing follows.
	follow func(ctx context.Context, r *reader, url string) error
	// reload, if it is not nil, makes the next follow begin as a page does that was
	// loaded again. Other clients of this kind are told when the session goes back, or
	// begin at every connect.
	reload func()
	leave  context.CancelFunc // ends the open connection

	byKind  bool     // it has no order between messages, thoughts and calls
	without []string // the kinds that the protocol leaves out
	parts   bool     // a text that was opened again is one message for each part
	whole   bool     // it gets only messages that are complete
	atEnd   bool     // it shows messages and calls in the order in which they end
	mixed   bool     // in this test messages and calls mix
	late    bool     // it learns of a rewind only in the next run
}

func newWorld(t *testing.T, agent string, args ...string) *world {
	t.Helper()
	testserver.Binary(t) // so that its build does not count
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	w := &world{t: t, ctx: ctx, agent: agent, data: t.TempDir() + "/data", args: args, changed: make(chan struct{})}
	switch os.Getenv("TAPEDECK_TEST_STORE") {
	case "postgres":
		w.args = append(slices.Clone(args), "--postgres", databaseOf(t), "--postgres-lease", "1s")
	case "cluster":
		w.args = append(slices.Clone(args), "--postgres", databaseOf(t), "--postgres-lease", "1s", "--standby")
		w.cluster = true
	}
	w.readers = allReaders()
	w.cancel = cancel
	w.start()
	return w
}

func TestMain(m *testing.M) { pgtest.Main(m) }

// databaseOf returns the URL of an empty database.
func databaseOf(t *testing.T) string {
	t.Helper()
	c := pgtest.Shared(t)
	db, err := c.Database()
	if err != nil {
		t.Fatal(err)
	}
	return c.URL(db)
}

// allReaders returns a reader for each protocol.
func allReaders() []*reader {
	return []*reader{
		nativeStream(), nativeSocket(), replaySocket(), longPoll(), durableStream(), messagesView(), aguiView(),
		agui(), a2aResuming(), a2aListing(), tasks(), mcpReader("2025-11-25"), mcpReader("2026-07-28"),
	}
}

// stop ends the readers, before the server is killed at the end of the test.
func (w *world) stop() {
	w.cancel()
	w.done.Wait()
}

// start starts the server, again if it was killed. The readers connect to it.
func (w *world) start() {
	w.t.Helper()
	w.server = testserver.Start(w.t, w.data, w.args...)
	switch {
	case !w.cluster:
		w.url = w.server.URL
	case w.url == "":
		w.url = testserver.Start(w.t, w.t.TempDir()+"/other", w.args...).URL
	}
	w.connect()
}

// api returns the client of the HTTP API.
func (w *world) api() *client.Client {
	w.t.Helper()
	c, err := client.New(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// connect lets the readers connect over a new link.
func (w *world) connect() {
	w.change(func() {
		l := &link{url: w.url}
		l.ctx, l.cut = context.WithCancel(w.ctx)
		w.link = l
		w.turn++
	})
}

// again lets the readers connect again whose streams have ended, as after a new task.
func (w *world) again() { w.change(func() { w.turn++ }) }

// kill kills the server. Clients that wait before they notice it are told.
func (w *world) kill() {
	w.change(func() { w.link.off = true })
	w.server.Kill()
	w.link.cut()
}

// cut ends all connections, and lets the readers connect again.
func (w *world) cut() {
	w.change(func() { w.link.off = true })
	w.link.cut()
	w.connect()
}

// reloadPages lets the readers begin again that are not told when a session goes back.
func (w *world) reloadPages() {
	w.change(func() {
		for _, r := range w.readers {
			if r.reload != nil {
				r.reload()
				r.leave()
			}
		}
		w.turn++
	})
}

// followAll starts the readers.
func (w *world) followAll() {
	for _, r := range w.readers {
		r.world, r.leave = w, func() {}
		w.done.Go(r.run)
	}
}

// run follows the session through any number of links.
func (r *reader) run() {
	for turn := 0; ; {
		if !r.wait(func() bool { return r.turn > turn && !r.link.off }) {
			return
		}
		r.mu.Lock()
		l := r.link
		turn = r.turn
		var ctx context.Context
		ctx, r.leave = context.WithCancel(l.ctx)
		r.mu.Unlock()
		err := r.follow(ctx, r, l.url)
		r.mu.Lock()
		if err != nil && !l.off && ctx.Err() == nil {
			r.t.Errorf("%s: %v", r.name, err)
		}
		r.mu.Unlock()
	}
}

// change changes what the mutex guards, and wakes those that wait.
func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

// wait waits until a condition holds. It reports false if the test ends before.
func (w *world) wait(condition func() bool) bool {
	for {
		w.mu.Lock()
		holds, changed := condition(), w.changed
		w.mu.Unlock()
		if holds {
			return true
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			return false
		}
	}
}

// shown returns what a reader shows, in the form of a comparison.
func (r *reader) shown() []item { return r.compared(&r.conversation) }

// compared returns a conversation as far as the protocol of the reader can show it.
func (r *reader) compared(c *conversation) []item {
	items := slices.DeleteFunc(c.normal(), func(it item) bool { return slices.Contains(r.without, it.Kind) })
	if r.parts && !r.mixed {
		items = joined(items)
	}
	if r.byKind {
		items = byKind(items)
	}
	if r.mixed && r.atEnd {
		slices.SortFunc(items, func(a, b item) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return items
}

// awaitText waits until all readers show a text of the agent that ends with words, or
// continues after them.
func (w *world) awaitText(words string) {
	w.t.Helper()
	w.awaitEach("the words "+words, func(r *reader) bool {
		return r.whole || slices.ContainsFunc(r.items, func(it *item) bool {
			return it.Kind == payload.RoleAssistant && strings.Contains(it.Text, words)
		})
	})
}

// awaitThought waits until a reader shows a thought that ends with words, or continues after
// them. Some protocols have only whole thoughts.
func (w *world) awaitThought(words string) {
	w.t.Helper()
	if !w.wait(func() bool {
		return slices.ContainsFunc(w.readers[0].items, func(it *item) bool {
			return it.Kind == payload.RoleReasoning && strings.Contains(it.Text, words)
		})
	}) {
		w.t.Fatalf("%s does not show the thought %s", w.readers[0].name, words)
	}
}

// awaitCall waits until all readers show a call of a tool.
func (w *world) awaitCall(name string) {
	w.t.Helper()
	w.awaitEach("a call of "+name, func(r *reader) bool {
		return r.whole || slices.ContainsFunc(r.items, func(it *item) bool { return it.Kind == call && it.Name == name })
	})
}

// awaitSame waits until all readers show the conversation of the snapshot, and returns it.
// The log must not grow meanwhile, so a reader that shows more than that never comes to show
// it.
func (w *world) awaitSame(skip func(*reader) bool) []item {
	w.t.Helper()
	now, err := w.api().Snapshot(w.ctx, session, view.Query{Thread: thread})
	if err != nil {
		w.t.Fatal(err)
	}
	want := conversationOf(&now)
	w.awaitEach("the conversation of the snapshot", func(r *reader) bool {
		return skip != nil && skip(r) || slices.Equal(r.shown(), r.compared(want))
	}, func(r *reader) string { return gocmp.Diff(r.compared(want), r.shown(), gocmp.AllowUnexported(item{})) })
	return want.normal()
}

// awaitEach waits until something holds of all readers, and fails with those of which it
// does not.
func (w *world) awaitEach(what string, holds func(*reader) bool, show ...func(*reader) string) {
	w.t.Helper()
	left := slices.Clone(w.readers)
	missing := func() []*reader {
		left = slices.DeleteFunc(left, holds)
		return left
	}
	begin := time.Now()
	timer := time.AfterFunc(patience, func() { w.change(func() {}) })
	defer timer.Stop()
	w.wait(func() bool { return len(missing()) == 0 || time.Since(begin) > patience })
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range missing() {
		text := fmt.Sprint(r.shown())
		if len(show) > 0 {
			text = "(-wanted +shown)\n" + show[0](r)
		}
		w.t.Errorf("%s does not show %s: %s", r.name, what, text)
	}
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// patience is how long a reader may take to show something.
const patience = time.Minute

// stream sends a request and takes the frames of its answer until the answer ends. An
// answer that is no stream is an error.
func (r *reader) stream(req *http.Request, take func(sse.Frame) error) (status int, err error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		var b bytes.Buffer
		_, _ = b.ReadFrom(resp.Body)
		return resp.StatusCode, fmt.Errorf("%s: %w", req.URL, &noStream{resp.Status, b.Bytes()})
	}
	for f, err := range sse.Read(resp.Body) {
		if err != nil {
			return resp.StatusCode, err
		}
		if err := take(f); err != nil {
			return resp.StatusCode, err
		}
	}
	return resp.StatusCode, nil
}

// A noStream is an answer that is no stream.
type noStream struct {
	status string
	body   []byte
}

func (n *noStream) Error() string { return n.status + " " + string(n.body) }

func request(ctx context.Context, method, url, body string, header ...string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	return req
}
