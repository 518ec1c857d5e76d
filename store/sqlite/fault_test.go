package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// A gate lets a test hold the writer in the middle of a commit, so that all calls of
// the meantime get into one group.
type gate struct {
	enter, leave chan struct{}
	mu           sync.Mutex
	in           int // number of commits until the one that is held; 0 for none
	commits      int
}

func newGate() *gate { return &gate{enter: make(chan struct{}), leave: make(chan struct{})} }

func (g *gate) commit(commit func() error) error {
	g.mu.Lock()
	held := g.in == 1
	g.in = max(0, g.in-1)
	g.commits++
	g.mu.Unlock()
	if held {
		g.enter <- struct{}{}
		<-g.leave
	}
	return commit()
}

// hold calls f, which must commit, and returns when the commit is held.
func (g *gate) hold(f func()) {
	g.armNext(1)
	go f()
	<-g.enter
}

// armNext holds the n-th commit from now on.
func (g *gate) armNext(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.in = n
}

func (g *gate) open() { g.leave <- struct{}{} }

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.commits
}

func TestGroupCommit(t *testing.T) {
	g := newGate()
	s := open(t, t.TempDir(), sqlite.Options{Commit: g.commit})
	for i := range 20 {
		create(t, s, fmt.Sprint("s", i))
	}
	before := g.count()
	g.hold(func() { add(t, s, "s0", 1) })
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			wrong := int64(77)
			a := tapedeck.Append{Session: fmt.Sprint("s", i%20), Events: chunks(2)}
			want := tapedeck.Kind("")
			if i%5 == 4 { // one in five is refused, and the others do not notice
				a.Expect, want = &wrong, tapedeck.Conflict
			}
			if _, err := s.Append(context.Background(), a); tapedeck.KindOf(err) != want {
				t.Error(err)
			}
		})
	}
	s.WaitQueued(100)
	g.open()
	wg.Wait()
	if n := g.count() - before; n != 2 {
		t.Errorf("101 appends took %d commits, want 2", n)
	}
	for i := range 20 {
		v, err := s.Head(t.Context(), fmt.Sprint("s", i))
		want := int64(10)
		if i%5 == 4 {
			want = 0
		}
		if i == 0 {
			want++
		}
		if err != nil || v.Head != want {
			t.Errorf("s%d is at %d, want %d (%v)", i, v.Head, want, err)
		}
	}
}

// TestNothingIsReadBeforeTheCommit reads during a commit.
func TestNothingIsReadBeforeTheCommit(t *testing.T) {
	for _, hot := range []int{1, 100} {
		g := newGate()
		s := open(t, t.TempDir(), sqlite.Options{Commit: g.commit, HotSessions: hot})
		create(t, s, "a")
		create(t, s, "b") // so that a is not hot if only one is
		g.hold(func() { add(t, s, "a", 1) })
		v, err := s.Head(t.Context(), "a")
		if err != nil || v.Head != 0 {
			t.Errorf("the head is %d before the commit (%v)", v.Head, err)
		}
		p, err := s.Read(t.Context(), "a", tapedeck.Range{})
		if err != nil || len(p.Records) != 0 || p.Head != 0 {
			t.Errorf("read %v before the commit (%v)", p, err)
		}
		if _, err := s.Read(t.Context(), "a", tapedeck.Range{From: 1}); tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("offset 1 before the commit: %v", err)
		}
		g.open()
	}
}

// TestCancelWhileQueued: a cancelled request that the writer has not taken is not
// written.
func TestCancelWhileQueued(t *testing.T) {
	g := newGate()
	s := open(t, t.TempDir(), sqlite.Options{Commit: g.commit})
	create(t, s, "a")
	g.hold(func() { add(t, s, "a", 1) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Append(ctx, tapedeck.Append{Session: "a", Events: chunks(1), Check: func(*tapedeck.Session) error {
			t.Error("Check was called after the caller had stopped waiting")
			return nil
		}})
		done <- err
	}()
	s.WaitQueued(1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) { // although the writer is held
		t.Errorf("got %v", err)
	}
	g.open()
	add(t, s, "a", 1)
	if v, _ := s.Head(t.Context(), "a"); v.Head != 2 {
		t.Errorf("the head is %d, want 2", v.Head)
	}
}

// TestOneSpoilsNoOther: a group has events of a session that the database refuses. Only
// the appends to that session fail.
func TestOneSpoilsNoOther(t *testing.T) {
	dir, g := t.TempDir(), newGate()
	s := open(t, dir, sqlite.Options{Commit: g.commit})
	for _, id := range []string{"bad", "a", "b"} {
		create(t, s, id)
	}
	tamper(t, filepath.Join(dir, "tapedeck.db"), `CREATE TRIGGER bad BEFORE INSERT ON events
	WHEN NEW.session = (SELECT gen FROM sessions WHERE id = 'bad') AND NEW.offset > 0 BEGIN SELECT RAISE(ABORT, 'bad'); END`)
	for range 3 {
		g.hold(func() { add(t, s, "b", 1) })
		var wg sync.WaitGroup
		for i := range 9 {
			wg.Go(func() {
				id := []string{"a", "bad", "b"}[i%3]
				_, err := s.Append(context.Background(), tapedeck.Append{Session: id, Events: chunks(2)})
				if failed := err != nil; failed != (id == "bad") || failed && tapedeck.KindOf(err) != tapedeck.Unavailable {
					t.Errorf("%s: %v", id, err)
				}
			})
		}
		s.WaitQueued(9)
		g.open()
		wg.Wait()
	}
	for id, want := range map[string]int64{"a": 18, "b": 21, "bad": 0} {
		if v, err := s.Head(t.Context(), id); err != nil || v.Head != want {
			t.Errorf("%s is at %d, want %d (%v)", id, v.Head, want, err)
		}
	}
}

// TestBigAppend: a small append waits for at most one big append, and not for the next
// big one as well.
func TestBigAppend(t *testing.T) {
	g := newGate()
	s := open(t, t.TempDir(), sqlite.Options{Commit: g.commit})
	create(t, s, "big")
	create(t, s, "small")
	const n = 20_000
	var order []string
	var mu sync.Mutex
	var wg sync.WaitGroup
	appendTo := func(id string, n int) {
		wg.Go(func() {
			if _, err := s.Append(context.Background(), tapedeck.Append{Session: id, Events: chunks(n), Check: func(*tapedeck.Session) error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, id)
				return nil
			}}); err != nil {
				t.Error(err)
			}
		})
	}
	g.hold(func() { add(t, s, "small", 1) })
	appendTo("big", n)
	s.WaitQueued(1)
	appendTo("big", n)
	s.WaitQueued(2)
	appendTo("small", 1)
	s.WaitQueued(3)
	g.open()
	wg.Wait()
	if got := strings.Join(order, " "); got != "big small big" && got != "small big big" {
		t.Errorf("the order was %s", got)
	}
	if v, _ := s.Head(t.Context(), "big"); v.Head != 2*n {
		t.Errorf("the head is %d", v.Head)
	}
}

// TestCommitFailure: no part of a failed commit can be read, its error is a sentence,
// and the store continues as soon as commits succeed.
func TestCommitFailure(t *testing.T) {
	cause := errors.New("/dev/sda7 is on fire")
	var fail func(commit func() error) error
	s := open(t, t.TempDir(), sqlite.Options{Commit: func(commit func() error) error {
		if fail != nil {
			return fail(commit)
		}
		return commit()
	}})
	create(t, s, "a")
	add(t, s, "a", 3)
	fail = func(func() error) error { return cause }
	for range 3 {
		_, err := s.Append(t.Context(), tapedeck.Append{Session: "a", Events: chunks(1)})
		var e *tapedeck.Error
		if !errors.As(err, &e) || e.Kind != tapedeck.Unavailable || strings.Contains(e.Message, "fire") || !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
		if p, err := s.Read(t.Context(), "a", tapedeck.Range{}); err != nil || len(p.Records) != 3 {
			t.Errorf("reading: %d records, %v", len(p.Records), err)
		}
	}
	// The worst case: the commit reports a failure but took effect. Then its offset
	// is used, and the next append gets the next one.
	fail = func(commit func() error) error { return errors.Join(commit(), cause) }
	if _, err := s.Append(t.Context(), tapedeck.Append{Session: "a", Events: chunks(1)}); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Errorf("got %v", err)
	}
	fail = nil
	if done, err := s.Append(t.Context(), tapedeck.Append{Session: "a", Events: chunks(1)}); err != nil || done.First != 4 {
		t.Errorf("got %+v, %v", done, err)
	}
}

// TestDiskFull fills a small disk that it mounts.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := mountSmall(t, dir, 24<<20); err != nil {
		t.Skip("no disk can be mounted here: ", err)
	}
	s := open(t, filepath.Join(dir, "data"), sqlite.Options{})
	create(t, s, "a")
	add(t, s, "a", 10)
	ballast := filepath.Join(dir, "ballast")
	write(t, ballast, strings.Repeat("x", 18<<20))
	head := int64(10)
	var err error
	for range 1000 {
		var done tapedeck.Appended
		if done, err = s.Append(t.Context(), tapedeck.Append{Session: "a", Events: chunks(100)}); err != nil {
			break
		}
		head = done.Next
	}
	check := func(err error) {
		t.Helper()
		var e *tapedeck.Error
		if !errors.As(err, &e) || e.Kind != tapedeck.Unavailable || !strings.Contains(e.Message, "there is no space left") || e.Hint == "" {
			t.Fatalf("a full disk is %v", err)
		}
	}
	check(err)
	for range 5 { // appends keep failing, and reads keep working
		_, err = s.Append(t.Context(), tapedeck.Append{Session: "a", Events: chunks(100)})
		check(err)
		if n := count(t, s, "a"); n != head {
			t.Fatalf("%d events can be read, want %d", n, head)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		done, err := s.Append(t.Context(), tapedeck.Append{Session: "a", Events: chunks(100)})
		if err != nil || done.First != head {
			t.Fatalf("with space again: %+v, %v", done, err)
		}
		head = done.Next
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, filepath.Join(dir, "data"), sqlite.Options{})
	if n := count(t, s, "a"); n != head {
		t.Errorf("%d events after opening again, want %d", n, head)
	}
}

// count reads a session and checks that its offsets are dense.
func count(t testing.TB, s tapedeck.Store, id string) int64 {
	t.Helper()
	n := int64(0)
	for e, err := range tapedeck.Events(context.Background(), s, id, 0) {
		if err != nil || e.Offset != n {
			t.Fatalf("offset %d where %d belongs: %v", e.Offset, n, err)
		}
		n++
	}
	return n
}
