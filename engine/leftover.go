package engine

import (
	"context"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A trail has what a run without a driver left open.
type trail struct {
	open      map[string]tapedeck.Event // pending questions, by id
	order     []string                  // their ids, in the order of the log
	processes []payload.AgentStarted
}

// trailOf reads the events of an open run and of the runs that end with it. The run
// is the first one of runs.
func trailOf(ctx context.Context, log tapedeck.Log, session string, runs []tapedeck.OpenRun) (trail, error) {
	t := trail{open: map[string]tapedeck.Event{}}
	theirs := map[string]bool{}
	for _, r := range runs {
		theirs[r.Invocation] = true
	}
	for ev, err := range tapedeck.Events(ctx, log, session, runs[0].Offset) {
		if err != nil {
			return t, err
		}
		if theirs[ev.Invocation] || ev.Type == tapedeck.PermissionAnswered {
			t.addEvent(&ev)
		}
	}
	return t, nil
}

func (t *trail) addEvent(ev *tapedeck.Event) {
	switch ev.Type {
	case tapedeck.AgentStarted:
		var d payload.AgentStarted
		if json.Unmarshal(ev.Data, &d) == nil {
			t.processes = append(t.processes, d)
		}
	case tapedeck.PermissionRequested:
		if id := idOf(ev); id != "" {
			t.open[id] = *ev
			t.order = append(t.order, id)
		}
	case tapedeck.PermissionAnswered:
		delete(t.open, idOf(ev))
	}
}

func idOf(ev *tapedeck.Event) string {
	var d struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(ev.Data, &d)
	return d.ID
}

// cancelAnswers returns the events that cancel the pending questions.
func (t *trail) cancelAnswers() (events []tapedeck.Event) {
	for _, id := range t.order {
		q, ok := t.open[id]
		if !ok {
			continue
		}
		delete(t.open, id)
		ev := event(payload.PermissionAnswered{Choice: tapedeck.Choice{ID: id, Outcome: outcomeCancelled}}, "tapedeck")
		ev.Thread, ev.Invocation, ev.Instance = q.Thread, q.Invocation, q.Instance
		events = append(events, ev)
	}
	return events
}

// killLeftovers ends the processes that the agent of an interrupted run left. The
// log can be trusted about them: only the engine that drives a run can append
// agent.started.
func (e *Engine) killLeftovers(session string, r tapedeck.OpenRun, t *trail) {
	for _, p := range t.processes {
		killed, err := e.options.KillLeftover(p)
		log := e.options.Logger.With("session", session, "invocation", r.Invocation, "pid", p.PID)
		switch {
		case err != nil:
			log.Error("a process that an agent left running could not be ended", "error", err)
		case killed:
			log.Info("ended a process that an agent had left running")
		}
	}
}
