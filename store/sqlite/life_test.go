package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/storetest"
)

// crash returns a copy of the files of an open store, as they would be if its process had
// died.
func crash(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	copyOpen(t, dir, to, "tapedeck.db")
	return to
}

// copyOpen copies a database that others write. It holds their commits: after the copy of
// the file, a commit could begin the write-ahead log again, and the copy would have neither
// the old one nor its pages. A checkpoint during the copy does no harm, because all pages
// that it moves stay in the log.
func copyOpen(t testing.TB, from, to, name string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(from, name)+"?_pragma=busy_timeout(60000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, file := range []string{name, name + "-wal"} {
		b, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(to, file), string(b))
	}
}

// rows counts rows in a database that may be open.
func rows(t testing.TB, s *sqlite.Store, table string) int64 {
	t.Helper()
	n, err := s.Number("SELECT count(*) FROM " + table)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPurge deletes a long session. Its events are removed in small steps, each with
// its own commit, while other appends continue. After a restart in the middle the
// purge continues.
func TestPurge(t *testing.T) {
	dir, g := t.TempDir(), newGate()
	s := open(t, dir, sqlite.Options{Commit: g.commit})
	create(t, s, "long")
	create(t, s, "other")
	add(t, s, "long", 5000)
	add(t, s, "other", 1)
	before := g.count()
	g.hold(func() { add(t, s, "other", 1) }) // the delete is queued behind it
	done := make(chan error)
	go func() { done <- s.Delete(context.Background(), "long") }()
	s.WaitQueued(1)
	g.armNext(2) // the delete itself passes, the first step is held
	g.open()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	<-g.enter
	if _, err := s.Head(t.Context(), "long"); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("the deleted session: %v", err)
	}
	create2 := make(chan struct{}) // its id is free at once
	go func() { create(t, s, "long"); close(create2) }()
	s.WaitQueued(1)
	g.open()
	<-create2
	died := crash(t, dir)
	for rows(t, s, "purges") > 0 {
		add(t, s, "other", 1)
	}
	if n := g.count() - before; n < 10 {
		t.Errorf("5,000 events were purged within %d commits", n)
	}
	heads, err := s.Head(t.Context(), "other")
	if n := rows(t, s, "events"); err != nil || n != heads.Head {
		t.Errorf("%d events are left, %d of them not deleted (%v)", n, heads.Head, err)
	}

	s2 := open(t, died, sqlite.Options{})
	if n := count(t, s2, "long"); n != 0 {
		t.Errorf("the new session has %d events", n)
	}
	for rows(t, s2, "purges") > 0 {
		add(t, s2, "other", 1)
	}
	if n := rows(t, s2, "events"); n != count(t, s2, "other") {
		t.Errorf("%d events are left after the restart", n)
	}
}

// TestPosIsNotUsedTwice deletes the newest events and opens the store again.
func TestPosIsNotUsedTwice(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{})
	create(t, s, "a")
	create(t, s, "b")
	add(t, s, "a", 1)
	add(t, s, "b", 10)
	if err := s.Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	for rows(t, s, "purges") > 0 {
		create(t, s, "a")
	}
	_ = s.Close()
	s = open(t, dir, sqlite.Options{})
	add(t, s, "a", 1)
	if n, err := s.Number("SELECT max(pos) FROM events"); err != nil || n != 12 {
		t.Errorf("the newest pos is %d, want 12 (%v)", n, err)
	}
}

// TestReap: the store deletes expired sessions by itself, and keeps those that were
// touched.
func TestReap(t *testing.T) {
	clock, tick := storetest.NewClock(), make(chan time.Time)
	s := open(t, t.TempDir(), sqlite.Options{Now: clock.Now, ReapTick: tick})
	ctx := t.Context()
	for i := range 250 {
		spec := tapedeck.Spec{ID: fmt.Sprint("s", i), TTL: time.Minute, Events: chunks(1)}
		if _, err := s.Create(ctx, spec); err != nil {
			t.Fatal(err)
		}
	}
	clock.Advance(50 * time.Second)
	for i := range 10 {
		if err := s.Touch(ctx, fmt.Sprint("s", i)); err != nil {
			t.Fatal(err)
		}
	}
	clock.Advance(20 * time.Second)
	tick <- time.Time{}
	tick <- time.Time{} // it is taken when the work of the first is done
	if n := rows(t, s, "sessions"); n != 10 {
		t.Errorf("%d sessions are left, want 10", n)
	}
	clock.Advance(30 * time.Second)
	if err := s.Touch(ctx, "s0"); err != nil {
		t.Error(err)
	}
	clock.Advance(11 * time.Second)
	tick <- time.Time{}
	tick <- time.Time{}
	if n := rows(t, s, "sessions"); n != 1 {
		t.Errorf("%d sessions are left, want 1", n)
	}
}

// TestTTLAfterCrash: a crash may lose a touch, but no session expires early.
func TestTTLAfterCrash(t *testing.T) {
	dir, clock := t.TempDir(), storetest.NewClock()
	o := sqlite.Options{Now: clock.Now}
	s := open(t, dir, o)
	ctx := t.Context()
	for _, id := range []string{"touched", "appended", "left"} {
		if _, err := s.Create(ctx, tapedeck.Spec{ID: id, TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	clock.Advance(50 * time.Second)
	if err := s.Touch(ctx, "touched"); err != nil {
		t.Fatal(err)
	}
	add(t, s, "appended", 1)
	clock.Advance(40 * time.Second)
	died := open(t, crash(t, dir), o)
	for _, id := range []string{"touched", "appended"} {
		if _, err := died.Head(ctx, id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	clock.Advance(61 * time.Second)
	for _, id := range []string{"touched", "appended", "left"} {
		if _, err := died.Head(ctx, id); tapedeck.KindOf(err) != tapedeck.NotFound {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestObserversComeBetween: when observers are notified, the records can be read,
// and the append has not returned.
func TestObserversComeBetween(t *testing.T) {
	observed, resume := make(chan int64), make(chan struct{})
	s := open(t, t.TempDir(), sqlite.Options{})
	s.Observe(tapedeck.Observer{Committed: func(commits []tapedeck.Commit) {
		observed <- commits[0].Session.Head
		<-resume
	}})
	for head := range int64(10) {
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			if head == 0 {
				create(t, s, "a")
			} else {
				add(t, s, "a", 1)
			}
		}()
		if n := <-observed; n != head {
			t.Errorf("observers were notified of head %d, want %d", n, head)
		}
		if v, err := s.Head(t.Context(), "a"); err != nil || v.Head != head {
			t.Errorf("the head is %d, want %d (%v)", v.Head, head, err)
		}
		select {
		case <-returned:
			t.Error("the append returned before its observers had")
		default:
		}
		resume <- struct{}{}
		<-returned
	}
}
