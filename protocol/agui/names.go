package agui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A naming gives the messages and calls of a run ids that its thread has not used: agents
// use ids again, for messages of another kind or in their next run. It gives those that
// [aguiwire.NamesOf] finds afterwards.
type naming struct {
	messages, calls ids
	told            map[string]string // the ids of open messages of the kind told, by the ids in the log
	began           map[string]int64  // the offset at which the newest call of the run with an id began, by the id in the log
	unanswered      map[string]bool   // ids, in the log, of the calls that the client has without an answer
	renames         bool              // some id is not that of the log
}

// A thing is a message of a kind, or a call, by its id in the log.
type thing struct {
	kind aguiwire.Kind
	id   string
}

// ids has the ids of messages or of calls.
type ids struct {
	used map[string]bool  // the ids that the client has, except those in made
	own  map[thing]string // the ids of what the run has begun
	all  map[thing]string // those of the newest things, of any run
	made map[string]bool  // the values of own
}

func newIDs() ids {
	return ids{map[string]bool{}, map[thing]string{}, map[thing]string{}, map[string]bool{}}
}

func newNaming() naming {
	return naming{messages: newIDs(), calls: newIDs(), told: map[string]string{}, began: map[string]int64{}, unanswered: map[string]bool{}}
}

// free returns the id, or another one if the client has it already.
func (of *ids) free(id string, offset int64) string {
	for of.used[id] || of.made[id] { // more than once if the agent uses an id that we make
		id = aguiwire.Rename(id, offset)
	}
	return id
}

// note notes an id that the client has. ours means that the run continues what has it.
func (of *ids) note(t thing, name string, ours bool) {
	if t.id == "" {
		return
	}
	of.all[t] = name
	if ours {
		of.own[t], of.made[name] = name, true
	} else {
		of.used[name] = true
	}
}

// learn notes the ids in a conversation, from the point of view of a run.
func (n *naming) learn(now *view.Snapshot, invocation string) {
	*n = newNaming()
	names := aguiwire.NamesOf(now)
	for i := range now.Messages {
		m := &now.Messages[i]
		t, name := thing{aguiwire.KindOf(m.Role), m.ID}, names.Message(m)
		n.renames = n.renames || name != m.ID
		if t.kind == aguiwire.Told && m.Invocation == invocation && m.Status == tapedeck.StatusRunning {
			n.told[m.ID], n.renames = name, true
		}
		n.messages.note(t, name, t.kind == aguiwire.Activity || t.kind != aguiwire.Told && m.Invocation == invocation)
	}
	for i := range now.Calls {
		k := &now.Calls[i]
		if k.Name == "" { // nobody has made it, so the client does not have it
			continue
		}
		name, maker := names.Call(k), names.Maker(k)
		ours := k.Invocation == invocation
		n.renames = n.renames || name != k.ID || k.MessageID != "" && maker != k.MessageID
		n.calls.note(thing{id: k.ID}, name, ours)
		if ours {
			n.began[k.ID] = k.Offset
		}
		n.messages.note(thing{aguiwire.Agent, cmp.Or(k.MessageID, name)}, maker, ours)
		if n.unanswered[k.ID] = k.Result == nil; k.Result != nil {
			n.messages.used[names.Answer(k.Result)] = true
		}
	}
}

// begin returns the id of what begins with an event, or is begun again by it.
func (n *naming) begin(of *ids, t thing, offset int64) string {
	if name, ok := of.own[t]; ok {
		return name
	}
	name := of.free(t.id, offset)
	n.renames = n.renames || name != t.id
	of.note(t, name, true)
	return name
}

// start returns the id of a call, which begins with an event. Each is a call of its own.
func (n *naming) start(id string, offset int64) string {
	if at, ok := n.began[id]; ok && at == offset { // the client has connected meanwhile
		return n.call(id)
	}
	n.began[id] = offset
	name := n.calls.free(id, offset)
	n.renames = n.renames || name != id
	n.calls.note(thing{id: id}, name, true)
	return name
}

// say returns the id of a message of the kind told, which begins with an event. Each is a
// message of its own.
func (n *naming) say(id string, offset int64) string {
	name := n.messages.free(id, offset)
	n.renames = n.renames || name != id
	n.messages.note(thing{aguiwire.Told, id}, name, false)
	return name
}

// answer returns the id of the answer of a tool. Each is a message of its own.
func (n *naming) answer(id string, offset int64) string {
	name := n.messages.free(id, offset)
	n.renames = n.renames || name != id
	n.messages.used[name] = true
	return name
}

// name returns the id of a thing. What the client does not have keeps its id.
func (of *ids) name(t thing) string {
	if name, ok := of.own[t]; ok {
		return name
	}
	return cmp.Or(of.all[t], t.id)
}

// call returns the id of a call; "" for "".
func (n *naming) call(id string) string { return n.calls.name(thing{id: id}) }

// restated notes that the agent has restated a message. It is then the only one of its kind
// with its id. Whether the calls that are left out still exist, only the view knows.
func (n *naming) restated(list []payload.Message) {
	clear(n.unanswered)
	for i := range list {
		m := &list[i]
		n.messages.restated(thing{aguiwire.KindOf(m.Role), m.ID})
		for j := range m.ToolCalls {
			n.calls.restated(thing{id: m.ToolCalls[j].ID})
			n.unanswered[m.ToolCalls[j].ID] = true
		}
		if m.Role == payload.RoleTool {
			delete(n.unanswered, m.ToolCallID)
		}
	}
}

func (of *ids) restated(t thing) {
	if name, ok := of.own[t]; ok {
		delete(of.made, name)
		delete(of.used, t.id)
		of.note(t, t.id, true)
	}
}

// whole returns a whole message that is new to the client, with the ids of the message and
// its calls. It reports false if the client has the message, or an older text of it.
func (n *naming) whole(m payload.Message, e *tapedeck.Event, invocation string) (payload.Message, bool) {
	t := thing{aguiwire.KindOf(m.Role), m.ID}
	if _, has := n.messages.all[t]; has {
		return m, false
	}
	ours := e.Invocation == invocation && t.kind != aguiwire.Told || t.kind == aguiwire.Activity
	m.ID = n.messages.free(m.ID, e.Offset)
	n.messages.note(t, m.ID, ours)
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range m.ToolCalls {
		k := thing{id: m.ToolCalls[i].ID}
		if _, has := n.calls.all[k]; !has {
			n.calls.note(k, n.calls.free(k.id, e.Offset), ours)
			n.unanswered[k.id] = true
		}
		m.ToolCalls[i].ID = n.call(k.id)
	}
	delete(n.unanswered, m.ToolCallID)
	m.ToolCallID = n.call(m.ToolCallID)
	n.renames = n.renames || m.ID != t.id
	return m, true
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
	case tapedeck.TextMessageStart, tapedeck.ReasoningMessageStart, tapedeck.ToolCallStart, tapedeck.ToolCallResult, tapedeck.ActivitySnapshot:
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
	if e.Type == tapedeck.ToolCallStart && jsonobj.Member(e.Data, "parentMessageId") == nil {
		// A client gives the message that it makes for the call the id of the call.
		call := n.call(jsonobj.StringOf(jsonobj.Member(e.Data, "toolCallId")))
		if maker := n.begin(&n.messages, thing{aguiwire.Agent, call}, e.Offset); maker != call {
			out, changed = jsonobj.AppendJSON(jsonobj.AppendName(out, 1, "parentMessageId"), maker), true
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
	case name == "messageId":
		return n.message(e, id)
	case name == "parentMessageId" && e.Type == tapedeck.ToolCallStart:
		return n.begin(&n.messages, thing{aguiwire.Agent, id}, e.Offset)
	case name == "parentMessageId":
		return n.messages.name(thing{aguiwire.Agent, id})
	case name == "toolCallId" && e.Type == tapedeck.ToolCallStart:
		return n.start(id, e.Offset)
	case name == "toolCallId", name == "parentToolCallId":
		return n.call(id)
	case name == "entityId" && jsonobj.StringIs(jsonobj.Member(e.Data, "subtype"), "tool-call"):
		return n.call(id)
	case name == "entityId":
		if _, ok := n.messages.own[thing{aguiwire.Reasoning, id}]; ok {
			return n.messages.name(thing{aguiwire.Reasoning, id})
		}
		return n.messages.name(thing{aguiwire.Agent, id})
	}
	return id
}

// message returns the id of the message that an event begins, continues or ends.
func (n *naming) message(e *tapedeck.Event, id string) string {
	switch e.Type {
	case tapedeck.ToolCallResult:
		return n.answer(id, e.Offset)
	case tapedeck.ReasoningMessageStart:
		return n.begin(&n.messages, thing{aguiwire.Reasoning, id}, e.Offset)
	case tapedeck.ActivitySnapshot: // it keeps its id in all runs
		return n.begin(&n.messages, thing{aguiwire.Activity, id}, e.Offset)
	case tapedeck.ActivityDelta:
		return n.messages.name(thing{aguiwire.Activity, id})
	}
	if strings.HasPrefix(e.Type, "REASONING_") {
		return n.messages.name(thing{aguiwire.Reasoning, id})
	}
	name, told := n.told[id]
	switch {
	case e.Type == tapedeck.TextMessageEnd:
		delete(n.told, id)
	case e.Type != tapedeck.TextMessageStart || told: // it is open
	case aguiwire.KindOf(textRole(e)) == aguiwire.Told:
		n.told[id], n.renames = n.say(id, e.Offset), true
		return n.told[id]
	default:
		return n.begin(&n.messages, thing{aguiwire.Agent, id}, e.Offset)
	}
	if told {
		return name
	}
	return n.messages.name(thing{aguiwire.Agent, id})
}

// textRole returns the role of the message that a TEXT_MESSAGE_START begins.
func textRole(e *tapedeck.Event) string {
	return cmp.Or(jsonobj.StringOf(jsonobj.Member(e.Data, "role")), payload.RoleAssistant)
}
