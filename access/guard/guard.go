// Package guard applies the rules of package access to everything that the protocols use:
// sessions and streams, verbs, views and search. The identity is in the context. Without
// an identity everything is refused.
//
// A session that an identity may not read does not exist for it: each call answers what
// it answers for an id that was never used.
package guard

import (
	"context"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/grants"
	"github.com/tapedeck/tapedeck/access/quota"
)

// Options are what is guarded. All but Quotas are required.
type Options struct {
	Store  Store  // the hub
	Verbs  Verbs  // the engine
	Views  Views  // the projections
	Search Search // the index of the search

	Issuer    *grants.Issuer // makes the tokens of sessions
	Workflows Workflows

	// Quotas returns the limits of an account. Nil: there are none.
	Quotas func(quota.Key) quota.Limits

	// Drives reports whether the engine drives a run. It must be quick.
	Drives func(invocation string) bool

	// Uses is called with each session that a request asks for. It must be quick. Nil for nothing.
	Uses func(ctx context.Context, session string)

	// Refused is called when the identity of a context may not do what it asks for with a
	// session. It must be quick. Nil for nothing.
	Refused func(ctx context.Context, session string)
}

// A Guard decides who may do what. Its methods may be called by several goroutines.
type Guard struct {
	store   Store
	refused func(ctx context.Context, session string)
	uses    func(ctx context.Context, session string)
	drives  func(invocation string) bool
	entries *entries
	frozen  *frozen

	quotas     *quota.Book // nil for none; see [Guard.Quotas]
	beginnings *beginnings

	Sessions *Sessions // guards Options.Store
	Verbs    *Guarded  // guards Options.Verbs
	Views    *Shown    // guards Options.Views
	Search   *Searched // guards Options.Search
	Tokens   *Issued   // guards Options.Issuer

	Workflows *Library // guards Options.Workflows
}

// New returns a guard. Register its [Guard.Observer] with the store.
func New(o Options) *Guard {
	g := &Guard{store: o.Store, refused: o.Refused, uses: o.Uses, drives: o.Drives, entries: newEntries(), frozen: newFrozen(o.Store), beginnings: newBeginnings()}
	if o.Quotas != nil {
		g.quotas = quota.New(o.Quotas)
	}
	g.Sessions = &Sessions{g}
	g.Verbs = &Guarded{g, o.Verbs}
	g.Views = &Shown{g, o.Views}
	g.Search = &Searched{g, o.Search}
	g.Tokens = &Issued{g, o.Issuer}
	g.Workflows = &Library{g, o.Workflows}
	return g
}

// Quotas returns what each subject uses, nil if nothing is limited.
func (g *Guard) Quotas() *quota.Book { return g.quotas }

// Observer returns the observer of the store.
func (g *Guard) Observer() tapedeck.Observer {
	return tapedeck.Observer{
		Committed: g.entries.committed,
		Erased:    func(context.Context, string, []string) error { g.frozen.drop(); return nil },
	}
}

// who returns the identity of a context.
func who(ctx context.Context) (*access.Identity, error) {
	i := access.From(ctx)
	if i == nil {
		return nil, tapedeck.Errorf(tapedeck.Unauthorized, "this needs a token").WithHint("send the header Authorization: Bearer and the token")
	}
	return i, i.Valid()
}

// allow returns the identity of a context if it may use a session at a level, and the context
// with which it does so: the commit of what follows asks again, see [onlyIf]. A refusal is
// recorded; use may to find out what to show.
func (g *Guard) allow(ctx context.Context, session string, need access.Level) (context.Context, *access.Identity, error) {
	i, seen, err := g.look(ctx, session, need)
	if k := tapedeck.KindOf(err); g.refused != nil && i != nil && (k == tapedeck.NotFound || k == tapedeck.Forbidden) {
		g.refused(ctx, session)
	}
	if err != nil {
		return ctx, i, err
	}
	return onlyIf(ctx, i, session, seen, need), i, nil
}

// may does what allow does, and records nothing.
func (g *Guard) may(ctx context.Context, session string, need access.Level) (*access.Identity, error) {
	i, _, err := g.look(ctx, session, need)
	return i, err
}

// look returns the identity of a context if it may use a session at a level, and the Gen of
// the session, 0 if it was not looked at.
func (g *Guard) look(ctx context.Context, session string, need access.Level) (i *access.Identity, seen int64, err error) {
	if g.uses != nil {
		g.uses(ctx, session)
	}
	i, err = who(ctx)
	if err != nil || i.IsUnlimited() {
		return i, 0, err
	}
	have, seen, err := g.level(ctx, i, session)
	if err != nil {
		return nil, 0, err
	}
	return i, seen, enough(session, have, need)
}

// onlyIf returns a context with which a session is changed only if the identity still may use
// it at a level when the change is committed. After the guard has looked at a session, somebody
// else can delete it and create it again, its owner can end a share, and a token can be revoked.
// seen is the Gen of the session that the guard looked at; with 0, any session of that id will
// do. For a session that does not exist yet, only the token is checked.
func onlyIf(ctx context.Context, i *access.Identity, session string, seen int64, need access.Level) context.Context {
	if i == access.System {
		return ctx
	}
	return tapedeck.OnlyIf(ctx, func(s *tapedeck.Session) error {
		if err := i.Valid(); err != nil || s.ID != session || s.Gen == 0 || i.IsUnlimited() {
			return err
		}
		have := i.LevelOf(s)
		if i.Limits.Session != "" { // it may be a fork of that one
			have = i.Granted()
		}
		if seen != 0 && s.Gen != seen {
			have = access.None
		}
		return enough(session, have, need)
	})
}

// head returns a session that a context of [Guard.allow] is for.
func (g *Guard) head(ctx context.Context, session string) (tapedeck.Session, error) {
	s, err := g.store.Head(ctx, session)
	if err == nil {
		err = tapedeck.Condition(ctx)(&s)
	}
	return s, err
}

// Owns returns an error unless the identity of a context owns a session.
func (g *Guard) Owns(ctx context.Context, session string) error {
	_, _, err := g.allow(ctx, session, access.Own)
	return err
}

// owns reports whether the identity of a context owns a session.
func (g *Guard) owns(ctx context.Context, session string) bool {
	_, err := g.may(ctx, session, access.Own)
	return err == nil
}

// enough returns an error if an identity has a lower level at a session than it needs.
func enough(session string, have, need access.Level) error {
	switch {
	case have == access.None:
		return notFound(session)
	case have >= need:
		return nil
	case need == access.Own:
		return tapedeck.Errorf(tapedeck.Forbidden, "only the owner of session %s and an admin may do this", session)
	}
	return tapedeck.Errorf(tapedeck.Forbidden, "this token may read session %s, and not change it", session)
}

// notFound returns the error of a session that does not exist, in the words of the stores.
func notFound(session string) error {
	return tapedeck.Errorf(tapedeck.NotFound, "there is no session %q", session)
}

// taken returns the error of an id that cannot be used for something new. It does not say
// whether a session of another owner has it, or whether it was deleted.
func taken(session string) error {
	return tapedeck.Errorf(tapedeck.Conflict, "the id %s is not free", session).WithHint("choose another id, or none")
}

// level returns what an identity may do with a session, and the Gen of the session if that
// decided about it, otherwise 0. A session that does not exist is [access.None].
func (g *Guard) level(ctx context.Context, i *access.Identity, session string) (have access.Level, seen int64, err error) {
	if strings.HasPrefix(session, tapedeck.ViewPrefix) {
		return access.None, 0, nil
	}
	if strings.HasPrefix(session, tapedeck.StreamPrefix) {
		return i.LevelOf(&tapedeck.Session{ID: session, Kind: tapedeck.KindStream}), 0, nil
	}
	if l := &i.Limits; l.Session == session && l.Gen == 0 {
		return i.Granted(), 0, nil // whether it exists is for the store to say
	} else if l.Session != session && l.Session != "" && !l.Forks {
		return access.None, 0, nil
	}
	s, err := g.entry(ctx, session)
	if err != nil {
		return access.None, 0, missing(err)
	}
	switch l := &i.Limits; {
	case l.Session == session && l.Gen == s.Gen:
		return i.Granted(), s.Gen, nil
	case l.Session == session: // it was deleted and recreated
		return access.None, 0, nil
	case l.Session != "":
		have, err = g.levelOfFork(ctx, i, &s)
		return have, s.Gen, err
	}
	return i.LevelOf(&s), s.Gen, nil
}

// missing returns nil for the error of a session that is not there, otherwise the error.
func missing(err error) error {
	if k := tapedeck.KindOf(err); k == tapedeck.NotFound || k == tapedeck.Gone {
		return nil
	}
	return err
}

// maxGenerations is how many forks of forks are followed to their origin.
const maxGenerations = 64

// levelOfFork returns the level at a session that may be a fork of the token's session.
func (g *Guard) levelOfFork(ctx context.Context, i *access.Identity, s *tapedeck.Session) (access.Level, error) {
	parent := s.Parent
	for range maxGenerations {
		if parent == "" {
			break
		}
		p, err := g.entry(ctx, parent)
		if err != nil {
			return access.None, missing(err)
		}
		switch {
		case p.Owner != s.Owner:
			return access.None, nil
		case p.ID == i.Limits.Session && (i.Limits.Gen == 0 || p.Gen == i.Limits.Gen):
			return i.Granted(), nil
		}
		parent = p.Parent
	}
	return access.None, nil
}
