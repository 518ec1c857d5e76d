package guard

import (
	"context"
	"iter"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
)

// A Store has the sessions and the streams. The hub implements it.
type Store interface {
	tapedeck.Log
	tapedeck.Catalogue
	Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error]
}

// Sessions is a [Store] that shows each identity its own part.
type Sessions struct{ g *Guard }

// Head returns the entry of a session.
func (s *Sessions) Head(ctx context.Context, session string) (tapedeck.Session, error) {
	ctx, i, err := s.g.allow(ctx, session, access.Read)
	if err != nil {
		return tapedeck.Session{}, err
	}
	out, err := s.g.store.Head(ctx, session)
	switch {
	case i.IsUnlimited():
		return out, err
	case tapedeck.KindOf(err) == tapedeck.Gone && !strings.HasPrefix(session, tapedeck.StreamPrefix):
		return tapedeck.Session{}, notFound(session)
	case err != nil:
		return out, err
	}
	if i.IsFrozen() {
		if out, err = s.g.frozen.entry(ctx, &out, i.Limits.Before); err != nil {
			return tapedeck.Session{}, err
		}
	}
	s.g.hide(ctx, i, &out)
	return out, nil
}

// hide removes what an identity must not know from the entry of a session: a parent that
// it cannot read.
func (g *Guard) hide(ctx context.Context, i *access.Identity, s *tapedeck.Session) {
	if s.Parent == "" || i.IsUnlimited() {
		return
	}
	if have, _, err := g.level(ctx, i, s.Parent); err != nil || have == access.None {
		s.Parent, s.ForkedAt = "", 0
	}
}

// Read returns a page of a session.
func (s *Sessions) Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error) {
	ctx, i, err := s.g.allow(ctx, session, access.Read)
	switch {
	case err != nil:
		return tapedeck.Page{}, err
	case i.IsFrozen():
		return s.g.frozen.read(ctx, session, i.Limits.Before, r)
	}
	return s.g.store.Read(ctx, session, r)
}

// Follow yields the events of a session. It ends with an error when the identity is no
// longer valid, or may no longer read the session.
func (s *Sessions) Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error] {
	return func(yield func(tapedeck.Page, error) bool) {
		ctx, i, err := s.g.allow(ctx, session, access.Read)
		if err != nil {
			yield(tapedeck.Page{}, err)
			return
		}
		closed, err := s.g.open(i)
		if err != nil {
			yield(tapedeck.Page{}, err)
			return
		}
		defer closed()
		ctx, stop := i.Bind(ctx)
		defer stop()
		follow := s.g.store.Follow
		if i.IsFrozen() {
			follow = s.g.frozen.follow(i.Limits.Before)
		}
		for page, err := range follow(ctx, session, o) {
			// A change of the owner or of the labels is an event of the session. So it
			// wakes the follower, which sees it before it yields it.
			if _, _, refused := s.g.allow(ctx, session, access.Read); refused != nil {
				page, err = tapedeck.Page{}, refused
			}
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// Limits of a list that is filtered here: one request looks at this many pages of the
// catalogue at most. A page may be short, or empty with a cursor.
const (
	maxPages     = 100
	defaultLimit = 100
)

// List returns a page of the sessions that the identity can read.
func (s *Sessions) List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error) {
	i, err := who(ctx)
	switch {
	case err != nil:
		return tapedeck.SessionPage{}, err
	case i.Limits.Session != "":
		return tapedeck.SessionPage{}, ofOneSession()
	case i.IsUnlimited(), i.Role == access.Reader && i.Limits.IsZero():
		return s.g.store.List(ctx, f)
	}
	return s.g.list(ctx, i, f)
}

// ofOneSession returns the error of a token of one session that is used for more.
func ofOneSession() error {
	return tapedeck.Errorf(tapedeck.Forbidden, "this token is for one session only")
}

func (g *Guard) list(ctx context.Context, i *access.Identity, f tapedeck.Filter) (out tapedeck.SessionPage, err error) {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	out.Next = f.Cursor
	for range maxPages {
		f.Limit = limit - len(out.Sessions)
		page, err := g.store.List(ctx, f)
		if err != nil {
			return out, err
		}
		for _, s := range page.Sessions {
			if i.LevelOf(&s) == access.None {
				continue
			}
			g.hide(ctx, i, &s)
			out.Sessions = append(out.Sessions, s)
		}
		f.Cursor, out.Next = page.Next, page.Next
		if page.Next == "" || len(out.Sessions) > limit/2 {
			break
		}
	}
	return out, nil
}

// Append appends to a stream. Sessions are written by [Guarded].
func (s *Sessions) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	ctx, i, err := s.g.allow(ctx, a.Session, access.Write)
	if err != nil {
		return tapedeck.Appended{}, err
	}
	if err := onlyStream(a.Session); err != nil {
		return tapedeck.Appended{}, err
	}
	if err := s.g.takeAppend(i, &a); err != nil {
		return tapedeck.Appended{}, err
	}
	return s.g.store.Append(ctx, a)
}

// onlyStream returns an error for a session: only the engine writes sessions.
func onlyStream(id string) error {
	if !strings.HasPrefix(id, tapedeck.StreamPrefix) {
		return tapedeck.Errorf(tapedeck.Internal, "%s is a session, which only the engine writes", id)
	}
	return nil
}

// Create creates a stream.
func (s *Sessions) Create(ctx context.Context, spec tapedeck.Spec) (tapedeck.Created, error) {
	if err := onlyStream(spec.ID); err != nil {
		return tapedeck.Created{}, err
	}
	i, err := who(ctx)
	if err != nil {
		return tapedeck.Created{}, err
	}
	if have, _, err := s.g.level(ctx, i, spec.ID); err != nil || have < access.Write {
		return tapedeck.Created{}, notYours(i)
	}
	if spec.Parent != "" {
		if ctx, _, err = s.g.allow(ctx, spec.Parent, access.Read); err != nil {
			return tapedeck.Created{}, err
		}
	}
	if err := s.g.take(i, 1, 0); err != nil {
		return tapedeck.Created{}, err
	}
	return s.g.store.Create(onlyIf(ctx, i, spec.ID, 0, access.Write), spec)
}

// notYours returns the error of a stream outside of the paths that an identity may use.
func notYours(i *access.Identity) error {
	err := tapedeck.Errorf(tapedeck.Forbidden, "this token may not create a stream here")
	if i.Role == access.User && i.Limits.IsZero() {
		return err.WithHint("the paths of its streams begin with %s%s/", access.StreamRoot, i.Subject)
	}
	return err
}

// Delete deletes a stream.
func (s *Sessions) Delete(ctx context.Context, id string) error {
	ctx, _, err := s.g.allow(ctx, id, access.Own)
	if err != nil {
		return err
	}
	if err := onlyStream(id); err != nil {
		return err
	}
	return s.g.store.Delete(ctx, id)
}

// Touch restarts the time to live of a stream that is read.
func (s *Sessions) Touch(ctx context.Context, id string) error {
	ctx, _, err := s.g.allow(ctx, id, access.Read)
	if err != nil {
		return err
	}
	return s.g.store.Touch(ctx, id)
}

// Erase is refused: the engine erases.
func (s *Sessions) Erase(_ context.Context, e tapedeck.Erasure) (tapedeck.Erased, error) {
	return tapedeck.Erased{}, tapedeck.Errorf(tapedeck.Internal, "session %s is erased through the engine only", e.Session)
}
