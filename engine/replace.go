package engine

import (
	"context"
	"errors"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/store"
)

// AppendAfter rewinds a session and appends events of a client, see [Engine.Rewind] and
// [Engine.Append]. The log gets both or neither. While a run is open in the threads of the
// rewind, it is a [tapedeck.Conflict]. First in the result is the offset of the first of the
// events.
func (e *Engine) AppendAfter(ctx context.Context, r api.Rewind, a tapedeck.Append) (tapedeck.Appended, error) {
	a.Session = r.Session
	for try := range maxTries {
		s, err := e.session(ctx, r.Session)
		if err == nil {
			err = store.CheckExpected(&s, a.Expect)
		}
		if err != nil {
			return tapedeck.Appended{}, err
		}
		back, err := e.replacing(ctx, &s, r.Actor, try, func() (target, error) { return e.aimRewind(ctx, &s, &r) })
		if err != nil {
			return tapedeck.Appended{}, err
		}
		done, err := e.appendOutside(ctx, a, back)
		if !errors.Is(err, errMoved) {
			return done, err
		}
	}
	return tapedeck.Appended{}, tapedeck.Errorf(tapedeck.Unavailable, "session %s is constantly written by others", r.Session).WithHint("try again")
}

// A replacement is a jump that is stored in one append with the events that replace what
// it reverts. nil is none.
type replacement struct {
	target
	marker string
	seen   tapedeck.Session // as it was when the events were formed
	events []tapedeck.Event
	try    int // see [target.fits]
}

// replaced forms the events of what a task replaces. It is nil if that is nothing.
func (e *Engine) replaced(ctx context.Context, s *tapedeck.Session, t *api.Task, try int) (*replacement, error) {
	switch {
	case t.Rewind != nil:
		back := *t.Rewind
		back.Session, back.Thread = s.ID, t.Thread
		return e.replacing(ctx, s, t.Actor, try, func() (target, error) { return e.aimRewind(ctx, s, &back) })
	case t.Overwrite != nil:
		return e.replacing(ctx, s, t.Actor, try, func() (target, error) { return e.aimOverwrite(ctx, s, t.Overwrite) })
	}
	return nil, nil
}

// replacing forms the events of a jump that others are to follow in the same append. It is
// nil if the jump may revert nothing and does so. aim returns the target.
func (e *Engine) replacing(ctx context.Context, s *tapedeck.Session, actor string, try int, aim func() (target, error)) (*replacement, error) {
	t, err := aim()
	if err != nil {
		return nil, err
	}
	t.ifIdle = true
	if err := e.checkTarget(ctx, s, &t); err != nil {
		return nil, err
	}
	if err := e.addSubThreads(ctx, s.ID, &t); err != nil {
		return nil, err
	}
	switch changes, err := e.wouldChange(ctx, s, &t); {
	case err != nil:
		return nil, err
	case !changes && t.allowNoChange:
		return nil, nil
	case !changes:
		return nil, t.nothing(s)
	}
	marker := tapedeck.NewID(t.markerPrefix)
	events, _, err := e.jumpEvents(ctx, s, &t, marker, actor)
	return &replacement{target: t, marker: marker, seen: *s, events: events, try: try}, err
}

// leaves returns the session as the events after the rewind find it: its views at that head
// have what is then active in the thread.
func (b *replacement) leaves(s *tapedeck.Session) *tapedeck.Session {
	if b == nil {
		return s
	}
	then := *s
	then.Head = b.to
	return &then
}

// before returns the events of an append that begins with the rewind.
func (b *replacement) before(events []tapedeck.Event) []tapedeck.Event {
	if b == nil {
		return events
	}
	return append(b.events[:len(b.events):len(b.events)], events...)
}

// len returns the number of events of the rewind.
func (b *replacement) len() int64 {
	if b == nil {
		return 0
	}
	return int64(len(b.events))
}

// check refuses the append in the store's writer if the rewind does not fit any more.
func (b *replacement) check(s *tapedeck.Session) error {
	if b == nil {
		return nil
	}
	return b.fits(s, &b.seen, &b.seen, b.try)
}
