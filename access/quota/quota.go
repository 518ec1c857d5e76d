// Package quota limits how much of a server each subject uses: how many sessions it owns,
// and how many streams, events, bytes and runs it has at once or in a second.
//
// It counts. Package guard says what there is to count, and for whom.
package quota

import (
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
)

// A Key names an account. A subject has one for each role in which it comes, because the
// limits of a role are its own.
type Key struct {
	Subject string
	Role    access.Role
}

// A Book has the accounts. The zero value is not usable; see [New]. Its methods may be
// called by several goroutines.
type Book struct {
	limits func(Key) Limits

	mu       sync.Mutex
	accounts map[Key]*account
}

// New returns a book. limits returns the limits of an account as of now; it must be quick.
func New(limits func(Key) Limits) *Book { return &Book{limits: limits, accounts: map[Key]*account{}} }

// Limits returns the limits of an account.
func (b *Book) Limits(k Key) Limits { return b.limits(k) }

// An account has what a subject uses.
type account struct {
	streams  int // open
	creating int // creations of sessions that have not returned
	events   bucket
	bytes    bucket
}

// isIdle reports whether an account is as a new one.
func (a *account) isIdle(now time.Time, l Limits) bool {
	return a.streams == 0 && a.creating == 0 && a.events.isFull(now, l.Events) && a.bytes.isFull(now, l.Bytes)
}

// maxAccounts is how many accounts are kept before those that are idle are dropped.
const maxAccounts = 10_000

// account returns an account. The caller has the lock.
func (b *Book) account(k Key) *account {
	a := b.accounts[k]
	if a == nil {
		b.makeSpace()
		a = &account{}
		b.accounts[k] = a
	}
	return a
}

// makeSpace drops the accounts that are idle; if that is not enough, those that have nothing
// open, whose subjects may then send as much again. The caller has the lock.
func (b *Book) makeSpace() {
	if len(b.accounts) < maxAccounts {
		return
	}
	now := time.Now()
	for k, a := range b.accounts {
		if a.isIdle(now, b.limits(k)) {
			delete(b.accounts, k)
		}
	}
	for k, a := range b.accounts {
		if len(b.accounts) < maxAccounts/4*3 { // so that the next account need not look again
			return
		}
		if a.streams == 0 && a.creating == 0 {
			delete(b.accounts, k)
		}
	}
}

// Accounts returns how many accounts are kept.
func (b *Book) Accounts() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.accounts)
}

// Streams returns how many streams an account has open.
func (b *Book) Streams(k Key) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.accounts[k]; a != nil {
		return a.streams
	}
	return 0
}

// Open counts a stream until close is called, once. Too many are [tapedeck.Limited].
func (b *Book) Open(k Key) (closed func(), err error) {
	limit := b.limits(k).Streams
	if limit == 0 {
		return func() {}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.account(k)
	if a.streams >= limit {
		return nil, tapedeck.Errorf(tapedeck.Limited, "%s has %d open streams, and no more are allowed", k.Subject, a.streams).WithHint("close one of them")
	}
	a.streams++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		a.streams--
	}, nil
}

// Creating counts a session that is being created until the result is called, and returns
// how many there are, with this one.
func (b *Book) Creating(k Key) (count int, done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.account(k)
	a.creating++
	return a.creating, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		a.creating--
	}
}

// Take takes events and bytes from what an account may send in a second. Too many are
// [tapedeck.Limited] with the time after which there is some again. A request that is larger
// than what is left is allowed, and the next one waits longer: otherwise a large one would
// never be.
func (b *Book) Take(k Key, events int, bytes int64) error {
	l := b.limits(k)
	if l.Events == 0 && l.Bytes == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a, now := b.account(k), time.Now()
	if wait := a.events.wait(now, l.Events); wait > 0 {
		return tooFast(wait, "%s sends more than %d events a second", k.Subject, l.Events)
	}
	if wait := a.bytes.wait(now, l.Bytes); wait > 0 {
		return tooFast(wait, "%s sends more than %d bytes a second", k.Subject, l.Bytes)
	}
	a.events.take(int64(events))
	a.bytes.take(bytes)
	return nil
}

// Charge takes events and bytes of which the size was not known before. They are sent
// already, so what comes next waits.
func (b *Book) Charge(k Key, events int, bytes int64) {
	l := b.limits(k)
	if l.Events == 0 && l.Bytes == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a, now := b.account(k), time.Now()
	a.events.refill(now, l.Events)
	a.bytes.refill(now, l.Bytes)
	a.events.take(int64(events))
	a.bytes.take(bytes)
}

// tooFast returns the error of a subject that may send something again after a time.
func tooFast(wait time.Duration, format string, args ...any) error {
	err := tapedeck.Errorf(tapedeck.Limited, format, args...).WithHint("try again in %s", max(wait.Round(time.Second), time.Second))
	err.After = wait
	return err
}
