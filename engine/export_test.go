package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/engine/exchange"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

func export(t testing.TB, e *engine.Engine, in api.ExportRequest) string {
	t.Helper()
	x, err := e.Export(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := x.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func ndjson(t testing.TB, e *engine.Engine, session string) string {
	t.Helper()
	return export(t, e, api.ExportRequest{Session: session, Format: exchange.NDJSON})
}

// seen is the visible state of a session.
type seen struct {
	Entry    tapedeck.Session
	Events   []tapedeck.Event
	Jumps    []tapedeck.Jump
	Snapshot view.Snapshot
}

// look returns the visible state of a session, without what an export does not
// carry: when the session was created here, and its parent.
func look(t testing.TB, store tapedeck.Store, id string) seen {
	t.Helper()
	s := seen{Events: eventsOf(t, store, id)}
	var err error
	if s.Entry, err = store.Head(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	for i := range s.Events {
		if j, ok := s.Events[i].Jump(); ok {
			s.Jumps = append(s.Jumps, j)
		}
	}
	c, err := view.Fold(tapedeck.Events(context.Background(), store, id, 0), view.NewTimeline(s.Jumps), s.Entry.Head)
	if err != nil {
		t.Fatal(err)
	}
	s.Snapshot = c.Snapshot()
	e := &s.Entry
	e.ID, e.Gen, e.Created, e.Updated, e.Parent, e.ForkedAt, e.Origin = "", 0, s.Events[0].Time, s.Events[0].Time, "", 0, ""
	e.Active, e.Spent = time.Time{}, nil // a fork has those of its own events only
	return s
}

// TestRoundTrip: a session that was cancelled, rewound, undone and forked is the
// same after an export and an import.
func TestRoundTrip(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("a")
		first := w.start("a")
		synctest.Wait()
		_, err := w.Cancel(w.Context(), "a", first.Invocation)
		w.must(err)
		second := w.start("a")
		synctest.Wait()
		_, err = w.Cancel(w.Context(), "a", second.Invocation)
		w.must(err)
		back, err := w.Rewind(w.Context(), api.Rewind{Session: "a", BeforeInvocation: second.Invocation})
		w.must(err)
		_, err = w.Fork(w.Context(), api.Fork{Parent: "a", ID: "rewound"})
		w.must(err)
		w.must(w.append("rewound", `message.added {"message":{"id":"x","role":"user","content":"hi"}}`))
		_, err = w.Undo(w.Context(), api.Undo{Session: "a", Marker: back.Marker})
		w.must(err)
		_, err = w.Append(w.Context(), tapedeck.Append{Session: "rewound", Events: []tapedeck.Event{{Type: "acme.note", Thread: "side"}}})
		w.must(err)
		_, err = w.Clear(w.Context(), api.Clear{Session: "rewound", Thread: "side"})
		w.must(err)
		w.must(w.Close(w.Context(), "rewound", "user:ada"))

		w.roundTrip("a")
		w.roundTrip("rewound")
	})
}

// TestRoundTripOfAForkInARun: a run that a fork interrupted stays interrupted.
func TestRoundTripOfAForkInARun(t *testing.T) {
	var s tapedeck.Session
	s.Apply(&tapedeck.Event{Type: tapedeck.RunStarted, Invocation: "i"})
	if s.Apply(&tapedeck.Event{Type: tapedeck.SessionForked}); len(s.Runs) > 0 {
		t.Skip("to the catalogue a run that was open before a fork is open after it")
	}
	inBubble(t, chatty, func(w *world) {
		w.create("a")
		w.start("a")
		synctest.Wait()
		_, err := w.Fork(w.Context(), api.Fork{Parent: "a", ID: "fork"})
		w.must(err)
		w.roundTrip("fork")
	})
}

// TestRoundTripOfErased: the remains of erased events are exported and imported.
func TestRoundTripOfErased(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("a")
		run := w.start("a")
		synctest.Wait()
		_, err := w.Cancel(w.Context(), "a", run.Invocation)
		w.must(err)
		_, err = w.Erase(w.Context(), api.Erase{Session: "a", All: true, Reason: "test"})
		w.must(err)
		if file := ndjson(w, w.Engine, "a"); strings.Contains(file, "half a") {
			w.Error("the export has erased text")
		}
		w.roundTrip("a")
	})
}

// roundTrip exports a session, imports it into another store, and compares.
func (w *world) roundTrip(id string) {
	w.Helper()
	e, store := importer(w, nil)
	file := ndjson(w, w.Engine, id)
	done, err := e.Import(w.Context(), api.ImportRequest{Format: exchange.Auto}, strings.NewReader(file))
	w.must(err)
	if done.Sessions[0] != id {
		w.Errorf("%s became %s", id, done.Sessions[0])
	}
	if d := cmp.Diff(look(w, w.store, id), look(w, store, id), cmpopts.EquateEmpty()); d != "" {
		w.Errorf("%s (-exported +imported):\n%s", id, d)
	}
	if again := ndjson(w, e, id); events(again) != events(file) {
		w.Errorf("%s exported again: %s", id, cmp.Diff(file, again))
	}
}

// events returns the lines of an export that are events.
func events(file string) string {
	_, after, _ := strings.Cut(file, "\n")
	return after
}

// TestRoundTripOfAnImport: what was imported from another program is the same after an
// export and an import.
func TestRoundTripOfAnImport(t *testing.T) {
	for name, format := range map[string]string{
		"agui": exchange.AGUI, "asciicast_v2": exchange.Asciicast, "asciicast_v3": exchange.Asciicast,
		"claude": exchange.ClaudeCode, "openai": exchange.OpenAIMessages,
	} {
		t.Run(name, func(t *testing.T) { roundTrip(t, format, "exchange/testdata/"+name+".jsonl") })
	}
}

// TestRoundTripReal tests recorded conversations, which are not in the repository.
func TestRoundTripReal(t *testing.T) {
	for folder, format := range map[string]string{"tau-bench": exchange.OpenAIMessages, "claude-code": exchange.ClaudeCode, "asciicast": exchange.Asciicast} {
		files, err := filepath.Glob(filepath.Join("../../shared/transcripts", folder, "*.*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Skipf("there are no recordings in ../shared/transcripts/%s beside the repository", folder)
		}
		for _, path := range files {
			t.Run(folder+"/"+filepath.Base(path), func(t *testing.T) { roundTrip(t, format, path) })
		}
	}
}

func roundTrip(t *testing.T, format, path string) {
	in, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	from, fromStore := importer(t, nil)
	to, toStore := importer(t, nil)
	first, err := from.Import(t.Context(), api.ImportRequest{Format: exchange.Auto}, bytes.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	imported := eventsOf(t, fromStore, first.Sessions[0])
	if last := imported[len(imported)-1]; !strings.Contains(string(last.Data), `"format":"`+format+`"`) {
		t.Errorf("the format was not detected: %s", last.Data)
	}
	for _, id := range first.Sessions {
		done, err := to.Import(t.Context(), api.ImportRequest{Format: exchange.NDJSON}, strings.NewReader(ndjson(t, from, id)))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(look(t, fromStore, id), look(t, toStore, done.Sessions[0]), cmpopts.EquateEmpty()); d != "" || done.Sessions[0] != id {
			t.Errorf("%s became %s (-exported +imported):\n%s", id, done.Sessions[0], d)
		}
	}
}

func TestImportUnderATakenID(t *testing.T) {
	e, store := importer(t, nil)
	if _, err := e.Create(t.Context(), api.NewSession{ID: "a", Title: "mine"}); err != nil {
		t.Fatal(err)
	}
	file := ndjson(t, e, "a")
	for range 2 {
		done, err := e.Import(t.Context(), api.ImportRequest{Format: exchange.NDJSON}, strings.NewReader(file+file))
		if err != nil || len(done.Sessions) != 2 || slices.Contains(done.Sessions, "a") || done.Sessions[0] == done.Sessions[1] {
			t.Fatalf("%+v %v", done, err)
		}
	}
	if _, err := e.Import(t.Context(), api.ImportRequest{Format: exchange.NDJSON}, strings.NewReader(file+"{")); err == nil {
		t.Error("broken input was imported")
	}
	all := sessionsIn(t, store)
	if len(all) != 5 || !slices.ContainsFunc(all, func(s tapedeck.Session) bool { return s.ID == "a" }) {
		t.Errorf("%d sessions", len(all))
	}
}

// TestImportOfAnOpenRun: a run that was open at the export is not open after the
// import.
func TestImportOfAnOpenRun(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("a")
		w.start("a")
		synctest.Wait()
		file := ndjson(t, w.Engine, "a")
		e, store := importer(w, nil)
		_, err := e.Import(w.Context(), api.ImportRequest{Format: exchange.NDJSON}, strings.NewReader(file))
		w.must(err)
		s, err := store.Head(w.Context(), "a")
		if err != nil || s.Status != tapedeck.StatusInterrupted || len(s.Runs) > 0 {
			t.Errorf("%+v %v", s, err)
		}
		if strings.Contains(file, `"runs"`) {
			t.Error("the header has the open runs")
		}
	})
}

// A pausing reader calls at when its input has been read, and then fails.
type pausing struct {
	io.Reader
	at func()
}

func (p pausing) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err == io.EOF {
		p.at()
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// frozen returns a copy of a store at the moment when an import has read all its
// input: that is what remains if the process is killed then.
func frozen(t *testing.T, e *engine.Engine, store tapedeck.Store, input string) tapedeck.Store {
	t.Helper()
	left := memory.New(memory.Options{})
	_, err := e.Import(t.Context(), api.ImportRequest{Format: exchange.Auto}, pausing{strings.NewReader(input), func() {
		for _, kind := range []tapedeck.SessionKind{tapedeck.KindSession, tapedeck.KindView} {
			all, err := store.List(t.Context(), tapedeck.Filter{Kind: kind, Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range all.Sessions {
				thaw(t, store, left, s)
			}
		}
	}})
	if err == nil {
		t.Fatal("the import did not fail")
	}
	return left
}

// thaw copies a session.
func thaw(t *testing.T, from, to tapedeck.Store, s tapedeck.Session) {
	t.Helper()
	spec := tapedeck.Spec{ID: s.ID, Kind: s.Kind, Origin: s.Origin, ContentType: s.ContentType}
	if s.Kind == tapedeck.KindSession {
		spec.Events = eventsOf(t, from, s.ID)
	} else {
		p, err := from.Read(t.Context(), s.ID, tapedeck.Range{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Records {
			spec.Chunks = append(spec.Chunks, r.Data)
		}
	}
	if _, err := to.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

// TestKilledImport: after the process died during an import, the next one removes
// all of the import, and nothing else.
func TestKilledImport(t *testing.T) {
	e, store := importer(t, nil)
	for _, id := range []string{"mine", "taken"} {
		if _, err := e.Create(t.Context(), api.NewSession{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	taken := ndjson(t, e, "taken")
	other := strings.Replace(taken, `"id":"taken"`, `"id":"free"`, 1)
	left := frozen(t, e, store, strings.Repeat(taken, 100)+other)
	if n := len(sessionsIn(t, left)); n != 103 {
		t.Fatalf("%d sessions were there when it died", n)
	}
	if n := len(sessionsIn(t, store)); n != 2 {
		t.Errorf("%d sessions are left of an import that failed", n)
	}
	next := engine.New(engine.Options{Store: left})
	defer next.Shutdown(context.Background())
	if _, err := next.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := sessionsIn(t, left); len(all) != 2 {
		t.Errorf("%d sessions are left", len(all))
	}
	if journals, err := left.List(t.Context(), tapedeck.Filter{Kind: tapedeck.KindView}); err != nil || len(journals.Sessions) > 0 {
		t.Errorf("%d journals are left, %v", len(journals.Sessions), err)
	}
}

// TestRecoverDuringImport: an engine that recovers late does not touch its own
// imports.
func TestRecoverDuringImport(t *testing.T) {
	e, store := importer(t, nil)
	in := cancelling{strings.NewReader(conversations(3, 1000)), func() {
		if _, err := e.Recover(t.Context()); err != nil {
			t.Error(err)
		}
	}}
	done, err := e.Import(t.Context(), api.ImportRequest{Format: exchange.OpenAIMessages}, in)
	if err != nil || len(done.Sessions) != 3 || len(sessionsIn(t, store)) != 3 {
		t.Errorf("%+v %v", done, err)
	}
}

// TestImportMeetsWriter: a write to a session during its import fails the import,
// because offsets would differ from the file.
func TestImportMeetsWriter(t *testing.T) {
	e, store := importer(t, nil)
	in := cancelling{strings.NewReader(conversations(1, 3000)), func() {
		for _, s := range sessionsIn(t, store) {
			if _, err := e.Append(t.Context(), tapedeck.Append{Session: s.ID, Events: parse(`acme.note {}`)}); err != nil {
				t.Error(err)
			}
		}
	}}
	_, err := e.Import(t.Context(), api.ImportRequest{Format: exchange.OpenAIMessages}, in)
	if tapedeck.KindOf(err) != tapedeck.Conflict || len(sessionsIn(t, store)) > 0 {
		t.Errorf("%v, %d sessions", err, len(sessionsIn(t, store)))
	}
}

func TestExportRefuses(t *testing.T) {
	e, _ := importer(t, nil)
	if _, err := e.Create(t.Context(), api.NewSession{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		in   api.ExportRequest
		kind tapedeck.Kind
	}{
		"format":   {api.ExportRequest{Session: "a", Format: "html5"}, tapedeck.Invalid},
		"session":  {api.ExportRequest{Session: "b", Format: exchange.JSON}, tapedeck.NotFound},
		"offset":   {api.ExportRequest{Session: "a", Format: exchange.JSON, At: new(int64(2))}, tapedeck.Invalid},
		"pattern":  {api.ExportRequest{Session: "a", Format: exchange.JSON, Redact: api.Redaction{Patterns: []string{"("}}}, tapedeck.Invalid},
		"terminal": {api.ExportRequest{Session: "a", Format: exchange.Asciicast}, tapedeck.Invalid},
	} {
		if _, err := e.Export(t.Context(), tt.in); tapedeck.KindOf(err) != tt.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestExportAt: an export at an offset is the session as it was there.
func TestExportAt(t *testing.T) {
	e, _ := importer(t, nil)
	done, err := e.Import(t.Context(), api.ImportRequest{Format: exchange.ClaudeCode}, strings.NewReader(talk(10)))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 1, 5, int64(done.Events)} {
		file := export(t, e, api.ExportRequest{Session: done.Sessions[0], Format: exchange.NDJSON, At: &at})
		if n := strings.Count(file, "\n"); n != int(at)+1 || !strings.Contains(file, fmt.Sprintf(`"head":%d`, at)) {
			t.Errorf("at %d: %d lines", at, n)
		}
	}
}

// TestExportAtHasTheEntryOfThen: the header of an export at an offset describes the session as it
// was there: what it had spent, and its title, its labels and its times.
func TestExportAtHasTheEntryOfThen(t *testing.T) {
	e, _ := importer(t, nil)
	s, err := e.Create(t.Context(), api.NewSession{ID: "s", Title: "first", Owner: "ada", Labels: map[string]string{"a": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`RUN_STARTED {"threadId":"main","runId":"r"}`,
		`usage.reported {"model":"m"}`,
		`usage.reported {"model":"m"}`,
		`RUN_FINISHED {"threadId":"main","runId":"r"}`,
	} {
		typ, data, _ := strings.Cut(line, " ")
		if _, err := e.Append(t.Context(), tapedeck.Append{Session: s.ID, Events: []tapedeck.Event{{Type: typ, Invocation: "r", Data: []byte(data)}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Rename(t.Context(), api.Rename{Session: s.ID, Title: new("second"), Labels: map[string]string{"b": "2"}}); err != nil {
		t.Fatal(err)
	}
	fork, err := e.Fork(t.Context(), api.Fork{Parent: s.ID, ID: "f", Title: new("third")})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		session, title, label string
		at                    int64
		turns                 int64
	}{{s.ID, "first", "a", 1, 0}, {s.ID, "first", "a", 3, 1}, {s.ID, "first", "a", 5, 2}, {s.ID, "second", "b", 6, 2}, {fork.ID, "first", "a", 3, 0}, {fork.ID, "third", "b", fork.Head, 0}} {
		head, _, _ := strings.Cut(export(t, e, api.ExportRequest{Session: c.session, Format: exchange.NDJSON, At: &c.at}), "\n")
		var h struct{ Session tapedeck.Session }
		if err := json.Unmarshal([]byte(head), &h); err != nil {
			t.Fatal(err)
		}
		got := h.Session
		var turns int64
		if got.Spent != nil {
			turns = got.Spent.Turns
		}
		if got.ID != c.session || got.Head != c.at || got.Title != c.title || got.Owner != "ada" || got.Labels[c.label] == "" || len(got.Labels) != 1 || turns != c.turns || got.Spent != nil && !got.Spent.Since.IsZero() {
			t.Errorf("%s at %d: %s", c.session, c.at, head)
		}
	}
}

func TestPreviewExport(t *testing.T) {
	e, _ := importer(t, nil)
	done, err := e.Import(t.Context(), api.ImportRequest{Format: exchange.ClaudeCode}, strings.NewReader(talk(3)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.PreviewExport(t.Context(), api.ExportRequest{Session: done.Sessions[0], Redact: api.Redaction{Patterns: []string{"answer"}}})
	if err != nil || p.Events != 3 || p.Rules[0].Count != 3 {
		t.Errorf("%+v %v", p, err)
	}
}

// TestHowARecordingOpens is checked before the first byte.
func TestHowARecordingOpens(t *testing.T) {
	e, _ := importer(t, nil)
	ctx := context.Background()
	s, err := e.Create(ctx, api.NewSession{Title: "A talk"})
	if err != nil {
		t.Fatal(err)
	}
	for want, in := range map[string]api.ExportRequest{
		"belong to the format html":                          {Format: exchange.NDJSON, Theme: api.ThemeDark},
		"belongs to the format asciicast, not to \"ndjson\"": {Format: exchange.NDJSON, Terminal: "t"},
		"belongs to the format asciicast, not to \"html\"":   {Format: exchange.HTML, Terminal: "t"},
		"must be light or dark":                              {Format: exchange.HTML, Theme: "sepia"},
		"must not be negative":                               {Format: exchange.HTML, Start: new(int64(-1))},
		"the export ends at offset 1":                        {Format: exchange.HTML, Poster: new(int64(2))},
	} {
		in.Session = s.ID
		if _, err := e.Export(ctx, in); tapedeck.KindOf(err) != tapedeck.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
