package durable

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/tapedeck/tapedeck"
)

// maxRecords is the most records that are read at once: enough for a page of
// small messages to be full.
const maxRecords = 1 << 16

// A reading is one read under way.
type reading struct {
	target
	query
	session tapedeck.Session // as it was when the read began
	json    bool             // it consists of messages, not of bytes
	text    bool             // its bytes are text
}

func (h *handler) get(w http.ResponseWriter, r *http.Request, t target) error {
	rd, err := h.begin(r, t)
	switch {
	case err != nil:
		return err
	case rd.live == "sse":
		return h.serveEvents(w, r, rd)
	case rd.live == "long-poll":
		return h.longPoll(w, r, rd)
	case rd.now:
		return rd.nothing(w)
	}
	return h.catchUp(w, r, rd)
}

// begin finds out what is to be read. It is apart from get, whose stack a
// follower holds on to for as long as it is connected: there are thousands.
func (h *handler) begin(r *http.Request, t target) (*reading, error) {
	q, err := decodeQuery(r)
	if err != nil {
		return nil, err
	}
	s, err := h.lookup(r.Context(), t)
	if err != nil {
		return nil, err
	}
	if err := h.touch(r.Context(), &s); err != nil {
		return nil, err
	}
	if q.now {
		q.at = offset{n: s.Head}
	}
	rd := &reading{target: t, query: q, session: s, json: isJSON(s.ContentType)}
	rd.text = !rd.json && len(s.ContentType) > 5 && strings.EqualFold(s.ContentType[:5], "text/")
	return rd, nil
}

func (h *handler) catchUp(w http.ResponseWriter, r *http.Request, rd *reading) error {
	p, err := h.page(r.Context(), rd)
	if err != nil {
		return err
	}
	return rd.write(w, r, &p)
}

// inWords puts an error of reading into the words of who reads: what is invalid
// can only be the offset.
func (rd *reading) inWords(err error) error {
	if tapedeck.KindOf(err) == tapedeck.Invalid {
		return badOffset(rd.at.String())
	}
	return rd.target.inWords(err)
}

// A page is part of a stream as it goes out.
type page struct {
	parts  []tapedeck.Record // messages, or runs of bytes
	next   offset
	tail   bool // it ends where the stream ends
	closed bool // and there will be no more
}

// empty reports whether p has nothing but its position to say.
func (p *page) empty() bool { return len(p.parts) == 0 && !p.closed }

// page reads the page at rd.at.
func (h *handler) page(ctx context.Context, rd *reading) (page, error) {
	if rd.projected() {
		return h.projectedPage(ctx, rd)
	}
	p, err := h.Store.Read(ctx, rd.id, tapedeck.Range{From: rd.at.n, Limit: h.limit(rd), MaxBytes: h.PageBytes})
	if err != nil {
		return page{}, rd.inWords(err)
	}
	return h.cut(rd, rd.at, p)
}

func (h *handler) limit(rd *reading) int {
	if rd.limit > 0 {
		return rd.limit
	}
	return maxRecords
}

// cut makes a page of records that were read for position at. It is all of
// them, unless the first is a run of bytes longer than a page.
func (h *handler) cut(rd *reading, at offset, p tapedeck.Page) (page, error) {
	out := page{parts: p.Records, next: offset{n: p.Next}, tail: p.CaughtUp(), closed: p.Closed && p.CaughtUp()}
	if at.k == 0 && (rd.json || len(p.Records) == 0 || len(p.Records[0].Data) <= h.PageBytes) {
		return out, nil
	}
	if rd.json || len(p.Records) == 0 || at.k > int64(len(p.Records[0].Data)) {
		return page{}, badOffset(at.String())
	}
	first := p.Records[0]
	first.Data = first.Data[at.k:]
	if len(first.Data) > h.PageBytes {
		first.Data = first.Data[:rd.breakAt(first.Data, h.PageBytes)]
		return page{parts: []tapedeck.Record{first}, next: offset{at.n, at.k + int64(len(first.Data))}}, nil
	}
	out.parts = append([]tapedeck.Record{first}, p.Records[1:]...) // the store's own slice is left alone
	if len(first.Data) == 0 {
		out.parts = out.parts[1:]
	}
	return out, nil
}

// breakAt returns where to break b, at most at max: in text, not within a
// character.
func (rd *reading) breakAt(b []byte, max int) int {
	if !rd.text {
		return max
	}
	for i := max; i > 0 && i > max-4; i-- {
		if b[i]&0xC0 != 0x80 { // a character begins here
			return i
		}
	}
	return max // it is not UTF-8
}

func size(records []tapedeck.Record) int {
	n := 0
	for i := range records {
		n += len(records[i].Data)
	}
	return n
}

// size returns how many bytes the body of p has.
func (rd *reading) size(p *page) int {
	n := size(p.parts)
	if rd.json {
		n += 2 + max(0, len(p.parts)-1)
	}
	return n
}

// A sink takes what is encoded.
type sink interface {
	io.Writer
	io.ByteWriter
}

// encode writes the body of p.
func (rd *reading) encode(w sink, p *page) {
	if !rd.json {
		for i := range p.parts {
			_, _ = w.Write(p.parts[i].Data)
		}
		return
	}
	_ = w.WriteByte('[')
	for i := range p.parts {
		if i > 0 {
			_ = w.WriteByte(',')
		}
		_, _ = w.Write(p.parts[i].Data)
	}
	_ = w.WriteByte(']')
}

// buffers are large so that a page goes out in few system calls.
var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

// through calls encode with a large buffer before w.
func through(w io.Writer, encode func(*bufio.Writer)) error {
	b := buffers.Get().(*bufio.Writer)
	defer buffers.Put(b)
	b.Reset(w)
	encode(b)
	err := b.Flush()
	b.Reset(nil)
	return err
}

// nothing answers a read from the tail that does not wait.
func (rd *reading) nothing(w http.ResponseWriter) error {
	head := w.Header()
	set(head, "Content-Type", rd.session.ContentType)
	setTail(head, rd.session.Head, rd.session.Closed)
	head[hUpToDate] = valTrue
	head["Cache-Control"] = valNoStore
	rd.writeBody(w, &page{})
	return nil
}

// write answers a read with a page.
func (rd *reading) write(w http.ResponseWriter, r *http.Request, p *page) error {
	head := w.Header()
	tag := rd.tag(p)
	set(head, "Etag", tag)
	set(head, hNextOffset, p.next.String())
	head["Cache-Control"] = valMiddle
	if p.tail {
		head[hUpToDate] = valTrue
		head["Cache-Control"] = valTail
	}
	if p.closed {
		head[hClosed] = valTrue
	}
	if rd.live == "" && matchesTag(r.Header["If-None-Match"], tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	set(head, "Content-Type", rd.session.ContentType)
	rd.writeBody(w, p)
	return nil
}

func (rd *reading) writeBody(w http.ResponseWriter, p *page) {
	setInt(w.Header(), "Content-Length", int64(rd.size(p)))
	w.WriteHeader(http.StatusOK)
	// If the client is gone there is nobody to tell.
	_ = through(w, func(b *bufio.Writer) { rd.encode(b, p) })
}

// tag returns the entity tag of a page: which incarnation of the stream, from
// where to where, and whether it ends there.
func (rd *reading) tag(p *page) string {
	b := make([]byte, 0, 2*offsetLen+24)
	b = append(b, '"')
	b = strconv.AppendInt(b, rd.session.Gen, 10)
	b = rd.at.append(append(b, ':'))
	b = p.next.append(append(b, ':'))
	if p.closed {
		b = append(b, ":c"...)
	}
	return string(append(b, '"'))
}

// matchesTag reports whether If-None-Match names tag, which has no comma.
func matchesTag(header []string, tag string) bool {
	for _, list := range header {
		for t := range strings.SplitSeq(list, ",") {
			t = strings.TrimPrefix(strings.TrimSpace(t), "W/")
			if t == tag || t == "*" {
				return true
			}
		}
	}
	return false
}

// longPoll answers with what there is, or waits until there is something.
func (h *handler) longPoll(w http.ResponseWriter, r *http.Request, rd *reading) error {
	p, err := h.await(r.Context(), rd)
	if err != nil {
		return err
	}
	head := w.Header()
	setInt(head, hCursor, nextCursor(h.Now(), rd.cursor))
	if len(p.parts) > 0 {
		return rd.write(w, r, &p)
	}
	set(head, hNextOffset, p.next.String())
	head[hUpToDate] = valTrue
	head["Cache-Control"] = valNoStore
	if p.closed {
		head[hClosed] = valTrue
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// await returns the first page that is not empty, or after the time of a
// long-poll, or at the end of the stream, an empty one.
func (h *handler) await(ctx context.Context, rd *reading) (page, error) {
	ctx, stop := context.WithTimeout(ctx, h.LongPoll)
	defer stop()
	last := page{next: rd.at, tail: true}
	for p, err := range h.Store.Follow(ctx, rd.id, h.following(rd)) {
		if err != nil {
			if ctx.Err() != nil {
				return last, h.touch(context.WithoutCancel(ctx), &rd.session)
			}
			return page{}, rd.inWords(err)
		}
		if last, err = h.next(ctx, rd.at, rd, p); err != nil || len(last.parts) > 0 {
			return last, err
		}
		rd.at = last.next
	}
	return last, nil
}
