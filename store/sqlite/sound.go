package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	codes "modernc.org/sqlite/lib"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sessionkeys"
	"github.com/tapedeck/tapedeck/store"
)

var (
	errMissingOffset = errors.New("an offset is missing")
	errSealed        = errors.New("it cannot be decrypted")
	errSum           = errors.New("its bytes do not have its checksum")
)

// fetchSound is [fetch], but fails with errSum at an event that is not what was written.
func fetchSound(c *conn, gen int64, pos []int64, row func([]driver.Value) error) error {
	return fetch(c, gen, pos, func(values []driver.Value) error {
		if !isSound(gen, values) {
			return errSum
		}
		return row(values)
	})
}

// isSound compares a row of fetch with its sum. A row without a sum is one from before there
// were sums.
func isSound(gen int64, row []driver.Value) bool {
	if row[4] == nil {
		return true
	}
	sum, ok := row[4].(int64)
	return ok && store.Sum(sum).Covers(gen, recordOf(row))
}

// recordOf returns the record in a row of fetch.
func recordOf(row []driver.Value) tapedeck.Record {
	data, _ := row[1].([]byte)
	return tapedeck.Record{Offset: integer(row[0]), Data: data}
}

// decrypted returns the bytes of the record in a row of fetch. key is that of the session,
// nil if it is not encrypted.
func decrypted(key *sessionkeys.Key, row []driver.Value) ([]byte, error) {
	data, _ := row[1].([]byte)
	if key == nil {
		return data, nil
	}
	data, err := key.OpenEvent(integer(row[0]), data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSealed, err)
	}
	return data, nil
}

// explain returns the error of a read of v that failed at an offset: the session was deleted
// meanwhile, or the event there is missing or damaged.
func (s *Store) explain(ctx context.Context, v *view, offset int64, err error) error {
	missing := errors.Is(err, errMissingOffset)
	if !missing && !errors.Is(err, errSum) && !errors.Is(err, errSealed) && !isCorrupt(err) {
		return err
	}
	if missing {
		now, lookErr := s.lookup(ctx, v.ID)
		switch {
		case lookErr != nil:
			return lookErr
		case now.Gen != v.Gen:
			return errNotFound(v.ID)
		}
	}
	return s.damages.Note(s.options.Logger, &v.Session, offset, err)
}

// isCorrupt reports whether SQLite has found that the file is damaged.
func isCorrupt(err error) bool {
	return code(err) == codes.SQLITE_CORRUPT || code(err) == codes.SQLITE_NOTADB
}

// linkBefore returns what the first event of a fork is chained to. The fork inherits spans
// from parent.
func (w *writer) linkBefore(parent *state, spans []span) (link store.Link, err error) {
	if len(spans) == 0 {
		return 0, nil
	}
	last := spans[len(spans)-1]
	if last.to == parent.Head && last.gen == parent.Gen {
		return parent.link, nil
	}
	pos, err := w.store.trails.locate(w.conn, last.gen, last.to-1, last.to)
	if err != nil {
		return 0, err
	}
	found := false
	err = fetchSound(w.conn, last.gen, pos, func(row []driver.Value) error {
		link, found = store.Sum(integer(row[4])).Link(), true
		return nil
	})
	if err == nil && !found {
		err = errMissingOffset
	}
	if errors.Is(err, errSum) || errors.Is(err, errMissingOffset) {
		return 0, w.store.damages.Note(w.store.options.Logger, &parent.Session, last.to-1, err)
	}
	return link, err
}
