package memory

// Reopen closes m and returns a store with the data of m. Only suites need it: so
// their checks after a reopening run on the reference, too.
func Reopen(m *Store) *Store {
	_ = m.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	again := New(Options{Now: m.now, FailCommit: m.fail, NextGen: m.nextGen})
	again.gen, again.sessions, again.order, again.mortal, again.due = m.gen, m.sessions, m.order, m.mortal, m.due
	again.subscriptions, again.acks, again.pushes, again.workflows = m.subscriptions, m.acks, m.pushes, m.workflows
	again.spending = m.spending
	return again
}
