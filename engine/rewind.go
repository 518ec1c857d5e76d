package engine

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// Rewind restores a session, or one thread, to its state before an event. It deletes
// nothing: it appends one event, which [Engine.Undo] can undo. It first cancels the
// runs in its scope.
//
// An invocation or a thread that the log does not have is [tapedeck.NotFound], an
// offset that it does not have is [tapedeck.Invalid]. A rewind is a
// [tapedeck.Conflict] if it would revert nothing, if it would make reverted events
// active again without Force, or if another rewind or a run begins meanwhile. In
// these cases it appends at most the ends of the cancelled runs.
func (e *Engine) Rewind(ctx context.Context, r api.Rewind) (api.Rewound, error) {
	return e.jump(ctx, r.Session, r.Actor, func(s *tapedeck.Session) (target, error) {
		t, err := e.aimRewind(ctx, s, &r)
		t.ifIdle = r.IfIdle
		return t, err
	})
}

func (e *Engine) aimRewind(ctx context.Context, s *tapedeck.Session, r *api.Rewind) (target, error) {
	if (r.BeforeInvocation == "") == (r.ToOffset == nil) {
		return target{}, tapedeck.Errorf(tapedeck.Invalid, "a rewind goes back to one place").
			WithHint("give either an invocation or an offset")
	}
	if r.ToOffset != nil {
		return rewindTo(*r.ToOffset, r.Thread, r.Force), e.hasThread(ctx, s, r.Thread)
	}
	j, marked, err := e.marked(ctx, s, r.BeforeInvocation)
	if err != nil {
		return target{}, err
	}
	if marked {
		return undo(j, r.Thread), e.hasThread(ctx, s, r.Thread)
	}
	return e.beforeInvocation(ctx, s, r)
}

// Undo undoes a rewind, a clear or an overwrite. In its threads, it reverts all events
// after that, too. An undo can be undone.
func (e *Engine) Undo(ctx context.Context, u api.Undo) (api.Rewound, error) {
	return e.jump(ctx, u.Session, u.Actor, func(s *tapedeck.Session) (target, error) {
		if u.Marker == "" {
			return e.undoLast(ctx, s)
		}
		j, ok, err := e.marked(ctx, s, u.Marker)
		if err == nil && !ok {
			err = tapedeck.Errorf(tapedeck.NotFound, "session %s has no marker %q", s.ID, u.Marker)
		}
		return undo(j, ""), err
	})
}

// Overwrite reverts the events from an offset on, so that later events replace them.
// If there are none, it appends nothing, and the result has no marker. Errors are
// those of [Engine.Rewind].
func (e *Engine) Overwrite(ctx context.Context, o api.Overwrite) (api.Rewound, error) {
	return e.jump(ctx, o.Session, o.Actor, func(s *tapedeck.Session) (target, error) { return e.aimOverwrite(ctx, s, &o) })
}

func (e *Engine) aimOverwrite(ctx context.Context, s *tapedeck.Session, o *api.Overwrite) (target, error) {
	context, err := contextCut(o.Context)
	if err != nil {
		return target{}, err
	}
	uncalls := o.Context != nil && len(o.Context.Uncalled) > 0
	var announced *tapedeck.Event
	if o.Instance != nil {
		announced = new(payload.NewEvent(*o.Instance))
		announced.Thread = o.Thread
	}
	return target{to: o.FromOffset, thread: o.Thread, markerPrefix: "ovw_", allowNoChange: true, changes: uncalls, announced: announced, onlyBack: !o.Force, payload: func(t payload.RevertFields) payload.Payload {
		return payload.SessionOverwritten{RevertFields: t, FromOffset: o.FromOffset, Context: context}
	}}, e.hasThread(ctx, s, o.Thread)
}

// maxUncalled is the largest number of calls that a cut names.
const maxUncalled = 1000

// contextCut encodes a cut in the context of an agent, nil for none.
func contextCut(c *view.ContextCut) (json.RawMessage, error) {
	if c == nil {
		return nil, nil
	}
	if err := checkOptional("the thread of the context", c.Thread); err != nil {
		return nil, err
	}
	if len(c.Uncalled) > maxUncalled {
		return nil, tapedeck.Errorf(tapedeck.TooLarge, "the context names %d calls; at most %d are allowed", len(c.Uncalled), maxUncalled)
	}
	if slices.Contains(c.Uncalled, "") {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "an id in uncalled is empty")
	}
	return encoded(c), nil
}

// Clear reverts all events of a session, or of one thread. Errors are those of
// [Engine.Rewind].
func (e *Engine) Clear(ctx context.Context, c api.Clear) (api.Rewound, error) {
	return e.jump(ctx, c.Session, c.Actor, func(s *tapedeck.Session) (target, error) {
		return target{thread: c.Thread, markerPrefix: "clr_", allowNoChange: c.AllowEmpty, payload: func(t payload.RevertFields) payload.Payload {
			return payload.SessionCleared{RevertFields: t}
		}}, e.hasThread(ctx, s, c.Thread)
	})
}

func rewindTo(offset int64, thread string, force bool) target {
	return target{to: offset, thread: thread, markerPrefix: "rew_", onlyBack: !force, payload: func(t payload.RevertFields) payload.Payload {
		return payload.SessionRewound{RevertFields: t, ToOffset: offset}
	}}
}

// undo returns the state before a jump as a target, for the threads of the jump or
// only for one of them.
func undo(j tapedeck.Jump, thread string) target {
	if thread == "" {
		thread = j.Thread
	}
	return target{to: j.Offset, thread: thread, markerPrefix: "rew_", undoes: j.Marker, payload: func(t payload.RevertFields) payload.Payload {
		return payload.SessionRewound{RevertFields: t, ToOffset: j.Offset, Undoes: j.Marker}
	}}
}

func (e *Engine) undoLast(ctx context.Context, s *tapedeck.Session) (target, error) {
	t, err := e.views.Timeline(ctx, s.ID, s.Head)
	if err != nil {
		return target{}, err
	}
	j, ok := lastVerb(t)
	if !ok {
		return target{}, tapedeck.Errorf(tapedeck.Conflict, "there is nothing to undo in session %s", s.ID)
	}
	return undo(j, ""), nil
}

// lastVerb returns the newest jump that a verb has made.
func lastVerb(t *view.Timeline) (tapedeck.Jump, bool) {
	for _, j := range slices.Backward(t.Jumps()) {
		if !j.Attempt {
			return j, true
		}
	}
	return tapedeck.Jump{}, false
}

// marked returns the jump that has a marker.
func (e *Engine) marked(ctx context.Context, s *tapedeck.Session, marker string) (tapedeck.Jump, bool, error) {
	if s.LastJump == 0 {
		return tapedeck.Jump{}, false, nil
	}
	t, err := e.views.Timeline(ctx, s.ID, s.Head)
	if err != nil {
		return tapedeck.Jump{}, false, err
	}
	j, ok := t.Marked(marker)
	return j, ok, nil
}

// beforeInvocation returns the first event of an invocation as a target, whether it
// is active or not.
func (e *Engine) beforeInvocation(ctx context.Context, s *tapedeck.Session, r *api.Rewind) (target, error) {
	id := r.BeforeInvocation
	at, ok, err := e.views.FindInvocation(ctx, s.ID, id)
	if err == nil && !ok {
		err = tapedeck.Errorf(tapedeck.NotFound, "session %s has no invocation %q", s.ID, id)
	}
	if err == nil {
		err = e.hasThread(ctx, s, r.Thread)
	}
	return target{to: at, thread: r.Thread, markerPrefix: "rew_", onlyBack: !r.Force, payload: func(t payload.RevertFields) payload.Payload {
		return payload.SessionRewound{RevertFields: t, ToOffset: at, BeforeInvocation: id}
	}}, err
}

// hasThread refuses a thread that the session has never had. Every session has the
// main thread.
func (e *Engine) hasThread(ctx context.Context, s *tapedeck.Session, thread string) error {
	if thread == "" || thread == tapedeck.MainThread {
		return nil
	}
	if err := tapedeck.CheckID("the thread", thread); err != nil {
		return err
	}
	_, found, err := e.views.FindThread(ctx, s.ID, thread)
	if err == nil && !found {
		err = tapedeck.Errorf(tapedeck.NotFound, "session %s has no thread %q", s.ID, thread)
	}
	return err
}
