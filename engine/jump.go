package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A target says to which offset a jump goes, and which event records it.
type target struct {
	to            int64
	thread        string          // "" for all threads
	subThreads    []string        // the threads of sub-agents that jump with it
	markerPrefix  string          // the prefix of the id of its marker
	allowNoChange bool            // to revert nothing is no error
	changes       bool            // it changes something although it may revert nothing
	onlyBack      bool            // it must not make reverted events active again
	ifIdle        bool            // it must not cancel a run
	announced     *tapedeck.Event // what follows it in the same append; nil for nothing
	undoes        string          // the marker of the jump that it undoes; "" for none
	payload       func(payload.RevertFields) payload.Payload
}

// includes reports whether the jump affects the thread of a run.
func (t *target) includes(r *tapedeck.OpenRun) bool { return t.includesThread(r.Thread) }

func (t *target) includesThread(thread string) bool {
	return t.thread == "" || t.thread == thread || slices.Contains(t.subThreads, thread)
}

// inputs returns the inputs that wait in the threads of the jump.
func (t *target) inputs(s *tapedeck.Session) []tapedeck.WaitingInput {
	return slices.DeleteFunc(slices.Clone(s.Inputs), func(in tapedeck.WaitingInput) bool { return !t.includesThread(in.Thread) })
}

// addSubThreads adds the threads of sub-agents that jump with the thread: those whose
// active events now differ from those at the target offset.
func (e *Engine) addSubThreads(ctx context.Context, session string, t *target) error {
	if t.thread == "" {
		return nil
	}
	parents, last := map[string]string{}, [2]map[string]int64{{}, {}}
	for i, at := range []int64{t.to, -1} { // then and now
		s, err := e.views.Snapshot(ctx, session, view.Query{At: new(at), Limit: 1})
		if err != nil {
			return err
		}
		for _, th := range s.Threads {
			parents[th.Name], last[i][th.Name] = th.Parent, th.Last
		}
	}
	for name := range parents {
		then, before := last[0][name]
		now, after := last[1][name]
		if (!before || !after || then != now) && name != t.thread && isUnder(parents, name, t.thread) {
			t.subThreads = append(t.subThreads, name)
		}
	}
	slices.Sort(t.subThreads)
	return nil
}

// isUnder reports whether a thread was started on another thread, directly or by a
// thread between them.
func isUnder(parents map[string]string, thread, above string) bool {
	for range len(parents) { // events of clients can make a circle of parents
		if thread = parents[thread]; thread == "" || thread == above {
			break
		}
	}
	return thread == above
}

// jump carries out a rewind, an undo, an overwrite or a clear, see [tapedeck.Jump].
// aim returns its target.
func (e *Engine) jump(ctx context.Context, session, actor string, aim func(*tapedeck.Session) (target, error)) (api.Rewound, error) {
	defer e.feeder.hold(session)() // the end of a cancelled run must not begin an input that the jump withdraws
	s, err := e.session(ctx, session)
	if err != nil {
		return api.Rewound{}, err
	}
	t, err := aim(&s)
	if err == nil {
		err = e.checkTarget(ctx, &s, &t)
	}
	if err != nil {
		return api.Rewound{}, err
	}
	defer e.beginJump(session)()
	stopped, err := e.cancelRuns(ctx, &s, &t)
	if err != nil {
		return api.Rewound{}, err
	}
	if err := e.addSubThreads(ctx, session, &t); err != nil {
		return api.Rewound{}, err
	}
	switch changes, err := e.wouldChange(ctx, &s, &t); {
	case err != nil:
		return api.Rewound{}, err
	case changes:
	case t.allowNoChange:
		return api.Rewound{Session: session, Offset: -1, To: t.to, Thread: t.thread, Status: s.Status, Cancelled: stopped}, nil
	default:
		return api.Rewound{}, t.nothing(&s)
	}
	done, err := e.appendJump(ctx, &s, &t, actor)
	done.Cancelled = stopped
	return done, err
}

// checkTarget refuses a jump that the session does not allow.
func (e *Engine) checkTarget(ctx context.Context, s *tapedeck.Session, t *target) error {
	if t.to < 0 || t.to > s.Head {
		return tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d, so it cannot go back to %d", s.ID, s.Head, t.to)
	}
	if t.ifIdle {
		if err := t.idle(s); err != nil {
			return err
		}
	}
	if t.onlyBack {
		return e.onlyBack(ctx, s, t)
	}
	return nil
}

// nothing is the error of a jump that would change nothing.
func (t *target) nothing(s *tapedeck.Session) error {
	return tapedeck.Errorf(tapedeck.Conflict, "there is nothing to revert: session %s is as it was before offset %d", s.ID, t.to)
}

// idle returns an error while a run is open that the jump would revert.
func (t *target) idle(s *tapedeck.Session) error {
	for i := range s.Runs {
		if t.includes(&s.Runs[i]) {
			return tapedeck.Errorf(tapedeck.Conflict, "session %s is busy with %s, so it cannot be rewound", s.ID, s.Runs[i].Invocation).
				WithHint("wait until the run ends, or cancel it")
		}
	}
	return nil
}

// wouldChange reports whether a jump would change which events are active. A jump
// that would not is not appended: the next undo would undo that jump instead of the
// one that the user means.
func (e *Engine) wouldChange(ctx context.Context, s *tapedeck.Session, t *target) (bool, error) {
	if t.changes {
		return true, nil
	}
	now, err := e.views.Timeline(ctx, s.ID, -1)
	if err != nil {
		return false, err
	}
	head, err := e.session(ctx, s.ID)
	if err != nil {
		return false, err
	}
	for _, thread := range append(now.Threads(t.thread), t.subThreads...) {
		same := func(a, b tapedeck.OffsetRange) bool { return a.From == b.From && a.To == b.To }
		if !slices.EqualFunc(now.Ranges(thread, t.to), now.Ranges(thread, head.Head), same) {
			return true, nil
		}
	}
	return false, nil
}

// onlyBack refuses a jump that would make reverted events active again. The client
// probably has an old view of the session; an undo is the verb for this. Older logs
// can have such jumps, and views follow them.
func (e *Engine) onlyBack(ctx context.Context, s *tapedeck.Session, t *target) error {
	now, err := e.views.Timeline(ctx, s.ID, s.Head)
	if err != nil {
		return err
	}
	for _, thread := range now.Threads(t.thread) {
		active := now.Ranges(thread, s.Head)
		for _, then := range now.Ranges(thread, t.to) {
			if !covers(active, then) {
				return tapedeck.Errorf(tapedeck.Conflict, "events before offset %d were reverted in the meantime: going back there would make them active again", t.to).
					WithHint("load the session again and choose one of its active turns; undo reverses a rewind, and force goes there all the same")
			}
		}
	}
	return nil
}

// covers reports whether ranges contain r. The ranges do not touch each other.
func covers(ranges []tapedeck.OffsetRange, r tapedeck.OffsetRange) bool {
	return slices.ContainsFunc(ranges, func(a tapedeck.OffsetRange) bool { return a.From <= r.From && r.To <= a.To })
}

// cancelRuns cancels the runs that a jump affects, and returns their invocations.
func (e *Engine) cancelRuns(ctx context.Context, s *tapedeck.Session, t *target) ([]string, error) {
	var waits []func() (api.Cancelled, error)
	for _, r := range s.Runs {
		above, sub := parentRun(s.Runs, &r)
		switch {
		case !t.includes(&r), sub && t.includes(&above):
		case sub:
			if err := e.canEnd(s, &r); err != nil {
				return nil, err
			}
			fallthrough
		default:
			waits = append(waits, e.revertRun(ctx, s, r)) // all at once, because an agent may take long to stop
		}
	}
	var stopped []string
	for _, wait := range waits {
		c, err := wait()
		switch {
		case err == nil:
			stopped = append(stopped, c.Invocation)
		case tapedeck.KindOf(err) != tapedeck.Conflict: // a conflict means that it ended by itself
			return stopped, err
		}
	}
	return stopped, nil
}

// errMoved means that the session has changed since the verb looked at it.
var errMoved = errors.New("the session has changed")

// appendJump appends the jump, unless the session has changed since began in a way
// that matters to it.
func (e *Engine) appendJump(ctx context.Context, began *tapedeck.Session, t *target, actor string) (api.Rewound, error) {
	marker := tapedeck.NewID(t.markerPrefix)
	for try := range maxTries {
		now, err := e.session(ctx, began.ID)
		if err == nil {
			err = e.notOvertaken(ctx, began, &now)
		}
		if err != nil {
			return api.Rewound{}, e.explainOvertaken(ctx, began.ID, err)
		}
		events, status, err := e.jumpEvents(ctx, &now, t, marker, actor)
		if err != nil {
			return api.Rewound{}, err
		}
		at := int64(len(events)) - 1
		if t.announced != nil {
			events = append(events, *t.announced)
		}
		done, err := e.write(ctx, tapedeck.Append{Session: began.ID, Events: events},
			func(s *tapedeck.Session, _ []tapedeck.Event) error { return t.fits(s, began, &now, try) })
		if err == nil {
			return api.Rewound{
				Session: began.ID, Marker: marker, Offset: done.First + at, To: t.to, Thread: t.thread, Undoes: t.undoes, Status: status,
			}, nil
		}
		if !errors.Is(err, errMoved) {
			return api.Rewound{}, e.explainOvertaken(ctx, began.ID, err)
		}
	}
	return api.Rewound{}, tapedeck.Errorf(tapedeck.Unavailable, "session %s is constantly written by others", began.ID).WithHint("try again")
}

// jumpEvents returns the events of a jump, the last of which is its marker, and the status
// that the session then has. now is the session as it is.
func (e *Engine) jumpEvents(ctx context.Context, now *tapedeck.Session, t *target, marker, actor string) ([]tapedeck.Event, tapedeck.Status, error) {
	st, err := e.outcomeAfter(ctx, now, t)
	if err != nil {
		return nil, "", err
	}
	inputs, err := e.views.Snapshot(ctx, now.ID, view.Query{At: &now.Head, Limit: 1})
	if err != nil {
		return nil, "", err
	}
	fields := payload.RevertFields{
		Marker: marker, Thread: t.thread, With: t.subThreads, Status: string(st.status), Resumable: st.resumable, Inputs: len(inputs.Inputs) > 0,
	}
	if now.LastJump > 0 {
		fields.Previous = &now.LastJump
	}
	return append(withdrawn(t.inputs(now), "its thread was reverted", actor), event(t.payload(fields), actor)), st.status, nil
}

// fits refuses a jump in the store's writer if the session has changed in a way that
// matters to it: since its verb began, or since now, when its events were formed.
func (t *target) fits(s, began, now *tapedeck.Session, try int) error {
	if s.LastJump != now.LastJump || !slices.Equal(t.inputs(s), t.inputs(now)) {
		return errMoved
	}
	if err := mayJump(s, began, t); err != nil || t.thread == "" {
		return err
	}
	return sameRuns(s, now, try)
}

// notOvertaken returns an error if a verb has made another jump since the session was
// began. Attempts of runs are no reason to give up: they may come at any time.
func (e *Engine) notOvertaken(ctx context.Context, began, now *tapedeck.Session) error {
	if now.LastJump == began.LastJump || now.Gen != began.Gen {
		return nil // mayJump refuses another generation
	}
	t, err := e.views.Timeline(ctx, began.ID, now.Head)
	if err != nil {
		return err
	}
	if j, ok := lastVerb(t); ok && j.Offset > began.LastJump {
		return &overtaken{j.Offset}
	}
	return nil
}

// mayJump refuses a jump in the store's writer: no open run may be reverted.
func mayJump(s, began *tapedeck.Session, t *target) error {
	if s.Gen != began.Gen {
		return tapedeck.Errorf(tapedeck.Conflict, "session %s was deleted and recreated meanwhile", s.ID)
	}
	if t.ifIdle {
		return t.idle(s)
	}
	for _, r := range s.Runs {
		if t.includes(&r) {
			return tapedeck.Errorf(tapedeck.Conflict, "%s has begun on thread %s meanwhile", r.Invocation, r.Thread).
				WithHint("try again, and it is cancelled")
		}
	}
	return nil
}

// strictTries is how many attempts of a jump on one thread require that no event
// arrives on the others.
const strictTries = 5

// sameRuns refuses a session in which a run has ended since it was seen. The status
// after a jump on one thread depends on the last run that ended on the others. The
// catalogue does not count runs, so the first attempts treat any event as such an
// end. After that, while events keep arriving, an equal status is enough.
func sameRuns(s, seen *tapedeck.Session, try int) error {
	running := len(s.Runs) > 0
	switch {
	case running != (len(seen.Runs) > 0):
		return errMoved
	case running, s.Head == seen.Head: // while a run is open, the status is running
		return nil
	case try < strictTries, s.Status != seen.Status:
		return errMoved
	}
	return nil
}

// An overtaken is the error of a verb if another jump was appended before it.
type overtaken struct{ jump int64 } // the offset of the other jump

func (o *overtaken) Error() string { return "another jump came before" }

// explainOvertaken replaces an overtaken error by one that names the other jump.
func (e *Engine) explainOvertaken(ctx context.Context, session string, err error) error {
	var o *overtaken
	if !errors.As(err, &o) {
		return err
	}
	ev, err := eventAt(ctx, e.store, session, o.jump)
	if err != nil {
		return err
	}
	j, _ := ev.Jump()
	verb := map[string]string{tapedeck.SessionCleared: "cleared", tapedeck.SessionOverwritten: "overwritten"}[ev.Type]
	if verb == "" {
		verb = "rewound"
	}
	return tapedeck.Errorf(tapedeck.Conflict, "session %s was %s meanwhile (marker %s)", session, verb, j.Marker).
		WithHint("read the session, and try again if you still want to")
}
