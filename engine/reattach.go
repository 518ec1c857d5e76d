package engine

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/runner"
)

// reattach makes this engine drive a run that an earlier process left open, if its
// agent works elsewhere and the runner can continue to listen to it, or if its state is
// in the log. It reports false if the run must be ended.
func (e *Engine) reattach(ctx context.Context, log *onePage, s *tapedeck.Session, open *tapedeck.OpenRun, kill bool) (bool, error) {
	if s.Closed {
		return false, nil
	}
	started, err := eventAt(ctx, log, s.ID, open.Offset)
	if err != nil {
		return false, err
	}
	if agent, ok := e.durableAgent(&started); ok {
		log.forget() // what follows appends
		return e.continueRun(ctx, s, open, &started, agent, kill)
	}
	if len(withDescendants(s.Runs, *open)) > 1 {
		return false, nil
	}
	agent, ok := e.reattachable(&started)
	if !ok {
		return false, nil
	}
	log.forget() // what follows appends
	r, err := e.adopt(ctx, s, open, agent)
	if err != nil || r == nil {
		return false, err
	}
	r.settled = e.trial.watch(s.ID)
	if err := e.register(r); err != nil {
		return false, err
	}
	if err := e.closeItems(ctx, s.ID, open); err != nil {
		e.unregister(r)
		return false, err
	}
	go r.drive()
	return true, nil
}

// continues reports whether an engine that does not leave runs would continue this one.
func (e *Engine) continues(ctx context.Context, log *onePage, s *tapedeck.Session, open *tapedeck.OpenRun) (bool, error) {
	if s.Closed {
		return false, nil
	}
	started, err := eventAt(ctx, log, s.ID, open.Offset)
	if err != nil {
		return false, err
	}
	_, durable := e.durableAgent(&started)
	_, elsewhere := e.reattachable(&started)
	return durable || elsewhere && len(withDescendants(s.Runs, *open)) == 1, nil
}

// reattachable returns the agent of a run, if it can be reattached to.
func (e *Engine) reattachable(started *tapedeck.Event) (*Agent, bool) {
	agent, ok := e.agentOf(started)
	if !ok {
		return nil, false
	}
	_, ok = agent.Runner.(runner.Reattaching)
	return agent, ok && agent.Available() == nil
}

// agentOf returns the agent of a run, if this engine has it.
func (e *Engine) agentOf(started *tapedeck.Event) (*Agent, bool) {
	name := metaOf(started).Agent
	agent, err := e.agent(name)
	return agent, name != "" && err == nil
}

// metaOf returns the members of Tapedeck in the metadata of an event.
func metaOf(ev *tapedeck.Event) tapedeck.Meta {
	var d struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if !ev.Unpack(&d) {
		return tapedeck.Meta{}
	}
	return tapedeck.MetaOf(d.Metadata)
}

// adopt returns a run that continues an open one, nil if it waits for an answer to a
// question, which nobody could give to the agent.
func (e *Engine) adopt(ctx context.Context, s *tapedeck.Session, open *tapedeck.OpenRun, agent *Agent) (*run, error) {
	t, err := trailOf(ctx, e.store, s.ID, []tapedeck.OpenRun{*open})
	if err != nil || len(t.open) > 0 || len(t.processes) > 0 {
		return nil, err
	}
	first, found, err := e.views.FindInvocation(ctx, s.ID, open.Invocation)
	if err != nil || !found {
		return nil, err
	}
	all, err := e.instances(ctx, s)
	if err != nil {
		return nil, err
	}
	r := newRun(e, agent, api.Task{Session: s.ID, Thread: open.Thread}, predecessor{budget: agent.Budget, instances: all})
	r.gen, r.in.ID, r.offset = s.Gen, open.Invocation, first
	r.queue.begun = true
	r.upTo = s.Head
	r.in.Begun = r.begun
	return r, nil
}

// begun is [tapedeck.Invocation.Begun] of a run.
func (r *run) begun(ctx context.Context) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for ev, err := range tapedeck.Events(ctx, r.engine.store, r.in.Session, r.offset) {
			if err == nil && r.upTo > 0 && ev.Offset >= r.upTo {
				return
			}
			if err == nil && ev.Invocation != r.in.ID {
				continue
			}
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

// closeItems closes the messages and calls that a run left open, so that its runner can
// open them again: it does not know which are open.
func (e *Engine) closeItems(ctx context.Context, session string, open *tapedeck.OpenRun) error {
	_, v, err := e.current(ctx, session)
	if err != nil {
		return err
	}
	events := v.Closing(open.Invocation)
	if len(events) == 0 {
		return nil
	}
	_, err = e.write(ctx, tapedeck.Append{Session: session, Events: events}, nil)
	return err
}
