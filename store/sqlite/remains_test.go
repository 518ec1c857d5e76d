package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// lines collects a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestForgettingIsRetried: when an observer cannot remove derived data, Erase returns
// an error. The store cleans the files nevertheless, and calls the observer again until
// it succeeds.
func TestForgettingIsRetried(t *testing.T) {
	dir, log := t.TempDir(), &lines{}
	s := open(t, dir, sqlite.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	create(t, s, "a")
	for range 50 {
		appendSecret(t, s, "a", "MARK", 300)
	}
	var fails atomic.Bool
	fails.Store(true)
	s.Observe(tapedeck.Observer{Erased: func(_ context.Context, session string, _ []string) error {
		if session == "a" && fails.Load() {
			return errors.New("no")
		}
		return nil
	}})
	if _, err := s.Erase(t.Context(), erasure("a", 0, 50)); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Fatalf("the erasure says %v", err)
	}
	if n := found(t, dir, "MARK"); n > 0 {
		t.Errorf("it is in the files %d times", n)
	}
	create(t, s, "b")
	add(t, s, "b", 1)
	if _, err := s.Erase(t.Context(), erasure("b", 0, 1)); err != nil { // a later erasure does not make the first one clean
		t.Fatal(err)
	}
	if n, err := s.Unclean(); err != nil || n == 0 {
		t.Errorf("%d erasures are unclean, %v", n, err)
	}
	fails.Store(false)
	s.WaitClean()
	if !strings.Contains(log.String(), "could not be removed") {
		t.Errorf("the log says %s", log.String())
	}
}

// TestRestartDropsDerivedData: if a process dies before its observers have removed the
// data derived from erased events, the next process drops that data.
func TestRestartDropsDerivedData(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{})
	x := openIndex(t, s)
	create(t, s, "a")
	appendSecret(t, s, "a", "MARK", 300)
	v, err := s.Head(t.Context(), "a")
	must(t, err)
	fold, journal := fmt.Sprintf("%sfold/a/%d/x.1/1", tapedeck.ViewPrefix, v.Gen), tapedeck.ViewPrefix+"import/e/imp_1"
	s.Observe(tapedeck.Observer{Erased: func(ctx context.Context, _ string, _ []string) error { // a fold has read the event before, and saves its result
		for id, text := range map[string]string{fold: "MARK", journal: "a session"} {
			_, err := s.Create(ctx, tapedeck.Spec{ID: id, Kind: tapedeck.KindView, ContentType: "text/plain", Chunks: [][]byte{[]byte(text)}})
			must(t, err)
		}
		must(t, x.Index(ctx, search.Batch{Session: "a", Gen: v.Gen, Base: 1, Resume: 1, Seen: 1, Documents: []search.Document{{Kind: search.DocMessage, Text: "MARK"}}}))
		return errors.New("the process dies")
	}})
	if _, err := s.Erase(t.Context(), erasure("a", 0, 1)); err == nil {
		t.Fatal("the erasure says that the files are clean")
	}
	died := crash(t, dir)
	copyOpen(t, dir, died, "search.db")
	if found(t, died, "MARK") < 2 {
		t.Fatal("there is nothing to remove")
	}
	again := open(t, died, sqlite.Options{})
	openIndex(t, again)
	again.WaitClean()
	if n := found(t, died, "MARK"); n > 0 {
		t.Errorf("it is in the files %d times", n)
	}
	if _, err := again.Head(t.Context(), fold); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("the view: %v", err)
	}
	if _, err := again.Head(t.Context(), journal); err != nil {
		t.Errorf("the journal of an import, which is not derived: %v", err)
	}
}
