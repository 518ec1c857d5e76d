package postgres

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A recordCheck checks the records of one session.
type recordCheck struct {
	*verifier
	session *view
	next    int64
	fold    view // the entry that the events result in
	bad     bool // offsets are wrong; this is reported once for a session
	unread  bool // an event could not be read
}

// progressEvery is the number of records between two calls of progress.
const progressEvery = 10_000

const sqlRecords = `SELECT "offset", event FROM events WHERE session = $1 ORDER BY "offset"`

// checkRecords reads all records that a session holds itself.
func (v *verifier) checkRecords(s *view) error {
	c := &recordCheck{verifier: v, session: s, next: s.ForkedAt}
	c.fold.Session = tapedeck.Session{Created: s.Created, Updated: s.Created, Status: tapedeck.StatusIdle}
	err := v.ask(c.row, sqlRecords, s.Gen)
	var broken *dbError
	switch {
	case errors.As(err, &broken):
		return err
	case err != nil:
		v.problem("session %q: %v", s.ID, err)
		return nil
	}
	if c.next != s.Head && !c.bad {
		v.problem("session %q has its head at %d and its records end at %d", s.ID, s.Head, c.next)
	}
	if s.Kind == tapedeck.KindSession && !c.bad && !c.unread {
		c.compare()
	}
	return nil
}

func (c *recordCheck) row(r pgx.Rows) error {
	var offset int64
	var data []byte
	if err := r.Scan(&offset, &data); err != nil {
		return err
	}
	c.Bytes += int64(len(data))
	if c.Events++; c.Events%progressEvery == 0 {
		c.progress(c.Events, c.total)
	}
	if offset != c.next && !c.bad {
		c.bad = true
		c.problem("session %q has offset %d where %d belongs", c.session.ID, offset, c.next)
	}
	c.next = offset + 1
	if c.session.Kind != tapedeck.KindSession {
		return nil
	}
	e, err := tapedeck.Record{Offset: offset, Data: data}.Event()
	if err == nil && e.Offset != offset {
		err = tapedeck.Errorf(tapedeck.Internal, "the event at offset %d says that it is at %d", offset, e.Offset)
	}
	if err != nil {
		c.unread = true
		c.problem("session %q: %v", c.session.ID, err)
		return nil
	}
	c.fold.Apply(&e)
	return nil
}

// compare compares the catalogue's entry with the fold of the events.
func (c *recordCheck) compare() {
	s, f := c.session, &c.fold
	switch differ := store.EntryDifferences(&s.Session, &f.Session); {
	case len(differ) > 0:
		c.problem("the catalogue does not agree with the events of session %q: %s", s.ID, strings.Join(differ, "; "))
	case !s.Updated.Equal(f.Updated):
		c.problem("the catalogue has session %q updated at %v, its events at %v", s.ID, s.Updated, f.Updated)
	}
}
