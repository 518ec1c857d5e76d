package postgres

import (
	"context"

	"github.com/tapedeck/tapedeck"
)

// Writable returns nil if the store can write, otherwise the reason. The first call
// writes something, because the disk of PostgreSQL can be full. So does each call
// after a failed commit. Other calls cost nothing.
func (s *Store) Writable(ctx context.Context) error {
	if s.closed.Load() || s.lost.Load() != nil {
		return s.errClosed()
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

// trialSize is more than most appends write, because a nearly full disk may still
// have space for a page.
const trialSize = 64 << 10

// try creates a session that clients do not see, and deletes it.
func (s *Store) try(ctx context.Context) error {
	const id = tapedeck.ViewPrefix + "trial"
	remove := func() error {
		err := s.Delete(ctx, id)
		if tapedeck.KindOf(err) == tapedeck.NotFound {
			return nil
		}
		return err
	}
	if err := remove(); err != nil { // an earlier process may have left it
		return err
	}
	_, err := s.Create(ctx, tapedeck.Spec{
		ID: id, Kind: tapedeck.KindView, ContentType: "application/octet-stream", Chunks: [][]byte{make([]byte, trialSize)},
	})
	if err != nil {
		return err
	}
	return remove()
}
