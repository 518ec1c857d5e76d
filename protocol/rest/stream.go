package rest

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/backlog"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// streamBytes limits how much is read for one write: a thousand followers may catch
// up at the same time.
const streamBytes = 256 << 10

// A subscription is what a client asks of a stream.
type subscription struct {
	session  string
	filter   filter
	from     int64
	life     int64 // the incarnation of the session that from is of; 0 if the client does not say it
	resumed  bool  // from comes after an event that the client has
	until    bool  // the stream ends with the terminal event of a run
	presence bool  // the stream has changes of presence
}

var streamParameters = append([]string{"fromOffset", "from", "lastEventId", "begin", "until", "presence"}, filterNames...)

func parseSubscription(r *http.Request) (subscription, error) {
	id, err := httpapi.SessionID(r)
	if err != nil {
		return subscription{}, err
	}
	q := httpapi.ParseQuery(r, streamParameters...)
	s := subscription{session: id, filter: parseFilter(q)}
	s.from, s.life = q.FromCursor()
	s.until = q.OneOf("until", "", "terminal", "none") == "terminal"
	if q.OneOf("begin", "", "task", "new") != "" {
		q.Fail("begin goes with format=task only")
	}
	s.presence = q.OneOf("presence", "stored", "stored", "live") == "live"
	if s.until && len(s.filter.Invocations) > 1 {
		q.Fail("until=terminal goes with one invocation")
	}
	if last := q.LastEventID(r); last != "" && q.Err == nil {
		n, life, ok := httpapi.ParseCursor(last)
		if !ok || n+1 <= 0 {
			q.Fail("the last event id must be the id of an event, such as 41@3, or its offset, not %q", last)
		}
		s.from, s.life, s.resumed = n+1, life, true
	}
	return s, q.Err
}

// stream sends the events of a session as they are appended.
//
// An EventSource reconnects whenever a stream ends, whatever the reason, and sends
// the id of the last event. Only the status 204 stops it. So the last frame of a
// stream that is complete must have an id that tells a reconnect apart.
func (h *handler) stream(w http.ResponseWriter, r *http.Request) error {
	switch {
	case isTask(r):
		return h.serveTask(w, r)
	case isChannels(r):
		return h.channelStream(w, r)
	}
	f, err := h.subscribe(w, r)
	if f == nil {
		return err
	}
	defer f.close()
	return h.follow(r, f.session, f.options, f.out, func(p tapedeck.Page) error { return h.sendPage(r.Context(), f, p) })
}

// subscribe returns the follower that r asks for. It returns nil if there is nothing to
// follow: then it has answered r, or returns the error.
//
//go:noinline
func (h *handler) subscribe(w http.ResponseWriter, r *http.Request) (*follower, error) {
	s, err := parseSubscription(r)
	if err != nil {
		return nil, err
	}
	if err := s.filter.resolve(r.Context(), h, s.session); err != nil {
		return nil, err
	}
	head, complete, err := h.isComplete(r.Context(), &s)
	switch {
	case err != nil:
		return nil, err
	case complete:
		w.WriteHeader(http.StatusNoContent)
		return nil, nil
	case r.Method == http.MethodHead:
		_, err := sse.Start(w)
		return nil, err
	}
	f := &follower{subscription: s, sent: s.from - 1, passed: s.from - 1}
	f.suffix = httpapi.AppendIncarnation(nil, &head)
	f.options = tapedeck.FollowOptions{From: s.from, Gen: head.Gen, Idle: h.Heartbeat, MaxBytes: streamBytes}
	if !s.filter.IsEmpty() {
		f.options.Idle /= 2 // a page without a selected event restarts the hub's clock, but not that of the stream
	}
	f.out = sse.NewStream(w, f.options.Idle)
	if s.presence {
		f.watcher = h.Verbs.WatchPresence(r.Context(), s.session)
		f.options.Wake = f.watcher.Changed()
	}
	return f, nil
}

// follow sends each page of a session to out, until send returns errEnd.
func (h *handler) follow(r *http.Request, session string, o tapedeck.FollowOptions, out *sse.Stream, send func(tapedeck.Page) error) error {
	for page, err := range h.Sessions.Follow(r.Context(), session, o) {
		if err == nil {
			err = send(page)
		}
		switch {
		case errors.Is(err, errEnd):
			return nil
		case err != nil && !out.Started():
			return err
		case err != nil:
			h.breakOff(r, out, err)
			return nil
		}
	}
	return nil
}

// isComplete reports whether the client has all events that it asks for, and no more
// can be appended.
func (h *handler) isComplete(ctx context.Context, s *subscription) (head tapedeck.Session, complete bool, err error) {
	if head, err = h.Sessions.Head(ctx, s.session); err == nil {
		err = httpapi.CheckIncarnation(&head, s.session, s.life)
	}
	if err == nil {
		err = httpapi.CheckFrom(&head, s.session, s.from, s.resumed)
	}
	switch {
	case err != nil:
		return head, false, err
	case head.Closed && s.from == head.Head:
		return head, true, nil
	case !s.until || s.from == 0 || !s.resumed && s.filter.Invocations == nil:
		return head, false, nil
	}
	p, err := h.Sessions.Read(ctx, s.session, tapedeck.Range{From: s.from - 1, Limit: 1})
	if err != nil || len(p.Records) == 0 {
		return head, false, err
	}
	e, err := p.Records[0].Event()
	return head, err == nil && s.ends(&e), err
}

// ends reports whether e is the terminal event that the client waits for.
func (s *subscription) ends(e *tapedeck.Event) bool {
	waited := s.filter.Invocations
	return s.until && (e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError) && (waited == nil || slices.Contains(waited, e.Invocation))
}

// breakOff ends a stream that cannot continue. The client reconnects and learns the
// reason then, as far as it may.
func (h *handler) breakOff(r *http.Request, out *sse.Stream, err error) {
	switch kind := tapedeck.KindOf(err); {
	case r.Context().Err() != nil, errors.Is(err, sse.ErrDisconnected):
	case kind == tapedeck.NotFound, kind == tapedeck.Gone, kind == tapedeck.Replaced:
		_ = out.Send(sse.AppendFrame(nil, "", "end", []byte(`{"reason":"deleted"}`))) // the stream ends in any case
	default:
		problem.Log(r, err, h.Logger)
	}
}

// A follower writes a session to one client.
type follower struct {
	subscription
	suffix   []byte // what follows the offset in an id
	options  tapedeck.FollowOptions
	out      *sse.Stream
	sent     int64 // the id of the last frame that had one
	passed   int64 // the offset of the last event that was looked at
	caughtUp bool  // the frame caught-up was sent

	watcher api.PresenceWatcher // nil if the client does not want presence
}

func (f *follower) close() {
	if f.watcher != nil {
		f.watcher.Stop()
	}
	f.out.Close()
}

// errEnd ends a stream that is complete.
var errEnd = errors.New("the stream has ended")

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// sendPage writes one page. It returns errEnd if nothing follows it. The records are
// sent unchanged, so they need not stay in memory while the reader stalls: they are
// read again.
func (h *handler) sendPage(ctx context.Context, f *follower, p tapedeck.Page) error {
	var pass *backlog.Pass
	if backlog.Large(p.Records) {
		records := p.Records
		p.Records = nil // so that nothing keeps them in memory while Enter waits
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
	if !f.out.Started() {
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
		b = appendEvent(b, rec, f.suffix)
	}
	b, end := f.notes(b, p, last)
	if err := f.out.Send(b); err != nil {
		return err
	}
	if cap(b) <= maxFrames {
		*buf = b
	}
	return end
}

// maxFrames is how much of a page is written at once. A reader that has stalled keeps
// this much in memory.
const maxFrames = 32 << 10

// isLarge reports whether the frames of the records are written piece by piece.
func isLarge(records []tapedeck.Record) bool {
	size := 0
	for i := range records {
		size += len(records[i].Data) + frameCost
	}
	return size > maxFrames
}

// frameCost is about the size of the frame of an event, without the event.
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

// pour writes b and then the frames of records, piece by piece.
func (f *follower) pour(b []byte, records *backlog.Records) error {
	if err := f.out.Send(b); err != nil {
		return err
	}
	w := writers.Get().(*bufio.Writer)
	defer writers.Put(w)
	w.Reset(f.out)
	defer w.Reset(nil)
	for i := range records.Len() {
		_, _ = w.Write(strconv.AppendInt(append(w.AvailableBuffer(), "id: "...), records.Offset(i), 10)) // Flush returns the error
		_, _ = w.Write(f.suffix)
		_, _ = w.WriteString("\ndata: ")
		if records.Write(w, i, 1, func(piece []byte) { _, _ = w.Write(piece) }) != nil {
			return sse.ErrDisconnected // half an event was sent: a client ignores an incomplete frame
		}
		_, _ = w.WriteString("\n\n")
	}
	if w.Flush() != nil {
		return sse.ErrDisconnected
	}
	return f.out.Flush()
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, maxFrames) }}

// choose returns the records that pass the filter, and whether one of them ends the
// stream.
func (f *follower) choose(records []tapedeck.Record) (shown []tapedeck.Record, last bool, err error) {
	if f.filter.IsEmpty() && !f.until {
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
		if f.passed = rec.Offset; f.filter.Match(&e) {
			shown, f.sent = append(shown, rec), rec.Offset
		}
		if f.ends(&e) {
			return shown, true, nil
		}
	}
	return shown, false, nil
}

// notes appends the frames that follow the events of a page. It returns errEnd if
// nothing follows them.
func (f *follower) notes(b []byte, p tapedeck.Page, last bool) ([]byte, error) {
	if last {
		return f.note(b, "end", f.passed+1, `,"reason":"terminal"`), errEnd
	}
	if p.CaughtUp() && !f.caughtUp {
		f.caughtUp = true
		b = f.note(b, "caught-up", p.Next, "")
	}
	if f.watcher != nil && f.caughtUp {
		b = appendPresence(b, f.watcher.Changes())
	}
	if p.CaughtUp() && p.Closed {
		return f.note(b, "end", p.Next, `,"reason":"closed"`), errEnd
	}
	return b, nil
}

// appendEvent appends the frame of an event. A record is one line, so it need not be
// searched for line ends.
func appendEvent(b []byte, rec tapedeck.Record, life []byte) []byte {
	b = strconv.AppendInt(append(b, "id: "...), rec.Offset, 10)
	b = append(append(append(b, life...), "\ndata: "...), rec.Data...)
	return append(b, "\n\n"...)
}

// note appends a frame that is not an event. It has an id only if the filter has left
// out events since the last id: then a reconnect does not look at them again. So no id
// is sent twice.
func (f *follower) note(b []byte, event string, next int64, more string) []byte {
	id := ""
	if f.passed > f.sent {
		id, f.sent = strconv.FormatInt(f.passed, 10)+string(f.suffix), f.passed
	}
	data := strconv.AppendInt([]byte(`{"next":`), next, 10)
	if len(f.suffix) > 0 {
		data = append(append(strconv.AppendInt(append(data, `,"cursor":"`...), next, 10), f.suffix...), '"')
	}
	return sse.AppendFrame(b, id, event, append(append(data, more...), '}'))
}
