package guard

import (
	"context"
	"iter"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/view"
)

// Views are the views of sessions. The projections implement it.
type Views interface {
	Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error)
	Instances(ctx context.Context, session string, at int64) (view.Instances, error)
	Timeline(ctx context.Context, session string, at int64) (*view.Timeline, error)
	Effective(ctx context.Context, session string, from, at int64) iter.Seq2[tapedeck.Event, error]
	Diff(ctx context.Context, a, b string, atA, atB int64) (view.Diff, error)
	Summary(ctx context.Context, session string, at int64) (view.Summary, error)
	Index(ctx context.Context, session string, at int64) (view.Index, error)
	Branches(ctx context.Context, session string, at int64) (view.Tree, error)
	ChannelPlace(ctx context.Context, session string, n int64) (offset, number int64, err error)
	ChannelNumber(ctx context.Context, session string, at int64) (number int64, err error)
	FindInvocation(ctx context.Context, session, invocation string) (offset int64, found bool, err error)
	Workflow(ctx context.Context, session, thread string, at int64) (*view.Workflow, error)
	Epoch() string
}

// Shown is a [Views] that shows each identity its own part.
type Shown struct {
	g     *Guard
	views Views
}

// at checks that a session may be read, and returns the offset as of which.
func (v *Shown) at(ctx context.Context, session string, at int64) (int64, error) {
	_, i, err := v.g.allow(ctx, session, access.Read)
	if err != nil {
		return 0, err
	}
	return asOf(i, session, at)
}

// whole checks that all events of a session may be read.
func (g *Guard) whole(ctx context.Context, session string) (context.Context, *access.Identity, error) {
	ctx, i, err := g.allow(ctx, session, access.Read)
	if err == nil && i.IsFrozen() {
		err = tapedeck.Errorf(tapedeck.Forbidden, "this token shows the beginning of session %s only, and cannot be used for this", session)
	}
	return ctx, i, err
}

// Snapshot shows the conversation.
func (v *Shown) Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error) {
	asked := int64(-1)
	if q.At != nil {
		asked = *q.At
	}
	at, err := v.at(ctx, session, asked)
	if err != nil {
		return view.Snapshot{}, err
	}
	if at != asked {
		q.At = &at
	}
	out, err := v.views.Snapshot(ctx, session, q)
	if i := access.From(ctx); err == nil && i.IsFrozen() { // title and labels are those of now
		var s tapedeck.Session
		if s, err = v.g.Sessions.Head(ctx, session); err == nil {
			out.Session = view.SessionInfo{ID: s.ID, Title: s.Title, Owner: s.Owner, Agent: s.Agent, Labels: s.Labels, Status: s.Status, Closed: s.Closed}
		}
	}
	return out, err
}

// Instances lists the instances of agents.
func (v *Shown) Instances(ctx context.Context, session string, at int64) (view.Instances, error) {
	at, err := v.at(ctx, session, at)
	if err != nil {
		return view.Instances{}, err
	}
	return v.views.Instances(ctx, session, at)
}

// Workflow shows the workflow of a thread.
func (v *Shown) Workflow(ctx context.Context, session, thread string, at int64) (*view.Workflow, error) {
	at, err := v.at(ctx, session, at)
	if err != nil {
		return nil, err
	}
	return v.views.Workflow(ctx, session, thread, at)
}

// Timeline tells which events are active.
func (v *Shown) Timeline(ctx context.Context, session string, at int64) (*view.Timeline, error) {
	at, err := v.at(ctx, session, at)
	if err != nil {
		return nil, err
	}
	return v.views.Timeline(ctx, session, at)
}

// Effective yields the active events.
func (v *Shown) Effective(ctx context.Context, session string, from, at int64) iter.Seq2[tapedeck.Event, error] {
	at, err := v.at(ctx, session, at)
	if err != nil {
		return func(yield func(tapedeck.Event, error) bool) { yield(tapedeck.Event{}, err) }
	}
	return v.views.Effective(ctx, session, from, at)
}

// Diff compares two sessions.
func (v *Shown) Diff(ctx context.Context, a, b string, atA, atB int64) (view.Diff, error) {
	for _, session := range []string{a, b} {
		if _, _, err := v.g.whole(ctx, session); err != nil {
			return view.Diff{}, err
		}
	}
	return v.views.Diff(ctx, a, b, atA, atB)
}

// Summary sums up what the session has used.
func (v *Shown) Summary(ctx context.Context, session string, at int64) (view.Summary, error) {
	at, err := v.at(ctx, session, at)
	if err != nil {
		return view.Summary{}, err
	}
	return v.views.Summary(ctx, session, at)
}

// Index shows what a player needs.
func (v *Shown) Index(ctx context.Context, session string, at int64) (view.Index, error) {
	at, err := v.at(ctx, session, at)
	if err != nil {
		return view.Index{}, err
	}
	return v.views.Index(ctx, session, at)
}

// Branches shows the tree around a session, without the sessions that the identity cannot
// read.
func (v *Shown) Branches(ctx context.Context, session string, at int64) (view.Tree, error) {
	ctx, i, err := v.g.whole(ctx, session)
	if err != nil {
		return view.Tree{}, err
	}
	tree, err := v.views.Branches(ctx, session, at)
	if err != nil || i.IsUnlimited() {
		return tree, err
	}
	shown, visible := tree.Branches[:0:0], map[string]bool{}
	for _, b := range tree.Branches {
		ok, known := visible[b.Session]
		if !known {
			have, _, err := v.g.level(ctx, i, b.Session)
			if err != nil {
				return view.Tree{}, err
			}
			ok = have >= access.Read
			visible[b.Session] = ok
		}
		if ok {
			shown = append(shown, b)
		}
	}
	ids := map[string]bool{}
	for i := range shown {
		ids[shown[i].ID] = true
	}
	for i := range shown {
		if !ids[shown[i].Parent] {
			shown[i].Parent = ""
		}
	}
	tree.Branches = shown
	return tree, nil
}

// FindInvocation finds the first event of an invocation.
func (v *Shown) FindInvocation(ctx context.Context, session, invocation string) (offset int64, found bool, err error) {
	ctx, i, err := v.g.allow(ctx, session, access.Read)
	if err != nil {
		return 0, false, err
	}
	offset, found, err = v.views.FindInvocation(ctx, session, invocation)
	if found && i.IsFrozen() && offset >= i.Limits.Before {
		return 0, false, err
	}
	return offset, found, err
}

// ChannelPlace finds an event in the form of the six channels.
func (v *Shown) ChannelPlace(ctx context.Context, session string, n int64) (offset, number int64, err error) {
	ctx, i, err := v.g.allow(ctx, session, access.Read)
	if err != nil {
		return 0, 0, err
	}
	offset, number, err = v.views.ChannelPlace(ctx, session, n)
	if err == nil && i.IsFrozen() && offset > i.Limits.Before {
		offset = i.Limits.Before
		number, err = v.views.ChannelNumber(ctx, session, offset)
	}
	return offset, number, err
}

// ChannelNumber counts the events in the form of the six channels.
func (v *Shown) ChannelNumber(ctx context.Context, session string, at int64) (number int64, err error) {
	ctx, i, err := v.g.allow(ctx, session, access.Read)
	if err != nil {
		return 0, err
	}
	if i.IsFrozen() {
		at = min(at, i.Limits.Before)
	}
	return v.views.ChannelNumber(ctx, session, at)
}

// Epoch changes when an event of any session was erased.
func (v *Shown) Epoch() string { return v.views.Epoch() }

// Search finds text in the sessions.
type Search interface {
	Search(ctx context.Context, q search.Query) (search.Result, error)
}

// Searched is a [Search] that finds only what an identity can read.
type Searched struct {
	g      *Guard
	search Search
}

// Search finds text. A page may be short, or empty with a cursor.
func (s *Searched) Search(ctx context.Context, q search.Query) (search.Result, error) {
	i, err := who(ctx)
	switch {
	case err != nil:
		return search.Result{}, err
	case i.IsFrozen() || i.Role == access.Agent:
		return search.Result{}, tapedeck.Errorf(tapedeck.Forbidden, "this token cannot search")
	case q.Session != "":
		ctx, _, err := s.g.allow(ctx, q.Session, access.Read)
		if err != nil {
			return search.Result{}, err
		}
		return s.search.Search(ctx, q)
	case i.Limits.Session != "":
		return search.Result{}, ofOneSession()
	case i.IsUnlimited(), i.Role == access.Reader && i.Limits.IsZero():
		return s.search.Search(ctx, q)
	}
	return s.filtered(ctx, i, q)
}

// Limits of a search that is filtered here.
const (
	maxSearches  = 50
	searchedPage = 20
)

func (s *Searched) filtered(ctx context.Context, i *access.Identity, q search.Query) (out search.Result, err error) {
	limit := q.Limit
	if limit <= 0 {
		limit = searchedPage
	}
	out.Hits = []search.Hit{}
	for range maxSearches {
		q.Limit = limit - len(out.Hits)
		page, err := s.search.Search(ctx, q)
		if err != nil {
			return out, err
		}
		for _, h := range page.Hits {
			have, _, err := s.g.level(ctx, i, h.Session)
			if err != nil {
				return out, err
			}
			if have >= access.Read {
				out.Hits = append(out.Hits, h)
			}
		}
		// How many sessions of others are not indexed is not for everybody.
		q.Cursor, out.Next, out.Behind = page.Next, page.Next, min(page.Behind, 1)
		if page.Next == "" || len(out.Hits) > limit/2 {
			break
		}
	}
	return out, nil
}
