package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// furnish creates a store with data of every kind and closes it.
func furnish(t testing.TB, dir string) {
	t.Helper()
	ctx := context.Background()
	s := open(t, dir, sqlite.Options{})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	event := func(typ, invocation, data string) tapedeck.Event {
		return tapedeck.Event{Type: typ, Invocation: invocation, Data: []byte(data)}
	}
	_, err := s.Create(ctx, tapedeck.Spec{ID: "a", Events: []tapedeck.Event{
		event("session.created", "", `{"title":"A talk","owner":"ada","agent":"coder","labels":{"k":"v"}}`),
		event("RUN_STARTED", "i", `{}`), event("RUN_STARTED", "j", `{}`), event("RUN_FINISHED", "i", `{}`),
	}})
	must(err)
	add(t, s, "a", 20)
	for _, fork := range []struct{ id, parent string }{{"b", "a"}, {"c", "b"}, {"d", "b"}} {
		_, err = s.Create(ctx, tapedeck.Spec{ID: fork.id, Parent: fork.parent, Events: chunks(2)})
		must(err)
	}
	must(s.Delete(ctx, "b"))
	_, err = s.Create(ctx, tapedeck.Spec{ID: "stream/x", Kind: tapedeck.KindStream, Chunks: [][]byte{[]byte("x"), nil, {0, 255}}})
	must(err)
	_, err = s.Append(ctx, tapedeck.Append{Session: "stream/x", Close: true, Producer: &tapedeck.Producer{ID: "w"}})
	must(err)
	must(s.Close())
}

func TestVerifySound(t *testing.T) {
	dir := t.TempDir()
	furnish(t, dir)
	s := open(t, dir, sqlite.Options{})
	add(t, s, "a", 20_000)
	var steps []int64
	report, err := s.Verify(t.Context(), func(done, total int64) {
		if total != 20_033 || done > total {
			t.Errorf("%d of %d are done", done, total)
		}
		steps = append(steps, done)
	})
	if err != nil || len(report.Problems) > 0 {
		t.Fatalf("%v, %v", report.Problems, err)
	}
	if report.Sessions != 4 || report.Streams != 1 || report.Events != 20_033 || report.Bytes < 20_000*300 {
		t.Errorf("got %+v", report)
	}
	if len(steps) != 4 || steps[0] != 0 || steps[3] != 20_033 {
		t.Errorf("progress was %v", steps)
	}
}

// TestVerifyFinds breaks one thing at a time.
func TestVerifyFinds(t *testing.T) {
	const gen = "(SELECT gen FROM sessions WHERE id = '%s')"
	of := func(id, statement string) string {
		return strings.ReplaceAll(statement, "$", strings.ReplaceAll(gen, "%s", id))
	}
	for name, c := range map[string]struct{ statement, want string }{
		"a missing event":       {of("a", "DELETE FROM events WHERE session = $ AND offset = 7"), `session "a" has offset 8 where 7 belongs`},
		"the last event":        {of("a", "DELETE FROM events WHERE session = $ AND offset = 23"), `session "a" has its head at 24 and its records end at 23`},
		"the first of a fork":   {of("c", "DELETE FROM events WHERE session = $ AND offset = 26"), `session "c" has offset 27 where 26 belongs`},
		"a message":             {of("stream/x", "DELETE FROM events WHERE session = $ AND offset = 1"), `session "stream/x" has offset 2 where 1 belongs`},
		"a head":                {of("a", "UPDATE heads SET head = 25 WHERE session = $"), `session "a" has its head at 25 and its records end at 24`},
		"no head":               {of("a", "DELETE FROM heads WHERE session = $"), `session "a" has no head`},
		"an event that is none": {of("a", "UPDATE events SET event = '{}x' WHERE session = $ AND offset = 3"), `the event at offset 3 cannot be read`},
		"an event as bytes":     {of("a", "UPDATE events SET event = CAST(event AS BLOB) WHERE session = $ AND offset = 3"), `the event at offset 3 is not text`},
		"an offset inside":      {of("a", `UPDATE events SET event = replace(event, '"offset":3,', '"offset":4,') WHERE session = $`), `the event at offset 3 says that it is at 4`},
		"a title":               {"UPDATE sessions SET title = 'Another' WHERE id = 'a'", `does not agree with the events of session "a": title is "Another", but "A talk" by the events`},
		"runs":                  {"UPDATE sessions SET runs = NULL WHERE id = 'a'", `does not agree with the events of session "a": runs is [], but [{"invocation":"j",`},
		"labels":                {"UPDATE sessions SET labels = '{' WHERE id = 'a'", `the entry of session "a" cannot be read`},
		"a time":                {of("a", "UPDATE heads SET updated = 7 WHERE session = $"), `the catalogue has session "a" updated at`},
		"forks":                 {"UPDATE sessions SET forks = 7 WHERE id = 'a'", `session "a" has 1 forks, but its stored count is 7`},
		"a deleted session":     {"UPDATE sessions SET deleted = 1 WHERE id = 'd'", `session "d" was deleted and no fork needs it`},
		"a parent":              {"UPDATE sessions SET parent = 'x' WHERE id = 'c'", `forked from "x", which is not stored`},
		"an ancestor":           {of("c", "UPDATE lineage SET ancestor = 99 WHERE session = $ AND from_offset = 0"), `session "c" inherits offsets 0 to 24 of a session that does not have them`},
		"lineage":               {of("c", "DELETE FROM lineage WHERE session = $ AND from_offset = 0"), `session "c" inherits offsets 24 to 26, but the next inherited offset must be 0`},
		"the end of lineage":    {of("c", "DELETE FROM lineage WHERE session = $ AND from_offset > 0"), `session "c" was forked at offset 26, but inherits the events below offset 24`},
		"stray events":          {"INSERT INTO events VALUES (999, 99, 0, 'x', NULL)", `1 events belong to no session`},
		"a missing place":       {of("a", "DELETE FROM places WHERE session = $"), `session "a" has its head at 24 and its records end at 0`},
		"a place of another":    {of("c", "UPDATE places SET pos = '[1,2]' WHERE session = $"), `session "c" has its head at 28 and its records end at 26`},
		"a place twice":         {of("a", "UPDATE places SET pos = replace(pos, ',4,', ',5,') WHERE session = $"), `session "a" has the event at offset 3 at another position than the table places says`},
		"places that are none":  {of("a", "UPDATE places SET pos = '[1,' WHERE session = $"), `the positions of a session's events cannot be read`},
		"a later beginning":     {"UPDATE facts SET value = 1000 WHERE name = 'placed'; DELETE FROM places WHERE session = 1", `session "a" has its head at 24 and its records end at 0`},
		"stray places":          {"INSERT INTO places VALUES (99, 0, 1, '[1]')", `1 rows of the table places belong to no session`},
		"a stored diagram":      {"INSERT INTO workflows (name, digest, number, title, added, size, diagram) VALUES ('w', 'sha256:00', 1, '', 0, 1, x'78')", `the stored diagram of workflow "w", version sha256:00, is damaged`},
		"stray heads":           {"INSERT INTO heads VALUES (99, 0, 0, 0)", `1 rows of the table heads belong to no session`},
		"an index": {"PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = 'CREATE INDEX sessions_by_owner ON sessions (title)' WHERE name = 'sessions_by_owner'",
			`the database file is damaged: row 1 missing from index sessions_by_owner`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			furnish(t, dir)
			tamper(t, filepath.Join(dir, "tapedeck.db"), c.statement)
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

// TestHole: a read of a missing event is an error, never a silent gap. The events before it
// can be read.
func TestHole(t *testing.T) {
	dir := t.TempDir()
	furnish(t, dir)
	tamper(t, filepath.Join(dir, "tapedeck.db"), "DELETE FROM events WHERE session = 1 AND offset IN (7, 23)")
	s := open(t, dir, sqlite.Options{})
	for _, c := range []struct {
		tapedeck.Range
		n, hole int
	}{
		{tapedeck.Range{}, 7, 7},
		{tapedeck.Range{From: 7}, 0, 7},
		{tapedeck.Range{From: 7, Limit: 1}, 0, 7},
		{tapedeck.Range{From: 23}, 0, 23},
		{tapedeck.Range{From: 20}, 3, 23},
		{tapedeck.Range{From: 8, Reverse: true}, 0, 7},
		{tapedeck.Range{From: 24, Reverse: true}, 0, 23},
		{tapedeck.Range{From: 20, Reverse: true}, 12, 7},
		{tapedeck.Range{From: 6, Limit: 2}, 1, 7},
	} {
		for _, id := range []string{"a", "c"} {
			if n, err := readOn(t, s, id, c.Range); n != c.n || !isDamage(err, id, c.hole) {
				t.Errorf("%s %+v: %d records and %v", id, c.Range, n, err)
			}
		}
	}
}

// readOn reads pages until there is an error or the end, and returns the number of records.
// Their offsets must follow each other.
func readOn(t testing.TB, s tapedeck.Store, id string, r tapedeck.Range) (n int, err error) {
	t.Helper()
	for {
		p, err := s.Read(t.Context(), id, r)
		if err != nil {
			return n, err
		}
		for _, rec := range p.Records {
			n++
			if want := r.From; !r.Reverse && rec.Offset != want || r.Reverse && rec.Offset != want-1 {
				t.Fatalf("%s: offset %d comes after %d", id, rec.Offset, want)
			}
			if r.From++; r.Reverse {
				r.From -= 2
			}
		}
		if len(p.Records) == 0 {
			return n, nil
		}
	}
}

// isDamage reports whether err names a damaged event.
func isDamage(err error, id string, offset int) bool {
	return tapedeck.KindOf(err) == tapedeck.Internal && strings.Contains(err.Error(), fmt.Sprintf("the event at offset %d of session %q is damaged", offset, id))
}

func TestVerifyIsCancelled(t *testing.T) {
	dir := t.TempDir()
	furnish(t, dir)
	s := open(t, dir, sqlite.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Verify(ctx, func(int64, int64) { cancel() })
	if err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	s := open(t, t.TempDir(), sqlite.Options{})
	id := tapedeck.StreamPrefix + "x"
	big := make([]byte, 257<<20)
	for name, chunks := range map[string][][]byte{"one": {big}, "all": {big[:200<<20], big[:200<<20], big[:200<<20], big[:200<<20], big[:200<<20], big[:200<<20]}} {
		_, err := s.Create(t.Context(), tapedeck.Spec{ID: id, Kind: tapedeck.KindStream, Chunks: chunks})
		if tapedeck.KindOf(err) != tapedeck.TooLarge {
			t.Errorf("create with %s too large: %v", name, err)
		}
		if _, err := s.Append(t.Context(), tapedeck.Append{Session: id, Chunks: chunks}); tapedeck.KindOf(err) != tapedeck.TooLarge {
			t.Errorf("append of %s too large: %v", name, err)
		}
	}
}
