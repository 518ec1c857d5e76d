package a2a

import (
	"context"
	"errors"
	"slices"
	"strconv"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// followBytes is how much is read for one write. A client that has stalled keeps this
// much in memory.
const followBytes = 32 << 10

// An update is what a stream sends for an event of the log.
type update struct {
	offset int64
	events []sdk.Event
	final  bool  // the stream ends with it
	fold   *fold // the task after it
}

// follow yields the updates of f's task that f does not have, until the task ends or
// waits for input; the last of them is its status. Without an update for a while it yields
// nil, so that the stream can send a comment. It returns nil when nothing follows, and also
// if yield returns false.
func (c *call) follow(ctx context.Context, f *fold, from int64, yield func(*update) bool) error {
	if c.Stop != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.Stop, cancel)()
	}
	o := tapedeck.FollowOptions{From: from, Gen: c.gen, Idle: c.Heartbeat / 2, MaxBytes: followBytes}
	var moved, final bool
	for page, err := range c.Sessions.Follow(ctx, f.session, o) {
		if err != nil {
			return err
		}
		for i, rec := range page.Records {
			e, err := rec.Event()
			if err != nil {
				return err
			}
			events, err := c.updates(ctx, &f, &e)
			if err != nil {
				return err
			}
			last := i == len(page.Records)-1 && page.CaughtUp()
			if len(events) > 0 {
				_, whole := events[len(events)-1].(*sdk.Task)
				moved, final = true, f.terminal() || last && f.rests() && !whole
				if !yield(&update{e.Offset, events, final, f}) {
					return nil
				}
			}
			if f.terminal() {
				return nil
			}
		}
		if rests := moved && f.rests(); page.CaughtUp() && (rests || page.Closed) {
			if rests && !final { // the newest update is a whole task, or events that are not of the task followed it
				yield(&update{page.Next - 1, []sdk.Event{f.now()}, true, f})
			}
			return nil
		}
		if len(page.Records) == 0 && !yield(nil) {
			return nil
		}
	}
	return nil
}

// updates applies an event. If the session is rewound, cleared or overwritten, the
// task of a session is loaded again, and the update is the whole task. So it is when the
// run of the task repeats a step.
func (c *call) updates(ctx context.Context, f **fold, e *tapedeck.Event) ([]sdk.Event, error) {
	j, ok := e.Jump()
	if ok && ((*f).invocation == "" && j.Reverts(tapedeck.MainThread) || j.Attempt && (*f).invocation == e.Invocation) {
		back, err := c.load(ctx, (*f).ref, e.Offset+1)
		if err != nil {
			return nil, err
		}
		back.through = e.Offset
		*f = back
		return []sdk.Event{back.task()}, nil
	}
	return (*f).apply(e), nil
}

// await follows a task until it ends or waits for input, or until the server stops: then
// the task is as it is now. A task that has ended is not read again: the rewind that has
// ended it may have reverted it since.
func (c *call) await(ctx context.Context, f *fold, from int64) (*fold, error) {
	err := c.follow(ctx, f, from, func(*update) bool { return true })
	if err != nil && (ctx.Err() != nil || !errors.Is(err, context.Canceled)) {
		return nil, err
	}
	if f.terminal() {
		return f, nil
	}
	return c.load(ctx, f.ref, -1)
}

// id returns the id of an event of a stream: the offset of the newest event of the log that
// it has, and the incarnation of the session, such as 41@3.
func (c *call) id(session string, offset int64) string {
	if c.gen == 0 {
		if s, err := c.Sessions.Head(c.r.Context(), session); err == nil {
			c.gen = s.Gen
		}
	}
	b := strconv.AppendInt(nil, offset, 10)
	return string(httpapi.AppendIncarnation(b, &tapedeck.Session{Gen: c.gen}))
}

// stream sends a task and then its updates as Server-Sent Events. A client resumes after
// any of them with its id. wrap puts a result into the envelope of an answer.
func (c *call) stream(f *fold, from int64, wrap func(result []byte) []byte) {
	c.streamFrom(f.task(), f, from, wrap, func(*update) {})
}

// streamFrom is stream with t as the task of f. add may add to what is sent.
func (c *call) streamFrom(t *sdk.Task, f *fold, from int64, wrap func(result []byte) []byte, add func(*update)) {
	out := sse.NewStream(c.w, c.Heartbeat/2)
	defer out.Close()
	first := sse.AppendFrame(nil, c.id(f.session, from-1), "", wrap(c.version.encode(t, f.terminal())))
	if err := out.Send(first); err != nil || f.terminal() {
		return
	}
	var sent error
	err := c.follow(c.r.Context(), f, from, func(u *update) bool {
		if u != nil {
			add(u)
		}
		sent = out.Send(c.frames(f.session, u, wrap))
		return sent == nil
	})
	if err != nil && sent == nil && c.r.Context().Err() == nil && !errors.Is(err, context.Canceled) {
		if k := tapedeck.KindOf(err); k != tapedeck.NotFound && k != tapedeck.Gone { // the session was deleted
			problem.Log(c.r, err, c.Logger)
		}
	}
}

// streamSent sends what a message has led to. If nothing follows it is the task, and its
// status once more: pages take only a status for the end of a stream.
func (c *call) streamSent(s sent, in *sdk.SendMessageRequest, wrap func(result []byte) []byte) {
	t, add := s.task(in), func(*update) {}
	if s.begun && c.isPage() && (in.Config == nil || in.Config.HistoryLength == nil) {
		t.History, add = nil, addTask
	}
	if !s.whole {
		c.streamFrom(t, s.fold, s.from, wrap, add)
		return
	}
	b := sse.AppendFrame(nil, "", "", wrap(c.version.encode(t, false)))
	c.sendOnly(sse.AppendFrame(b, c.id(s.fold.session, max(s.from-1, 0)), "", wrap(c.version.encode(s.fold.now(), true))))
}

// isPage reports whether the client is a page of kagent that keeps one task for a session. It
// replaces its messages with the history of a task, and takes that for the end of the turn.
func (c *call) isPage() bool {
	return c.version == v03 && c.Policy == PerSession && c.base != Root+"/"+c.agent.Name
}

// addTask adds the whole task to the last update of a turn. So a page has the invocation of
// the message that it has sent. A status with a message, such as a question, is not in the
// history a second time: then there is no task.
func addTask(u *update) {
	last := len(u.events) - 1
	if status, ok := u.events[last].(*sdk.TaskStatusUpdateEvent); ok && u.final && status.Status.Message == nil {
		u.events = slices.Insert(u.events, last, sdk.Event(u.fold.task()))
	}
}

// sendOnly sends a stream that ends at once.
func (c *call) sendOnly(frames []byte) {
	out := sse.NewStream(c.w, c.Heartbeat/2)
	defer out.Close()
	_ = out.Send(frames) // if the client has disconnected, nobody needs the answer
}

// frames returns the frames of an update. Only the last one has an id: a client that
// missed it gets all of them again.
func (c *call) frames(session string, u *update, wrap func([]byte) []byte) (b []byte) {
	if u == nil {
		return nil
	}
	for i, e := range u.events {
		id, last := "", i == len(u.events)-1
		if last {
			id = c.id(session, u.offset)
		}
		b = sse.AppendFrame(b, id, "", wrap(c.version.encode(e, last && u.final)))
	}
	return b
}

// subscribe returns a task and the offset at which its stream begins. With the header
// Last-Event-ID the task is as of that event, also if it has ended.
func (c *call) subscribe(id string) (*fold, int64, error) {
	ctx := c.r.Context()
	r, err := c.parseRef(id)
	if err != nil {
		return nil, 0, err
	}
	head, err := c.Sessions.Head(ctx, r.session)
	if err != nil {
		return nil, 0, notThere(err, id)
	}
	at := head.Head
	c.gen = head.Gen
	cursor := c.r.Header.Get("Last-Event-ID")
	if cursor != "" {
		n, life, ok := httpapi.ParseCursor(cursor)
		if ok {
			if err := httpapi.CheckIncarnation(&head, r.session, life); err != nil {
				return nil, 0, err
			}
		}
		if !ok || n >= head.Head {
			return nil, 0, invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "session %s has no event %.40q; its newest is %d", r.session, cursor, head.Head-1).
				WithHint("send the id of an event that this stream has sent, or no Last-Event-ID"))
		}
		at = n + 1
	}
	f, err := c.load(ctx, r, at)
	var none *faultError
	switch {
	case errors.As(err, &none) && cursor != "":
		if _, now := c.load(ctx, r, -1); now == nil {
			return nil, 0, invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "the task did not exist yet at event %s", cursor))
		}
		return nil, 0, err
	case err != nil:
		return nil, 0, err
	case cursor == "" && f.terminal():
		return nil, 0, unsupportedOperation.of(tapedeck.Errorf(tapedeck.Conflict, "task %s has ended", id).
			WithHint("get the task, or send Last-Event-ID to get its events again"))
	}
	return f, at, nil
}
