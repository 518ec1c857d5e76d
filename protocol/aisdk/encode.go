package aisdk

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/payload"
)

// An encoder turns the events of one run into the chunks of one message. Events that
// have lost their payload give no chunks. No chunk names a part that the client does
// not have: a client throws the whole stream away then.
type encoder struct {
	version int      // of the AI SDK, for the chunks that it knows
	runs    []string // of the message, the first one first; those that are known when the stream begins

	begun, stepped, ended bool
	turn                  int   // of the newest step
	at                    int64 // the offset of the newest event
	said                  bool  // a step has begun
	stepAt                int64 // the offset at which the newest step began
	parts                 map[string]*part
	calls                 map[string]*call
	questions             []question          // without an answer
	asked                 []payload.Interrupt // questions with which a run before the last one ended
	begin                 int64               // the offset at which the first run began
	from                  int64               // chunks of events before this offset are not sent: the client has them; 0 for all
	delta                 delta               // not in buf yet
	buf                   []byte              // frames
	event                 string              // the name of the next frames; the AI SDK does not look at it
	attempts              int64               // see [place]
}

// A part is a text or a reasoning of a message.
type part struct {
	start, delta, end string // types of its chunks
	open              bool
}

// A call is a call of a tool.
type call struct {
	name      string
	arguments []byte // until the input was sent
	whole     bool   // the arguments are complete
	offset    int64  // at which it began
	answered  bool
	denied    bool
}

// A question is one that a user must answer.
type question struct {
	tapedeck.Question
	offset int64
}

// approved reports whether an option allows what the question asks.
func (q *question) approved(option string) bool {
	i := slices.IndexFunc(q.Options, func(o tapedeck.PermissionOption) bool { return o.ID == option })
	return i >= 0 && slices.Contains(allowing, q.Options[i].Kind)
}

func newEncoder(version int, runs []string) *encoder {
	return &encoder{version: version, runs: runs, parts: map[string]*part{}, calls: map[string]*call{}}
}

// put gathers a chunk.
func (c *encoder) put(typ string, members ...member) {
	c.flush()
	c.buf = sse.AppendFrame(c.buf, "", c.event, chunk(typ, members...))
}

// content prepares for a chunk with content: it begins the step of a model call.
func (c *encoder) content(turn int) {
	if c.stepped && (turn == 0 || turn == c.turn) {
		return
	}
	c.endStep()
	c.put(chunkStartStep)
	c.stepped, c.turn, c.stepAt, c.said = true, turn, c.at, true
}

// early prepares for the end of a run that did not complete. A message needs a part, so one that
// has none gets an empty step.
func (c *encoder) early() {
	if !c.said {
		c.content(0)
	}
	c.closeParts()
	c.closeCalls()
	c.endStep()
}

// again gathers the chunks of a step that the run repeats. Clients of version 7 drop what
// they have of it. Others keep it until they load the message again.
func (c *encoder) again(e *tapedeck.Event) {
	j, _ := e.Jump()
	if c.version >= 7 && (!c.stepped || c.stepAt >= j.To) {
		c.closeParts()
		if c.stepped {
			c.put(chunkResetStep)
		}
	} else {
		c.closeParts()
		c.closeCallsFrom(j.To)
		c.content(0)
		c.put(dataPrefix+"attempt", text("id", "attempt-"+strconv.FormatInt(e.Offset, 10)), member{"data", attemptOf(e)})
	}
	for id, k := range c.calls {
		if k.offset >= j.To {
			delete(c.calls, id)
		}
	}
	clear(c.parts) // no part is open where a step begins
}

// attemptOf returns the number of an attempt and why there is one.
func attemptOf(e *tapedeck.Event) []byte {
	members := map[string]json.RawMessage{}
	for _, name := range [...]string{"attempt", "reason"} {
		if v := jsonobj.Member(e.Data, name); v != nil {
			members[name] = v
		}
	}
	return jsonobj.AppendMembers(nil, members)
}

func (c *encoder) endStep() {
	if c.stepped {
		c.put(chunkFinishStep)
	}
	c.stepped = false
}

// place returns where the message is.
func (c *encoder) place() place {
	p := place{Offset: c.begin, Invocation: c.runs[0]}
	if len(c.runs) > 1 {
		p.Runs = c.runs
	}
	return p
}

// add gathers the chunks of an event of the message.
func (c *encoder) add(e *tapedeck.Event) {
	c.at = e.Offset
	switch {
	case e.Type == tapedeck.RunStarted && !c.begun:
		c.begun, c.begin = true, e.Offset
		p := c.place()
		p.From, p.Attempts = c.from, c.attempts
		c.put(chunkStart, text("messageId", p.Invocation), placed(p))
		return
	case !c.begun || c.ended || jsonobj.Member(e.Data, "subagentRunId") != nil:
		return
	}
	switch e.Type {
	case tapedeck.TextMessageStart, tapedeck.ReasoningMessageStart:
		c.startPart(e)
	case tapedeck.TextMessageContent, tapedeck.ReasoningMessageContent:
		c.partDelta(e)
	case tapedeck.TextMessageEnd, tapedeck.ReasoningMessageEnd:
		c.endPart(partKey(e))
	case tapedeck.ToolCallStart, tapedeck.ToolCallArgs, tapedeck.ToolCallEnd, tapedeck.ToolCallResult:
		c.tool(e)
	case tapedeck.MessageAdded:
		c.message(e)
	case tapedeck.PermissionRequested, tapedeck.PermissionAnswered:
		c.permission(e)
	case tapedeck.AttemptSuperseded:
		c.again(e)
	default:
		c.other(e)
	}
}

// other gathers the chunks of an event that is no part of the conversation.
func (c *encoder) other(e *tapedeck.Event) {
	switch e.Type {
	case tapedeck.ActivitySnapshot:
		if d, err := payload.DecodeAs[payload.ActivitySnapshot](*e); err == nil {
			c.content(e.Turn)
			c.flush()
			c.buf = sse.AppendFrame(c.buf, "", "", partOf(d.ActivityType, d.MessageID, d.Content))
		}
	case tapedeck.PlanUpdated:
		if entries := jsonobj.Member(e.Data, "entries"); entries != nil {
			c.content(e.Turn)
			c.plan(entries)
		}
	case tapedeck.Custom:
		name, value := jsonobj.StringOf(jsonobj.Member(e.Data, "name")), jsonobj.Member(e.Data, "value")
		if name != "" && value != nil {
			c.put(dataPrefix+name, member{"data", value}, member{"transient", []byte("true")})
		}
	case tapedeck.RunFinished:
		c.finish(e)
	case tapedeck.RunError:
		if c.goesOn(e) {
			c.interlude()
			return
		}
		c.fail(errorText(jsonobj.StringOf(jsonobj.Member(e.Data, "message"))))
	}
}

// plan gathers the plan, which replaces the one before it.
func (c *encoder) plan(entries json.RawMessage) {
	c.put(dataPrefix+"plan", text("id", "plan"), member{"data", append(append([]byte(`{"entries":`), entries...), '}')})
}

// partKey is the key of a text or reasoning. Both may have the same id.
func partKey(e *tapedeck.Event) string {
	id := jsonobj.StringOf(jsonobj.Member(e.Data, "messageId"))
	switch e.Type {
	case tapedeck.ReasoningMessageStart, tapedeck.ReasoningMessageContent, tapedeck.ReasoningMessageEnd:
		return "r" + id
	}
	return "t" + id
}

func (c *encoder) startPart(e *tapedeck.Event) {
	key, role := partKey(e), jsonobj.StringOf(jsonobj.Member(e.Data, "role"))
	p := &part{start: chunkTextStart, delta: chunkTextDelta, end: chunkTextEnd}
	switch {
	case len(key) == 1:
		return
	case e.Type == tapedeck.ReasoningMessageStart:
		p = &part{start: chunkReasoningStart, delta: chunkReasoningDelta, end: chunkReasoningEnd}
	case role != "" && role != payload.RoleAssistant:
		return // what a user or the system says is no part of the answer
	}
	c.parts[key] = p
	c.openPart(key, e.Turn)
}

// openPart opens a part, unless it is open.
func (c *encoder) openPart(key string, turn int) {
	if p := c.parts[key]; !p.open {
		c.content(turn)
		c.put(p.start, text("id", key[1:]))
		p.open = true
	}
}

func (c *encoder) endPart(key string) {
	if p := c.parts[key]; p != nil && p.open {
		c.put(p.end, text("id", key[1:]))
		p.open = false
	}
}

// closeParts ends the parts that are open, in the order of their ids.
func (c *encoder) closeParts() {
	for _, key := range sortedKeys(c.parts) {
		c.endPart(key)
	}
}

func (c *encoder) partDelta(e *tapedeck.Event) {
	key, raw := partKey(e), jsonobj.Member(e.Data, "delta")
	if p := c.parts[key]; p != nil && jsonobj.IsString(raw) {
		c.openPart(key, e.Turn) // questions have closed it
		c.join(p.delta, key[1:], raw)
	}
}

// message gathers a whole message that was added during the run.
func (c *encoder) message(e *tapedeck.Event) {
	var d payload.MessageAdded
	if json.Unmarshal(e.Data, &d) != nil {
		return
	}
	m := &d.Message
	switch m.Role {
	case payload.RoleAssistant, payload.RoleReasoning:
		key, p := "t"+m.ID, &part{start: chunkTextStart, delta: chunkTextDelta, end: chunkTextEnd}
		if m.Role == payload.RoleReasoning {
			key, p = "r"+m.ID, &part{start: chunkReasoningStart, delta: chunkReasoningDelta, end: chunkReasoningEnd}
		}
		if t := m.Text(); t != "" && c.parts[key] == nil {
			c.parts[key] = p
			c.openPart(key, e.Turn)
			c.join(p.delta, m.ID, jsonobj.AppendJSON(nil, t))
			c.endPart(key)
		}
	case payload.RoleTool:
		c.answer(m.ToolCallID, m.Text(), m.Error)
	case payload.RoleUser: // a user has steered the run
		c.content(e.Turn)
		c.flush()
		c.buf = sse.AppendFrame(c.buf, "", "", steeringPart(c.version, m.ID, m.Text()))
	}
}

func (c *encoder) finish(e *tapedeck.Event) {
	d, err := payload.DecodeAs[payload.RunFinished](*e)
	if err != nil { // it was erased
		d = payload.RunFinished{}
	}
	var interrupts []payload.Interrupt
	if d.Outcome != nil {
		interrupts = d.Outcome.Interrupts
	}
	switch {
	case c.goesOn(e):
		c.asked = append(c.asked, interrupts...)
		c.interlude()
		return
	case d.Outcome != nil && d.Outcome.Type == payload.OutcomeCancelled:
		c.abort()
		return
	}
	for i := range interrupts {
		c.approval(interrupts[i].ID, interrupts[i].ToolCallID)
	}
	reason := "stop"
	if len(interrupts) > 0 {
		reason = "tool-calls"
	}
	c.end(reason, e.Offset+1)
}

// goesOn reports whether the message continues in another run after the end of the one of e.
func (c *encoder) goesOn(e *tapedeck.Event) bool { return e.Invocation != c.runs[len(c.runs)-1] }

// interlude ends what is open at the end of a run that another one continues.
func (c *encoder) interlude() {
	c.closeParts()
	c.endStep()
	clear(c.parts)
	c.turn = 0
}

// end ends the stream of the message. next is the offset of the next event.
func (c *encoder) end(reason string, next int64) {
	c.closeParts()
	c.endStep()
	p := c.place()
	p.Next = next
	c.put(chunkFinish, text("finishReason", reason), placed(p))
	c.ended = true
}

// reasonCancelled is the reason of an abort.
const reasonCancelled = "the run was cancelled"

func (c *encoder) abort() {
	c.early()
	if c.version >= 6 {
		c.put(chunkAbort, text("reason", reasonCancelled))
	} else {
		c.put(chunkAbort)
	}
	c.ended = true
}

// fail ends the message with an error.
func (c *encoder) fail(message string) {
	c.early()
	c.put(chunkError, text("errorText", message))
	c.ended = true
}

func errorText(message string) string {
	if message == "" {
		return "the run failed"
	}
	return message
}

// A delta joins the deltas of one part that follow each other: a client needs about as
// long for a chunk of one word as for one of a hundred.
type delta struct {
	typ, id string
	text    []byte // JSON without quotes
}

// maxDelta is the size at which a joined delta is sent, in bytes.
const maxDelta = 1 << 20

// join adds a delta, which is a JSON string.
func (c *encoder) join(typ, id string, raw []byte) {
	d := &c.delta
	if d.typ != typ || d.id != id || len(d.text)+len(raw) > maxDelta {
		c.flush()
		d.typ, d.id = typ, id
	}
	d.text = append(d.text, raw[1:len(raw)-1]...)
}

// flush gathers the joined delta.
func (c *encoder) flush() {
	d := &c.delta
	if len(d.text) > 0 {
		name, value := "id", "delta"
		if d.typ == chunkToolDelta {
			name, value = "toolCallId", "inputTextDelta"
		}
		quoted := append(append([]byte{'"'}, d.text...), '"')
		c.buf = sse.AppendFrame(c.buf, "", "", chunk(d.typ, text(name, d.id), member{value, quoted}))
	}
	d.typ, d.text = "", d.text[:0]
}

// take returns the frames gathered so far. They are valid until the next add.
func (c *encoder) take() []byte {
	c.flush()
	b := c.buf
	c.buf = c.buf[:0]
	return b
}
