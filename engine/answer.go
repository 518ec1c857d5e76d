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

// Answer answers a question of an agent. A permission that the session does not have
// is [tapedeck.NotFound]. One that was answered before, or whose run has ended, is a
// [tapedeck.Conflict]. An option that it does not have is [tapedeck.Invalid]. Of
// several answers at the same time, one is accepted.
func (e *Engine) Answer(ctx context.Context, a api.Answer) (api.Answered, error) {
	if err := tapedeck.CheckID("the permission", a.Permission); err != nil {
		return api.Answered{}, err
	}
	if q := e.question(ctx, a.Session, a.Permission); q != nil {
		return q.answerWith(context.WithoutCancel(ctx), a)
	}
	return e.answerForeign(ctx, a)
}

// question returns a question of a run that this engine drives, nil if there is none
// without a choice: another program may have asked with its id since. It waits until the
// engine knows that the log has the question: a reader of the log can know this earlier.
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
		if q := r.questions.get(id); q != nil && !q.hasChoice() {
			return q
		}
	}
	return nil
}

// answerWith appends an answer.
func (q *question) answerWith(ctx context.Context, a api.Answer) (api.Answered, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.checkOption(a.Option)
	if err == nil && a.Option == budgetContinue {
		err = mayContinue(q.scope, a.Grants)
	}
	if err == nil {
		err = cmp.Or(wasShown(&a, q.offset), checkInput(&q.Question, a.Option, a.Input))
	}
	if err != nil {
		return api.Answered{}, err
	}
	d := tapedeck.Choice{ID: q.ID, Option: a.Option, Outcome: outcomeSelected, Input: a.Input}
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

// wasShown refuses an answer to an earlier question with the same id.
func wasShown(a *api.Answer, offset int64) error {
	if a.Offset == nil || *a.Offset == offset {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Conflict, "the pending permission %s was asked at offset %d, not at %d", a.Permission, offset, *a.Offset).
		WithHint("read the current question, and answer that")
}

// checkOption reports why an option cannot be chosen. The caller holds q.mu.
func (q *question) checkOption(option string) error {
	if q.answer != nil {
		return answeredAlready(q.ID, q.answer.Option)
	}
	return hasOption(q.ID, q.Options, option)
}

func answeredAlready(id, option string) error {
	if option == "" {
		return tapedeck.Errorf(tapedeck.Conflict, "the permission %s is not pending any more: it was cancelled", id)
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

// answerForeign answers a question of an external run. The program that writes the
// run reads the answer from the log.
func (e *Engine) answerForeign(ctx context.Context, a api.Answer) (api.Answered, error) {
	if err := ctx.Err(); err != nil {
		return api.Answered{}, err
	}
	defer e.answering.lock(a.Session)() // of two answers, one is accepted
	s, err := e.session(ctx, a.Session)
	if err != nil {
		return api.Answered{}, err
	}
	now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: new(s.Head), Limit: 1})
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
	asked := tapedeck.Question{ID: p.ID, Options: options(p)}
	_ = json.Unmarshal(p.Form, &asked.Form) // a form of another shape asks for nothing
	if err := cmp.Or(hasOption(p.ID, asked.Options, a.Option), wasShown(&a, p.Offset), checkInput(&asked, a.Option, a.Input)); err != nil {
		return api.Answered{}, err
	}
	ev := event(payload.PermissionAnswered{Choice: tapedeck.Choice{ID: p.ID, Option: a.Option, Outcome: outcomeSelected, Input: a.Input}}, a.Actor)
	ev.Thread, ev.Invocation, ev.Instance = p.Thread, p.Invocation, p.Instance
	done, err := e.write(context.WithoutCancel(ctx), tapedeck.Append{Session: s.ID, Events: []tapedeck.Event{ev}}, func(s *tapedeck.Session, _ []tapedeck.Event) error {
		if p.Invocation != "" && !hasRun(s, p.Invocation) {
			return tapedeck.Errorf(tapedeck.Conflict, "run %s has ended", p.Invocation)
		}
		return nil
	})
	return api.Answered{Permission: p.ID, Option: a.Option, Offset: done.First}, err
}

// permission returns the newest permission with an id, nil if there is none.
func permission(s *view.Snapshot, id string) *view.Permission {
	for i := range slices.Backward(s.Permissions) {
		if p := &s.Permissions[i]; p.ID == id {
			return p
		}
	}
	return nil
}

// over returns an error if a permission is known to be answered or cancelled.
func (e *Engine) over(ctx context.Context, session, id string) error {
	now, err := e.views.Snapshot(ctx, session, view.Query{Limit: 1})
	if err != nil {
		return nil //nolint:nilerr // the append itself fails, too
	}
	if p := permission(&now, id); p != nil && p.Status != view.PermissionOpen {
		return answeredAlready(id, p.Option)
	}
	return nil
}

func options(p *view.Permission) []tapedeck.PermissionOption {
	out := make([]tapedeck.PermissionOption, len(p.Options))
	for i, o := range p.Options {
		out[i].ID, out[i].Kind = o.ID, o.Kind
	}
	return out
}

// A loggedAnswer is an answer that a client appends as an event, to a question of a
// run that this engine drives.
type loggedAnswer struct {
	question *question // its lock is held; nil if the append answers none
	answer   tapedeck.Choice
	accepted bool
	over     error // set if another writer's question is already answered
}

// lockAnswered locks the question that one of the events answers. It fills in the
// thread, invocation and instance of that event.
func (e *Engine) lockAnswered(ctx context.Context, session string, events []tapedeck.Event) (*loggedAnswer, error) {
	t := &loggedAnswer{}
	for i := range events {
		if events[i].Type != tapedeck.PermissionAnswered {
			continue
		}
		var d tapedeck.Choice
		if json.Unmarshal(events[i].Data, &d) != nil {
			continue // bad data is refused later; without an id it answers nothing
		}
		q := e.question(ctx, session, d.ID)
		if q == nil {
			t.over = cmp.Or(t.over, e.over(ctx, session, d.ID))
			continue
		}
		if t.question != nil { // a second lock could cause a deadlock
			t.unlock(false)
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the append answers several questions of runs").WithHint("append each answer by itself")
		}
		if q.scope == scopeSession || q.scope == scopeOwner { // an append does not say what its sender may grant
			t.unlock(false)
			return nil, tapedeck.Errorf(tapedeck.Forbidden, "the question %s is of a budget; an append cannot answer it", d.ID).
				WithHint("answer it with POST /sessions/{id}/permissions/{permission}")
		}
		q.mu.Lock()
		t.question, t.answer = q, d
		asker := q.run.asker()
		events[i].Thread, events[i].Invocation, events[i].Instance = asker.in.Thread, asker.in.ID, asker.instance
	}
	return t, nil
}

// check is called in the store's writer, after it has ruled out a repetition by a
// producer.
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
	if err == nil && t.answer.Option != "" {
		err = checkInput(&q.Question, t.answer.Option, t.answer.Input)
	}
	t.accepted = err == nil
	return err
}

// unlock unlocks the question. If the event was written, it marks the question as
// answered.
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
