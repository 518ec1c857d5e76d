package order

import (
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// A kind is the kind of a thing that can be open in a run. Ids are unique
// within a kind only.
type kind int

const (
	textMessage kind = iota
	toolCall
	reasoningMessage
	reasoningSpan
	step
	subagent
	activityMessage // never open, but it has an owner
)

// kinds has the noun of each kind, its events, and the member with its id.
var kinds = [...]struct{ noun, start, end, member string }{
	textMessage:      {"text message", tapedeck.TextMessageStart, tapedeck.TextMessageEnd, "messageId"},
	toolCall:         {"tool call", tapedeck.ToolCallStart, tapedeck.ToolCallEnd, "toolCallId"},
	reasoningMessage: {"reasoning message", tapedeck.ReasoningMessageStart, tapedeck.ReasoningMessageEnd, "messageId"},
	reasoningSpan:    {"reasoning span", tapedeck.ReasoningStart, tapedeck.ReasoningEnd, "messageId"},
	step:             {"step", tapedeck.StepStarted, tapedeck.StepFinished, "stepName"},
	subagent:         {"sub-agent", tapedeck.SubagentStarted, tapedeck.SubagentFinished, "subagentRunId"},
	activityMessage:  {"activity", tapedeck.ActivitySnapshot, "", "messageId"},
}

// An opened is a thing that is open in a run.
type opened struct {
	kind     kind
	id       string
	owner    string // the sub-agent that it belongs to; "" for the agent itself
	instance string // of the event that opened it
	turn     int
	chunks   *chunks // set if a chunk opened it
}

// An OpenThing is a thing that a run has opened and not closed.
type OpenThing struct {
	Type     string // of the event that opened it, such as [tapedeck.TextMessageStart]
	ID       string // of the message, tool call or subagent, or the name of the step
	Subagent string // the sub-agent that it belongs to; "" for the agent itself
}

// Open returns the open things of a thread's run, in the order of opening.
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

// Closing returns the events that close all open things of a run, so that its
// terminal event may follow: first those that chunks opened, then the others,
// each newest first. A sub-agent is closed with an error, because it has not
// finished. The result is empty if the run is not open. Add and Accept both
// accept these events.
func (v *Verifier) Closing(invocation string) []tapedeck.Event {
	for _, r := range v.runs {
		if r.Invocation != invocation {
			continue
		}
		events := make([]tapedeck.Event, 0, len(r.open)+1) // with space for the terminal event
		for _, inChunks := range [...]bool{true, false} {  // chunked things first, because Accept would close them before any other event
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
		p = payload.SubagentError{SubagentRunID: o.id, Message: "the run ended before the sub-agent did", Code: payload.CodeRunEnded}
	}
	e := payload.NewEvent(p)
	e.Invocation, e.Instance, e.Turn = r.Invocation, o.instance, o.turn
	if r.Thread != tapedeck.MainThread {
		e.Thread = r.Thread
	}
	return e
}

// find returns the open thing of a kind and id, nil if there is none. Steps of
// the same name differ by their owner.
func (r *run) find(k kind, id []byte, owner string) *opened {
	for i := len(r.open) - 1; i >= 0; i-- { // the newest is the most likely
		o := &r.open[i]
		if o.kind == k && jsonobj.StringIs(id, o.id) && (k != step || o.owner == owner) {
			return o
		}
	}
	return nil
}

// with returns a copy of r with one more open thing.
func (r *run) with(o opened) *run {
	next := *r
	next.open = append(slices.Clip(r.open), o)
	return &next
}

// without returns a copy of r without o.
func (r *run) without(o *opened) *run {
	next := *r
	next.open = slices.DeleteFunc(slices.Clone(r.open), func(x opened) bool { return x == *o })
	return &next
}

// ownedAs returns the kind under which the owner of a thing is stored. A
// reasoning span and a reasoning message with the same id have the same owner.
func (k kind) ownedAs() kind {
	if k == reasoningSpan {
		return reasoningMessage
	}
	return k
}

// ownerOf returns the owner of a thing that is or was open.
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

// setOwner returns a copy of r with the owner of a thing, open or closed.
func (r *run) setOwner(k kind, id, owner string) *run {
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

// A known is a list of the owners of things that a run has opened, newest
// first. It is immutable, so clones share it. It prevents a thing from being
// reopened under another owner, which would mix two authors in one message.
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

// with returns the list with one more entry. If it is too long, it drops the
// older half.
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

// seed adds the owners of the messages in raw, which is a list of messages or
// an object that has one.
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

// messagesIn returns the newest maxKnown messages in raw.
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
