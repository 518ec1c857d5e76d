package agui

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/internal/proposal"
	"github.com/tapedeck/tapedeck/payload"
)

// An agent of AG-UI asks by ending its run with interrupts. An interrupt that an option
// can answer becomes a question. One that needs words ends our run, too: the next task
// of the thread is the answer.

// Bounds of what an agent may ask at once.
const (
	maxInterrupts = 50
	maxOptions    = 50
	maxName       = 200      // bytes of the name of an option
	maxPrompt     = 4 << 10  // bytes of a question's text
	maxAction     = 96 << 10 // bytes of the JSON of an action
)

// An entry is the answer to an interrupt.
type entry struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"` // resolved, or cancelled for no answer
	Payload     json.RawMessage `json:"payload,omitempty"`
}

func checkInterrupts(list []payload.Interrupt) error {
	if len(list) == 0 || len(list) > maxInterrupts {
		return tapedeck.Errorf(tapedeck.Unavailable, "the agent asks %d questions at once; 1 to %d are allowed", len(list), maxInterrupts)
	}
	seen := map[string]bool{}
	for _, i := range list {
		if i.ID == "" || seen[i.ID] {
			return tapedeck.Errorf(tapedeck.Unavailable, "the questions of the agent have no ids of their own")
		}
		seen[i.ID] = true
	}
	return nil
}

// ask asks people, all questions at once. Its waits are not nil if an interrupt needs
// words.
func (t *turn) ask(ctx context.Context, list []payload.Interrupt) ([]entry, *waits, error) {
	entries, errs := make([]entry, len(list)), make([]error, len(list))
	w := &waits{}
	var all sync.WaitGroup
	for n := range list {
		i := &list[n]
		q, payloads := t.question(i)
		if payloads == nil {
			w.Interrupts = append(w.Interrupts, *i)
			continue
		}
		entries[n] = entry{InterruptID: i.ID, Status: "cancelled"}
		if t.in.Ask == nil {
			continue
		}
		all.Go(func() {
			c, err := t.in.Ask(ctx, q)
			if p, ok := payloads[c.Option]; ok && c.Option != "" && err == nil {
				entries[n].Status, entries[n].Payload = "resolved", p
			}
			errs[n] = err
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return e.InterruptID == "" })
	if len(w.Interrupts) == 0 {
		return entries, nil, nil
	}
	w.Resume = entries
	return nil, w, nil
}

// question returns an interrupt as a question, and the payload of the answer for each
// option. The payloads are nil if no option can answer it.
func (t *turn) question(i *payload.Interrupt) (tapedeck.Question, map[string]json.RawMessage) {
	q := tapedeck.Question{ID: tapedeck.NewID("per_"), Message: proposal.Text(i.Message, maxPrompt)}
	payloads := map[string]json.RawMessage{}
	var ours struct {
		Options []tapedeck.PermissionOption `json:"options"`
		Action  json.RawMessage             `json:"action"`
	}
	_ = json.Unmarshal(i.Metadata[metaKey], &ours) // only another Tapedeck sends it
	if q.Options = ours.Options; areOptions(q.Options) {
		for n := range q.Options {
			o := &q.Options[n]
			raw, _ := json.Marshal(map[string]string{"option": o.ID}) // a string
			payloads[o.ID], o.Name, o.Covers = raw, proposal.Text(o.Name, maxName), proposal.Text(o.Covers, maxPrompt)
		}
		q.Action = actionOf(ours.Action)
	} else if q.Options, payloads = optionsOf(i); payloads == nil {
		return q, nil
	}
	if k, ok := t.mem.call(i.ToolCallID); ok {
		q.ToolCallID = k.ID
		if q.Action == nil {
			d := proposal.FromArguments(k.Name, json.RawMessage(k.Arguments))
			if !json.Valid([]byte(k.Arguments)) {
				d = proposal.Draft{Tool: k.Name, Note: k.Arguments}
			}
			q.Action = d.Action()
		}
	}
	return q, payloads
}

// areOptions reports whether another Tapedeck has sent options that can be shown.
func areOptions(list []tapedeck.PermissionOption) bool {
	return len(list) > 0 && len(list) <= maxOptions && !slices.ContainsFunc(list, func(o tapedeck.PermissionOption) bool {
		return tapedeck.CheckID("the option", o.ID) != nil || len(o.Kind) > maxName
	})
}

// actionOf returns the action that another Tapedeck describes. One that is too large is
// shown as its JSON, whose middle is left out.
func actionOf(raw json.RawMessage) *tapedeck.PermissionAction {
	a := new(tapedeck.PermissionAction)
	if len(raw) == 0 || json.Unmarshal(raw, a) != nil {
		return nil
	}
	if len(raw) > maxAction {
		d := proposal.Draft{Arguments: raw}
		return d.Action()
	}
	return a
}

// A schema is the part of a JSON Schema of an answer that is understood.
type schema struct {
	Type       any               `json:"type"`
	Enum       []any             `json:"enum"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
}

// optionsOf returns the options of an interrupt and the payload of each, nil if it needs
// words.
func optionsOf(i *payload.Interrupt) ([]tapedeck.PermissionOption, map[string]json.RawMessage) {
	s, member := schema{}, ""
	if json.Unmarshal(i.ResponseSchema, &s) != nil {
		switch i.Reason { // the specification says what they mean without a schema
		case "confirmation":
			s.Type = "boolean"
		case "tool_call":
			s.Type, member = "boolean", "approved"
		}
	}
	if p, ok := s.Properties["approved"]; ok && len(s.Required) <= 1 {
		s, member = p, "approved"
	} else if len(s.Required) == 1 || len(s.Properties) == 1 {
		for name := range s.Properties {
			if len(s.Properties) == 1 || name == s.Required[0] {
				s, member = s.Properties[name], name
				break
			}
		}
	}
	var options []tapedeck.PermissionOption
	payloads := map[string]json.RawMessage{}
	add := func(id, name, kind string, value any) {
		raw, err := json.Marshal(value)
		if member != "" {
			raw, err = json.Marshal(map[string]any{member: value})
		}
		if err == nil {
			options, payloads[id] = append(options, tapedeck.PermissionOption{ID: id, Name: name, Kind: kind}), raw
		}
	}
	switch {
	case len(s.Enum) > 0 && len(s.Enum) <= maxOptions:
		for n, v := range s.Enum {
			raw, _ := json.Marshal(v) // it was decoded from JSON
			add("option-"+string(rune('a'+n%26))+strings.Repeat("x", n/26), proposal.Text(narrate.String(raw), maxName), "", v)
		}
	case s.Type == "boolean":
		add("approve", "Approve", "allow_once", true)
		add("reject", "Reject", "reject_once", false)
	default:
		return nil, nil
	}
	return options, payloads
}

// waitsEvent is the name of the CUSTOM event that says what the agent waits for.
const waitsEvent = "agui.waits"

// A waits is what a run of the agent waits for when our run has ended.
type waits struct {
	Interrupts []payload.Interrupt `json:"interrupts"`       // that need words
	Resume     []entry             `json:"resume,omitempty"` // the answers to the others
}

// promptID begins the ids of messages in which this runner repeats what an agent asks.
const promptID = "agui.ask."

// leave ends the run with what the agent wants to know.
func (t *turn) leave(w *waits) error {
	t.open = false // the next run has the answer
	var said []string
	for _, i := range w.Interrupts {
		if i.Message != "" {
			said = append(said, proposal.Text(i.Message, maxPrompt))
		} else {
			said = append(said, "The agent waits for input ("+narrate.Brief(i.Reason, t.runner.secrets)+").")
		}
	}
	value, err := json.Marshal(w)
	if err != nil {
		return err
	}
	id := promptID + t.in.ID
	for _, p := range []payload.Payload{
		payload.TextMessageStart{MessageID: id, Role: payload.RoleAssistant},
		payload.TextMessageContent{MessageID: id, Delta: payload.Piece(strings.Join(said, "\n\n"))},
		payload.TextMessageEnd{MessageID: id},
		payload.Custom{Name: waitsEvent, Value: value},
	} {
		if err := t.say(payload.NewEvent(p)); err != nil {
			return err
		}
	}
	return nil
}

// answered returns the answers, of which the user's words are the last. Without words
// the user has not answered.
func (w *waits) answered(task *payload.Message) []entry {
	out := slices.Clone(w.Resume)
	for _, i := range w.Interrupts {
		e := entry{InterruptID: i.ID, Status: "cancelled"}
		if task != nil {
			e.Status, e.Payload = "resolved", worded(&i, task.Text())
		}
		out = append(out, e)
	}
	return out
}

// worded returns the user's words in the form that an interrupt wants: a text, or an
// object with the text as its only member. An object is sent as it is.
func worded(i *payload.Interrupt, text string) json.RawMessage {
	if isObject(text) {
		return json.RawMessage(strings.TrimSpace(text))
	}
	var s schema
	_ = json.Unmarshal(i.ResponseSchema, &s) // no schema wants a text
	for name := range s.Properties {
		if len(s.Properties) == 1 || len(s.Required) == 1 && name == s.Required[0] {
			raw, _ := json.Marshal(map[string]string{name: text}) // strings
			return raw
		}
	}
	return payload.Text(text)
}

// withReplies returns restated messages with those that only the log has: what the agent
// asked in an interrupt, and the user's answer, which it got in the next input.
func withReplies(restated, have []payload.Message) []payload.Message {
	index := func(id string) int {
		return slices.IndexFunc(restated, func(m payload.Message) bool { return m.ID == id })
	}
	asked := false
	for n := range have {
		m := &have[n]
		ours := strings.HasPrefix(m.ID, promptID) || asked && m.Role == payload.RoleUser
		asked = strings.HasPrefix(m.ID, promptID)
		if !ours || index(m.ID) >= 0 {
			continue
		}
		at := 0
		if n > 0 {
			at = index(have[n-1].ID) + 1
		}
		restated = slices.Insert(restated, at, *m)
	}
	return restated
}
