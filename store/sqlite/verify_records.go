package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A recordCheck checks the records of one session.
type recordCheck struct {
	*verifier
	session *view
	chain   store.Chain
	next    int64
	from    int64   // first offset of the current part
	pos     []int64 // positions of the events of the part
	fold    view    // the entry that the events result in
	bad     bool    // offsets or positions are wrong; this is reported once for a session
	unread  bool    // an event could not be read
}

// progressEvery is the number of records between two calls of progress.
const progressEvery = 10_000

// checkRecords reads all records that a session holds itself.
func (v *verifier) checkRecords(s *view) error {
	c := &recordCheck{verifier: v, session: s, next: s.ForkedAt}
	c.fold.Session = tapedeck.Session{Created: s.Created, Updated: s.Created, Status: tapedeck.StatusIdle}
	c.startChain()
	for c.from = s.ForkedAt; c.from < s.Head; {
		switch stop, err := c.part(min(s.Head, c.from+window)); {
		case err != nil:
			return err
		case stop:
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

// startChain finds what the first record is chained to.
func (c *recordCheck) startChain() {
	c.chain = store.Chain{Gen: c.session.Gen}
	if len(c.session.spans) == 0 {
		return
	}
	last := c.session.spans[len(c.session.spans)-1]
	c.chain.Break() // until it is found
	pos, err := c.trails.locate(c.conn, last.gen, last.to-1, last.to)
	if err != nil {
		return // the check of the ancestor reports it
	}
	_ = fetch(c.conn, last.gen, pos, func(row []driver.Value) error {
		c.chain.Begin(store.Sum(integer(row[4])).Link())
		return nil
	})
}

// part reads the records up to an offset. After one that cannot be read it continues with
// the next one. It reports whether the rest of the session makes no sense.
func (c *recordCheck) part(end int64) (stop bool, err error) {
	if c.pos, err = c.trails.locate(c.conn, c.session.Gen, c.from, end); isUnreadable(err) {
		c.skip(end, err)
		return false, nil
	}
	if err == nil {
		err = fetch(c.conn, c.session.Gen, c.pos, c.row)
	}
	var broken *dbError
	switch {
	case err == nil:
		c.from = end
	case isUnreadable(err):
		c.skip(max(c.next, c.from)+1, err)
	case errors.As(err, &broken):
		return true, err
	default:
		c.Problem("session %q: %v", c.session.ID, err)
		return true, nil
	}
	return false, nil
}

// skip reports that what is between next and an offset cannot be read.
func (c *recordCheck) skip(to int64, err error) {
	if from := max(c.next, c.from); to-from > 1 {
		c.Problem("session %q: the events at the offsets %d to %d cannot be read: %v", c.session.ID, from, to-1, err)
	} else {
		c.Problem("session %q: the event at offset %d cannot be read: %v", c.session.ID, from, err)
	}
	c.from, c.next = to, to
	c.unread, c.blind = true, true
	c.chain.Break()
}

func (c *recordCheck) row(row []driver.Value) error {
	r := recordOf(row)
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
	if i := r.Offset - c.from; !c.bad && (i < 0 || i >= int64(len(c.pos)) || c.pos[i] != integer(row[2])) {
		c.bad = true
		c.Problem("session %q has the event at offset %d at another position than the table places says", c.session.ID, r.Offset)
	}
	if row[4] == nil {
		c.Unsummed++
	}
	problem := checkSum(&c.chain, r, row[4])
	switch open, err := c.decrypt(&r, row); {
	case err != nil:
		c.unread = true
		if problem == "" {
			problem = fmt.Sprintf("the event at offset %d cannot be decrypted with the key of the session", r.Offset)
		}
	case !open:
		c.Encrypted++
		c.unread = true
	case c.session.Kind == tapedeck.KindSession:
		e, err := c.event(r, row)
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
	return nil
}

// decrypt decrypts a record in place, if its session is encrypted. It reports false if there
// is no key: then its checksum is all that can be checked.
func (c *recordCheck) decrypt(r *tapedeck.Record, row []driver.Value) (open bool, err error) {
	if c.session.keyID == nil {
		return true, nil
	}
	if c.session.key == nil {
		return false, nil
	}
	r.Data, err = decrypted(c.session.key, row)
	return err == nil, err
}

// event decodes a record of a session.
func (c *recordCheck) event(r tapedeck.Record, row []driver.Value) (tapedeck.Event, error) {
	e, err := r.Event()
	if err == nil && e.Offset != r.Offset {
		err = tapedeck.Errorf(tapedeck.Internal, "the event at offset %d says that it is at %d", r.Offset, e.Offset)
	}
	if err == nil && c.session.keyID == nil && text(row[3]) != "text" {
		err = tapedeck.Errorf(tapedeck.Internal, "the event at offset %d is not text", r.Offset)
	}
	return e, err
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
