package postgres

import "runtime"

// StopRenewing makes the lease run out. No renewal is under way when it returns: it would show
// others that the owner is alive.
func (s *Store) StopRenewing() { s.lease.setSkip(true) }

// Renew undoes StopRenewing.
func (s *Store) Renew() { s.lease.setSkip(false) }

func (l *lease) setSkip(skip bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skip = skip
}

// WaitQueued waits until n requests wait for the writer.
func (s *Store) WaitQueued(n int) {
	for s.writer.queue.Len() < n {
		runtime.Gosched()
	}
}
