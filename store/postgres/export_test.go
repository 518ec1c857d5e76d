package postgres

import "runtime"

// StopRenewing makes the lease run out.
func (s *Store) StopRenewing() { s.lease.skip.Store(true) }

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
