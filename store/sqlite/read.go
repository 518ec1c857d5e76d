package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sessionkeys"
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
// memory if it was written to lately, otherwise in the database.
func (s *Store) view(ctx context.Context, id string) (*view, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.closed.Load() {
		return nil, errClosed()
	}
	if st, ok := s.index.Load(id); ok {
		return st.(*state).published.Load(), nil
	}
	var v *view
	err := s.readers.use(ctx, func(c *conn) (err error) {
		v, _, err = load(c, s.keyring(), id)
		return err
	})
	// The writer may have taken the session into memory meanwhile. Then v may have a
	// commit that is not published yet, and the next read from memory would be older.
	if st, ok := s.index.Load(id); ok && err == nil {
		return st.(*state).published.Load(), nil
	}
	return v, err
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
	key     *sessionkeys.Key // of the session that holds the records of the current span
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
	return s.readers.use(p.ctx, func(c *conn) error {
		for i := range spans {
			span := spans[i]
			if p.Reverse {
				span = spans[len(spans)-1-i]
			}
			if span.from = max(span.from, from); span.from >= span.to || p.full {
				continue
			}
			if err := p.readSpan(s, c, v, span); err != nil {
				return err
			}
		}
		return nil
	})
}

// readSpan reads a span in parts of at most window events.
func (p *pager) readSpan(s *Store, c *conn, v *view, span span) (err error) {
	if p.key, err = s.keyOf(c, v, span.gen); err != nil {
		return err
	}
	for part := span; span.from < span.to && !p.full; {
		if p.Reverse {
			part.from, part.to = max(span.from, span.to-window), span.to
			span.to = part.from
		} else {
			part.from, part.to = span.from, min(span.to, span.from+window)
			span.from = part.to
		}
		if err := p.readPart(s, c, part); err != nil {
			return err
		}
		if err := p.ctx.Err(); err != nil { // a page may be very large
			return err
		}
	}
	return nil
}

// readPart reads one part of a span. The trail of a session says at which positions of
// the database the events of the part are.
func (p *pager) readPart(s *Store, c *conn, part span) error {
	pos, err := s.trails.locate(c, part.gen, part.from, part.to)
	if err != nil {
		return err
	}
	end := part.to
	if p.Reverse {
		end = part.from
		slices.Reverse(pos)
	}
	if err := fetchSound(c, part.gen, pos, p.row); err != nil {
		return err
	}
	if !p.full && p.next != end {
		return errMissingOffset
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

// row adds a record, unless the page is full.
func (p *pager) row(row []driver.Value) error {
	data, err := decrypted(p.key, row)
	if err != nil {
		return err
	}
	if p.size += len(data); p.size > p.MaxBytes && len(p.records) > 0 {
		p.full = true
		return errStop
	}
	offset := p.offset()
	if integer(row[0]) != offset {
		return errMissingOffset
	}
	p.records = append(p.records, tapedeck.Record{Offset: offset, Data: data})
	p.next = offset
	if !p.Reverse {
		p.next++
	}
	return nil
}
