package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// taskStream sends a session as the SSE task protocol. Its clients close the
// stream at the first terminal event that they see, so without a cursor it
// begins with the newest run: the end of an older one would stop them.
func (h *handler) taskStream(w http.ResponseWriter, r *http.Request, s subscription) error {
	head, err := h.Sessions.Head(r.Context(), s.session)
	switch {
	case err != nil:
		return err
	case head.Closed && s.from == head.Head+1 && s.resumed: // after the error that we made for its end
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if err := beyond(&s, &head); err != nil {
		return err
	}
	if err := h.haveInvocations(r.Context(), &s, &head); err != nil {
		return err
	}
	w.Header().Set("Connection", "keep-alive") // the protocol has it, and HTTP/1.1 does not mind
	if r.Method == http.MethodHead {
		_, err := sse.Start(w)
		return err
	}
	if !s.placed {
		if s.from, err = h.newest(r.Context(), &s, &head); err != nil {
			return err
		}
	}
	f, err := h.taskFollower(r.Context(), w, s, &head)
	if err != nil {
		return err
	}
	return h.taskFollow(w, r, f)
}

func (h *handler) taskFollow(w http.ResponseWriter, r *http.Request, f *taskFollower) error {
	defer func() { // the next answer on this connection may come later than the last write's deadline
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	}()
	options := tapedeck.FollowOptions{From: f.from, Idle: f.quiet, MaxBytes: maxFrames}
	for page, err := range h.Sessions.Follow(r.Context(), f.session, options) {
		if err == nil {
			err = f.page(r.Context(), page)
		}
		switch {
		case errors.Is(err, errEnd):
			return nil
		case err != nil && f.out == nil:
			return err
		case err != nil:
			h.taskBroken(r, f, err)
			return nil
		}
	}
	return nil
}

// haveInvocations refuses an invocation that the session has no event of: nothing
// would ever end the stream of one that is misspelt. A thread may be yet to come.
func (h *handler) haveInvocations(ctx context.Context, s *subscription, head *tapedeck.Session) error {
	for _, id := range s.filter.invocations {
		if slices.ContainsFunc(head.Runs, func(r tapedeck.OpenRun) bool { return r.Invocation == id }) {
			continue
		}
		_, found, err := backwards(ctx, h.Sessions, s.session, head.Head, func(e *tapedeck.Event) bool { return e.Invocation == id })
		if err != nil {
			return err
		}
		if !found {
			return tapedeck.Errorf(tapedeck.NotFound, "session %s has no invocation %q", s.session, id)
		}
	}
	return nil
}

// newest returns the first offset of the oldest run that is under way, or of the
// newest one if none is. A run begins with what the user says.
func (h *handler) newest(ctx context.Context, s *subscription, head *tapedeck.Session) (int64, error) {
	for _, r := range head.Runs {
		if s.filter.passes(r.Thread, r.Invocation) {
			return h.opening(ctx, s.session, r.Offset, r.Invocation)
		}
	}
	if s.filter.invocations != nil {
		return 0, nil
	}
	if !head.Status.Begun() && head.Parent == "" {
		return head.LastJump, nil // nothing has run, or what has was taken back
	}
	var invocation string
	offset, found, err := backwards(ctx, h.Sessions, s.session, head.Head, func(e *tapedeck.Event) bool {
		invocation = e.Invocation
		return e.Type == tapedeck.RunStarted && s.filter.passes(e.ThreadName(), e.Invocation)
	})
	if err != nil || !found {
		return head.Head, err
	}
	return h.opening(ctx, s.session, offset, invocation)
}

// opening returns the offset of the first event of an invocation whose run
// starts at an offset.
func (h *handler) opening(ctx context.Context, session string, started int64, invocation string) (int64, error) {
	p, err := h.Sessions.Read(ctx, session, tapedeck.Range{From: started, Limit: taskLookback, Reverse: true})
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

// A taskFollower writes a session to one client of the task protocol.
type taskFollower struct {
	follower // of which only write is used: the protocol has no caught-up and no end
	tasks    *taskEncoder
	head     int64           // of the session when the client came
	idle     bool            // nothing had run in it
	there    bool            // all that was before head has been looked at
	ended    bool            // a run has ended
	open     map[string]bool // the invocations under way
}

func (h *handler) taskFollower(ctx context.Context, w http.ResponseWriter, s subscription, head *tapedeck.Session) (*taskFollower, error) {
	if err := s.filter.resolve(ctx, h, s.session); err != nil {
		return nil, err
	}
	t, err := newTaskEncoder(ctx, h.Sessions, s.session, s.from)
	f := &taskFollower{
		follower: follower{subscription: s, w: w, passed: s.from - 1, quiet: h.Heartbeat / 2}, // see stream
		tasks:    t, head: head.Head, idle: !head.Status.Begun(), open: make(map[string]bool),
	}
	for _, r := range head.Runs {
		if s.filter.passes(r.Thread, r.Invocation) {
			f.open[r.Invocation] = true
		}
	}
	return f, err
}

func (f *taskFollower) page(ctx context.Context, p tapedeck.Page) error {
	b, err := f.frames(ctx, nil, p)
	switch ended := errors.Is(err, errEnd); {
	case err != nil && !ended:
		return err
	case f.out != nil:
	case ended && len(b) == 0: // so an EventSource does not come again
		f.w.Header().Del("Connection")
		f.w.WriteHeader(http.StatusNoContent)
		return err
	case len(b) == 0 && !f.there:
		return nil // it may turn out that nothing comes
	default:
		b = append([]byte("retry: 1000\n\n"), b...)
	}
	if e := f.write(b); e != nil {
		return e
	}
	return err
}

// frames appends what a page becomes, and returns errEnd if nothing is to follow.
func (f *taskFollower) frames(ctx context.Context, b []byte, p tapedeck.Page) ([]byte, error) {
	for _, rec := range p.Records {
		if rec.Offset == f.head && f.arrive() {
			return b, errEnd
		}
		e, err := rec.Event()
		if err != nil {
			return b, err
		}
		out, err := f.tasks.encode(ctx, &e)
		if err != nil {
			return b, err
		}
		if f.passed = e.Offset; out == nil || !f.filter.match(&e) {
			continue
		}
		if b, err = f.appendFrames(b, out); err != nil {
			return b, err
		}
		if f.last(&e) {
			return b, errEnd
		}
	}
	if p.Next == f.head && f.arrive() {
		return b, errEnd
	}
	if p.CaughtUp() && p.Closed {
		return f.cutOff(b, "the session was closed before the run had ended", "closed", p.Next)
	}
	return b, nil
}

// appendFrames appends what an event becomes, without the parts that the client has.
func (f *taskFollower) appendFrames(b []byte, out []taskEvent) (_ []byte, err error) {
	for i := range out {
		if s := out[i].Sequence; s.offset == f.from && s.part < s.parts && string(s.append(nil)) <= f.partly {
			continue
		}
		if b, err = out[i].appendFrame(b); err != nil {
			return b, err
		}
	}
	return b, nil
}

// last reports whether e is the last event that the client waits for: the end
// of a run after which none is under way. The end of one that was over before
// the client came is not: another may have begun since.
func (f *taskFollower) last(e *tapedeck.Event) bool {
	switch e.Type {
	case tapedeck.RunStarted:
		if e.Offset >= f.head { // of those before it is known which are open; in a fork, none that it has inherited
			f.open[e.Invocation] = true
		}
	case tapedeck.RunFinished, tapedeck.RunError:
		delete(f.open, e.Invocation)
		f.ended = true
		return f.until && e.Offset >= f.head && len(f.open) == 0
	}
	return false
}

// arrive notes that the client has all that was there when it came. It reports
// whether that is all there is to come: runs have ended, and none is under way.
// Who goes on after an event of a run that is over has waited for nothing else.
func (f *taskFollower) arrive() bool {
	if f.there {
		return false
	}
	f.there = true
	return f.until && len(f.open) == 0 && (f.ended || f.resumed && !f.idle)
}

// cutOff appends an error if a run is under way of which nothing will come.
func (f *taskFollower) cutOff(b []byte, message, typ string, offset int64) ([]byte, error) {
	if len(f.open) == 0 {
		return b, errEnd
	}
	end := taskEvent{
		Type: taskError, Data: errorData{message, typ}, Sequence: sequence{offset: offset},
		Timestamp: time.Now().UTC().Format(taskTime),
	}
	b, err := end.appendFrame(b)
	if err == nil {
		err = errEnd
	}
	return b, err
}

// taskBroken ends a stream that cannot go on.
func (h *handler) taskBroken(r *http.Request, f *taskFollower, err error) {
	kind := tapedeck.KindOf(err)
	if r.Context().Err() == nil && (kind == tapedeck.NotFound || kind == tapedeck.Gone) {
		if b, _ := f.cutOff(nil, "the session was deleted", "deleted", f.passed+1); len(b) > 0 {
			_ = f.out.Send(b) // the stream ends either way
		}
		return
	}
	h.broken(r, &f.follower, err)
}
