package sqlite

import (
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A spot is where an event is: at an offset of a session.
type spot struct{ gen, offset int64 }

// A sumCheck checks the sums of events in the order of their positions, in which the events
// of a session come in the order of their offsets, and those of a parent before those of its
// forks.
type sumCheck struct {
	ids      map[int64]string // of the sessions to check, by gen
	begins   map[int64]spot   // the event to which the first one of a fork is chained
	wanted   map[spot]bool    // the values of begins
	links    map[spot]store.Link
	chains   map[int64]*sumChain
	unsummed int64
}

// A sumChain is the state of a session in a [sumCheck].
type sumChain struct {
	store.Chain
	next int64
}

// newSumCheck returns a check of the events of the sessions of an attached catalogue.
func newSumCheck(c *conn, catalogue string) (*sumCheck, error) {
	s := &sumCheck{ids: make(map[int64]string), begins: make(map[int64]spot),
		wanted: make(map[spot]bool), links: make(map[spot]store.Link), chains: make(map[int64]*sumChain)}
	err := c.query(func(row []driver.Value) error {
		s.ids[integer(row[0])] = text(row[1])
		return nil
	}, `SELECT gen, id FROM `+catalogue+`.sessions`)
	if err != nil {
		return nil, err
	}
	return s, c.query(func(row []driver.Value) error {
		at := spot{integer(row[1]), integer(row[2]) - 1}
		s.begins[integer(row[0])], s.wanted[at] = at, true
		return nil
	}, `SELECT session, ancestor, max(to_offset) FROM `+catalogue+`.lineage GROUP BY session`)
}

// next checks an event of a session. It returns what is wrong with it, "" if nothing is.
func (s *sumCheck) next(gen int64, r tapedeck.Record, column driver.Value) (problem string) {
	c := s.chains[gen]
	if c == nil {
		c = &sumChain{Chain: store.Chain{Gen: gen}, next: r.Offset}
		s.chains[gen] = c
		if at, isFork := s.begins[gen]; isFork {
			if link, found := s.links[at]; found {
				c.Begin(link)
			} else {
				c.Break()
			}
			c.next = at.offset + 1
		}
	}
	if r.Offset != c.next { // the comparison of the numbers of events finds it
		c.Break()
	}
	c.next = r.Offset + 1
	if column == nil {
		s.unsummed++
	}
	problem = checkSum(&c.Chain, r, column)
	if at := (spot{gen, r.Offset}); s.wanted[at] {
		s.links[at] = sumIn(column).Link()
	}
	return problem
}

// checkSum checks the column of the sum of the next record of a chain.
func checkSum(c *store.Chain, r tapedeck.Record, column driver.Value) (problem string) {
	if column == nil {
		return c.NextWithout(r.Offset)
	}
	return c.Next(r, sumIn(column)) // 0 if it is not even a number
}

func sumIn(column driver.Value) store.Sum { return store.Sum(integer(column)) }

// hasSums reports whether the table of events in a database has sums. One of an older
// schema has none.
func hasSums(c *conn, database string) (bool, error) {
	n, err := c.number(`SELECT count(*) FROM pragma_table_info('events', '` + database + `') WHERE name = 'sum'`)
	return n > 0, err
}

// sumRow reads a row of [sqlSums].
func sumRow(row []driver.Value) (gen int64, r tapedeck.Record, sum driver.Value) {
	data, _ := row[3].([]byte)
	return integer(row[1]), tapedeck.Record{Offset: integer(row[2]), Data: data}, row[4]
}

// sqlSums selects the events of a database for sumRow.
func sqlSums(database string) string {
	return `SELECT pos, session, offset, CAST(event AS BLOB), sum FROM ` + database + `.events WHERE pos > ? ORDER BY pos`
}

// part checks the events of an attached part up to a position. It goes on after pages that
// cannot be read, and returns which positions these are.
func (s *sumCheck) part(c *conn, as string, to int64, problem func(format string, args ...any)) ([]gap, error) {
	if has, err := hasSums(c, as); err != nil || !has {
		return nil, err
	}
	w := &walk{conn: c, statement: strings.Replace(sqlSums(as), ` ORDER`, fmt.Sprintf(` AND pos <= %d ORDER`, to), 1)}
	err := w.run(func(row []driver.Value) {
		gen, r, sum := sumRow(row)
		id, known := s.ids[gen]
		if !known { // it was deleted later
			return
		}
		if what := s.next(gen, r, sum); what != "" {
			problem("session %q: %s", id, what)
		}
	})
	return w.gaps, err
}

// checkCopied looks for events in a new part that are not what was appended: the data folder
// has them like this. The backup has them, too, and says so.
func (b *backup) checkCopied(c *conn) error {
	if has, err := hasSums(c, "part"); err != nil || !has {
		return err
	}
	var found []spot
	err := c.query(func(row []driver.Value) error {
		if gen, r, sum := sumRow(row); sum != nil && !sumIn(sum).Covers(gen, r) {
			found = append(found, spot{gen, r.Offset})
		}
		return nil
	}, sqlSums("part"), int64(-1))
	for _, at := range found {
		if err != nil {
			break
		}
		err = c.query(func(row []driver.Value) error {
			b.report.Found.Problem("session %q: the event at offset %d is damaged in the data folder", text(row[0]), at.offset)
			return nil
		}, `SELECT id FROM main.sessions WHERE gen = ?`, at.gen)
	}
	return err
}
