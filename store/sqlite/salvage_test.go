package sqlite_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// rescue salvages a folder, checks that the result is sound and that the source is as it
// was, and returns what the result has.
func rescue(t *testing.T, dir string) (store.Salvage, map[string][]string) {
	t.Helper()
	before := digest(t, dir)
	to := filepath.Join(t.TempDir(), "new")
	got, err := sqlite.Salvage(t.Context(), dir, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	if digest(t, dir) != before {
		t.Error("the source has changed")
	}
	if left, _ := filepath.Glob(filepath.Join(to, "salvage*")); len(left) > 0 {
		t.Errorf("there is still %v", left)
	}
	s := open(t, to, sqlite.Options{})
	report, err := s.Verify(t.Context(), nil)
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("the result has problems: %v, %v", report.Problems, err)
	}
	if report.Events != got.Events || report.Unsummed > 0 {
		t.Errorf("%d events were salvaged, and there are %d, %d without a checksum", got.Events, report.Events, report.Unsummed)
	}
	if a, err := s.Head(t.Context(), "a"); err == nil && a.Gen < 1e15 {
		t.Errorf("the gen %d may be that of a session of the source, so cursors of its clients are taken", a.Gen)
	}
	records, _ := readable(t, s)
	return got, records
}

func digest(t *testing.T, dir string) (sum [32]byte) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, database))
	if err != nil {
		t.Fatal(err)
	}
	wal, _ := os.ReadFile(filepath.Join(dir, database+"-wal"))
	return sha256.Sum256(append(b, wal...))
}

// served returns what a folder has.
func served(t *testing.T, dir string) map[string][]string {
	t.Helper()
	s := open(t, dir, sqlite.Options{})
	records, _ := readable(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return records
}

func cut(session string, offset, head int64, reason string) store.SalvageCut {
	return store.SalvageCut{Session: session, Offset: offset, Head: head, Reason: reason}
}

func TestSalvage(t *testing.T) {
	for name, c := range map[string]struct {
		statement string
		cut, lost []store.SalvageCut
		whole     int64
		length    map[string]int // of the sessions that are not whole
	}{
		"nothing is damaged": {"SELECT 1", nil, nil, 4, nil},
		"an event": {`UPDATE events SET event = replace(event, 'word', 'ward') WHERE session = 1 AND offset = 9`,
			[]store.SalvageCut{cut("a", 9, 24, "the event there is damaged or cannot be read"), cut("c", 9, 28, `session "b", from which it was forked, ends there`), cut("d", 9, 28, `session "b", from which it was forked, ends there`)},
			nil, 1, map[string]int{"a": 9, "c": 9, "d": 9}},
		"the last event": {`DELETE FROM events WHERE session = 1 AND offset = 23`,
			[]store.SalvageCut{cut("a", 23, 24, "the events from there on cannot be read"), cut("c", 23, 28, `session "b", from which it was forked, ends there`), cut("d", 23, 28, `session "b", from which it was forked, ends there`)},
			nil, 1, map[string]int{"a": 23, "c": 23, "d": 23}},
		"a fork": {`UPDATE events SET sum = sum + 1 WHERE session = 3 AND offset = 27`,
			[]store.SalvageCut{cut("c", 27, 28, "the event there is damaged or cannot be read")}, nil, 3, map[string]int{"c": 27}},
		"a parent's row": {`UPDATE sessions SET id = '' WHERE id = 'b'`, nil,
			[]store.SalvageCut{
				cut("salvaged-2", 0, 0, "its entry cannot be read, and it does not begin at offset 0: it may be a fork"),
				cut("c", 0, 28, `session "b", from which it was forked, cannot be read`), cut("d", 0, 28, `session "b", from which it was forked, cannot be read`),
			}, 2, map[string]int{"c": 0, "d": 0}},
		"no places": {`DELETE FROM places; UPDATE facts SET value = 0 WHERE name = 'placed'; DELETE FROM lineage`, nil, nil, 4, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			furnish(t, dir)
			want := served(t, dir)
			tamper(t, filepath.Join(dir, database), c.statement)
			got, records := rescue(t, dir)
			if d := cmp.Diff(c.cut, got.Cut); d != "" {
				t.Errorf("cut (-want +got)\n%s", d)
			}
			if d := cmp.Diff(c.lost, got.Lost); d != "" {
				t.Errorf("lost (-want +got)\n%s", d)
			}
			if got.Whole != c.whole {
				t.Errorf("%d are whole, want %d", got.Whole, c.whole)
			}
			for id, all := range want {
				if n, ok := c.length[id]; ok {
					all = all[:n]
				}
				if d := cmp.Diff(all, append([]string{}, records[id]...)); d != "" {
					t.Errorf("%s (-want +got)\n%s", id, d)
				}
			}
		})
	}
}

// TestSalvageWithoutName: the events of a session whose row cannot be read are found.
func TestSalvageWithoutName(t *testing.T) {
	dir := t.TempDir()
	furnish(t, dir)
	tamper(t, filepath.Join(dir, database), "DELETE FROM sessions WHERE id = 'a'")
	got, _ := rescue(t, dir)
	if want := []store.SalvageCut{{Session: "salvaged-1", Offset: 24, Head: 0, Reason: "its entry cannot be read, so it is not known whether it had more"}}; got.Nameless != 1 || cmp.Diff(want, got.Cut[:1]) != "" {
		t.Errorf("got %+v", got)
	}
}

// TestSalvageOfPages overwrites random pages. What is salvaged is what was written.
func TestSalvageOfPages(t *testing.T) {
	origin := t.TempDir()
	furnish(t, origin)
	s := open(t, origin, sqlite.Options{})
	add(t, s, "a", 400)
	for i := range 60 {
		create(t, s, fmt.Sprint("s", i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want := served(t, origin)
	sound, err := os.ReadFile(filepath.Join(origin, database))
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	// Seven of the pages lose all four sessions: the roots of the tables, and what Open reads.
	const rounds = 8
	least := 0
	for _, page := range random.Perm(len(sound)/4096 - 1)[:rounds] {
		b := bytes.Clone(sound)
		page++ // not the first, which has the schema
		copy(b[page*4096:], bytes.Repeat([]byte{0xa5}, 4096))
		dir := t.TempDir()
		write(t, filepath.Join(dir, database), string(b))
		to := filepath.Join(t.TempDir(), "new")
		if _, err := sqlite.Salvage(t.Context(), dir, to, nil); err != nil {
			t.Logf("seed %d, page %d: %v", seed, page, err)
			continue
		}
		s := open(t, to, sqlite.Options{})
		records, _ := readable(t, s)
		for id, got := range records {
			if len(got) > 0 {
				least++
			}
			if len(got) > len(want[id]) || cmp.Diff(want[id][:len(got)], got) != "" {
				t.Fatalf("seed %d, page %d: %s has other events", seed, page, id)
			}
		}
		if report, err := s.Verify(t.Context(), nil); err != nil || len(report.Problems) > 0 {
			t.Fatalf("seed %d, page %d: %v, %v", seed, page, report.Problems, err)
		}
	}
	if least == 0 {
		t.Error("nothing was salvaged in any round")
	}
}

func TestSalvageRefusals(t *testing.T) {
	dir, used := t.TempDir(), t.TempDir()
	furnish(t, dir)
	furnish(t, used)
	for name, c := range map[string]struct {
		from, to string
		kind     tapedeck.Kind
		want     string
	}{
		"no database":      {t.TempDir(), filepath.Join(t.TempDir(), "x"), tapedeck.NotFound, "there are no sessions in"},
		"a target in use":  {dir, used, tapedeck.Conflict, "has sessions or other data already"},
		"the source":       {dir, dir, tapedeck.Invalid, "is only read"},
		"another database": {foreignFolder(t), filepath.Join(t.TempDir(), "x"), tapedeck.Conflict, "is not a Tapedeck database"},
		"no database file": {textFolder(t), filepath.Join(t.TempDir(), "x"), tapedeck.Conflict, "or its beginning is damaged"},
	} {
		if _, err := sqlite.Salvage(t.Context(), c.from, c.to, nil); tapedeck.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	open(t, dir, sqlite.Options{}) // a server
	if _, err := sqlite.Salvage(t.Context(), dir, filepath.Join(t.TempDir(), "x"), nil); tapedeck.KindOf(err) != tapedeck.Conflict {
		t.Errorf("beside a server: got %v", err)
	}
}

// TestSalvageAgain: a salvage that fails leaves nothing that is in the way of the next one, and
// one that was killed says how to go on.
func TestSalvageAgain(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	furnish(t, dir)
	whole := &countdown{Context: t.Context()}
	whole.left.Store(many)
	if _, err := sqlite.Salvage(whole, dir, filepath.Join(t.TempDir(), "x"), nil); err != nil {
		t.Fatal(err)
	}
	failures := 0
	for calls := many - whole.left.Load() - 25; ; calls++ { // near the end it writes sessions
		ctx := &countdown{Context: t.Context()}
		ctx.left.Store(calls)
		err := sqlite.Attempt(to, func() error { _, err := sqlite.Salvage(ctx, dir, to, nil); return err })
		if err == nil {
			break
		}
		if failures++; !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d calls: %v", calls, err)
		}
	}
	if failures < 5 {
		t.Errorf("only %d attempts have failed", failures)
	}
	killed := t.TempDir()
	write(t, filepath.Join(killed, "salvage.db"), "a part")
	_, err := sqlite.Salvage(t.Context(), dir, killed, nil)
	var e *tapedeck.Error
	if !errors.As(err, &e) || e.Kind != tapedeck.Conflict || !strings.Contains(e.Hint, "delete "+killed) {
		t.Errorf("after a kill: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(killed, "salvage.db")); string(b) != "a part" {
		t.Errorf("the file that was there is now %q, %v", b, err)
	}
}

const many = 1 << 40

// A countdown is a context that ends at a call of Done.
type countdown struct {
	context.Context
	left atomic.Int64
}

func (c *countdown) Done() <-chan struct{} {
	if c.left.Add(-1) > 0 {
		return nil
	}
	ended := make(chan struct{})
	close(ended)
	return ended
}

func (c *countdown) Err() error {
	if c.left.Load() > 0 {
		return nil
	}
	return context.Canceled
}

func foreignFolder(t *testing.T) string {
	dir := t.TempDir()
	tamper(t, filepath.Join(dir, database), "CREATE TABLE x (y)")
	return dir
}

func textFolder(t *testing.T) string {
	dir := t.TempDir()
	write(t, filepath.Join(dir, database), strings.Repeat("no database ", 1000))
	return dir
}
