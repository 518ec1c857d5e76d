package memory

// Left returns how many references to sessions m holds.
func Left(m *Store) int { return len(m.sessions) + len(m.order) + len(m.mortal) }
