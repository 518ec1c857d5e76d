package sqlite

import (
	"database/sql/driver"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A renewal checks the sums of the events that a restore has copied, and computes those that
// they get: a sum covers the gen, and each restored session gets a new one. What is damaged
// gets a sum that does not fit, so that the restore does not confirm it.
type renewal struct {
	*sumCheck
	shift int64                // what is added to each gen
	last  map[int64]store.Link // of the last event, by the gen in the backup
	forks map[spot]store.Link  // of the events to which forks are chained
}

// renewStep is the number of sums that are in memory at once.
const renewStep = 4096

// A renewed is the new sum of the event at a position.
type renewed struct{ pos, sum int64 }

// renewSums gives the copied events sums for their new gens.
func (r *restore) renewSums() error {
	if has, err := hasSums(r.conn, "main"); err != nil || !has {
		return err
	}
	check, err := newSumCheck(r.conn, "catalogue")
	if err != nil {
		return err
	}
	n := &renewal{sumCheck: check, shift: r.shift, last: make(map[int64]store.Link), forks: make(map[spot]store.Link)}
	if err := r.conn.exec("BEGIN"); err != nil {
		return err
	}
	for at, more := int64(0), true; more && err == nil; {
		at, more, err = r.renewSome(n, at)
	}
	if err != nil {
		return err
	}
	if err := r.conn.exec("COMMIT"); err != nil {
		return err
	}
	return r.refuseDamage()
}

// renewSome renews sums after a position. It returns the position that it has reached.
func (r *restore) renewSome(n *renewal, after int64) (at int64, more bool, err error) {
	at = after
	changes := make([]renewed, 0, renewStep)
	err = r.conn.query(func(row []driver.Value) error {
		at, more = integer(row[0]), true
		gen, record, column := sumRow(row)
		gen -= r.shift
		problem := n.next(gen, record, column)
		if problem != "" {
			r.damaged.Problem("session %q: %s", n.ids[gen], problem)
		}
		if column != nil {
			changes = append(changes, renewed{at, int64(n.sum(gen, record, sumIn(column), problem))})
		}
		return nil
	}, sqlSums("main")+` LIMIT ?`, after, int64(renewStep))
	for _, c := range changes {
		if err != nil {
			break
		}
		err = r.conn.exec(`UPDATE main.events SET sum = ? WHERE pos = ?`, c.sum, c.pos)
	}
	return at, more, err
}

// sum returns the new sum of a record that had a sum.
func (n *renewal) sum(gen int64, r tapedeck.Record, had store.Sum, problem string) store.Sum {
	before, isNext := n.last[gen]
	if !isNext {
		before = n.forks[n.begins[gen]]
	}
	isSound := had.Covers(gen, r)
	if isSound && problem != "" { // it does not follow the one before it
		before ^= 1
	}
	sum := store.SumOf(gen+n.shift, r, before)
	if had.Erased() {
		sum = sum.SumErased(gen+n.shift, r)
	}
	if !isSound {
		sum ^= 1
	}
	n.last[gen] = sum.Link()
	if at := (spot{gen, r.Offset}); n.wanted[at] {
		n.forks[at] = sum.Link()
	}
	return sum
}

// refuseDamage returns an error if events are damaged, unless they are wanted all the same.
func (r *restore) refuseDamage() error {
	if len(r.damaged.Problems) == 0 || r.Damaged {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Conflict, "the backup %s is damaged: %s", r.dest, r.damaged.Problems[0]).
		WithHint("`tapedeck backup %s --verify` names all damage; restore an earlier moment or from another backup, or with --damaged the rest", r.dest)
}

const (
	// sqlEnds finds the last event of each session, which a fork may inherit.
	sqlEnds = `CREATE TEMP TABLE ends AS SELECT k.gen, k.head - 1 AS at, CASE WHEN k.head > k.fork_at THEN k.gen
	ELSE (SELECT l.ancestor FROM main.lineage l WHERE l.session = k.gen AND l.to_offset = k.head) END AS holder FROM temp.kept k`
	sqlEndsIndex = `CREATE INDEX temp.ends_by_event ON ends (holder, at)`
	sqlEndLinks  = `CREATE TEMP TABLE links AS SELECT x.gen, (e.sum >> 32) & 2147483647 AS link
	FROM main.events e CROSS JOIN temp.ends x ON x.holder = e.session AND x.at = e.offset`
	sqlLinksIndex = `CREATE UNIQUE INDEX temp.links_by_gen ON links (gen)`
	sqlRelink     = `UPDATE main.heads SET link = coalesce((SELECT l.link FROM temp.links l WHERE l.gen = heads.session), 0)`
)

// relink notes the link of the last event of each session.
func (r *restore) relink() error {
	if has, err := hasSums(r.conn, "main"); err != nil || !has {
		return err
	}
	return r.steps(step{sqlEnds, nil}, step{sqlEndsIndex, nil}, step{sqlEndLinks, nil}, step{sqlLinksIndex, nil}, step{sqlRelink, nil})
}
