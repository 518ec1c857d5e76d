package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A runner reports the sub-agents of its agent as AG-UI does, in the run of the agent:
// their starts and ends, and events that are tagged with their subagentRunId. In the
// log, each sub-agent has a run of its own on a thread of its own. The run that
// started it only has its start, with the name of its thread, and its end.

// subThread returns the name of the thread of a sub-agent. It is derived from the
// start of the sub-agent, so that one that is started again continues its thread.
func subThread(invocation, key string) string {
	sum := sha256.Sum256([]byte("subagent " + key + " of " + invocation))
	return payload.SubThreadPrefix + hex.EncodeToString(sum[:13])
}

// subagents has the open sub-agents of a run. Only the goroutine that runs the agent
// uses it.
type subagents struct {
	open    map[string]*subagent // by subagentRunId
	owners  map[string]*subagent // the owner of each message and call, by kind and id: later events need no tag
	started map[string]bool      // threads that have an instance.started
}

// A subagent is an open sub-agent.
type subagent struct {
	d                                    payload.SubagentStarted
	above                                *subagent // the sub-agent that started it; nil for the agent itself
	thread, invocation, instance, parent string    // parent is the invocation that started it
	actor                                string
	order                                *order.Verifier // knows what the sub-agent has open
	owns                                 []string        // its keys in subagents.owners
	usage                                tally
}

// maxOwned is how many messages and calls of one sub-agent have a known owner.
const maxOwned = 4096

// accept queues an event of the agent, in the run to which it belongs, with the
// events that follow from it. It reports false if the queue accepts no more.
func (r *run) accept(ev tapedeck.Event) bool {
	a := &r.subagents
	switch {
	case ev.Type == tapedeck.SubagentStarted:
		return r.subStarted(ev)
	case len(a.open) == 0:
	case ev.Type == tapedeck.SubagentFinished, ev.Type == tapedeck.SubagentError:
		return r.subEnded(ev)
	default:
		if s, tagged := a.ownerOf(&ev); s != nil {
			s.adopt(&ev, tagged)
			a.noteOwner(s, &ev)
			return r.queue.push(ev)
		}
	}
	r.captureText(&ev)
	return r.queue.push(ev)
}

// subStarted begins the run of a sub-agent. It passes an event that does not fit on
// as it is, because the log refuses it.
func (r *run) subStarted(ev tapedeck.Event) bool {
	a := &r.subagents
	d, err := payload.DecodeAs[payload.SubagentStarted](ev)
	if err != nil || a.open[d.SubagentRunID] != nil {
		return r.queue.push(ev)
	}
	s := &subagent{d: d, above: a.open[d.ParentSubagentRunID], invocation: tapedeck.NewID("inv_"), parent: r.in.ID, order: order.NewVerifier()}
	above := r.instance
	if s.above != nil {
		s.parent, above = s.above.invocation, s.above.instance
	}
	s.thread = a.newThread(r.in.ID, &d)
	s.instance = view.AgentInstance(r.in.Session, d.Name, s.thread)
	s.actor = "agent:" + d.Name
	if tapedeck.CheckName("the actor", s.actor) != nil {
		s.actor = ev.Actor
	}
	d.ParentSubagentRunID = "" // it is in the run of its parent
	d.Metadata = tapedeck.Meta{Thread: s.thread, Invocation: s.invocation}.In(d.Metadata)
	ev.Data = payload.NewEvent(d).Data
	if s.above != nil {
		s.above.adopt(&ev, false)
	}
	events := []tapedeck.Event{ev}
	if !a.started[s.thread] {
		events = append(events, s.event(&ev, payload.NewEvent(payload.InstanceStarted{ID: s.instance, Name: d.Name, Parent: above})))
	}
	events = append(events, s.event(&ev, runStarted(s.thread, s.invocation, s.parent, tapedeck.Meta{Agent: d.Name, Owner: r.owner}, nil)))
	a.add(s)
	return r.pushAll(events)
}

// subEnded ends the run of a sub-agent, and the runs that it started.
func (r *run) subEnded(ev tapedeck.Event) bool {
	var d struct {
		ID string `json:"subagentRunId"`
	}
	s := (*subagent)(nil)
	if json.Unmarshal(ev.Data, &d) == nil {
		s = r.subagents.open[d.ID]
	}
	if s == nil {
		return r.queue.push(ev)
	}
	events := r.subagents.endEvents(s, &ev, s.terminal(&ev))
	if s.above != nil {
		s.above.adopt(&ev, false)
	}
	return r.pushAll(append(events, ev))
}

func (r *run) pushAll(events []tapedeck.Event) bool {
	for _, ev := range events {
		if !r.queue.push(ev) {
			return false
		}
	}
	return true
}

// terminal returns how the run of a sub-agent ends, from the event that ends the
// sub-agent.
func (s *subagent) terminal(ev *tapedeck.Event) terminal {
	if ev.Type == tapedeck.SubagentError {
		d, _ := payload.DecodeAs[payload.SubagentError](*ev) // data that cannot be read has no code and no message
		return errorEnd(d.Code, d.Message, tapedeck.StatusFailed)
	}
	d, _ := payload.DecodeAs[payload.SubagentFinished](*ev)
	end := payload.RunFinished{ThreadID: s.thread, RunID: s.invocation, Result: d.Result, Outcome: &payload.Outcome{Type: payload.OutcomeSuccess}}
	if d.Outcome != nil && d.Outcome.Type == payload.OutcomeSuspended && len(d.Outcome.InterruptIDs) > 0 {
		end.Outcome.Type = payload.OutcomeInterrupt
		for _, id := range d.Outcome.InterruptIDs {
			end.Outcome.Interrupts = append(end.Outcome.Interrupts, payload.Interrupt{ID: id, Reason: "subagent"})
		}
	}
	return terminal{event: payload.NewEvent(end), status: tapedeck.StatusComplete}
}

// newThread returns the thread of a new sub-agent: that of its tool call, unless
// another open sub-agent uses it.
func (a *subagents) newThread(invocation string, d *payload.SubagentStarted) string {
	if d.ParentToolCallID != "" {
		thread := subThread(invocation, "call "+d.ParentToolCallID)
		for _, other := range a.open {
			if other.thread == thread {
				return subThread(invocation, d.SubagentRunID)
			}
		}
		return thread
	}
	return subThread(invocation, d.SubagentRunID)
}

func (a *subagents) add(s *subagent) {
	if a.open == nil {
		a.open, a.owners, a.started = map[string]*subagent{}, map[string]*subagent{}, map[string]bool{}
	}
	a.open[s.d.SubagentRunID], a.started[s.thread] = s, true
}

// endEvents returns the events that end the run of a sub-agent, after those that end
// the runs which it started.
func (a *subagents) endEvents(s *subagent, by *tapedeck.Event, t terminal) (events []tapedeck.Event) {
	for _, other := range a.open {
		if other.above == s {
			events = append(events, a.endEvents(other, by, childAbandoned())...)
		}
	}
	for _, ev := range s.order.Closing(s.invocation) {
		markClosed(&ev, t.status, false)
		events = append(events, s.event(by, ev))
	}
	t.event.Actor = "tapedeck"
	s.usage.addTo(&t.event)
	delete(a.open, s.d.SubagentRunID)
	for _, key := range s.owns {
		delete(a.owners, key)
	}
	return append(events, s.event(by, t.event))
}

// childAbandoned returns how the open run of a sub-agent ends when its parent run has
// ended.
func childAbandoned() terminal {
	return errorEnd(payload.CodeRunEnded, "the run ended before the sub-agent did", tapedeck.StatusFailed)
}

// event moves an event of the engine into the run of the sub-agent.
func (s *subagent) event(by *tapedeck.Event, ev tapedeck.Event) tapedeck.Event {
	ev.Time = by.Time
	s.adopt(&ev, false)
	return ev
}

// adopt moves an event into the run of the sub-agent. tagged means that its data
// names the sub-agent; in its own run, that tag must not be there.
func (s *subagent) adopt(ev *tapedeck.Event, tagged bool) {
	ev.Thread, ev.Invocation = s.thread, s.invocation
	if ev.Actor != "tapedeck" {
		ev.Actor = s.actor
	}
	if ev.Instance = s.instance; isDelta(ev.Type) {
		ev.Instance = ""
	}
	if tagged {
		ev.Data = untag(ev.Data)
	}
	if ev.Type == tapedeck.UsageReported {
		s.usage.add(ev)
	}
	_ = s.order.Add(ev) // the log refuses the same event later, and reports it
}

// untag removes subagentRunId from the data of an event, and from the message in it.
func untag(data json.RawMessage) json.RawMessage {
	var d, m map[string]json.RawMessage
	if json.Unmarshal(data, &d) != nil {
		return data
	}
	delete(d, "subagentRunId")
	if json.Unmarshal(d["message"], &m) == nil && m["subagentRunId"] != nil {
		delete(m, "subagentRunId")
		d["message"] = object(m)
	}
	return object(d)
}

// ids has the ids in the data of an event.
type ids struct {
	Subagent string `json:"subagentRunId"`
	Message  any    `json:"message"` // some types have a string here
	ID       string `json:"messageId"`
	Call     string `json:"toolCallId"`
	Parent   string `json:"parentMessageId"`
	Entity   string `json:"entityId"`
}

// ownerOf returns the sub-agent to which an event belongs, nil for the agent itself,
// and whether the event is tagged with it.
func (a *subagents) ownerOf(ev *tapedeck.Event) (s *subagent, tagged bool) {
	var d ids
	if strings.HasPrefix(ev.Type, "RUN_") || strings.HasPrefix(ev.Type, "session.") || json.Unmarshal(ev.Data, &d) != nil {
		return nil, false
	}
	if m, ok := d.Message.(map[string]any); ok && d.Subagent == "" {
		d.Subagent, _ = m["subagentRunId"].(string)
	}
	switch {
	case d.Subagent != "":
		s = a.open[d.Subagent]
		return s, s != nil
	case !payload.IsAGUI(ev.Type):
		return nil, false
	}
	for _, key := range d.keys(ev.Type) {
		if s := a.owners[key]; s != nil {
			return s, false
		}
	}
	return nil, false
}

// keys returns the keys in subagents.owners that can tell the owner of an event.
func (d *ids) keys(typ string) []string {
	switch {
	case typ == tapedeck.ToolCallStart:
		return []string{"text " + d.Parent}
	case strings.HasPrefix(typ, "TOOL_CALL_"):
		return []string{"call " + d.Call}
	case typ == tapedeck.ReasoningEncryptedValue:
		return []string{"thought " + d.Entity, "text " + d.Entity, "call " + d.Entity}
	}
	return []string{kindOf(typ) + d.ID}
}

func kindOf(typ string) string {
	switch {
	case strings.HasPrefix(typ, "REASONING_"):
		return "thought "
	case strings.HasPrefix(typ, "ACTIVITY_"):
		return "activity "
	}
	return "text "
}

// noteOwner records the owner of the message or call that an event begins.
func (a *subagents) noteOwner(s *subagent, ev *tapedeck.Event) {
	var d ids
	switch ev.Type {
	case tapedeck.TextMessageStart, tapedeck.ReasoningStart, tapedeck.ReasoningMessageStart, tapedeck.ActivitySnapshot, tapedeck.ToolCallStart:
	default:
		return
	}
	if json.Unmarshal(ev.Data, &d) != nil {
		return
	}
	key := kindOf(ev.Type) + d.ID
	if ev.Type == tapedeck.ToolCallStart {
		key = "call " + d.Call
	}
	if a.owners[key] == s {
		return
	}
	a.owners[key] = s
	if s.owns = append(s.owns, key); len(s.owns) > maxOwned {
		for _, old := range s.owns[:maxOwned/2] {
			delete(a.owners, old)
		}
		s.owns = append([]string(nil), s.owns[maxOwned/2:]...)
	}
}
