package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// Append appends events of a client. It normalizes AG-UI events to the form of the
// log; their order must be one that can be replayed. It refuses events of the
// session itself, which only verbs append, and AG-UI events of a run that an engine
// drives. The producer's timestamp is kept in the data; the event's own time is the
// server's.
func (e *Engine) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	return e.appendOutside(ctx, a, nil)
}

// appendOutside appends events of a client, after a rewind if back is not nil.
func (e *Engine) appendOutside(ctx context.Context, a tapedeck.Append, back *replacement) (tapedeck.Appended, error) {
	if len(a.Events) > e.options.MaxEvents {
		return tapedeck.Appended{}, tapedeck.Errorf(tapedeck.TooLarge, "the append has %d events; at most %d are allowed", len(a.Events), e.options.MaxEvents).
			WithHint("append them in several parts")
	}
	events := slices.Clone(a.Events)
	for i := range events {
		if err := fromOutside(&events[i]); err != nil {
			return tapedeck.Appended{}, tapedeck.AtIndex(err, i, len(events))
		}
	}
	t, err := e.lockAnswered(ctx, a.Session, events)
	if err != nil {
		return tapedeck.Appended{}, err
	}
	a.Events = back.before(events)
	check := a.Check
	done, err := e.write(ctx, a, func(s *tapedeck.Session, events []tapedeck.Event) error {
		if check != nil {
			if err := check(s); err != nil {
				return err
			}
		}
		if err := cmp.Or(back.check(s), notDriven(s, events)); err != nil {
			return err
		}
		e.leases.note(s, events, e.options.Now())
		return t.check(s)
	})
	t.unlock(err == nil)
	if err == nil && !done.Duplicate {
		done.First += back.len()
	}
	return done, err
}

// notDriven refuses AG-UI events of a run that an engine drives: only the owner of
// the run records the agent's events and its end. Tapedeck's own types are allowed,
// such as an answer to the agent's question, except those that only a runner sends.
func notDriven(s *tapedeck.Session, events []tapedeck.Event) error {
	for j := range s.Runs {
		r := &s.Runs[j]
		if r.Owner == "" {
			continue
		}
		for i := range events {
			if comesInto(&events[i], r) && isAgents(events[i].Type) {
				return tapedeck.Errorf(tapedeck.Conflict, "run %s is written by the server that drives it; a %s from elsewhere cannot be a part of it", r.Invocation, events[i].Type).
					WithHint("cancel it, or begin a run on another thread")
			}
		}
	}
	return nil
}

// comesInto reports whether an event belongs to a run. An event without an
// invocation belongs to the run of its thread.
func comesInto(ev *tapedeck.Event, r *tapedeck.OpenRun) bool {
	if ev.Invocation != "" || ev.Type == tapedeck.RunStarted {
		return ev.Invocation == r.Invocation
	}
	return ev.ThreadName() == r.Thread
}

// isAgents reports whether only an agent sends events of a type.
func isAgents(typ string) bool {
	switch typ {
	case tapedeck.AgentLinked, tapedeck.PermissionRequested, tapedeck.InstanceStarted, tapedeck.AttemptSuperseded,
		tapedeck.WorkflowStarted, tapedeck.WorkflowEntered, tapedeck.WorkflowWaiting, tapedeck.WorkflowCaught, tapedeck.WorkflowLeft,
		tapedeck.WorkflowFailed, tapedeck.WorkflowVariables, tapedeck.WorkflowMessage, tapedeck.WorkflowEnded:
		return true
	}
	return !strings.Contains(typ, ".")
}

// fromOutside checks an event of a client and removes what a client may not set.
func fromOutside(ev *tapedeck.Event) error {
	if strings.HasPrefix(ev.Type, "session.") {
		return tapedeck.Errorf(tapedeck.Invalid, "%s cannot be appended", ev.Type).
			WithHint("events of the session itself are made by its verbs, such as PATCH, DELETE and close")
	}
	if strings.HasPrefix(ev.Type, "input.") {
		return tapedeck.Errorf(tapedeck.Invalid, "%s cannot be appended", ev.Type).
			WithHint("send a task with when=queue; the server appends the events of inputs")
	}
	if err := checkChannel(ev); err != nil {
		return err
	}
	if ev.Type == tapedeck.AgentStarted { // a restart would kill the process that a client names here
		return tapedeck.Errorf(tapedeck.Invalid, "%s cannot be appended", ev.Type).WithHint("only the server appends it, for agents that it started")
	}
	if ev.Type == tapedeck.AgentLinked { // the next task would continue the conversation that a client names here, which may be another user's
		return tapedeck.Errorf(tapedeck.Invalid, "%s cannot be appended", ev.Type).WithHint("only the server appends it, for agents that it runs")
	}
	if ev.Time.IsZero() && ev.Type != tapedeck.RunStarted {
		return nil // the store checks it
	}
	if err := ev.Check(); err != nil {
		return err
	}
	var d map[string]json.RawMessage
	if len(ev.Data) > 0 && json.Unmarshal(ev.Data, &d) != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "the data of %s cannot be read", ev.Type)
	}
	if ev.Type == tapedeck.RunStarted {
		disown(ev, d)
		if err := checkLease(d["metadata"]); err != nil {
			return err
		}
	}
	if !ev.Time.IsZero() {
		keepTime(ev, d)
	}
	return nil
}

// checkChannel refuses unknown channels, because no reader could select them, and
// the channel session, because its events pass every filter.
func checkChannel(ev *tapedeck.Event) error {
	switch ev.Channel {
	case "", tapedeck.ChannelChunks, tapedeck.ChannelToolCalls, tapedeck.ChannelAgentState,
		tapedeck.ChannelWorkflow, tapedeck.ChannelTerminal, tapedeck.ChannelPresence:
		return nil
	case tapedeck.ChannelSession:
		if tapedeck.ChannelOf(ev.Type) == tapedeck.ChannelSession {
			return nil
		}
		return tapedeck.Errorf(tapedeck.Invalid, "%s cannot be in the channel session, which is the session's own", ev.Type).WithHint(channelHint)
	}
	return tapedeck.Errorf(tapedeck.Invalid, "there is no channel %q", ev.Channel).WithHint(channelHint)
}

const channelHint = "the channels are chunks, toolCalls, agentState, workflow, terminal and presence; leave it out for a type of the catalogue"

// disown removes the owner from a client's RUN_STARTED. Only an engine may be an
// owner: otherwise a copied event would begin a run that no lease ever ends.
func disown(ev *tapedeck.Event, d map[string]json.RawMessage) {
	ours := tapedeck.MetaOf(d["metadata"])
	if ours.Owner == "" {
		return
	}
	var metadata tapedeck.Members
	_ = json.Unmarshal(d["metadata"], &metadata) // it has an owner, so it is an object
	ours.Owner = ""
	d["metadata"] = object(ours.In(metadata))
	ev.Data = object(d)
}

// minLease is the shortest lease of a run. A program that renews it every third of the time
// must survive a pause of its garbage collector, or a slow network.
const minLease = time.Second

// checkLease refuses a lease of a RUN_STARTED that the engine could not keep.
func checkLease(metadata json.RawMessage) error {
	raw := jsonobj.Member(jsonobj.Member(metadata, "tapedeck"), "leaseMs")
	if raw == nil {
		return nil
	}
	if ms := tapedeck.MetaOf(metadata).LeaseMS; ms < minLease.Milliseconds() {
		return tapedeck.Errorf(tapedeck.Invalid, "the lease of a run is a whole number of milliseconds, at least %d, not %.40s", minLease.Milliseconds(), raw).
			WithHint("leave leaseMs out for the lease of the server")
	}
	return nil
}

// keepTime moves the time that a producer gave into the data, unless the data has a
// timestamp.
func keepTime(ev *tapedeck.Event, d map[string]json.RawMessage) {
	at := ev.Time.UnixMilli()
	ev.Time = time.Time{}
	if _, ok := d["timestamp"]; ok {
		return
	}
	data := []byte{'{'}
	if len(d) > 0 {
		data = append(bytes.TrimSuffix(bytes.TrimSpace(slices.Clone(ev.Data)), []byte("}")), ',')
	}
	ev.Data = append(strconv.AppendInt(append(data, `"timestamp":`...), at, 10), '}')
}

// A guard can refuse an append. The store's writer calls it before all other checks,
// with the events in the form of the log. A nil guard refuses nothing.
type guard func(*tapedeck.Session, []tapedeck.Event) error

// maxTries is how often an append with a stale ledger is tried. One repetition is
// usual after a restart or a failed commit. Many mean that another program keeps
// writing to the store without the engine.
const maxTries = 50

// write normalizes events, checks their order and appends them.
func (e *Engine) write(ctx context.Context, a tapedeck.Append, g guard) (tapedeck.Appended, error) {
	given, parts, closes := a.Events, a.Parts, a.Close
	for range maxTries {
		l, v, err := e.current(ctx, a.Session)
		if err != nil {
			return tapedeck.Appended{}, err
		}
		t := formAttempt(v, given, parts)
		var advanced atomic.Bool // the store may still call Check after ctx is done
		a.Events, a.Parts = t.events, t.parts
		a.Check = func(s *tapedeck.Session) error {
			err := mayEnter(s, t, g)
			if err == nil {
				err = l.advance(s, t, closes)
			}
			if err == nil {
				advanced.Store(true)
			}
			return err
		}
		done, err := e.store.Append(ctx, a)
		if err != nil && advanced.Load() {
			l.invalidate() // the ledger advanced by events that were probably not written
		}
		if !errors.Is(err, errStale) {
			return done, err
		}
	}
	return tapedeck.Appended{}, tapedeck.Errorf(tapedeck.Unavailable, "session %s is being written by someone else", a.Session).WithHint("try again")
}

func mayEnter(s *tapedeck.Session, t *attempt, g guard) error {
	if s.Kind != tapedeck.KindSession {
		return tapedeck.Errorf(tapedeck.NotFound, "there is no session %q", s.ID)
	}
	if g == nil {
		return nil
	}
	return g(s, t.events)
}
