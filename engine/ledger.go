package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/lru"
	"github.com/tapedeck/tapedeck/order"
)

// A ledger is what the engine knows of a session as of its head: which runs are
// open, and what is open in them. It is looked at and brought forward inside the
// store's writer (see [tapedeck.Append.Check]), so that to check an append and
// to append it are one. If it is behind, or ahead because a commit has failed,
// it is made anew from the log; that costs as much as the open runs are long.
type ledger struct {
	mu       sync.Mutex
	known    bool
	gen      int64
	head     int64
	verifier *order.Verifier
}

// errStale says that the ledger did not fit the session, and nothing was done.
var errStale = errors.New("the ledger is stale")

// look returns the verifier as of now; it is not to be changed.
func (l *ledger) current() (*order.Verifier, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.verifier, l.known
}

// set makes the ledger that of s, unless it has come further meanwhile, and
// returns its verifier.
func (l *ledger) restore(s *tapedeck.Session, v *order.Verifier) *order.Verifier {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known || l.gen != s.Gen || l.head < s.Head {
		l.known, l.gen, l.head, l.verifier = true, s.Gen, s.Head, v
	}
	return l.verifier
}

// drop forgets: what the ledger counted on did not come true.
func (l *ledger) invalidate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = false
}

// advance checks events that are about to be appended to s, and counts on them.
// closes says that the session is closed with them. With errStale it is worth
// another attempt; any other error is a refusal.
func (l *ledger) advance(s *tapedeck.Session, t *attempt, closes bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known || l.gen != s.Gen || l.head != s.Head {
		l.known = false // the writer knows better
		return errStale
	}
	next, err := t.check(l.verifier, s.Head)
	if err != nil {
		return err
	}
	if closes {
		if runs := next.Runs(); len(runs) > 0 {
			return tapedeck.Errorf(tapedeck.Conflict, "%s is running in session %s", runs[0].Invocation, s.ID).WithHint("cancel it first")
		}
	}
	l.verifier, l.head = next, s.Head+int64(len(t.events))
	return nil
}

// An attempt is events in the form that they have if the ledger is as it was
// seen. They are formed by the goroutine that appends, so that the store's
// writer, which everybody waits for, has next to nothing to do.
type attempt struct {
	given  []tapedeck.Event
	events []tapedeck.Event // in the form of the log; a copy of given if there is an error
	err    error            // that they have no such form. A repetition by a producer is none all the same, so the writer tells it
	before *order.Verifier  // of the ledger
	after  *order.Verifier  // it with the events
}

func formAttempt(seen *order.Verifier, given []tapedeck.Event) *attempt {
	t := &attempt{given: given, before: seen, after: seen.Clone()}
	if t.events, t.err = t.after.Accept(given); t.err != nil {
		t.events = slices.Clone(given)
	}
	return t
}

func addAll(v *order.Verifier, events []tapedeck.Event) error {
	for i := range events {
		if err := v.Add(&events[i]); err != nil {
			return err
		}
	}
	return nil
}

// check returns v with the events, which are to lie at offset head. If v is not
// what was seen, a refusal may rest on what has passed: it counts only if they
// fit in no form.
func (t *attempt) check(v *order.Verifier, head int64) (*order.Verifier, error) {
	for i := range t.events {
		t.events[i].Offset = head + int64(i)
	}
	switch {
	case v == t.before && t.err != nil:
		return nil, t.err
	case v == t.before:
		t.after.Settle(t.events)
		return t.after, nil
	}
	if next := v.Clone(); t.err == nil && addAll(next, t.events) == nil {
		return next, nil
	}
	if _, err := v.Clone().Accept(t.given); err != nil {
		return nil, err
	}
	return nil, errStale
}

// maxLedgers is how many sessions the engine keeps in mind.
const maxLedgers = 4096

// ledgers are those of the sessions that were written to last.
type ledgers struct {
	mu   sync.Mutex
	byID lru.Map[string, *ledger]
}

// find returns the ledger of a session, nil if there is none. It makes none, so
// that requests for sessions that do not exist leave nothing behind.
func (m *ledgers) find(session string) *ledger {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, _ := m.byID.Get(session)
	return l
}

// get returns the ledger of a session, a new one if there is none.
func (m *ledgers) get(session string) *ledger {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.byID.Get(session)
	if !ok {
		l = &ledger{}
		m.byID.Put(session, l)
		m.byID.Trim(maxLedgers, nil) // a goroutine that still uses a removed one finds it stale at worst
	}
	return l
}

// current returns the ledger of a session and its verifier, made anew if need
// be.
func (e *Engine) current(ctx context.Context, session string) (*ledger, *order.Verifier, error) {
	if l := e.ledgers.find(session); l != nil {
		if v, ok := l.current(); ok {
			return l, v, nil
		}
	}
	s, err := e.session(ctx, session)
	if err != nil {
		return nil, nil, err
	}
	v, err := order.RestoreVerifier(ctx, e.store, s)
	if err != nil {
		return nil, nil, err
	}
	l := e.ledgers.get(session)
	return l, l.restore(&s, v), nil
}
