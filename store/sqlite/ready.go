package sqlite

import (
	"context"

	"github.com/tapedeck/tapedeck"
)

// Writable reports why nothing can be written now, nil if writing works. The first
// call writes something, for a folder can be opened on a full disk; so does each
// after a commit that has failed. The others cost nothing.
func (s *Store) Writable(ctx context.Context) error {
	if err := s.checkPlace(); err != nil {
		return err
	}
	if s.tried.Load() && !s.writer.failing.Load() {
		return nil
	}
	if err := s.try(ctx); err != nil {
		return err
	}
	s.tried.Store(true)
	return nil
}

// trialSize is more than what most appends write: on a disk that is nearly full a
// page can still be written.
const trialSize = 64 << 10

// try writes a session that no client sees, and deletes it.
func (s *Store) try(ctx context.Context) error {
	const id = tapedeck.ViewPrefix + "trial"
	remove := func() error {
		err := s.Delete(ctx, id)
		if tapedeck.KindOf(err) == tapedeck.NotFound {
			return nil
		}
		return err
	}
	if err := remove(); err != nil { // an earlier process may have left one
		return err
	}
	_, _, err := s.Create(ctx, tapedeck.Spec{
		ID: id, Kind: tapedeck.KindView, ContentType: "application/octet-stream", Chunks: [][]byte{make([]byte, trialSize)},
	})
	if err != nil {
		return err
	}
	return remove()
}
