package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// Create creates a session with session.created as its first event. An id that
// exists is a [tapedeck.Conflict].
func (e *Engine) Create(ctx context.Context, n api.NewSession) (tapedeck.Session, error) {
	if n.ID == "" {
		n.ID = tapedeck.NewID("ses_")
	}
	first, err := e.created(n)
	if err != nil {
		return tapedeck.Session{}, err
	}
	done, err := e.store.Create(ctx, tapedeck.Spec{ID: n.ID, Kind: tapedeck.KindSession, Events: []tapedeck.Event{first}})
	if err == nil && !done.New {
		err = tapedeck.Errorf(tapedeck.Conflict, "session %s exists", n.ID).WithHint("use it, or choose another id")
	}
	return done.Session, err
}

func (e *Engine) created(n api.NewSession) (tapedeck.Event, error) {
	for _, name := range [...]struct{ what, is string }{{"title", n.Title}, {"owner", n.Owner}, {"actor", n.Actor}} {
		if err := tapedeck.CheckName("the "+name.what, name.is); err != nil {
			return tapedeck.Event{}, err
		}
	}
	if err := cmp.Or(checkLabels(n.Labels), checkShares(n.Labels)); err != nil {
		return tapedeck.Event{}, err
	}
	if n.Agent != "" {
		if _, err := e.agent(n.Agent); err != nil {
			return tapedeck.Event{}, err
		}
	}
	d := map[string]any{}
	for name, v := range map[string]string{"title": n.Title, "owner": n.Owner, "agent": n.Agent} {
		if v != "" {
			d[name] = v
		}
	}
	if len(n.Labels) > 0 {
		d["labels"] = n.Labels
	}
	if n.Budget != nil {
		if err := n.Budget.Check("the budget"); err != nil {
			return tapedeck.Event{}, err
		}
		d["budget"] = n.Budget
	}
	if len(n.State) > 0 {
		if !json.Valid(n.State) {
			return tapedeck.Event{}, tapedeck.Errorf(tapedeck.Invalid, "the initial state is not JSON")
		}
		d["state"] = n.State
	}
	return tapedeck.Event{Type: tapedeck.SessionCreated, Actor: n.Actor, Data: object(d)}, nil
}

// maxLabels is the largest number of labels of a session.
const maxLabels = 64

func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return tapedeck.Errorf(tapedeck.Invalid, "there are %d labels; at most %d are allowed", len(labels), maxLabels)
	}
	for k, v := range labels {
		if err := tapedeck.CheckID("a label's name", k); err != nil {
			return err
		}
		if err := tapedeck.CheckName("the label "+k, v); err != nil {
			return err
		}
	}
	return nil
}

// checkShares checks labels that a request sets. Those that a session has from before, or
// inherits, stay as they are.
func checkShares(labels map[string]string) error {
	for name, value := range labels {
		if err := api.CheckShare(name, value); err != nil {
			return err
		}
	}
	return nil
}

// Rename changes the title, the labels and the budget, and returns the session afterwards.
func (e *Engine) Rename(ctx context.Context, r api.Rename) (tapedeck.Session, error) {
	if err := checkRename(&r); err != nil {
		return tapedeck.Session{}, err
	}
	for range maxTries {
		data, seen, err := e.renamed(ctx, &r)
		if err != nil {
			return tapedeck.Session{}, err
		}
		_, err = e.write(ctx, tapedeck.Append{Session: r.Session, Events: []tapedeck.Event{
			{Type: tapedeck.SessionRenamed, Actor: r.Actor, Data: data},
		}}, func(s *tapedeck.Session, _ []tapedeck.Event) error {
			if r.ChangeLabels != nil && !maps.Equal(s.Labels, seen) {
				return errMoved
			}
			return nil
		})
		switch {
		case err == nil:
			if r.Budget != nil {
				e.budgets.notify()
			}
			return e.store.Head(ctx, r.Session)
		case !errors.Is(err, errMoved):
			return tapedeck.Session{}, err
		}
	}
	return tapedeck.Session{}, tapedeck.Errorf(tapedeck.Unavailable, "the labels of session %s are constantly changed by others", r.Session).WithHint("try again")
}

func checkRename(r *api.Rename) error {
	switch {
	case r.Title == nil && r.Labels == nil && len(r.ChangeLabels) == 0 && r.Budget == nil:
		return tapedeck.Errorf(tapedeck.Invalid, "there is nothing to change").WithHint("give a title, labels or a budget")
	case r.Labels != nil && r.ChangeLabels != nil:
		return tapedeck.Errorf(tapedeck.Invalid, "a request cannot both replace all labels and change some").WithHint("give labels or change_labels")
	case r.Title != nil:
		if err := tapedeck.CheckName("the title", *r.Title); err != nil {
			return err
		}
	}
	if r.Budget != nil {
		if err := r.Budget.Check("the budget"); err != nil {
			return err
		}
	}
	for name, value := range r.ChangeLabels {
		if value == nil { // it is removed
			continue
		}
		if err := api.CheckShare(name, *value); err != nil {
			return err
		}
	}
	return cmp.Or(checkLabels(r.Labels), checkShares(r.Labels))
}

// renamed returns the data of the event that a rename appends, and the labels that it
// changes, which the session has until then.
func (e *Engine) renamed(ctx context.Context, r *api.Rename) (data json.RawMessage, seen map[string]string, err error) {
	d := map[string]any{}
	if r.Title != nil {
		d["title"] = *r.Title
	}
	if r.Labels != nil {
		d["labels"] = r.Labels
	}
	if r.Budget != nil {
		d["budget"] = r.Budget
	}
	if r.ChangeLabels != nil {
		s, err := e.session(ctx, r.Session)
		if err != nil {
			return nil, nil, err
		}
		labels := map[string]string{}
		maps.Copy(labels, s.Labels)
		for name, value := range r.ChangeLabels {
			delete(labels, name)
			if value != nil {
				labels[name] = *value
			}
		}
		seen, d["labels"] = s.Labels, labels
		if err := checkLabels(labels); err != nil {
			return nil, nil, err
		}
	}
	return object(d), seen, nil
}

// Close closes a session: nothing can be appended to it any more. It ends the runs that are
// implied, because their agents may never say that they are done. While another run is open
// this is a [tapedeck.Conflict]. Closing a closed session does nothing.
func (e *Engine) Close(ctx context.Context, session, actor string) error {
	defer e.feeder.hold(session)()
	for range maxTries {
		s, err := e.session(ctx, session)
		if err != nil || s.Closed {
			return err
		}
		ends, err := e.impliedEnds(ctx, session)
		if err != nil {
			return err
		}
		_, err = e.write(ctx, tapedeck.Append{
			Session: session, Close: true, Expect: &s.Head, // refused while a run is open
			Events: append(append(ends, withdrawn(s.Inputs, "the session was closed", actor)...), tapedeck.Event{Type: tapedeck.SessionClosed, Actor: actor}),
		}, sameInputs(&s, ""))
		if isClosed(err) {
			return nil // it was closed meanwhile
		}
		if refused := (*tapedeck.AppendError)(nil); errors.As(err, &refused) && refused.Refusal == tapedeck.RefusedOffset {
			continue
		}
		if !errors.Is(err, errMoved) {
			return err
		}
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "session %s is constantly changed by others", session).WithHint("try again")
}

// impliedEnds returns the events that end the open runs that are implied.
func (e *Engine) impliedEnds(ctx context.Context, session string) (events []tapedeck.Event, err error) {
	_, v, err := e.current(ctx, session)
	if err != nil {
		return nil, err
	}
	runs := v.Runs()
	for i := range runs {
		if runs[i].Implied {
			events = append(events, endEvents(v, runs, &runs[i], successEnd())...)
		}
	}
	return events, nil
}

// Delete cancels the runs of a session and deletes the session.
func (e *Engine) Delete(ctx context.Context, session string) error {
	s, err := e.session(ctx, session)
	if err != nil {
		return err
	}
	defer e.feeder.hold(session)()
	runs := e.runsOf(&s)
	for _, r := range runs {
		r.stop(errCancelled)
	}
	for _, r := range runs {
		select {
		case <-r.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := e.remove(ctx, session); err != nil {
		return err
	}
	e.presence.Clear(session)
	return nil
}

// remove deletes a session, and its folder if no fork needs its events. A folder that
// cannot be removed is only logged.
func (e *Engine) remove(ctx context.Context, session string) error {
	return e.removeIf(ctx, session, func() bool { return true })
}

// removeUnused deletes a session if nothing was appended to it since seen was read.
func (e *Engine) removeUnused(ctx context.Context, seen *tapedeck.Session) error {
	return e.removeIf(ctx, seen.ID, func() bool {
		now, err := e.store.Head(ctx, seen.ID)
		return err == nil && now.Gen == seen.Gen && now.Head == seen.Head
	})
}

func (e *Engine) removeIf(ctx context.Context, session string, unused func() bool) error {
	discard, err := e.deleteAndDiscard(ctx, session, unused)
	if err != nil || discard == nil {
		return err
	}
	if err := discard(); err != nil {
		e.options.Logger.Warn("the folder of a deleted session could not be removed", "session", session, "error", err)
	}
	return nil
}

// deleteAndDiscard deletes a session and moves its folder out of the way. It blocks
// the start of runs, so that a recreated session cannot inherit the folder. It does
// nothing if unused reports false meanwhile.
func (e *Engine) deleteAndDiscard(ctx context.Context, session string, unused func() bool) (discard func() error, err error) {
	e.foldersMu.Lock()
	defer e.foldersMu.Unlock()
	if !unused() {
		return nil, nil
	}
	if err := e.store.Delete(ctx, session); err != nil || e.options.Discard == nil {
		return nil, err
	}
	_, err = e.store.Head(context.WithoutCancel(ctx), session)
	if err != nil && tapedeck.KindOf(err) != tapedeck.NotFound {
		return nil, nil // forks need it
	}
	discard, err = e.options.Discard(session)
	if err != nil {
		return func() error { return err }, nil
	}
	return discard, nil
}

// session returns the entry of a session, if the conditions of ctx allow that. A stream is
// [tapedeck.NotFound].
func (e *Engine) session(ctx context.Context, id string) (tapedeck.Session, error) {
	s, err := e.store.Head(ctx, id)
	if err == nil && s.Kind != tapedeck.KindSession {
		err = tapedeck.Errorf(tapedeck.NotFound, "there is no session %q", id)
	}
	if err == nil {
		err = tapedeck.Condition(ctx)(&s)
	}
	return s, err
}

// runsOf returns the runs that this engine drives in a session, and not in one that had its
// id before or has it now.
func (e *Engine) runsOf(s *tapedeck.Session) []*run {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []*run
	for _, r := range e.runs {
		if r.of(s) {
			out = append(out, r)
		}
	}
	return out
}

// runIn is runsOf for one run, nil if this engine does not drive it.
func (e *Engine) runIn(s *tapedeck.Session, invocation string) *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.runs[invocation]; r != nil && r.of(s) {
		return r
	}
	return nil
}

func (r *run) of(s *tapedeck.Session) bool { return r.in.Session == s.ID && r.gen == s.Gen }

// agent returns the agent with a name; "" is the default one.
func (e *Engine) agent(name string) (*Agent, error) {
	if i := slices.IndexFunc(e.options.Unlisted, func(a Agent) bool { return a.Name == name }); i >= 0 {
		return &e.options.Unlisted[i], nil
	}
	agents := e.options.Agents
	if len(agents) == 0 {
		return nil, tapedeck.Errorf(tapedeck.NotFound, "this server has no agents")
	}
	if name == "" {
		return &agents[0], nil
	}
	i := slices.IndexFunc(agents, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		var names string
		for _, a := range agents {
			names += " " + a.Name
		}
		return nil, tapedeck.Errorf(tapedeck.NotFound, "there is no agent %q", name).WithHint("there are:%s", names)
	}
	return &agents[i], nil
}
