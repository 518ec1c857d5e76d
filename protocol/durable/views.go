package durable

import (
	"context"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// A viewKind shows a session as something else. What an event becomes depends on
// the events before it only as far as the projection says, never on where the
// reader began: so an offset means the same to everybody.
type viewKind struct {
	contentType string
	begin       func(from source, session string, at int64) projection
}

var views = map[string]viewKind{
	"agui":     {jsonType, newAGUI},
	"text":     {textType, func(source, string, int64) projection { return text{} }},
	"messages": {jsonType, newMessages},
	"state":    {jsonType, newState},
}

// A source is what projections look things up in.
type source struct {
	log   tapedeck.Log
	views Views
}

// A projection turns the events of a session, in order, into what a view shows.
type projection interface {
	// project appends to out what an event becomes: any number of messages, or
	// if the view is text at most one run of it.
	project(ctx context.Context, r tapedeck.Record, e *tapedeck.Event, out [][]byte) ([][]byte, error)

	// weight returns how many bytes it remembers; 0 if nothing at all.
	weight() int
}

// projected reports whether rd is of something else than the records themselves.
func (rd *reading) projected() bool {
	return rd.view != "" || rd.isSession && !rd.filter.empty()
}

// project makes a page of records that were read for position at.
func (h *handler) project(ctx context.Context, rd *reading, at offset, p tapedeck.Page) (page, error) {
	out := page{next: offset{n: p.Next}, tail: p.CaughtUp(), closed: p.Closed && p.CaughtUp()}
	pr := h.folds.take(rd, at.n, source{h.Store, h.Views}, h.epoch(rd))
	var made [][]byte
	full := fullness{records: h.limit(rd), bytes: h.PageBytes}
	for _, r := range p.Records {
		e, err := r.Event()
		if err != nil {
			return page{}, err
		}
		if made, err = pr.project(ctx, r, &e, made[:0]); err != nil {
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
			if full.by(len(m)) {
				return page{parts: out.parts, next: offset{r.Offset, skip + int64(i)}}, nil
			}
			out.parts = append(out.parts, tapedeck.Record{Offset: r.Offset, Data: m})
		}
	}
	h.folds.keep(rd, p.Next, pr, h.epoch(rd))
	return out, nil
}

// skip leaves out the first k messages, or bytes.
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

// fullness is what a page still has room for.
type fullness struct {
	records, bytes int
	begun          bool
}

// by reports whether n bytes more are too many, and if not, takes them. The
// first always have room.
func (f *fullness) by(n int) bool {
	if f.begun && (f.records == 0 || n > f.bytes) {
		return true
	}
	f.begun = true
	f.records--
	f.bytes -= n
	return false
}

// maxEmpty is how many pages are searched for something to show before the
// answer is that there is nothing up to here.
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
		return page{}, rd.inWords(err)
	}
	if len(p.Records) == 0 && at.k > 0 {
		return page{}, badOffset(at.String())
	}
	return h.next(ctx, at, rd, p)
}

// envelopes shows the records themselves. It is there for a filter.
type envelopes struct{}

func (envelopes) weight() int { return 0 }

func (envelopes) project(_ context.Context, r tapedeck.Record, _ *tapedeck.Event, out [][]byte) ([][]byte, error) {
	return append(out, r.Data), nil
}

// text shows what agents say, and an end of line after each message.
type text struct{}

func (text) weight() int { return 0 }

func (text) project(_ context.Context, _ tapedeck.Record, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
	switch e.Type {
	case tapedeck.TextMessageContent:
		var d struct {
			Delta string `json:"delta"`
		}
		if json.Unmarshal(e.Data, &d) == nil && d.Delta != "" {
			out = append(out, []byte(d.Delta))
		}
	case tapedeck.TextMessageEnd:
		out = append(out, []byte{'\n'})
	}
	return out, nil
}
