// Package hub lets readers follow a session that is still being written.
//
// A hub carries no events. It wakes the followers of a session that has changed, and
// each follower continues to read where it stopped. So a slow follower is only late,
// no event is dropped, a writer never waits for a reader, and history, live,
// reconnect and restart are the same code.
package hub

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A Hub is a [tapedeck.Store] whose sessions can be followed. Write through the hub:
// it wakes followers only for its own writes.
//
// The hub wakes followers on the goroutine that appended, after the store has
// returned. It does not do so as an observer of the store, because the writer
// waits for observers: if it woke 1,000 followers itself, all other appends would
// wait for that.
type Hub struct {
	tapedeck.Store

	mu      sync.Mutex
	signals map[string]*signal // by session, while it has followers
	behind  int                // the followers for which Drain must wait
	reached chan struct{}      // closed by the last of them; nil unless Drain waits

	draining atomic.Bool  // Drain was called
	waiting  atomic.Int64 // the followers that have yielded everything and wait for more
}

// A signal is shared by the followers of one session.
type signal struct {
	changed   chan struct{} // closed and replaced when the session changes
	followers int
}

// wake wakes the followers. The caller holds the lock of the hub.
func (s *signal) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// New returns a hub over store.
func New(store tapedeck.Store) *Hub {
	return &Hub{Store: store, signals: make(map[string]*signal)}
}

// Append appends and wakes the followers.
func (h *Hub) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	done, err := h.Store.Append(ctx, a)
	h.Wake(a.Session) // after an error too: the events may be there, and a needless wake costs one read
	return done, err
}

// Erase erases and wakes the followers, which read the receipt.
func (h *Hub) Erase(ctx context.Context, e tapedeck.Erasure) (tapedeck.Erased, error) {
	done, err := h.Store.Erase(ctx, e)
	h.Wake(e.Session)
	return done, err
}

// Create creates a session and wakes its followers: those of a session that was
// deleted and recreated under its id must notice that.
func (h *Hub) Create(ctx context.Context, s tapedeck.Spec) (tapedeck.Created, error) {
	done, err := h.Store.Create(ctx, s)
	h.Wake(s.ID)
	return done, err
}

// Delete deletes a session and wakes its followers, so that they end.
func (h *Hub) Delete(ctx context.Context, session string) error {
	err := h.Store.Delete(ctx, session)
	h.Wake(session)
	return err
}

// Wake wakes the followers of a session. Call it when the session was written to, but
// not through the hub. A needless call costs each follower one read.
func (h *Hub) Wake(session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.signals[session]; ok {
		s.wake()
	}
}

// Followers returns the number of followers of all sessions.
func (h *Hub) Followers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, s := range h.signals {
		n += s.followers
	}
	return n
}

// Behind returns the number of followers that have not yielded everything that their
// session has: they read, or their clients take a page slowly.
func (h *Hub) Behind() int {
	waiting := int(h.waiting.Load()) // first: a follower that starts now counts as behind
	return max(0, h.Followers()-waiting)
}

// subscribe returns the signal of a session, with one more follower.
func (h *Hub) subscribe(session string) *signal {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.signals[session]
	if !ok {
		s = &signal{changed: make(chan struct{})}
		h.signals[session] = s
	}
	s.followers++
	h.behind++
	return s
}

// unsubscribe removes a follower of a session, and the signal with the last one.
func (h *Hub) unsubscribe(session string, s *signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.followers--; s.followers == 0 {
		delete(h.signals, session)
	}
}

// Drain waits until each follower has yielded all records that its session had when Drain
// was called, or until ctx is done; then it returns the error of ctx. A program calls it
// between the last append and the end of the followers' contexts. Drain ends no follower:
// a follower that has yielded all records waits for more.
func (h *Hub) Drain(ctx context.Context) error {
	h.draining.Store(true)
	h.mu.Lock()
	reached := h.reached
	if h.behind > 0 && reached == nil {
		reached = make(chan struct{})
		h.reached = reached
	}
	for _, s := range h.signals { // a follower that waits reads again, and sees that Drain was called
		s.wake()
	}
	h.mu.Unlock()
	if reached == nil {
		return nil
	}
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reach says that Drain need not wait for one of the followers any more.
func (h *Hub) reach() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.behind--; h.behind == 0 && h.reached != nil {
		close(h.reached)
		h.reached = nil
	}
}

// changed returns the channel that is closed at the next change.
func (h *Hub) changed(s *signal) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return s.changed
}

// Follow yields the records of a session from an offset on: first pages of the
// records that exist, then pages of new records as soon as they are durable. It
// yields the first page that ends at the head even if that is empty;
// [tapedeck.Page.CaughtUp] recognizes this page.
//
// It ends when it has yielded all records of a closed session, when the caller leaves
// the loop, or with an error: that of ctx, or of a read ([tapedeck.NotFound] or
// [tapedeck.Gone] when the session was deleted).
func (h *Hub) Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error] {
	return func(yield func(tapedeck.Page, error) bool) {
		if f := h.start(ctx, session, &o, yield); f != nil {
			f.run(ctx, yield)
		}
	}
}

// start returns a follower, nil if it ended with an error.
//
//go:noinline
func (h *Hub) start(ctx context.Context, session string, o *tapedeck.FollowOptions, yield func(tapedeck.Page, error) bool) *follower {
	f := &follower{hub: h, session: session, last: tapedeck.Page{Next: o.From}, options: *o}
	if err := f.start(ctx); err != nil {
		f.fail(err, yield)
		return nil
	}
	return f
}

// A follower waits most of the time, and the stack of its goroutine is most of what it
// costs. A waiting goroutine has a stack of 8 KiB if its frames (those of net/http
// included) take less than 3,200 bytes, otherwise a stack of 16 KiB. So what it needs
// while it waits is in this struct, and what it needs to read a page is in functions that
// have returned by then.
type follower struct {
	hub     *Hub
	session string
	gen     int64 // of the session; in a recreated session the cursor has no meaning
	options tapedeck.FollowOptions
	caught  bool          // it has yielded a page that ends at the head
	last    tapedeck.Page // without its records; Next is the cursor
	idle    *time.Timer   // nil before the first wait, and without a limit
	reached bool          // Drain need not wait for this follower
}

// start sets gen.
//
//go:noinline
func (f *follower) start(ctx context.Context) error {
	s, err := f.hub.Head(ctx, f.session)
	f.gen = s.Gen
	if err == nil && f.options.Gen != 0 && f.options.Gen != s.Gen {
		return tapedeck.Errorf(tapedeck.Replaced, "session %s was deleted and recreated, or restored from a backup", f.session).
			WithHint("read it from offset 0")
	}
	return err
}

func (f *follower) run(ctx context.Context, yield func(tapedeck.Page, error) bool) {
	s := f.hub.subscribe(f.session)
	defer f.stop(s)
	for {
		changed := f.hub.changed(s) // before the read: an append after it closes this channel
		if !f.advance(ctx, yield) {
			return
		}
		if f.last.CaughtUp() && !f.wait(ctx, changed, yield) {
			return
		}
	}
}

// advance reads the next page and yields it, unless it is empty and says nothing new. It
// reports false if the follower must end.
//
//go:noinline
func (f *follower) advance(ctx context.Context, yield func(tapedeck.Page, error) bool) bool {
	p, err := f.read(ctx)
	if err != nil {
		f.fail(err, yield)
		return false
	}
	// A waiting follower must not hold the records that a slow client still gets.
	f.last = tapedeck.Page{Next: p.Next, Head: p.Head, Closed: p.Closed}
	if len(p.Records) > 0 || p.CaughtUp() && (p.Closed || !f.caught) {
		f.caught = f.caught || p.CaughtUp()
		if !yield(p, nil) {
			return false
		}
	}
	return !f.last.Closed || !f.last.CaughtUp()
}

func (f *follower) stop(s *signal) {
	f.hub.unsubscribe(f.session, s)
	f.reach()
	if f.idle != nil {
		f.idle.Stop()
	}
}

// wait waits until the session changes. It reports false if the follower must end.
func (f *follower) wait(ctx context.Context, changed <-chan struct{}, yield func(tapedeck.Page, error) bool) bool {
	idle := f.resetIdle()
	if f.hub.draining.Load() {
		select {
		case <-changed: // perhaps by an append before the call of Drain
			return true
		default:
			f.reach()
		}
	}
	f.hub.waiting.Add(1)
	select {
	case <-changed:
		f.hub.waiting.Add(-1)
		return true
	case <-idle:
	case <-f.options.Wake:
	case <-ctx.Done():
		f.hub.waiting.Add(-1)
		f.fail(ctx.Err(), yield)
		return false
	}
	f.hub.waiting.Add(-1)
	return yield(f.last, nil)
}

// reach says that Drain need not wait for this follower any more.
//
//go:noinline
func (f *follower) reach() {
	if !f.reached {
		f.reached = true
		f.hub.reach()
	}
}

// fail ends the follower with an error.
//
//go:noinline
func (f *follower) fail(err error, yield func(tapedeck.Page, error) bool) {
	yield(tapedeck.Page{}, err)
}

// resetIdle starts the time without a change. It returns nil for no limit.
//
//go:noinline
func (f *follower) resetIdle() <-chan time.Time {
	switch {
	case f.options.Idle <= 0:
		return nil
	case f.idle == nil:
		f.idle = time.NewTimer(f.options.Idle)
	default:
		f.idle.Reset(f.options.Idle)
	}
	return f.idle.C
}

// read reads the next page, and checks that it belongs to the session that the
// follower began with. It calls Head only if the read failed or the page has no gen.
// Otherwise many followers would hold their records in memory while they wait for Head.
func (f *follower) read(ctx context.Context) (tapedeck.Page, error) {
	p, err := f.hub.Read(ctx, f.session, tapedeck.Range{From: f.last.Next, Limit: f.options.Limit, MaxBytes: f.options.MaxBytes})
	gen := p.Gen
	if err != nil || gen == 0 {
		s, headErr := f.hub.Head(ctx, f.session)
		if headErr != nil {
			return tapedeck.Page{}, headErr
		}
		gen = s.Gen
	}
	if gen != f.gen {
		return tapedeck.Page{}, tapedeck.Errorf(tapedeck.NotFound, "session %s was deleted and recreated", f.session).
			WithHint("read it from offset 0")
	}
	return p, err
}
