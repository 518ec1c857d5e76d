package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
)

// An ending says how a run came to its end.
type ending struct {
	offset    int64 // of the terminal event
	status    tapedeck.Status
	resumable bool
	err       error // it could not be ended
}

// A terminal is the event that is to end a run. The ids that AG-UI asks for are
// filled in when it is written: a run from outside has a threadId of its own.
type terminal struct {
	event     tapedeck.Event
	before    []tapedeck.Event // what comes before all else, such as the answers to what is still asked
	status    tapedeck.Status
	resumable bool
}

// terminal says how the run ends: stopped from outside, failed, or done. It is
// never guessed from anything but this.
func (r *run) terminal(agentErr, writeErr error) terminal {
	cause := context.Cause(r.ctx)
	started := r.queue.hasBegun()
	var late *timeout
	switch {
	case errors.Is(cause, errCancelled):
		return cancelledEnd(started)
	case errors.Is(cause, errShutdown):
		return errorEnd(tapedeck.CodeInterrupted, "the server was stopped", tapedeck.StatusInterrupted)
	case errors.As(cause, &late):
		return errorEnd(late.code, late.message, tapedeck.StatusFailed)
	case refused(writeErr):
		return errorEnd("protocol", "the agent said something that does not fit: "+writeErr.Error(), tapedeck.StatusFailed)
	case writeErr != nil:
		return errorEnd("storage", "what the agent said could not be stored", tapedeck.StatusFailed)
	case agentErr != nil:
		return errorEnd("agent", r.explain(agentErr), tapedeck.StatusFailed)
	}
	return terminal{
		event: tapedeck.Event{Type: tapedeck.RunFinished, Data: object(map[string]any{
			"outcome": map[string]string{"type": payload.OutcomeSuccess},
		})},
		status: tapedeck.StatusComplete,
	}
}

// explain returns what users may know of a runner's error.
func (r *run) explain(err error) string {
	var e *tapedeck.Error
	if errors.As(err, &e) && e.Kind != tapedeck.Internal {
		return e.Message
	}
	r.engine.options.Logger.Error("an agent failed", "agent", r.agent.Name, "invocation", r.in.ID, "error", err)
	return "the agent failed"
}

func cancelledEnd(resumable bool) terminal {
	return terminal{
		event: tapedeck.Event{Type: tapedeck.RunFinished, Data: object(map[string]any{
			"outcome":  map[string]string{"type": payload.OutcomeCancelled},
			"metadata": payload.Meta{Resumable: &resumable}.Metadata(),
		})},
		status: tapedeck.StatusCancelled, resumable: resumable,
	}
}

func errorEnd(code, message string, status tapedeck.Status) terminal {
	return terminal{
		event:  tapedeck.Event{Type: tapedeck.RunError, Data: object(map[string]string{"message": brief(message), "code": code})},
		status: status,
	}
}

// maxMessage is the most bytes of the message of an error: it must fit into the
// log whatever an agent says.
const maxMessage = 4096

func brief(s string) string {
	if len(s) > maxMessage {
		s = s[:maxMessage] + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// refused reports whether an append fails in the same way when it is repeated.
func refused(err error) bool {
	k := tapedeck.KindOf(err)
	return k == tapedeck.Conflict || k == tapedeck.Invalid || k == tapedeck.TooLarge
}

// errEnded says that a run has a terminal event already.
var errEnded = errors.New("the run has ended")

// over reports whether err says that there is nothing to end any more: no open
// run, no session, or none that anything can be appended to.
func isOver(err error) bool {
	var e *tapedeck.AppendError
	k := tapedeck.KindOf(err)
	return errors.Is(err, errEnded) || k == tapedeck.NotFound || k == tapedeck.Gone ||
		errors.As(err, &e) && e.Refusal == tapedeck.RefusedClosed
}

// finish closes what a run has open, in reverse order, and ends it, in one
// append. Whoever comes second finds that it has ended (errEnded) and writes
// nothing.
func (e *Engine) finish(ctx context.Context, session, invocation string, t terminal, g guard) ending {
	var err error
	for range maxTries {
		var events []tapedeck.Event
		if events, err = e.closingEvents(ctx, session, invocation, t); err != nil {
			return ending{err: err}
		}
		var done tapedeck.Appended
		done, err = e.write(ctx, tapedeck.Append{Session: session, Events: events}, g)
		switch {
		case err == nil:
			return ending{offset: done.Next - 1, status: t.status, resumable: t.resumable}
		case !refused(err) || isOver(err):
			return ending{err: err}
		}
		// Something was opened or closed meanwhile.
	}
	return ending{err: err}
}

// last returns the last events of an open run, as of now.
func (e *Engine) closingEvents(ctx context.Context, session, invocation string, t terminal) ([]tapedeck.Event, error) {
	for range maxTries {
		l, v, err := e.current(ctx, session)
		if err != nil {
			return nil, err
		}
		runs := v.Runs()
		if i := slices.IndexFunc(runs, func(r tapedeck.OpenRun) bool { return r.Invocation == invocation }); i >= 0 {
			return append(slices.Clip(t.before), endEvents(v, runs, &runs[i], t)...), nil
		}
		s, err := e.session(ctx, session)
		if err != nil {
			return nil, err
		}
		if !hasRun(&s, invocation) {
			break
		}
		l.invalidate() // it was started past the engine, or its end was not written after all
	}
	return nil, errEnded
}

// ends returns the events that end a run, after those that end the runs of the
// sub-agents that it has started.
func endEvents(v *order.Verifier, runs []tapedeck.OpenRun, r *tapedeck.OpenRun, t terminal) (events []tapedeck.Event) {
	for i := range runs {
		if startedBy(&runs[i], r) {
			events = append(events, endEvents(v, runs, &runs[i], t.forDescendant())...)
		}
	}
	for _, ev := range v.Closing(r.Invocation) {
		markClosed(&ev, t.status)
		events = append(events, ev)
	}
	t.event.Thread, t.event.Invocation, t.event.Actor = r.Thread, r.Invocation, "tapedeck"
	return append(events, t.event)
}

// startedBy reports whether a run is that of a sub-agent which another run has
// started, and so ends with it.
func startedBy(r, parent *tapedeck.OpenRun) bool {
	return r.Parent == parent.Invocation && r.Owner == parent.Owner
}

// family returns a run and those that end with it.
func withDescendants(runs []tapedeck.OpenRun, r tapedeck.OpenRun) []tapedeck.OpenRun {
	all := []tapedeck.OpenRun{r}
	for i := 0; i < len(all); i++ {
		for j := range runs {
			if startedBy(&runs[j], &all[i]) {
				all = append(all, runs[j])
			}
		}
	}
	return all
}

// elder returns the run that an open run ends with, if that is not it itself.
func parentRun(runs []tapedeck.OpenRun, r *tapedeck.OpenRun) (tapedeck.OpenRun, bool) {
	for i := range runs {
		if startedBy(r, &runs[i]) {
			return runs[i], true
		}
	}
	return tapedeck.OpenRun{}, false
}

// ofSub returns how the run of a sub-agent ends with the one that started it.
func (t terminal) forDescendant() terminal {
	switch t.status {
	case tapedeck.StatusCancelled:
		return cancelledEnd(false)
	case tapedeck.StatusInterrupted:
		return terminal{event: withoutUsage(t.event), status: t.status}
	}
	return childAbandoned()
}

// markClosed says in an event that closes something that it was the end of the
// run that did, and not the agent.
func markClosed(ev *tapedeck.Event, by tapedeck.Status) {
	mark := object(map[string]any{"metadata": payload.Meta{Closed: by}.Metadata()})
	ev.Data = append(append(ev.Data[:len(ev.Data)-1], ','), mark[1:]...) // it has an id at least
}

func hasRun(s *tapedeck.Session, invocation string) bool {
	return slices.ContainsFunc(s.Runs, func(r tapedeck.OpenRun) bool { return r.Invocation == invocation })
}
