package agui

import (
	"cmp"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A naming gives the messages and calls of a run ids that its thread has not used: agents
// use ids again in their next run. It gives those that [aguiwire.NamesOf] finds afterwards.
type naming struct {
	messages, calls ids
	renames         bool // some id is not that of the log
}

// ids has the ids of messages or of calls.
type ids struct {
	used map[string]bool   // the ids that the client has, except those in made
	own  map[string]string // the ids of what the run has begun, by the ids in the log
	made map[string]bool   // the values of own
}

func newIDs() ids { return ids{map[string]bool{}, map[string]string{}, map[string]bool{}} }

// free returns the id, or another one if the client has it already.
func (of *ids) free(id string, offset int64) string {
	for of.used[id] || of.made[id] { // more than once if the agent uses an id that we make
		id = aguiwire.Rename(id, offset)
	}
	return id
}

// learn notes the ids in a conversation as those of others, but for those of a run.
func (n *naming) learn(now *view.Snapshot, invocation string) {
	n.messages, n.calls, n.renames = newIDs(), newIDs(), false
	names := aguiwire.NamesOf(now)
	note := func(to *ids, by, id, name string) {
		switch {
		case id == "":
		case by == invocation:
			to.own[id], to.made[name] = name, true
			n.renames = n.renames || name != id
		default:
			to.used[name] = true
		}
	}
	for i := range now.Messages {
		m := &now.Messages[i]
		note(&n.messages, m.Invocation, m.ID, names.Message(m))
	}
	for i := range now.Calls {
		k := &now.Calls[i]
		note(&n.calls, k.Invocation, k.ID, names.Call(k))
		note(&n.messages, k.Invocation, cmp.Or(k.MessageID, names.Call(k)), names.Maker(k))
		if k.Result != nil {
			n.messages.used[names.Answer(k.Result)] = true
		}
	}
}

// begin returns the id of what begins with an event.
func (n *naming) begin(of *ids, id string, offset int64) string {
	if name, ok := of.own[id]; ok {
		return name
	}
	name := of.free(id, offset)
	n.renames = n.renames || name != id
	of.own[id], of.made[name] = name, true
	return name
}

// answer returns the id of the answer of a tool. Each is a message of its own.
func (n *naming) answer(id string, offset int64) string {
	name := n.messages.free(id, offset)
	n.renames = n.renames || name != id
	n.messages.used[name] = true
	return name
}

// name returns the id of what the run has begun. Another id is returned as it is: it belongs
// to another run.
func (of *ids) name(id string) string {
	if name, ok := of.own[id]; ok {
		return name
	}
	return id
}

// call returns the id of a call of the run; "" for "".
func (n *naming) call(id string) string { return n.calls.name(id) }

// restated notes that the agent has restated a message. What the run has begun is then the
// only one with its id.
func (n *naming) restated(m *payload.Message) {
	n.messages.restated(m.ID)
	for i := range m.ToolCalls {
		n.calls.restated(m.ToolCalls[i].ID)
	}
}

func (of *ids) restated(id string) {
	if name, ok := of.own[id]; ok {
		delete(of.made, name)
		delete(of.used, id)
		of.own[id], of.made[id] = id, true
	}
}

// outcome returns an outcome with the ids of the calls.
func (n *naming) outcome(o *payload.Outcome) *payload.Outcome {
	if o == nil || !n.renames {
		return o
	}
	out := *o
	out.Interrupts, out.PendingToolCallIDs = slices.Clone(o.Interrupts), slices.Clone(o.PendingToolCallIDs)
	for i := range out.Interrupts {
		out.Interrupts[i].ToolCallID = n.call(out.Interrupts[i].ToolCallID)
	}
	for i, id := range out.PendingToolCallIDs {
		out.PendingToolCallIDs[i] = n.call(id)
	}
	return &out
}

// event returns an event of the run with the ids of its messages and calls.
func (n *naming) event(e *tapedeck.Event) *tapedeck.Event {
	switch e.Type {
	case tapedeck.TextMessageStart, tapedeck.ReasoningMessageStart, tapedeck.ToolCallStart, tapedeck.ToolCallResult:
	case tapedeck.ActivitySnapshot, tapedeck.ActivityDelta: // an activity keeps its id in all runs
		return e
	case tapedeck.ReasoningStart, tapedeck.ReasoningEnd: // no message: a client knows it only while it is open
		return e
	default:
		if !n.renames {
			return e
		}
	}
	out, changed := []byte{'{'}, false
	o := jsonobj.Read(e.Data)
	for member, raw, ok := o.Next(); ok; member, raw, ok = o.Next() {
		out = jsonobj.AppendName(out, 1, string(member))
		id := jsonobj.StringOf(raw)
		if to := n.member(e, string(member), id); to != id {
			out, changed = jsonobj.AppendJSON(out, to), true
		} else {
			out = append(out, raw...)
		}
	}
	if !changed || o.Bad {
		return e
	}
	renamed := *e
	renamed.Data = append(out, '}')
	return &renamed
}

// member returns the value that a string member of an event gets.
func (n *naming) member(e *tapedeck.Event, name, id string) string {
	switch {
	case id == "":
		return id
	case name == "messageId" && e.Type == tapedeck.ToolCallResult:
		return n.answer(id, e.Offset)
	case name == "messageId" && openKinds[e.Type].member == "messageId",
		name == "parentMessageId" && e.Type == tapedeck.ToolCallStart:
		return n.begin(&n.messages, id, e.Offset)
	case name == "messageId", name == "parentMessageId":
		return n.messages.name(id)
	case name == "toolCallId" && e.Type == tapedeck.ToolCallStart:
		return n.begin(&n.calls, id, e.Offset)
	case name == "toolCallId", name == "parentToolCallId":
		return n.call(id)
	case name == "entityId" && jsonobj.StringIs(jsonobj.Member(e.Data, "subtype"), "tool-call"):
		return n.call(id)
	case name == "entityId":
		return n.messages.name(id)
	}
	return id
}
