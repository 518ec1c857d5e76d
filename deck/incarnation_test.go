package deck_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// TestCursorOfAnotherTimeline: a client comes back with the id of an event to a folder that
// was restored from an older backup, and has other events since. It is told so. In the folder
// that was not restored it goes on.
func TestCursorOfAnotherTimeline(t *testing.T) {
	dir, backup, restored := t.TempDir(), filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored")
	change := func(dir string, events ...string) *deck.Deck {
		d := openAt(t, dir, deck.Options{})
		for _, e := range events {
			if _, err := d.Session("s").Append(t.Context(), tapedeck.Event{Type: e}); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	ask := func(d *deck.Deck, id string) (status int, body string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/sessions/s/stream?until=terminal", nil)
		r.Host = "127.0.0.1"
		if id != "" {
			r.Header.Set("Last-Event-ID", id)
		}
		w := &untilCaughtUp{httptest.NewRecorder(), cancel}
		d.Handler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	d := openAt(t, dir, deck.Options{})
	if _, err := d.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	_ = d.Close(t.Context())
	if _, err := sqlite.Backup(t.Context(), dir, backup, sqlite.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	d = change(dir, "a", "b")
	_, body := ask(d, "")
	last := body[strings.LastIndex(body, "id: ")+len("id: "):]
	last, _, _ = strings.Cut(last, "\n")
	if !strings.HasPrefix(last, "2@") {
		t.Fatalf("the last id is %q: %s", last, body)
	}
	_ = d.Close(t.Context())
	d = change(dir, "c")
	if status, body := ask(d, last); status != http.StatusOK || !strings.Contains(body, `"type":"c"`) {
		t.Errorf("after a restart: %d %s", status, body)
	}
	_ = d.Close(t.Context())
	if _, err := sqlite.Restore(t.Context(), backup, restored, sqlite.RestoreOptions{Before: -1}); err != nil {
		t.Fatal(err)
	}
	d = change(restored, "x", "y", "z")
	if status, body := ask(d, last); status != http.StatusGone || !strings.Contains(body, `"kind":"replaced"`) {
		t.Errorf("after a restore: %d %s", status, body)
	}
}

// untilCaughtUp ends the request when the stream has sent what there is.
type untilCaughtUp struct {
	*httptest.ResponseRecorder
	cancel func()
}

func (w *untilCaughtUp) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "event: caught-up") {
		defer w.cancel()
	}
	return w.ResponseRecorder.Write(b)
}
