package engine

import (
	"context"
	"errors"

	"github.com/tapedeck/tapedeck"
)

// An ending says how a run came to its end.
type ending struct {
	offset    int64 // of the terminal event
	status    tapedeck.Status
	resumable bool
	err       error // it could not be ended
}

// A terminal is the event that is to end a run.
type terminal struct {
	event     tapedeck.Event
	status    tapedeck.Status
	resumable bool
}

// terminal says how the run ends: stopped from outside, failed, or done. It is
// never guessed from anything but this.
func (r *run) terminal(agentErr, writeErr error) terminal {
	cause := context.Cause(r.ctx)
	started := r.queue.spoke()
	switch {
	case errors.Is(cause, errCancelled):
		return cancelledEnd(r.in, started)
	case errors.Is(cause, errShutdown):
		return errorEnd(tapedeck.CodeInterrupted, "the server was stopped", tapedeck.StatusInterrupted)
	case writeErr != nil && (tapedeck.KindOf(writeErr) == tapedeck.Conflict || tapedeck.KindOf(writeErr) == tapedeck.Invalid):
		return errorEnd("protocol", "the agent said something that does not fit: "+writeErr.Error(), tapedeck.StatusFailed)
	case writeErr != nil:
		return errorEnd("storage", "what the agent said could not be stored", tapedeck.StatusFailed)
	case agentErr != nil:
		return errorEnd("agent", r.explain(agentErr), tapedeck.StatusFailed)
	}
	return terminal{
		event: tapedeck.Event{Type: tapedeck.RunFinished, Data: object(map[string]any{
			"threadId": r.in.Thread, "runId": r.in.ID, "outcome": map[string]string{"type": tapedeck.OutcomeSuccess},
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

func cancelledEnd(in tapedeck.Invocation, resumable bool) terminal {
	return terminal{
		event: tapedeck.Event{Type: tapedeck.RunFinished, Data: object(map[string]any{
			"threadId": in.Thread, "runId": in.ID, "outcome": map[string]string{"type": tapedeck.OutcomeCancelled},
			"metadata": map[string]any{tapedeck.VendorKey: map[string]bool{"resumable": resumable}},
		})},
		status: tapedeck.StatusCancelled, resumable: resumable,
	}
}

func errorEnd(code, message string, status tapedeck.Status) terminal {
	return terminal{
		event:  tapedeck.Event{Type: tapedeck.RunError, Data: object(map[string]any{"message": message, "code": code})},
		status: status,
	}
}

// errEnded says that a run has a terminal event already.
var errEnded = errors.New("the run has ended")

// finish closes what a run has open, in reverse order, and ends it, in one
// append. Whoever comes second finds that it has ended (errEnded) and writes
// nothing.
func (e *Engine) finish(ctx context.Context, session, invocation string, t terminal) ending {
	for range maxTries {
		l, v, err := e.current(ctx, session)
		if err != nil {
			return ending{err: err}
		}
		thread, open := threadOf(v, invocation)
		if !open {
			return ending{err: errEnded}
		}
		t.event.Thread, t.event.Invocation, t.event.Actor = thread, invocation, "tapedeck"
		events := append(v.Closing(invocation), t.event)
		done, err := e.write(ctx, tapedeck.Append{Session: session, Events: events}, nil)
		switch tapedeck.KindOf(err) {
		case "":
			return ending{offset: done.Next - 1, status: t.status, resumable: t.resumable}
		case tapedeck.Conflict, tapedeck.Invalid: // something was opened or closed meanwhile
			l.refresh(v)
		default:
			return ending{err: err}
		}
	}
	return ending{err: tapedeck.Errorf(tapedeck.Unavailable, "run %s could not be ended", invocation)}
}

func threadOf(v *tapedeck.Verifier, invocation string) (string, bool) {
	for _, r := range v.Runs() {
		if r.Invocation == invocation {
			return r.Thread, true
		}
	}
	return "", false
}
