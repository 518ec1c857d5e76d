package deck

import (
	"context"

	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/view"
)

// Head is the offset that means "as of now" to the views of a session.
const Head = -1

// Snapshot returns the conversation as of an offset: its messages, tool calls,
// runs, permissions, state and plan.
func (s *Session) Snapshot(ctx context.Context, q view.Query) (view.Snapshot, error) {
	return s.deck.views.Snapshot(ctx, s.id, q)
}

// Messages returns the newest messages of the conversation as of now.
func (s *Session) Messages(ctx context.Context) ([]view.Message, error) {
	snapshot, err := s.Snapshot(ctx, view.Query{})
	return snapshot.Messages, err
}

// Summary returns the totals of the session as of an offset, [Head] for now.
func (s *Session) Summary(ctx context.Context, at int64) (view.Summary, error) {
	return s.deck.views.Summary(ctx, s.id, at)
}

// ReplayIndex returns the marks that a player needs, as of an offset.
func (s *Session) ReplayIndex(ctx context.Context, at int64) (view.Index, error) {
	return s.deck.views.Index(ctx, s.id, at)
}

// Instances returns the agents that take part, as of an offset.
func (s *Session) Instances(ctx context.Context, at int64) (view.Instances, error) {
	return s.deck.views.Instances(ctx, s.id, at)
}

// Branches returns the tree of forks and reverted branches around the session, as of an
// offset.
func (s *Session) Branches(ctx context.Context, at int64) (view.Tree, error) {
	return s.deck.views.Branches(ctx, s.id, at)
}

// Context returns the messages that a model needs to continue a thread, as of
// an offset. The empty thread is the main one. It is well-formed for a model's
// provider whatever the log has: see [view.Context].
func (s *Session) Context(ctx context.Context, thread string, at int64) ([]view.ContextMessage, error) {
	of := view.InThread(thread)
	snapshot, err := s.Snapshot(ctx, view.Query{At: new(at), Thread: of.Thread, Limit: maxContext})
	return view.Context(snapshot, of), err
}

// maxContext is how many messages a context has at most.
const maxContext = 10_000

// Search finds messages, tool calls and titles by their words, in all sessions or in
// one.
func (d *Deck) Search(ctx context.Context, q search.Query) (search.Result, error) {
	return d.search.Search(ctx, q)
}
