package durable

import (
	"bufio"
	"context"
	"net/http"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// maxRecords is the largest number of records that are read at once: enough to fill a
// page with small messages.
const maxRecords = 1 << 16

// A reading is a read in progress.
type reading struct {
	target
	query
	session tapedeck.Session // the entry when the read began
	json    bool             // the stream consists of messages, not of bytes
	text    bool             // the bytes are text
	epoch   string           // of the views, before the newest records were read
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
		return h.atTail(w, r, rd)
	}
	return h.catchUp(w, r, rd)
}

// begin reads the request and looks up its target. It is apart from get, because every
// follower keeps the stack of get while it is connected, and there are thousands.
func (h *handler) begin(r *http.Request, t target) (*reading, error) {
	q, err := decodeQuery(r)
	if err != nil {
		return nil, err
	}
	s, err := h.lookup(r.Context(), t)
	if err != nil {
		return nil, err
	}
	if err := h.checkGen(r.Context(), t, &s, place{q.at, q.gen}); err != nil {
		return nil, err
	}
	if err := h.touch(r.Context(), &s); err != nil {
		return nil, t.explain(err)
	}
	if q.now {
		q.at = offset{n: s.Head}
	}
	rd := &reading{target: t, query: q, session: s, json: isJSON(s.ContentType)}
	rd.epoch = h.epoch(rd)
	rd.text = !rd.json && len(s.ContentType) > 5 && strings.EqualFold(s.ContentType[:5], "text/")
	return rd, nil
}

// epoch returns a value that changes when events are erased: a result of events before an
// erasure must not be sent after it. Streams are never erased, so theirs is "".
func (h *handler) epoch(rd *reading) string {
	if !rd.isSession || h.Views == nil {
		return ""
	}
	return h.Views.Epoch()
}

// catchUp answers with a page.
func (h *handler) catchUp(w http.ResponseWriter, r *http.Request, rd *reading) error {
	p, err := h.readPage(r.Context(), rd)
	if err != nil {
		return err
	}
	defer p.pass.Leave()
	return h.write(w, r, rd, &p)
}

// explain is [target.explain] for an error of reading: if something is invalid, it is the
// offset.
func (rd *reading) explain(err error) error {
	if tapedeck.KindOf(err) == tapedeck.Invalid {
		return badOffset(rd.at.String())
	}
	return rd.target.explain(err)
}

// readPage reads the page at rd.at.
func (h *handler) readPage(ctx context.Context, rd *reading) (page, error) {
	if rd.isProjected() {
		return h.projectedPage(ctx, rd)
	}
	p, err := h.Store.Read(ctx, rd.id, tapedeck.Range{From: rd.at.n, Limit: h.limit(rd), MaxBytes: h.PageBytes})
	if err != nil {
		return page{}, rd.explain(err)
	}
	if err := rd.checkPage(&p); err != nil {
		return page{}, err
	}
	return h.next(ctx, rd.at, rd, p)
}

// limit returns the largest number of records in a page.
func (h *handler) limit(rd *reading) int {
	if rd.limit > 0 {
		return rd.limit
	}
	return maxRecords
}

// atTail answers a read from the tail that does not wait: with nothing.
func (h *handler) atTail(w http.ResponseWriter, r *http.Request, rd *reading) error {
	head := w.Header()
	set(head, "Content-Type", rd.session.ContentType)
	setTail(head, rd.session.Gen, rd.session.Head, rd.session.Closed)
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
	set(head, hNextOffset, p.next.of(rd.session.Gen))
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
	if buffered(w, func(b *bufio.Writer) error { return rd.pour(b, b, 1, records) }) != nil {
		panic(http.ErrAbortHandler) // the client has disconnected, or the records were erased
	}
}

// longPoll answers with the messages at its offset, or waits for them.
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
	set(head, hNextOffset, p.next.of(rd.session.Gen))
	head[hUpToDate] = valTrue
	head["Cache-Control"] = valNoStore
	if p.closed {
		head[hClosed] = valTrue
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// await returns the first page that is not empty. After the time of a long-poll, and at
// the end of the stream, it returns an empty page.
func (h *handler) await(ctx context.Context, rd *reading) (page, error) {
	ctx, stop := context.WithTimeout(ctx, h.LongPoll)
	defer stop()
	// Even if the time is over before anything was read, it is known whether the stream
	// is closed.
	last := page{next: rd.at, tail: true, closed: rd.session.Closed && rd.at == offset{n: rd.session.Head}}
	for p, err := range h.Store.Follow(ctx, rd.id, h.following(rd)) {
		if err != nil {
			if ctx.Err() != nil {
				return last, rd.explain(h.touch(context.WithoutCancel(ctx), &rd.session))
			}
			return page{}, rd.explain(err)
		}
		if last, err = h.next(ctx, rd.at, rd, p); err != nil || len(last.parts) > 0 {
			return last, err
		}
		rd.at, rd.epoch = last.next, h.epoch(rd)
	}
	return last, nil
}
