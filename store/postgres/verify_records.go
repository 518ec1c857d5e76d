package postgres

import (
	"errors"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A recordCheck checks the records of one session.
type recordCheck struct {
	*verifier
	session *view
	chain   store.Chain
	next    int64
	fold    view // the entry that the events result in
	bad     bool // offsets are wrong; this is reported once for a session
	unread  bool // an event could not be read
}

// progressEvery is the number of records between two calls of progress, and checkedAtOnce
// how many one query reads.
const (
	progressEvery = 10_000
	checkedAtOnce = 512
)

const sqlRecords = `SELECT "offset", event, sum FROM events WHERE session = $1 AND "offset" >= $2 AND "offset" < $3 ORDER BY "offset"`

// checkRecords reads all records that a session holds itself.
func (v *verifier) checkRecords(s *view) error {
	c := &recordCheck{verifier: v, session: s, next: s.ForkedAt}
	c.fold.Session = tapedeck.Session{Created: s.Created, Updated: s.Created, Status: tapedeck.StatusIdle}
	if err := c.startChain(); err != nil {
		return err
	}
	for from := s.ForkedAt; from < s.Head || from == s.ForkedAt; from += checkedAtOnce {
		switch err := c.part(from, min(s.Head, from+checkedAtOnce)); {
		case isBroken(err):
			return err
		case err != nil:
			v.Problem("session %q: %v", s.ID, err)
			return nil
		}
	}
	if c.next != s.Head && !c.bad {
		v.Problem("session %q has its head at %d and its records end at %d", s.ID, s.Head, c.next)
	}
	if problem := c.chain.End(s.link); problem != "" && c.next == s.Head && !c.bad {
		v.Problem("session %q: %s", s.ID, problem)
	}
	if s.Kind == tapedeck.KindSession && !c.bad && !c.unread {
		c.compare()
	}
	return nil
}

func isBroken(err error) bool {
	var broken *dbError
	return errors.As(err, &broken)
}

// startChain finds what the first record is chained to.
func (c *recordCheck) startChain() error {
	c.chain = store.Chain{Gen: c.session.Gen}
	if len(c.session.spans) == 0 {
		return nil
	}
	last := c.session.spans[len(c.session.spans)-1]
	c.chain.Break() // until it is found
	err := c.ask(func(r pgx.Rows) error {
		var data []byte
		var sum pgtype.Int8
		err := r.Scan(&data, &sum)
		c.chain.Begin(store.Sum(sum.Int64).Link())
		return err
	}, sqlSum, last.gen, last.to-1)
	if isCorrupt(err) { // the check of the ancestor reports it
		return c.goOn()
	}
	return err
}

// A row is a record as the database has it.
type row struct {
	tapedeck.Record
	sum pgtype.Int8
}

// part checks the records of a range. If it cannot be read, part halves it, to find what of
// it can. The first and the last range of a session have no limit: there may be records
// where none belong.
func (c *recordCheck) part(from, to int64) error {
	first, end := from, to
	if from == c.session.ForkedAt {
		first = math.MinInt64
	}
	if to == c.session.Head {
		end = math.MaxInt64
	}
	var rows []row
	err := c.ask(func(r pgx.Rows) error {
		var x row
		err := r.Scan(&x.Offset, &x.Data, &x.sum)
		rows = append(rows, x)
		return err
	}, sqlRecords, c.session.Gen, first, end)
	switch {
	case !isCorrupt(err):
		for i := range rows {
			c.row(&rows[i])
		}
		return err
	case to-from <= 1:
		c.Problem("session %q: the event at offset %d cannot be read: %v", c.session.ID, from, err)
		c.next, c.unread, c.blind = to, true, true
		c.chain.Break()
		return c.goOn()
	}
	middle := from + (to-from)/2
	if err := c.goOn(); err != nil {
		return err
	}
	if err := c.part(from, middle); err != nil {
		return err
	}
	return c.part(middle, to)
}

func (c *recordCheck) row(r *row) {
	c.Bytes += int64(len(r.Data))
	if c.Events++; c.Events%progressEvery == 0 {
		c.progress(c.Events, c.total)
	}
	if r.Offset != c.next {
		if !c.bad {
			c.bad = true
			c.Problem("session %q has offset %d where %d belongs", c.session.ID, r.Offset, c.next)
		}
		c.chain.Break()
	}
	c.next = r.Offset + 1
	problem := ""
	if r.sum.Valid {
		problem = c.chain.Next(r.Record, store.Sum(r.sum.Int64))
	} else {
		c.Unsummed++
		problem = c.chain.NextWithout(r.Offset)
	}
	if c.session.Kind == tapedeck.KindSession {
		e, err := r.Event()
		if err == nil && e.Offset != r.Offset {
			err = tapedeck.Errorf(tapedeck.Internal, "the event at offset %d says that it is at %d", r.Offset, e.Offset)
		}
		switch {
		case err != nil && problem != "":
			problem += ", and " + err.Error()
		case err != nil:
			problem = err.Error()
		default:
			c.fold.Apply(&e)
		}
		c.unread = c.unread || err != nil
	}
	if problem != "" {
		c.Problem("session %q: %s", c.session.ID, problem)
	}
}

// compare compares the catalogue's entry with the fold of the events.
func (c *recordCheck) compare() {
	s, f := c.session, &c.fold
	switch differ := store.EntryDifferences(&s.Session, &f.Session); {
	case len(differ) > 0:
		c.Problem("the catalogue does not agree with the events of session %q: %s", s.ID, strings.Join(differ, "; "))
	case !s.Updated.Equal(f.Updated):
		c.Problem("the catalogue has session %q updated at %v, its events at %v", s.ID, s.Updated, f.Updated)
	}
}
