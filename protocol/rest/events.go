package rest

import (
	"bufio"
	"context"
	"net/http"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/backlog"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// Limits of a page: what one request costs is bounded. A page that ends at scanLimit may
// be empty, and its next says where to continue.
const (
	scanLimit = 20_000  // events that a filtered request looks at
	pageBytes = 1 << 20 // bytes, or one event
)

var eventsParameters = append([]string{"from", "fromOffset", "limit", "reverse"}, filterNames...)

// events answers with a page, or with a stream if the client asks for one.
func (h *handler) events(w http.ResponseWriter, r *http.Request) error {
	if isTask(r) {
		return h.serveTask(w, r)
	}
	w.Header().Add("Vary", "Accept")
	switch {
	case httpapi.WantsStream(r):
		return h.stream(w, r)
	case isChannels(r):
		return h.channelPage(w, r)
	}
	id, err := httpapi.SessionID(r)
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, eventsParameters...)
	p := pager{
		handler: h, session: id, limit: q.Limit(pageLimit, pageLimit),
		reverse: q.Flag("reverse"), filter: parseFilter(q),
	}
	p.next, p.life = q.FromCursor()
	if p.reverse && !q.HasFrom() {
		p.next = -1 // the head
	}
	if q.Err != nil {
		return q.Err
	}
	if err := p.filter.resolve(r.Context(), h, id); err != nil {
		return err
	}
	if err := p.fill(r); err != nil {
		return err
	}
	return p.write(w, r)
}

// A pager gathers the events of one page.
type pager struct {
	*handler
	session string
	filter  filter
	limit   int
	reverse bool

	records []tapedeck.Record
	bytes   int
	scanned int
	next    int64
	life    int64         // the incarnation of the session that the client reads; 0 if it does not say it
	last    tapedeck.Page // the last page of the store, without its records
	pass    *backlog.Pass // the pass of a large record that fills the page alone
}

func (p *pager) fill(r *http.Request) error {
	for {
		page, err := p.Sessions.Read(r.Context(), p.session, tapedeck.Range{
			From: p.next, Limit: p.batch(), MaxBytes: pageBytes - p.bytes, Reverse: p.reverse,
		})
		if err != nil && p.life != 0 && tapedeck.KindOf(err) == tapedeck.Invalid { // the session that has the cursor's place now may be shorter
			if replaced := p.checkLife(r.Context(), 0); replaced != nil {
				return replaced
			}
		}
		if err != nil {
			return err
		}
		if err := p.checkLife(r.Context(), page.Gen); err != nil {
			return err
		}
		if p.life == 0 {
			p.life = page.Gen // the rest of the page must be of the same session
		}
		p.last = tapedeck.Page{Next: page.Next, Head: page.Head, Closed: page.Closed, Gen: page.Gen} // the records are in memory only once
		full, err := p.addPage(r, page)
		if err != nil || full || p.done() {
			return err
		}
	}
}

// checkLife refuses a page of another history than that of the client's cursor.
func (p *pager) checkLife(ctx context.Context, gen int64) (err error) {
	s := tapedeck.Session{Gen: gen}
	if p.life != 0 && gen == 0 { // the log does not know it
		s, err = p.Sessions.Head(ctx, p.session)
	}
	if err != nil {
		return err
	}
	return httpapi.CheckIncarnation(&s, p.session, p.life)
}

// batch returns how many records to read.
func (p *pager) batch() int {
	if p.filter.IsEmpty() {
		return p.limit
	}
	return tapedeck.DefaultLimit
}

// addPage is add for a page that may have a large record.
func (p *pager) addPage(r *http.Request, page tapedeck.Page) (full bool, err error) {
	if !backlog.Large(page.Records) {
		return p.add(page)
	}
	records := page.Records
	page.Records = nil // so that nothing keeps them in memory while Enter waits
	if records, p.pass, err = backlog.Enter(r.Context(), records, p.rereading(r.Context(), p.session)); err != nil {
		return false, err
	}
	page.Records = records
	if full, err = p.add(page); !full { // the filter has left it out
		p.pass.Leave()
	}
	return full, err
}

// add adds the records of a page of the store that pass the filter. It reports whether
// the page of the client is full.
func (p *pager) add(page tapedeck.Page) (full bool, err error) {
	for _, rec := range page.Records {
		ok, err := p.passes(rec)
		if err != nil {
			return false, err
		}
		if p.scanned++; !ok {
			continue
		}
		p.records = append(p.records, rec)
		if p.bytes += len(rec.Data); len(p.records) == p.limit || p.bytes >= pageBytes {
			if p.next = rec.Offset; !p.reverse {
				p.next++
			}
			return true, nil
		}
	}
	p.next = page.Next
	return false, nil
}

func (p *pager) passes(rec tapedeck.Record) (bool, error) {
	if p.filter.IsEmpty() {
		return true, nil
	}
	e, err := rec.Event()
	return err == nil && p.filter.Match(&e), err
}

// done reports whether there is nothing more to read, or enough was looked at.
func (p *pager) done() bool {
	if p.filter.IsEmpty() || p.scanned >= scanLimit {
		return true
	}
	if p.reverse {
		return p.next == 0
	}
	return p.last.CaughtUp()
}

// write writes the page. The events are the bytes of the store, so that they can be
// dropped from memory when the client stalls.
func (p *pager) write(w http.ResponseWriter, r *http.Request) error {
	const head = `{"events":[`
	end := p.end()
	httpapi.SetJSON(w.Header(), len(head)+p.bytes+max(0, len(p.records)-1)+len(end))
	w.WriteHeader(http.StatusOK)
	records := backlog.Of(r.Context(), p.records, p.rereading(r.Context(), p.session)).Hold(p.pass)
	p.records = nil
	defer records.Done()
	b := writers.Get().(*bufio.Writer)
	defer writers.Put(b)
	b.Reset(w)
	defer b.Reset(nil)
	_, _ = b.WriteString(head) // Flush returns the error
	for i := range records.Len() {
		if i > 0 {
			_ = b.WriteByte(',')
		}
		if records.Write(b, i, 1, func(piece []byte) { _, _ = b.Write(piece) }) != nil {
			panic(http.ErrAbortHandler) // a part of the page was sent
		}
	}
	_, _ = b.Write(end)
	_ = b.Flush() // if the client has disconnected, nobody needs the answer
	return nil
}

// end returns the part of the answer that follows the events.
func (p *pager) end() []byte {
	b := strconv.AppendInt([]byte(`],"next":`), p.next, 10)
	b = httpapi.AppendCursor(b, p.next, &tapedeck.Session{Gen: p.last.Gen})
	b = strconv.AppendInt(append(b, `,"head":`...), p.last.Head, 10)
	b = strconv.AppendBool(append(b, `,"closed":`...), p.last.Closed)
	return append(b, "}\n"...)
}
