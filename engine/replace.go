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
		back, err := e.replacing(ctx, &s, &r, r.Thread, r.Actor, try)
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

// A replacement is a rewind that is stored in one append with the events that replace what
// it reverts. nil is none.
type replacement struct {
	target
	seen   tapedeck.Session // as it was when the events were formed
	events []tapedeck.Event
	try    int // see [target.fits]
}

// replacing forms the events of a rewind that others are to follow in the same append. It is
// nil without one.
func (e *Engine) replacing(ctx context.Context, s *tapedeck.Session, r *api.Rewind, thread, actor string, try int) (*replacement, error) {
	if r == nil {
		return nil, nil
	}
	back := *r
	back.Session, back.Thread = s.ID, thread
	t, err := e.aimRewind(ctx, s, &back)
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
	case !changes:
		return nil, t.nothing(s)
	}
	events, _, err := e.jumpEvents(ctx, s, &t, tapedeck.NewID(t.markerPrefix), actor)
	return &replacement{target: t, seen: *s, events: events, try: try}, err
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
