package memory

// Reopen closes m and returns a store that holds what m held. A store in memory
// has no use for it, but the suite has: it shows that what it does after opening
// a store again is right when nothing was lost.
func Reopen(m *Store) *Store {
	_ = m.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Store{
		now: m.now, fail: m.fail,
		gen: m.gen, sessions: m.sessions, order: m.order, mortal: m.mortal, due: m.due,
	}
}

// Left returns how many sessions m holds on to in one way or another.
func Left(m *Store) int { return len(m.sessions) + len(m.order) + len(m.mortal) }
