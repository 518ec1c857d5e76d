package task

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// promptLookback is how many events before RUN_STARTED the words of the user may be.
// The engine writes them just before it.
const promptLookback = 8

// An encoder turns the events of a session, in order, into those of the protocol.
// The result for an event depends only on the earlier events of its run.
type encoder struct {
	session string
	runs    map[string]*run // the open runs, by invocation
	prompts []prompt        // the newest words of users
	since   int64           // a run that begins before this offset is left out, because its prompt may be unknown
	whole   bool            // an unknown run has no earlier events, so there is nothing to look up
	past    *lookback       // finds the runs that began earlier; nil for no look-back
}

// A prompt is what a user has said.
type prompt struct {
	offset           int64
	invocation, text string
}

// encode returns the events that e becomes, nil if it becomes none.
func (t *encoder) encode(ctx context.Context, e *tapedeck.Event) ([]event, error) {
	list, err := t.data(ctx, e)
	if err != nil || list == nil {
		return nil, err
	}
	out := make([]event, len(list))
	for i, d := range list {
		m, ok := d.data.(messageData)
		out[i] = event{
			Type: d.typ, Data: d.data, Sequence: sequenceOf(e.Offset, d.part), Timestamp: string(jsonobj.AppendTime(nil, e.Time)),
			partial: ok && m.Partial,
		}
	}
	return out, nil
}

// data returns the events that e becomes. agent_start comes first if the agent of the run
// begins with e.
func (t *encoder) data(ctx context.Context, e *tapedeck.Event) ([]draft, error) {
	begin, err := t.begins(ctx, e)
	if err != nil {
		return nil, err
	}
	out, err := t.rest(ctx, e)
	if begin == nil { // as almost always
		return out, err
	}
	return append(begin, out...), err
}

// begins returns agent_start if the agent of a run begins with e.
func (t *encoder) begins(ctx context.Context, e *tapedeck.Event) ([]draft, error) {
	if e.Type == tapedeck.RunStarted {
		r := newRun(e, t.promptOf(e))
		if e.Offset >= t.since {
			t.runs[e.Invocation] = r
		}
		return r.start(t.session, e), nil
	}
	if e.Type != tapedeck.RunFinished && !speaks(e) {
		return nil, nil
	}
	r, err := t.run(ctx, e)
	if err != nil {
		return nil, err
	}
	return r.speaks(e), nil
}

// rest returns the events that e becomes, without agent_start.
func (t *encoder) rest(ctx context.Context, e *tapedeck.Event) ([]draft, error) {
	switch e.Type {
	case tapedeck.AgentLinked, tapedeck.Custom:
		return t.connects(ctx, e)
	case tapedeck.MessageAdded:
		return t.added(ctx, e)
	}
	fold := folds[e.Type]
	if fold == nil {
		return nil, nil
	}
	r, err := t.run(ctx, e)
	if err != nil {
		return nil, err
	}
	if e.Type == tapedeck.ToolCallResult {
		if err := t.findCall(ctx, e, r, partOf(e).ToolCallID); err != nil {
			return nil, err
		}
	}
	out := fold(r, e)
	if e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError {
		out = r.disconnect(t.session, e, out)
		delete(t.runs, e.Invocation)
	} else {
		t.keep(e, r)
	}
	return out, nil
}

// connects encodes an event that may say that the agent is connected to its own session, or
// is not any more.
func (t *encoder) connects(ctx context.Context, e *tapedeck.Event) ([]draft, error) {
	out := drafts(typeConnect, connectData{t.session})
	if e.Type == tapedeck.Custom {
		out = drafts(customEvent(e))
	}
	if len(out) == 0 || out[0].typ != typeConnect && out[0].typ != typeDisconnect {
		return out, nil
	}
	r, err := t.run(ctx, e)
	if err != nil {
		return nil, err
	}
	r.linked = out[0].typ == typeConnect
	t.keep(e, r)
	return out, nil
}

// keep remembers the state of a run whose beginning is not known.
func (t *encoder) keep(e *tapedeck.Event, r *run) {
	if t.whole && e.Invocation != "" && r.stateful() {
		t.runs[e.Invocation] = r
	}
}

// run returns the run that e belongs to. If it is not known, the run is empty.
func (t *encoder) run(ctx context.Context, e *tapedeck.Event) (*run, error) {
	if r, ok := t.runs[e.Invocation]; ok {
		return r, nil
	}
	if !t.whole && t.past != nil && e.Invocation != "" {
		if err := t.past.recall(ctx, t, e); err != nil {
			return nil, err
		}
		if r, ok := t.runs[e.Invocation]; ok {
			return r, nil
		}
	}
	return &run{}, nil
}

// added encodes a whole message.
func (t *encoder) added(ctx context.Context, e *tapedeck.Event) ([]draft, error) {
	var d payload.MessageAdded
	_ = json.Unmarshal(e.Data, &d) // see partOf
	text := d.Message.Text()
	switch d.Message.Role {
	case payload.RoleUser:
		t.remember(e, text)
		return drafts(typeUserMessage, textData{text}), nil
	case payload.RoleReasoning:
		return drafts(typeThinking, textData{text}), nil
	case payload.RoleAssistant, payload.RoleTool:
	default:
		return nil, nil
	}
	r, err := t.run(ctx, e)
	if err != nil {
		return nil, err
	}
	if d.Message.Role == payload.RoleAssistant {
		out := r.wholeMessage(e, &d.Message)
		t.keep(e, r)
		return out, nil
	}
	a := toolAnswer{ToolCallID: d.Message.ToolCallID, text: text, Error: d.Message.Error, meta: tapedeck.MetaOf(d.Message.Metadata)}
	if err := t.findCall(ctx, e, r, a.ToolCallID); err != nil {
		return nil, err
	}
	return r.answered(e, a), nil
}

// remember remembers what a user has said, for the run that it begins.
func (t *encoder) remember(e *tapedeck.Event, text string) {
	t.prompts = slices.DeleteFunc(t.prompts, func(p prompt) bool { return e.Offset-p.offset > promptLookback })
	t.prompts = append(t.prompts, prompt{e.Offset, e.Invocation, text})
}

// promptOf returns the words of the user that began the run which e starts.
func (t *encoder) promptOf(e *tapedeck.Event) string {
	for _, p := range slices.Backward(t.prompts) {
		if p.invocation == e.Invocation && e.Offset-p.offset <= promptLookback {
			return p.text
		}
	}
	return ""
}

// millis returns the milliseconds between two times, 0 if from is not known or the
// clock was set back.
func millis(from, to time.Time) int64 {
	if from.IsZero() {
		return 0
	}
	return max(to.Sub(from).Milliseconds(), 0)
}
