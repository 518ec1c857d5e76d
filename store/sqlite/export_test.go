package sqlite

import (
	"context"
	"path/filepath"
	"runtime"
)

// Dir is the data folder.
func (s *Store) Dir() string { return filepath.Dir(s.file) }

// WaitQueued waits until n requests wait for the writer.
func (s *Store) WaitQueued(n int) {
	q := s.writer.queue
	for {
		q.mu.Lock()
		queued := len(q.requests) + len(q.big)
		q.mu.Unlock()
		if queued >= n {
			return
		}
		runtime.Gosched()
	}
}

// Number returns the integer that a query results in.
func (s *Store) Number(query string) (n int64, err error) {
	err = s.readers.use(context.Background(), func(c *conn) (err error) {
		n, err = c.number(query)
		return err
	})
	return n, err
}

// KeepFresh says of how many events the positions are kept in memory only.
func (s *Store) KeepFresh(n int) {
	s.writer.turn.Lock()
	defer s.writer.turn.Unlock()
	s.writer.maxFresh = n
}

// Unclean returns how many erasures may have left something behind.
func (s *Store) Unclean() (int64, error) { return s.Number(sqlUnclean) }

// SkipCleaning makes every cleaning fail.
func (s *Store) SkipCleaning() { s.skipCleaning = true }

// WaitClean waits until no erasure has left anything behind.
func (s *Store) WaitClean() {
	for {
		if n, err := s.Number(sqlUnclean); err != nil || n == 0 {
			return
		}
		runtime.Gosched()
	}
}

// WaitIdle waits until nobody writes.
func (s *Store) WaitIdle() {
	s.writer.turn.Lock()
	s.writer.turn.Unlock() //nolint:staticcheck // nothing is to be done in between
}

// StartLogOver empties the write-ahead log.
func (s *Store) StartLogOver() {
	s.writer.turn.Lock()
	defer s.writer.turn.Unlock()
	_ = s.writer.truncateLog()
}
