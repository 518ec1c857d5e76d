package rest

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/backlog"
)

// A request for a filtered page looks at so many events at most, and gives so
// many bytes at most (or one event): what one request costs is bounded. The
// page may then be empty, and its next says where to go on.
const (
	scanLimit = 20_000
	pageBytes = 1 << 20
)

var eventsParameters = append([]string{"from", "fromOffset", "limit", "reverse"}, filterNames...)

// events answers with a page, or with a stream if that is asked for.
func (h *handler) events(w http.ResponseWriter, r *http.Request) error {
	w.Header().Add("Vary", "Accept")
	if wantsStream(r) {
		return h.stream(w, r)
	}
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	q := parseQuery(r, eventsParameters...)
	f := q.filter()
	if f.task {
		return h.taskEvents(w, r, q, id, f)
	}
	p := pager{
		handler: h, session: id, limit: q.limit(pageLimit, pageLimit),
		reverse: q.flag("reverse"), filter: f,
	}
	p.next = q.from()
	if p.reverse && !q.hasFrom() {
		p.next = -1 // the head
	}
	if q.err != nil {
		return q.err
	}
	if err := p.filter.resolve(r.Context(), h, id); err != nil {
		return err
	}
	if err := p.fill(r); err != nil {
		return err
	}
	return p.write(w, r)
}

// wantsStream reports whether a request is for Server-Sent Events. Clients of the
// task protocol get nothing else here, unless they ask for JSON.
func wantsStream(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return strings.Contains(accept, "text/event-stream") || byTask(r) && !strings.Contains(accept, "json")
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
	last    tapedeck.Page // read from the store
	pass    *backlog.Pass // of a record that fills the page by itself
}

func (p *pager) fill(r *http.Request) error {
	for {
		page, err := p.Sessions.Read(r.Context(), p.session, tapedeck.Range{
			From: p.next, Limit: p.batch(), MaxBytes: pageBytes - p.bytes, Reverse: p.reverse,
		})
		if err != nil {
			return err
		}
		p.last = tapedeck.Page{Next: page.Next, Head: page.Head, Closed: page.Closed} // the records are not held twice
		full, err := p.takeLarge(r, page)
		if err != nil || full || p.done() {
			return err
		}
	}
}

// batch returns how many records to read.
func (p *pager) batch() int {
	if p.filter.empty() {
		return p.limit
	}
	return tapedeck.DefaultLimit
}

// takeLarge is take for a page that may be large.
func (p *pager) takeLarge(r *http.Request, page tapedeck.Page) (full bool, err error) {
	if !backlog.Large(page.Records) {
		return p.take(page)
	}
	records := page.Records
	page.Records = nil // while it waits nothing is to hold them
	if records, p.pass, err = backlog.Enter(r.Context(), records, p.rereading(r.Context(), p.session)); err != nil {
		return false, err
	}
	page.Records = records
	if full, err = p.take(page); !full { // the filter holds it back
		p.pass.Leave()
	}
	return full, err
}

// take takes what passes of a page of the store. It reports whether that filled
// the page of the client.
func (p *pager) take(page tapedeck.Page) (full bool, err error) {
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
	if p.filter.empty() {
		return true, nil
	}
	e, err := rec.Event()
	return err == nil && p.filter.match(&e), err
}

// done reports whether there is nothing more to read, or enough was read.
func (p *pager) done() bool {
	if p.filter.empty() || p.scanned >= scanLimit {
		return true
	}
	if p.reverse {
		return p.next == 0
	}
	return p.last.CaughtUp()
}

// write writes the page. The events are the bytes of the store, and are let go of
// when the reader stalls.
func (p *pager) write(w http.ResponseWriter, r *http.Request) error {
	const head = `{"events":[`
	end := p.end()
	setJSON(w.Header(), len(head)+p.bytes+max(0, len(p.records)-1)+len(end))
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
			panic(http.ErrAbortHandler) // half a page was sent
		}
	}
	_, _ = b.Write(end)
	_ = b.Flush() // if the client is gone there is nobody to tell
	return nil
}

// end returns what follows the events.
func (p *pager) end() []byte {
	b := strconv.AppendInt([]byte(`],"next":`), p.next, 10)
	b = strconv.AppendInt(append(b, `,"head":`...), p.last.Head, 10)
	b = strconv.AppendBool(append(b, `,"closed":`...), p.last.Closed)
	return append(b, "}\n"...)
}
