package postgres

import (
	"context"

	"github.com/tapedeck/tapedeck"
)

// Writable returns nil if the store can write, otherwise the reason. Each call asks
// PostgreSQL for an answer, because one that is stopped closes no connection. The first call
// writes something, because the disk of PostgreSQL can be full. So does each call after a
// failed commit.
func (s *Store) Writable(ctx context.Context) error {
	if s.closed.Load() || s.lost.Load() != nil {
		return s.errClosed()
	}
	if err := s.ask(ctx); err != nil {
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

// ask asks for any answer of PostgreSQL.
func (s *Store) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := s.readers.Ping(ctx); err != nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "PostgreSQL does not answer").WithHint("look whether it runs; the server connects again by itself").Because(err)
	}
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
