// Package narrate turns what an agent says, in whatever words, into the events of
// a run, so that they are in the order that AG-UI asks for: nothing is continued
// that was not begun, and nothing is begun twice.
//
// The ids that agents give are theirs only for a conversation, often only for a
// turn. In the log an id counts for the whole session, so they are prefixed with
// that of the invocation.
package narrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A Narrator yields the events of one invocation. Ids that are given to its
// methods are the agent's own; "" is the id of something to which the agent gave
// none. Lanes are the agent itself, "", and the sub-agents that were begun.
//
// After yield has reported false nothing more is yielded; see [Narrator.Over].
type Narrator struct {
	Turn int // the model call, see [tapedeck.Event]; 0 for not known

	prefix string
	yield  func(tapedeck.Event, error) bool
	over   bool
	ids    int
	lanes  map[string]*lane
	began  map[string]int // how often a sub-agent was begun, by its lane
	tools  map[string]*tool
}

// A lane is what one agent of the invocation has open.
type lane struct {
	run    string // the subagentRunId; "" for the agent itself
	above  *lane  // of who started it; nil for the agent itself
	name   string // as it is called here; "" for the agent itself
	kind   kind   // of the message that is open; 0 for none
	native string // its id as the agent gave it
	id     string
	spoken string // the id of the text message that was opened last
	named  string // its id as the agent gave it
	turn   int    // of a sub-agent
	plan   string // as it was told last
	board  board
}

type kind int

const (
	text kind = iota + 1
	thought
)

// New returns a narrator of an invocation.
func New(invocation string, yield func(tapedeck.Event, error) bool) *Narrator {
	return &Narrator{
		prefix: invocation, yield: yield,
		lanes: map[string]*lane{"": {}}, tools: map[string]*tool{}, began: map[string]int{},
	}
}

// Over reports whether nobody listens any more.
func (n *Narrator) Over() bool { return n.over }

// Event yields an event of any type.
func (n *Narrator) Event(p payload.Payload) { n.put(payload.NewEvent(p)) }

// Process tells which process the agent is, and waits until that is durable. An
// error means that the agent must not begin.
func (n *Narrator) Process(ctx context.Context, in *tapedeck.Invocation, d payload.AgentStarted) error {
	n.Event(d)
	switch {
	case n.over:
		return errors.New("nobody listens")
	case in.Stored == nil:
		return nil
	}
	return in.Stored(ctx)
}

// event yields an event of a lane.
func (n *Narrator) event(l *lane, p payload.Payload) { n.putIn(l, payload.NewEvent(p)) }

func (n *Narrator) put(e tapedeck.Event) { n.putIn(n.lanes[""], e) }

func (n *Narrator) putIn(l *lane, e tapedeck.Event) {
	if n.over {
		return
	}
	if e.Turn = n.Turn; l.run != "" {
		e.Turn = l.turn
	}
	n.over = !n.yield(e, nil)
}

// NextTurn says that another model call begins in a lane.
func (n *Narrator) NextTurn(lane string) {
	if l := n.lane(lane); l.run != "" {
		l.turn++
		return
	}
	n.Turn++
}

// Fail yields an error, which ends the run.
func (n *Narrator) Fail(err error) {
	if !n.over {
		n.over = true
		n.yield(tapedeck.Event{}, err)
	}
}

// maxNative is how long an id of an agent may be to be part of ours.
const maxNative = 200

// id returns the id in the log of something of a kind.
func (n *Narrator) id(of, native string) string {
	switch {
	case native == "":
		n.ids++
		return n.prefix + "." + of + strconv.Itoa(n.ids)
	case len(native) > maxNative:
		sum := sha256.Sum256([]byte(native))
		native = hex.EncodeToString(sum[:])
	}
	return n.prefix + "." + of + "." + native
}

// lane returns the lane of that name, the agent's own if there is none.
func (n *Narrator) lane(name string) *lane {
	if l, ok := n.lanes[name]; ok {
		return l
	}
	return n.lanes[""]
}

// Say continues the text message of that id, or begins it. It ends whatever else
// is open in the lane.
func (n *Narrator) Say(lane, id, delta string) { n.stream(n.lane(lane), text, id, delta) }

// Think continues a message of thinking likewise.
func (n *Narrator) Think(lane, id, delta string) { n.stream(n.lane(lane), thought, id, delta) }

func (n *Narrator) stream(l *lane, k kind, native, delta string) {
	if delta == "" {
		return // it may be the end of another as well
	}
	if l.kind != k || l.native != native {
		n.endMessage(l)
		n.beginMessage(l, k, native)
	}
	typ := tapedeck.TextMessageContent
	if k == thought {
		typ = tapedeck.ReasoningMessageContent
	}
	n.putIn(l, tapedeck.Event{Type: typ, Data: content("messageId", l.id, delta)})
}

// content returns the data of a delta. There are many of them.
func content(member, id, delta string) json.RawMessage {
	b := make([]byte, 0, len(id)+len(delta)+40)
	b = append(append(b, `{"`...), member...)
	b = append(appendString(append(b, `":`...), id), `,"delta":`...)
	return append(appendString(b, delta), '}')
}

func appendString(b []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil {
		return append(b, `""`...) // a string can always be written
	}
	return append(b, q...)
}

func (n *Narrator) beginMessage(l *lane, k kind, native string) {
	l.kind, l.native = k, native
	if l.name != "" && native != "" {
		native = l.name + "/" + native // two agents may give the same
	}
	by := payload.Attributed{SubagentRunID: l.run}
	if k == text {
		l.id = n.id("m", native)
		l.spoken, l.named = l.id, l.native
		n.event(l, payload.TextMessageStart{MessageID: l.id, Role: payload.RoleAssistant, Attributed: by})
		return
	}
	l.id = n.id("r", native)
	n.event(l, payload.ReasoningStart{MessageID: l.id, Attributed: by})
	n.event(l, payload.ReasoningMessageStart{MessageID: l.id, Role: payload.RoleReasoning, Attributed: by})
}

func (n *Narrator) endMessage(l *lane) {
	switch l.kind {
	case text:
		n.event(l, payload.TextMessageEnd{MessageID: l.id})
	case thought:
		n.event(l, payload.ReasoningMessageEnd{MessageID: l.id})
		n.event(l, payload.ReasoningEnd{MessageID: l.id})
	}
	l.kind = 0
}

// Sign keeps what the model's provider wants back unseen with the thinking that
// is open in a lane. It reports false if none is.
func (n *Narrator) Sign(lane, value string) bool {
	l := n.lane(lane)
	if l.kind != thought {
		return false
	}
	n.event(l, payload.ReasoningEncryptedValue{Subtype: "message", EntityID: l.id, EncryptedValue: value})
	return true
}

// EndMessage ends the message that is open in a lane.
func (n *Narrator) EndMessage(lane string) { n.endMessage(n.lane(lane)) }

// Pause ends the message that is open in a lane if it has no id: what the agent
// says next of the same kind is another, though nothing but the pause tells so.
func (n *Narrator) Pause(lane string) {
	if l := n.lane(lane); l.native == "" {
		n.endMessage(l)
	}
}

// Link tells the agent's own id of the conversation.
func (n *Narrator) Link(runner, native string) {
	n.Event(payload.AgentLinked{Runner: runner, NativeID: native})
}

// Raw keeps something that maps to nothing, as it came.
func (n *Narrator) Raw(source string, event json.RawMessage) {
	if !json.Valid(event) || !utf8.Valid(event) {
		event = appendString(nil, string(event)) // a line that is not JSON
	}
	n.Event(payload.Raw{Event: event, Source: source})
}

// Lossy says that the agent was told what happened before, and does not know it
// of its own.
func (n *Narrator) Lossy(reason string, bytes int) {
	value, err := json.Marshal(map[string]any{"reason": reason, "bytes": bytes})
	if err == nil {
		n.Event(payload.Custom{Name: "tapedeck.lossy", Value: value})
	}
}

// Subagent begins a sub-agent, whose lane is named by the tool call that began
// it, in the lane of the parent, or if that is "" in the one of the call. A lane
// that is there stays as it is. One that was ended is begun again, for
// some agents go on when their tool has answered.
func (n *Narrator) Subagent(tool, name, description, parent string) {
	if _, ok := n.lanes[tool]; ok {
		return
	}
	id := n.id("s", tool)
	if n.began[tool]++; n.began[tool] > 1 {
		id += "." + strconv.Itoa(n.began[tool])
	}
	t := n.tools[tool]
	if t != nil && parent == "" {
		parent = t.lane
	}
	above := n.lane(parent)
	d := payload.SubagentStarted{SubagentRunID: id, Name: name, Description: description, ParentSubagentRunID: above.run}
	if t != nil {
		d.ParentToolCallID = t.id
	}
	n.lanes[tool] = &lane{run: id, above: above, name: id[len(n.prefix)+1:]}
	n.event(above, d)
}

// Asked tells what a sub-agent was asked.
func (n *Narrator) Asked(lane, text string) {
	l := n.lane(lane)
	if l.run == "" || text == "" {
		return // what the agent itself was asked the log has
	}
	m := payload.NewMessage(n.id("u", ""), payload.RoleUser, text)
	m.SubagentRunID = l.run
	n.event(l, payload.MessageAdded{Message: m})
}

// Usage reports what a model call of a lane has used.
func (n *Narrator) Usage(lane string, u payload.UsageReported) {
	l := n.lane(lane)
	u.SubagentRunID = l.run
	n.event(l, u)
}

// SubagentDone ends a sub-agent.
func (n *Narrator) SubagentDone(lane string, failed string) {
	l, ok := n.lanes[lane]
	if !ok || lane == "" {
		return
	}
	for name, other := range n.lanes { // none outlives who has started it
		if other.above == l {
			n.SubagentDone(name, "")
		}
	}
	n.endMessage(l)
	for native, t := range n.tools {
		if t.lane == lane {
			n.Called(native)
		}
	}
	delete(n.lanes, lane)
	if failed != "" {
		n.event(l.above, payload.SubagentError{SubagentRunID: l.run, Message: failed})
		return
	}
	n.event(l.above, payload.SubagentFinished{SubagentRunID: l.run})
}

// Done ends what is open. It is for an agent that came to its end; what another
// leaves open is for the host to close, who knows why.
func (n *Narrator) Done() {
	for lane := range n.lanes {
		n.EndMessage(lane)
	}
	for native := range n.tools {
		n.Called(native)
	}
	for lane := range n.lanes {
		n.SubagentDone(lane, "")
	}
}
