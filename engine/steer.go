package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner"
	"github.com/tapedeck/tapedeck/view"
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
		return notServed("") + ", so the input waits for its end"
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
		list := slices.DeleteFunc(inputsIn(&s, r.in.Thread), func(in tapedeck.WaitingInput) bool { return in.Outside || in.When != api.WhenSteer })
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
	var taken []tapedeck.WaitingInput
	for _, in := range list {
		ev, q, err := r.engine.queuedEvent(ctx, s.ID, in)
		if err != nil {
			return nil, err
		}
		if q.Agent != "" && q.Agent != r.agent.Name {
			continue // it was for a run before this one
		}
		m, delivery := r.engine.delivery(&ev, &q, r.in.ID, r.instance)
		raw, _ := json.Marshal(m) // it has only an id and texts
		messages = append(messages, raw)
		events = append(events, delivery...)
		taken = append(taken, in)
	}
	if len(taken) == 0 {
		return nil, nil
	}
	_, err = r.engine.write(ctx, tapedeck.Append{Session: s.ID, Events: events}, func(now *tapedeck.Session, _ []tapedeck.Event) error {
		for _, in := range taken {
			if err := checkWaits(now, in.ID); err != nil {
				return err
			}
		}
		return r.isOpen(now, nil)
	})
	return messages, err
}

// delivery returns the message of an input that an open run of an instance gets, and the events
// that say so. ev is the event that queued it.
func (e *Engine) delivery(ev *tapedeck.Event, q *payload.InputQueued, invocation, instance string) (payload.Message, []tapedeck.Event) {
	m := *task(&api.Task{Text: q.Text, MessageID: q.MessageID})
	steered := event(payload.InputSteered{ID: q.ID, Invocation: invocation}, ev.Actor)
	added := event(payload.MessageAdded{Message: m}, ev.Actor)
	steered.Thread, added.Thread = ev.Thread, ev.Thread
	added.Invocation, added.Instance, added.Time = invocation, instance, e.options.Now()
	return m, []tapedeck.Event{steered, added}
}

// Take gives an input that waits for an outside program to the open run of that program. The
// same call again has the same answer. Errors are those of [Engine.Withdraw]; it is also a
// [tapedeck.Conflict] if the input is for an agent of this server, or if the run is not the
// open one of the thread.
func (e *Engine) Take(ctx context.Context, t api.Take) (api.Taken, error) {
	if err := tapedeck.CheckID("the run", t.Invocation); err != nil {
		return api.Taken{}, err
	}
	s, err := e.session(ctx, t.Session)
	if err != nil {
		return api.Taken{}, err
	}
	i := slices.IndexFunc(s.Inputs, func(in tapedeck.WaitingInput) bool { return in.ID == t.Input })
	if i < 0 {
		return e.takenBefore(ctx, &s, &t)
	}
	in := s.Inputs[i]
	ev, q, err := e.queuedEvent(ctx, s.ID, in)
	if err != nil {
		return api.Taken{}, err
	}
	if !in.Outside {
		return api.Taken{}, tapedeck.Errorf(tapedeck.Conflict, "the input %s waits for an agent of this server, which runs it", in.ID)
	}
	if err = e.mayTake(&s, &in, t.Invocation); err == nil {
		err = e.isFor(ctx, &s, &in, q.Agent)
	}
	if err != nil {
		return api.Taken{}, err
	}
	open, _ := s.Run(in.Thread)
	begun, err := eventAt(ctx, e.store, s.ID, open.Offset)
	if err != nil {
		return api.Taken{}, err
	}
	m, events := e.delivery(&ev, &q, t.Invocation, begun.Instance)
	done, err := e.write(ctx, tapedeck.Append{Session: s.ID, Events: events}, func(now *tapedeck.Session, _ []tapedeck.Event) error {
		if now.Gen != s.Gen {
			return tapedeck.Errorf(tapedeck.NotFound, "session %s was deleted", s.ID)
		}
		return cmp.Or(e.mayTake(now, &in, t.Invocation), checkWaits(now, in.ID))
	})
	if errors.Is(err, errNotWaiting) {
		return e.takenBefore(ctx, &s, &t)
	}
	return api.Taken{Input: in.ID, Invocation: t.Invocation, Offset: done.First + 1, Message: m}, err
}

// isFor returns an error unless an input is for the agent of the open run of its thread. The
// append need not check it again: a run keeps its agent.
func (e *Engine) isFor(ctx context.Context, s *tapedeck.Session, in *tapedeck.WaitingInput, agent string) error {
	open, _ := s.Run(in.Thread)
	writer, err := e.writerOf(ctx, s, &open)
	if err == nil && writer != agent {
		err = tapedeck.Errorf(tapedeck.Conflict, "the input %s is for %s, and the run %s is of %s", in.ID, named(agent), open.Invocation, named(writer))
	}
	return err
}

func named(agent string) string {
	if agent == "" {
		return "a program without a name"
	}
	return "the agent " + agent
}

// mayTake returns an error unless a run is the open one of the thread of an input, and an outside
// program writes it.
func (e *Engine) mayTake(s *tapedeck.Session, in *tapedeck.WaitingInput, invocation string) error {
	open, busy := s.Run(in.Thread)
	at := slices.IndexFunc(s.Runs, func(r tapedeck.OpenRun) bool { return r.Invocation == invocation })
	switch {
	case at >= 0 && s.Runs[at].Thread != in.Thread:
		return tapedeck.Errorf(tapedeck.Conflict, "the run %s is in thread %s, and the input %s waits in thread %s", invocation, s.Runs[at].Thread, in.ID, in.Thread)
	case at < 0 && busy:
		return tapedeck.Errorf(tapedeck.Conflict, "the run %s is not open", invocation).WithHint("the open run of thread %s is %s", in.Thread, open.Invocation)
	case at < 0:
		return tapedeck.Errorf(tapedeck.Conflict, "the run %s is not open", invocation).WithHint("append a RUN_STARTED with a new id in thread %s first", in.Thread)
	case e.runIn(s, invocation) != nil:
		return tapedeck.Errorf(tapedeck.Conflict, "this server drives the run %s, and not an outside program", invocation)
	}
	return nil
}

// takenBefore answers a [Engine.Take] of an input that does not wait any more.
func (e *Engine) takenBefore(ctx context.Context, s *tapedeck.Session, t *api.Take) (api.Taken, error) {
	in, err := e.input(ctx, s.ID, t.Input)
	if err != nil || in.Status != view.InputSteered || in.Invocation != t.Invocation || in.EndOffset == nil {
		return api.Taken{}, cmp.Or(err, e.explainNotWaiting(ctx, s, t.Input))
	}
	ev, err := eventAt(ctx, e.store, s.ID, *in.EndOffset+1)
	if err != nil {
		return api.Taken{}, err
	}
	d, err := payload.DecodeAs[payload.MessageAdded](ev)
	return api.Taken{Input: in.ID, Invocation: t.Invocation, Offset: ev.Offset, Message: d.Message, Repeated: true}, err
}
