package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner"
)

// tellSteered tells the agent of a run that there is something to get with Steer.
func (e *Engine) tellSteered(invocation string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.runs[invocation]; r != nil {
		select {
		case r.steered <- struct{}{}:
		default: // it was told, and has not asked yet
		}
	}
}

// whyNotSteered returns why the open run of a thread cannot get a task, "" if it can.
func (e *Engine) whyNotSteered(s *tapedeck.Session, t *api.Task, open *tapedeck.OpenRun, busy bool) string {
	if !busy {
		return "no run is open in the thread, so the input waits for its turn"
	}
	r := e.runIn(s, open.Invocation)
	switch {
	case r == nil:
		return "an outside program writes the open run, so the input waits for its end"
	case !steers(r.agent.Runner):
		return "the agent " + r.agent.Name + " takes no input while it runs, so the input waits for its end"
	case t.Agent != "" && t.Agent != r.agent.Name:
		return "the agent " + r.agent.Name + " is running and not " + t.Agent + ", so the input waits for its end"
	}
	return ""
}

func steers(r tapedeck.Runner) bool {
	c, ok := r.(runner.Capable)
	return ok && c.Capabilities().Steer
}

// steer is [tapedeck.Invocation.Steer] of a run.
func (r *run) steer(ctx context.Context) ([]json.RawMessage, error) {
	for range maxTries {
		s, err := r.engine.session(ctx, r.in.Session)
		list := slices.DeleteFunc(inputsIn(&s, r.in.Thread), func(in tapedeck.WaitingInput) bool { return in.When != api.WhenSteer })
		if err != nil || len(list) == 0 {
			return nil, err
		}
		if err := r.stored(ctx); err != nil {
			return nil, err
		}
		messages, err := r.takeInputs(ctx, &s, list)
		if !errors.Is(err, errNotWaiting) {
			return messages, err
		}
	}
	return nil, nil // they wait for the end of the run
}

// takeInputs appends the messages of inputs that the run gets.
func (r *run) takeInputs(ctx context.Context, s *tapedeck.Session, list []tapedeck.WaitingInput) (messages []json.RawMessage, err error) {
	var events []tapedeck.Event
	for _, in := range list {
		ev, q, err := r.engine.queuedEvent(ctx, s.ID, in)
		if err != nil {
			return nil, err
		}
		t := api.Task{Text: q.Text, MessageID: q.MessageID, Actor: ev.Actor}
		m := *task(&t)
		raw, _ := json.Marshal(m) // it has only an id and texts
		taken := event(payload.InputSteered{ID: in.ID, Invocation: r.in.ID}, ev.Actor)
		taken.Thread = in.Thread
		messages = append(messages, raw)
		events = append(events, taken, r.added(m, &t, r.engine.options.Now()))
	}
	_, err = r.engine.write(ctx, tapedeck.Append{Session: s.ID, Events: events}, func(now *tapedeck.Session, _ []tapedeck.Event) error {
		for _, in := range list {
			if !waits(now, in.ID) {
				return errNotWaiting
			}
		}
		return r.isOpen(now, nil)
	})
	return messages, err
}
