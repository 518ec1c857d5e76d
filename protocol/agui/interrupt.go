package agui

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

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
		q.ToolCallID = s.naming.Call(q.ToolCallID)
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
			q.ToolCallID = s.naming.Call(q.ToolCallID)
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
		s.putEvent(new(t.closing(ids)), true)
	}
	s.end(&payload.Outcome{Type: payload.OutcomeInterrupt, Interrupts: interrupts})
}

// answer gives the answers of a client to the agent that waits for them, and returns the
// offset of the last one. It checks all of them first, so that a request with a mistake
// gives none.
func (h *handler) answer(ctx context.Context, in *input, now *view.Snapshot) (last int64, err error) {
	if err := checkAnswers(in.resume, pendingIn(now.Permissions), askedIn(now)); err != nil {
		return 0, err
	}
	type choice struct {
		permission *view.Permission
		option     string
	}
	choices := make([]choice, len(in.resume))
	for n := range in.resume {
		a := &in.resume[n]
		p := &now.Permissions[slices.IndexFunc(now.Permissions, func(p view.Permission) bool { return isPending(&p, a.InterruptID) })]
		option := ofKind(p, rejecting) // a user who does not answer allows nothing
		if a.Status == statusResolved {
			var err error
			if option, err = chosen(p, a.Payload); err != nil {
				return 0, err
			}
			if !slices.ContainsFunc(p.Options, func(o view.PermissionOption) bool { return o.ID == option }) {
				return 0, tapedeck.Errorf(tapedeck.Invalid, "the permission %s has no option %.100q", p.ID, option).WithHint("choose one of %s", strings.Join(optionIDs(p), ", "))
			}
		}
		choices[n] = choice{p, option}
	}
	for _, c := range choices {
		if last, err = h.answerOne(ctx, in, c.permission, c.option); err != nil {
			return 0, err
		}
	}
	return last, nil
}

func isPending(p *view.Permission, id string) bool {
	return p.ID == id && p.Status == view.PermissionOpen
}

// pendingIn returns the ids of the pending questions.
func pendingIn(list []view.Permission) map[string]bool {
	ids := map[string]bool{}
	for i := range list {
		if p := &list[i]; p.Status == view.PermissionOpen {
			ids[p.ID] = true
		}
	}
	return ids
}

// leftBy returns the ids of the interrupts with which another program has ended the
// newest run. The next run has the answers.
func leftBy(runs []view.Run) map[string]bool {
	ids := map[string]bool{}
	if n := len(runs); n > 0 {
		for _, i := range interruptsOf(runs[n-1].Interrupts) {
			ids[i.ID] = true
		}
	}
	return ids
}

// askedIn returns the ids of all interrupts of a thread that are known.
func askedIn(now *view.Snapshot) map[string]bool {
	ids := map[string]bool{}
	for i := range now.Permissions {
		ids[now.Permissions[i].ID] = true
	}
	for i := range now.Runs {
		for _, i := range interruptsOf(now.Runs[i].Interrupts) {
			ids[i.ID] = true
		}
	}
	return ids
}

// Statuses of an answer.
const (
	statusResolved  = "resolved"
	statusCancelled = "cancelled"
)

// checkAnswers refuses answers to what nobody has asked, or waits for any more.
func checkAnswers(list []answer, pending, asked map[string]bool) error {
	seen := map[string]bool{}
	for _, a := range list {
		switch {
		case seen[a.InterruptID]:
			return tapedeck.Errorf(tapedeck.Invalid, "there are two answers to the interrupt %.100q", a.InterruptID)
		case a.Status != statusResolved && a.Status != statusCancelled:
			return tapedeck.Errorf(tapedeck.Invalid, "the status of an answer must be resolved or cancelled, not %.100q", a.Status)
		case pending[a.InterruptID]:
		case asked[a.InterruptID]:
			return tapedeck.Errorf(tapedeck.Conflict, "the interrupt %.100q is not pending any more: it was answered or cancelled", a.InterruptID).
				WithHint("connect again with a new client; it gets what happened since")
		default:
			return tapedeck.Errorf(tapedeck.NotFound, "the thread has no interrupt %.100q", a.InterruptID).
				WithHint("connect to the thread; it says what is pending")
		}
		seen[a.InterruptID] = true
	}
	return nil
}

func (h *handler) answerOne(ctx context.Context, in *input, p *view.Permission, option string) (int64, error) {
	if option != "" {
		done, err := h.Verbs.Answer(ctx, api.Answer{Session: in.place.session, Permission: p.ID, Option: option, Offset: &p.Offset})
		return done.Offset, err
	}
	e := payload.NewEvent(payload.PermissionAnswered{Choice: tapedeck.Choice{ID: p.ID, Outcome: "cancelled"}})
	e.Thread, e.Invocation = p.Thread, p.Invocation
	done, err := h.Verbs.Append(ctx, tapedeck.Append{Session: in.place.session, Events: []tapedeck.Event{e}})
	return done.First, err
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
	return "", tapedeck.Errorf(tapedeck.Invalid, "the answer to %s chooses no option", p.ID).WithHint(`send {"option":"…"} with one of %q`, optionIDs(p))
}

func optionIDs(p *view.Permission) []string {
	ids := make([]string, len(p.Options))
	for i, o := range p.Options {
		ids[i] = o.ID
	}
	return ids
}

// interruptsOf reads the interrupts of a run that another program has recorded.
func interruptsOf(raw json.RawMessage) []payload.Interrupt {
	var list []payload.Interrupt
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}
