package durable

import (
	"bufio"
	"context"
	"net/http"
	"strings"

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
	epoch   string           // of the views, before what is at hand was read
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
		return h.nothing(w, r, rd)
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
		return nil, t.inWords(err)
	}
	if q.now {
		q.at = offset{n: s.Head}
	}
	rd := &reading{target: t, query: q, session: s, json: isJSON(s.ContentType)}
	rd.epoch = h.epoch(rd)
	rd.text = !rd.json && len(s.ContentType) > 5 && strings.EqualFold(s.ContentType[:5], "text/")
	return rd, nil
}

// epoch returns what changes when events are erased: what was made of some, or
// encoded, must not be given to who comes after that. Streams are never erased.
func (h *handler) epoch(rd *reading) string {
	if !rd.isSession || h.Views == nil {
		return ""
	}
	return h.Views.Epoch()
}

func (h *handler) catchUp(w http.ResponseWriter, r *http.Request, rd *reading) error {
	p, err := h.readPage(r.Context(), rd)
	if err != nil {
		return err
	}
	defer p.pass.Leave()
	return h.write(w, r, rd, &p)
}

// inWords puts an error of reading into the words of who reads: what is invalid
// can only be the offset.
func (rd *reading) inWords(err error) error {
	if tapedeck.KindOf(err) == tapedeck.Invalid {
		return badOffset(rd.at.String())
	}
	return rd.target.inWords(err)
}

// readPage reads the page at rd.at.
func (h *handler) readPage(ctx context.Context, rd *reading) (page, error) {
	if rd.isProjected() {
		return h.projectedPage(ctx, rd)
	}
	p, err := h.Store.Read(ctx, rd.id, tapedeck.Range{From: rd.at.n, Limit: h.limit(rd), MaxBytes: h.PageBytes})
	if err != nil {
		return page{}, rd.inWords(err)
	}
	return h.next(ctx, rd.at, rd, p)
}

func (h *handler) limit(rd *reading) int {
	if rd.limit > 0 {
		return rd.limit
	}
	return maxRecords
}

// nothing answers a read from the tail that does not wait.
func (h *handler) nothing(w http.ResponseWriter, r *http.Request, rd *reading) error {
	head := w.Header()
	set(head, "Content-Type", rd.session.ContentType)
	setTail(head, rd.session.Head, rd.session.Closed)
	head[hUpToDate] = valTrue
	head["Cache-Control"] = valNoStore
	h.writeBody(w, r, rd, &page{})
	return nil
}

// write answers a read with a page.
func (h *handler) write(w http.ResponseWriter, r *http.Request, rd *reading, p *page) error {
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
	h.writeBody(w, r, rd, p)
	return nil
}

func (h *handler) writeBody(w http.ResponseWriter, r *http.Request, rd *reading, p *page) {
	setInt(w.Header(), "Content-Length", int64(rd.size(p)))
	w.WriteHeader(http.StatusOK)
	records := h.release(r.Context(), rd, p)
	defer records.Done()
	if through(w, func(b *bufio.Writer) error { return rd.pour(b, b, 1, records) }) != nil {
		panic(http.ErrAbortHandler) // the client is gone, or what was to be sent is
	}
}

// longPoll answers with what there is, or waits until there is something.
func (h *handler) longPoll(w http.ResponseWriter, r *http.Request, rd *reading) error {
	p, err := h.await(r.Context(), rd)
	if err != nil {
		return err
	}
	defer p.pass.Leave()
	head := w.Header()
	setInt(head, hCursor, nextCursor(h.Now(), rd.cursor))
	if len(p.parts) > 0 {
		return h.write(w, r, rd, &p)
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
	// The time may be over before anything was read; that the stream is closed is
	// known all the same.
	last := page{next: rd.at, tail: true, closed: rd.session.Closed && rd.at == offset{n: rd.session.Head}}
	for p, err := range h.Store.Follow(ctx, rd.id, h.following(rd)) {
		if err != nil {
			if ctx.Err() != nil {
				return last, rd.inWords(h.touch(context.WithoutCancel(ctx), &rd.session))
			}
			return page{}, rd.inWords(err)
		}
		if last, err = h.next(ctx, rd.at, rd, p); err != nil || len(last.parts) > 0 {
			return last, err
		}
		rd.at, rd.epoch = last.next, h.epoch(rd)
	}
	return last, nil
}
