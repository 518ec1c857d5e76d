package sqlite

import (
	"database/sql/driver"
	"errors"
	"math"
)

// A walk reads a table in the order of its integer key, and jumps over what cannot be read.
type walk struct {
	conn      *conn
	statement string // of the rows with a key above ?, by key, which is the first column

	gaps []gap // what it has jumped over
}

// A gap is a range of keys, from after the first one up to the second one, with rows that
// cannot be read.
type gap struct{ after, to int64 }

// run calls row for each row that can be read. row must not fail.
func (w *walk) run(row func([]driver.Value)) error {
	for at := int64(-1); ; {
		err := w.conn.query(func(values []driver.Value) error {
			at = integer(values[0])
			row(values)
			return nil
		}, w.statement, at)
		if !isUnreadable(err) {
			return err
		}
		to := w.jump(at)
		w.gaps = append(w.gaps, gap{at, to})
		if at = to; at == math.MaxInt64 {
			return nil
		}
	}
}

// jump returns the first key above at after which rows can be read: the rows in between are
// on pages that cannot. It asks in growing steps, and then halves the last one.
func (w *walk) jump(at int64) int64 {
	bad, good := at, int64(math.MaxInt64)
	for step := int64(1); step < math.MaxInt64-at; step *= 2 {
		if w.reads(at + step) {
			good = at + step
			break
		}
		if bad = at + step; step > math.MaxInt64/2 {
			break
		}
	}
	for good != math.MaxInt64 && good-bad > 1 {
		if middle := bad + (good-bad)/2; w.reads(middle) {
			good = middle
		} else {
			bad = middle
		}
	}
	return good
}

// reads reports whether the first row above a key can be read, or that there is none.
func (w *walk) reads(key int64) bool {
	return w.conn.query(func([]driver.Value) error { return errStop }, w.statement, key) == nil
}

// isUnreadable reports whether a part of the file cannot be read. Other parts perhaps can.
func isUnreadable(err error) bool {
	var broken *dbError
	return errors.As(err, &broken) && environmental(err)
}
