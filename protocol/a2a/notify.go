package a2a

import (
	"context"
	"iter"

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
	left  bool // yield has returned false

	part   *sdk.TaskArtifactUpdateEvent // parts that were not told yet; nil for none
	update push.Update                  // of part, without its body
}

func (n *notifier) run(ctx context.Context, from int64) error {
	var err error
	r := ref{n.task.Session, n.task.Name}
	if n.fold, err = n.load(ctx, r, from); err != nil {
		return err
	}
	if n.fold.terminal() {
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
		if err := n.page(ctx, &page); err != nil || n.left || n.fold.terminal() {
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

// page tells of the events of a page.
func (n *notifier) page(ctx context.Context, page *tapedeck.Page) error {
	for _, rec := range page.Records {
		e, err := rec.Event()
		if err != nil {
			return err
		}
		events, err := n.updates(ctx, &n.fold, &e)
		if err != nil {
			return err
		}
		for i, u := range events {
			n.add(&e, u, i < len(events)-1)
		}
		if n.left || n.fold.terminal() {
			return nil
		}
	}
	n.flush()
	return nil
}

// add tells of an update of an event, or keeps it if it is a part to which others can be
// joined. If more of the event follows, the event was not told yet.
func (n *notifier) add(e *tapedeck.Event, u sdk.Event, more bool) {
	at := push.Update{First: e.Offset, Last: e.Offset, Next: e.Offset + 1, Time: e.Time}
	if more {
		at.Next = e.Offset
	}
	part, isPart := u.(*sdk.TaskArtifactUpdateEvent)
	switch {
	case isPart && n.version == v03:
	case isPart && n.part != nil && part.Append && n.part.Artifact.ID == part.Artifact.ID:
		text := n.part.Artifact.Parts[0].Text() + part.Artifact.Parts[0].Text()
		n.part.Artifact.Parts = sdk.ContentParts{sdk.NewTextPart(text)}
		n.update.Last, n.update.Next, n.update.Time = at.Last, at.Next, at.Time
	case isPart:
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
