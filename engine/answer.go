package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// Answer answers what an agent has asked. A permission that the session does not
// have is [tapedeck.NotFound]; one that was answered, or whose run has ended, a
// [tapedeck.Conflict]; an option that it does not have is [tapedeck.Invalid]. Of
// several answers at the same time one is accepted.
func (e *Engine) Answer(ctx context.Context, a tapedeck.Answer) (tapedeck.Answered, error) {
	if err := tapedeck.CheckID("the permission", a.Permission); err != nil {
		return tapedeck.Answered{}, err
	}
	if q := e.question(a.Session, a.Permission); q != nil {
		return q.take(context.WithoutCancel(ctx), a)
	}
	return e.answerForeign(ctx, a)
}

// question returns an open question of a run that this engine drives, nil if
// there is none.
func (e *Engine) question(session, id string) *question {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.runs {
		if r.in.Session != session {
			continue
		}
		if q := r.questions.get(id); q != nil && q.isAsked() {
			return q
		}
	}
	return nil
}

// take writes an answer down.
func (q *question) take(ctx context.Context, a tapedeck.Answer) (tapedeck.Answered, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.refuse(a.Option); err != nil {
		return tapedeck.Answered{}, err
	}
	d := tapedeck.PermissionAnsweredData{ID: q.ID, Option: a.Option, Outcome: outcomeSelected}
	ev := q.run.event(d)
	ev.Actor = a.Actor
	done, err := q.run.engine.write(ctx, tapedeck.Append{Session: a.Session, Events: []tapedeck.Event{ev}}, q.run.isOpen)
	if err != nil {
		return tapedeck.Answered{}, err
	}
	q.logged = true
	q.set(d)
	return tapedeck.Answered{Permission: q.ID, Option: a.Option, Offset: done.First}, nil
}

// refuse says why an option cannot be chosen. It is called with q.mu held.
func (q *question) refuse(option string) error {
	if q.answer != nil {
		return answeredAlready(q.ID, q.answer.Option)
	}
	return hasOption(q.ID, q.Options, option)
}

func answeredAlready(id, option string) error {
	if option == "" {
		return tapedeck.Errorf(tapedeck.Conflict, "the permission %s is not open any more: it was cancelled", id)
	}
	return tapedeck.Errorf(tapedeck.Conflict, "the permission %s was answered already: %s", id, option)
}

func hasOption(id string, options []tapedeck.PermissionOption, option string) error {
	ids := make([]string, len(options))
	for i, o := range options {
		if ids[i] = o.ID; o.ID == option {
			return nil
		}
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the permission %s has no option %q", id, option).WithHint("choose one of %s", strings.Join(ids, ", "))
}

// answerForeign answers a question of a run that is written from outside: who
// writes it reads the answer from the log.
func (e *Engine) answerForeign(ctx context.Context, a tapedeck.Answer) (tapedeck.Answered, error) {
	if err := ctx.Err(); err != nil {
		return tapedeck.Answered{}, err
	}
	e.answering.Lock() // one of two wins
	defer e.answering.Unlock()
	s, err := e.session(ctx, a.Session)
	if err != nil {
		return tapedeck.Answered{}, err
	}
	now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: s.Head, Limit: 1})
	if err != nil {
		return tapedeck.Answered{}, err
	}
	i := slices.IndexFunc(now.Permissions, func(p view.Permission) bool { return p.ID == a.Permission })
	if i < 0 {
		return tapedeck.Answered{}, tapedeck.Errorf(tapedeck.NotFound, "session %s has no permission %q", s.ID, a.Permission)
	}
	p := &now.Permissions[i]
	if p.Status != view.PermissionOpen {
		return tapedeck.Answered{}, answeredAlready(p.ID, p.Option)
	}
	if err := hasOption(p.ID, options(p), a.Option); err != nil {
		return tapedeck.Answered{}, err
	}
	ev := event(tapedeck.PermissionAnsweredData{ID: p.ID, Option: a.Option, Outcome: outcomeSelected}, a.Actor)
	ev.Thread, ev.Invocation, ev.Instance = p.Thread, p.Invocation, p.Instance
	done, err := e.write(context.WithoutCancel(ctx), tapedeck.Append{Session: s.ID, Events: []tapedeck.Event{ev}}, func(s *tapedeck.Session, _ []tapedeck.Event) error {
		if p.Invocation != "" && !hasRun(s, p.Invocation) {
			return tapedeck.Errorf(tapedeck.Conflict, "run %s has ended", p.Invocation)
		}
		return nil
	})
	return tapedeck.Answered{Permission: p.ID, Option: a.Option, Offset: done.First}, err
}

func options(p *view.Permission) []tapedeck.PermissionOption {
	out := make([]tapedeck.PermissionOption, len(p.Options))
	for i, o := range p.Options {
		out[i].ID = o.ID
	}
	return out
}

// A taking is answers that come from outside as events, to questions of runs
// that this engine drives.
type taking struct {
	questions []*question // locked
	answers   []tapedeck.PermissionAnsweredData
}

// takings locks the questions that events answer, if they may be answered.
func (e *Engine) takings(session string, events []tapedeck.Event) (*taking, error) {
	t := &taking{}
	for i := range events {
		if events[i].Type != tapedeck.PermissionAnswered {
			continue
		}
		var d tapedeck.PermissionAnsweredData
		if json.Unmarshal(events[i].Data, &d) != nil {
			continue // the log's own check refuses it
		}
		q := e.question(session, d.ID)
		if q == nil {
			continue
		}
		if len(t.questions) > 0 { // two locks, in whatever order, could wait for each other
			t.done(false)
			return nil, tapedeck.Errorf(tapedeck.Invalid, "an append answers one question of a run at most")
		}
		q.mu.Lock()
		t.questions, t.answers = append(t.questions, q), append(t.answers, d)
		if err := q.refuse(d.Option); err != nil {
			t.done(false)
			return nil, err
		}
	}
	return t, nil
}

// done releases the questions, and counts on the answers if they were written.
func (t *taking) done(written bool) {
	for i, q := range t.questions {
		if written {
			q.logged = true
			q.set(t.answers[i])
		}
		q.mu.Unlock()
	}
}
