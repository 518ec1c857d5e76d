package durable

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/protocol/durable/views"
)

// isProjected reports whether rd reads something other than all records of the log.
func (rd *reading) isProjected() bool {
	return rd.view != "" || rd.isSession && !rd.filter.empty()
}

// project makes a page of records that were read for position at.
func (h *handler) project(ctx context.Context, rd *reading, at offset, p tapedeck.Page) (page, error) {
	out := page{next: offset{n: p.Next}, tail: p.CaughtUp(), closed: p.Closed && p.CaughtUp()}
	fold := h.folds.take(rd, at.n, views.Source{Log: h.Store, Views: h.Views}, h.epoch(rd))
	var made [][]byte
	left := space{records: h.limit(rd), bytes: h.PageBytes}
	for _, r := range p.Records {
		e, err := r.Event()
		if err != nil {
			return page{}, err
		}
		if made = made[:0]; fold == nil {
			made = append(made, r.Data)
		} else if made, err = fold.Apply(ctx, &e, made); err != nil {
			return page{}, err
		}
		if !rd.filter.match(&e) {
			continue
		}
		skip := int64(0)
		if r.Offset == at.n {
			skip = at.k
		}
		shown, ok := rd.skip(made, skip)
		if !ok {
			return page{}, badOffset(at.String())
		}
		for i, m := range shown {
			if !left.fits(len(m)) {
				return page{parts: out.parts, next: offset{r.Offset, skip + int64(i)}}, nil
			}
			out.parts = append(out.parts, tapedeck.Record{Offset: r.Offset, Data: m})
		}
	}
	h.folds.keep(rd, p.Next, fold, h.epoch(rd))
	return out, nil
}

// skip leaves out the first k messages, or the first k bytes of text. It reports false
// if made has fewer.
func (rd *reading) skip(made [][]byte, k int64) ([][]byte, bool) {
	switch {
	case k == 0:
		return made, true
	case rd.json:
		return made[min(k, int64(len(made))):], k <= int64(len(made))
	case len(made) == 0 || k > int64(len(made[0])):
		return nil, false
	case k == int64(len(made[0])):
		return nil, true
	}
	return [][]byte{made[0][k:]}, true
}

// A space is the capacity that is left in a page.
type space struct {
	records, bytes int
	begun          bool
}

// fits reports whether a record of n bytes fits, and takes its space. The first record
// always fits.
func (m *space) fits(n int) bool {
	if m.begun && (m.records == 0 || n > m.bytes) {
		return false
	}
	m.begun = true
	m.records--
	m.bytes -= n
	return true
}

// maxEmpty is how many pages are searched for a message before the answer is empty.
const maxEmpty = 8

func (h *handler) projectedPage(ctx context.Context, rd *reading) (page, error) {
	at := rd.at
	for range maxEmpty - 1 {
		p, err := h.projectNext(ctx, rd, at)
		if err != nil || p.tail || len(p.parts) > 0 {
			return p, err
		}
		at = p.next
	}
	return h.projectNext(ctx, rd, at)
}

func (h *handler) projectNext(ctx context.Context, rd *reading, at offset) (page, error) {
	rd.epoch = h.epoch(rd)
	p, err := h.Store.Read(ctx, rd.id, tapedeck.Range{From: at.n, Limit: maxRecords, MaxBytes: h.PageBytes})
	if err != nil {
		return page{}, rd.explain(err)
	}
	if err := rd.checkPage(&p); err != nil {
		return page{}, err
	}
	if len(p.Records) == 0 && at.k > 0 {
		return page{}, badOffset(at.String())
	}
	return h.next(ctx, at, rd, p)
}
