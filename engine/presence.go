package engine

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
)

// Presence takes down where somebody is, and returns who is there. Only a session
// that asks for it has events of that, see [api.PresenceLabel]; it gets none
// once it is closed.
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
	return e.presence.Present(n.Session), err
}

// Present returns who is in a session.
func (e *Engine) Present(ctx context.Context, session string) ([]payload.Presence, error) {
	if _, err := e.session(ctx, session); err != nil {
		return nil, err
	}
	return e.presence.Present(session), nil
}

// WatchPresence watches who comes and goes.
func (e *Engine) WatchPresence(session string) api.PresenceWatcher {
	return e.presence.Watch(session)
}

func (e *Engine) storePresence(ctx context.Context, s *tapedeck.Session, user string, change payload.Payload) error {
	if s.Labels[api.PresenceLabel] != api.PresenceStored || s.Closed {
		return nil
	}
	_, err := e.write(ctx, tapedeck.Append{Session: s.ID, Events: []tapedeck.Event{event(change, "user:"+user)}}, nil)
	if isOver(err) { // closed or deleted just now
		return nil
	}
	return err
}

// hasLeft is called when nothing was heard of somebody for too long.
func (e *Engine) storeLeft(session string, p payload.Presence) {
	s, err := e.session(e.life, session)
	if err == nil {
		err = e.storePresence(e.life, &s, p.User, payload.PresenceLeft{Presence: p})
	}
	if err != nil && e.life.Err() == nil {
		e.options.Logger.Warn("that somebody has left could not be stored", "session", session, "error", err)
	}
}
