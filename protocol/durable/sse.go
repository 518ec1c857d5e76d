package durable

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/backlog"
)

var (
	valEventStream = []string{"text/event-stream"} // the protocol's suite allows no parameter
	valBase64      = []string{"base64"}
	valNoBuffering = []string{"no"}

	heartbeat = []byte(": heartbeat\n\n")
)

// maxLive is how much is read at once for a live reader. A slow reader keeps it in memory
// while it is sent.
const maxLive = 256 << 10

// writeGrace is how long a write may take after the end of a connection. A client that
// reads nothing for this long counts as disconnected; it can resume.
const writeGrace = 30 * time.Second

// maxSilent is how many records may be left out before the client receives its new
// offset.
const maxSilent = 10_000

// A subscriber is a connection of Server-Sent Events.
type subscriber struct {
	h      *handler
	rd     *reading
	w      http.ResponseWriter
	rc     *http.ResponseController
	shared *broadcast
	cursor int64 // every cursor sent from now on is at least this

	at       offset // everything before it was sent or left out
	reported offset // the offset that the client knows
	begun    bool   // something was sent
	upToDate bool   // the client knows that it has caught up
}

// serveEvents follows a stream. The connection is closed after SSEClose, so that caches
// can serve many clients from one connection; the client reconnects.
func (h *handler) serveEvents(w http.ResponseWriter, r *http.Request, rd *reading) error {
	ctx, stop := context.WithTimeout(r.Context(), h.SSEClose)
	defer stop()
	head := w.Header()
	head["Content-Type"] = valEventStream
	head["Cache-Control"] = valNoCache
	head["X-Accel-Buffering"] = valNoBuffering // nginx
	if !rd.json && !rd.text {
		head[hEncoding] = valBase64
	}
	s := &subscriber{h: h, rd: rd, w: w, rc: http.NewResponseController(w), at: rd.at}
	s.cursor = nextCursor(h.Now(), rd.cursor)
	s.shared = h.broadcasts.enter(rd)
	defer h.broadcasts.leave(s.shared)
	// There is one deadline for all writes: a timer for each would cost more than the
	// write. Not every ResponseWriter has deadlines; one in memory needs none.
	_ = s.rc.SetWriteDeadline(time.Now().Add(h.SSEClose + writeGrace))
	return s.run(ctx)
}

// run sends the messages that arrive until the stream or the connection ends. Before the
// first byte an error is the answer. After it the connection only ends, and the client
// learns the reason when it reconnects.
func (s *subscriber) run(ctx context.Context) error {
	for p, err := range s.h.Store.Follow(ctx, s.rd.id, s.h.following(s.rd)) {
		if err == nil {
			err = s.send(ctx, p)
		}
		if err != nil {
			if s.begun || ctx.Err() != nil {
				return nil
			}
			return s.rd.explain(err)
		}
		s.rd.epoch = s.h.epoch(s.rd)
	}
	return nil
}

// following returns the options to follow for rd. A reader keeps a stream with a short
// time to live alive.
func (h *handler) following(rd *reading) tapedeck.FollowOptions {
	o := tapedeck.FollowOptions{From: rd.at.n, Gen: rd.session.Gen, Idle: h.Heartbeat, Limit: h.limit(rd), MaxBytes: min(h.PageBytes, maxLive)}
	if ttl := rd.session.TTL; ttl > 0 {
		o.Idle = min(o.Idle, max(ttl/2, time.Second/10))
	}
	return o
}

// send sends the records of p, or a heartbeat if it has none.
func (s *subscriber) send(ctx context.Context, p tapedeck.Page) error {
	if err := s.h.touch(ctx, &s.rd.session); err != nil {
		return err
	}
	if len(p.Records) == 0 && s.begun && !p.Closed {
		return s.idle(ctx)
	}
	return s.sendParts(ctx, p)
}

// sendParts sends the records of p. A sequence of bytes that is longer than a page is
// sent in several parts and read again for each, so that the part that is sent can be
// dropped from memory.
func (s *subscriber) sendParts(ctx context.Context, p tapedeck.Page) error {
	for next := p.Next; ; {
		if err := s.sendPart(ctx, p); err != nil || s.at.n >= next {
			return err
		}
		var err error
		if p, err = s.h.Store.Read(ctx, s.rd.id, s.rest(next)); err == nil {
			err = s.rd.checkPage(&p)
		}
		if err != nil {
			return err
		}
		if p.Next <= s.at.n && len(p.Records) == 0 {
			return nil
		}
	}
}

// rest returns the range of a page that ends at next and has not been sent.
func (s *subscriber) rest(next int64) tapedeck.Range {
	o := s.h.following(s.rd)
	return tapedeck.Range{From: s.at.n, Limit: min(o.Limit, int(next-s.at.n)), MaxBytes: o.MaxBytes}
}

// sendPart sends the next frame of p.
func (s *subscriber) sendPart(ctx context.Context, p tapedeck.Page) error {
	if p.CaughtUp() && size(p.Records) <= maxShared {
		f, err := s.shared.frame(ctx, s, p)
		if err != nil || !s.reach(f.next, f.empty, f.tail) {
			return err
		}
		return s.writeFrame(&f)
	}
	part, err := s.h.next(ctx, s.at, s.rd, p)
	defer part.pass.Leave()
	if err != nil || !s.reach(part.next, part.empty(), part.tail) {
		return err
	}
	return s.write(ctx, &part)
}

// reach notes that everything before next is sent. It reports false if a frame
// would carry neither events nor news that the client has caught up. The client then
// receives its new offset with the next heartbeat, or after maxSilent records, because
// resuming from the old offset would cost much.
func (s *subscriber) reach(next offset, empty, tail bool) bool {
	s.at = next
	if empty && s.begun && (s.upToDate || !tail) && next.n-s.reported.n < maxSilent {
		return false
	}
	s.reported, s.begun, s.upToDate = next, true, tail
	return true
}

// idle shows that the connection lives. If records were left out, it sends the new
// offset.
func (s *subscriber) idle(ctx context.Context) error {
	if s.reported != s.at {
		s.reported = s.at
		return s.write(ctx, &page{next: s.at, tail: s.upToDate})
	}
	if _, err := s.w.Write(heartbeat); err != nil {
		return err
	}
	return s.rc.Flush()
}

// writeFrame sends a frame that other subscribers get too. Only a client that sent a
// cursor above the current one needs a control event of its own.
func (s *subscriber) writeFrame(f *frame) error {
	b := f.bytes
	if f.cursor < s.cursor {
		p := page{next: f.next, tail: f.tail, closed: f.closed && f.tail}
		b = appendControl(bytes.Clone(b[:f.data]), &p, s.rd.session.Gen, s.cursor)
	}
	s.cursor = max(s.cursor, f.cursor)
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.rc.Flush()
}

// write sends a page as a frame.
func (s *subscriber) write(ctx context.Context, p *page) error {
	s.cursor = max(s.cursor, cursorAt(s.h.Now()))
	records := s.h.release(ctx, s.rd, p)
	defer records.Done()
	err := buffered(s.w, func(b *bufio.Writer) error {
		if err := s.rd.pourData(b, records); err != nil {
			return err
		}
		_, _ = b.Write(appendControl(b.AvailableBuffer(), p, s.rd.session.Gen, s.cursor))
		return nil
	})
	if err != nil {
		return err
	}
	return s.rc.Flush()
}

// next makes a page of records that were read for offset at. The caller must not keep p.
func (h *handler) next(ctx context.Context, at offset, rd *reading, p tapedeck.Page) (page, error) {
	if backlog.Large(p.Records) {
		return h.nextLarge(ctx, at, rd, p)
	}
	return h.make(ctx, at, rd, p)
}

// nextLarge is next for a page with a large record.
func (h *handler) nextLarge(ctx context.Context, at offset, rd *reading, p tapedeck.Page) (out page, err error) {
	records := p.Records
	p.Records = nil // so that nothing keeps them in memory while Enter waits
	records, pass, err := backlog.Enter(ctx, records, h.rereading(ctx, rd))
	if err != nil {
		return page{}, err
	}
	p.Records = records
	if out, err = h.make(ctx, at, rd, p); err != nil || len(out.parts) == 0 || rd.view != "" {
		pass.Leave() // a view's output stays in memory even if its reader stalls: holding a pass for it would block others
		return out, err
	}
	out.pass = pass
	return out, nil
}

func (h *handler) make(ctx context.Context, at offset, rd *reading, p tapedeck.Page) (page, error) {
	if rd.isProjected() {
		return h.project(ctx, rd, at, p)
	}
	return h.cut(rd, at, p)
}
