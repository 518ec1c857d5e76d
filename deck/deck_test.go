package deck_test

import (
	"bytes"
	"context"
	"fmt"
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
	"github.com/tapedeck/tapedeck/search"
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

// secretRun is a task and a run that put the secret into messages and the state.
func secretRun() []tapedeck.Event {
	events := []tapedeck.Event{payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("m1", payload.RoleUser, secret)})}
	events[0].Invocation = "i" // the task of the run
	for _, line := range []string{
		`RUN_STARTED {"threadId":"main","runId":"i"}`,
		`TEXT_MESSAGE_START {"messageId":"m2","role":"assistant"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m2","delta":"` + secret + `"}`,
		`TEXT_MESSAGE_END {"messageId":"m2"}`,
		`STATE_SNAPSHOT {"snapshot":{"password":"` + secret + `"}}`,
		`RUN_FINISHED {"threadId":"main","runId":"i"}`,
	} {
		typ, data, _ := strings.Cut(line, " ")
		events = append(events, tapedeck.Event{Type: typ, Invocation: "i", Data: []byte(data)})
	}
	return events
}

func exported(t *testing.T, s *deck.Session) string {
	t.Helper()
	file, err := s.Export(t.Context(), api.ExportRequest{Format: "ndjson"})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := file.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// found searches until the index has all events: a single search waits for it only
// for a moment.
func found(t *testing.T, d *deck.Deck, text string) []search.Hit {
	t.Helper()
	for {
		result, err := d.Search(t.Context(), search.Query{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		if result.Behind == 0 {
			return result.Hits
		}
	}
}

// serving returns the paths that serve what was said in a session.
func serving(session string) []string {
	api, stream := "/api/v1/sessions/"+session+"/", "/v1/stream/sessions/"+session
	return []string{
		api + "snapshot", api + "messages", api + "state", api + "context", api + "tasks", api + "events", api + "events/history",
		stream, stream + "/views/agui", stream + "/views/messages", stream + "/views/state", stream + "/views/text",
	}
}

// TestErasedTextIsGone: whatever was read before, an embedded server serves no
// part of an erased text, neither of the session nor of its fork, and no file has
// it. The embedding program registers nothing for that.
func TestErasedTextIsGone(t *testing.T) {
	for name, inMemory := range map[string]bool{"in memory": true, "in a folder": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			testErasedTextIsGone(t, openAt(t, dir, deck.Options{InMemory: inMemory}), dir)
		})
	}
}

func testErasedTextIsGone(t *testing.T, d *deck.Deck, dir string) {
	s, err := d.Create(t.Context(), api.NewSession{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), secretRun()...); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fork(t.Context(), api.Fork{ID: "f"}); err != nil {
		t.Fatal(err)
	}
	paths := append(serving("s"), serving("f")...)
	for range 2 { // the second time from the caches
		for _, p := range paths {
			if body := get(t, d.Handler(), p); !strings.Contains(body, secret) {
				t.Fatalf("before the erase %s lacks the text, so there is nothing to see: %s", p, body)
			}
		}
	}
	if body := exported(t, s); !strings.Contains(body, secret) {
		t.Fatalf("before the erase the export lacks the text: %s", body)
	}
	if hits := found(t, d, "battery"); len(hits) == 0 {
		t.Fatal("before the erase the text is not found")
	}
	if _, err := s.Erase(t.Context(), api.Erase{All: true}); err != nil {
		t.Fatal(err)
	}
	noFileHas(t, dir, secret) // at once: a search would find the receipt, and remove the text from the index then
	for _, p := range paths {
		if body := get(t, d.Handler(), p); strings.Contains(body, secret) {
			t.Errorf("%s serves the erased text: %s", p, body)
		}
	}
	if body := exported(t, s); strings.Contains(body, secret) {
		t.Errorf("the export has the erased text: %s", body)
	}
	if hits := found(t, d, "battery"); len(hits) > 0 {
		t.Errorf("the erased text is found: %+v", hits)
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
	if body, _ := io.ReadAll(resp.Body); !bytes.Contains(body, []byte(tapedeck.RunError)) { // it ends by an unexpected end of the chunked encoding
		t.Errorf("the stream ends without the terminal event: %s", body)
	}
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

// TestHandlerClose: if a program has a server of its own, Close ends the streams of the
// handler, and the iterations of Follow, after they have the terminal event of the run.
// Later requests are refused.
func TestHandlerClose(t *testing.T) {
	started := make(chan struct{})
	d := openAt(t, t.TempDir(), deck.Options{Agents: []deck.Agent{stuck(started)}})
	server := httptest.NewServer(d.Handler())
	defer server.Close()
	run, err := d.Run(t.Context(), api.Task{Text: "wait"})
	if err != nil {
		t.Fatal(err)
	}
	<-started
	resp, err := http.Get(server.URL + "/api/v1/sessions/" + run.Session + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	followed, begun := make(chan error, 1), make(chan struct{})
	go func() {
		last := ""
		for e, err := range d.Follow(context.Background(), run.Session, run.Offset) {
			switch {
			case err == nil && last == "":
				close(begun)
			case tapedeck.KindOf(err) == tapedeck.Unavailable && last == tapedeck.RunError:
				followed <- nil
				return
			case err != nil:
				followed <- fmt.Errorf("after %s: %w", last, err)
				return
			}
			last = e.Type
		}
		followed <- fmt.Errorf("it ends without an error after %s", last)
	}()
	<-begun
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(resp.Body); !bytes.Contains(body, []byte(tapedeck.RunError)) {
		t.Errorf("the stream ends without the terminal event: %s", body)
	}
	if err := <-followed; err != nil {
		t.Error(err)
	}
	late, err := http.Get(server.URL + "/api/v1/sessions")
	if err != nil {
		t.Fatal(err)
	}
	defer late.Body.Close()
	if late.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("after Close the handler answers %s", late.Status)
	}
}
