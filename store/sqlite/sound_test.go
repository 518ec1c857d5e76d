package sqlite_test

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

var flips = flag.Int("flips", 60, "number of bytes that TestFlippedBytes flips, one after the other")

const database = "tapedeck.db"

// readable reads all that a store serves: the records by session, and an error for each
// session that cannot be read to its end.
func readable(t testing.TB, s tapedeck.Store) (records map[string][]string, failed map[string]error) {
	t.Helper()
	records, failed = map[string][]string{}, map[string]error{}
	for _, id := range []string{"a", "c", "d", "stream/x"} {
		for from := int64(0); ; {
			p, err := s.Read(t.Context(), id, tapedeck.Range{From: from})
			if err != nil {
				failed[id] = err
				break
			}
			for _, r := range p.Records {
				records[id] = append(records[id], string(r.Data))
			}
			if from = p.Next; len(p.Records) == 0 {
				break
			}
		}
	}
	return records, failed
}

// TestFlippedBytes flips bytes at random places of a database. Nothing else than what was
// written is ever served, and whatever has an effect is named by verify, or the database
// cannot be opened.
func TestFlippedBytes(t *testing.T) {
	origin := t.TempDir()
	furnish(t, origin)
	s := open(t, origin, sqlite.Options{})
	add(t, s, "a", 300)
	want, _ := readable(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(filepath.Join(origin, database))
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	rounds := *flips
	if testing.Short() {
		rounds = 20
	}
	effects := 0
	for range rounds {
		b := bytes.Clone(sound)
		at := random.IntN(len(b))
		if random.IntN(2) == 0 { // half of them in what people have said
			at = bytes.LastIndex(b[:at], []byte("word "))
			at = max(0, at) + random.IntN(5)
		}
		b[at] ^= byte(1 + random.IntN(255))
		if flipped(t, b, want, fmt.Sprintf("seed %d, byte %d is %#x", seed, at, b[at])) {
			effects++
		}
	}
	if effects == 0 {
		t.Error("no flipped byte had an effect")
	}
}

// TestFlippedPages flips a byte in each page of a database: of tables, of indexes and of what
// has no rows. TestTornPages puts half of an older page, or all of it, in the place of each
// page that has changed. The rules are those of TestFlippedBytes.
func TestFlippedPages(t *testing.T) {
	_, sound, want := twoStates(t)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	effects := 0
	for page := 0; page < len(sound); page += pageSize {
		b := bytes.Clone(sound)
		at := page + random.IntN(pageSize)
		b[at] ^= byte(1 + random.IntN(255))
		if flipped(t, b, want, fmt.Sprintf("seed %d, byte %d is %#x", seed, at, b[at])) {
			effects++
		}
	}
	if effects == 0 {
		t.Error("no flipped byte had an effect")
	}
}

func TestTornPages(t *testing.T) {
	older, sound, want := twoStates(t)
	effects := 0
	for page := 0; page < len(older); page += pageSize {
		if bytes.Equal(older[page:page+pageSize], sound[page:page+pageSize]) {
			continue
		}
		for _, half := range [][2]int{{0, pageSize / 2}, {pageSize / 2, pageSize}, {0, pageSize}} {
			b := bytes.Clone(sound)
			copy(b[page+half[0]:page+half[1]], older[page+half[0]:])
			if flipped(t, b, want, fmt.Sprintf("page %d, bytes %d to %d are older", page/pageSize, half[0], half[1])) {
				effects++
			}
		}
	}
	if effects == 0 {
		t.Error("no older page had an effect")
	}
}

const pageSize = 4096

// twoStates returns a database before and after appends, and what it serves then.
func twoStates(t *testing.T) (older, newer []byte, want map[string][]string) {
	t.Helper()
	dir := t.TempDir()
	furnish(t, dir)
	state := func(n int) []byte {
		s := open(t, dir, sqlite.Options{})
		for _, id := range []string{"a", "c", "d"} {
			add(t, s, id, n)
		}
		want, _ = readable(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, database))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	older = state(30)
	newer = state(40)
	return older, newer, want
}

// flipped opens a damaged database and reports whether the damage has an effect.
func flipped(t *testing.T, b []byte, want map[string][]string, what string) bool {
	dir := t.TempDir()
	write(t, filepath.Join(dir, database), string(b))
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{CheckBelow: -1})
	if err != nil {
		return true
	}
	defer s.Close()
	got, failed := readable(t, s)
	effect := len(failed) > 0
	for id, records := range want {
		effect = effect || len(got[id]) != len(records)
		for i, r := range got[id] {
			if i >= len(records) || r != records[i] {
				t.Fatalf("%s: %s serves another record at offset %d: %.200q", what, id, i, r)
			}
		}
	}
	report, err := s.Verify(t.Context(), nil)
	if err != nil {
		t.Fatalf("%s: verify fails: %v", what, err)
	}
	if effect && len(report.Problems) == 0 {
		t.Fatalf("%s: verify finds nothing, but %v", what, failed)
	}
	return effect
}

// TestChanged changes the bytes of one event in ways that leave it valid JSON. It is not
// served, all others are, the server logs it once, and verify names it.
func TestChanged(t *testing.T) {
	dir := t.TempDir()
	furnish(t, dir)
	tamper(t, filepath.Join(dir, database),
		`UPDATE events SET event = replace(event, 'word', 'ward') WHERE session = 1 AND offset = 9`,
		`UPDATE events SET event = x'01' WHERE session = (SELECT gen FROM sessions WHERE id = 'stream/x') AND offset = 2`)
	var log bytes.Buffer
	s := open(t, dir, sqlite.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 {
		for id, c := range map[string]struct {
			tapedeck.Range
			n, offset int
		}{
			"a": {tapedeck.Range{}, 9, 9}, "c": {tapedeck.Range{From: 28, Reverse: true}, 18, 9}, "stream/x": {tapedeck.Range{}, 2, 2},
		} {
			if n, err := readOn(t, s, id, c.Range); n != c.n || !isDamage(err, id, c.offset) {
				t.Errorf("%s: %d records and %v", id, n, err)
			}
		}
	}
	if n, err := readOn(t, s, "a", tapedeck.Range{From: 10}); n != 14 || err != nil {
		t.Errorf("after it: %d records and %v", n, err)
	}
	if n := strings.Count(log.String(), "is damaged"); n != 3 || s.Figures().Damaged != 3 {
		t.Errorf("it is counted %d times and logged %d times:\n%s", s.Figures().Damaged, n, log.String())
	}
	report, err := s.Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`session "a": the event at offset 9 is damaged`, `session "stream/x": the event at offset 2 is damaged`,
	} {
		if all := strings.Join(report.Problems, "\n"); !strings.Contains(all, want) || len(report.Problems) != 2 {
			t.Errorf("it does not find %q, but:\n%s", want, all)
		}
	}
}

// TestChains exchanges whole rows, each of which is valid.
func TestChains(t *testing.T) {
	const swap = `UPDATE events SET event = (SELECT event FROM events WHERE session = 1 AND offset = 15 - e.offset), sum = (SELECT sum FROM events WHERE session = 1 AND offset = 15 - e.offset)
		FROM (SELECT offset, pos FROM events) e WHERE events.pos = e.pos AND events.session = 1 AND events.offset IN (7, 8)`
	for name, c := range map[string]struct{ statement, want string }{
		"exchanged":       {swap, `session "a": the event at offset 7 is damaged`},
		"of another":      {`UPDATE events SET (event, sum) = (SELECT event, sum FROM events WHERE offset = 24 LIMIT 1) WHERE session = 1 AND offset = 9`, `the event at offset 9 is damaged`},
		"the first":       {`UPDATE events SET sum = NULL WHERE session = 1 AND offset = 0`, `session "a": the event at offset 1 was not written after the one before it`},
		"without sum":     {`UPDATE events SET sum = NULL WHERE session = 1 AND offset = 5`, `the event at offset 5 has no checksum`},
		"lost end":        {`DELETE FROM events WHERE session = 1 AND offset = 23; UPDATE heads SET head = 23 WHERE session = 1; DELETE FROM lineage; UPDATE sessions SET parent = '', fork_at = 0`, `session "a": its last event is not the one that was written last`},
		"noted link":      {`UPDATE heads SET link = link + 1 WHERE session = 1`, `session "a": its last event is not the one that was written last`},
		"a fork's parent": {`UPDATE heads SET link = 0; UPDATE events SET sum = NULL WHERE session = 1`, `session "b": the event at offset 24 was not written after the one before it`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			furnish(t, dir)
			tamper(t, filepath.Join(dir, database), c.statement)
			report, err := open(t, dir, sqlite.Options{CheckBelow: -1}).Verify(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(report.Problems, "\n"); !strings.Contains(all, c.want) {
				t.Errorf("it does not find %q, but:\n%s", c.want, all)
			}
		})
	}
}

// TestOldState puts an event back that was valid before: as if the disk had lost a write.
func TestOldState(t *testing.T) {
	dir, older := t.TempDir(), t.TempDir()
	s := open(t, dir, sqlite.Options{})
	create(t, s, "a")
	add(t, s, "a", 4)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, database))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(older, database), string(b))
	for folder, text := range map[string]string{dir: "one", older: "two"} { // two histories of the same session
		s := open(t, folder, sqlite.Options{})
		for range 3 {
			if _, err := s.Append(t.Context(), tapedeck.Append{Session: "a", Events: []tapedeck.Event{{Type: "x", Data: []byte(`{"text":"` + text + `"}`)}}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tamper(t, filepath.Join(dir, database), `ATTACH '`+filepath.Join(older, database)+`' AS older;
		UPDATE events SET (event, sum) = (SELECT event, sum FROM older.events o WHERE o.session = events.session AND o.offset = events.offset) WHERE offset = 5`)
	s = open(t, dir, sqlite.Options{})
	report, err := s.Verify(t.Context(), nil)
	for _, offset := range []int{5, 6} { // it does not follow what is before it, and what is after it does not follow it
		want := fmt.Sprintf(`session "a": the event at offset %d was not written after the one before it`, offset)
		if all := strings.Join(report.Problems, "\n"); err != nil || !strings.Contains(all, want) {
			t.Errorf("it does not find %q, but %v:\n%s", want, err, all)
		}
	}
}

// TestSumsOfErased: an erasure gives the events new sums, and the chain holds.
func TestSumsOfErased(t *testing.T) {
	dir := t.TempDir()
	furnish(t, dir)
	s := open(t, dir, sqlite.Options{})
	erase := func(from, to int64) error {
		_, err := s.Erase(t.Context(), tapedeck.Erasure{Session: "a", Ranges: []tapedeck.OffsetRange{{From: from, To: to}}, Events: []tapedeck.Event{{Type: "events.erased"}}})
		return err
	}
	if err := erase(3, 24); err != nil {
		t.Fatal(err)
	}
	add(t, s, "a", 2)
	if _, err := s.Create(t.Context(), tapedeck.Spec{ID: "e", Parent: "a", ForkAt: new(int64(10)), Events: chunks(2)}); err != nil {
		t.Fatal(err)
	}
	report, err := s.Verify(t.Context(), nil)
	if err != nil || len(report.Problems) > 0 || report.Unsummed > 0 {
		t.Errorf("got %+v, %v", report, err)
	}
	// What is damaged is not erased: its record without the payload would be made of the damage.
	tamper(t, filepath.Join(dir, database), `UPDATE events SET event = replace(event, 'offset', 'offsat') WHERE session = 1 AND offset = 25`)
	if err := erase(24, 26); !isDamage(err, "a", 25) {
		t.Errorf("got %v", err)
	}
	if n, err := readOn(t, s, "a", tapedeck.Range{From: 24}); n != 1 || !isDamage(err, "a", 25) {
		t.Errorf("half of it was erased: %d records and %v", n, err)
	}
}

// TestBeforeSums: events that were written before there were checksums are served, counted,
// and followed by events with one.
func TestBeforeSums(t *testing.T) {
	dir := t.TempDir()
	furnish(t, dir)
	tamper(t, filepath.Join(dir, database), "UPDATE events SET sum = NULL", "UPDATE heads SET link = 0")
	s := open(t, dir, sqlite.Options{})
	add(t, s, "a", 3)
	if _, err := s.Create(t.Context(), tapedeck.Spec{ID: "e", Parent: "a", ForkAt: new(int64(10)), Events: chunks(2)}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Erase(t.Context(), tapedeck.Erasure{Session: "a", Ranges: []tapedeck.OffsetRange{{From: 22, To: 25}}, Events: []tapedeck.Event{{Type: "events.erased"}}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := readOn(t, s, "a", tapedeck.Range{}); n != 28 || err != nil {
		t.Errorf("%d records and %v", n, err)
	}
	report, err := s.Verify(t.Context(), nil)
	if err != nil || len(report.Problems) > 0 || report.Unsummed != 33 {
		t.Errorf("got %+v, %v", report, err)
	}
}
