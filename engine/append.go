package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
)

// Append appends events from outside. AG-UI events are brought into the form
// that the log keeps and must come in an order that can be replayed; events of
// the session's own life are refused, for they are made by verbs, and so are
// AG-UI events of a run that an engine drives. What a producer says of time is
// kept in the data; the event's own time is ours.
func (e *Engine) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
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
	a.Events = events
	check := a.Check
	done, err := e.write(ctx, a, func(s *tapedeck.Session, events []tapedeck.Event) error {
		if check != nil {
			if err := check(s); err != nil {
				return err
			}
		}
		if err := notDriven(s, events); err != nil {
			return err
		}
		e.leases.note(s, events, e.options.Now())
		return t.check(s)
	})
	t.unlock(err == nil)
	return done, err
}

// notDriven refuses AG-UI events of a run that an engine drives: only the holder
// of its lease says what the agent does, and how it ends. Types of ours may
// come, such as the answer to a question of the agent, but none of those that
// only the agent's runner knows.
func notDriven(s *tapedeck.Session, events []tapedeck.Event) error {
	for j := range s.Runs {
		r := &s.Runs[j]
		if r.Owner == "" {
			continue
		}
		for i := range events {
			if comesInto(&events[i], r) && isAgents(events[i].Type) {
				return tapedeck.Errorf(tapedeck.Conflict, "run %s is written by the server that drives it; a %s from elsewhere cannot come into it", r.Invocation, events[i].Type).
					WithHint("cancel it, or begin a run on another thread")
			}
		}
	}
	return nil
}

// comesInto reports whether an event belongs to a run. An event that fits
// nowhere names no invocation yet; it was meant for the run of its thread.
func comesInto(ev *tapedeck.Event, r *tapedeck.OpenRun) bool {
	if ev.Invocation != "" || ev.Type == tapedeck.RunStarted {
		return ev.Invocation == r.Invocation
	}
	return ev.ThreadName() == r.Thread
}

// isAgents reports whether events of a type are the agent's to make.
func isAgents(typ string) bool {
	switch typ {
	case tapedeck.AgentLinked, tapedeck.PermissionRequested, tapedeck.InstanceStarted:
		return true
	}
	return !strings.Contains(typ, ".")
}

// fromOutside checks an event of a client and takes from it what is not the
// client's to say.
func fromOutside(ev *tapedeck.Event) error {
	if strings.HasPrefix(ev.Type, "session.") {
		return tapedeck.Errorf(tapedeck.Invalid, "%s cannot be appended", ev.Type).
			WithHint("events of the session itself are made by its verbs, such as PATCH, DELETE and close")
	}
	if err := checkChannel(ev); err != nil {
		return err
	}
	if ev.Type == tapedeck.AgentStarted { // or a restart would end a process that somebody outside has named
		return tapedeck.Errorf(tapedeck.Invalid, "%s cannot be appended", ev.Type).WithHint("it is for agents that the server itself has started")
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
	}
	if !ev.Time.IsZero() {
		keepTime(ev, d)
	}
	return nil
}

// checkChannel refuses a channel by which nobody could ask for the event, and that
// of the session's own events, which pass every filter.
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

// disown takes from a RUN_STARTED the owner that only an engine may be. Else a
// copy of one of ours would be a run that no lease ever ends.
func disown(ev *tapedeck.Event, d map[string]json.RawMessage) {
	var metadata, ours map[string]json.RawMessage
	if !owned(ev.Data) || json.Unmarshal(d["metadata"], &metadata) != nil || json.Unmarshal(metadata[tapedeck.VendorKey], &ours) != nil {
		return
	}
	delete(ours, "owner")
	metadata[tapedeck.VendorKey] = object(ours)
	d["metadata"] = object(metadata)
	ev.Data = object(d)
}

// owned reports whether a run would have an owner, as the catalogue reads it.
func owned(data json.RawMessage) bool {
	var s tapedeck.Session
	s.Apply(&tapedeck.Event{Type: tapedeck.RunStarted, Data: data})
	return s.Runs[0].Owner != ""
}

// keepTime moves the time that a producer gave into the data, unless that has
// one.
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

// A guard, if not nil, is asked first, in the store's writer, with the events in
// the form of the log.
type guard func(*tapedeck.Session, []tapedeck.Event) error

// maxTries bounds how often an append is tried whose ledger was stale. One
// repetition is usual after a restart or a failed commit; many mean that
// somebody writes past the engine all the time.
const maxTries = 50

// write appends events that must be in order, brought into the form of the log.
func (e *Engine) write(ctx context.Context, a tapedeck.Append, g guard) (tapedeck.Appended, error) {
	given, closes := a.Events, a.Close
	for range maxTries {
		l, v, err := e.current(ctx, a.Session)
		if err != nil {
			return tapedeck.Appended{}, err
		}
		t := formAttempt(v, given)
		var counted atomic.Bool // a store may go on after ctx is done
		a.Events = t.events
		a.Check = func(s *tapedeck.Session) error {
			err := mayEnter(s, t, g)
			if err == nil {
				err = l.advance(s, t, closes)
			}
			if err == nil {
				counted.Store(true)
			}
			return err
		}
		done, err := e.store.Append(ctx, a)
		if err != nil && counted.Load() {
			l.invalidate() // it counted on them, and as far as we know they were not written
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
