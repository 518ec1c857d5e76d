package ws

import (
	"bufio"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/coder/websocket"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/backlog"
	"github.com/tapedeck/tapedeck/internal/frame"
	"github.com/tapedeck/tapedeck/internal/hangup"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

const (
	// maxFollowed is the largest number of sessions that a socket follows at once.
	maxFollowed = 100

	// pageBytes limits how much a follower reads for one message: all followers of a
	// socket may wait with a page until the client reads.
	pageBytes = 32 << 10
)

// A follower sends the events of one session.
type follower struct {
	frame.Request
	cancel   context.CancelFunc
	next     int64 // the offset after the last event that was looked at
	caughtUp bool
	gen      int64 // the incarnation of the session
	told     bool  // the client knows gen
}

// incarnation returns gen for the first event, and 0 for those after it: what is the same in
// each event need not be sent with each.
func (f *follower) incarnation() int64 {
	if f.told {
		return 0
	}
	f.told = true
	return f.gen
}

// follow starts to send the events of a session. An error of the session is sent as a
// frame; the socket continues.
func (n *native) follow(r frame.Request) error {
	ctx, cancel := context.WithCancel(n.ctx)
	f := &follower{Request: r, cancel: cancel, next: r.From}
	if err := n.admit(f); err != nil {
		cancel()
		return n.send(frame.AppendError(nil, -1, r.Session, n.shown(err), err))
	}
	n.followers.Go(func() {
		defer cancel()
		err := n.run(ctx, f)
		n.forget(f)
		if ctx.Err() == nil {
			n.finish(f, err)
		}
	})
	return nil
}

// admit adds a follower, unless there is a reason against it.
func (n *native) admit(f *follower) error {
	s, err := n.Sessions.Head(n.ctx, f.Session)
	if err != nil {
		return err
	}
	if err := httpapi.CheckIncarnation(&s, f.Session, f.Incarnation); err != nil {
		return err
	}
	f.gen = s.Gen
	if err := httpapi.CheckFrom(&s, f.Session, f.From, false); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.following[f.Session] != nil:
		return tapedeck.Errorf(tapedeck.Conflict, "this socket follows session %s already", f.Session).WithHint("send unfollow first")
	case len(n.following) == maxFollowed:
		return tapedeck.Errorf(tapedeck.Limited, "this socket follows %d sessions, and it can follow no more", maxFollowed).
			WithHint("unfollow one of them, or open another socket")
	}
	n.following[f.Session] = f
	return nil
}

// unfollow ends the follower of a session, if there is one.
func (n *native) unfollow(session string) {
	n.mu.Lock()
	f := n.following[session]
	n.mu.Unlock()
	if f != nil {
		f.cancel()
		n.forget(f)
	}
}

func (n *native) forget(f *follower) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.following[f.Session] == f {
		delete(n.following, f.Session)
	}
}

// errEnd ends a follower that has sent its last frame.
var errEnd = errors.New("the follower has ended")

func (n *native) run(ctx context.Context, f *follower) error {
	for page, err := range n.Sessions.Follow(ctx, f.Session, tapedeck.FollowOptions{From: f.From, Gen: f.gen, MaxBytes: pageBytes}) {
		if err == nil {
			err = n.sendPage(ctx, f, page)
		}
		if err != nil {
			return err
		}
	}
	return errEnd
}

// finish reports the error that has ended a follower.
func (n *native) finish(f *follower, err error) {
	switch kind := tapedeck.KindOf(err); {
	case errors.Is(err, errEnd):
	case kind == tapedeck.NotFound, kind == tapedeck.Gone:
		_ = n.send(frame.AppendNote(nil, frame.TypeEnd, f.Session, "deleted", f.next, f.gen)) // if the socket has ended, nobody needs it
	default:
		_ = n.send(frame.AppendError(nil, -1, f.Session, n.shown(err), err))
	}
}

// sendPage sends the events of a page that pass, in one message, and the notes that
// follow them. It returns errEnd if nothing follows.
func (n *native) sendPage(ctx context.Context, f *follower, p tapedeck.Page) error {
	if len(p.Records) == 1 && len(p.Records[0].Data) > pageBytes {
		rec := p.Records[0]
		p.Records = nil
		return n.sendLarge(ctx, f, p, rec)
	}
	var b []byte
	last := false
	for _, rec := range p.Records {
		pass, ends, err := f.look(rec)
		if err != nil {
			return err
		}
		if pass {
			b = append(frame.AppendEventStart(b, f.Session), rec.Data...)
			b = frame.AppendEventEnd(b, f.incarnation())
		}
		if last = ends; last {
			break
		}
	}
	p.Records = nil
	b, end := f.notes(b, p, last)
	if len(b) == 0 {
		return end
	}
	if err := n.send(b); err != nil {
		return err
	}
	return end
}

// look reports whether an event passes the filter, and whether it is the last one that
// the client wants.
func (f *follower) look(rec tapedeck.Record) (pass, last bool, err error) {
	f.next = rec.Offset + 1
	if f.Channels == nil && f.Threads == nil && f.Types == nil && f.Invocations == nil && f.Until == "" {
		return true, false, nil
	}
	e, err := rec.Event()
	if err != nil {
		return false, false, err
	}
	wants := func(list []string, s string) bool { return list == nil || slices.Contains(list, s) }
	ends := f.Until != "" && (e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError) && wants(f.Invocations, e.Invocation)
	pass = wants(f.Types, e.Type) && wants(f.Invocations, e.Invocation) &&
		(e.Channel == tapedeck.ChannelSession || wants(f.Channels, e.Channel) && wants(f.Threads, e.ThreadName()))
	return pass, ends, nil
}

// notes appends the frames that follow the events of a page.
func (f *follower) notes(b []byte, p tapedeck.Page, last bool) ([]byte, error) {
	if last {
		return frame.AppendNote(b, frame.TypeEnd, f.Session, "terminal", f.next, f.gen), errEnd
	}
	f.next = p.Next
	if p.CaughtUp() && !f.caughtUp {
		f.caughtUp = true
		b = frame.AppendNote(b, frame.TypeCaughtUp, f.Session, "", p.Next, f.gen)
	}
	if p.CaughtUp() && p.Closed {
		return frame.AppendNote(b, frame.TypeEnd, f.Session, "closed", p.Next, f.gen), errEnd
	}
	return b, nil
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, pageBytes) }}

// sendLarge sends a page with one large event, piece by piece. It waits for its turn to
// write before it keeps the event in memory.
func (n *native) sendLarge(ctx context.Context, f *follower, p tapedeck.Page, rec tapedeck.Record) error {
	pass, last, err := f.look(rec)
	b, end := f.notes(nil, p, last)
	if err != nil {
		return err
	}
	if pass {
		if err := n.pour(ctx, f, rec.Offset); err != nil {
			return err
		}
	}
	if len(b) > 0 {
		if err := n.send(b); err != nil {
			return err
		}
	}
	return end
}

// pour sends one large event as a message of several fragments. The event is read again
// under the lock of the socket, so that its followers hold only one event in memory
// together.
func (n *native) pour(ctx context.Context, f *follower, offset int64) error {
	n.lock <- struct{}{}
	defer n.unlock()
	again := func(offset int64) (tapedeck.Record, error) {
		p, err := n.Sessions.Read(ctx, f.Session, tapedeck.Range{From: offset, Limit: 1})
		if err != nil || len(p.Records) == 0 {
			return tapedeck.Record{}, err
		}
		return p.Records[0], nil
	}
	list, pass := make([]tapedeck.Record, 1), (*backlog.Pass)(nil)
	var err error
	if list[0], err = again(offset); err != nil {
		return err
	}
	if backlog.Large(list) {
		if list, pass, err = backlog.Enter(ctx, list, again); err != nil {
			return err
		}
	}
	records := backlog.Of(ctx, list, again).Hold(pass)
	defer records.Done()
	message, err := n.conn.Writer(context.Background(), websocket.MessageText)
	if err != nil {
		return err
	}
	w := writers.Get().(*bufio.Writer)
	defer writers.Put(w)
	w.Reset(fragments{message, n.socket})
	defer w.Reset(nil)
	_, _ = w.Write(frame.AppendEventStart(w.AvailableBuffer(), f.Session)) // Flush returns the error
	if err := records.Write(w, 0, 1, func(piece []byte) { _, _ = w.Write(piece) }); err != nil {
		_ = n.conn.CloseNow() // half an event was sent
		return err
	}
	_, _ = w.Write(frame.AppendEventEnd(w.AvailableBuffer(), f.incarnation()))
	if err := w.Flush(); err != nil {
		return err
	}
	return message.Close()
}

// fragments writes the fragments of a message. Each has a minute.
type fragments struct {
	message interface{ Write([]byte) (int, error) }
	socket  *socket
}

func (f fragments) Write(b []byte) (int, error) {
	f.socket.stuck.Reset(hangup.WriteTimeout)
	return f.message.Write(b)
}
