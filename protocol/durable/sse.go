package durable

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/tapedeck/tapedeck"
)

var (
	valEventStream = []string{"text/event-stream"} // the protocol's suite allows no parameter
	valBase64      = []string{"base64"}
	valNoBuffering = []string{"no"}

	heartbeat = []byte(": heartbeat\n\n")
)

// writeGrace is how long after the end of a connection a write may still take.
// Who takes nothing for so long is gone, and resumes if it is not.
const writeGrace = 30 * time.Second

// A subscriber is a connection of Server-Sent Events.
type subscriber struct {
	h      *handler
	rd     *reading
	w      http.ResponseWriter
	rc     *http.ResponseController
	fan    *fan
	cursor int64 // none that is sent may be below it

	at       offset // all before it was sent, or left out
	told     offset // where the client believes to be
	begun    bool   // something was sent
	upToDate bool   // the client believes to have caught up
}

// serveEvents follows a stream. The connection is closed after SSEClose, so
// that caches can give one connection to many; the client comes back.
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
	s.fan = h.fans.enter(rd)
	defer h.fans.leave(s.fan)
	// Not every ResponseWriter has deadlines, and nothing is lost without.
	_ = s.rc.SetWriteDeadline(time.Now().Add(h.SSEClose + writeGrace))
	return s.run(ctx)
}

// run sends what comes until there is a reason to stop. Before the first byte
// an error is still an answer; after it the connection just ends, and the
// client learns the reason when it comes back.
func (s *subscriber) run(ctx context.Context) error {
	for p, err := range s.h.Store.Follow(ctx, s.rd.id, s.h.following(s.rd)) {
		if err == nil {
			err = s.send(ctx, p)
		}
		if err != nil {
			if s.begun || ctx.Err() != nil {
				return nil
			}
			return s.rd.inWords(err)
		}
	}
	return nil
}

// following says how to follow for rd. A stream with a short time to live is
// kept alive by its readers.
func (h *handler) following(rd *reading) tapedeck.FollowOptions {
	o := tapedeck.FollowOptions{From: rd.at.n, Idle: h.Heartbeat, Limit: maxRecords, MaxBytes: h.PageBytes}
	if ttl := rd.session.TTL; ttl > 0 {
		o.Idle = min(o.Idle, max(ttl/2, time.Second/10))
	}
	return o
}

// send sends the records of p, or a sign of life if there are none.
func (s *subscriber) send(ctx context.Context, p tapedeck.Page) error {
	if err := s.h.touch(ctx, &s.rd.session); err != nil {
		return err
	}
	if len(p.Records) == 0 && s.begun && !p.Closed {
		return s.idle()
	}
	for first := true; first || s.at.n < p.Next; first = false {
		if err := s.sendPart(ctx, p); err != nil {
			return err
		}
		if p.Records = after(p.Records, s.at.n); len(p.Records) == 0 {
			break
		}
	}
	return nil
}

// after returns the records from offset n on.
func after(records []tapedeck.Record, n int64) []tapedeck.Record {
	for len(records) > 0 && records[0].Offset < n {
		records = records[1:]
	}
	return records
}

// sendPart sends the next frame made of p.
func (s *subscriber) sendPart(ctx context.Context, p tapedeck.Page) error {
	cursor := s.cursorNow()
	if p.CaughtUp() && size(p.Records) <= maxShared {
		f, err := s.fan.frame(s.at, p, cursor, func() (frame, error) { return s.build(ctx, p, cursor) })
		if err != nil || !s.reach(f.next, f.empty, f.tail) {
			return err
		}
		if _, err := s.w.Write(f.bytes); err != nil {
			return err
		}
		return s.rc.Flush()
	}
	part, err := s.h.next(ctx, s.at, s.rd, p)
	if err != nil || !s.reach(part.next, part.empty(), part.tail) {
		return err
	}
	return s.write(&part, cursor)
}

// reach notes that all up to next is being sent. It reports false if nothing
// need be: a filter or a view left nothing of it, and the client would not
// learn from it that it has caught up. The position is told when the next
// heartbeat is due.
func (s *subscriber) reach(next offset, empty, tail bool) bool {
	s.at = next
	if empty && s.begun && (s.upToDate || !tail) {
		return false
	}
	s.told, s.begun, s.upToDate = next, true, tail
	return true
}

// idle shows that the connection lives. If the position has moved past what
// was left out, it tells the new one.
func (s *subscriber) idle() error {
	if s.told != s.at {
		s.told = s.at
		return s.write(&page{next: s.at, tail: s.upToDate}, s.cursorNow())
	}
	if _, err := s.w.Write(heartbeat); err != nil {
		return err
	}
	return s.rc.Flush()
}

func (s *subscriber) write(p *page, cursor int64) error {
	if err := through(s.w, func(b *bufio.Writer) { s.rd.encodeFrame(b, p, cursor) }); err != nil {
		return err
	}
	return s.rc.Flush()
}

func (s *subscriber) cursorNow() int64 { return max(s.cursor, cursorAt(s.h.Now())) }

// build encodes the frame of p into memory that can be shared.
func (s *subscriber) build(ctx context.Context, p tapedeck.Page, cursor int64) (frame, error) {
	part, err := s.h.next(ctx, s.at, s.rd, p)
	if err != nil {
		return frame{}, err
	}
	b := bytes.NewBuffer(make([]byte, 0, s.rd.frameSize(&part)))
	s.rd.encodeFrame(b, &part, cursor)
	return frame{next: part.next, empty: part.empty(), tail: part.tail, bytes: b.Bytes()}, nil
}

// next makes a page of records that were read for position at.
func (h *handler) next(ctx context.Context, at offset, rd *reading, p tapedeck.Page) (page, error) {
	if rd.projected() {
		return h.project(ctx, rd, at, p)
	}
	return h.cut(rd, at, p)
}

// frameSize returns about how many bytes the frame of p has.
func (rd *reading) frameSize(p *page) int {
	n := rd.size(p)
	if !rd.json && !rd.text {
		n = base64.StdEncoding.EncodedLen(n)
	}
	return n + 256
}

// encodeFrame writes p as a data event, if it has data, and a control event.
func (rd *reading) encodeFrame(w sink, p *page, cursor int64) {
	if len(p.parts) > 0 {
		_, _ = io.WriteString(w, "event: data\ndata:")
		switch {
		case rd.json:
			rd.encode(w, p)
		case rd.text:
			rd.encode(&lines{w: w}, p)
		default:
			e := base64.NewEncoder(base64.StdEncoding, w)
			rd.encode(noByte{e}, p)
			_ = e.Close()
		}
		_, _ = io.WriteString(w, "\n\n")
	}
	_, _ = w.Write(appendControl(make([]byte, 0, 192), p, cursor))
}

// appendControl appends a control event. Its id is the offset too, so that an
// EventSource resumes by itself.
func appendControl(b []byte, p *page, cursor int64) []byte {
	b = p.next.append(append(b, "id: "...))
	b = p.next.append(append(b, "\nevent: control\ndata:{\"streamNextOffset\":\""...))
	if p.closed {
		return append(b, "\",\"upToDate\":true,\"streamClosed\":true}\n\n"...)
	}
	b = strconv.AppendInt(append(b, "\",\"streamCursor\":\""...), cursor, 10)
	if p.tail {
		return append(b, "\",\"upToDate\":true}\n\n"...)
	}
	return append(b, "\"}\n\n"...)
}

// lines writes text as data lines. The parts of a page run together, so a CRLF
// can be divided between two.
type lines struct {
	w  sink
	cr bool // the last byte was a CR, which has already ended its line
}

func (l *lines) WriteByte(c byte) error {
	_, err := l.Write([]byte{c})
	return err
}

func (l *lines) Write(b []byte) (int, error) {
	n := len(b)
	if l.cr && n > 0 && b[0] == '\n' {
		b = b[1:]
	}
	if n > 0 {
		l.cr = false
	}
	for {
		i := bytes.IndexAny(b, "\r\n")
		if i < 0 {
			break
		}
		_, _ = l.w.Write(b[:i])
		_, _ = io.WriteString(l.w, "\ndata:")
		if b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n' {
			i++
		} else if b[i] == '\r' && i+1 == len(b) {
			l.cr = true
		}
		b = b[i+1:]
	}
	_, err := l.w.Write(b)
	return n, err
}

// noByte makes a sink of a writer to which nobody writes single bytes.
type noByte struct{ io.Writer }

func (noByte) WriteByte(byte) error { panic("durable: bytes are written in runs") }
