package engine

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/tapedeck/tapedeck"
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
	verifier *tapedeck.Verifier
}

// errStale says that the ledger did not fit the session, and nothing was done.
var errStale = errors.New("the ledger is stale")

// look returns the verifier as of now; it is not to be changed.
func (l *ledger) look() (*tapedeck.Verifier, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.verifier, l.known
}

// set makes the ledger that of s.
func (l *ledger) set(s *tapedeck.Session, v *tapedeck.Verifier) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known, l.gen, l.head, l.verifier = true, s.Gen, s.Head, v
}

// drop forgets: what the ledger counted on did not come true.
func (l *ledger) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = false
}

// refresh forgets, unless the ledger has moved on since it was seen.
func (l *ledger) refresh(seen *tapedeck.Verifier) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.verifier == seen {
		l.known = false
	}
}

// advance checks events that are about to be appended to s, and counts on them.
// They have got their form, or the error formErr, from the verifier seen. If
// that is no longer the ledger's, a refusal may rest on what has passed: then
// the answer is errStale.
func (l *ledger) advance(s *tapedeck.Session, events []tapedeck.Event, formErr error, seen *tapedeck.Verifier) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known || l.gen != s.Gen || l.head != s.Head {
		return errStale
	}
	next, err := l.verifier.Clone(), formErr
	for i := 0; i < len(events) && err == nil; i++ {
		ev := events[i]
		ev.Offset = s.Head + int64(i)
		err = next.Add(&ev)
	}
	switch {
	case err != nil && l.verifier != seen:
		return errStale
	case err != nil:
		return err
	}
	l.verifier, l.head = next, s.Head+int64(len(events))
	return nil
}

// maxLedgers is how many sessions the engine keeps in mind.
const maxLedgers = 4096

// ledgers are those of the sessions that were written to last.
type ledgers struct {
	mu     sync.Mutex
	byID   map[string]*list.Element
	recent list.List // newest first
}

type ledgerEntry struct {
	id string
	*ledger
}

func (m *ledgers) get(session string) *ledger {
	m.mu.Lock()
	defer m.mu.Unlock()
	if el, ok := m.byID[session]; ok {
		m.recent.MoveToFront(el)
		return el.Value.(ledgerEntry).ledger
	}
	if m.byID == nil {
		m.byID = map[string]*list.Element{}
	}
	l := &ledger{}
	m.byID[session] = m.recent.PushFront(ledgerEntry{session, l})
	if m.recent.Len() > maxLedgers {
		old := m.recent.Back()
		m.recent.Remove(old)
		delete(m.byID, old.Value.(ledgerEntry).id) // who still uses it finds it stale at worst
	}
	return l
}

// current returns the ledger of a session and its verifier, made anew if need
// be.
func (e *Engine) current(ctx context.Context, session string) (*ledger, *tapedeck.Verifier, error) {
	l := e.ledgers.get(session)
	if v, ok := l.look(); ok {
		return l, v, nil
	}
	s, err := e.session(ctx, session)
	if err != nil {
		return nil, nil, err
	}
	v, err := tapedeck.RestoreVerifier(ctx, e.store, s)
	if err != nil {
		return nil, nil, err
	}
	l.set(&s, v)
	return l, v, nil
}
