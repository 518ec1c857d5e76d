package aguiwire

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A Naming gives the messages and calls of a thread ids that it has not used: agents use ids
// again, for messages of another kind or in their next run. It gives those that [NamesOf]
// finds afterwards.
type Naming struct {
	run             string // the invocation of the run whose events it gets
	messages, calls ids
	told            map[string]string // the ids of open messages of the kind told, by the ids in the log
	began           map[string]int64  // the offset at which the newest call of the run with an id began, by the id in the log
	Unanswered      map[string]bool   // ids, in the log, of the calls that the client has without an answer
	renames         bool              // some id is not that of the log
}

// A thing is a message of a kind, or a call, by its id in the log.
type thing struct {
	kind Kind
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

// NewNaming returns a Naming of an empty thread.
func NewNaming() Naming {
	return Naming{messages: newIDs(), calls: newIDs(), told: map[string]string{}, began: map[string]int64{}, Unanswered: map[string]bool{}}
}

// free returns the id, or another one if the client has it already.
func (of *ids) free(id string, offset int64) string {
	for of.used[id] || of.made[id] { // more than once if the agent uses an id that we make
		id = Rename(id, offset)
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

// OpenRun returns the invocation of the open run of a thread, "" without one.
func OpenRun(now *view.Snapshot) string {
	if n := len(now.Runs); n > 0 && now.Runs[n-1].EndedAt == nil {
		return now.Runs[n-1].Invocation
	}
	return ""
}

// Begin notes that a run begins: it uses nothing again that the run before it has begun,
// except activities.
func (n *Naming) Begin(invocation string) {
	n.run = invocation
	clear(n.told)
	clear(n.began)
	for _, of := range []*ids{&n.messages, &n.calls} {
		for t, name := range of.own {
			if t.kind != Activity {
				of.used[name] = true
				delete(of.own, t)
				delete(of.made, name)
			}
		}
	}
}

// Learn notes the ids in a conversation, from the point of view of a run.
func (n *Naming) Learn(now *view.Snapshot, invocation string) {
	*n = NewNaming()
	n.run = invocation
	names := NamesOf(now)
	for i := range now.Messages {
		m := &now.Messages[i]
		t, name := thing{KindOf(m.Role), m.ID}, names.Message(m)
		n.renames = n.renames || name != m.ID
		if t.kind == Told && m.Invocation == invocation && m.Status == tapedeck.StatusRunning {
			n.told[m.ID], n.renames = name, true
		}
		n.messages.note(t, name, t.kind == Activity || t.kind != Told && m.Invocation == invocation)
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
		n.messages.note(thing{Agent, cmp.Or(k.MessageID, name)}, maker, ours)
		if n.Unanswered[k.ID] = k.Result == nil; k.Result != nil {
			n.messages.used[names.Answer(k.Result)] = true
		}
	}
}

// Sent notes a message that the client has sent.
func (n *Naming) Sent(m *payload.Message) {
	n.messages.used[m.ID] = true
	if t := (thing{KindOf(m.Role), m.ID}); n.messages.all[t] == "" {
		n.messages.all[t] = m.ID
	}
}

// begin returns the id of what begins with an event, or is begun again by it.
func (n *Naming) begin(of *ids, t thing, offset int64) string {
	if name, ok := of.own[t]; ok {
		return name
	}
	name := of.free(t.id, offset)
	n.renames = n.renames || name != t.id
	of.note(t, name, true)
	return name
}

// start returns the id of a call, which begins with an event. Each is a call of its own.
func (n *Naming) start(id string, offset int64) string {
	if at, ok := n.began[id]; ok && at == offset { // the client has connected meanwhile
		return n.Call(id)
	}
	n.began[id] = offset
	name := n.calls.free(id, offset)
	n.renames = n.renames || name != id
	n.calls.note(thing{id: id}, name, true)
	return name
}

// say returns the id of a message of the kind told, which begins with an event. Each is a
// message of its own.
func (n *Naming) say(id string, offset int64) string {
	name := n.messages.free(id, offset)
	n.renames = n.renames || name != id
	n.messages.note(thing{Told, id}, name, false)
	return name
}

// answer returns the id of the answer of a tool. Each is a message of its own.
func (n *Naming) answer(id string, offset int64) string {
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

// Call returns the id of a call; "" for "".
func (n *Naming) Call(id string) string { return n.calls.name(thing{id: id}) }

// Restated notes that the agent has restated a message. It is then the only one of its kind
// with its id. Whether the calls that are left out still exist, only the view knows.
func (n *Naming) Restated(list []payload.Message) {
	clear(n.Unanswered)
	for i := range list {
		m := &list[i]
		n.messages.restated(thing{KindOf(m.Role), m.ID})
		for j := range m.ToolCalls {
			n.calls.restated(thing{id: m.ToolCalls[j].ID})
			n.Unanswered[m.ToolCalls[j].ID] = true
		}
		if m.Role == payload.RoleTool {
			delete(n.Unanswered, m.ToolCallID)
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

// Whole returns a whole message with the ids of the message and its calls. It reports
// whether the message is new to the client, which otherwise has it, or an older text of it.
func (n *Naming) Whole(m payload.Message, e *tapedeck.Event) (named payload.Message, fresh bool) {
	t := thing{KindOf(m.Role), m.ID}
	ours := e.Invocation == n.run && t.kind != Told || t.kind == Activity
	if _, has := n.messages.all[t]; !has {
		fresh = true
		n.messages.note(t, n.messages.free(m.ID, e.Offset), ours)
	}
	m.ID = n.messages.name(t)
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range m.ToolCalls {
		k := thing{id: m.ToolCalls[i].ID}
		if _, has := n.calls.all[k]; !has {
			n.calls.note(k, n.calls.free(k.id, e.Offset), ours)
			n.Unanswered[k.id] = true
		}
		m.ToolCalls[i].ID = n.Call(k.id)
		n.renames = n.renames || m.ToolCalls[i].ID != k.id
	}
	delete(n.Unanswered, m.ToolCallID)
	m.ToolCallID = n.Call(m.ToolCallID)
	n.renames = n.renames || m.ID != t.id
	return m, fresh
}

// Outcome returns an outcome with the ids of the calls.
func (n *Naming) Outcome(o *payload.Outcome) *payload.Outcome {
	if o == nil || !n.renames {
		return o
	}
	out := *o
	out.Interrupts, out.PendingToolCallIDs = slices.Clone(o.Interrupts), slices.Clone(o.PendingToolCallIDs)
	for i := range out.Interrupts {
		out.Interrupts[i].ToolCallID = n.Call(out.Interrupts[i].ToolCallID)
	}
	for i, id := range out.PendingToolCallIDs {
		out.PendingToolCallIDs[i] = n.Call(id)
	}
	return &out
}

// Event returns an event of the run with the ids of its messages and calls.
func (n *Naming) Event(e *tapedeck.Event) *tapedeck.Event {
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
		call := n.Call(jsonobj.StringOf(jsonobj.Member(e.Data, "toolCallId")))
		if maker := n.begin(&n.messages, thing{Agent, call}, e.Offset); maker != call {
			out, changed = jsonobj.AppendJSON(jsonobj.AppendName(out, 1, "parentMessageId"), maker), true
		}
	}
	if !changed || o.Bad {
		return e
	}
	return with(e, append(out, '}'))
}

// Note notes what begins with an event of the thread, whichever it is, and returns the event
// with the ids of its messages and calls. A MESSAGES_SNAPSHOT needs [Naming.Restate].
func (n *Naming) Note(e *tapedeck.Event) *tapedeck.Event {
	switch e.Type {
	case tapedeck.RunStarted:
		n.Begin(e.Invocation)
	case tapedeck.MessageAdded:
		if d, err := payload.DecodeAs[payload.MessageAdded](*e); err == nil && d.Message.ID != "" {
			if d.Message, _ = n.Whole(d.Message, e); n.renames {
				return with(e, payload.NewEvent(d).Data)
			}
		}
	case tapedeck.TextMessageContent, tapedeck.ReasoningMessageContent, tapedeck.ToolCallArgs:
		if n.renames {
			return n.Event(e)
		}
	default:
		return n.Event(e)
	}
	return e
}

// Restate returns a MESSAGES_SNAPSHOT, after which the names were learned, with the ids of
// its messages and calls.
func (n *Naming) Restate(e *tapedeck.Event) *tapedeck.Event {
	d, err := payload.DecodeAs[payload.MessagesSnapshot](*e)
	if err != nil || !n.renames {
		return e
	}
	for i := range d.Messages {
		m := &d.Messages[i]
		m.ID, m.ToolCallID = n.Message(KindOf(m.Role), m.ID), n.Call(m.ToolCallID)
		for j := range m.ToolCalls {
			m.ToolCalls[j].ID = n.Call(m.ToolCalls[j].ID)
		}
	}
	return with(e, payload.NewEvent(d).Data)
}

func with(e *tapedeck.Event, data []byte) *tapedeck.Event {
	renamed := *e
	renamed.Data = data
	return &renamed
}

// Size returns about how many bytes the names take.
func (n *Naming) Size() (size int) {
	for _, of := range []*ids{&n.messages, &n.calls} {
		size += 48*(len(of.used)+len(of.made)) + 96*(len(of.own)+len(of.all))
	}
	return size + 64*(len(n.began)+len(n.Unanswered))
}

// Has reports whether the thread has a message of a kind with an id.
func (n *Naming) Has(kind Kind, id string) bool { return n.messages.all[thing{kind, id}] != "" }

// Message returns the id of the newest message of a kind with an id.
func (n *Naming) Message(kind Kind, id string) string { return n.messages.name(thing{kind, id}) }

// member returns the value that a string member of an event gets.
func (n *Naming) member(e *tapedeck.Event, name, id string) string {
	switch {
	case id == "":
		return id
	case name == "messageId":
		return n.message(e, id)
	case name == "parentMessageId" && e.Type == tapedeck.ToolCallStart:
		return n.begin(&n.messages, thing{Agent, id}, e.Offset)
	case name == "parentMessageId":
		return n.messages.name(thing{Agent, id})
	case name == "toolCallId" && e.Type == tapedeck.ToolCallStart:
		return n.start(id, e.Offset)
	case name == "toolCallId", name == "parentToolCallId":
		return n.Call(id)
	case name == "entityId" && jsonobj.StringIs(jsonobj.Member(e.Data, "subtype"), "tool-call"):
		return n.Call(id)
	case name == "entityId":
		if _, ok := n.messages.own[thing{Reasoning, id}]; ok {
			return n.messages.name(thing{Reasoning, id})
		}
		return n.messages.name(thing{Agent, id})
	}
	return id
}

// message returns the id of the message that an event begins, continues or ends.
func (n *Naming) message(e *tapedeck.Event, id string) string {
	switch e.Type {
	case tapedeck.ToolCallResult:
		return n.answer(id, e.Offset)
	case tapedeck.ReasoningMessageStart:
		return n.begin(&n.messages, thing{Reasoning, id}, e.Offset)
	case tapedeck.ActivitySnapshot: // it keeps its id in all runs
		return n.begin(&n.messages, thing{Activity, id}, e.Offset)
	case tapedeck.ActivityDelta:
		return n.messages.name(thing{Activity, id})
	}
	if strings.HasPrefix(e.Type, "REASONING_") {
		return n.messages.name(thing{Reasoning, id})
	}
	name, told := n.told[id]
	switch {
	case e.Type == tapedeck.TextMessageEnd:
		delete(n.told, id)
	case e.Type != tapedeck.TextMessageStart || told: // it is open
	case KindOf(textRole(e)) == Told:
		n.told[id], n.renames = n.say(id, e.Offset), true
		return n.told[id]
	default:
		return n.begin(&n.messages, thing{Agent, id}, e.Offset)
	}
	if told {
		return name
	}
	return n.messages.name(thing{Agent, id})
}

// textRole returns the role of the message that a TEXT_MESSAGE_START begins.
func textRole(e *tapedeck.Event) string {
	return cmp.Or(jsonobj.StringOf(jsonobj.Member(e.Data, "role")), payload.RoleAssistant)
}
