package engine

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
)

// Presence records where a user is, and returns all users in the session. Events of
// presence are appended only to open sessions with the label [api.PresenceLabel].
func (e *Engine) Presence(ctx context.Context, n api.PresenceNote) ([]payload.Presence, error) {
	s, err := e.session(ctx, n.Session)
	if err != nil {
		return nil, err
	}
	change, changed, err := e.presence.Note(n)
	if err != nil {
		return nil, err
	}
	if changed {
		err = e.storePresence(ctx, &s, n.User, change)
	}
	if err != nil && !isClosed(err) {
		n.Action = api.PresenceLeave
		_, _, _ = e.presence.Note(n)
		return nil, err
	}
	return e.presence.Present(n.Session), nil
}

// Present returns the users in a session.
func (e *Engine) Present(ctx context.Context, session string) ([]payload.Presence, error) {
	if _, err := e.session(ctx, session); err != nil {
		return nil, err
	}
	return e.presence.Present(session), nil
}

// WatchPresence returns a watcher of the users in a session.
func (e *Engine) WatchPresence(_ context.Context, session string) api.PresenceWatcher {
	return e.presence.Watch(session)
}

func (e *Engine) storePresence(ctx context.Context, s *tapedeck.Session, user string, change payload.Payload) error {
	if s.Labels[api.PresenceLabel] != api.PresenceStored || s.Closed {
		return nil
	}
	_, err := e.write(ctx, tapedeck.Append{Session: s.ID, Events: []tapedeck.Event{event(change, "user:"+user)}}, nil)
	return err
}

// storeLeft is called when a user has left because its reports stopped.
func (e *Engine) storeLeft(session string, p payload.Presence) {
	s, err := e.session(e.life, session)
	if err == nil {
		err = e.storePresence(e.life, &s, p.User, payload.PresenceLeft{Presence: p})
	}
	if err != nil && !isOver(err) && e.life.Err() == nil { // it may have been closed or deleted just now
		e.options.Logger.Warn("the event of a user who left could not be stored", "session", session, "error", err)
	}
}
