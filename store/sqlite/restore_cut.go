package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// keepSessions fills temp.kept with the gens of the sessions to restore. head is the offset
// at which each of them ends; hidden are those that are there only for their forks.
func (r *restore) keepSessions() error {
	err := r.conn.exec(`CREATE TEMP TABLE kept (gen INTEGER PRIMARY KEY, id TEXT, parent TEXT, kind TEXT, created INTEGER, fork_at INTEGER, was INTEGER, head INTEGER, hidden INTEGER)`)
	if err != nil {
		return err
	}
	insert := `INSERT INTO temp.kept SELECT s.gen + ?1, s.id, s.parent, s.kind, s.created, s.fork_at, h.head, h.head, s.deleted IS NOT NULL
		FROM catalogue.sessions s JOIN catalogue.heads h ON h.session = s.gen`
	if r.Session == "" {
		return r.conn.exec(insert, r.shift)
	}
	found, err := r.conn.number(`SELECT count(*) FROM catalogue.sessions WHERE id = ? AND deleted IS NULL`, r.Session)
	switch {
	case err != nil:
		return err
	case found == 0:
		return tapedeck.Errorf(tapedeck.NotFound, "the backup has no session %q at %s", r.Session, r.point.Time.Format(time.RFC3339)).
			WithHint("it may be at another moment: --at TIME")
	}
	err = r.conn.exec(insert+` WHERE s.id IN (WITH RECURSIVE line (id) AS (SELECT ?2 UNION SELECT p.parent FROM line JOIN catalogue.sessions p ON p.id = line.id WHERE p.parent <> '') SELECT id FROM line)`, r.shift, r.Session)
	if err == nil {
		err = r.conn.exec(`UPDATE temp.kept SET hidden = (id <> ?)`, r.Session)
	}
	if err != nil || r.Before < 0 {
		return err
	}
	return r.keepBefore()
}

// refuseEncrypted returns an error if a restore up to a moment or an offset would have to
// read encrypted events, which have their times inside.
func (r *restore) refuseEncrypted() error {
	if r.At.IsZero() && r.Before < 0 {
		return nil
	}
	has, err := r.conn.number(`SELECT count(*) FROM pragma_table_info('sessions', 'catalogue') WHERE name = 'key'`)
	if err != nil || has == 0 {
		return err
	}
	n, err := r.conn.number(`SELECT count(*) FROM catalogue.sessions WHERE key IS NOT NULL AND gen + ? IN (SELECT gen FROM temp.kept)`, r.shift)
	if err != nil || n == 0 {
		return err
	}
	return tapedeck.Errorf(tapedeck.Conflict, "the backup %s has encrypted sessions, and these are restored with all their events only", r.dest).
		WithHint("leave out --at and --before; then fork a session before the offset that you want")
}

// keepBefore ends the session to restore before an offset.
func (r *restore) keepBefore() error {
	var from, head int64
	err := r.conn.query(func(row []driver.Value) error {
		from, head = integer(row[0]), integer(row[1])
		return nil
	}, `SELECT fork_at, head FROM temp.kept WHERE NOT hidden`)
	switch {
	case err != nil:
		return err
	case r.Before > head:
		return tapedeck.Errorf(tapedeck.Invalid, "session %q has %d events in the backup, so --before %d is too high", r.Session, head, r.Before)
	case r.Before <= from && from > 0:
		return tapedeck.Errorf(tapedeck.Invalid, "session %q inherits the events before offset %d from its parent, so --before must be higher", r.Session, from).
			WithHint("restore the parent instead")
	case r.Before == 0:
		return tapedeck.Errorf(tapedeck.Invalid, "--before 0 leaves nothing of the session")
	}
	return r.conn.exec(`UPDATE temp.kept SET head = ? WHERE NOT hidden`, r.Before)
}

const (
	// sqlLater finds the first event of each session that was stored after a time. The
	// server sets the timestamp of events, so it is the time at which they were stored.
	sqlLater = `UPDATE temp.kept SET head = min(head, coalesce((SELECT first FROM temp.later l WHERE l.gen = kept.gen), head))`

	sqlMakeLater = `CREATE TEMP TABLE later AS SELECT e.session AS gen, min(e.offset) AS first FROM main.events e JOIN temp.kept k ON k.gen = e.session
	WHERE e.pos > ?1 AND CASE WHEN k.kind = 'session' THEN CAST(round(unixepoch(json_extract(e.event, '$.timestamp'), 'subsec') * 1000) AS INTEGER) > ?2 END GROUP BY e.session`

	// Messages of streams have no time. Those are kept that were stored before the newest
	// kept event of a session.
	sqlLaterMessages = `INSERT INTO temp.later SELECT e.session, min(e.offset) FROM main.events e JOIN temp.kept k ON k.gen = e.session
	WHERE k.kind = 'stream' AND e.pos > (SELECT coalesce(max(x.pos), ?1) FROM main.events x JOIN temp.kept y ON y.gen = x.session
		LEFT JOIN temp.later l ON l.gen = y.gen WHERE x.pos > ?1 AND y.kind = 'session' AND (l.first IS NULL OR x.offset < l.first)) GROUP BY e.session`

	// sqlNeeded lets a session keep what a kept fork inherits from it.
	sqlNeeded = `UPDATE temp.kept SET head = max(head, coalesce((SELECT max(l.to_offset) FROM catalogue.lineage l WHERE l.ancestor + ?1 = kept.gen AND l.session + ?1 IN (SELECT gen FROM temp.kept)), 0))`

	sqlDropNew = `DELETE FROM temp.kept WHERE head <= fork_at AND (was > fork_at OR created > ?)`

	// sqlDropUnneeded removes deleted sessions whose forks are not there, and forks whose
	// parents are not there.
	sqlDropUnneeded = `DELETE FROM temp.kept WHERE hidden AND id NOT IN (SELECT parent FROM temp.kept) OR parent <> '' AND parent NOT IN (SELECT id FROM temp.kept)`
	sqlCountKept    = `SELECT count(*) FROM temp.kept`
)

// A step is a statement with its arguments.
type step struct {
	statement string
	args      []driver.Value
}

func (r *restore) steps(all ...step) error {
	for _, s := range all {
		if err := r.conn.exec(s.statement, s.args...); err != nil {
			return err
		}
	}
	return nil
}

// cutEnds decides where each session ends, and removes the events after that.
func (r *restore) cutEnds() error {
	if !r.At.IsZero() {
		at := r.At.UnixMilli()
		err := r.steps(step{sqlMakeLater, []driver.Value{r.before, at}}, step{sqlLaterMessages, []driver.Value{r.before}},
			step{sqlLater, nil}, step{sqlDropNew, []driver.Value{at}})
		if err != nil {
			return err
		}
	}
	if r.Session != "" { // of hidden sessions only what is inherited is needed
		if err := r.steps(step{`UPDATE temp.kept SET head = fork_at WHERE hidden`, nil}); err != nil {
			return err
		}
	}
	if err := r.dropUnneeded(); err != nil {
		return err
	}
	left, err := r.conn.number(`SELECT count(*) FROM temp.kept WHERE NOT hidden`)
	if err == nil && left == 0 {
		err = r.tooEarly()
	}
	if err != nil {
		return err
	}
	if err := r.steps(step{sqlNeeded, []driver.Value{r.shift}}); err != nil {
		return err
	}
	const later = ` FROM main.events e LEFT JOIN temp.kept k ON k.gen = e.session WHERE k.gen IS NULL OR e.offset >= k.head`
	err = r.conn.query(func(row []driver.Value) error {
		r.cut = append(r.cut, text(row[0]))
		return nil
	}, `SELECT id FROM temp.kept WHERE head < was`)
	if err != nil {
		return err
	}
	if r.report.LeftOut, err = r.conn.number(`SELECT count(*)` + later); err != nil {
		return err
	}
	return r.conn.exec(`DELETE FROM main.events WHERE pos IN (SELECT e.pos` + later + `)`)
}

// countMissing counts the events that the catalogue promises, and that no part has.
func (r *restore) countMissing() (err error) {
	r.report.Missing, err = r.conn.number(`SELECT coalesce(sum(max(head - fork_at, 0)), 0) - (SELECT count(*) FROM main.events e
		JOIN temp.kept k ON k.gen = e.session WHERE e.offset >= k.fork_at AND e.offset < k.head) FROM temp.kept`)
	return err
}

// tooEarly returns the error of a restore to a moment at which there was nothing yet. It
// returns nil if the backup has nothing at all.
func (r *restore) tooEarly() error {
	const oldest = `SELECT coalesce(min(created), 0) FROM catalogue.sessions WHERE deleted IS NULL AND (?1 = '' OR id = ?1)`
	ms, err := r.conn.number(oldest, r.Session)
	if err != nil || ms == 0 {
		return err
	}
	from := time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)
	if r.Session != "" {
		return tapedeck.Errorf(tapedeck.NotFound, "session %q did not exist at that moment: it is from %s", r.Session, from).WithHint("give this time or a later one to --at")
	}
	return tapedeck.Errorf(tapedeck.NotFound, "at %s there was nothing yet: the oldest that the backup has is from %s", r.At.UTC().Format(time.RFC3339Nano), from).
		WithHint("give this time or a later one to --at")
}

// dropUnneeded runs sqlDropUnneeded until it removes nothing more.
func (r *restore) dropUnneeded() error {
	n, err := r.conn.number(sqlCountKept)
	for left := int64(-1); err == nil && left != n; {
		left = n
		if err = r.conn.exec(sqlDropUnneeded); err == nil {
			n, err = r.conn.number(sqlCountKept)
		}
	}
	return err
}

const sqlHeadOf = `(SELECT head FROM temp.kept WHERE gen = session)`

// correct corrects the rows of sessions that have lost events, and the facts.
func (r *restore) correct() error {
	return r.steps(
		// Of a producer only the newest append is known. Without it, its next append is
		// refused, unless it begins from the start.
		step{`DELETE FROM main.producers WHERE next > ` + sqlHeadOf, nil},
		step{`UPDATE main.acks SET acked = min(acked, ` + sqlHeadOf + `)`, nil},
		step{`UPDATE main.push_configs SET acked = min(acked, ` + sqlHeadOf + `) WHERE acked IS NOT NULL`, nil},
		step{`UPDATE main.heads SET head = ` + sqlHeadOf, nil},
		step{`UPDATE main.sessions SET forks = (SELECT count(*) FROM temp.kept k WHERE k.parent = sessions.id)`, nil},
		step{`UPDATE main.sessions SET deleted = ?, deadline = NULL WHERE deleted IS NULL AND gen IN (SELECT gen FROM temp.kept WHERE hidden)`, []driver.Value{r.Now().UnixMilli()}},
		step{`DELETE FROM main.sqlite_sequence WHERE name = 'sessions'`, nil},
		step{`INSERT INTO main.sqlite_sequence (name, seq) SELECT 'sessions', coalesce(max(gen), ?) FROM main.sessions`, []driver.Value{r.timeline}},
		step{`DELETE FROM main.facts WHERE name IN ('erased', 'cleaned')`, nil}, // nothing is left in a new file
		step{sqlPutFact, []driver.Value{"timeline", r.timeline}},
		step{sqlPutFact, []driver.Value{"clean", int64(0)}}, // so that each TTL begins again
		step{sqlPutFact, []driver.Value{"pos", r.point.Pos}},
	)
}

// correctEntries computes the entries of sessions that have lost events. The connection is
// to a database of the newest schema.
func (r *restore) correctEntries(ctx context.Context, c *conn) error {
	t := &Transfer{file: r.file, conn: c}
	trails, err := findTrails(c)
	for _, id := range r.cut {
		if err != nil {
			return err
		}
		err = r.correctEntry(ctx, t, trails, id)
	}
	return err
}

func (r *restore) correctEntry(ctx context.Context, t *Transfer, trails *trails, id string) error {
	v, _, err := load(t.conn, keyring{}, id)
	if err != nil {
		return err
	}
	fold := tapedeck.Session{Created: v.Created, Updated: v.Created}
	if v.Kind == tapedeck.KindSession {
		fold.Status = tapedeck.StatusIdle
		err = t.eventsOf(ctx, trails, extent{v.Gen, v.ForkedAt, v.Head}, func(e store.TransferEvent, err error) bool {
			var event tapedeck.Event
			if err == nil {
				if event, err = (tapedeck.Record{Offset: e.Offset, Data: e.Data}).Event(); err == nil {
					fold.Apply(&event)
				}
			}
			return err == nil
		})
		if err != nil {
			return err
		}
	} else if fold.Updated = v.Updated; !r.At.IsZero() && r.At.Before(v.Updated) {
		fold.Updated = r.At
	}
	fold.ID, fold.Gen, fold.Kind, fold.Head, fold.Parent, fold.ForkedAt = v.ID, v.Gen, v.Kind, v.Head, v.Parent, v.ForkedAt
	st := &state{view: view{Session: fold}} // not closed: what closes a session comes after its events
	w := &writer{conn: t.conn}
	return errors.Join(w.writeEntry(st), w.writeTotals(st), t.conn.exec(sqlHead, v.Head, fold.Updated.UnixMilli(), int64(v.link), v.Gen))
}
