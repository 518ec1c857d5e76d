package guard

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/api"
)

// Start gives an agent a task.
func (v *Guarded) Start(ctx context.Context, t api.Task) (api.Started, error) {
	t.Capped = capped(ctx)
	if t.Session == "" {
		return v.startNew(ctx, t)
	}
	if !t.Create {
		ctx, i, err := v.g.allow(ctx, t.Session, access.Write)
		if err != nil {
			return api.Started{}, err
		}
		return v.join(ctx, i, t)
	}
	i, seen, err := v.g.look(ctx, t.Session, access.Write) // it may not exist yet
	switch {
	case err != nil && tapedeck.KindOf(err) != tapedeck.NotFound:
		return api.Started{}, err
	case err == nil && i.Limits.Session != "":
		return v.join(onlyIf(ctx, i, t.Session, seen, access.Write), i, t)
	}
	return v.startNew(ctx, t)
}

// join gives an agent a task in a session that exists.
func (v *Guarded) join(ctx context.Context, i *access.Identity, t api.Task) (api.Started, error) {
	t.Actor, t.Create = actor(i, t.Actor), false
	owner, err := v.g.ownerOf(ctx, t.Session)
	if err != nil {
		return api.Started{}, err
	}
	return v.start(ctx, i, owner, t)
}

// capped reports whether the configuration of an agent limits the budgets that the sender
// sets.
func capped(ctx context.Context) bool {
	i := access.From(ctx)
	return i == nil || i.Role != access.Admin
}

// startNew gives an agent a task in a session that is created, if it does not exist.
func (v *Guarded) startNew(ctx context.Context, t api.Task) (api.Started, error) {
	i, err := creates(ctx)
	if err != nil {
		return api.Started{}, err
	}
	if len(i.Limits.Labels) > 0 {
		return api.Started{}, tapedeck.Errorf(tapedeck.Forbidden, "the sessions of this token have labels, and a task sets none").WithHint("create the session first")
	}
	fresh := t.Session == ""
	if t.Session, err = newID(i, t.Session); err != nil {
		return api.Started{}, err
	}
	t.Create = t.Create || fresh && t.Session != ""
	if t.Session != "" && !i.IsUnlimited() { // a foreign session must not be joined
		if have, _, err := v.g.level(ctx, i, t.Session); err != nil {
			return api.Started{}, err
		} else if have == access.None && v.g.exists(ctx, t.Session) {
			return api.Started{}, taken(t.Session)
		}
	}
	t.Owner, t.Actor = owner(i, t.Owner), actor(i, t.Actor)
	if t.Session == "" || !v.g.exists(ctx, t.Session) {
		done, err := v.g.found(ctx, i, t.Owner)
		if err != nil {
			return api.Started{}, err
		}
		defer done()
	}
	out, err := v.start(onlyIf(ctx, i, t.Session, 0, access.Write), i, t.Owner, t) // somebody else may create it first
	return out, v.conflict(ctx, i, t.Session, err)
}

// exists reports whether an id is in use.
func (g *Guard) exists(ctx context.Context, session string) bool {
	_, err := g.store.Head(ctx, session)
	return tapedeck.KindOf(err) != tapedeck.NotFound
}
