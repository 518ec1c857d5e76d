package agui

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
)

// An ending is the end of a run of the agent that did not fail.
type ending struct{ interrupts []payload.Interrupt }

// metaKey is the member of metadata that belongs to Tapedeck. What another server says
// there is about its own log.
const metaKey = "tapedeck"

// resultEvent is the name of the CUSTOM event with the result of the agent's run.
const resultEvent = "agui.result"

// hear passes on an event of the agent. The ending is nil while its run is open.
func (t *turn) hear(raw json.RawMessage) (*ending, error) {
	e, err := aguiwire.Event("an event of the agent", raw)
	switch {
	case err != nil && (e.Type == "" || !json.Valid(raw)): // any other type that AG-UI cannot have is stored as RAW
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "what the agent sends is not AG-UI: %s", narrate.Brief(err.Error(), t.runner.secrets)).Because(err)
	case !utf8.Valid(raw):
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "what the agent sends is not valid UTF-8")
	case jsonobj.Nesting(raw) >= jsonobj.MaxNesting:
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "an event of the agent is nested more than %d levels deep", jsonobj.MaxNesting-1)
	case e.Type == tapedeck.RunError:
		return nil, t.failed(e)
	case e.Type == tapedeck.RunStarted:
		return nil, t.started(e)
	case !t.begun:
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "the first event of the agent is %q, not %s", narrate.Brief(e.Type, t.runner.secrets), tapedeck.RunStarted)
	case e.Type == tapedeck.RunFinished:
		return t.finished(e)
	case e.Type == tapedeck.MessagesSnapshot:
		return nil, t.restated(e)
	case !isStored(e.Type):
		return nil, t.say(payload.NewEvent(payload.Raw{Event: raw, Source: "agui"}))
	case t.suspends(&e):
		return nil, nil
	}
	return nil, t.say(e)
}

// isStored reports whether events of a type are stored as they are. Types of later
// versions are. Others, such as Tapedeck's own, would mean something here that another
// server must not say.
func isStored(typ string) bool {
	return payload.IsAGUI(typ) || strings.HasPrefix(typ, "THINKING_") ||
		!strings.Contains(typ, ".") && !strings.HasPrefix(typ, "RUN_") && tapedeck.CheckID("the type", typ) == nil
}

// started notes that the run of the agent has begun.
func (t *turn) started(e tapedeck.Event) error {
	if t.begun {
		return tapedeck.Errorf(tapedeck.Unavailable, "the agent begins a second run in the same stream")
	}
	t.begun, t.open = true, true
	if jsonobj.Member(jsonobj.Member(e.Data, "metadata"), metaKey) != nil {
		t.ours = true
	}
	if t.linked {
		return nil
	}
	t.linked = true
	return t.pass([]tapedeck.Event{payload.NewEvent(payload.AgentLinked{Runner: t.runner.link(), NativeID: t.thread})})
}

// failed returns the error of a run that the agent has ended with one.
func (t *turn) failed(e tapedeck.Event) error {
	t.open = false
	d, err := decode[payload.RunError](e)
	if err != nil { // of a reason, the words matter more than the form of the rest
		d = payload.RunError{Message: jsonobj.StringOf(jsonobj.Member(e.Data, "message"))}
	}
	if d.Message == "" {
		return tapedeck.Errorf(tapedeck.Unavailable, "the agent has failed without a reason")
	}
	if err := t.used(d.Usage); err != nil {
		return err
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "the agent has failed: %s", narrate.Brief(d.Message, t.runner.secrets))
}

// finished reads the end of a run.
func (t *turn) finished(e tapedeck.Event) (*ending, error) {
	t.open = false
	d, err := decode[payload.RunFinished](e)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "the agent ends its run with an event that does not fit: %s", narrate.Brief(err.Error(), t.runner.secrets)).Because(err)
	}
	if err := t.used(d.Usage); err != nil {
		return nil, err
	}
	if d.Result != nil {
		if err := t.say(payload.NewEvent(payload.Custom{Name: resultEvent, Value: d.Result})); err != nil {
			return nil, err
		}
	}
	end := new(ending)
	switch o := d.Outcome; {
	case o == nil:
	case o.Type == payload.OutcomeCancelled:
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "somebody else has cancelled the run of the agent")
	case o.Type == payload.OutcomeInterrupt:
		end.interrupts, t.open = o.Interrupts, true
		return end, checkInterrupts(o.Interrupts)
	}
	return end, nil
}

// decode returns the data of an event as the log would have it.
func decode[T payload.Payload](e tapedeck.Event) (T, error) {
	var none T
	data, err := payload.TidyData(e.Data, e.Type, e.Type)
	if err != nil {
		return none, err
	}
	if e.Type == tapedeck.RunFinished { // earlier versions of some servers leave the ids out
		for _, name := range []string{"threadId", "runId"} {
			if jsonobj.Member(data, name) == nil {
				data = jsonobj.WithMember(data, name, "")
			}
		}
	}
	e.Data = data
	if err := payload.CheckData(&e); err != nil {
		return none, err
	}
	return payload.DecodeAs[T](e)
}

// used records the usage of the models in the agent's run.
func (t *turn) used(list []payload.TokenUsage) error {
	for i := range list {
		if err := t.pass([]tapedeck.Event{payload.NewEvent(payload.UsageReported{TokenCounts: list[i].TokenCounts})}); err != nil {
			return err
		}
	}
	return nil
}

// suspends notes that a sub-agent waits for an answer, or that it continues. In the log
// it has not ended meanwhile, because the run has not.
func (t *turn) suspends(e *tapedeck.Event) bool {
	id := jsonobj.StringOf(jsonobj.Member(e.Data, "subagentRunId"))
	switch e.Type {
	case tapedeck.SubagentFinished:
		outcome := jsonobj.Member(e.Data, "outcome")
		if jsonobj.StringOf(jsonobj.Member(outcome, "type")) == payload.OutcomeSuspended {
			t.suspended[id] = true
			return true
		}
	case tapedeck.SubagentStarted:
		if t.suspended[id] {
			delete(t.suspended, id)
			return true
		}
	}
	return false
}

// restated passes on the messages of the agent if they differ from those in the log.
// Many agents restate all of them at the end of each run.
func (t *turn) restated(e tapedeck.Event) error {
	d, err := decode[payload.MessagesSnapshot](e)
	if err != nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "the agent restates its messages in a form that does not fit: %s", narrate.Brief(err.Error(), t.runner.secrets)).Because(err)
	}
	d.Messages = slices.DeleteFunc(d.Messages, func(m payload.Message) bool { return m.SubagentRunID != "" }) // in the log a sub-agent has a thread of its own
	have, known := t.mem.messages(), t.mem.sent()
	if slices.EqualFunc(d.Messages, known, same) {
		return nil
	}
	task := t.mem.taskID()
	for i := range d.Messages {
		m := &d.Messages[i]
		delete(m.Metadata, metaKey)
		for j := range m.ToolCalls {
			delete(m.ToolCalls[j].Metadata, metaKey)
		}
		if m.ID == task && slices.ContainsFunc(known, func(k payload.Message) bool { return same(*m, k) }) {
			m.Content = have[slices.IndexFunc(have, func(h payload.Message) bool { return h.ID == m.ID })].Content // without the context
		}
	}
	d.Messages = withReplies(d.Messages, have)
	return t.say(payload.NewEvent(d))
}

// same reports whether two messages say the same.
func same(a, b payload.Message) bool {
	return a.ID == b.ID && a.Role == b.Role && a.ToolCallID == b.ToolCallID && a.Error == b.Error && a.Text() == b.Text() &&
		jsonobj.IsString(or(a.Content, []byte(`""`))) == jsonobj.IsString(or(b.Content, []byte(`""`))) &&
		slices.EqualFunc(a.ToolCalls, b.ToolCalls, func(x, y payload.ToolCall) bool {
			return x.ID == y.ID && x.Function.Name == y.Function.Name && x.Function.Arguments == y.Function.Arguments
		})
}

// withoutOurs returns the data of an event without the metadata of Tapedeck.
func withoutOurs(data json.RawMessage) json.RawMessage {
	metadata := jsonobj.Member(data, "metadata")
	if jsonobj.Member(metadata, metaKey) == nil {
		return data
	}
	var rest map[string]json.RawMessage
	if json.Unmarshal(metadata, &rest) != nil {
		return data // the order refuses it
	}
	delete(rest, metaKey)
	out := []byte{'{'}
	o := jsonobj.Read(data)
	for name, raw, ok := o.Next(); ok; name, raw, ok = o.Next() {
		if string(name) != "metadata" {
			out = append(jsonobj.AppendName(out, 1, string(name)), raw...)
		} else if len(rest) > 0 {
			out = jsonobj.AppendMembers(jsonobj.AppendName(out, 1, "metadata"), rest)
		}
	}
	return append(out, '}')
}
