package postgres

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
)

// sessionColumns are the columns that scanSession reads, in its order.
const sessionColumns = `s.gen, s.id, s.kind, s.created, s.title, s.owner, s.agent, s.labels, s.status, s.runs,
	s.closed, s.closed_by, s.parent, s.fork_at, s.forks, s.deleted, s.content_type, s.origin, s.ttl, s.expires,
	s.touched, s.stream_seq, h.head, h.updated, s.resumable, s.last_jump, s.copy, s.inputs, s.waiting,
	s.active, s.totals_at, s.tokens, s.cost, s.duration, s.failures, s.totals, s.budget, s.spent, h.link`

const (
	sqlSessions = `SELECT ` + sessionColumns + ` FROM sessions s JOIN heads h ON h.session = s.gen WHERE s.id = ANY($1::text[])`
	sqlLineage  = `SELECT session, ancestor, from_offset, to_offset FROM lineage WHERE session = ANY($1::bigint[]) ORDER BY session, from_offset`
)

// A loaded session is one as the database has it.
type loaded struct {
	*view
	streamSeq string
}

// An asker runs a query.
type asker func(row func(pgx.Rows) error, statement string, args ...any) error

// load reads sessions from the database. Those that do not exist are left out.
func load(ask asker, ids ...string) ([]loaded, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	columns := make([]string, len(ids))
	for i, id := range ids {
		columns[i] = stored(id)
	}
	var out []loaded
	var forks []int64
	byGen := map[int64]*view{}
	err := ask(func(r pgx.Rows) error {
		v := new(view)
		streamSeq, err := scanSession(v, r)
		if err != nil {
			return err
		}
		out = append(out, loaded{v, streamSeq})
		if v.ForkedAt > 0 {
			forks = append(forks, v.Gen)
			byGen[v.Gen] = v
		}
		return nil
	}, sqlSessions, columns)
	if err != nil || len(forks) == 0 {
		return out, err
	}
	err = ask(func(r pgx.Rows) error {
		var gen int64
		var s span
		err := r.Scan(&gen, &s.gen, &s.from, &s.to)
		if v := byGen[gen]; v != nil {
			v.spans = append(v.spans, s)
		}
		return err
	}, sqlLineage, forks)
	return out, err
}

// scanSession scans sessionColumns, and then more columns.
func scanSession(v *view, r pgx.Rows, more ...any) (streamSeq string, err error) {
	var created, updated int64
	var deleted, expires, active *int64
	var labels, runs, closedBy, inputs, waiting, totals, budget, spent *string
	var seq []byte
	s := &v.Session
	err = r.Scan(append([]any{&s.Gen, &s.ID, &s.Kind, &created, &s.Title, &s.Owner, &s.Agent, &labels, &s.Status, &runs,
		&s.Closed, &closedBy, &s.Parent, &s.ForkedAt, &v.forks, &deleted, &s.ContentType, &s.Origin, (*int64)(&s.TTL), &expires,
		&v.touched, &seq, &s.Head, &updated, &s.Resumable, &s.LastJump, &s.Copy, &inputs, &waiting,
		&active, &s.Totals.At, &s.Totals.Tokens, &s.Totals.CostMicros, &s.Totals.RecordingMS, &s.Totals.Failures, &totals, &budget, &spent, &v.link}, more...)...)
	if err != nil {
		return "", err
	}
	for _, text := range [...]*string{&s.ID, &s.Title, &s.Owner, &s.Agent, &s.Parent, &s.ContentType, &s.Origin} {
		*text = original(*text)
	}
	s.Created, s.Updated, v.gone = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC(), deleted != nil
	if expires != nil {
		s.Expires = time.UnixMilli(*expires).UTC()
	}
	if active != nil {
		s.Active = time.UnixMilli(*active).UTC()
	}
	if totals != nil {
		s.Totals.Row = []byte(original(*totals))
	}
	for _, m := range [...]struct {
		column *string
		into   any
	}{{labels, &s.Labels}, {runs, &s.Runs}, {closedBy, &s.ClosedBy}, {inputs, &s.Inputs}, {waiting, &s.Waiting}, {budget, &s.Budget}, {spent, &s.Spent}} {
		if m.column == nil {
			continue
		}
		if err := json.Unmarshal([]byte(*m.column), m.into); err != nil {
			return "", tapedeck.Errorf(tapedeck.Internal, "the entry of session %q cannot be read", s.ID).WithHint(verifyHint).Because(err)
		}
	}
	return string(seq), nil
}

// milliseconds returns the column of a time, null for the zero time.
func milliseconds(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(t.UnixMilli())
}

// object encodes a member of an entry as JSON, or as null if isNil. JSON escapes the
// characters that the type text cannot hold.
func object[T any](v T, isNil bool) (*string, error) {
	if isNil {
		return nil, nil
	}
	b, err := json.Marshal(v)
	return new(string(b)), err
}

// ceilMilliseconds rounds t up. A comparison of whole milliseconds with the result
// is the same as one with t.
func ceilMilliseconds(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }
