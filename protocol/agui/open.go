package agui

import (
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// openKinds has the event that closes what an event opens, and the member with the
// id. Ids are unique within a kind only.
var openKinds = map[string]struct{ end, member string }{
	tapedeck.TextMessageStart:      {tapedeck.TextMessageEnd, "messageId"},
	tapedeck.ToolCallStart:         {tapedeck.ToolCallEnd, "toolCallId"},
	tapedeck.ReasoningStart:        {tapedeck.ReasoningEnd, "messageId"},
	tapedeck.ReasoningMessageStart: {tapedeck.ReasoningMessageEnd, "messageId"},
	tapedeck.StepStarted:           {tapedeck.StepFinished, "stepName"},
	tapedeck.SubagentStarted:       {tapedeck.SubagentFinished, "subagentRunId"},
}

// startOf has the event that opens what an event closes.
var startOf = func() map[string]string {
	m := map[string]string{tapedeck.SubagentError: tapedeck.SubagentStarted}
	for start, k := range openKinds {
		m[k.end] = start
	}
	return m
}()

// An openThing is a message, call, reasoning span, step or sub-agent that a run has
// opened and not closed.
type openThing struct {
	id    string
	start tapedeck.Event // the event that opened it, with the ids of the client
	log   tapedeck.Event // that event in the log
}

// openThings are what a run has open, in the order of opening.
type openThings []openThing

// note notes what an event opens or closes. log is the event with the ids of the log.
func (o *openThings) note(e, log *tapedeck.Event) {
	if k, ok := openKinds[e.Type]; ok {
		if id := idOf(e, k.member); id != "" {
			*o = append(*o, openThing{id, *e, *log})
		}
		return
	}
	start, ok := startOf[e.Type]
	if !ok {
		return
	}
	id := idOf(e, openKinds[start].member)
	for i, t := range slices.Backward(*o) {
		if t.start.Type == start && t.id == id {
			*o = slices.Delete(*o, i, i+1)
			return
		}
	}
}

// rename gives the things the ids that a naming has for them.
func (o openThings) rename(n *aguiwire.Naming) {
	for i := range o {
		o[i].start = *n.Event(&o[i].log)
		o[i].id = idOf(&o[i].start, openKinds[o[i].start.Type].member)
	}
}

// idOf returns the id of what an event opens or closes. A step is known by its name
// and its owner.
func idOf(e *tapedeck.Event, member string) string {
	id := jsonobj.StringOf(jsonobj.Member(e.Data, member))
	if member == "stepName" && id != "" {
		id += "\x00" + jsonobj.StringOf(jsonobj.Member(e.Data, "subagentRunId"))
	}
	return id
}

// closing returns the event that closes a thing while its run waits for the answers
// to interrupts.
func (t *openThing) closing(interrupts []string) tapedeck.Event {
	k := openKinds[t.start.Type]
	members := []byte(`{`)
	members = append(append(jsonobj.AppendName(members, 1, k.member), jsonobj.Member(t.start.Data, k.member)...), '}')
	if owner := jsonobj.Member(t.start.Data, "subagentRunId"); owner != nil && k.member != "subagentRunId" {
		members = jsonobj.WithMember(members, "subagentRunId", jsonobj.StringOf(owner))
	}
	e := tapedeck.Event{Type: k.end, Data: members, Offset: t.start.Offset}
	if t.start.Type == tapedeck.SubagentStarted {
		e.Data = payload.NewEvent(payload.SubagentFinished{
			SubagentRunID: t.id, Outcome: &payload.Outcome{Type: payload.OutcomeSuspended, InterruptIDs: interrupts},
		}).Data
	}
	return e
}
