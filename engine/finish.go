package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
)

// An ending says how a run ended.
type ending struct {
	offset    int64 // of the terminal event
	status    tapedeck.Status
	resumable bool
	err       error // why it could not be ended; nil if it was
}

// A terminal is the event that will end a run. The ids that AG-UI requires are filled
// in when it is appended, because an external run has a threadId of its own.
type terminal struct {
	event     tapedeck.Event
	before    []tapedeck.Event // events before it, such as answers to pending questions
	status    tapedeck.Status
	resumable bool
}

// terminal returns how the run ends: stopped, failed or complete. It depends only on
// the cause of the stop and on the two errors.
func (r *run) terminal(agentErr, writeErr error) terminal {
	cause := context.Cause(r.ctx)
	started := r.queue.hasBegun()
	var late *timeout
	var over *overBudget
	switch {
	case errors.Is(cause, errCancelled), errors.Is(cause, errReverted):
		return cancelledEnd(started)
	case errors.Is(cause, errShutdown):
		return errorEnd(tapedeck.CodeInterrupted, "the server was stopped", tapedeck.StatusInterrupted)
	case errors.As(cause, &late):
		return errorEnd(late.code, late.message, tapedeck.StatusFailed)
	case errors.As(cause, &over):
		return errorEnd(codeBudget, over.message, tapedeck.StatusFailed)
	case refused(writeErr):
		return errorEnd("protocol", "the agent sent an event that does not fit: "+writeErr.Error(), tapedeck.StatusFailed)
	case writeErr != nil:
		return errorEnd("storage", "an event of the agent could not be stored", tapedeck.StatusFailed)
	case cause != nil: // a run that was stopped is never a success, also if its agent returns no error
		return errorEnd(payload.CodeRunEnded, "the run that started it stopped it", tapedeck.StatusFailed)
	case agentErr != nil:
		return errorEnd("agent", r.explain(agentErr), tapedeck.StatusFailed)
	}
	return successEnd()
}

func successEnd() terminal {
	return terminal{
		event: tapedeck.Event{Type: tapedeck.RunFinished, Data: object(map[string]any{
			"outcome": map[string]string{"type": payload.OutcomeSuccess},
		})},
		status: tapedeck.StatusComplete,
	}
}

// explain returns a runner's error in words for users.
func (r *run) explain(err error) string {
	var e *tapedeck.Error
	if errors.As(err, &e) && e.Kind != tapedeck.Internal {
		return e.Message
	}
	if !errors.Is(err, errPanicked) {
		r.engine.options.Logger.Error("an agent failed", "agent", r.agent.Name, "session", r.in.Session, "invocation", r.in.ID, "error", err)
	}
	return "the agent failed"
}

func cancelledEnd(resumable bool) terminal {
	return terminal{
		event: tapedeck.Event{Type: tapedeck.RunFinished, Data: object(map[string]any{
			"outcome":  map[string]string{"type": payload.OutcomeCancelled},
			"metadata": tapedeck.Meta{Resumable: &resumable}.In(nil),
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

// maxMessage is the largest number of bytes in an error's message, so that every
// message of an agent fits into the log.
const maxMessage = 4096

func brief(s string) string {
	if len(s) > maxMessage {
		s = s[:maxMessage] + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// refused reports whether an append would fail in the same way again.
func refused(err error) bool {
	k := tapedeck.KindOf(err)
	return k == tapedeck.Conflict || k == tapedeck.Invalid || k == tapedeck.TooLarge
}

// errEnded means that a run already has a terminal event.
var errEnded = errors.New("the run has ended")

// isOver reports whether err means that there is nothing to end any more: the run
// has ended, or its session is closed or deleted.
func isOver(err error) bool {
	k := tapedeck.KindOf(err)
	return errors.Is(err, errEnded) || k == tapedeck.NotFound || k == tapedeck.Gone || isClosed(err)
}

// isClosed reports whether err means that a session is closed.
func isClosed(err error) bool { return tapedeck.RefusalOf(err) == tapedeck.RefusedClosed }

// finish ends a run in one append, after closing what the run has open, newest first.
// Of several callers, only the first one appends; the others get errEnded.
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
		// The run opened or closed something meanwhile: form the events again.
	}
	return ending{err: err}
}

// closingEvents returns the last events of an open run, as of now.
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
		l.invalidate() // it was started without the engine, or its end was not written after all
	}
	return nil, errEnded
}

// endEvents returns the events that end a run, after those that end the runs of its
// sub-agents.
func endEvents(v *order.Verifier, runs []tapedeck.OpenRun, r *tapedeck.OpenRun, t terminal) (events []tapedeck.Event) {
	for i := range runs {
		if startedBy(&runs[i], r) {
			events = append(events, endEvents(v, runs, &runs[i], t.forDescendant())...)
		}
	}
	for _, ev := range v.Closing(r.Invocation) {
		markClosed(&ev, t.status, r.Implied)
		events = append(events, ev)
	}
	end := t.event
	end.Thread, end.Invocation, end.Actor = r.Thread, r.Invocation, "tapedeck"
	if r.Implied {
		end.Data = implied(end.Data)
	}
	return append(events, end)
}

// implied returns the data of the end of a run with the mark implied of [tapedeck.Meta]. The
// beginning of the run has that mark, too.
func implied(data json.RawMessage) json.RawMessage {
	var d tapedeck.Members
	_ = json.Unmarshal(data, &d) // the engine has made it
	var metadata tapedeck.Members
	_ = json.Unmarshal(d["metadata"], &metadata) // it may be absent
	ours := tapedeck.MetaOf(metadata)
	ours.Implied = true
	d["metadata"] = object(ours.In(metadata))
	return object(d)
}

// startedBy reports whether another run started a run as that of a sub-agent, which
// ends with it.
func startedBy(r, parent *tapedeck.OpenRun) bool {
	return r.Parent == parent.Invocation && r.Owner == parent.Owner
}

// withDescendants returns a run and the runs that end with it.
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

// parentRun returns the open run with which a run ends. It reports false if there is
// none.
func parentRun(runs []tapedeck.OpenRun, r *tapedeck.OpenRun) (tapedeck.OpenRun, bool) {
	for i := range runs {
		if startedBy(r, &runs[i]) {
			return runs[i], true
		}
	}
	return tapedeck.OpenRun{}, false
}

// forDescendant returns how a sub-agent's run ends when its parent run ends with t.
func (t terminal) forDescendant() terminal {
	switch t.status {
	case tapedeck.StatusCancelled:
		return cancelledEnd(false)
	case tapedeck.StatusInterrupted:
		return terminal{event: withoutUsage(t.event), status: t.status}
	}
	return childAbandoned()
}

// markClosed marks an event that closes something: the end of the run closed it, not
// the agent. implied is that of the run.
func markClosed(ev *tapedeck.Event, by tapedeck.Status, implied bool) {
	mark := object(map[string]any{"metadata": tapedeck.Meta{Closed: by, Implied: implied}.In(nil)})
	ev.Data = append(append(ev.Data[:len(ev.Data)-1], ','), mark[1:]...) // the data is not empty: it has an id
}

func hasRun(s *tapedeck.Session, invocation string) bool {
	return slices.ContainsFunc(s.Runs, func(r tapedeck.OpenRun) bool { return r.Invocation == invocation })
}
