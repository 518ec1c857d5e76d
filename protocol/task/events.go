package task

import (
	"context"
	"iter"
	"net/http"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// Limits of one page of events: what one request costs is bounded.
const (
	pageLimit = 1000    // events
	pageBytes = 1 << 20 // bytes, or one event
	pageScan  = 20_000  // events of the log that are looked at
)

// Limits of a page of the history. Clients of the protocol know no pages: without a limit
// they get all of it, in parts.
const (
	historyLimit = 10_000    // events
	historyBytes = 16 << 20  // bytes, or one event
	historyScan  = 1_000_000 // events of the log that are looked at
	historyPart  = 256 << 10 // bytes that are written at once
)

// events answers with a page, or with a stream if the client asks for one. The page
// has partial messages.
func (h *handler) events(w http.ResponseWriter, r *http.Request) error {
	w.Header().Add("Vary", "Accept")
	if httpapi.WantsStream(r) {
		return h.stream(w, r)
	}
	id, err := httpapi.SessionID(r)
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, append([]string{"from", "fromOffset", "limit", "reverse"}, filterNames...)...)
	p := pager{
		handler: h, session: id, filter: parseFilter(q), limit: q.Limit(pageLimit, pageLimit),
		bytes: pageBytes, scan: pageScan,
	}
	p.from, p.life = q.FromCursor()
	if q.Flag("reverse") {
		q.Fail("reverse goes with format=native only")
	}
	if q.Err != nil {
		return q.Err
	}
	if err := p.filter.resolve(r.Context(), h, id); err != nil {
		return err
	}
	return p.serve(w, r, h.all)
}

// history answers with the finished and active events.
func (h *handler) history(w http.ResponseWriter, r *http.Request) error {
	id, err := httpapi.SessionID(r)
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, "at", "from", "fromOffset", "limit", "thread", "invocation")
	p := pager{
		handler: h, session: id, at: q.Offset("at", 0), limit: q.Limit(historyLimit, historyLimit),
		filter: parseRuns(q), bytes: historyBytes, scan: historyScan, finished: true, whole: !q.Values.Has("limit"),
	}
	p.from, p.life = q.FromCursor()
	if q.Err != nil {
		return q.Err
	}
	return p.serve(w, r, h.Views.Effective)
}

// A source yields the events of a session from one offset up to another, without the
// event at the latter.
type source func(ctx context.Context, session string, from, to int64) iter.Seq2[tapedeck.Event, error]

// all is the source of all events, active or not.
func (h *handler) all(ctx context.Context, session string, from, to int64) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for from < to {
			p, err := h.Sessions.Read(ctx, session, tapedeck.Range{From: from, Limit: int(min(to-from, tapedeck.DefaultLimit))})
			if err == nil && len(p.Records) == 0 {
				err = tapedeck.Errorf(tapedeck.Conflict, "session %s was deleted and recreated in the meantime", session).
					WithHint("send the request again")
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

// A pager gathers a page of events.
type pager struct {
	*handler
	session  string
	filter   filter
	at       int64 // as of this offset; 0 for the head
	from     int64
	life     int64 // the incarnation that from is of; 0 if the client does not say it
	limit    int
	bytes    int
	scan     int
	finished bool // without partial messages
	whole    bool // all events, whatever the limits are

	out     []byte
	count   int // of the events in out
	scanned int
	next    int64

	client http.ResponseWriter
	begun  bool // a part of the page was sent
}

func (p *pager) serve(w http.ResponseWriter, r *http.Request, events source) error {
	head, err := p.Sessions.Head(r.Context(), p.session)
	if err == nil {
		err = httpapi.CheckIncarnation(&head, p.session, p.life)
	}
	if err == nil {
		err = httpapi.CheckFrom(&head, p.session, max(p.from, p.at), false)
	}
	if err != nil {
		return err
	}
	if p.at > 0 { // the session as if the later events did not exist
		head.Closed = head.Closed && p.at == head.Head
		head.Head = p.at
	}
	p.client = w
	if err := p.fill(r.Context(), head.Head, events); err != nil {
		if p.begun { // the client must know that the answer is not complete
			p.broken(r, err)
			panic(http.ErrAbortHandler)
		}
		return err
	}
	b := strconv.AppendInt(append(p.out, `],"next":`...), p.next, 10)
	b = httpapi.AppendCursor(b, p.next, &head)
	b = strconv.AppendInt(append(b, `,"head":`...), head.Head, 10)
	b = strconv.AppendBool(append(b, `,"closed":`...), head.Closed)
	if b = append(b, "}\n"...); p.begun {
		_, _ = w.Write(b) // if the client has disconnected, nobody needs the answer
	} else {
		httpapi.WriteBytes(w, http.StatusOK, b)
	}
	return nil
}

// flush sends what there is of the page.
func (p *pager) flush() error {
	if !p.begun {
		p.begun = true
		httpapi.SetJSON(p.client.Header(), 0)
		p.client.Header().Del("Content-Length")
		p.client.WriteHeader(http.StatusOK)
	}
	_, err := p.client.Write(p.out)
	p.out = p.out[:0]
	return err
}

func (p *pager) fill(ctx context.Context, head int64, events source) error {
	p.out, p.next = []byte(`{"events":[`), head
	t, err := newEncoder(ctx, p.Sessions, p.session, p.from)
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
		if err := p.appendEvents(&e, out); err != nil {
			return err
		}
		p.scanned++
		switch full := p.count >= p.limit || len(p.out) >= p.bytes || p.scanned == p.scan; {
		case p.whole && len(p.out) >= historyPart:
			if err := p.flush(); err != nil {
				return err
			}
		case full && !p.whole:
			p.next = e.Offset + 1
			return nil
		}
	}
	return nil
}

// appendEvents appends the events that e has become, if the client wants them.
func (p *pager) appendEvents(e *tapedeck.Event, out []event) (err error) {
	if out == nil || !p.filter.match(e) {
		return nil
	}
	for i := range out {
		if p.finished && out[i].partial {
			continue
		}
		if p.count > 0 {
			p.out = append(p.out, ',')
		}
		p.count++
		if p.out, err = out[i].appendJSON(p.out); err != nil {
			return err
		}
	}
	return nil
}
