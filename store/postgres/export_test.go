package postgres

import "runtime"

// StopRenewing makes the lease run out.
func (s *Store) StopRenewing() { s.lease.skip.Store(true) }

// Renew undoes StopRenewing.
func (s *Store) Renew() { s.lease.skip.Store(false) }

// WaitQueued waits until n requests wait for the writer.
func (s *Store) WaitQueued(n int) {
	for s.writer.queue.Len() < n {
		runtime.Gosched()
	}
}
