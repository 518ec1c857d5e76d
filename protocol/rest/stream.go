package rest

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/backlog"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// streamBytes is the most that is read for one write. A thousand followers may
// be catching up at the same time.
const streamBytes = 256 << 10

// A subscription is what a client wants of a stream.
type subscription struct {
	session string
	filter  filter
	from    int64
	resumed bool   // from comes after an event that the client has
	partly  string // format=task: the number of the newest part of the event at from that the client has; "" for none
	placed  bool   // the client says from where
	until   bool   // until the terminal event of a run
	people  bool   // who comes and goes, too
}

var streamParameters = append([]string{"fromOffset", "from", "lastEventId", "until", "presence"}, filterNames...)

func parseSubscription(r *http.Request) (subscription, error) {
	id, err := sessionID(r)
	if err != nil {
		return subscription{}, err
	}
	q := parseQuery(r, streamParameters...)
	s := subscription{session: id, filter: q.filter()}
	s.placed = q.hasFrom()
	s.until = q.one("until", "", "terminal", "none") == "terminal" || s.filter.task && !q.values.Has("until")
	s.people = q.one("presence", "stored", "stored", "live") == "live"
	if s.people && s.filter.task {
		q.fail("the task protocol has no presence")
	}
	if s.until && !s.filter.task && len(s.filter.invocations) > 1 {
		q.fail("until=terminal goes with one invocation")
	}
	s.from = q.from()
	last := r.Header.Get("Last-Event-ID")
	if last == "" {
		last = q.string("lastEventId")
	}
	if last != "" && q.err == nil {
		s.resume(last, q)
	}
	return s, q.err
}

// resume continues after the event with the id that the client got last.
func (s *subscription) resume(last string, q *query) {
	whole, fraction, divided := strings.Cut(last, ".")
	n, ok := parseOffset(whole)
	if divided = divided && s.filter.task; divided {
		_, isNumber := parseOffset(fraction)
		ok, s.partly = ok && isNumber, last
	} else {
		ok = ok && fraction == "" && whole == last
	}
	if !ok || n+1 <= 0 {
		q.fail("the last event id must be the offset of an event, not %q", last)
	}
	s.from, s.resumed, s.placed = n+1, true, true
}

// stream sends the events of a session as they come.
//
// An EventSource reconnects whenever a stream ends, for whatever reason, and
// tells the id of the last event; only the status 204 stops it. So a stream
// that has come to its end must leave an id behind by which a reconnect is
// known to have nothing more to get.
func (h *handler) stream(w http.ResponseWriter, r *http.Request) error {
	s, err := parseSubscription(r)
	if err != nil {
		return err
	}
	if s.filter.task {
		return h.taskStream(w, r, s)
	}
	if err := s.filter.resolve(r.Context(), h, s.session); err != nil {
		return err
	}
	switch over, err := h.over(r.Context(), &s); {
	case err != nil:
		return err
	case over:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case r.Method == http.MethodHead:
		_, err := sse.Start(w)
		return err
	}
	defer func() { // the next answer on this connection may come later than the last write's deadline
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	}()
	f := follower{subscription: s, w: w, sent: s.from - 1, passed: s.from - 1, quiet: h.Heartbeat}
	idle := h.Heartbeat
	if !s.filter.empty() {
		idle /= 2 // a page of which nothing passes restarts the hub's clock, not ours
		f.quiet = idle
	}
	o := tapedeck.FollowOptions{From: s.from, Idle: idle, MaxBytes: streamBytes}
	if s.people {
		f.present = h.Verbs.WatchPresence(s.session)
		defer f.present.Stop()
		o.Wake = f.present.Changed()
	}
	for page, err := range h.Sessions.Follow(r.Context(), s.session, o) {
		if err == nil {
			err = h.sendPage(r.Context(), &f, page)
		}
		switch {
		case errors.Is(err, errEnd):
			return nil
		case err != nil && f.out == nil:
			return err
		case err != nil:
			h.broken(r, &f, err)
			return nil
		}
	}
	return nil
}

// over reports whether nothing can come any more of what the client wants.
func (h *handler) over(ctx context.Context, s *subscription) (bool, error) {
	head, err := h.Sessions.Head(ctx, s.session)
	if err == nil {
		err = beyond(s, &head)
	}
	switch {
	case err != nil:
		return false, err
	case head.Closed && s.from == head.Head:
		return true, nil
	case !s.until || s.from == 0 || !s.resumed && s.filter.invocations == nil:
		return false, nil
	}
	p, err := h.Sessions.Read(ctx, s.session, tapedeck.Range{From: s.from - 1, Limit: 1})
	if err != nil || len(p.Records) == 0 {
		return false, err
	}
	e, err := p.Records[0].Event()
	return err == nil && s.ends(&e), err
}

// beyond refuses what begins beyond the head.
func beyond(s *subscription, head *tapedeck.Session) error {
	switch {
	case s.from > head.Head && s.resumed:
		return tapedeck.Errorf(tapedeck.Invalid, "session %s has no event %d yet: it is at offset %d", s.session, s.from-1, head.Head).
			WithHint("it may have been deleted and made anew; read it from offset 0")
	case s.from > head.Head:
		return tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d, you asked from %d", s.session, head.Head, s.from).
			WithHint("read from %d or before", head.Head)
	}
	return nil
}

// ends reports whether e ends the stream of a client that wants to know when a
// run is over.
func (s *subscription) ends(e *tapedeck.Event) bool {
	return s.until && (e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError) && among(s.filter.invocations, e.Invocation)
}

// broken ends a stream that cannot go on. The client reconnects and learns why,
// if there is more to learn.
func (h *handler) broken(r *http.Request, f *follower, err error) {
	switch kind := tapedeck.KindOf(err); {
	case r.Context().Err() != nil, errors.Is(err, errGone): // the client went
	case kind == tapedeck.NotFound, kind == tapedeck.Gone:
		_ = f.out.Send(sse.AppendFrame(nil, "", "end", []byte(`{"reason":"deleted"}`))) // the stream ends either way
	default:
		_ = h.internal(r, err)
	}
}

// A follower writes a session to one client.
type follower struct {
	subscription
	w      http.ResponseWriter
	out    *sse.Writer   // nil before the first page
	sent   int64         // id of the last frame that had one
	passed int64         // offset of the last event that was looked at
	caught bool          // caught-up was sent
	quiet  time.Duration // after so long without a frame a comment is sent
	wrote  time.Time

	present api.PresenceWatcher // nil if the client does not want to know
}

var (
	errEnd  = errors.New("the stream has come to its end")
	errGone = errors.New("the client is gone")
)

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// sendPage writes one page, and returns errEnd if nothing is to follow. Its records go
// out as they are, so they are let go of when the reader stalls.
func (h *handler) sendPage(ctx context.Context, f *follower, p tapedeck.Page) error {
	var pass *backlog.Pass
	if backlog.Large(p.Records) {
		records := p.Records
		p.Records = nil // while it waits nothing is to hold them
		var err error
		if records, pass, err = backlog.Enter(ctx, records, h.rereading(ctx, f.session)); err != nil {
			return err
		}
		p.Records = records
		defer pass.Leave()
	}
	shown, last, err := f.choose(p.Records)
	if err != nil {
		return err
	}
	p.Records = nil
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	b := (*buf)[:0]
	if f.out == nil {
		b = append(b, "retry: 1000\n\n"...)
	}
	if isLarge(shown) {
		records := backlog.Of(ctx, shown, h.rereading(ctx, f.session)).Hold(pass)
		shown = nil
		err = f.pour(b, records)
		b = b[:0]
		if records.Done(); err != nil {
			return err
		}
	}
	for _, rec := range shown {
		b = appendEvent(b, rec)
	}
	b, end := f.notes(b, p, last)
	if err := f.write(b); err != nil {
		return err
	}
	if cap(b) <= maxFrames {
		*buf = b
	}
	return end
}

// maxFrames is how much is written of a page at once. A reader that is stuck
// holds so much.
const maxFrames = 32 << 10

// isLarge reports whether the frames of the records are written piece by piece.
func isLarge(records []tapedeck.Record) bool {
	size := 0
	for i := range records {
		size += len(records[i].Data) + frameCost
	}
	return size > maxFrames
}

// frameCost is about what the frame of an event has beside the event.
const frameCost = 24

// rereading returns how to read an event of a session again.
func (h *handler) rereading(ctx context.Context, session string) func(int64) (tapedeck.Record, error) {
	return func(offset int64) (tapedeck.Record, error) {
		p, err := h.Sessions.Read(ctx, session, tapedeck.Range{From: offset, Limit: 1})
		if err != nil || len(p.Records) == 0 {
			return tapedeck.Record{}, err
		}
		return p.Records[0], nil
	}
}

// pour writes b, and then the frames of records.
func (f *follower) pour(b []byte, records *backlog.Records) error {
	if err := f.write(b); err != nil {
		return err
	}
	w := writers.Get().(*bufio.Writer)
	defer writers.Put(w)
	w.Reset(f.out)
	defer w.Reset(nil)
	for i := range records.Len() {
		_, _ = w.Write(strconv.AppendInt(append(w.AvailableBuffer(), "id: "...), records.Offset(i), 10)) // Flush returns the error
		_, _ = w.WriteString("\ndata: ")
		if records.Write(w, i, 1, func(piece []byte) { _, _ = w.Write(piece) }) != nil {
			return errGone // half an event was sent, and a client takes none that is not whole
		}
		_, _ = w.WriteString("\n\n")
	}
	if w.Flush() != nil || f.out.Flush() != nil {
		return errGone
	}
	f.wrote = time.Now()
	return nil
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, maxFrames) }}

// choose returns the records that the client is shown, and whether the newest of
// them is the last that it wants.
func (f *follower) choose(records []tapedeck.Record) (shown []tapedeck.Record, last bool, err error) {
	if f.filter.empty() && !f.until {
		if n := len(records); n > 0 {
			f.passed = records[n-1].Offset
			f.sent = f.passed
		}
		return records, false, nil
	}
	for _, rec := range records {
		e, err := rec.Event()
		if err != nil {
			return nil, false, err
		}
		if f.passed = rec.Offset; f.filter.match(&e) {
			shown, f.sent = append(shown, rec), rec.Offset
		}
		if f.ends(&e) {
			return shown, true, nil
		}
	}
	return shown, false, nil
}

// notes appends what is to be said at the end of a page, and returns errEnd if
// nothing is to follow it.
func (f *follower) notes(b []byte, p tapedeck.Page, last bool) ([]byte, error) {
	if last {
		return f.note(b, "end", f.passed+1, `,"reason":"terminal"`), errEnd
	}
	if p.CaughtUp() && !f.caught {
		f.caught = true
		b = f.note(b, "caught-up", p.Next, "")
	}
	if f.present != nil && f.caught {
		b = appendPresence(b, f.present.Changes())
	}
	if p.CaughtUp() && p.Closed {
		return f.note(b, "end", p.Next, `,"reason":"closed"`), errEnd
	}
	return b, nil
}

// appendEvent appends the frame of an event. The bytes of a record are one
// line; they need not be searched for line ends.
func appendEvent(b []byte, rec tapedeck.Record) []byte {
	b = strconv.AppendInt(append(b, "id: "...), rec.Offset, 10)
	b = append(append(b, "\ndata: "...), rec.Data...)
	return append(b, "\n\n"...)
}

// note appends a frame of ours. It has an id only if events were passed over
// that the filter held back: so a reconnect does not look at them again, and no
// id is seen twice.
func (f *follower) note(b []byte, event string, next int64, more string) []byte {
	id := ""
	if f.passed > f.sent {
		id, f.sent = strconv.FormatInt(f.passed, 10), f.passed
	}
	data := strconv.AppendInt([]byte(`{"next":`), next, 10)
	return sse.AppendFrame(b, id, event, append(append(data, more...), '}'))
}

func (f *follower) write(frames []byte) (err error) {
	switch now := time.Now(); {
	case f.out == nil:
		if f.out, err = sse.Start(f.w); err != nil {
			return errGone
		}
		fallthrough
	case len(frames) > 0:
		err = f.out.Send(frames)
		f.wrote = now
	case now.Sub(f.wrote) >= f.quiet:
		err = f.out.Heartbeat()
		f.wrote = now
	}
	if err != nil {
		return errGone
	}
	return nil
}
