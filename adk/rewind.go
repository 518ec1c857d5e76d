package adk

import (
	"context"

	"github.com/tapedeck/tapedeck/api"
)

// A RewindRequest asks for a rewind to the state before an invocation.
type RewindRequest struct {
	AppName      string
	UserID       string
	SessionID    string
	InvocationID string // its first event is the first one that is reverted

	// Force allows the rewind to make reverted events active again. It is needed if the
	// invocation itself is reverted.
	Force bool
}

// Rewind reverts an invocation and everything after it: events and the state of the
// session, but not the state of the app and of the user. It deletes nothing, and it
// cancels a run that is open. It returns the marker that undoes it, see [Service.Undo].
//
// An unknown session or invocation is a [tapedeck.NotFound]. A rewind that would change
// nothing is a [tapedeck.Conflict].
func (s *Service) Rewind(ctx context.Context, req *RewindRequest) (marker string, err error) {
	k := key{req.AppName, req.UserID, req.SessionID}
	if err := checkKey(k); err != nil {
		return "", err
	}
	info, err := s.find(ctx, k)
	if err != nil {
		return "", err
	}
	done, err := s.store.Rewind(ctx, info.ID, api.Rewind{
		BeforeInvocation: runID(req.InvocationID, 1), Force: req.Force, Actor: userActor(k.user),
	})
	return done.Marker, err
}

// An UndoRequest asks for what a rewind has reverted.
type UndoRequest struct {
	AppName   string
	UserID    string
	SessionID string
	Marker    string // "" means the newest rewind
}

// Undo undoes a rewind, and reverts everything after it. It returns the marker that undoes
// the undo.
func (s *Service) Undo(ctx context.Context, req *UndoRequest) (marker string, err error) {
	k := key{req.AppName, req.UserID, req.SessionID}
	if err := checkKey(k); err != nil {
		return "", err
	}
	info, err := s.find(ctx, k)
	if err != nil {
		return "", err
	}
	done, err := s.store.Undo(ctx, info.ID, req.Marker)
	return done.Marker, err
}
