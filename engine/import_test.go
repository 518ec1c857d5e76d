package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/engine/exchange"
	"github.com/tapedeck/tapedeck/store/memory"
)

// importer returns an engine over a store whose commits fail on request.
func importer(t testing.TB, fail func() error) (*engine.Engine, tapedeck.Store) {
	t.Helper()
	store := memory.New(memory.Options{FailCommit: fail})
	e := engine.New(engine.Options{Store: store})
	t.Cleanup(func() {
		if err := e.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e, store
}

// talk is a session file with n turns, one per minute.
func talk(n int) string {
	var b strings.Builder
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	for i := range n {
		fmt.Fprintf(&b, `{"type":"user","uuid":"u%d","timestamp":%q,"message":{"content":"question %d"}}`+"\n", i, at.Format(time.RFC3339), i)
		at = at.Add(30 * time.Second)
		fmt.Fprintf(&b, `{"type":"assistant","timestamp":%q,"message":{"id":"a%d","content":"answer %d"}}`+"\n", at.Format(time.RFC3339), i, i)
		at = at.Add(30 * time.Second)
	}
	return b.String()
}

func eventsOf(t testing.TB, l tapedeck.Log, session string) []tapedeck.Event {
	t.Helper()
	var events []tapedeck.Event
	for e, err := range tapedeck.Events(context.Background(), l, session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func sessionsIn(t testing.TB, c tapedeck.Catalogue) []tapedeck.Session {
	t.Helper()
	all, err := c.List(context.Background(), tapedeck.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return all.Sessions
}

func TestImport(t *testing.T) {
	e, store := importer(t, nil)
	in := api.ImportRequest{Format: exchange.ClaudeCode, Owner: "ada", Actor: "user:ada"}
	done, err := e.Import(t.Context(), in, strings.NewReader(talk(500)+`{"type":"progress"}`+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Sessions) != 1 || done.Lines != 1001 || len(done.Skipped) != 1 || done.Skipped[0].Line != 1001 {
		t.Fatalf("%+v", done)
	}
	events := eventsOf(t, store, done.Sessions[0])
	if len(events) != done.Events || done.Events != 2+500*6 {
		t.Errorf("%d events in the log, %d told", len(events), done.Events)
	}
	s, err := store.Head(t.Context(), done.Sessions[0])
	if err != nil {
		t.Fatal(err)
	}
	if s.Title != "question 0" || s.Owner != "ada" || s.Status != tapedeck.StatusComplete || len(s.Runs) > 0 {
		t.Errorf("%+v", s)
	}
	last := events[len(events)-2] // before session.imported, which has the time of the import
	if want := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC).Add(500*time.Minute - 30*time.Second); !last.Time.Equal(want) {
		t.Errorf("the last event is of %s, want %s", last.Time, want)
	}
}

// TestImportGoesOn: an imported session can be continued like any other.
func TestImportGoesOn(t *testing.T) {
	e, _ := importer(t, nil)
	done, err := e.Import(t.Context(), api.ImportRequest{Format: exchange.ClaudeCode}, strings.NewReader(talk(2)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Append(t.Context(), tapedeck.Append{Session: done.Sessions[0], Events: []tapedeck.Event{
		{Type: tapedeck.RunStarted, Invocation: "inv_next"}, {Type: tapedeck.RunFinished, Invocation: "inv_next"},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTaskDuringAnImport: a session that is being imported takes no task, and says why, until the
// import is complete.
func TestTaskDuringAnImport(t *testing.T) {
	e, _ := importer(t, nil)
	const file = `{"tapedeck":1,"session":{"id":"one","head":1}}
{"offset":0,"type":"session.created","data":{}}
{"tapedeck":1,"session":{"id":"two","head":1}}
{"offset":0,"type":"session.created","data":{}}
`
	var during []error
	creating := func(context.Context) (func(), error) {
		_, err := e.Start(t.Context(), api.Task{Session: "one", Text: "go", Agent: "nobody"})
		during = append(during, err)
		return func() {}, nil
	}
	if _, err := e.Import(t.Context(), api.ImportRequest{Format: exchange.NDJSON, Creating: creating}, strings.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	if tapedeck.KindOf(during[0]) != tapedeck.NotFound || tapedeck.KindOf(during[1]) != tapedeck.Conflict || !strings.Contains(during[1].Error(), "session one is being imported") {
		t.Errorf("%v", during)
	}
	if _, err := e.Start(t.Context(), api.Task{Session: "one", Text: "go", Agent: "nobody"}); err == nil || strings.Contains(err.Error(), "imported") {
		t.Errorf("after the import: %v", err)
	}
}

func TestImportRefuses(t *testing.T) {
	long := strings.Repeat("x", 513)
	for name, in := range map[string]api.ImportRequest{
		"no format":      {},
		"unknown format": {Format: "csv"},
		"long title":     {Format: exchange.ClaudeCode, Title: long},
		"odd owner":      {Format: exchange.ClaudeCode, Owner: "a\nb"},
		"odd actor":      {Format: exchange.ClaudeCode, Actor: "\x00"},
		"other format":   {Format: exchange.OpenAIMessages},
	} {
		e, store := importer(t, nil)
		_, err := e.Import(t.Context(), in, strings.NewReader(talk(2)))
		if tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(sessionsIn(t, store)); n > 0 {
			t.Errorf("%s: %d sessions", name, n)
		}
	}
}

// conversations returns n conversations of m messages, one per line.
func conversations(n, m int) string {
	one := `{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"q"},{"role":"assistant","content":"a"},`, m/2), ",") + "]}\n"
	return strings.Repeat(one, n)
}

// TestImportOfBrokenInput: if the input is broken after three conversations, one
// of which was appended in several parts, no session remains.
func TestImportOfBrokenInput(t *testing.T) {
	e, store := importer(t, nil)
	_, err := e.Import(t.Context(), api.ImportRequest{Format: exchange.OpenAIMessages}, strings.NewReader(conversations(3, 1000)+`{"mess`))
	if tapedeck.KindOf(err) != tapedeck.Invalid || !strings.Contains(err.Error(), "line 4 ") {
		t.Errorf("%v", err)
	}
	if left := sessionsIn(t, store); len(left) > 0 {
		t.Errorf("%d sessions are left", len(left))
	}
}

// TestImportOverFailingCommits lets each commit of an import fail in turn.
func TestImportOverFailingCommits(t *testing.T) {
	full := errors.New("disk full")
	for n := 1; ; n++ {
		commits := 0
		e, store := importer(t, func() error {
			if commits++; commits == n {
				return full
			}
			return nil
		})
		done, err := e.Import(t.Context(), api.ImportRequest{Format: exchange.OpenAIMessages}, strings.NewReader(conversations(2, 1000)))
		if err == nil {
			if commits >= n || len(sessionsIn(t, store)) != 2 || n < 5 {
				t.Errorf("after %d commits: %+v", commits, done)
			}
			return
		}
		if left := sessionsIn(t, store); len(left) > 0 || len(done.Sessions) > 0 {
			t.Errorf("commit %d failed: %v; %d sessions are left", n, err, len(left))
		}
	}
}

// cancelling is a reader that cancels at its end.
type cancelling struct {
	io.Reader
	cancel func()
}

func (c cancelling) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err == io.EOF {
		c.cancel()
	}
	return n, err
}

func TestImportCancelled(t *testing.T) {
	e, store := importer(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	in := cancelling{strings.NewReader(conversations(3, 1000)), cancel}
	_, err := e.Import(ctx, api.ImportRequest{Format: exchange.OpenAIMessages}, in)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if left := sessionsIn(t, store); len(left) > 0 {
		t.Errorf("%d sessions are left", len(left))
	}
}

// TestImportReal imports recorded conversations, which are not in the repository.
// The log then has the events and times of the decoder.
func TestImportReal(t *testing.T) {
	formats := map[string]string{"tau-bench": exchange.OpenAIMessages, "claude-code": exchange.ClaudeCode}
	for folder, format := range formats {
		files, err := filepath.Glob(filepath.Join("../../shared/transcripts", folder, "*.json*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Skipf("there are no recordings in ../shared/transcripts/%s beside the repository", folder)
		}
		for _, path := range files {
			t.Run(folder+"/"+filepath.Base(path), func(t *testing.T) { importReal(t, format, path) })
		}
	}
}

func importReal(t *testing.T, format, path string) {
	in, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e, store := importer(t, nil)
	done, err := e.Import(t.Context(), api.ImportRequest{Format: format}, strings.NewReader(string(in)))
	if err != nil {
		t.Fatal(err)
	}
	d, err := exchange.NewDecoder(format, strings.NewReader(string(in)), exchange.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for ev, err := range d.Events() {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, told(&ev))
	}
	for _, id := range done.Sessions {
		events := eventsOf(t, store, id)
		for i := range events {
			if format == exchange.OpenAIMessages || events[i].Type == tapedeck.SessionImported {
				events[i].Time = time.Time{} // the time of the import
			}
			got = append(got, told(&events[i]))
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if done.Events != len(want) {
		t.Errorf("%d events, %d told", len(want), done.Events)
	}
}

// told is the part of an event that an import preserves; ids of invocations are
// new each time.
func told(e *tapedeck.Event) string {
	data := string(e.Data)
	if e.Invocation != "" {
		data = strings.ReplaceAll(data, e.Invocation, "…")
	}
	if e.Type == tapedeck.RunStarted {
		data, _, _ = strings.Cut(data, `"parentRunId"`)
	}
	return fmt.Sprint(e.Type, " ", e.Thread, " ", e.Turn, " ", e.Time.UTC().Truncate(time.Millisecond), " ", data)
}
