package memory

// Reopen closes m and returns a store that holds what m held. A store in memory
// has no use for it, but the suite has: it shows that what it does after opening
// a store again is right when nothing was lost.
func Reopen(m *Store) *Store {
	_ = m.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	again := New(Options{Now: m.now, FailCommit: m.fail})
	again.gen, again.sessions, again.order, again.mortal, again.due = m.gen, m.sessions, m.order, m.mortal, m.due
	return again
}

// Left returns how many sessions m holds on to in one way or another.
func Left(m *Store) int { return len(m.sessions) + len(m.order) + len(m.mortal) }
