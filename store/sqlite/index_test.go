package sqlite_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/storetest"
)

func TestIndex(t *testing.T) {
	storetest.RunIndex(t, func(t testing.TB) (storetest.Store, storetest.Index) {
		clock := storetest.NewClock()
		s := open(t, t.TempDir(), sqlite.Options{Now: clock.Now})
		return storetest.Store{Store: s, Clock: clock}, openIndex(t, s)
	})
}

func openIndex(t testing.TB, s *sqlite.Store) *sqlite.Index {
	t.Helper()
	x, err := s.OpenIndex()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func index(t testing.TB, s *sqlite.Store, x *sqlite.Index, id, text string) {
	t.Helper()
	h, err := s.Head(t.Context(), id)
	if err == nil {
		err = x.Index(t.Context(), search.Batch{Session: id, Gen: h.Gen, Seen: h.Head, Resume: h.Head,
			Documents: []search.Document{{Kind: search.DocMessage, Text: text}}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func hits(t testing.TB, x *sqlite.Index, text string) int {
	t.Helper()
	f, err := x.Search(t.Context(), search.Query{Text: text, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return len(f.Hits)
}

// TestIndexIsKept: an index survives a restart. One that is damaged or has another
// version is recreated, and everything is indexed again.
func TestIndexIsKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{})
	create(t, s, "a")
	x := openIndex(t, s)
	index(t, s, x, "a", "word")
	again := func() *sqlite.Index {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, sqlite.Options{})
		return openIndex(t, s)
	}
	if x = again(); hits(t, x, "word") != 1 {
		t.Error("nothing is found after a restart")
	}
	file := filepath.Join(dir, "search.db")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	for name, spoil := range map[string]func(){
		"damaged":         func() { write(t, file, "no database at all, but long enough to be looked at as one") },
		"of another kind": func() { must(t, os.WriteFile(file, make([]byte, 100), 0o600)) },
		"missing":         func() { must(t, os.Remove(file)) },
	} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		spoil()
		if x = again(); hits(t, x, "word") != 0 {
			t.Errorf("%s: something is found", name)
		}
		if _, n, err := x.Unindexed(t.Context(), 1); n != 1 || err != nil {
			t.Errorf("%s: it asks for %d sessions, %v", name, n, err)
		}
		index(t, s, x, "a", "word")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestForgottenIsInNoFile: after Forget and Clean no file has the indexed words, neither
// as words of the index nor in copies of rows that have moved.
func TestForgottenIsInNoFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{})
	x := openIndex(t, s)
	ids := []string{"a", "b", "c", "d", "e", "f"}
	docs := map[string][]search.Document{}
	for _, id := range ids {
		create(t, s, id)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		id := ids[random.IntN(len(ids))]
		docs[id] = append(docs[id], search.Document{Offset: int64(i), Kind: search.DocMessage,
			Text: fmt.Sprintf("needle%s%d common %s", id, i, strings.Repeat("words ", random.IntN(150)))})
		h, err := s.Head(t.Context(), id)
		must(t, err)
		must(t, x.Index(t.Context(), search.Batch{Session: id, Gen: h.Gen, From: int64(i), Seen: h.Head, Documents: docs[id][len(docs[id])-1:]}))
	}
	for _, id := range []string{"a", "b", "c"} {
		if found(t, dir, "needle"+id) < 50 {
			t.Fatal("the test does not see what is in the files")
		}
		must(t, x.Forget(t.Context(), id))
		must(t, x.Clean(t.Context()))
	}
	for i, id := range ids {
		if n := found(t, dir, "needle"+id); n > 0 != (i > 2) {
			t.Errorf("the text of session %s is in the files %d times", id, n)
		}
	}
	if n := hits(t, x, "common words -needlea*"); n != 100 {
		t.Errorf("%d are found", n)
	}
}

// TestSearchWhileTheIndexIsRewritten: a rewriting changes the version of the schema, and
// that several times while a search prepares its statements. The search repeats them.
func TestSearchWhileTheIndexIsRewritten(t *testing.T) {
	s := open(t, t.TempDir(), sqlite.Options{})
	create(t, s, "a")
	x := openIndex(t, s)
	index(t, s, x, "a", "an apple")
	stop := make(chan struct{})
	var searching sync.WaitGroup
	for range 3 {
		searching.Go(func() {
			for {
				if f, err := x.Search(t.Context(), search.Query{Text: "apple", Limit: 9}); err != nil || len(f.Hits) != 1 {
					t.Errorf("%d hits, %v", len(f.Hits), errors.Join(err, errors.Unwrap(err)))
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	rounds := 1500 // enough to fail on two cores without the repetition
	if testing.Short() {
		rounds = 200
	}
	for range rounds {
		if err := x.Vacuum(); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	searching.Wait()
}
