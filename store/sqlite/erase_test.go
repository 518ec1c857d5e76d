package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/tail"
)

// secret is an event with a payload of n bytes and a mark.
func secret(mark string, n int) tapedeck.Event {
	return tapedeck.Event{Type: tapedeck.MessageAdded, Data: fmt.Appendf(nil,
		`{"message":{"id":"m","role":"user","content":"%s%s"}}`, mark, strings.Repeat("x", n))}
}

func appendSecret(t testing.TB, s tapedeck.Store, id, mark string, n int) {
	t.Helper()
	if _, err := s.Append(t.Context(), tapedeck.Append{Session: id, Events: []tapedeck.Event{secret(mark, n)}}); err != nil {
		t.Fatal(err)
	}
}

func erasure(id string, from, to int64) tapedeck.Erasure {
	ranges := []tapedeck.OffsetRange{{From: from, To: to}}
	return tapedeck.Erasure{Session: id, Ranges: ranges,
		Events: []tapedeck.Event{payload.NewEvent(payload.SessionRedacted{Offsets: ranges})}}
}

// found returns how often a mark is in the files of a folder.
func found(t testing.TB, dir, mark string) int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	n := 0
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n += bytes.Count(b, []byte(mark))
	}
	return n
}

// TestErasedIsInNoFile mixes events of many sizes and sessions, and deletes some, so
// that others move between pages and leave copies. After an erasure no file has any of
// the text, while the store is still open.
func TestErasedIsInNoFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{})
	const sessions, kept = 12, 4
	ids := make([]string, sessions)
	for i := range ids {
		ids[i] = fmt.Sprintf("s%02d", i)
		create(t, s, ids[i])
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		id, size := ids[random.IntN(sessions)], random.IntN(900)
		if random.IntN(90) == 0 {
			size = 20_000 // on pages of its own
		}
		appendSecret(t, s, id, "MARK-"+id, size)
	}
	for _, id := range ids[kept:] {
		if err := s.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	create(t, s, "last")
	for rows(t, s, "purges") > 0 {
		add(t, s, "last", 1)
	}
	for _, id := range ids[1:kept] {
		if found(t, dir, "MARK-"+id) < 100 {
			t.Fatal("the test does not see what is in the files")
		}
		head, err := s.Head(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Erase(t.Context(), erasure(id, 0, head.Head)); err != nil {
			t.Fatal(err)
		}
	}
	for i, id := range ids {
		if n := found(t, dir, "MARK-"+id); n > 0 != (i == 0) {
			t.Errorf("the text of session %s is in the files %d times", id, n)
		}
	}
	if r, err := s.Verify(t.Context(), nil); err != nil || len(r.Problems) > 0 {
		t.Errorf("after it: %v, %v", r.Problems, err)
	}
}

// TestCleaningIsResumed: if a process dies between the commit of an erasure and the
// cleaning of the file, the next process cleans it.
func TestCleaningIsResumed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{})
	create(t, s, "a")
	for range 50 {
		appendSecret(t, s, "a", "MARK", 300)
	}
	s.SkipCleaning()
	if _, err := s.Erase(t.Context(), erasure("a", 0, 50)); err == nil {
		t.Fatal("the erasure says that the files are clean")
	}
	if p, err := s.Read(t.Context(), "a", tapedeck.Range{}); err != nil || bytes.Contains(p.Records[7].Data, []byte("MARK")) || p.Head != 51 {
		t.Fatalf("the events: %v, %v", p, err)
	}
	died := crash(t, dir)
	if found(t, died, "MARK") == 0 {
		t.Fatal("there is nothing to clean")
	}
	again := open(t, died, sqlite.Options{})
	again.WaitClean()
	if n := found(t, died, "MARK"); n > 0 {
		t.Errorf("it is in the files %d times", n)
	}
}

// TestFailedErasureLeavesAll: if the commit of an erasure fails, the events keep their
// payloads.
func TestFailedErasureLeavesAll(t *testing.T) {
	fail := false
	s := open(t, t.TempDir(), sqlite.Options{Commit: func(commit func() error) error {
		if fail {
			return errors.New("no")
		}
		return commit()
	}})
	create(t, s, "a")
	appendSecret(t, s, "a", "MARK", 10)
	fail = true
	if _, err := s.Erase(t.Context(), erasure("a", 0, 1)); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Errorf("got %v", err)
	}
	fail = false
	p, err := s.Read(t.Context(), "a", tapedeck.Range{})
	if err != nil || len(p.Records) != 1 || !bytes.Contains(p.Records[0].Data, []byte("MARK")) {
		t.Errorf("afterwards: %v, %v", p, err)
	}
}

// TestTailForgets: an erasure also removes the records in the cache of followers.
func TestTailForgets(t *testing.T) {
	s := tail.New(1 << 20).Layer(open(t, t.TempDir(), sqlite.Options{}))
	create(t, s, "a")
	appendSecret(t, s, "a", "MARK", 10)
	if _, err := s.Erase(context.Background(), erasure("a", 0, 1)); err != nil {
		t.Fatal(err)
	}
	p, err := s.Read(t.Context(), "a", tapedeck.Range{})
	if err != nil || len(p.Records) != 2 || bytes.Contains(p.Records[0].Data, []byte("MARK")) {
		t.Errorf("got %v, %v", p, err)
	}
}

// childErases erases the ten events of session a, and blocks forever before the commit
// or after it.
func childErases(dir string, after bool) {
	s, err := sqlite.Open(context.Background(), dir, sqlite.Options{Commit: func(commit func() error) error {
		if after {
			if err := commit(); err != nil {
				return err
			}
		}
		fmt.Println("now")
		select {}
	}})
	if err == nil {
		_, err = s.Erase(context.Background(), erasure("a", 0, 10))
	}
	fmt.Println("error", err)
}

// TestKilledWhileErasing: an erasure happens completely or not at all. If it happened,
// the files are clean after the store was opened again.
func TestKilledWhileErasing(t *testing.T) {
	for _, after := range []bool{false, true} {
		dir, what := t.TempDir(), "erase before"
		if after {
			what = "erase after"
		}
		s := open(t, dir, sqlite.Options{})
		create(t, s, "a")
		for range 10 {
			appendSecret(t, s, "a", "MARK", 3000)
		}
		must(t, s.Close())
		cmd, out := child(t, what, dir)
		if !out.Scan() || out.Text() != "now" {
			t.Fatal(out.Text(), out.Err())
		}
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // reports that it was killed
		s = open(t, dir, sqlite.Options{})
		s.WaitClean()
		p, err := s.Read(t.Context(), "a", tapedeck.Range{})
		must(t, err)
		if n := len(p.Records); after != (n == 11) || !after != (n == 10) {
			t.Errorf("%s: there are %d records", what, n)
		}
		for _, r := range p.Records {
			if bytes.Contains(r.Data, []byte("MARK")) == after {
				t.Errorf("%s: offset %d is %.100s", what, r.Offset, r.Data)
			}
		}
		if n := found(t, dir, "MARK"); n > 0 == after {
			t.Errorf("%s: it is in the files %d times", what, n)
		}
	}
}

// TestEraseWhileOthersAppend makes several erasures at once while other goroutines
// append, read and search.
func TestEraseWhileOthersAppend(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{})
	x := openIndex(t, s)
	s.Observe(tapedeck.Observer{Erased: func(ctx context.Context, session string, _ []string) error {
		return errors.Join(x.Forget(ctx, session), x.Clean(ctx))
	}})
	const sessions = 4
	for i := range 2 * sessions {
		create(t, s, fmt.Sprint("s", i))
	}
	for range 40 {
		for i := range sessions {
			appendSecret(t, s, fmt.Sprint("s", i), "MARK", 500)
		}
	}
	var erasing, others sync.WaitGroup
	stop := make(chan struct{})
	for i := range sessions {
		erasing.Go(func() {
			if _, err := s.Erase(context.Background(), erasure(fmt.Sprint("s", i), 0, 40)); err != nil {
				t.Error(err)
			}
		})
		others.Go(func() {
			id := fmt.Sprint("s", sessions+i)
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				_, err := s.Append(context.Background(), tapedeck.Append{Session: id, Events: []tapedeck.Event{secret("x", n%2000)}})
				_, readErr := s.Read(context.Background(), id, tapedeck.Range{})
				_, searchErr := x.Search(context.Background(), search.Query{Text: "mark"})
				if err := errors.Join(err, readErr, searchErr); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	erasing.Wait()
	close(stop)
	others.Wait()
	if n := found(t, dir, "MARK"); n > 0 {
		t.Errorf("it is in the files %d times", n)
	}
	if n, err := s.Unclean(); n != 0 || err != nil {
		t.Errorf("%d erasures are not cleaned up after, %v", n, err)
	}
	if r, err := s.Verify(t.Context(), nil); err != nil || len(r.Problems) > 0 {
		t.Errorf("after it: %v, %v", r.Problems, err)
	}
}

// BenchmarkErase erases one event of a database of 100,000, which is 100 MB, and
// then all of them.
func BenchmarkErase(b *testing.B) {
	for name, n := range map[string]int64{"one": 1, "all": 100_000} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := open(b, b.TempDir(), sqlite.Options{})
				create(b, s, "a")
				events := make([]tapedeck.Event, 1000)
				for range 100 {
					for i := range events {
						events[i] = secret("MARK", 800)
					}
					if _, err := s.Append(b.Context(), tapedeck.Append{Session: "a", Events: events}); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				if _, err := s.Erase(b.Context(), erasure("a", 0, n)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
