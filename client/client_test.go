package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/runner/script"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

// A testServer is a real server. A test can cut its connections.
type testServer struct {
	*client.Client
	hub    *hub.Hub
	server *httptest.Server
	budget atomic.Int64 // bytes that an event stream may send before it is cut; 0 for no end
	status atomic.Int64 // what to answer instead; 0 for the truth
}

func open(t *testing.T) *testServer {
	t.Helper()
	h := &testServer{hub: hub.New(memory.New(memory.Options{}))}
	e := engine.New(engine.Options{Store: h.hub, Agents: []engine.Agent{
		{Agent: tapedeck.Agent{Name: "hello", Kind: "script"}, Runner: script.New(script.Options{Script: "hello", Instant: true})},
		{Agent: tapedeck.Agent{Name: "long", Kind: "script"}, Runner: script.New(script.Options{Script: "long"})},
	}})
	handler := rest.New(rest.Options{Verbs: e, Sessions: h.hub, Views: projection.New(projection.Options{Store: h.hub})})
	h.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s := h.status.Load(); s != 0 {
			w.WriteHeader(int(s))
			return
		}
		if n := h.budget.Load(); n > 0 && strings.HasSuffix(r.URL.Path, "/stream") {
			w = &cutWriter{ResponseWriter: w, left: n}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		h.server.CloseClientConnections()
		h.server.Close()
		_ = e.Shutdown(context.WithoutCancel(t.Context()))
	})
	c, err := client.New(h.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	h.Client = c
	return h
}

// A cutWriter breaks the connection after some bytes.
type cutWriter struct {
	http.ResponseWriter
	left int64
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		_, _ = w.ResponseWriter.Write(p[:w.left])
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	w.left -= int64(len(p))
	return w.ResponseWriter.Write(p)
}

func (w *cutWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func notes(n int) *strings.Reader {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"type":"test.note","data":{"n":%d}}`+"\n", i)
	}
	return strings.NewReader(b.String())
}

func TestSessionsThereAndBack(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	made, err := h.Create(ctx, api.NewSession{ID: "s", Title: "A title", Owner: "ada", Labels: map[string]string{"k": "v"}})
	if err != nil || made.Title != "A title" || made.Labels["k"] != "v" {
		t.Fatalf("created %+v, %v", made, err)
	}
	five := int64(1)
	done, err := h.Append(ctx, "s", notes(3), client.AppendOptions{Expect: &five, Producer: &tapedeck.Producer{ID: "p"}})
	if err != nil || done.First != 1 || done.Next != 4 || done.Head != 4 || done.Duplicate {
		t.Fatalf("appended %+v, %v", done, err)
	}
	if done, err = h.Append(ctx, "s", notes(3), client.AppendOptions{Producer: &tapedeck.Producer{ID: "p"}}); err != nil || !done.Duplicate || done.First != 1 {
		t.Errorf("repeated: %+v, %v", done, err)
	}
	p, err := h.Page(ctx, "s", client.PageOptions{From: 1, Limit: 2})
	if err != nil || len(p.Records) != 2 || p.Records[0].Offset != 1 || p.Next != 3 || p.CaughtUp() {
		t.Errorf("page %+v, %v", p, err)
	}
	if p, err = h.Page(ctx, "s", client.PageOptions{Types: []string{"session.created"}}); err != nil || len(p.Records) != 1 {
		t.Errorf("filtered page %+v, %v", p, err)
	}
	list, err := h.Sessions(ctx, tapedeck.Filter{Owner: "ada", Query: "TITLE"})
	if err != nil || len(list.Sessions) != 1 || list.Next != "" || list.Sessions[0].Head != 4 {
		t.Errorf("list %+v, %v", list, err)
	}
	for value, want := range map[string]int{"v": 1, "other": 0} {
		list, err := h.Sessions(ctx, tapedeck.Filter{Labels: map[string]string{"k": value}})
		if err != nil || len(list.Sessions) != want {
			t.Errorf("list of the label %s: %+v, %v", value, list, err)
		}
	}
	if raw, err := h.Snapshot(ctx, "s", view.Query{}); err != nil || raw.At == 0 {
		t.Errorf("snapshot %+v, %v", raw, err)
	}
	if err := h.Delete(ctx, "s"); err != nil {
		t.Error(err)
	}
	if _, err := h.Session(ctx, "s"); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("after delete: %v", err)
	}
}

func TestRunAndCancel(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	agents, err := h.Agents(ctx)
	if err != nil || len(agents) != 2 || agents[0].Name != "hello" {
		t.Fatalf("agents %v, %v", agents, err)
	}
	s, err := h.Run(ctx, api.Task{Text: "say hello", Agent: "long", Title: "T"})
	if err != nil {
		t.Fatal(err)
	}
	o := client.FollowOptions{Until: true}
	o.From, o.Invocation = s.Offset, s.Invocation
	last := ""
	for r, err := range h.Follow(ctx, s.Session, o) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := r.Event()
		if err != nil {
			t.Fatal(err)
		}
		if last = e.Type; e.Type == tapedeck.TextMessageContent && o.From >= 0 {
			o.From = -1 // once
			if done, err := h.Cancel(ctx, s.Session, ""); err != nil || done.Invocation != s.Invocation || !done.Resumable {
				t.Fatalf("cancelled %+v, %v", done, err)
			}
		}
	}
	if last != tapedeck.RunFinished {
		t.Errorf("the stream of the run ended with %s", last)
	}
	if _, err := h.Cancel(ctx, s.Session, ""); tapedeck.KindOf(err) != tapedeck.Conflict {
		t.Errorf("a cancel of nothing: %v", err)
	}
}

// TestFollowThroughCuts cuts every connection after some bytes, for every number
// of bytes: each event comes exactly once all the same.
func TestFollowThroughCuts(t *testing.T) {
	h := open(t)
	if _, err := h.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Append(t.Context(), "s", notes(40), client.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	for budget := int64(200); budget < 800; budget += 37 {
		h.budget.Store(budget)
		next, lost := int64(0), 0
		o := client.FollowOptions{OnReconnect: func(int, error) { lost++ }}
		for r, err := range h.Follow(t.Context(), "s", o) {
			if err != nil || r.Offset != next {
				t.Fatalf("budget %d: offset %d, %v; want %d", budget, r.Offset, err, next)
			}
			if next++; next == 6 {
				break
			}
		}
		if lost == 0 && budget < 300 {
			t.Errorf("budget %d: the connection was never lost; the test shows nothing", budget)
		}
	}
}

// TestFilteredFollowThroughCuts: who is shown some of the events goes on after the
// last of them all the same.
func TestFilteredFollowThroughCuts(t *testing.T) {
	h := open(t)
	if _, err := h.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	in := strings.Repeat(`{"type":"test.note"}`+"\n"+`{"type":"test.other"}`+"\n", 20)
	if _, err := h.Append(t.Context(), "s", strings.NewReader(in), client.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	h.budget.Store(400)
	want, lost := int64(1), 0
	o := client.FollowOptions{OnReconnect: func(int, error) { lost++ }}
	o.Types = []string{"test.note"}
	for r, err := range h.Follow(t.Context(), "s", o) {
		if err != nil || r.Offset != want {
			t.Fatalf("offset %d, %v; want %d", r.Offset, err, want)
		}
		if want += 2; want > 11 {
			break
		}
	}
	if lost == 0 {
		t.Error("the connection was never lost; the test shows nothing")
	}
}

// TestFollowReplaced: while the connection is lost, the session is deleted and created again.
// Follow ends with an error, before any event of the new one, also if it had no event yet.
func TestFollowReplaced(t *testing.T) {
	for name, from := range map[string]int64{"after events": 0, "at the head": 41} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			create := func() {
				if _, err := h.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
					t.Fatal(err)
				}
				if _, err := h.Append(t.Context(), "s", notes(40), client.AppendOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			create()
			replaced := false
			o := client.FollowOptions{PageOptions: client.PageOptions{From: from}, OnCaughtUp: func(int64) {
				if replaced {
					t.Error("it follows the new session")
				}
				h.server.CloseClientConnections()
			}, OnReconnect: func(int, error) {
				replaced = true
				if err := h.hub.Delete(t.Context(), "s"); err != nil {
					t.Error(err)
				}
				create()
			}}
			var last error
			n := int64(0)
			for r, err := range h.Follow(t.Context(), "s", o) {
				if last = err; err == nil {
					n = r.Offset + 1
				}
			}
			if tapedeck.KindOf(last) != tapedeck.Replaced || !replaced || from == 0 && n != 41 {
				t.Errorf("%d events, then %v", n, last)
			}
		})
	}
}

// The pages of one session are of one history: the next page of one that was created again
// is refused.
func TestPageReplaced(t *testing.T) {
	h := open(t)
	for n := range 2 {
		if _, err := h.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Append(t.Context(), "s", notes(40), client.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		p, err := h.Page(t.Context(), "s", client.PageOptions{Limit: 10})
		if err != nil || p.Gen == 0 {
			t.Fatal(p.Gen, err)
		}
		next := client.PageOptions{From: p.Next, Gen: p.Gen}
		if rest, err := h.Page(t.Context(), "s", next); err != nil || len(rest.Records) != 31 {
			t.Fatalf("%d: %d events, %v", n, len(rest.Records), err)
		}
		if err := h.hub.Delete(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			break
		}
		if _, err := h.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Append(t.Context(), "s", notes(40), client.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		if rest, err := h.Page(t.Context(), "s", next); tapedeck.KindOf(err) != tapedeck.Replaced {
			t.Errorf("%d events, %v", len(rest.Records), err)
		}
		if err := h.hub.Delete(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFollowEnds(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	if _, err := h.Create(ctx, api.NewSession{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.hub.Append(ctx, tapedeck.Append{Session: "s", Close: true, Events: []tapedeck.Event{{Type: tapedeck.SessionClosed}}}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range h.Follow(ctx, "s", client.FollowOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d events of a closed session, want 2", n)
	}
	for _, c := range []struct {
		name    string
		session string
		from    int64
		want    tapedeck.Kind
	}{{"no such session", "nobody", 0, tapedeck.NotFound}, {"beyond the head", "s", 99, tapedeck.Invalid}} {
		t.Run(c.name, func(t *testing.T) {
			for _, err := range h.Follow(ctx, c.session, client.FollowOptions{PageOptions: client.PageOptions{From: c.from}}) {
				if tapedeck.KindOf(err) != c.want {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	t.Run("deleted", func(t *testing.T) {
		if _, err := h.Create(ctx, api.NewSession{ID: "gone"}); err != nil {
			t.Fatal(err)
		}
		o := client.FollowOptions{OnCaughtUp: func(int64) {
			if err := h.Delete(ctx, "gone"); err != nil {
				t.Error(err)
			}
		}}
		var last error
		for _, err := range h.Follow(ctx, "gone", o) {
			last = err
		}
		if tapedeck.KindOf(last) != tapedeck.NotFound {
			t.Errorf("got %v; a deleted session must not end like a closed one", last)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		h.status.Store(http.StatusServiceUnavailable) // it would try for ever
		ctx, cancel := context.WithCancel(ctx)
		o := client.FollowOptions{OnReconnect: func(attempt int, _ error) {
			if attempt == 2 {
				cancel()
			}
		}}
		for _, err := range h.Follow(ctx, "s", o) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestErrors(t *testing.T) {
	h := open(t)
	for _, bad := range []string{"", "localhost:4747", "ftp://x", "http://", "http://x:99999", "http://x:0"} {
		if _, err := client.New(bad); tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("New(%q): %v", bad, err)
		}
	}
	for _, secret := range []string{"ftp://ada:hunter-22@h", "http://h/?key=hunter-22", "http://ada:hunter-22@127.0.0.1:1", "http://ada:hunter-22@[::1"} {
		c, err := client.New(secret)
		if err == nil {
			err = c.Ping(t.Context())
		}
		if err == nil || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v", secret, err)
		}
	}
	_, err := h.Session(t.Context(), "nobody")
	var te *tapedeck.Error
	if !errors.As(err, &te) || te.Kind != tapedeck.NotFound || !strings.Contains(te.Message, "nobody") {
		t.Errorf("got %#v", err)
	}
	h.status.Store(http.StatusBadGateway) // a proxy answers while the server restarts
	if _, err := h.Session(t.Context(), "s"); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Errorf("a proxy's error: %v", err)
	}
	h.server.Close()
	if _, err := h.Session(t.Context(), "s"); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Errorf("a server that is closed: %v", err)
	}
}

// TestFollowEndsAfterTheLastEvent: if the connection breaks between the terminal event and
// the end of the stream, Follow ends. It does not wait for the next run.
func TestFollowEndsAfterTheLastEvent(t *testing.T) {
	h := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	started, err := h.Run(ctx, api.Task{Text: "hi", Agent: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	o := client.FollowOptions{PageOptions: client.PageOptions{From: started.Offset}, Until: true}
	for _, err := range h.Follow(ctx, started.Session, o) {
		if err != nil {
			t.Fatal(err)
		}
	}
	resp, err := http.Get(h.server.URL + "/api/v1/sessions/" + started.Session + "/stream?until=terminal&fromOffset=" + fmt.Sprint(started.Offset))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	whole, err := io.ReadAll(resp.Body)
	end := strings.Index(string(whole), "event: end")
	if err != nil || end < 0 {
		t.Fatalf("%v\n%s", err, whole)
	}
	h.budget.Store(int64(end))
	last, cuts := "", 0
	o.OnReconnect = func(int, error) { cuts++; h.budget.Store(0) }
	for r, err := range h.Follow(ctx, started.Session, o) {
		if err != nil {
			t.Fatalf("after %s: %v", last, err)
		}
		e, err := r.Event()
		if err != nil {
			t.Fatal(err)
		}
		last = e.Type
	}
	if last != tapedeck.RunFinished || cuts != 1 {
		t.Errorf("the last event is %s, after %d cuts", last, cuts)
	}
}
