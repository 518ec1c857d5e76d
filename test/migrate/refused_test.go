package migrate

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store"
)

// spoilable returns an empty site of a kind that the test may spoil.
func spoilable(t *testing.T, kind string) site {
	t.Helper()
	if kind == "folder" {
		return folder(t)
	}
	c := pgtest.Shared(t)
	name, err := c.Database()
	if err != nil {
		t.Fatal(err)
	}
	return site{url: c.URL(name)}
}

var otherKind = map[string]string{"folder": "database", "database": "folder"}

// small creates a session with two events, and closes the store.
func (s site) small(t *testing.T) {
	t.Helper()
	st := s.open(t, options{})
	if _, err := st.Create(t.Context(), tapedeck.Spec{ID: "a", Events: said(2, "word")}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// use opens the store until the end of the test.
func (s site) use(t *testing.T) {
	st := s.open(t, options{})
	t.Cleanup(func() { _ = st.Close() })
}

// execute changes the database as another program does.
func (s site) execute(t *testing.T, statement string) {
	t.Helper()
	ctx := t.Context()
	if s.url != "" {
		c, err := pgx.Connect(ctx, s.url)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(ctx)
		if _, err := c.Exec(ctx, "SET search_path = tapedeck; "+statement); err != nil {
			t.Fatal(err)
		}
		return
	}
	db, err := sql.Open("sqlite", filepath.Join(s.folder, "tapedeck.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		t.Fatal(err)
	}
}

func executing(statement string) func(site, *testing.T) {
	return func(s site, t *testing.T) {
		s.open(t, options{}).Close() // so that there are tables
		s.execute(t, statement)
	}
}

// refusal checks an error of a transfer.
func refusal(t *testing.T, what string, r store.TransferReport, err error, part string) {
	t.Helper()
	t.Log(what, ": ", err)
	var e *tapedeck.Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, part) || e.Hint == "" {
		t.Errorf("%s: the error is %v, want %q and a hint", what, err, part)
	}
	if r.Begun {
		t.Errorf("%s: something was copied", what)
	}
}

// TestRefused: what cannot be copied is refused with a sentence and a hint, for both kinds
// of source, and nothing is copied.
func TestRefused(t *testing.T) {
	inUse := map[string]string{"folder": "is in use by process", "database": "another server writes to"}
	for kind, other := range otherKind {
		for what, test := range map[string]struct {
			source, target func(site, *testing.T) // makes the fault
			part           string
		}{
			"a source in use":            {source: site.use, part: inUse[kind]},
			"a target in use":            {target: site.use, part: inUse[other]},
			"a newer source":             {source: executing(`INSERT INTO migrations (version_id, is_applied) VALUES (9999, true)`), part: "newer Tapedeck"},
			"a newer target":             {target: executing(`INSERT INTO migrations (version_id, is_applied) VALUES (9999, true)`), part: "newer Tapedeck"},
			"an older source":            {source: executing(`DELETE FROM migrations WHERE version_id = (SELECT max(version_id) FROM migrations)`), part: "older Tapedeck"},
			"a target with sessions":     {target: site.small, part: "has sessions or other data already"},
			"a target with one row":      {target: executing(`INSERT INTO acks VALUES (1, 'a', 2)`), part: "has sessions or other data already"},
			"a source without an event":  {source: executing(`DELETE FROM events`), part: "has problems, so it is not copied"},
			"a source with another name": {source: executing(`UPDATE sessions SET title = 'x'`), part: "has problems, so it is not copied"},
			"a source with more tables":  {source: executing(`CREATE TABLE extra (session bigint)`), part: "have different tables"},
		} {
			from, to := spoilable(t, kind), spoilable(t, other)
			from.small(t)
			if test.source != nil {
				test.source(from, t)
			}
			if test.target != nil {
				test.target(to, t)
			}
			r, err := transfer(t.Context(), from, to, nil)
			refusal(t, kind+", "+what, r, err, test.part)
		}
	}
}

// TestNoSource: there is nothing to copy, and nothing is created.
func TestNoSource(t *testing.T) {
	missing := site{folder: t.TempDir() + "/missing"}
	r, err := transfer(t.Context(), missing, spoilable(t, "database"), nil)
	refusal(t, "a missing folder", r, err, "there are no sessions in")
	if _, err := os.Stat(missing.folder); err == nil {
		t.Error("it was created")
	}
	r, err = transfer(t.Context(), spoilable(t, "database"), folder(t), nil)
	if tapedeck.KindOf(err) != tapedeck.NotFound || r.Begun {
		t.Errorf("an empty database: %v", err)
	}
}

// A stopper ends a transfer with an error at a call of PutEvents.
type stopper struct {
	store.TransferTarget
	before bool // else after it
}

var errStopped = errors.New("it is stopped")

func (s stopper) PutEvents(ctx context.Context, events []store.TransferEvent, m store.TransferMark) error {
	if s.before {
		return errStopped
	}
	return errors.Join(s.TransferTarget.PutEvents(ctx, events, m), errStopped)
}

// TestChangedSource: a transfer is not continued if the source has changed, or is another
// one. What was copied stays, and no server opens it.
func TestChangedSource(t *testing.T) {
	for kind, other := range otherKind {
		from, to := spoilable(t, kind), spoilable(t, other)
		from.small(t)
		for _, before := range []bool{true, false} { // and once more while nothing has changed
			r, err := transfer(t.Context(), from, to, func(x store.TransferTarget) store.TransferTarget { return stopper{x, before} })
			if !errors.Is(err, errStopped) || r.Resumed == before {
				t.Fatalf("%s: got %v, resumed is %t", kind, err, r.Resumed)
			}
		}
		another := spoilable(t, kind)
		st := another.open(t, options{})
		if _, err := st.Create(t.Context(), tapedeck.Spec{ID: "b"}); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := transfer(t.Context(), another, to, nil)
		refusal(t, kind+", another source", r, err, "not the sessions that")

		st = from.open(t, options{})
		if _, err := st.Append(t.Context(), tapedeck.Append{Session: "a", Events: said(1, "more")}); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		r, err = transfer(t.Context(), from, to, nil)
		refusal(t, kind+", a changed source", r, err, "not the sessions that")
		refuses(t, to)
	}
}

// A forger changes what is stored.
type forger struct {
	store.TransferTarget
	event func([]store.TransferEvent) []store.TransferEvent
	row   func(table string, row store.TransferRow)
}

func (f forger) PutEvents(ctx context.Context, events []store.TransferEvent, m store.TransferMark) error {
	if f.event != nil {
		events = f.event(events)
	}
	return f.TransferTarget.PutEvents(ctx, events, m)
}

func (f forger) PutRows(ctx context.Context, t store.TransferTable, rows []store.TransferRow, m store.TransferMark) error {
	if f.row != nil {
		for _, r := range rows {
			f.row(t.Name, r)
		}
	}
	return f.TransferTarget.PutRows(ctx, t, rows, m)
}

// TestCompared: what is not the same on both sides in the end is named, and no server opens
// it.
func TestCompared(t *testing.T) {
	// A folder notices by itself that an event is not where it must be.
	missing := map[string]string{"database": `the event at offset 1 of session "a" is not there`, "folder": "an event is missing in"}
	for kind, other := range otherKind {
		for what, test := range map[string]struct {
			forger
			part string
		}{
			"a changed byte": {forger{event: func(e []store.TransferEvent) []store.TransferEvent {
				e[1].Data = append([]byte{}, e[1].Data...)
				e[1].Data[len(e[1].Data)-2] ^= 1
				return e
			}}, `the event at offset 1 of session "a" is another one there`},
			"a missing event": {forger{event: func(e []store.TransferEvent) []store.TransferEvent { return e[:1] }}, missing[other]},
			"a changed row": {forger{row: func(table string, r store.TransferRow) {
				if table == "sessions" {
					for i, v := range r {
						if v == "idle" {
							r[i] = "busy"
						}
					}
				}
			}}, "the table sessions has other values there"},
		} {
			from, to := spoilable(t, kind), spoilable(t, other)
			from.small(t)
			_, err := transfer(t.Context(), from, to, func(x store.TransferTarget) store.TransferTarget {
				test.TransferTarget = x
				return test.forger
			})
			if err == nil || !strings.Contains(err.Error(), test.part) {
				t.Errorf("%s, %s: the error is %v", kind, what, err)
			}
			refuses(t, to)
		}
	}
}

// TestTouches: if the source was not closed in good order, all TTLs start again in the
// target, as they do when a server opens the source.
func TestTouches(t *testing.T) {
	for kind, other := range otherKind {
		from, to := spoilable(t, kind), spoilable(t, other)
		from.small(t)
		from.execute(t, `UPDATE facts SET value = 0 WHERE name = 'clean'`)
		if _, err := transfer(t.Context(), from, to, nil); err != nil {
			t.Fatal(err)
		}
		source, closeSource, err := from.source(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want, err := source.Facts(t.Context())
		if err := errors.Join(err, closeSource()); err != nil {
			t.Fatal(err)
		}
		target, closeTarget, err := to.source(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, err := target.Facts(t.Context())
		if err := errors.Join(err, closeTarget()); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" || want.Clean {
			t.Errorf("%s: clean is %t (-source +target)\n%s", kind, want.Clean, d)
		}
	}
}
