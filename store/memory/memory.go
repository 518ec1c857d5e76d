// Package memory is the reference implementation of a store: the contract in its
// simplest form, with one mutex and slices. Its data is lost when it is closed, so it
// also serves programs that want to keep nothing.
package memory

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Options of a store. The zero value is ready to use.
type Options struct {
	Now        func() time.Time // nil for [time.Now]
	FailCommit func() error     // for tests: called at each commit, which fails with its error; must not call the store

	// NextGen returns the Gen of a new session, above last, the newest one of the store. Nil
	// for last+1. A store of several databases numbers the sessions of all of them.
	NextGen func(last int64) int64
}

// A Store keeps sessions in memory.
type Store struct {
	now     func() time.Time
	fail    func() error
	nextGen func(last int64) int64

	mu       sync.Mutex
	closed   bool
	gen      int64
	sessions map[string]*log
	order    []*log            // all sessions by Gen
	mortal   map[*log]struct{} // the sessions that can expire
	due      time.Time         // no session expires earlier; zero for never
	commits  []tapedeck.Commit // since the store was locked; see leave

	subscriptions map[string][]byte          // their states by id
	acks          map[string]map[int64]int64 // what subscriptions have acknowledged, by their id and the Gen of the session

	pushes map[int64][]*pushConfig // the push notification configs, by the Gen of their session

	workflows map[string][]storedWorkflow // by name; the current version first, none is empty

	spending map[ownerPeriod]store.Spending

	observers store.Observers
	running   context.Context // until Close
	stop      context.CancelFunc
}

var _ tapedeck.Store = (*Store)(nil)

// New returns an empty store.
func New(o Options) *Store {
	m := &Store{
		now: o.Now, fail: o.FailCommit, nextGen: o.NextGen,
		sessions: map[string]*log{}, mortal: map[*log]struct{}{},
		subscriptions: map[string][]byte{}, acks: map[string]map[int64]int64{}, pushes: map[int64][]*pushConfig{},
		workflows: map[string][]storedWorkflow{}, spending: map[ownerPeriod]store.Spending{},
	}
	m.running, m.stop = context.WithCancel(context.Background())
	if m.now == nil {
		m.now = time.Now
	}
	if m.fail == nil {
		m.fail = func() error { return nil }
	}
	if m.nextGen == nil {
		m.nextGen = func(last int64) int64 { return last + 1 }
	}
	return m
}

// Observe implements [tapedeck.Store].
func (m *Store) Observe(o tapedeck.Observer) { m.observers.Add(o) }

// LastGen returns the newest Gen of the store: no session had one above it.
func (m *Store) LastGen() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gen
}

// Close makes every later call fail.
func (m *Store) Close() error {
	m.stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Read implements [tapedeck.Log].
func (m *Store) Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error) {
	unlock, err := m.enter(ctx)
	if err != nil {
		return tapedeck.Page{}, err
	}
	defer unlock()
	l, err := m.find(session)
	if err != nil {
		return tapedeck.Page{}, err
	}
	return l.read(r.WithDefaults())
}

// Head implements [tapedeck.Log].
func (m *Store) Head(ctx context.Context, session string) (tapedeck.Session, error) {
	unlock, err := m.enter(ctx)
	if err != nil {
		return tapedeck.Session{}, err
	}
	defer unlock()
	l, err := m.find(session)
	if err != nil {
		return tapedeck.Session{}, err
	}
	return l.Session, nil
}

// enter locks the store and first deletes the sessions that have expired. The caller must call leave at the end.
func (m *Store) enter(ctx context.Context) (leave func(), err error) {
	m.mu.Lock()
	err = ctx.Err()
	if m.closed {
		err = tapedeck.Errorf(tapedeck.Unavailable, "the store is closed")
	}
	if err != nil {
		m.mu.Unlock()
		return nil, err
	}
	m.expire()
	return m.leave, nil
}

// leave notifies the observers of what was committed since enter, and unlocks the
// store. They are notified with the lock held, so that the notifications have the
// order of the commits.
func (m *Store) leave() {
	defer m.mu.Unlock()
	if len(m.commits) > 0 {
		m.observers.Committed(m.commits)
		clear(m.commits)
		m.commits = m.commits[:0]
	}
}

// committed notes a commit for the observers. Requires m.mu.
func (m *Store) committed(c tapedeck.Commit) { m.commits = append(m.commits, c) }

// find returns a session that can be used; a deleted one is an error. Requires m.mu.
func (m *Store) find(session string) (*log, error) {
	l := m.sessions[session]
	switch {
	case l == nil:
		return nil, tapedeck.Errorf(tapedeck.NotFound, "there is no session %q", session)
	case l.gone:
		return nil, tapedeck.Errorf(tapedeck.Gone, "session %q was deleted", session)
	}
	return l, nil
}

// commit calls Options.FailCommit. Nothing may change before it has returned nil.
func (m *Store) commit() error {
	if err := m.fail(); err != nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "it could not be stored").WithHint("try again").Because(err)
	}
	return nil
}

// expire deletes the expired sessions. Requires m.mu.
func (m *Store) expire() {
	now := m.now()
	if m.due.IsZero() || now.Before(m.due) {
		return
	}
	m.due = time.Time{}
	for l := range m.mortal {
		if d := l.deadline(); now.Before(d) {
			m.expect(d)
		} else {
			m.remove(l)
		}
	}
}

// expect notes that a session expires at d or later. Requires m.mu.
func (m *Store) expect(d time.Time) {
	if m.due.IsZero() || d.Before(m.due) {
		m.due = d
	}
}

// remove deletes l, and the deleted ancestors that only l still needed. Forks have
// their own spans of shared records, so they lose nothing. Requires m.mu.
func (m *Store) remove(l *log) {
	l.gone = true
	l.spans, l.producers = nil, nil
	l.Totals = tapedeck.Totals{} // they have words of its messages
	m.committed(tapedeck.Commit{Session: l.Session, Gone: true})
	delete(m.mortal, l)
	for _, acks := range m.acks {
		delete(acks, l.Gen)
	}
	delete(m.pushes, l.Gen)
	for l != nil && l.gone && l.forks == 0 {
		delete(m.sessions, l.ID)
		if i, ok := m.position(l.Gen); ok {
			m.order = slices.Delete(m.order, i, i+1)
		}
		if l = l.parent; l != nil {
			l.forks--
		}
	}
}

// position returns where the session of a Gen is in m.order, or would be.
func (m *Store) position(gen int64) (int, bool) {
	return slices.BinarySearchFunc(m.order, gen, func(l *log, gen int64) int { return cmp.Compare(l.Gen, gen) })
}
