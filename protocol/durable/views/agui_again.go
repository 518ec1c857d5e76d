package views

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/view"
)

// ends has the event that closes what an event opens, and the member with the id.
var ends = map[string]struct{ end, member string }{
	tapedeck.TextMessageStart:      {tapedeck.TextMessageEnd, "messageId"},
	tapedeck.ToolCallStart:         {tapedeck.ToolCallEnd, "toolCallId"},
	tapedeck.ReasoningStart:        {tapedeck.ReasoningEnd, "messageId"},
	tapedeck.ReasoningMessageStart: {tapedeck.ReasoningMessageEnd, "messageId"},
	tapedeck.StepStarted:           {tapedeck.StepFinished, "stepName"},
	tapedeck.SubagentStarted:       {tapedeck.SubagentFinished, "subagentRunId"},
}

// again shows that a run repeats a step: what the step has opened is closed, and the
// messages are those of before the step. So is the state, if the step has changed it.
func (a agui) again(ctx context.Context, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
	j, _ := e.Jump()
	open, state, err := a.since(ctx, e, j.To)
	if err != nil {
		return out, err
	}
	for _, start := range slices.Backward(open) {
		out = append(out, closing(&start))
	}
	out, err = a.snapshot(ctx, e, out)
	if err != nil || !state {
		return out, err
	}
	now, err := a.Views.Snapshot(ctx, a.session, view.Query{At: new(e.Offset + 1), Thread: e.ThreadName(), Limit: 1})
	if err != nil {
		return out, err
	}
	value := json.RawMessage("{}")
	if now.State != nil {
		value = now.State.Value
	}
	return append(out, marshal(struct {
		Snapshot json.RawMessage `json:"snapshot"`
		Type     string          `json:"type"`
	}{value, tapedeck.StateSnapshot})), nil
}

// since returns the events that have opened what the run of e has open, from an offset on,
// and whether the run has changed the state since. It reads maxLookback events at most.
func (a agui) since(ctx context.Context, e *tapedeck.Event, from int64) (open []tapedeck.Event, state bool, err error) {
	for from = max(from, e.Offset-maxLookback); from < e.Offset; {
		p, err := a.Log.Read(ctx, a.session, tapedeck.Range{From: from, Limit: int(min(e.Offset-from, tapedeck.DefaultLimit))})
		if err != nil || len(p.Records) == 0 {
			return nil, false, err
		}
		for _, r := range p.Records {
			b, err := r.Event()
			if err != nil {
				return nil, false, err
			}
			if b.Invocation != e.Invocation || b.ThreadName() != e.ThreadName() {
				continue
			}
			state = state || b.Type == tapedeck.StateSnapshot || b.Type == tapedeck.StateDelta
			open = opened(open, &b)
		}
		from = p.Next
	}
	return open, state, nil
}

// opened returns what is open after e.
func opened(open []tapedeck.Event, e *tapedeck.Event) []tapedeck.Event {
	if e.Type == tapedeck.AttemptSuperseded {
		return nil
	}
	if _, ok := ends[e.Type]; ok {
		return append(open, *e)
	}
	return slices.DeleteFunc(open, func(start tapedeck.Event) bool {
		k := ends[start.Type]
		ended := e.Type == k.end || start.Type == tapedeck.SubagentStarted && e.Type == tapedeck.SubagentError
		return ended && string(jsonobj.Member(start.Data, k.member)) == string(jsonobj.Member(e.Data, k.member))
	})
}

// closing returns the event that closes what start has opened.
func closing(start *tapedeck.Event) []byte {
	k := ends[start.Type]
	members := append(append(jsonobj.AppendName([]byte("{"), 1, k.member), jsonobj.Member(start.Data, k.member)...), '}')
	if owner := jsonobj.Member(start.Data, "subagentRunId"); owner != nil && k.member != "subagentRunId" {
		members = jsonobj.WithMember(members, "subagentRunId", jsonobj.StringOf(owner))
	}
	return typed(&tapedeck.Event{Type: k.end, Data: members})
}
