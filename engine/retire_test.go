package engine_test

import (
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// TestRetire: only a session that nobody uses goes.
func TestRetire(t *testing.T) {
	w := newWorld(t, nil)
	never := func(*tapedeck.Session) bool { return false }
	if _, err := w.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	seen := w.head("s")
	title := "another"
	if _, err := w.Rename(t.Context(), api.Rename{Session: "s", Title: &title}); err != nil {
		t.Fatal(err)
	}
	if gone, err := w.Retire(t.Context(), &seen, never); gone || err != nil {
		t.Errorf("a session that has changed: %t, %v", gone, err)
	}
	seen = w.head("s")
	if gone, err := w.Retire(t.Context(), &seen, func(*tapedeck.Session) bool { return true }); gone || err != nil {
		t.Errorf("a session that is kept: %t, %v", gone, err)
	}
	if s := w.head("s"); s.Closed {
		t.Error("a session that stays was closed")
	}
	if gone, err := w.Retire(t.Context(), &seen, never); !gone || err != nil {
		t.Errorf("an unused session: %t, %v", gone, err)
	}
	if gone, err := w.Retire(t.Context(), &seen, never); gone || tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("a session that was deleted: %t, %v", gone, err)
	}
}
