package a2a

import (
	"context"
	"iter"
	"slices"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/protocol/a2a/push"
)

// Updates implements [push.Tasks]. Clients of version 1.0 get what a stream sends; parts of
// an artifact that follow each other in one page of the log are joined. Clients of version
// 0.3 get the task with each new status: with each part it would be sent as often as it has
// parts.
func (h *Handler) Updates(ctx context.Context, t push.Task, v string, from int64) iter.Seq2[push.Update, error] {
	return func(yield func(push.Update, error) bool) {
		n := &notifier{call: &call{Handler: h, version: version(v)}, task: t, yield: yield}
		if err := n.run(ctx, from); err != nil && !n.left {
			yield(push.Update{}, err)
		}
	}
}

// A notifier makes the notifications of a task.
type notifier struct {
	*call
	task  push.Task
	yield func(push.Update, error) bool
	fold  *fold
	known int64 // jumps below this offset are settled
	left  bool  // yield has returned false

	part   *sdk.TaskArtifactUpdateEvent // parts that were not told yet; nil for none
	update push.Update                  // of part, without its body
}

func (n *notifier) run(ctx context.Context, from int64) error {
	r := ref{n.task.Session, n.task.Name}
	from, err := n.begin(ctx, r, from)
	if err != nil || n.left {
		return err
	}
	if n.fold == nil || n.fold.terminal() { // without a fold, it was reverted
		n.tell(push.Update{Next: from, Ended: true})
		return nil
	}
	for page, err := range n.Sessions.Follow(ctx, r.session, tapedeck.FollowOptions{From: from, MaxBytes: followBytes}) {
		switch {
		case err != nil:
			return err
		case page.Gen != 0 && page.Gen != n.task.Gen: // the session was deleted and recreated
			return noTask(r.id())
		}
		more, err := n.page(&page)
		if !more || err != nil {
			return err
		}
		if page.CaughtUp() {
			n.tell(push.Update{Next: page.Next, Ended: page.Closed})
			if n.left || n.fold.rests() || page.Closed {
				return nil
			}
		}
	}
	return nil
}

// begin loads the task as the receiver knows it, and returns the offset from which it is
// told. If a jump has changed the task meanwhile, that is where the jump is: what was
// reverted is not told, but the whole task as the jump has left it. The fold is nil if the
// task was reverted.
func (n *notifier) begin(ctx context.Context, r ref, from int64) (int64, error) {
	s, err := n.Sessions.Head(ctx, r.session)
	switch {
	case err != nil:
		return 0, notThere(err, r.id())
	case s.Gen != n.task.Gen:
		return 0, noTask(r.id())
	}
	n.known = s.Head
	j, back, err := n.jumped(ctx, r, &s, from)
	switch {
	case err != nil:
		return 0, err
	case j == nil:
		n.fold, err = n.load(ctx, r, from)
		return from, err
	case back == nil:
		return j.Offset + 1, nil
	}
	u := push.Update{First: j.Offset, Last: j.Offset, Next: j.Offset + 1, Ended: back.terminal()}
	for e, err := range n.Views.Effective(ctx, r.session, j.Offset, u.Next) {
		if err != nil {
			return 0, err
		}
		u.Time = e.Time
	}
	n.fold, u.Body = back, n.version.encode(back.task(), back.terminal())
	n.tell(u)
	return u.Next, nil
}

// jumped returns the newest jump from an offset on that has reverted events of the task or
// has made them active again, nil if there is none, and the task after it, nil if that was
// reverted.
func (n *notifier) jumped(ctx context.Context, r ref, s *tapedeck.Session, from int64) (*tapedeck.Jump, *fold, error) {
	if s.LastJump == 0 || s.LastJump < from {
		return nil, nil, nil
	}
	t, err := n.Views.Timeline(ctx, r.session, s.Head)
	if err != nil {
		return nil, nil, err
	}
	jumps := t.Jumps()
	for i := len(jumps) - 1; i >= 0 && jumps[i].Offset >= from; i-- {
		j := &jumps[i]
		before, _, err := n.newest(ctx, r, j.Offset)
		if err != nil {
			return nil, nil, err
		}
		after, f, err := n.newest(ctx, r, j.Offset+1)
		if err != nil {
			return nil, nil, err
		}
		if before != after {
			return j, f, nil
		}
	}
	return nil, nil, nil
}

// newest returns the offset of the newest active event of the task as of offset at, and the
// task, nil and -1 if it is reverted then. As long as this event is active, so are those
// that were active before it: so it tells whether a jump has changed the task.
func (n *notifier) newest(ctx context.Context, r ref, at int64) (int64, *fold, error) {
	f, err := n.load(ctx, r, at)
	switch {
	case tapedeck.KindOf(err) == tapedeck.NotFound:
		return -1, nil, nil
	case err != nil:
		return 0, nil, err
	}
	return f.through, f, nil
}

// page tells of the events of a page. It reports false if nothing more can be told, or not
// before begin has looked at a jump.
func (n *notifier) page(page *tapedeck.Page) (more bool, err error) {
	for _, rec := range page.Records {
		e, err := rec.Event()
		if err != nil {
			return false, err
		}
		// Readers may see a jump before the dispatcher does, which then does not end this one.
		if _, ok := e.Jump(); ok && e.Offset >= n.known {
			n.flush()
			n.tell(push.Update{Next: e.Offset})
			return false, nil
		}
		events := n.fold.apply(&e)
		if n.version == v03 {
			events = slices.DeleteFunc(events, isPart)
		}
		for i, u := range events {
			n.add(&e, u, i < len(events)-1)
		}
		if n.left || n.fold.terminal() {
			return false, nil
		}
	}
	n.flush()
	return !n.left, nil
}

// add tells of an update of an event, or keeps it if it is a part to which others can be
// joined. If more of the event follows, the event was not told yet.
func (n *notifier) add(e *tapedeck.Event, u sdk.Event, more bool) {
	at := push.Update{First: e.Offset, Last: e.Offset, Next: e.Offset + 1, Time: e.Time}
	if more {
		at.Next = e.Offset
	}
	part, _ := u.(*sdk.TaskArtifactUpdateEvent)
	switch {
	case part != nil && n.part != nil && part.Append && n.part.Artifact.ID == part.Artifact.ID:
		text := n.part.Artifact.Parts[0].Text() + part.Artifact.Parts[0].Text()
		n.part.Artifact.Parts = sdk.ContentParts{sdk.NewTextPart(text)}
		n.update.Last, n.update.Next, n.update.Time = at.Last, at.Next, at.Time
	case part != nil:
		n.flush()
		n.part, n.update = part, at
	default:
		n.flush()
		if n.version == v03 {
			u = n.fold.task()
		}
		at.Body, at.Ended = n.version.encode(u, n.fold.terminal()), !more && n.fold.terminal()
		n.tell(at)
	}
}

func isPart(u sdk.Event) bool {
	_, ok := u.(*sdk.TaskArtifactUpdateEvent)
	return ok
}

// flush tells of the parts that were kept.
func (n *notifier) flush() {
	if n.part != nil {
		n.update.Body = n.version.encode(n.part, false)
		n.part = nil
		n.tell(n.update)
	}
}

func (n *notifier) tell(u push.Update) {
	if !n.left {
		n.left = !n.yield(u, nil)
	}
}
