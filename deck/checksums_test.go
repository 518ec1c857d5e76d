package deck_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// everyVerb does each verb that writes events, moves where they are or removes some.
func everyVerb(t *testing.T, d *deck.Deck) {
	t.Helper()
	ctx := t.Context()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	talk, err := d.Create(ctx, api.NewSession{ID: "talk", Owner: "ada", Title: "A talk"})
	must("create", err)
	said := func(s *deck.Session, text string) {
		for range 5 {
			_, err := s.Append(ctx, tapedeck.Event{Type: "message.added", Data: []byte(`{"message":{"id":"` + tapedeck.NewID("m") + `","role":"user","content":"` + text + `"}}`)})
			must("append", err)
		}
	}
	said(talk, "one")
	fork, err := talk.Fork(ctx, api.Fork{ID: "fork", Owner: "bob", At: new(int64(4))})
	must("fork", err)
	said(fork, "two")
	_, err = talk.Fork(ctx, api.Fork{ID: "copy", Owner: "eve", Copy: true})
	must("copy", err)
	_, err = fork.Overwrite(ctx, api.Overwrite{FromOffset: 6})
	must("overwrite", err)
	_, err = fork.Undo(ctx, "")
	must("undo", err)
	_, err = talk.Rewind(ctx, api.Rewind{ToOffset: new(int64(3))})
	must("rewind", err)
	said(talk, "three")
	_, err = talk.Erase(ctx, api.Erase{Events: []tapedeck.OffsetRange{{From: 1, To: 3}, {From: 7, To: 8}}})
	must("erase", err)
	said(talk, "four")
	_, err = talk.Clear(ctx, "")
	must("clear", err)
	imported := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/import?format=openai-messages", strings.NewReader(`[{"role":"user","content":"five"}]`))
	imported.Header.Set("Content-Type", "application/json")
	imported.Host = "127.0.0.1"
	w := httptest.NewRecorder()
	if d.Handler().ServeHTTP(w, imported); w.Code >= 300 {
		t.Fatal("import:", w.Body)
	}
	must("delete", talk.Delete(ctx))
	talk, err = d.Create(ctx, api.NewSession{ID: "old", Owner: "ada"})
	must("create", err)
	said(talk, "six")
	_, err = talk.Fork(ctx, api.Fork{ID: "rest", Owner: "zoe"})
	must("fork", err)
	must("close", talk.Close(ctx))
	_, err = d.Create(ctx, api.NewSession{ID: "newer", Owner: "ada"})
	must("create", err)
}

// TestChecksumsAfterEachVerb: whatever was done to sessions, also by the retention, verify
// finds nothing, each event has a checksum, and so it is after a backup and a restore.
func TestChecksumsAfterEachVerb(t *testing.T) {
	dir := t.TempDir()
	d := openAt(t, dir, deck.Options{})
	everyVerb(t, d)
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	isSound(t, dir)
	l := listener{slog.DiscardHandler, make(chan string, 10)}
	d = openAt(t, dir, deck.Options{Logger: slog.New(l), Retention: deck.Retention{Rule: deck.RetentionRule{Sessions: 1, Age: time.Hour}}})
	if gone := <-l.gone; gone != "old" {
		t.Errorf("%s was deleted", gone)
	}
	if err := d.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	isSound(t, dir)
	backup, restored := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored")
	for range 2 { // the second one after more events
		if _, err := sqlite.Backup(t.Context(), dir, backup, sqlite.BackupOptions{}); err != nil {
			t.Fatal(err)
		}
		d = openAt(t, dir, deck.Options{})
		if _, err := d.Session("copy").Append(t.Context(), tapedeck.Event{Type: "x"}); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sqlite.Restore(t.Context(), backup, restored, sqlite.RestoreOptions{Before: -1}); err != nil {
		t.Fatal(err)
	}
	d = openAt(t, restored, deck.Options{}) // it writes what it finds open, and forks go on
	if _, err := d.Session("fork").Fork(t.Context(), api.Fork{ID: "later"}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	isSound(t, restored)
}

func isSound(t *testing.T, dir string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	r, err := s.Verify(t.Context(), nil)
	if err != nil || len(r.Problems) > 0 || r.Unsummed > 0 || r.Events < 20 {
		t.Errorf("%+v %v", r, err)
	}
}
