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

// A ledger has the state of a session at its head: which runs are open, and what is
// open in them. The store's writer checks and advances it (see
// [tapedeck.Append.Check]), so that no other append comes between the check of an
// append and its commit. If the ledger is behind, or ahead because a commit failed,
// it is restored from the log. That costs a read of the open runs.
type ledger struct {
	mu       sync.Mutex
	known    bool
	gen      int64
	head     int64
	verifier *order.Verifier
}

// errStale means that the ledger did not match the session, and nothing was done.
var errStale = errors.New("the ledger is stale")

// current returns the verifier as of now. Do not change it. It reports false if the
// ledger has to be restored.
func (l *ledger) current() (*order.Verifier, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.verifier, l.known
}

// restore sets the ledger to the state of s, unless the ledger is newer already. It
// returns the verifier of the ledger.
func (l *ledger) restore(s *tapedeck.Session, v *order.Verifier) *order.Verifier {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known || l.gen != s.Gen || l.head < s.Head {
		l.known, l.gen, l.head, l.verifier = true, s.Gen, s.Head, v
	}
	return l.verifier
}

// invalidate makes the next append restore the ledger: events with which it advanced
// were not written.
func (l *ledger) invalidate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = false
}

// advance checks events that are about to be appended to s, and advances the ledger
// by them. closes means that the append closes the session. After errStale the
// caller tries again; any other error is a refusal.
func (l *ledger) advance(s *tapedeck.Session, t *attempt, closes bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known || l.gen != s.Gen || l.head != s.Head {
		l.known = false // the session in the writer is the right one
		return errStale
	}
	next, err := t.check(l.verifier, s.Head)
	if err != nil {
		return err
	}
	if !linked(t.events, s.LastJump) {
		return errStale
	}
	if closes {
		if runs := next.Runs(); len(runs) > 0 {
			return tapedeck.Errorf(tapedeck.Conflict, "%s is running in session %s", runs[0].Invocation, s.ID).WithHint("cancel it first")
		}
	}
	l.verifier, l.head = next, s.Head+int64(len(t.events))
	return nil
}

// An attempt has the events of an append in the form that they get if the ledger
// has not changed since. The goroutine that appends forms them, so that the store's
// writer, on which all appends wait, has almost nothing to do.
type attempt struct {
	given  []tapedeck.Event
	events []tapedeck.Event // in the form of the log; a copy of given if err is set
	parts  []int            // how many of events each part has, see [tapedeck.Append.Parts]; nil for no parts
	err    error            // why they have no such form. The writer reports it, because a repetition by a producer is no error
	before *order.Verifier  // the ledger's verifier when they were formed
	after  *order.Verifier  // a copy of before, advanced by the events
}

func formAttempt(seen *order.Verifier, given []tapedeck.Event, parts []int) *attempt {
	t := &attempt{given: given, before: seen, after: seen.Clone()}
	if len(parts) > 0 {
		t.events, t.parts, t.err = acceptParts(t.after, given, parts)
	} else {
		t.events, t.err = t.after.Accept(given)
	}
	if t.err != nil {
		t.events, t.parts = slices.Clone(given), parts
	}
	return t
}

// acceptParts is Accept for an append of several parts: one event may become none or
// several, so the sizes of the parts may change.
func acceptParts(v *order.Verifier, given []tapedeck.Event, parts []int) (events []tapedeck.Event, sizes []int, err error) {
	events, sizes = make([]tapedeck.Event, 0, len(given)), make([]int, len(parts))
	for i, n := range parts {
		if n < 0 || n > len(given) {
			return nil, nil, tapedeck.Errorf(tapedeck.Invalid, "the parts of the append do not fit its events")
		}
		part, err := v.Accept(given[:n])
		if err != nil {
			return nil, nil, err
		}
		events, given, sizes[i] = append(events, part...), given[n:], len(part)
	}
	return events, sizes, nil
}

func addEvents(v *order.Verifier, events []tapedeck.Event) error {
	for i := range events {
		if err := v.Add(&events[i]); err != nil {
			return err
		}
	}
	return nil
}

// check returns v advanced by the events, which get the offsets from head on. If the
// ledger has changed since they were formed, a refusal may be outdated: then they
// are refused only if no form of them fits.
func (t *attempt) check(v *order.Verifier, head int64) (*order.Verifier, error) {
	for i := range t.events {
		t.events[i].Offset = head + int64(i)
	}
	switch {
	case v == t.before && t.err != nil:
		return nil, t.err
	case v == t.before:
		t.after.SetOffsets(t.events)
		return t.after, nil
	}
	if next := v.Clone(); t.err == nil && addEvents(next, t.events) == nil {
		return next, nil
	}
	if _, err := v.Clone().Accept(t.given); err != nil {
		return nil, err
	}
	return nil, errStale
}

// linked reports whether each attempt names the jump before it: a jump that the
// ledger does not know may have been appended since the attempt was formed.
func linked(events []tapedeck.Event, last int64) bool {
	for i := range events {
		j, ok := events[i].Jump()
		switch {
		case !ok:
		case j.Attempt && j.Previous != last:
			return false
		default:
			last = events[i].Offset
		}
	}
	return true
}

// maxLedgers is how many ledgers the engine keeps in memory.
const maxLedgers = 4096

// ledgers has the ledgers of the sessions that were written to last.
type ledgers struct {
	mu   sync.Mutex
	byID lru.Map[string, *ledger]
}

// find returns the ledger of a session, nil if it has none. It does not make one,
// so that requests for sessions that do not exist use no memory.
func (m *ledgers) find(session string) *ledger {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, _ := m.byID.Get(session)
	return l
}

// get returns the ledger of a session, and makes one if needed.
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

// current returns the ledger of a session and its verifier. It restores them from
// the log if needed.
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

// restoreLedger restores the ledger of a session, if it is not known, from a log and an
// entry that the caller has read. If they are old by now, the next append finds it out.
func (e *Engine) restoreLedger(ctx context.Context, log tapedeck.Log, s *tapedeck.Session) error {
	l := e.ledgers.get(s.ID)
	if _, ok := l.current(); ok {
		return nil
	}
	v, err := order.RestoreVerifier(ctx, log, *s)
	if err == nil {
		l.restore(s, v)
	}
	return err
}
