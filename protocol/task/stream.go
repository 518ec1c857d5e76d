package task

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// streamBytes is how much is read for one write. A reader that has stalled keeps
// this much in memory.
const streamBytes = 32 << 10

// A subscription is what a client asks of a stream.
type subscription struct {
	session string
	filter  filter
	from    int64
	life    int64    // the incarnation of the session that from is of; 0 if the client does not say it
	placed  bool     // the client says where to begin
	resumed bool     // from comes after an event that the client has
	after   sequence // the event at from that the client has received last; less if it has none of them
	begin   string   // where it begins if the client does not say it
	until   bool     // the stream ends with the last run
}

// The values of begin: a stream without a cursor begins with the newest task, or with what
// comes from now on.
const beginTask, beginNew = "task", "new"

func parseSubscription(r *http.Request) (subscription, error) {
	id, err := httpapi.SessionID(r)
	if err != nil {
		return subscription{}, err
	}
	q := httpapi.ParseQuery(r, append([]string{"fromOffset", "from", "lastEventId", "begin", "until", "presence"}, filterNames...)...)
	s := subscription{session: id, filter: parseFilter(q), placed: q.HasFrom(), after: -1}
	s.from, s.life = q.FromCursor()
	s.begin = q.OneOf("begin", beginTask, beginTask, beginNew)
	s.until = q.OneOf("until", "terminal", "terminal", "none") == "terminal"
	if q.OneOf("presence", "stored", "stored", "live") == "live" {
		q.Fail("the task protocol has no presence")
	}
	if last := q.LastEventID(r); last != "" && q.Err == nil {
		s.resume(last, q)
	}
	return s, q.Err
}

// resume continues after the event whose number the client received last.
func (s *subscription) resume(last string, q *httpapi.Query) {
	number, life, ok := httpapi.ParseCursor(last)
	if !ok {
		q.Fail("the last event id must be the sequence number of an event, not %q", last)
	}
	s.continueAfter(sequence(number))
	s.life, s.resumed, s.placed = life, true, true
}

// continueAfter begins after an event. The other events that its event of the log becomes
// may follow it, so that is read again.
func (s *subscription) continueAfter(n sequence) { s.from, s.after = n.offset(), n }

// stream sends a session as Server-Sent Events. Clients close the stream at the
// first terminal event that they see. So without a cursor it begins with the newest
// run: the end of an older run would stop them.
//
// An EventSource reconnects whenever a stream ends, whatever the reason, and sends
// the id of the last event. Only the status 204 stops it.
func (h *handler) stream(w http.ResponseWriter, r *http.Request) error {
	s, err := parseSubscription(r)
	if err != nil {
		return err
	}
	head, err := h.Sessions.Head(r.Context(), s.session)
	if err == nil {
		err = httpapi.CheckIncarnation(&head, s.session, s.life) // before 204: the client has nothing of this session
	}
	switch {
	case err != nil:
		return err
	case head.Closed && s.from == head.Head && s.resumed: // after the error that cutOff has sent
		w.WriteHeader(http.StatusNoContent)
		return nil
	case s.resumed:
		err = httpapi.CheckFrom(&head, s.session, s.from+1, true)
	default:
		err = httpapi.CheckFrom(&head, s.session, s.from, false)
	}
	if err != nil {
		return err
	}
	if err := h.checkInvocations(r.Context(), &s, &head); err != nil {
		return err
	}
	w.Header().Set("Connection", "keep-alive") // part of the protocol; HTTP/1.1 allows it
	if r.Method == http.MethodHead {
		_, err := sse.Start(w)
		return err
	}
	switch {
	case s.placed:
	case s.begin == beginNew:
		s.from = head.Head
	default:
		if s.from, err = h.newestRun(r.Context(), &s, &head); err != nil {
			return err
		}
	}
	f, err := h.newFollower(r.Context(), w, s, &head)
	if err != nil {
		return err
	}
	return h.follow(r, f)
}

func (h *handler) follow(r *http.Request, f *follower) error {
	defer f.out.Close()
	options := tapedeck.FollowOptions{From: f.from, Gen: f.gen, Idle: h.Heartbeat / 2, MaxBytes: streamBytes}
	for page, err := range h.Sessions.Follow(r.Context(), f.session, options) {
		if err == nil {
			err = f.page(r.Context(), page)
		}
		switch {
		case errors.Is(err, errEnd), errors.Is(err, sse.ErrDisconnected):
			return nil
		case err != nil && !f.out.Started():
			return err
		case err != nil:
			h.breakOff(r, f, err)
			return nil
		}
	}
	return nil
}

// breakOff ends a stream that cannot continue. A deleted session ends its open runs
// with an error.
func (h *handler) breakOff(r *http.Request, f *follower, err error) {
	kind := tapedeck.KindOf(err)
	if r.Context().Err() == nil && (kind == tapedeck.NotFound || kind == tapedeck.Gone) {
		if b, _ := f.cutOff(nil, "the session was deleted", "deleted", f.passed+1); len(b) > 0 {
			_ = f.out.Send(b) // the stream ends in any case
		}
		return
	}
	h.broken(r, err)
}

// checkInvocations refuses an invocation that the session has no event of: if it is
// misspelt, nothing would ever end its stream. A thread may begin later.
func (h *handler) checkInvocations(ctx context.Context, s *subscription, head *tapedeck.Session) error {
	for _, id := range s.filter.invocations {
		if slices.ContainsFunc(head.Runs, func(r tapedeck.OpenRun) bool { return r.Invocation == id }) {
			continue
		}
		_, found, err := findBackwards(ctx, h.Sessions, s.session, head.Head, func(e *tapedeck.Event) bool { return e.Invocation == id })
		if err != nil {
			return err
		}
		if !found {
			return tapedeck.Errorf(tapedeck.NotFound, "session %s has no invocation %q", s.session, id)
		}
	}
	return nil
}

// newestRun returns the first offset of the oldest open run, or of the newest run if
// none is open. A run begins with the words of the user.
func (h *handler) newestRun(ctx context.Context, s *subscription, head *tapedeck.Session) (int64, error) {
	for _, r := range head.Runs {
		if s.filter.selects(r.Thread, r.Invocation) {
			return h.firstOffset(ctx, s.session, r.Offset, r.Invocation)
		}
	}
	if s.filter.invocations != nil {
		return 0, nil
	}
	if !head.Status.Begun() && head.Parent == "" {
		return head.LastJump, nil // there is no run, or all runs were reverted
	}
	var invocation string
	offset, found, err := findBackwards(ctx, h.Sessions, s.session, head.Head, func(e *tapedeck.Event) bool {
		invocation = e.Invocation
		return e.Type == tapedeck.RunStarted && s.filter.selects(e.ThreadName(), e.Invocation)
	})
	if err != nil || !found {
		return head.Head, err
	}
	return h.firstOffset(ctx, s.session, offset, invocation)
}

// firstOffset returns the offset of the first event of an invocation whose run
// starts at an offset.
func (h *handler) firstOffset(ctx context.Context, session string, started int64, invocation string) (int64, error) {
	p, err := h.Sessions.Read(ctx, session, tapedeck.Range{From: started, Limit: promptLookback, Reverse: true})
	if err != nil {
		return 0, err
	}
	for _, rec := range p.Records {
		e, err := rec.Event()
		if err != nil {
			return 0, err
		}
		if e.Invocation == invocation {
			started = e.Offset
		}
	}
	return started, nil
}

// errEnd ends a stream that is complete.
var errEnd = errors.New("the stream has ended")

// A follower writes a session to one client.
type follower struct {
	subscription
	w        http.ResponseWriter
	out      *sse.Stream
	encoder  *encoder
	gen      int64           // the incarnation of the session
	suffix   []byte          // of the ids, see [httpapi.AppendIncarnation]
	passed   int64           // the offset of the last event that was looked at
	head     int64           // the head of the session when the client connected
	idle     bool            // the session had no run then
	caughtUp bool            // all events below head were looked at
	ended    bool            // a run has ended
	open     map[string]bool // the invocations of the open runs
}

func (h *handler) newFollower(ctx context.Context, w http.ResponseWriter, s subscription, head *tapedeck.Session) (*follower, error) {
	if err := s.filter.resolve(ctx, h, s.session); err != nil {
		return nil, err
	}
	t, err := newEncoder(ctx, h.Sessions, s.session, s.from)
	f := &follower{
		// The hub's clock restarts at every page, the stream's only when it sends. With
		// half a heartbeat the comments are still in time.
		subscription: s, w: w, out: sse.NewStream(w, h.Heartbeat/2), encoder: t, passed: s.from - 1,
		gen:  head.Gen,
		head: head.Head, idle: !head.Status.Begun(), open: make(map[string]bool),
	}
	if ctx.Value(plain{}) == nil {
		f.suffix = httpapi.AppendIncarnation(nil, head)
	}
	for _, r := range head.Runs {
		if s.filter.selects(r.Thread, r.Invocation) {
			f.open[r.Invocation] = true
		}
	}
	return f, err
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// page sends the frames of a page. It returns errEnd if nothing follows them.
func (f *follower) page(ctx context.Context, p tapedeck.Page) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	const retry = "retry: 1000\n\n"
	b, err := f.frames(ctx, append((*buf)[:0], retry...), p)
	empty := len(b) == len(retry)
	switch ended := errors.Is(err, errEnd); {
	case err != nil && !ended:
		return err
	case f.out.Started():
		b = b[len(retry):]
	case ended && empty: // so that an EventSource does not reconnect
		f.w.Header().Del("Connection")
		f.w.WriteHeader(http.StatusNoContent)
		return err
	case empty && !f.caughtUp:
		return nil // the answer may still become 204
	}
	if e := f.out.Send(b); e != nil {
		return e
	}
	if cap(b) <= 4*streamBytes {
		*buf = b
	}
	return err
}

// frames appends the frames of a page. It returns errEnd if nothing follows them.
func (f *follower) frames(ctx context.Context, b []byte, p tapedeck.Page) ([]byte, error) {
	for _, rec := range p.Records {
		if rec.Offset == f.head && f.catchUp() {
			return b, errEnd
		}
		e, err := rec.Event()
		if err != nil {
			return b, err
		}
		out, err := f.encoder.encode(ctx, &e)
		if err != nil {
			return b, err
		}
		if f.passed = e.Offset; out == nil || !f.filter.match(&e) {
			continue
		}
		if b, err = f.appendFrames(b, out); err != nil {
			return b, err
		}
		if f.isLast(&e) {
			return b, errEnd
		}
	}
	if p.Next == f.head && f.catchUp() {
		return b, errEnd
	}
	if p.CaughtUp() && p.Closed {
		return f.cutOff(b, "the session was closed before the run had ended", "closed", p.Next)
	}
	return b, nil
}

// appendFrames appends the frames of an event of the log, without the events that the
// client has.
func (f *follower) appendFrames(b []byte, out []event) (_ []byte, err error) {
	for i := range out {
		if out[i].Sequence <= f.after {
			continue
		}
		if b, err = out[i].appendFrame(b, f.suffix); err != nil {
			return b, err
		}
	}
	return b, nil
}

// isLast reports whether e is the last event that the client waits for: the end of a
// run after which no run is open. The end of a run that was over when the client
// connected is not: another run may have begun since.
func (f *follower) isLast(e *tapedeck.Event) bool {
	switch e.Type {
	case tapedeck.RunStarted:
		if e.Offset >= f.head { // the open runs that began before are known; a fork inherits none
			f.open[e.Invocation] = true
		}
	case tapedeck.RunFinished, tapedeck.RunError:
		delete(f.open, e.Invocation)
		f.ended = true
		return f.until && e.Offset >= f.head && len(f.open) == 0
	}
	return false
}

// catchUp notes that the client has all events from before it connected. It reports
// whether it waits for nothing else: a run has ended, and none is open. A client that
// resumes after an event of a run that is over waits for nothing else either.
func (f *follower) catchUp() bool {
	if f.caughtUp {
		return false
	}
	f.caughtUp = true
	return f.until && len(f.open) == 0 && (f.ended || f.resumed && !f.idle)
}

// cutOff appends an error if a run is open, because it will have no other end.
func (f *follower) cutOff(b []byte, text, typ string, offset int64) ([]byte, error) {
	if len(f.open) == 0 {
		return b, errEnd
	}
	end := event{
		Type: typeError, Data: errorData{text, typ}, Sequence: sequenceOf(offset, 0),
		Timestamp: string(jsonobj.AppendTime(nil, time.Now())),
	}
	b, err := end.appendFrame(b, f.suffix)
	if err == nil {
		err = errEnd
	}
	return b, err
}
