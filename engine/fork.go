package engine

import (
	"context"
	"maps"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/store"
)

// Fork creates a session that shares the events of its parent below an offset. The
// cost does not depend on their number. Its first own event is session.forked. Runs
// that are open at the offset are interrupted in the fork. The parent does not change,
// and may be closed. An unknown parent is [tapedeck.NotFound]. A deleted parent and an
// id that exists are a [tapedeck.Conflict]. An offset beyond the parent's head is
// [tapedeck.Invalid].
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
	done, err := e.store.Create(ctx, spec)
	if err == nil && !done.New {
		err = tapedeck.Errorf(tapedeck.Conflict, "session %s exists", f.ID).WithHint("choose another id")
	}
	return done.Session, err
}

// forked returns the first event of a fork at an offset. It is still right when it is
// appended, because the events below the offset do not change.
func (e *Engine) forked(ctx context.Context, f *api.Fork, parent *tapedeck.Session, at int64) (tapedeck.Event, error) {
	d := payload.SessionForked{
		Session: f.ID, Parent: f.Parent, At: at, Copy: f.Copy,
		Title: parent.Title, Owner: parent.Owner, Agent: parent.Agent, Labels: without(parent.Labels, f.WithoutLabels),
	}
	if b := parent.Budget; b != nil { // the same limit; grants were for what the parent has spent
		d.Budget = encoded(b.Amount)
	}
	var err error
	if d.Context, err = contextCut(f.Context); err != nil {
		return tapedeck.Event{}, err
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

// without returns labels without some of them.
func without(labels map[string]string, names []string) map[string]string {
	out := maps.Clone(labels)
	for _, name := range names {
		delete(out, name)
	}
	return out
}

// jumpBefore returns the offset of the newest jump below an offset, 0 if there is
// none.
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
