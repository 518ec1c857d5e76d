// Package order checks that the events of a run have an order that can be
// replayed. It normalizes chunks and retired types into the form that the log
// keeps, and it knows which things must be closed when a run ends.
package order

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// These are the limits of what a [Verifier] remembers.
const (
	maxOpenRuns   = 1000 // in a session
	maxOpenThings = 1000 // in a run
	maxEnded      = 64   // ended runs whose ids are remembered
	maxKnown      = 512  // closed things of a run whose owners are remembered
)

// A Verifier checks the order of AG-UI events in all threads of one session. It
// refuses what an AG-UI client could not replay: agent content outside a run,
// text for a message that is not open, a second run in a thread, the end of a
// run with an open thing, an event after the end. It also tracks pending
// questions. It ignores events of other types.
//
// It remembers what is open in open runs, and a bounded number of closed
// things: an endless run does not make it grow.
//
// A Verifier is independent of its clones. Add, Accept and SetOffsets change
// it; all other methods may be called from several goroutines while none of
// these three runs.
type Verifier struct {
	runs  []*run // open runs, oldest first; immutable: changes replace the slices and runs
	ended []endedRun

	next     int64 // the offset that the next event will get
	lastJump int64 // the offset of the newest jump; 0 if none
}

// A run is the state of an open run in a Verifier. It is immutable.
type run struct {
	tapedeck.OpenRun
	threadID string   // AG-UI's threadId
	open     []opened // oldest first
	known    *known
	asked    []string // ids of its pending questions
	past     past
}

type endedRun struct {
	invocation string
	offset     int64
}

// NewVerifier returns a verifier of a session in which no run is open.
func NewVerifier() *Verifier { return &Verifier{} }

// RestoreVerifier returns the verifier of a session in state s, from the events
// of its open runs. It ignores logged events that it would refuse, because they
// are facts.
func RestoreVerifier(ctx context.Context, l tapedeck.Log, s tapedeck.Session) (*Verifier, error) {
	v := NewVerifier()
	defer func() { v.next, v.lastJump = s.Head, s.LastJump }()
	if len(s.Runs) == 0 {
		return v, nil
	}
	first := slices.MinFunc(s.Runs, func(a, b tapedeck.OpenRun) int { return cmp.Compare(a.Offset, b.Offset) })
	for e, err := range tapedeck.Events(ctx, l, s.ID, first.Offset) {
		if err != nil {
			return nil, err
		}
		if e.Offset >= s.Head {
			break
		}
		if e.Type == tapedeck.PermissionAnswered || e.Type == tapedeck.MessageAdded || slices.ContainsFunc(s.Runs, func(r tapedeck.OpenRun) bool { return r.Invocation == e.Invocation }) {
			_ = v.Add(&e)
		}
	}
	return v, nil
}

// Clone returns an independent copy. It copies a few words only.
func (v *Verifier) Clone() *Verifier {
	c := *v
	return &c
}

// Add checks the next event and updates v. A refusal leaves v unchanged. The
// error is [tapedeck.Invalid] if the data does not fit the type,
// [tapedeck.Conflict] if the event may not follow here, [tapedeck.TooLarge] if
// too many things are open. Add does not normalize the event; see
// [Verifier.Accept].
func (v *Verifier) Add(e *tapedeck.Event) error {
	at := max(v.next, e.Offset)
	if err := v.add(e, at); err != nil {
		return err
	}
	v.next = at + 1
	if _, ok := e.Jump(); ok {
		v.lastJump = at
	}
	return nil
}

func (v *Verifier) add(e *tapedeck.Event, at int64) error {
	switch e.Type {
	case tapedeck.SessionForked:
		v.runs = nil // runs that the parent had open do not continue in the fork
		return nil
	case tapedeck.PermissionRequested:
		return v.ask(e)
	case tapedeck.PermissionAnswered:
		v.answer(e)
		return nil
	case tapedeck.MessageAdded:
		v.hear(e, at)
		return nil
	case tapedeck.AttemptSuperseded:
		return v.supersede(e, at)
	}
	rule := rules[e.Type]
	if rule == nil {
		return nil
	}
	var c payload.Checked
	if err := payload.CheckInto(e, &c); err != nil {
		return err
	}
	if e.Type == tapedeck.RunStarted {
		return v.start(e, &c, at)
	}
	i, err := v.find(e)
	if err != nil {
		return err
	}
	next, err := rule(v.runs[i], e, &c)
	if err != nil {
		return err
	}
	v.replace(i, v.runs[i].note(next, e, at), e)
	return nil
}

// replace replaces the run at index i; nil ends it.
func (v *Verifier) replace(i int, next *run, e *tapedeck.Event) {
	old := v.runs[i]
	if next == old {
		return
	}
	v.runs = slices.Clone(v.runs)
	if next != nil {
		v.runs[i] = next
		return
	}
	v.runs = slices.Delete(v.runs, i, i+1)
	v.ended = append(slices.Clip(v.ended[max(0, len(v.ended)-maxEnded+1):]), endedRun{old.Invocation, e.Offset})
}

// find returns the index of the run that e belongs to.
func (v *Verifier) find(e *tapedeck.Event) (int, error) {
	thread := e.ThreadName()
	for i, r := range v.runs {
		if r.Thread == thread && r.Invocation == e.Invocation {
			return i, nil
		}
	}
	return 0, v.stray(e, thread)
}

// stray explains why e belongs to no open run.
func (v *Verifier) stray(e *tapedeck.Event, thread string) error {
	if err := e.Check(); err != nil {
		return err // the messages below quote the ids
	}
	active, _, busy := v.ActiveRun(thread)
	switch {
	case e.Invocation == "" && !busy:
		return tapedeck.Errorf(tapedeck.Conflict, "a %s must be part of a run, and thread %s has no open run", e.Type, thread).
			WithHint("send %s first", tapedeck.RunStarted)
	case e.Invocation == "":
		return tapedeck.Errorf(tapedeck.Invalid, "the %s has no invocation", e.Type).WithHint("the open run of thread %s is %s", thread, active)
	}
	if err := v.checkNotEnded(e.Invocation); err != nil {
		return err
	}
	for _, r := range v.runs {
		if r.Invocation == e.Invocation {
			return tapedeck.Errorf(tapedeck.Conflict, "run %s is on thread %s, not on %s", e.Invocation, r.Thread, thread)
		}
	}
	err := tapedeck.Errorf(tapedeck.Conflict, "run %s is not open on thread %s", e.Invocation, thread)
	if busy {
		return err.WithHint("its open run is %s", active)
	}
	return err.WithHint("send %s first", tapedeck.RunStarted)
}

// checkNotEnded returns an error if the run is known to have ended.
func (v *Verifier) checkNotEnded(invocation string) error {
	i := slices.IndexFunc(v.ended, func(r endedRun) bool { return r.invocation == invocation })
	if i < 0 {
		return nil
	}
	err := tapedeck.Errorf(tapedeck.Conflict, "run %s has ended%s", invocation, atOffset(v.ended[i].offset))
	return err.WithHint("start a run with a new id to continue")
}

// atOffset returns the text for a known offset; 0 means unknown, because no run
// starts or ends there.
func atOffset(offset int64) string {
	if offset == 0 {
		return ""
	}
	return " at offset " + strconv.FormatInt(offset, 10)
}

// start opens a run.
func (v *Verifier) start(e *tapedeck.Event, c *payload.Checked, at int64) error {
	thread := e.ThreadName()
	if err := tapedeck.CheckID("the run's id", e.Invocation); err != nil {
		return err
	}
	if err := e.Check(); err != nil {
		return err
	}
	if !jsonobj.StringIs(c.Get("runId"), e.Invocation) {
		return tapedeck.Errorf(tapedeck.Invalid, "the %s has the runId %s, but belongs to invocation %s", e.Type, jsonobj.Quote(c.String("runId")), e.Invocation).
			WithHint("a run's id is its invocation")
	}
	if err := v.checkNotEnded(e.Invocation); err != nil {
		return err
	}
	for _, r := range v.runs {
		switch {
		case r.Invocation == e.Invocation:
			return tapedeck.Errorf(tapedeck.Conflict, "run %s has started%s and is still open", r.Invocation, atOffset(r.Offset))
		case r.Thread == thread:
			return tapedeck.Errorf(tapedeck.Conflict, "thread %s is busy with run %s, which started%s", thread, r.Invocation, atOffset(r.Offset)).
				WithHint("wait for its end, cancel it, or use another thread")
		}
	}
	if len(v.runs) >= maxOpenRuns {
		return tapedeck.Errorf(tapedeck.TooLarge, "the session has %d open runs", len(v.runs)).WithHint("end some of them")
	}
	v.runs = append(slices.Clip(v.runs), &run{
		OpenRun:  newRun(e, v.Runs()),
		threadID: c.String("threadId"),
		known:    (*known)(nil).seed(c.Get("input")),
		past:     past{floor: at + 1, last: at, input: at + 1, step: at + 1},
	})
	return nil
}

// newRun returns the run that a RUN_STARTED opens while open runs exist.
func newRun(e *tapedeck.Event, open []tapedeck.OpenRun) tapedeck.OpenRun {
	s := tapedeck.Session{Runs: open}
	s.Apply(e)
	return s.Runs[len(s.Runs)-1]
}

// ActiveRun returns the open run of a thread and the offset of its start, 0 if
// that is not known yet; see [Verifier.SetOffsets].
func (v *Verifier) ActiveRun(thread string) (invocation string, start int64, ok bool) {
	for _, r := range v.runs {
		if r.Thread == thread {
			return r.Invocation, r.Offset, true
		}
	}
	return "", 0, false
}

// Runs returns the open runs, oldest first.
func (v *Verifier) Runs() []tapedeck.OpenRun {
	runs := make([]tapedeck.OpenRun, len(v.runs))
	for i, r := range v.runs {
		runs[i] = r.OpenRun
	}
	return runs
}

// SetOffsets tells v the offsets of events that were added without one, so that
// errors can say where a run began and ended. It ignores events of other types.
func (v *Verifier) SetOffsets(events []tapedeck.Event) {
	for i := range events {
		e := &events[i]
		switch e.Type {
		case tapedeck.RunStarted:
			for i, r := range v.runs {
				if r.Invocation == e.Invocation {
					started := *r
					started.Offset, started.Started = e.Offset, e.Time
					v.replace(i, &started, e)
				}
			}
		case tapedeck.RunFinished, tapedeck.RunError:
			v.ended = slices.Clone(v.ended)
			for i := range v.ended {
				if v.ended[i].invocation == e.Invocation {
					v.ended[i].offset = e.Offset
				}
			}
		}
	}
}
