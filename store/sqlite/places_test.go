package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// all reads a session in both directions, in pages of the given size.
func all(t testing.TB, s tapedeck.Store, id string, limit int) []tapedeck.Record {
	t.Helper()
	h, err := s.Head(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var up, down []tapedeck.Record
	for from := int64(0); from < h.Head; {
		p, err := s.Read(t.Context(), id, tapedeck.Range{From: from, Limit: limit})
		if err != nil {
			t.Fatalf("%s from %d: %v", id, from, err)
		}
		up, from = append(up, p.Records...), p.Next
	}
	for from := h.Head; from > 0; {
		p, err := s.Read(t.Context(), id, tapedeck.Range{From: from, Limit: limit, Reverse: true})
		if err != nil {
			t.Fatalf("%s backwards from %d: %v", id, from, err)
		}
		down, from = append(down, p.Records...), p.Next
	}
	for i, r := range up {
		if r.Offset != int64(i) {
			t.Fatalf("%s: offset %d where %d belongs", id, r.Offset, i)
		}
	}
	slices.Reverse(down)
	if !slices.EqualFunc(up, down, same) {
		t.Fatalf("%s differs when it is read backwards", id)
	}
	return up
}

func same(a, b tapedeck.Record) bool { return a.Offset == b.Offset && bytes.Equal(a.Data, b.Data) }

// TestPlaces writes to sessions in turn, forks and deletes some, and now and then
// compares the store with one that is opened after a crash. They must be equal,
// whether or not the positions of the events were saved.
func TestPlaces(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		s := open(t, dir, sqlite.Options{HotSessions: 4})
		s.KeepFresh(1 << rnd.IntN(10))
		var ids []string
		for step := range 120 {
			pick := func() string { return ids[rnd.IntN(len(ids))] }
			switch n := rnd.IntN(20); {
			case len(ids) < 3 || n == 0:
				ids = append(ids, fmt.Sprint("s", step))
				create(t, s, ids[len(ids)-1])
			case n == 1:
				id := fmt.Sprint("f", step)
				if _, err := s.Create(t.Context(), tapedeck.Spec{ID: id, Parent: pick(), Events: chunks(1)}); err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			case n == 2:
				i := rnd.IntN(len(ids))
				if err := s.Delete(t.Context(), ids[i]); err != nil {
					t.Fatal(err)
				}
				ids = append(ids[:i], ids[i+1:]...)
			case n == 3:
				add(t, s, pick(), rnd.IntN(1000))
			default:
				add(t, s, pick(), 1+rnd.IntN(4))
			}
			if step%40 == 39 {
				died := open(t, crash(t, dir), sqlite.Options{})
				compare(t, s, died, ids)
				onceEach(t, died)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		again := open(t, dir, sqlite.Options{})
		compare(t, again, again, ids)
		if n := rows(t, again, "fresh"); n != 0 {
			t.Errorf("after a clean close the positions of %d events are not saved", n)
		}
		report, err := again.Verify(t.Context(), nil)
		if err != nil || len(report.Problems) > 0 {
			t.Errorf("seed %d: %v, %v", seed, report.Problems, err)
		}
	}
}

// onceEach closes a store, which saves the positions of all events, and checks that
// each position is saved once.
func onceEach(t *testing.T, s *sqlite.Store) {
	t.Helper()
	dir := s.Dir()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	n, err := open(t, dir, sqlite.Options{}).Number("SELECT (SELECT count(*) FROM events) - (SELECT coalesce(sum(next - first), 0) FROM places)")
	if err != nil || n != 0 {
		t.Errorf("the positions of %d events are not saved, or saved twice (%v)", n, err)
	}
}

// compare compares two stores, also with the content of the file.
func compare(t *testing.T, s, other *sqlite.Store, ids []string) {
	t.Helper()
	for _, id := range ids {
		records := all(t, s, id, 100)
		if !slices.EqualFunc(records, all(t, other, id, 777), same) {
			t.Fatalf("%s differs", id)
		}
		n, err := other.Number(fmt.Sprintf("SELECT count(DISTINCT offset) * (count(*) = count(DISTINCT offset)) FROM log WHERE session = '%s'", id))
		if err != nil || n != int64(len(records)) {
			t.Errorf("the view log has %d events of %s, want %d (%v)", n, id, len(records), err)
		}
	}
	report, err := other.Verify(t.Context(), nil)
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("%v, %v", report.Problems, err)
	}
}

// TestRestartReadsNewestEvents: a restart reads only the newest events.
func TestRestartReadsNewestEvents(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{})
	s.KeepFresh(100)
	for i := range 20 {
		create(t, s, fmt.Sprint("s", i))
	}
	add(t, s, "s0", 1) // it has no later events, and must not keep the others from being saved
	for i := range 2000 {
		add(t, s, fmt.Sprint("s", 1+i%19), 1)
	}
	if n, err := s.Number("SELECT count(*) FROM events WHERE pos > (SELECT value FROM facts WHERE name = 'placed')"); err != nil || n > 300 {
		t.Errorf("a restart reads %d events (%v)", n, err)
	}
	if n := rows(t, s, "places"); n > 2001/4 {
		t.Errorf("the positions of 2,001 events are in %d rows", n)
	}
	died := open(t, crash(t, dir), sqlite.Options{})
	for i := range 20 {
		add(t, died, fmt.Sprint("s", i), 1)
	}
	if n := count(t, died, "s0"); n != 2 {
		t.Errorf("s0 has %d events", n)
	}
}

// TestPlacingFails: positions that a failed commit did not save are saved with a later
// commit.
func TestPlacingFails(t *testing.T) {
	var fail atomic.Bool
	s := open(t, t.TempDir(), sqlite.Options{Commit: func(commit func() error) error {
		if fail.Load() {
			return errors.New("the commit fails")
		}
		return commit()
	}})
	create(t, s, "a")
	create(t, s, "b")
	add(t, s, "a", 3)
	s.KeepFresh(0)
	fail.Store(true)
	if _, err := s.Append(t.Context(), tapedeck.Append{Session: "b", Events: chunks(1)}); err == nil {
		t.Fatal("the commit did not fail")
	}
	fail.Store(false)
	if n := rows(t, s, "places"); n != 0 {
		t.Errorf("%d places were written", n)
	}
	add(t, s, "b", 1)
	if n := rows(t, s, "fresh"); n != 1 {
		t.Errorf("%d events are fresh, want the newest", n)
	}
	if a, b := count(t, s, "a"), count(t, s, "b"); a != 3 || b != 1 {
		t.Errorf("there are %d and %d events", a, b)
	}
}

// TestCommitIsNarrow: the number of pages that a commit writes depends neither on the
// number of sessions with events in it, nor on their length.
func TestCommitIsNarrow(t *testing.T) {
	const n = 60
	dir, g := t.TempDir(), newGate()
	s := open(t, dir, sqlite.Options{Commit: g.commit})
	for i := range n {
		create(t, s, fmt.Sprint("s", i))
		add(t, s, fmt.Sprint("s", i), 600)
	}
	create(t, s, "x")
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, "tapedeck.db-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	s.StartLogOver()
	g.hold(func() { add(t, s, "x", 1) })
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { add(t, s, fmt.Sprint("s", i), 1) })
	}
	s.WaitQueued(n)
	g.open()
	wg.Wait()
	if pages := size() / 4096; pages > 24 { // 60 events of 330 bytes are 5
		t.Errorf("%d pages were written for one event of each of %d sessions", pages, n)
	}
}

// TestAheadOfMemory: for a moment the database is ahead of the memory. A reader of the
// database then must find all events below the head.
func TestAheadOfMemory(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{})
	create(t, s, "a")
	create(t, s, "b")
	add(t, s, "b", 1)
	// The state between a commit and its publication:
	tamper(t, filepath.Join(dir, "tapedeck.db"),
		`INSERT INTO sessions (id, kind, created, status, touched) VALUES ('c', 'session', 0, 'idle', 0)`,
		`INSERT INTO heads SELECT gen, 1, 0, 0 FROM sessions WHERE id = 'c'`,
		`INSERT INTO events SELECT 2, gen, 0, '{"offset":0}', NULL FROM sessions WHERE id = 'c'`)
	p, err := s.Read(t.Context(), "c", tapedeck.Range{})
	if err != nil || len(p.Records) != 1 {
		t.Errorf("%d records and %v", len(p.Records), err)
	}
}

// TestFreshErased erases and deletes events whose positions are not saved, and crashes.
func TestFreshErased(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{})
	create(t, s, "a")
	create(t, s, "b")
	for range 10 {
		add(t, s, "a", 1)
		add(t, s, "b", 1)
	}
	if _, err := s.Erase(t.Context(), tapedeck.Erasure{Session: "a", Ranges: []tapedeck.OffsetRange{{From: 2, To: 7}}, Events: []tapedeck.Event{{Type: "events.erased"}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	for rows(t, s, "purges") > 0 {
		add(t, s, "a", 1)
	}
	died := open(t, crash(t, dir), sqlite.Options{})
	compare(t, s, died, []string{"a"})
	db, err := sql.Open("sqlite", filepath.Join(dir, "tapedeck.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var left int
	if err := db.QueryRow(`SELECT count(*) FROM log WHERE session = 'a' AND data LIKE '%word%'`).Scan(&left); err != nil || left != int(count(t, s, "a"))-6 {
		t.Errorf("%d events have their text (%v)", left, err)
	}
	if n := rows(t, s, "events"); n != count(t, s, "a") {
		t.Errorf("%d events are left", n)
	}
}

// TestReadBetweenCommitAndPublication reads a session that is not in memory when its new
// events are committed, but not yet published. The positions in memory end before them.
func TestReadBetweenCommitAndPublication(t *testing.T) {
	var s *sqlite.Store
	reading := false
	o := sqlite.Options{HotSessions: 1, Commit: func(commit func() error) error {
		if err := commit(); err != nil || !reading {
			return err
		}
		for from := range int64(4) {
			p, err := s.Read(t.Context(), "s", tapedeck.Range{From: from})
			if err != nil || int64(len(p.Records)) != 4-from {
				t.Errorf("from %d: %d records, %v", from, len(p.Records), err)
			}
		}
		return nil
	}}
	s = open(t, t.TempDir(), o)
	add := func(id string, n int) {
		t.Helper()
		a := tapedeck.Append{Session: id}
		for range n {
			a.Events = append(a.Events, tapedeck.Event{Type: "test.note"})
		}
		if _, err := s.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"s", "other"} {
		if _, err := s.Create(t.Context(), tapedeck.Spec{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	add("s", 2)
	add("other", 1) // takes the place of s in memory
	reading = true
	add("s", 2)
	reading = false
}

// lateContext calls late after the store has looked for a session in memory, and before
// it reads the database.
type lateContext struct {
	context.Context
	late func()
}

func (c lateContext) Done() <-chan struct{} {
	c.late()
	return c.Context.Done()
}

// TestHeadNeverGoesBack reads a session that is not in memory. Before the database is read,
// one append brings it into memory, and the commit of a second one is not published yet.
func TestHeadNeverGoesBack(t *testing.T) {
	committed, publish := make(chan bool), make(chan bool)
	second := false
	o := sqlite.Options{HotSessions: 1, Commit: func(commit func() error) error {
		err := commit()
		if second {
			committed <- true
			<-publish
		}
		return err
	}}
	s := open(t, t.TempDir(), o)
	add := func(id string) {
		if _, err := s.Append(t.Context(), tapedeck.Append{Session: id, Events: []tapedeck.Event{{Type: "test.note"}}}); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []string{"s", "other"} { // other takes the place of s in memory
		if _, err := s.Create(t.Context(), tapedeck.Spec{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	var done sync.WaitGroup
	var once sync.Once
	ctx := lateContext{t.Context(), func() {
		once.Do(func() {
			add("s")
			second = true
			done.Go(func() { add("s") })
			<-committed
		})
	}}
	first, err := s.Head(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	next, err := s.Head(t.Context(), "s")
	if err != nil || next.Head < first.Head {
		t.Errorf("the head goes from %d to %d, %v", first.Head, next.Head, err)
	}
	second = false
	publish <- true
	done.Wait()
}
