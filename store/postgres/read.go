package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Head implements [tapedeck.Log].
func (s *Store) Head(ctx context.Context, session string) (tapedeck.Session, error) {
	v, err := s.lookup(ctx, session)
	if err != nil {
		return tapedeck.Session{}, err
	}
	return v.Session, nil
}

// lookup returns a session as of the newest commit. A deleted or expired session is
// an error.
func (s *Store) lookup(ctx context.Context, id string) (*view, error) {
	v, err := s.view(ctx, id)
	if err == nil && s.isGone(v) && s.now() >= s.deadlines.due.Load() {
		// Its events are kept for its forks. If the forks have expired since, reap deletes
		// them and then this session. If reap fails, the answer is tapedeck.Gone as before.
		if s.reap(ctx) == nil {
			v, err = s.view(ctx, id)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case v == nil:
		return nil, errNotFound(id)
	case s.isGone(v) && v.forks > 0:
		return nil, errGone(id)
	case s.isGone(v):
		return nil, errNotFound(id)
	}
	return v, nil
}

func (s *Store) isGone(v *view) bool {
	return v != nil && (v.gone || s.deadlines.passed(v, s.now()))
}

// view returns a session as of the newest commit, nil if there is none. It is in
// memory if it was written to lately, otherwise in the database. If the lease has run
// out, another server may have written, so only the database knows.
func (s *Store) view(ctx context.Context, id string) (*view, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.closed.Load() || s.lost.Load() != nil {
		return nil, s.errClosed()
	}
	if st, ok := s.index.Load(id); ok && s.lease.holds() {
		return st.(*state).published.Load(), nil
	}
	found, err := load(s.asker(ctx), id)
	// The writer may have taken the session into memory meanwhile. Then found may have a
	// commit that is not published yet, and the next read from memory would be older.
	if st, ok := s.index.Load(id); ok && err == nil && s.lease.holds() {
		return st.(*state).published.Load(), nil
	}
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0].view, nil
}

// Read implements [tapedeck.Log]. It takes the head first and then reads up to it,
// so the page is consistent whatever is appended meanwhile.
func (s *Store) Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error) {
	v, err := s.lookup(ctx, session)
	if err != nil {
		return tapedeck.Page{}, err
	}
	if r.Reverse && r.From == -1 {
		r.From = v.Head
	}
	if r.From < 0 || r.From > v.Head {
		return tapedeck.Page{}, tapedeck.Errorf(tapedeck.Invalid, "session %q has offsets from 0 to %d, not %d", session, v.Head, r.From)
	}
	p := &pager{Range: r.WithDefaults(), ctx: ctx, next: r.From}
	if err := p.read(s, v); err != nil {
		if err = s.explain(ctx, v, p.offset(), err); len(p.records) == 0 || tapedeck.KindOf(err) != tapedeck.Internal {
			return tapedeck.Page{}, err
		}
		// What precedes a damaged event can be read. The next page begins with the error.
	}
	return tapedeck.Page{Records: p.records, Next: p.next, Head: v.Head, Closed: v.Closed, Gen: v.Gen}, nil
}

// A pager collects the records of one page.
type pager struct {
	tapedeck.Range
	ctx     context.Context
	records []tapedeck.Record
	next    int64 // the offset of the next record; in reverse, the offset of the last one
	size    int
	full    bool
}

// read reads the spans that the page needs one by one. A join over lineage in SQL
// would sort the whole history first.
func (p *pager) read(s *Store, v *view) error {
	from, to := p.From, v.Head
	if p.Reverse {
		from, to = 0, p.From
	}
	if n := int64(p.Limit); to-from > n {
		if p.Reverse {
			from = to - n
		} else {
			to = from + n
		}
	}
	if from >= to {
		return nil
	}
	spans := v.upTo(to)
	p.records = make([]tapedeck.Record, 0, min(to-from, tapedeck.DefaultLimit))
	for i := range spans {
		span := spans[i]
		if p.Reverse {
			span = spans[len(spans)-1-i]
		}
		if span.from = max(span.from, from); span.from >= span.to || p.full {
			continue
		}
		if err := p.readSpan(s, span); err != nil {
			return err
		}
	}
	return nil
}

// window is how many records one query reads at most.
const window = 2000

// The statements of a page stop at the size of the page in the database: what is before
// a record is summed without reading it, so that a page of large records does not read
// those that it drops. A record that begins below the size is included.
const (
	sqlPage = `SELECT "offset", event, sum FROM (
	SELECT "offset", event, sum, sum(octet_length(event)) OVER (ORDER BY "offset" ROWS UNBOUNDED PRECEDING) AS size
	FROM events WHERE session = $1 AND "offset" >= $2 AND "offset" < $3) e
	WHERE size <= $4 OR "offset" = $2 ORDER BY "offset"`
	sqlPageBack = `SELECT "offset", event, sum FROM (
	SELECT "offset", event, sum, sum(octet_length(event)) OVER (ORDER BY "offset" DESC ROWS UNBOUNDED PRECEDING) AS size
	FROM events WHERE session = $1 AND "offset" >= $2 AND "offset" < $3) e
	WHERE size <= $4 OR "offset" = $3 - 1 ORDER BY "offset" DESC`
)

// readSpan reads a span in parts of at most window events.
func (p *pager) readSpan(s *Store, span span) error {
	for part := span; span.from < span.to && !p.full; {
		statement := sqlPage
		if p.Reverse {
			statement = sqlPageBack
			part.from, part.to = max(span.from, span.to-window), span.to
			span.to = part.from
		} else {
			part.from, part.to = span.from, min(span.to, span.from+window)
			span.from = part.to
		}
		end := part.to
		if p.Reverse {
			end = part.from
		}
		before := len(p.records)
		err := s.read(p.ctx, func(r pgx.Rows) error { return p.row(part.gen, r) }, statement, part.gen, part.from, part.to, int64(max(0, p.MaxBytes-p.size)))
		if err != nil {
			return err
		}
		if p.next != end { // the rest is larger than the page, or missing
			if len(p.records) == before && !p.full {
				return errMissingOffset
			}
			p.full = true
		}
	}
	return nil
}

// offset returns the offset of the next record.
func (p *pager) offset() int64 {
	if p.Reverse {
		return p.next - 1
	}
	return p.next
}

// row adds a record of the session that holds it, unless the page is full.
func (p *pager) row(gen int64, r pgx.Rows) error {
	var rec tapedeck.Record
	var sum pgtype.Int8 // null: it was written before there were sums
	if p.full {
		return nil
	}
	if err := r.Scan(&rec.Offset, &rec.Data, &sum); err != nil {
		return err
	}
	if p.size += len(rec.Data); p.size > p.MaxBytes && len(p.records) > 0 {
		p.full = true
		return nil
	}
	offset := p.offset()
	if rec.Offset != offset {
		return errMissingOffset
	}
	if sum.Valid && !store.Sum(sum.Int64).Covers(gen, rec) {
		return errSum
	}
	p.records = append(p.records, rec)
	p.next = offset
	if !p.Reverse {
		p.next++
	}
	return nil
}
