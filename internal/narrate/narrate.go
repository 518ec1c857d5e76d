// Package narrate turns the output of an agent into the events of a run, in the order
// that AG-UI demands: no message or call continues before it began, and none begins
// twice.
//
// An agent's ids are unique only within a conversation, often only within a run. In
// the log an id must be unique in the whole session, so the narrator prefixes each id
// with the invocation's.
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

// A Narrator yields the events of one invocation. Its methods take the agent's own
// ids; "" stands for a missing id. The lane "" is the agent itself. A sub-agent's lane
// has the id of the tool call that began it.
//
// After yield has returned false, a Narrator yields no more events; see
// [Narrator.Over].
type Narrator struct {
	Turn int // the number of the model call, see [tapedeck.Event]; 0 if unknown

	prefix string
	yield  func(tapedeck.Event, error) bool
	over   bool
	ids    int
	lanes  map[string]*lane
	began  map[string]int // how many times a sub-agent was begun, by its lane
	tools  map[string]*tool
}

// A lane is the state of one agent of the invocation.
type lane struct {
	run        string // the subagentRunId; "" for the agent itself
	parent     *lane  // the lane of the agent that started this one; nil for the agent itself
	name       string // part of the ids of its messages; "" for the agent itself
	kind       kind   // the kind of the open message; 0 for no open message
	native     string // the agent's id of the open message
	id         string // the id of the open message in the log
	textID     string // the id in the log of the text message that was opened last
	textNative string // the agent's id of that message
	turn       int    // the number of the model call; used only for a sub-agent
	halves     payload.Halves
	plan       string // the data of the newest plan event
	board      board
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

// Over reports whether yield has returned false or the run has failed: no more events
// are wanted.
func (n *Narrator) Over() bool { return n.over }

// Event yields an event of any type.
func (n *Narrator) Event(p payload.Payload) { n.yieldIn(n.lanes[""], payload.NewEvent(p)) }

// Process records the identity of the agent's process, and waits until the event is
// durable. If it returns an error, the agent must not begin.
func (n *Narrator) Process(ctx context.Context, in *tapedeck.Invocation, d payload.AgentStarted) error {
	n.Event(d)
	switch {
	case n.over:
		return errors.New("the run has ended")
	case in.Stored == nil:
		return nil
	}
	return in.Stored(ctx)
}

// event yields a payload as an event of a lane.
func (n *Narrator) event(l *lane, p payload.Payload) { n.yieldIn(l, payload.NewEvent(p)) }

func (n *Narrator) yieldIn(l *lane, e tapedeck.Event) {
	if n.over {
		return
	}
	if e.Turn = n.Turn; l.run != "" {
		e.Turn = l.turn
	}
	n.over = !n.yield(e, nil)
}

// NextTurn counts a new model call in a lane.
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

// maxNative is the length of an agent's id, in bytes, above which its hash replaces it.
const maxNative = 200

// id returns the log's id for the agent's own id, native. of is a prefix for the kind
// of object, so ids of different kinds cannot be equal.
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

// lane returns the lane of that name. For an unknown name it returns the lane of the
// agent itself.
func (n *Narrator) lane(name string) *lane {
	if l, ok := n.lanes[name]; ok {
		return l
	}
	return n.lanes[""]
}

// Say continues the text message of that id, or begins it. It ends any other message
// that is open in the lane. An empty delta does nothing. A delta may end with half of a
// character, see [payload.Piece]: the log gets it with the other half.
func (n *Narrator) Say(lane, id, delta string) { n.stream(n.lane(lane), text, id, delta) }

// Think does the same for a message of thinking.
func (n *Narrator) Think(lane, id, delta string) { n.stream(n.lane(lane), thought, id, delta) }

func (n *Narrator) stream(l *lane, k kind, native, delta string) {
	if delta == "" {
		return // agents send empty deltas at the end of messages, too
	}
	if l.kind != k || l.native != native {
		n.endMessage(l)
		n.beginMessage(l, k, native)
	}
	n.grow(l, l.halves.Next(payload.Piece(delta)))
}

// Replace replaces the text of the text message of that id, which the agent itself has said.
func (n *Narrator) Replace(id, whole string) {
	n.EndMessage("")
	n.Event(payload.MessageAdded{Message: payload.NewMessage(n.id("m", id), payload.RoleAssistant, whole)})
}

// grow continues the open message of a lane.
func (n *Narrator) grow(l *lane, text string) {
	if text == "" {
		return
	}
	typ := tapedeck.TextMessageContent
	if l.kind == thought {
		typ = tapedeck.ReasoningMessageContent
	}
	n.yieldIn(l, tapedeck.Event{Type: typ, Data: content("messageId", l.id, text)})
}

// content returns the data of a delta event. It is built by hand because there are
// many deltas.
func content(member, id, delta string) json.RawMessage {
	b := make([]byte, 0, len(id)+len(delta)+40)
	b = append(append(b, `{"`...), member...)
	b = append(appendString(append(b, `":`...), id), `,"delta":`...)
	return append(appendString(b, delta), '}')
}

func appendString(b []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil {
		return append(b, `""`...) // never happens: every string can be encoded
	}
	return append(b, q...)
}

func (n *Narrator) beginMessage(l *lane, k kind, native string) {
	l.kind, l.native = k, native
	if l.name != "" && native != "" {
		native = l.name + "/" + native // two agents may use the same id
	}
	by := payload.Attributed{SubagentRunID: l.run}
	if k == text {
		l.id = n.id("m", native)
		l.textID, l.textNative = l.id, l.native
		n.event(l, payload.TextMessageStart{MessageID: l.id, Role: payload.RoleAssistant, Attributed: by})
		return
	}
	l.id = n.id("r", native)
	n.event(l, payload.ReasoningStart{MessageID: l.id, Attributed: by})
	n.event(l, payload.ReasoningMessageStart{MessageID: l.id, Role: payload.RoleReasoning, Attributed: by})
}

func (n *Narrator) endMessage(l *lane) {
	n.grow(l, l.halves.End())
	switch l.kind {
	case text:
		n.event(l, payload.TextMessageEnd{MessageID: l.id})
	case thought:
		n.event(l, payload.ReasoningMessageEnd{MessageID: l.id})
		n.event(l, payload.ReasoningEnd{MessageID: l.id})
	}
	l.kind = 0
}

// StoreEncrypted stores an encrypted value with the thinking that is open in a lane.
// The model's provider wants the value back, and nobody else reads it. StoreEncrypted
// reports false if no thinking is open.
func (n *Narrator) StoreEncrypted(lane, value string) bool {
	l := n.lane(lane)
	if l.kind != thought {
		return false
	}
	n.event(l, payload.ReasoningEncryptedValue{Subtype: "message", EntityID: l.id, EncryptedValue: value})
	return true
}

// EndMessage ends the open message of a lane, if there is one.
func (n *Narrator) EndMessage(lane string) { n.endMessage(n.lane(lane)) }

// Pause ends the open message of a lane if it has no id. Without an id, only the pause
// shows that the next text is a new message.
func (n *Narrator) Pause(lane string) {
	if l := n.lane(lane); l.native == "" {
		n.endMessage(l)
	}
}

// Link records the agent's own id of the conversation.
func (n *Narrator) Link(runner, native string) {
	n.Event(payload.AgentLinked{Runner: runner, NativeID: native})
}

// Raw stores output that maps to no other event, unchanged.
func (n *Narrator) Raw(source string, event json.RawMessage) {
	if !json.Valid(event) || !utf8.Valid(event) {
		event = appendString(nil, string(event)) // a line that is not JSON
	}
	n.Event(payload.Raw{Event: event, Source: source})
}

// Lossy records that the agent received the history as text, because no conversation of
// its own contains that history.
func (n *Narrator) Lossy(reason string, bytes int) {
	value, err := json.Marshal(map[string]any{"reason": reason, "bytes": bytes})
	if err == nil {
		n.Event(payload.Custom{Name: "tapedeck.lossy", Value: value})
	}
}

// EquipmentName is the name of the CUSTOM event that has an [Equipment].
const EquipmentName = "tapedeck.equipment"

// Equipment is what an agent has said of itself when it began. Absent members are not known.
type Equipment struct {
	Model  string   `json:"model,omitempty"`
	Tools  []string `json:"tools,omitempty"`
	Skills []string `json:"skills,omitempty"`
}

// Event returns the event that records the equipment.
func (q Equipment) Event() payload.Custom {
	value, err := json.Marshal(q)
	if err != nil {
		value = json.RawMessage("{}") // never happens: every string can be encoded
	}
	return payload.Custom{Name: EquipmentName, Value: value}
}

// Subagent begins a sub-agent. Its lane has the id of the tool call that began it.
// Its parent is the lane parent, or the lane of the call if parent is "". If the lane
// exists, nothing happens. If the sub-agent was ended, it begins again: some
// sub-agents continue after the answer of their tool call.
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
	n.lanes[tool] = &lane{run: id, parent: above, name: id[len(n.prefix)+1:]}
	n.event(above, d)
}

// SubagentTask records the task of a sub-agent.
func (n *Narrator) SubagentTask(lane, text string) {
	l := n.lane(lane)
	if l.run == "" || text == "" {
		return // the log already has the task of the agent itself
	}
	m := payload.NewMessage(n.id("u", ""), payload.RoleUser, text)
	m.SubagentRunID = l.run
	n.event(l, payload.MessageAdded{Message: m})
}

// Usage records the usage of a model call of a lane.
func (n *Narrator) Usage(lane string, u payload.UsageReported) {
	l := n.lane(lane)
	u.SubagentRunID = l.run
	n.event(l, u)
}

// SubagentDone ends a sub-agent with its descendants. failed says why it failed; "" if
// it succeeded.
func (n *Narrator) SubagentDone(lane string, failed string) {
	l, ok := n.lanes[lane]
	if !ok || lane == "" {
		return
	}
	for name, other := range n.lanes { // no sub-agent outlives its parent
		if other.parent == l {
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
		n.event(l.parent, payload.SubagentError{SubagentRunID: l.run, Message: failed})
		return
	}
	n.event(l.parent, payload.SubagentFinished{SubagentRunID: l.run})
}

// Done ends everything that is open. Call it only for an agent that finished. For a
// failed or interrupted agent the host ends what is open, because it knows the reason.
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
