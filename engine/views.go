package engine

import (
	"context"
	"iter"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// Views says what is active in a session. [projection.Projections] implements it; it
// must use the same store.
type Views interface {
	// Snapshot returns the part of the conversation that q asks for.
	Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error)

	// Timeline returns the timeline of a session as of an offset, negative for
	// the head.
	Timeline(ctx context.Context, session string, at int64) (*view.Timeline, error)

	// Instances returns the agents of a session as of an offset, negative for the head.
	Instances(ctx context.Context, session string, at int64) (view.Instances, error)

	// FindInvocation returns the offset of the first event of an invocation,
	// active or not.
	FindInvocation(ctx context.Context, session, invocation string) (offset int64, found bool, err error)

	// FindThread returns the offset of the first event of a thread, active or
	// not.
	FindThread(ctx context.Context, session, thread string) (offset int64, found bool, err error)

	// Workflow returns the workflow of a thread as of an offset, negative for the head. It
	// is nil if the thread has none.
	Workflow(ctx context.Context, session, thread string, at int64) (*view.Workflow, error)
}

// active yields the events below offset at that are active at that offset.
func active(events iter.Seq2[tapedeck.Event, error], t *view.Timeline, at int64) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for ev, err := range events {
			if err == nil && ev.Offset >= at {
				return
			}
			if err == nil && ev.Channel != tapedeck.ChannelSession && !t.Has(ev.Offset, ev.Thread, at) {
				continue
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// eventAt reads one event.
func eventAt(ctx context.Context, l tapedeck.Log, session string, offset int64) (tapedeck.Event, error) {
	p, err := l.Read(ctx, session, tapedeck.Range{From: offset, Limit: 1})
	if err != nil {
		return tapedeck.Event{}, err
	}
	if len(p.Records) == 0 {
		return tapedeck.Event{}, tapedeck.Errorf(tapedeck.Invalid, "session %s has no event at offset %d", session, offset)
	}
	return p.Records[0].Event()
}
