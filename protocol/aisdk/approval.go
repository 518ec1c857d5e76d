package aisdk

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// Kinds of options, the one that covers less first.
var (
	allowing  = []string{"allow_once", "allow_always"}
	rejecting = []string{"reject_once", "reject_always"}
)

// An approval is the answer of a user to a question about a call.
type approval struct {
	id       string
	approved bool
}

// answers returns the approvals in the last message of a request.
func (in *input) answers() (list []approval) {
	if len(in.Messages) == 0 {
		return nil
	}
	for _, p := range in.Messages[len(in.Messages)-1].Parts {
		if a := p.Approval; p.State == stateApprovalResponded && a != nil && a.ID != "" && a.Approved != nil {
			list = append(list, approval{a.ID, *a.Approved})
		}
	}
	return list
}

// answer gives the approvals of a client to the agent that waits for them. It returns
// the run that asked, and the offset after which the client lacks chunks. It checks all
// approvals first, so that a request with a mistake gives none. An approval that is not
// pending any more is not a mistake: a message keeps it until the tool has answered.
func (h *handler) answer(ctx context.Context, in *input, now *view.Snapshot, list []approval) (run *view.Run, from int64, err error) {
	var given []api.Answer
	for _, a := range list {
		i := asked(now.Permissions, a.id)
		if i < 0 {
			return nil, 0, tapedeck.Errorf(tapedeck.NotFound, "the chat has no question %.100q", a.id).WithHint("load the messages of the chat, and resume its stream")
		}
		p := &now.Permissions[i]
		if from <= p.Offset {
			run, from = runOf(now, p.Invocation), p.Offset+1
		}
		if p.Status != view.PermissionOpen {
			continue
		}
		option := optionFor(p, a.approved)
		if option == "" {
			return nil, 0, tapedeck.Errorf(tapedeck.Invalid, "the question %s has no option for this answer", p.ID).
				WithHint("answer with POST /api/v1/sessions/%s/permissions/%s", in.ID, p.ID)
		}
		given = append(given, api.Answer{Session: in.ID, Permission: p.ID, Option: option, Offset: &p.Offset})
	}
	if run == nil {
		return nil, 0, tapedeck.Errorf(tapedeck.Conflict, "the run that asked is not in the chat any more").WithHint("load the messages of the chat")
	}
	for _, a := range given {
		if _, err := h.Verbs.Answer(ctx, a); err != nil {
			return nil, 0, err
		}
	}
	from = max(from, in.Messages[len(in.Messages)-1].place().Next)
	last := now.At
	if run.EndOffset != nil {
		last = *run.EndOffset // its end is always sent
	}
	return run, min(from, last), nil
}

// asked returns the index of the newest question with an id, -1 if there is none. An agent
// may use the id again when the question has its answer.
func asked(list []view.Permission, id string) int {
	for i := range slices.Backward(list) {
		if list[i].ID == id {
			return i
		}
	}
	return -1
}

// runOf returns a run of a conversation, nil if it is not there.
func runOf(now *view.Snapshot, invocation string) *view.Run {
	i := slices.IndexFunc(now.Runs, func(r view.Run) bool { return r.Invocation == invocation })
	if i < 0 {
		return nil
	}
	return &now.Runs[i]
}

// optionFor returns the option that allows or rejects, "" if there is none.
func optionFor(p *view.Permission, approved bool) string {
	kinds := rejecting
	if approved {
		kinds = allowing
	}
	for _, kind := range kinds {
		for _, o := range p.Options {
			if o.Kind == kind {
				return o.ID
			}
		}
	}
	return ""
}
