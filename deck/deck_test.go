package deck_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/payload"
)

const secret = "correct-horse-battery-staple"

func openAt(t *testing.T, dir string, o deck.Options) *deck.Deck {
	t.Helper()
	d, err := deck.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return d
}

func get(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "127.0.0.1"
	h.ServeHTTP(w, r)
	return w.Body.String()
}

// TestErasedTextIsGone: whatever was read before, an embedded server serves
// nothing of an erased text, and no file has it. An embedder calls nothing for it.
func TestErasedTextIsGone(t *testing.T) {
	for _, inMemory := range []bool{true, false} {
		dir := t.TempDir()
		d := openAt(t, dir, deck.Options{InMemory: inMemory})
		s, err := d.Create(t.Context(), api.NewSession{ID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		message := payload.NewMessage("m1", payload.RoleUser, secret)
		if _, err := s.Append(t.Context(), payload.NewEvent(payload.MessageAdded{Message: message})); err != nil {
			t.Fatal(err)
		}
		paths := []string{"snapshot", "messages", "context", "tasks", "events", "events/history", "summary", "replay-index"}
		if before := get(t, d.Handler(), "/api/v1/sessions/s/snapshot"); !strings.Contains(before, secret) {
			t.Fatalf("the snapshot before the erase lacks the text, so there is nothing to see: %s", before)
		}
		for _, p := range paths {
			get(t, d.Handler(), "/api/v1/sessions/s/"+p) // fill every cache
		}
		if _, err := s.Erase(t.Context(), api.Erase{All: true}); err != nil {
			t.Fatal(err)
		}
		for _, p := range append(paths, "export") {
			if body := get(t, d.Handler(), "/api/v1/sessions/s/"+p); strings.Contains(body, secret) {
				t.Errorf("in memory %t: %s serves the erased text: %s", inMemory, p, body)
			}
		}
		if body := get(t, d.Handler(), "/v1/stream/sessions/s"); strings.Contains(body, secret) {
			t.Errorf("in memory %t: the stream serves the erased text: %s", inMemory, body)
		}
		noFileHas(t, dir, secret)
	}
}

func noFileHas(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			t.Errorf("%s has the erased text", filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReopen: what one deck has appended, the next one reads; a folder that is
// open is refused to another.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	first := openAt(t, dir, deck.Options{})
	if _, err := first.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	if _, err := deck.Open(t.Context(), dir, deck.Options{}); tapedeck.KindOf(err) != tapedeck.Conflict {
		t.Errorf("a folder that is in use: %v, want a conflict", err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	second := openAt(t, dir, deck.Options{})
	if _, err := second.Session("s").Info(t.Context()); err != nil {
		t.Errorf("the next deck: %v", err)
	}
}

// stuck is an agent that runs until it is stopped.
func stuck(started chan<- struct{}) deck.Agent {
	return deck.Agent{Name: "stuck", Runner: tapedeck.RunnerFunc(func(ctx context.Context, _ tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
		return func(func(tapedeck.Event, error) bool) {
			close(started)
			<-ctx.Done()
		}
	})}
}

// TestServerClose: a run that is stopped has its terminal event, streams end, and
// a follower that resumes gets that event from the next deck.
func TestServerClose(t *testing.T) {
	started := make(chan struct{})
	dir := t.TempDir()
	d := openAt(t, dir, deck.Options{Agents: []deck.Agent{stuck(started)}})
	server := d.NewServer()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	run, err := d.Run(t.Context(), api.Task{Text: "wait"})
	if err != nil {
		t.Fatal(err)
	}
	<-started
	resp, err := http.Get("http://" + l.Addr().String() + "/api/v1/sessions/" + run.Session + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := server.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // it ends, by an unexpected end of the chunked encoding
	if err := <-served; err != nil {
		t.Errorf("Serve returns %v", err)
	}
	var last string
	for e, err := range openAt(t, dir, deck.Options{}).Session(run.Session).Events(t.Context(), run.Offset) {
		if err != nil {
			t.Fatal(err)
		}
		last = e.Type
	}
	if last != tapedeck.RunError {
		t.Errorf("the last event of the stopped run is %s, want %s", last, tapedeck.RunError)
	}
}
