package engine

import (
	"cmp"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner"
)

// opening returns the events that begin a run. The user's text is one of them; the
// context that the agent gets in front of it is recorded separately. The earlier
// messages come first, because they are history for the agent.
func (r *run) opening(t api.Task) []tapedeck.Event {
	begin := r.started(&t)
	var events []tapedeck.Event
	if t.Queued != "" {
		started := event(payload.InputStarted{ID: t.Queued, Invocation: r.in.ID}, t.Actor)
		started.Thread, started.Time = r.in.Thread, begin.Time
		events = append(events, started)
	}
	for _, m := range earlier(t.Messages) {
		events = append(events, r.added(m, &t, begin.Time))
	}
	if r.prompt != nil {
		events = append(events, r.ours(payload.NewPrompt(*r.prompt), begin.Time))
	}
	if r.message != nil {
		events = append(events, r.added(*r.message, &t, begin.Time))
	}
	for _, ev := range r.own {
		r.stamp(&ev)
		ev.Time = begin.Time
		events = append(events, ev)
	}
	events = append(events, begin)
	if t.State != nil {
		state := r.ours(payload.StateSnapshot{Snapshot: t.State}, begin.Time)
		state.Actor = t.Actor
		events = append(events, state)
	}
	if r.lost > 0 {
		events = append(events, r.lossEvent())
	}
	return events
}

// task returns the message that is the task, nil if the client sent only other
// messages, such as the answer of a tool, and for a run that continues after a crash.
func task(t *api.Task) *payload.Message {
	switch n := len(t.Messages); {
	case t.Text == "":
	case n == 0:
		m := payload.NewMessage(cmp.Or(t.MessageID, tapedeck.NewID("msg_")), payload.RoleUser, t.Text)
		return &m
	case t.Messages[n-1].Role == payload.RoleUser:
		return &t.Messages[n-1]
	}
	return nil
}

// earlier returns the messages of a client before the one that is the task.
func earlier(list []payload.Message) []payload.Message {
	if n := len(list); n > 0 && list[n-1].Role == payload.RoleUser {
		return list[:n-1]
	}
	return list
}

// added returns the event of a message that the client of a task sent.
func (r *run) added(m payload.Message, t *api.Task, at time.Time) tapedeck.Event {
	ev := event(payload.MessageAdded{Message: m}, t.Actor)
	ev.Thread, ev.Invocation, ev.Instance, ev.Time = r.in.Thread, r.in.ID, r.instance, at
	return ev
}

// ours returns an event of this run, at a time.
func (r *run) ours(p payload.Payload, at time.Time) tapedeck.Event {
	ev := payload.NewEvent(p)
	r.stamp(&ev)
	ev.Time = at
	return ev
}

// started returns the RUN_STARTED of a run.
func (r *run) started(t *api.Task) tapedeck.Event {
	meta := tapedeck.Meta{Agent: r.agent.Name, Resumes: r.in.Resumes, Context: r.in.Context, Trace: r.trace}
	if q, ok := r.agent.Runner.(runner.Equipped); ok {
		has := q.Equipment(r.in)
		meta.Model, meta.Tools, meta.Skills = has.Model, has.Tools, has.Skills
	}
	parent := ""
	if r.from.run != nil {
		parent = r.from.run.in.ID
	}
	meta.Owner = r.owner
	begin := runStarted(r.in.Thread, r.in.ID, parent, meta, t.Input)
	r.stamp(&begin)
	return begin
}

// runStarted returns the event that begins a run. The owner in meta is that of the run
// which a user started, because a run ends with the one that started it only if both
// have the same owner.
func runStarted(thread, invocation, parent string, meta tapedeck.Meta, input *payload.RunInput) tapedeck.Event {
	d := map[string]any{"threadId": thread, "runId": invocation, "metadata": meta.In(nil)}
	if parent != "" {
		d["parentRunId"] = parent
	}
	if input != nil {
		d["input"] = input
	}
	return tapedeck.Event{Type: tapedeck.RunStarted, Data: object(d)}
}

// lossEvent records that the resume context is incomplete.
func (r *run) lossEvent() tapedeck.Event {
	value := object(map[string]any{
		"reason": "the resume context leaves out a part of what the run before said or called", "bytes": len(r.in.Context), "left_out": r.lost,
	})
	ev := payload.NewEvent(payload.Custom{Name: "tapedeck.lossy", Value: value})
	r.stamp(&ev)
	return ev
}
