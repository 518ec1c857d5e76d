package deck

import (
	"context"
	"iter"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// A Session is a handle of one session. Making it costs nothing and reads nothing. If
// there is no such session, its methods return [tapedeck.NotFound].
type Session struct {
	deck *Deck
	id   string
}

// Session returns a handle of the session with the given id.
func (d *Deck) Session(id string) *Session { return &Session{deck: d, id: id} }

// ID returns the id of the session.
func (s *Session) ID() string { return s.id }

// Info returns the entry of the session in the catalogue as of now.
func (s *Session) Info(ctx context.Context) (tapedeck.Session, error) {
	return s.deck.hub.Head(ctx, s.id)
}

// Append appends events, all of them or none. They are durable when it returns
// without an error. For an expected offset or a producer, use [Deck.Append].
func (s *Session) Append(ctx context.Context, events ...tapedeck.Event) (tapedeck.Appended, error) {
	return s.deck.Append(ctx, tapedeck.Append{Session: s.id, Events: events})
}

// Events yields the events from offset from up to the head.
func (s *Session) Events(ctx context.Context, from int64) iter.Seq2[tapedeck.Event, error] {
	return tapedeck.Events(ctx, s.deck.hub, s.id, from)
}

// Follow yields the events from offset from on, see [Deck.Follow].
func (s *Session) Follow(ctx context.Context, from int64) iter.Seq2[tapedeck.Event, error] {
	return s.deck.Follow(ctx, s.id, from)
}

// Run gives the session's agent a task, see [Deck.Run].
func (s *Session) Run(ctx context.Context, task string) (api.Started, error) {
	if s.id == "" { // Deck.Run would create a session
		return api.Started{}, tapedeck.CheckID("the session's id", s.id)
	}
	return s.deck.Run(ctx, api.Task{Session: s.id, Text: task})
}

// Resume asks the agent of a thread to continue a run that stopped before its
// end. The Session member of r is ignored.
func (s *Session) Resume(ctx context.Context, r api.Resume) (api.Started, error) {
	r.Session = s.id
	return s.deck.engine.Resume(ctx, r)
}

// Cancel stops a run and keeps its partial text. Without an invocation it stops the
// only open run. It is a [tapedeck.Conflict] if none or several are open.
func (s *Session) Cancel(ctx context.Context, invocation string) (api.Cancelled, error) {
	return s.deck.engine.Cancel(ctx, s.id, invocation)
}

// Renew says that the program of a run which it writes with [Session.Append] is alive. It is
// a [tapedeck.Conflict] if the run is not open, or if the deck drives it.
func (s *Session) Renew(ctx context.Context, invocation string) (api.Renewed, error) {
	return s.deck.engine.Renew(ctx, api.Renewal{Session: s.id, Invocation: invocation})
}

// CancelAll is like [Session.Cancel], and withdraws the inputs that wait in the thread of
// the run. Without an invocation and without an open run it withdraws all that wait.
func (s *Session) CancelAll(ctx context.Context, invocation string) (api.Cancelled, error) {
	return s.deck.engine.CancelAll(ctx, s.id, invocation)
}

// Inputs returns the inputs that wait, in the order in which they will run, and the
// newest of those that have ended. [Deck.Run] makes one if api.Task.When says so.
func (s *Session) Inputs(ctx context.Context) ([]view.Input, error) {
	return s.deck.engine.Inputs(ctx, s.id, "")
}

// Withdraw withdraws an input that waits.
func (s *Session) Withdraw(ctx context.Context, input string) (view.Input, error) {
	return s.deck.engine.Withdraw(ctx, api.Withdraw{Session: s.id, Input: input})
}

// Move puts an input that waits before another one, or at the end if before is "".
func (s *Session) Move(ctx context.Context, input, before string) (view.Input, error) {
	return s.deck.engine.Move(ctx, api.Move{Session: s.id, Input: input, Before: before})
}

// Take gives an input that waits for an outside program to an open run that the program
// writes with [Session.Append], and returns the user's words, which the deck has appended.
func (s *Session) Take(ctx context.Context, input, invocation string) (api.Taken, error) {
	return s.deck.engine.Take(ctx, api.Take{Session: s.id, Input: input, Invocation: invocation})
}

// Answer answers a question of an agent: it chooses an option of a permission. The
// Session member of a is ignored.
func (s *Session) Answer(ctx context.Context, a api.Answer) (api.Answered, error) {
	a.Session = s.id
	return s.deck.engine.Answer(ctx, a)
}

// Rewind reverts the events from an invocation or an offset on. It deletes
// nothing, and [Session.Undo] restores them. The Session member of r is ignored.
func (s *Session) Rewind(ctx context.Context, r api.Rewind) (api.Rewound, error) {
	r.Session = s.id
	return s.deck.engine.Rewind(ctx, r)
}

// Undo reverts a rewind, a clear, an overwrite or an undo, and everything after it.
// The empty marker means the newest.
func (s *Session) Undo(ctx context.Context, marker string) (api.Rewound, error) {
	return s.deck.engine.Undo(ctx, api.Undo{Session: s.id, Marker: marker})
}

// Overwrite reverts the events from an offset on, so that the next appends
// replace them. The Session member of o is ignored.
func (s *Session) Overwrite(ctx context.Context, o api.Overwrite) (api.Rewound, error) {
	o.Session = s.id
	return s.deck.engine.Overwrite(ctx, o)
}

// Clear reverts everything in one thread, or in all threads if thread is empty.
func (s *Session) Clear(ctx context.Context, thread string) (api.Rewound, error) {
	return s.deck.engine.Clear(ctx, api.Clear{Session: s.id, Thread: thread})
}

// Fork creates a session that shares the events of this one, at a cost that does
// not depend on their number. The Parent member of f is ignored.
func (s *Session) Fork(ctx context.Context, f api.Fork) (*Session, error) {
	f.Parent = s.id
	made, err := s.deck.engine.Fork(ctx, f)
	if err != nil {
		return nil, err
	}
	return s.deck.Session(made.ID), nil
}

// Erase removes the payloads of events for good, from every file and cache, and
// returns the receipt. The Session member of e is ignored.
func (s *Session) Erase(ctx context.Context, e api.Erase) (api.Erased, error) {
	e.Session = s.id
	return s.deck.verbs.Erase(ctx, e)
}

// Rename changes the title or the labels. The Session member of r is ignored.
func (s *Session) Rename(ctx context.Context, r api.Rename) (tapedeck.Session, error) {
	r.Session = s.id
	return s.deck.verbs.Rename(ctx, r)
}

// Close closes the session: it takes no events any more, and its followers end.
func (s *Session) Close(ctx context.Context) error { return s.deck.engine.Close(ctx, s.id, "") }

// Delete deletes the session. Forks keep the events that they share with it.
func (s *Session) Delete(ctx context.Context) error { return s.deck.verbs.Delete(ctx, s.id) }

// Export returns the session as a file in one of the formats that
// docs/exchange.md lists. The Session member of r is ignored.
func (s *Session) Export(ctx context.Context, r api.ExportRequest) (api.Export, error) {
	r.Session = s.id
	return s.deck.verbs.Export(ctx, r)
}
