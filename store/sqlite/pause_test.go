package sqlite

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/search"
)

// TestPausesExcludeEachOther lets two goroutines pause the readers of the index, as an
// erasure and the writer do, while others search and append.
func TestPausesExcludeEachOther(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, err := s.OpenIndex()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 3000 {
				s.pauses.during(func() {}, x.readers.Load())
			}
		})
		wg.Go(func() {
			for range 3000 {
				s.pauses.during(func() {}, s.readers, x.readers.Load())
			}
		})
		wg.Go(func() {
			for range 300 {
				if _, err := x.Search(context.Background(), search.Query{Text: "word"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestPauseGivesUp: during a read that does not end, a pause gives up and returns the
// connections that it has.
func TestPauseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free, lent := &pool{free: make(chan *conn, 2), size: 2}, &pool{free: make(chan *conn, 2), size: 2}
		for _, p := range []*pool{free, free, lent} { // and one of lent is out
			p.free <- nil
		}
		var ps pauses
		if ps.during(func() { t.Error("it began") }, free, lent) {
			t.Error("it reports that f was called")
		}
		if len(free.free) != 2 || len(lent.free) != 1 {
			t.Errorf("%d and %d connections were returned", len(free.free), len(lent.free))
		}
		lent.free <- nil
		began := false
		if !ps.during(func() { began = true }, free, nil, lent) || !began {
			t.Error("it does not begin when the read has ended")
		}
	})
}

// TestLogThatIsReadIsNotEmpty: SQLite reports no error when a reader keeps it from
// emptying the log, so the store must.
func TestLogThatIsReadIsNotEmpty(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Create(t.Context(), tapedeck.Spec{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	outside, err := dial(dataSource(s.file, "ro", readerPragmas))
	if err != nil {
		t.Fatal(err)
	}
	defer outside.close()
	for _, statement := range []string{"BEGIN", "SELECT count(*) FROM events"} {
		if err := outside.exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	s.writer.writing.Lock()
	defer s.writer.writing.Unlock()
	if err := s.writer.truncateLog(); !errors.Is(err, errRead) {
		t.Errorf("with a reader: %v", err)
	}
	if err := outside.exec("COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := s.writer.truncateLog(); err != nil {
		t.Errorf("without a reader: %v", err)
	}
}

// BenchmarkPlaceCheck measures the check for a lost folder that every commit makes.
func BenchmarkPlaceCheck(b *testing.B) {
	s, err := Open(b.Context(), b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := s.checkPlaceBy((*place).checkLog); err != nil {
			b.Fatal(err)
		}
	}
}
