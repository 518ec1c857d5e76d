package rest

import (
	"context"
	"iter"
	"net/http"
	"strconv"

	"github.com/tapedeck/tapedeck"
)

// Clients of the task protocol read the history at once and know of no pages. So
// it is given whole, up to these bounds of what one request may cost.
const (
	historyLimit = 10_000    // events given
	historyBytes = 16 << 20  // or so many bytes
	historyScan  = 1_000_000 // or so many looked at
)

// taskEvents answers with a page of the task protocol, partial messages too.
func (h *handler) taskEvents(w http.ResponseWriter, r *http.Request, q *query, session string, f filter) error {
	p := taskPager{
		handler: h, session: session, from: q.from(), limit: q.limit(pageLimit, pageLimit),
		filter: f, bytes: pageBytes, scan: scanLimit,
	}
	if q.flag("reverse") {
		q.fail("reverse goes with format=native only")
	}
	if q.err != nil {
		return q.err
	}
	if err := p.filter.resolve(r.Context(), h, session); err != nil {
		return err
	}
	return p.serve(w, r, h.raw)
}

var historyParameters = []string{"at", "from", "fromOffset", "limit", "thread", "invocation"}

// history answers with what is finished and in force.
func (h *handler) history(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	q := parseQuery(r, historyParameters...)
	p := taskPager{
		handler: h, session: id, at: q.offset("at", 0), from: q.from(), limit: q.limit(historyLimit, historyLimit),
		filter: filter{threads: q.list("thread", tapedeck.CheckID), invocations: q.list("invocation", tapedeck.CheckID)},
		bytes:  historyBytes, scan: historyScan, finished: true,
	}
	if p.filter.mains = p.filter.nowhere(); q.err != nil {
		return q.err
	}
	return p.serve(w, r, h.Views.Effective)
}

// A source yields the events of a session from one offset up to and without
// another.
type source func(ctx context.Context, session string, from, to int64) iter.Seq2[tapedeck.Event, error]

// raw yields all events.
func (h *handler) raw(ctx context.Context, session string, from, to int64) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for from < to {
			p, err := h.Sessions.Read(ctx, session, tapedeck.Range{From: from, Limit: int(min(to-from, tapedeck.DefaultLimit))})
			if err == nil && len(p.Records) == 0 {
				err = tapedeck.Errorf(tapedeck.Conflict, "session %s was deleted and made anew in the meantime", session).WithHint("ask again")
			}
			if err != nil {
				yield(tapedeck.Event{}, err)
				return
			}
			for _, rec := range p.Records {
				if e, err := rec.Event(); !yield(e, err) || err != nil {
					return
				}
			}
			from = p.Next
		}
	}
}

// A taskPager gathers a page of the task protocol.
type taskPager struct {
	*handler
	session  string
	filter   filter
	at       int64 // as of this offset; 0 for the head
	from     int64
	limit    int
	bytes    int
	scan     int
	finished bool // no partial messages

	out  []byte
	n    int
	seen int
	next int64
}

func (p *taskPager) serve(w http.ResponseWriter, r *http.Request, events source) error {
	head, err := p.Sessions.Head(r.Context(), p.session)
	if err == nil {
		err = beyond(&subscription{session: p.session, from: max(p.from, p.at)}, &head)
	}
	if err != nil {
		return err
	}
	if p.at > 0 { // as if nothing had come after it
		head.Closed = head.Closed && p.at == head.Head
		head.Head = p.at
	}
	if err := p.fill(r.Context(), head.Head, events); err != nil {
		return err
	}
	b := strconv.AppendInt(append(p.out, `],"next":`...), p.next, 10)
	b = strconv.AppendInt(append(b, `,"head":`...), head.Head, 10)
	b = strconv.AppendBool(append(b, `,"closed":`...), head.Closed)
	writeBytes(w, http.StatusOK, append(b, "}\n"...))
	return nil
}

func (p *taskPager) fill(ctx context.Context, head int64, events source) error {
	p.out, p.next = []byte(`{"events":[`), head
	t, err := newTaskEncoder(ctx, p.Sessions, p.session, p.from)
	if err != nil {
		return err
	}
	for e, err := range events(ctx, p.session, p.from, head) {
		if err != nil {
			return err
		}
		out, err := t.encode(ctx, &e)
		if err != nil {
			return err
		}
		if err := p.take(&e, out); err != nil {
			return err
		}
		if p.seen++; p.n >= p.limit || len(p.out) >= p.bytes || p.seen == p.scan {
			p.next = e.Offset + 1
			break
		}
	}
	return nil
}

// take adds what an event has become, if it is wanted.
func (p *taskPager) take(e *tapedeck.Event, out []taskEvent) (err error) {
	if out == nil || !p.filter.match(e) {
		return nil
	}
	for i := range out {
		if p.finished && out[i].partial {
			continue
		}
		if p.n > 0 {
			p.out = append(p.out, ',')
		}
		p.n++
		if p.out, err = out[i].appendJSON(p.out); err != nil {
			return err
		}
	}
	return nil
}
