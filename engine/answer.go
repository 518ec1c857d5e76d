package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// Answer answers what an agent has asked. A permission that the session does not
// have is [tapedeck.NotFound]; one that was answered, or whose run has ended, a
// [tapedeck.Conflict]; an option that it does not have is [tapedeck.Invalid]. Of
// several answers at the same time one is accepted.
func (e *Engine) Answer(ctx context.Context, a api.Answer) (api.Answered, error) {
	if err := tapedeck.CheckID("the permission", a.Permission); err != nil {
		return api.Answered{}, err
	}
	if q := e.question(ctx, a.Session, a.Permission); q != nil {
		return q.answerWith(context.WithoutCancel(ctx), a)
	}
	return e.answerForeign(ctx, a)
}

// question returns a question of a run that this engine drives, as soon as it
// is known to be in the log; nil if there is none. Who reads the log may know it
// before we do.
func (e *Engine) question(ctx context.Context, session, id string) *question {
	q := e.find(session, id)
	if q == nil {
		return nil
	}
	select {
	case <-q.asked:
		return q
	case <-q.run.done:
	case <-ctx.Done():
	}
	return nil
}

func (e *Engine) find(session, id string) *question {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.runs {
		if r.in.Session != session {
			continue
		}
		if q := r.questions.get(id); q != nil {
			return q
		}
	}
	return nil
}

// take writes an answer down.
func (q *question) answerWith(ctx context.Context, a api.Answer) (api.Answered, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.checkOption(a.Option)
	if err == nil {
		err = wasShown(&a, q.offset)
	}
	if err != nil {
		return api.Answered{}, err
	}
	d := tapedeck.Choice{ID: q.ID, Option: a.Option, Outcome: outcomeSelected}
	ev := q.run.event(payload.PermissionAnswered{Choice: d})
	ev.Actor = a.Actor
	done, err := q.run.engine.write(ctx, tapedeck.Append{Session: a.Session, Events: []tapedeck.Event{ev}}, q.run.isOpen)
	if err != nil {
		return api.Answered{}, err
	}
	q.logged = true
	q.setAnswer(d)
	return api.Answered{Permission: q.ID, Option: a.Option, Offset: done.First}, nil
}

// wasShown refuses an answer to another question than the one that is open: the
// id may have been used before.
func wasShown(a *api.Answer, offset int64) error {
	if a.Offset == nil || *a.Offset == offset {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Conflict, "the permission %s that is open was asked at offset %d, not at %d", a.Permission, offset, *a.Offset).
		WithHint("look at what is asked now, and answer that")
}

// refuse says why an option cannot be chosen. It is called with q.mu held.
func (q *question) checkOption(option string) error {
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
func (e *Engine) answerForeign(ctx context.Context, a api.Answer) (api.Answered, error) {
	if err := ctx.Err(); err != nil {
		return api.Answered{}, err
	}
	e.answering.Lock() // one of two wins
	defer e.answering.Unlock()
	s, err := e.session(ctx, a.Session)
	if err != nil {
		return api.Answered{}, err
	}
	now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: s.Head, Limit: 1})
	if err != nil {
		return api.Answered{}, err
	}
	p := permission(&now, a.Permission)
	switch {
	case p == nil:
		return api.Answered{}, tapedeck.Errorf(tapedeck.NotFound, "session %s has no permission %q", s.ID, a.Permission)
	case p.Status != view.PermissionOpen:
		return api.Answered{}, answeredAlready(p.ID, p.Option)
	}
	if err := cmp.Or(hasOption(p.ID, options(p), a.Option), wasShown(&a, p.Offset)); err != nil {
		return api.Answered{}, err
	}
	ev := event(payload.PermissionAnswered{Choice: tapedeck.Choice{ID: p.ID, Option: a.Option, Outcome: outcomeSelected}}, a.Actor)
	ev.Thread, ev.Invocation, ev.Instance = p.Thread, p.Invocation, p.Instance
	done, err := e.write(context.WithoutCancel(ctx), tapedeck.Append{Session: s.ID, Events: []tapedeck.Event{ev}}, func(s *tapedeck.Session, _ []tapedeck.Event) error {
		if p.Invocation != "" && !hasRun(s, p.Invocation) {
			return tapedeck.Errorf(tapedeck.Conflict, "run %s has ended", p.Invocation)
		}
		return nil
	})
	return api.Answered{Permission: p.ID, Option: a.Option, Offset: done.First}, err
}

// permission returns the newest permission of an id, nil for none.
func permission(s *view.Snapshot, id string) *view.Permission {
	for i := range slices.Backward(s.Permissions) {
		if p := &s.Permissions[i]; p.ID == id {
			return p
		}
	}
	return nil
}

// over returns an error if a permission is known not to be open any more.
func (e *Engine) over(ctx context.Context, session, id string) error {
	now, err := e.views.Snapshot(ctx, session, view.Query{At: -1, Limit: 1})
	if err != nil {
		return nil //nolint:nilerr // the append itself tells
	}
	if p := permission(&now, id); p != nil && p.Status != view.PermissionOpen {
		return answeredAlready(id, p.Option)
	}
	return nil
}

func options(p *view.Permission) []tapedeck.PermissionOption {
	out := make([]tapedeck.PermissionOption, len(p.Options))
	for i, o := range p.Options {
		out[i].ID = o.ID
	}
	return out
}

// A taking is an answer that comes from outside as an event, to a question of a
// run that this engine drives.
type loggedAnswer struct {
	question *question // locked; nil for none
	answer   tapedeck.Choice
	accepted bool
	over     error // that a question of no run of ours was answered before
}

// taking locks the question that one of the events answers. What such an event
// does not say of where it belongs is filled in.
func (e *Engine) lockAnswered(ctx context.Context, session string, events []tapedeck.Event) (*loggedAnswer, error) {
	t := &loggedAnswer{}
	for i := range events {
		if events[i].Type != tapedeck.PermissionAnswered {
			continue
		}
		var d tapedeck.Choice
		if json.Unmarshal(events[i].Data, &d) != nil {
			continue // data that is no object is refused later, and another answers nothing
		}
		q := e.question(ctx, session, d.ID)
		if q == nil {
			t.over = cmp.Or(t.over, e.over(ctx, session, d.ID))
			continue
		}
		if t.question != nil { // two locks, taken in any order, could wait for each other
			t.unlock(false)
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the append answers several questions of runs").WithHint("append each answer by itself")
		}
		q.mu.Lock()
		t.question, t.answer = q, d
		asker := q.run.root()
		events[i].Thread, events[i].Invocation, events[i].Instance = asker.in.Thread, asker.in.ID, asker.instance
	}
	return t, nil
}

// check is asked by the store's writer, which knows a repetition by a producer.
func (t *loggedAnswer) check(s *tapedeck.Session) error {
	q := t.question
	if q == nil {
		return t.over
	}
	if err := q.run.isOpen(s, nil); err != nil {
		return err
	}
	var err error
	if q.answer != nil || t.answer.Option != "" || t.answer.Outcome != outcomeCancelled {
		err = q.checkOption(t.answer.Option)
	}
	t.accepted = err == nil
	return err
}

// release counts on the answer, if it was written.
func (t *loggedAnswer) unlock(written bool) {
	if t.question == nil {
		return
	}
	if written && t.accepted {
		t.question.logged = true
		t.question.setAnswer(t.answer)
	}
	t.question.mu.Unlock()
}
