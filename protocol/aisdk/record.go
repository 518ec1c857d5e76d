package aisdk

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// A recorder turns the chunks of one message into the events of one run.
type recorder struct {
	actor string
	used  usedBy
	run   string // "" before the start

	begun     bool // the log has the run, and it has not ended
	ended     bool
	turn      int
	count     int               // of the ids that it made
	parts     map[string]string // by kind and id of the open parts: the id in the log; the chunks use an id again in each step
	calls     map[string]*call
	step      []string // the calls that began in this step
	approvals []payload.Interrupt
	events    []tapedeck.Event
}

// A usedBy reports whether the session has a run of an id, and the run that the stream
// continues, "" for none.
type usedBy func(run string) (parent string, used bool)

func newRecorder(actor string, used usedBy) *recorder {
	return &recorder{actor: actor, used: used, parts: map[string]string{}, calls: map[string]*call{}}
}

// take returns the events since the last call.
func (r *recorder) take() []tapedeck.Event {
	list := r.events
	r.events = nil
	return list
}

func (r *recorder) put(p payload.Payload) { r.putEvent(payload.NewEvent(p)) }

func (r *recorder) putEvent(e tapedeck.Event) {
	e.Invocation, e.Turn, e.Actor = r.run, r.turn, r.actor
	r.events = append(r.events, e)
}

// A recorded chunk has the members of all types that the recorder reads.
type recorded struct {
	Type           string          `json:"type"`
	MessageID      string          `json:"messageId"`
	ID             string          `json:"id"`
	Delta          payload.Piece   `json:"delta"`
	ErrorText      string          `json:"errorText"`
	ToolCallID     string          `json:"toolCallId"`
	ToolName       string          `json:"toolName"`
	InputTextDelta payload.Piece   `json:"inputTextDelta"`
	Input          json.RawMessage `json:"input"`
	Output         json.RawMessage `json:"output"`
	Preliminary    bool            `json:"preliminary"`
	ApprovalID     string          `json:"approvalId"`
	Transient      bool            `json:"transient"`
	Data           json.RawMessage `json:"data"`
	Parts          []uiPart        `json:"parts"`
}

// add adds a chunk. A type of a later version adds nothing.
func (r *recorder) add(raw json.RawMessage) error {
	var c recorded
	if err := json.Unmarshal(raw, &c); err != nil || c.Type == "" {
		return tapedeck.Errorf(tapedeck.Invalid, "chunk %.100q is not a JSON object with a type", raw)
	}
	if r.ended {
		return nil
	}
	if jsonobj.Nesting(raw) > maxNesting {
		return tapedeck.Errorf(tapedeck.Invalid, "a chunk is nested more than %d levels deep", maxNesting)
	}
	if c.Type == chunkStart || r.run == "" { // streams without start are in use
		if r.run == "" {
			r.begin(c.MessageID)
		}
		if c.Type == chunkStart {
			return nil
		}
	}
	switch {
	case c.Type == chunkStartStep:
		r.turn++
		r.step = nil
	case c.Type == chunkResetStep:
		r.reset()
	case strings.HasPrefix(c.Type, "text-"), strings.HasPrefix(c.Type, "reasoning-") && c.Type != chunkReasoningFile:
		return r.part(&c)
	case strings.HasPrefix(c.Type, "tool-"):
		return r.tool(&c)
	case isWhole(c.Type):
		r.whole(&c, raw)
	case c.Type == chunkSteering:
		r.steer(&c)
	case c.Type == chunkFinish, c.Type == chunkAbort, c.Type == chunkError:
		r.end(&c)
	}
	return nil
}

// begin begins the run. Its id is that of the message, unless an earlier run has it: after
// an approval the AI SDK continues the message in another stream, which is another run.
func (r *recorder) begin(id string) {
	r.run = id
	parent, used := "", tapedeck.CheckID("the id", id) != nil
	if !used {
		parent, used = r.used(id)
	}
	if used {
		r.run = tapedeck.NewID("inv_")
	}
	r.put(payload.RunStarted{ThreadID: tapedeck.MainThread, RunID: r.run, ParentRunID: parent})
}

// reset records that the step begins again.
func (r *recorder) reset() {
	clear(r.parts)
	for _, id := range r.step {
		delete(r.calls, id)
	}
	r.step = nil
	r.putEvent(tapedeck.Event{Type: tapedeck.AttemptSuperseded, Data: json.RawMessage(`{}`)})
}

// newID returns an id for an item of the run.
func (r *recorder) newID() string {
	r.count++
	return r.run + ":" + strconv.Itoa(r.count)
}

// part records a chunk of a text or a reasoning.
func (r *recorder) part(c *recorded) error {
	kind, step, _ := strings.Cut(c.Type, "-")
	key, reasoning := kind+c.ID, kind == "reasoning"
	id, open := r.parts[key]
	switch step {
	case "start":
		if open {
			r.endPart(key)
		}
		id = r.newID()
		if r.parts[key] = id; reasoning {
			r.put(payload.ReasoningStart{MessageID: id})
			r.put(payload.ReasoningMessageStart{MessageID: id, Role: payload.RoleReasoning})
		} else {
			r.put(payload.TextMessageStart{MessageID: id, Role: payload.RoleAssistant})
		}
	case "delta":
		switch {
		case !open:
			return tapedeck.Errorf(tapedeck.Invalid, "there is a %s for %.100q, which is not open", c.Type, c.ID).WithHint("send %s-start first", kind)
		case c.Delta == "":
		case reasoning:
			r.put(payload.ReasoningMessageContent{MessageID: id, Delta: c.Delta})
		default:
			r.put(payload.TextMessageContent{MessageID: id, Delta: c.Delta})
		}
	case "end":
		if open {
			r.endPart(key)
		}
	}
	return nil
}

func (r *recorder) endPart(key string) {
	id := r.parts[key]
	delete(r.parts, key)
	if strings.HasPrefix(key, "text") {
		r.put(payload.TextMessageEnd{MessageID: id})
		return
	}
	r.put(payload.ReasoningMessageEnd{MessageID: id})
	r.put(payload.ReasoningEnd{MessageID: id})
}

// tool records a chunk of a tool call.
func (r *recorder) tool(c *recorded) error {
	if c.ToolCallID == "" && c.Type != "tool-approval-response" {
		return tapedeck.Errorf(tapedeck.Invalid, "a %s has no toolCallId", c.Type)
	}
	k := r.calls[c.ToolCallID]
	switch c.Type {
	case chunkToolStart, chunkToolInput, chunkToolBadInput:
		if k == nil {
			if c.ToolName == "" {
				return tapedeck.Errorf(tapedeck.Invalid, "a %s has no toolName", c.Type)
			}
			k = &call{name: c.ToolName}
			r.calls[c.ToolCallID] = k
			r.step = append(r.step, c.ToolCallID)
			r.put(payload.ToolCallStart{ToolCallID: c.ToolCallID, ToolCallName: c.ToolName})
		}
		if c.Type != chunkToolStart {
			r.endCall(c.ToolCallID, c.Input)
		}
		if c.Type == chunkToolBadInput {
			r.answer(c.ToolCallID, c.ErrorText, cmp.Or(c.ErrorText, "the input of the tool is wrong"))
		}
		return nil
	case chunkToolOutput, chunkToolError, chunkToolDenied:
		if k == nil { // it answers a call of an earlier run
			r.calls[c.ToolCallID] = &call{whole: true}
		}
	case chunkToolDelta, chunkApproval:
		if k == nil {
			return tapedeck.Errorf(tapedeck.Invalid, "there is a %s for the call %.100q, which has not begun", c.Type, c.ToolCallID).WithHint("send %s first", chunkToolStart)
		}
	}
	switch c.Type {
	case chunkToolDelta:
		if !k.whole && c.InputTextDelta != "" {
			k.arguments = append(k.arguments, '.') // only whether there are any counts
			r.put(payload.ToolCallArgs{ToolCallID: c.ToolCallID, Delta: c.InputTextDelta})
		}
	case chunkToolOutput:
		if !c.Preliminary {
			r.answer(c.ToolCallID, answerText(c.Output), "")
		}
	case chunkToolError:
		r.answer(c.ToolCallID, c.ErrorText, cmp.Or(c.ErrorText, "the tool failed"))
	case chunkToolDenied:
		r.answerWith(c.ToolCallID, "", denial, tapedeck.Meta{Denied: true}.In(nil))
	case chunkApproval:
		r.endCall(c.ToolCallID, nil)
		r.approvals = append(r.approvals, payload.Interrupt{ID: c.ApprovalID, Reason: "tool_call", ToolCallID: c.ToolCallID})
	}
	return nil
}

// endCall ends the arguments of a call. input is the whole of them.
func (r *recorder) endCall(id string, input json.RawMessage) {
	k := r.calls[id]
	if k.whole {
		return
	}
	if k.whole = true; len(k.arguments) == 0 && len(input) > 0 {
		r.put(payload.ToolCallArgs{ToolCallID: id, Delta: payload.Piece(answerText(input))})
	}
	k.arguments = nil
	r.put(payload.ToolCallEnd{ToolCallID: id})
}

func (r *recorder) answer(id, answer, failure string) { r.answerWith(id, answer, failure, nil) }

// answerWith records an answer with metadata.
func (r *recorder) answerWith(id, answer, failure string, metadata tapedeck.Members) {
	r.endCall(id, nil)
	k := r.calls[id]
	if k.answered {
		return
	}
	k.answered = true
	d := payload.ToolCallResult{MessageID: r.newID(), ToolCallID: id, Content: payload.Text(answer), Role: payload.RoleTool}
	d.Metadata = metadata
	e := payload.NewEvent(d)
	if failure != "" {
		e.Data = jsonobj.WithMember(e.Data, "error", failure)
	}
	r.putEvent(e)
}

// whole records a chunk that is a part by itself. Transient data is for those who
// watch, so no view of the log has it.
func (r *recorder) whole(c *recorded, raw json.RawMessage) {
	if c.Transient {
		r.put(payload.Custom{Name: strings.TrimPrefix(c.Type, dataPrefix), Value: c.Data})
		return
	}
	id := r.run + ":" + c.Type + ":" + c.ID // the same id replaces the data
	if c.ID == "" || len(id) > 512 {
		id = r.newID()
	}
	r.put(payload.ActivitySnapshot{MessageID: id, ActivityType: c.Type, Content: raw})
}

// steer records what a user has said to the running agent.
func (r *recorder) steer(c *recorded) {
	words := ""
	for i := range c.Parts {
		if c.Parts[i].Type == "text" {
			words += c.Parts[i].Text
		}
	}
	id := c.ID
	if id == "" {
		id = r.newID()
	}
	e := payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage(id, payload.RoleUser, words)})
	e.Invocation, e.Turn, e.Actor = r.run, r.turn, payload.RoleUser
	r.events = append(r.events, e)
}

// end ends the run.
func (r *recorder) end(c *recorded) {
	r.close()
	switch c.Type {
	case chunkError:
		r.put(payload.RunError{Message: errorText(c.ErrorText)})
	case chunkAbort:
		r.put(payload.RunFinished{ThreadID: tapedeck.MainThread, RunID: r.run, Outcome: &payload.Outcome{Type: payload.OutcomeCancelled}})
	default:
		d := payload.RunFinished{ThreadID: tapedeck.MainThread, RunID: r.run}
		if len(r.approvals) > 0 {
			d.Outcome = &payload.Outcome{Type: payload.OutcomeInterrupt, Interrupts: r.approvals}
		}
		r.put(d)
	}
	r.ended = true
}

// close ends what is open, in no order that matters: nothing is inside of anything.
func (r *recorder) close() {
	for _, key := range sortedKeys(r.parts) {
		r.endPart(key)
	}
	for _, id := range sortedKeys(r.calls) {
		r.endCall(id, nil)
	}
}

// broken returns the events that end a run whose stream has broken off.
func (r *recorder) broken() []tapedeck.Event {
	r.take()
	r.put(payload.RunError{Message: "the stream of the agent ended before its message did", Code: tapedeck.CodeLeaseExpired})
	r.ended = true
	return r.take()
}
