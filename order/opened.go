package order

import (
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// A kind is one of the things that can be open in a run. Ids are unique within a
// kind only.
type kind int

const (
	textMessage kind = iota
	toolCall
	reasoningMessage
	reasoningSpan
	step
	subagent
	activityMessage // never open, but has an owner
)

// kinds has for each kind what it is called, its events, and their member that
// names it.
var kinds = [...]struct{ noun, start, end, member string }{
	textMessage:      {"text message", tapedeck.TextMessageStart, tapedeck.TextMessageEnd, "messageId"},
	toolCall:         {"tool call", tapedeck.ToolCallStart, tapedeck.ToolCallEnd, "toolCallId"},
	reasoningMessage: {"reasoning message", tapedeck.ReasoningMessageStart, tapedeck.ReasoningMessageEnd, "messageId"},
	reasoningSpan:    {"reasoning span", tapedeck.ReasoningStart, tapedeck.ReasoningEnd, "messageId"},
	step:             {"step", tapedeck.StepStarted, tapedeck.StepFinished, "stepName"},
	subagent:         {"subagent", tapedeck.SubagentStarted, tapedeck.SubagentFinished, "subagentRunId"},
	activityMessage:  {"activity", tapedeck.ActivitySnapshot, "", "messageId"},
}

// An opened is something that is open in a run.
type opened struct {
	kind     kind
	id       string
	owner    string // the subagent whose it is; "" for the agent itself
	instance string // of the event that opened it
	turn     int
	chunks   *chunks // if it was opened by a chunk
}

// An OpenThing is something that a run has opened and not closed.
type OpenThing struct {
	Type     string // of the event that opened it, such as [tapedeck.TextMessageStart]
	ID       string // of the message, tool call or subagent, or the name of the step
	Subagent string // whose it is; "" for the agent itself
}

// Open returns what is open in the run of a thread, in order of opening.
func (v *Verifier) Open(thread string) []OpenThing {
	for _, r := range v.runs {
		if r.Thread != thread {
			continue
		}
		things := make([]OpenThing, len(r.open))
		for i, o := range r.open {
			things[i] = OpenThing{kinds[o.kind].start, o.id, o.owner}
		}
		return things
	}
	return nil
}

// Closing returns the events that close everything that is open in a run, what
// was opened last first, so that its terminal event may follow. A subagent ends
// with an error, for it has not finished. It is empty for a run that is not open.
// Both Add and Accept take them.
func (v *Verifier) Closing(invocation string) []tapedeck.Event {
	for _, r := range v.runs {
		if r.Invocation != invocation {
			continue
		}
		events := make([]tapedeck.Event, 0, len(r.open)+1) // and the terminal one
		for _, inChunks := range [...]bool{true, false} {  // Accept would close those in chunks before anything else
			for _, o := range slices.Backward(r.open) {
				if inChunks == (o.chunks != nil) {
					events = append(events, r.closing(&o))
				}
			}
		}
		return events
	}
	return nil
}

func (r *run) closing(o *opened) tapedeck.Event {
	var p payload.Payload
	tag := payload.Attributed{SubagentRunID: o.owner}
	switch o.kind {
	case textMessage:
		p = payload.TextMessageEnd{MessageID: o.id, Attributed: tag}
	case toolCall:
		p = payload.ToolCallEnd{ToolCallID: o.id, Attributed: tag}
	case reasoningMessage:
		p = payload.ReasoningMessageEnd{MessageID: o.id, Attributed: tag}
	case reasoningSpan:
		p = payload.ReasoningEnd{MessageID: o.id, Attributed: tag}
	case step:
		p = payload.StepFinished{StepName: o.id, Attributed: tag}
	case subagent:
		p = payload.SubagentError{SubagentRunID: o.id, Message: "the run ended before the subagent did", Code: payload.CodeRunEnded}
	}
	e := payload.NewEvent(p)
	e.Invocation, e.Instance, e.Turn = r.Invocation, o.instance, o.turn
	if r.Thread != tapedeck.MainThread {
		e.Thread = r.Thread
	}
	return e
}

// find returns the open thing of a kind and id, nil if there is none. An owner
// tells steps of the same name apart.
func (r *run) find(k kind, id []byte, owner string) *opened {
	for i := len(r.open) - 1; i >= 0; i-- { // the newest is the likeliest
		o := &r.open[i]
		if o.kind == k && jsonobj.StringIs(id, o.id) && (k != step || o.owner == owner) {
			return o
		}
	}
	return nil
}

// with returns r with one thing more open.
func (r *run) with(o opened) *run {
	next := *r
	next.open = append(slices.Clip(r.open), o)
	return &next
}

// without returns r with o closed.
func (r *run) without(o *opened) *run {
	next := *r
	next.open = slices.DeleteFunc(slices.Clone(r.open), func(x opened) bool { return x == *o })
	return &next
}

// ownedAs returns the kind under which the owner of a thing is known: a reasoning
// span and a reasoning message of one id have one owner.
func (k kind) ownedAs() kind {
	if k == reasoningSpan {
		return reasoningMessage
	}
	return k
}

// ownerOf returns whose a thing is that is or was open.
func (r *run) ownerOf(k kind, id string) (owner string, known bool) {
	k = k.ownedAs()
	for i := range r.open {
		if o := &r.open[i]; o.kind.ownedAs() == k && o.id == id {
			return o.owner, true
		}
	}
	if before := r.known.find(k, id); before != nil {
		return before.owner, true
	}
	return "", false
}

// own returns r with owner as the owner of a thing, open or closed.
func (r *run) own(k kind, id, owner string) *run {
	next := *r
	k = k.ownedAs()
	next.known = r.known.with(k, id, owner)
	next.open = slices.Clone(r.open)
	for i := range next.open {
		if o := &next.open[i]; o.kind.ownedAs() == k && o.id == id {
			o.owner = owner
		}
	}
	return &next
}

// A known is the owner of a thing that a run has opened, newest first: a list
// that is never changed, so that clones share it. Reopening a thing under
// another owner would mix two authors in one message.
type known struct {
	kind      kind
	id, owner string
	older     *known
	n         int // length of the list
}

func (k *known) find(of kind, id string) *known {
	for ; k != nil; k = k.older {
		if k.kind == of && k.id == id {
			return k
		}
	}
	return nil
}

// with returns the list with one more entry. When it has become too long it
// forgets the older half.
func (k *known) with(of kind, id, owner string) *known {
	if k != nil && k.n >= 2*maxKnown {
		k = k.newest(maxKnown)
	}
	n := 1
	if k != nil {
		n += k.n
	}
	return &known{of, id, owner, k, n}
}

func (k *known) newest(n int) *known {
	entries := make([]*known, 0, n)
	for ; k != nil && len(entries) < n; k = k.older {
		entries = append(entries, k)
	}
	var short *known
	for _, e := range slices.Backward(entries) {
		short = short.with(e.kind, e.id, e.owner)
	}
	return short
}

// seed adds the owners of the messages in raw: the messages themselves, or an
// object that has them.
func (k *known) seed(raw []byte) *known {
	for _, m := range messagesIn(raw) {
		of := textMessage
		switch m.Role {
		case payload.RoleReasoning:
			of = reasoningMessage
		case payload.RoleActivity:
			of = activityMessage
		}
		k = k.with(of, m.ID, m.SubagentRunID)
		for _, t := range m.ToolCalls {
			k = k.with(toolCall, t.ID, m.SubagentRunID)
		}
	}
	return k
}

// messagesIn returns the newest of the messages in raw.
func messagesIn(raw []byte) []payload.Message {
	if len(raw) == 0 {
		return nil
	}
	var messages []payload.Message
	if raw[0] == '{' {
		var in struct {
			Messages []payload.Message `json:"messages"`
		}
		_ = json.Unmarshal(raw, &in)
		messages = in.Messages
	} else {
		_ = json.Unmarshal(raw, &messages)
	}
	return messages[max(0, len(messages)-maxKnown):]
}
