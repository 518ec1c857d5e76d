package engine

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/store"
)

// Fork makes a session that shares the events of its parent below an offset, as
// many as there are, at the same cost. Its first own event is session.forked.
// Runs that are open there are cut off in the fork; the parent is not touched,
// and may be closed. A parent that does not exist is [tapedeck.NotFound], one
// that was deleted is a [tapedeck.Conflict], and so is an id that exists; an
// offset that the parent does not have is [tapedeck.Invalid].
func (e *Engine) Fork(ctx context.Context, f api.Fork) (tapedeck.Session, error) {
	if f.ID == "" {
		f.ID = tapedeck.NewID("ses_")
	}
	spec := tapedeck.Spec{ID: f.ID, Kind: tapedeck.KindSession, Parent: f.Parent, ForkAt: f.At}
	parent, err := e.session(ctx, f.Parent)
	if tapedeck.KindOf(err) == tapedeck.Gone {
		err = tapedeck.Errorf(tapedeck.Conflict, "session %s was deleted and cannot be forked", f.Parent)
	}
	if err == nil {
		err = store.CheckSpec(&spec)
	}
	if err != nil {
		return tapedeck.Session{}, err
	}
	at, err := store.ForkPoint(&spec, &parent, false)
	if err != nil {
		return tapedeck.Session{}, err
	}
	first, err := e.forked(ctx, &f, &parent, at)
	if err != nil {
		return tapedeck.Session{}, err
	}
	spec.ForkAt, spec.Events = &at, []tapedeck.Event{first}
	s, made, err := e.store.Create(ctx, spec)
	if err == nil && !made {
		err = tapedeck.Errorf(tapedeck.Conflict, "session %s exists", f.ID).WithHint("choose another id")
	}
	return s, err
}

// forked returns the first event of a fork at an offset. What is below it does
// not change, so neither does what is said here of it.
func (e *Engine) forked(ctx context.Context, f *api.Fork, parent *tapedeck.Session, at int64) (tapedeck.Event, error) {
	d := payload.SessionForked{
		Session: f.ID, Parent: f.Parent, At: at, Copy: f.Copy,
		Title: parent.Title, Owner: parent.Owner, Agent: parent.Agent, Labels: parent.Labels,
	}
	if f.Title != nil {
		d.Title = *f.Title
	}
	if f.Owner != "" {
		d.Owner = f.Owner
	}
	for _, name := range [...]struct{ what, is string }{{"title", d.Title}, {"owner", d.Owner}, {"actor", f.Actor}} {
		if err := tapedeck.CheckName("the "+name.what, name.is); err != nil {
			return tapedeck.Event{}, err
		}
	}
	jump, err := e.jumpBefore(ctx, parent, at)
	if err != nil {
		return tapedeck.Event{}, err
	}
	if jump > 0 {
		d.Previous = &jump
	}
	st, err := e.outcomeAt(ctx, parent.ID, at)
	if err != nil {
		return tapedeck.Event{}, err
	}
	if st.status != tapedeck.StatusIdle {
		d.Status, d.Resumable = string(st.status), st.resumable
	}
	return event(d, f.Actor), nil
}

// jumpBefore returns the offset of the newest jump below an offset, 0 for none.
func (e *Engine) jumpBefore(ctx context.Context, s *tapedeck.Session, at int64) (int64, error) {
	if s.LastJump < at {
		return s.LastJump, nil
	}
	t, err := e.views.Timeline(ctx, s.ID, at)
	if err != nil {
		return 0, err
	}
	j, _ := t.Before("", at)
	return j.Offset, nil
}
