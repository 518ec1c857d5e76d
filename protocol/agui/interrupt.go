package agui

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// In the log a run stays open while its agent waits for people. In AG-UI a run that
// waits has finished with interrupts, and another run brings the answers. So one run
// of the log becomes several for a client.

// Reasons of an interrupt, by the specification of AG-UI.
const (
	reasonToolCall     = "tool_call"
	reasonConfirmation = "confirmation"
)

// interruptOf returns a question as an interrupt.
func interruptOf(q *tapedeck.Question, at mark) payload.Interrupt {
	i := payload.Interrupt{ID: q.ID, Reason: reasonConfirmation, Message: q.Message, ToolCallID: q.ToolCallID, ResponseSchema: schemaOf(q.Options)}
	if q.ToolCallID != "" {
		i.Reason = reasonToolCall
	}
	raw, err := json.Marshal(struct {
		mark
		Options []tapedeck.PermissionOption `json:"options"`
		Action  *tapedeck.PermissionAction  `json:"action,omitempty"`
	}{at, q.Options, q.Action})
	if err == nil {
		i.Metadata = tapedeck.Members{metaKey: raw}
	}
	return i
}

// schemaOf returns the JSON Schema of an answer. An answer names an option, or says
// only whether the user approves.
func schemaOf(options []tapedeck.PermissionOption) json.RawMessage {
	ids := make([]string, len(options))
	for i, o := range options {
		ids[i] = o.ID
	}
	raw, _ := json.Marshal(map[string]any{ // strings only
		"type": "object",
		"properties": map[string]any{
			"option":   map[string]any{"type": "string", "enum": ids},
			"approved": map[string]any{"type": "boolean"},
		},
	})
	return raw
}

// ask notes a question of the agent.
func (s *stream) ask(e *tapedeck.Event) {
	var q tapedeck.Question
	if json.Unmarshal(e.Data, &q) == nil && q.ID != "" {
		s.pending = append(s.pending, question{q.ID, interruptOf(&q, mark{e.Offset, e.Invocation})})
	}
}

// answered notes an answer.
func (s *stream) answered(e *tapedeck.Event) {
	var c tapedeck.Choice
	if json.Unmarshal(e.Data, &c) == nil {
		s.pending = slices.DeleteFunc(s.pending, func(q question) bool { return q.id == c.ID })
	}
}

// askPending notes the pending questions of a run that a view shows.
func (s *stream) askPending(list []view.Permission) {
	for i := range list {
		if p := &list[i]; p.Status == view.PermissionOpen && p.Invocation == s.invocation {
			q := questionOf(p)
			s.pending = append(s.pending, question{q.ID, interruptOf(&q, mark{p.Offset, p.Invocation})})
		}
	}
}

func questionOf(p *view.Permission) tapedeck.Question {
	q := tapedeck.Question{ID: p.ID, ToolCallID: p.ToolCallID, Message: p.Message}
	if a := new(tapedeck.PermissionAction); json.Unmarshal(p.Action, a) == nil {
		q.Action = a
	}
	for _, o := range p.Options {
		q.Options = append(q.Options, tapedeck.PermissionOption{ID: o.ID, Name: o.Name, Kind: o.Kind, Covers: o.Covers})
	}
	return q
}

// wait ends the stream because the run waits for answers.
func (s *stream) wait() {
	ids := make([]string, len(s.pending))
	interrupts := make([]payload.Interrupt, len(s.pending))
	for i, q := range s.pending {
		ids[i], interrupts[i] = q.id, q.interrupt
	}
	for _, t := range slices.Backward(s.open) {
		e := t.closing(ids)
		if b, ok := s.appendEvent(nil, &e, true); ok {
			s.put(b)
		}
	}
	s.end(&payload.Outcome{Type: payload.OutcomeInterrupt, Interrupts: interrupts})
}

// answer gives the answers of a client to the agent that waits for them.
func (h *handler) answer(ctx context.Context, in *input, list []view.Permission) error {
	for _, a := range in.resume {
		i := slices.IndexFunc(list, func(p view.Permission) bool { return p.ID == a.InterruptID && p.Status == view.PermissionOpen })
		if i < 0 {
			return tapedeck.Errorf(tapedeck.Conflict, "the interrupt %.100q is not pending any more: it was answered or cancelled", a.InterruptID).
				WithHint("connect again with a new client; it gets what happened since")
		}
		if err := h.answerOne(ctx, in, &list[i], &a); err != nil {
			return err
		}
	}
	return nil
}

func (h *handler) answerOne(ctx context.Context, in *input, p *view.Permission, a *answer) error {
	switch a.Status {
	case "resolved", "cancelled":
		option := ofKind(p, rejecting) // a user who does not answer allows nothing
		if a.Status == "resolved" {
			var err error
			if option, err = chosen(p, a.Payload); err != nil {
				return err
			}
		}
		if option != "" {
			_, err := h.Verbs.Answer(ctx, api.Answer{Session: in.place.session, Permission: p.ID, Option: option, Offset: &p.Offset})
			return err
		}
		e := payload.NewEvent(payload.PermissionAnswered{Choice: tapedeck.Choice{ID: p.ID, Outcome: "cancelled"}})
		e.Thread, e.Invocation = p.Thread, p.Invocation
		_, err := h.Verbs.Append(ctx, tapedeck.Append{Session: in.place.session, Events: []tapedeck.Event{e}})
		return err
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the status of an answer must be resolved or cancelled, not %.100q", a.Status)
}

// Kinds of options, the one that covers less first.
var (
	allowing  = []string{"allow_once", "allow_always"}
	rejecting = []string{"reject_once", "reject_always"}
)

// ofKind returns the first option of one of the kinds, "" if there is none.
func ofKind(p *view.Permission, kinds []string) string {
	for _, kind := range kinds {
		for _, o := range p.Options {
			if o.Kind == kind {
				return o.ID
			}
		}
	}
	return ""
}

// chosen returns the option that a payload chooses: a string, an object with option,
// or an object with approved.
func chosen(p *view.Permission, raw json.RawMessage) (string, error) {
	var option string
	if json.Unmarshal(raw, &option) == nil && option != "" {
		return option, nil
	}
	var d struct {
		Option   string `json:"option"`
		Approved *bool  `json:"approved"`
	}
	_ = json.Unmarshal(raw, &d) // another shape chooses nothing
	if d.Option != "" {
		return d.Option, nil
	}
	if d.Approved != nil {
		kinds := allowing
		if !*d.Approved {
			kinds = rejecting
		}
		if option := ofKind(p, kinds); option != "" {
			return option, nil
		}
	}
	ids := make([]string, len(p.Options))
	for i, o := range p.Options {
		ids[i] = o.ID
	}
	return "", tapedeck.Errorf(tapedeck.Invalid, "the answer to %s chooses no option", p.ID).WithHint(`send {"option":"…"} with one of %q`, ids)
}

// interruptsOf reads the interrupts of a run that another program has recorded.
func interruptsOf(raw json.RawMessage) []payload.Interrupt {
	var list []payload.Interrupt
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}
