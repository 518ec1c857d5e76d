package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// sessionColumns are the columns that scanSession reads, in its order.
const sessionColumns = `s.gen, s.id, s.kind, s.created, s.title, s.owner, s.agent, s.labels, s.status, s.runs,
	s.closed, s.closed_by, s.parent, s.fork_at, s.forks, s.deleted, s.content_type, s.origin, s.ttl, s.expires,
	s.touched, s.stream_seq, h.head, h.updated, s.resumable, s.last_jump, s.copy, s.inputs, s.waiting,
	s.active, s.totals_at, s.tokens, s.cost, s.duration, s.failures, s.totals, s.budget, s.spent, h.link,
	s.key, s.sealed, s.sealed_totals`

// keyColumn is the number of the column key in sessionColumns.
const keyColumn = 39

const (
	sqlSession = `SELECT ` + sessionColumns + ` FROM sessions s JOIN heads h ON h.session = s.gen WHERE s.id = ?`
	sqlLineage = `SELECT ancestor, from_offset, to_offset FROM lineage WHERE session = ? ORDER BY from_offset`
)

// load reads a session from the database, nil if there is none.
func load(c *conn, keys keyring, id string) (v *view, streamSeq string, err error) {
	err = c.query(func(row []driver.Value) error {
		v = new(view)
		streamSeq = text(row[21])
		return scanSession(v, keys, row)
	}, sqlSession, id)
	if err != nil || v == nil || v.ForkedAt == 0 {
		return v, streamSeq, err
	}
	err = c.query(func(row []driver.Value) error {
		v.spans = append(v.spans, span{integer(row[0]), integer(row[1]), integer(row[2])})
		return nil
	}, sqlLineage, v.Gen)
	return v, streamSeq, err
}

func scanSession(v *view, keys keyring, row []driver.Value) error {
	v.Session = tapedeck.Session{
		Gen: integer(row[0]), ID: text(row[1]), Kind: tapedeck.SessionKind(text(row[2])), Created: moment(row[3]),
		Title: text(row[4]), Owner: text(row[5]), Agent: text(row[6]), Status: tapedeck.Status(text(row[8])),
		Closed: integer(row[10]) != 0, Parent: text(row[12]), ForkedAt: integer(row[13]),
		ContentType: text(row[16]), Origin: text(row[17]), TTL: time.Duration(integer(row[18])), Expires: moment(row[19]),
		Head: integer(row[22]), Updated: moment(row[23]), LastJump: integer(row[25]), Copy: integer(row[26]) != 0, Active: moment(row[29]),
		Totals: tapedeck.Totals{At: integer(row[30]), Tokens: integer(row[31]), CostMicros: integer(row[32]), RecordingMS: integer(row[33]), Failures: integer(row[34])},
	}
	v.forks, v.gone, v.touched, v.link = integer(row[14]), row[15] != nil, integer(row[20]), store.Link(integer(row[38]))
	if row[24] != nil {
		v.Resumable = new(integer(row[24]) != 0)
	}
	if row[35] != nil {
		v.Totals.Row = []byte(text(row[35]))
	}
	for _, m := range [...]struct {
		column driver.Value
		into   any
	}{{row[7], &v.Labels}, {row[9], &v.Runs}, {row[11], &v.ClosedBy}, {row[27], &v.Inputs}, {row[28], &v.Waiting}, {row[36], &v.Budget}, {row[37], &v.Spent}} {
		if m.column == nil {
			continue
		}
		if err := json.Unmarshal([]byte(text(m.column)), m.into); err != nil {
			return tapedeck.Errorf(tapedeck.Internal, "the entry of session %q cannot be read", v.ID).WithHint(verifyHint).Because(err)
		}
	}
	return keys.open(v, column(row[keyColumn]), column(row[keyColumn+1]), column(row[keyColumn+2]))
}

// moment returns the time in a column, the zero time for null.
func moment(v driver.Value) time.Time {
	if v == nil {
		return time.Time{}
	}
	return time.UnixMilli(integer(v)).UTC()
}

// milliseconds is the inverse of moment.
func milliseconds(t time.Time) driver.Value {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// object encodes a member of an entry as JSON, or as null if isNil.
func object[T any](v T, isNil bool) (driver.Value, error) {
	if isNil {
		return nil, nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

func flag(b bool) driver.Value {
	if b {
		return int64(1)
	}
	return int64(0)
}

// optionalFlag returns the column of a flag, null for nil.
func optionalFlag(b *bool) driver.Value {
	if b == nil {
		return nil
	}
	return flag(*b)
}

// ceilMilliseconds rounds t up. A comparison of whole milliseconds with the result
// is the same as one with t.
func ceilMilliseconds(t time.Time) driver.Value {
	return t.Add(time.Millisecond - 1).UnixMilli()
}
