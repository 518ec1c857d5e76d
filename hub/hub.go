// Package hub lets readers follow a session that is still being written.
//
// A hub carries no events. It rings a bell when a session has changed, and each
// follower reads on from where it stopped. So a slow follower is merely late,
// nothing is dropped, a writer never waits for a reader, and history, live,
// reconnect and restart are the same code.
package hub

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A Hub is a [tapedeck.Store] whose sessions can be followed. Whatever is to be
// noticed by followers at once is written through the hub.
//
// The hub wakes followers on the goroutine that appended, after the store has
// returned. It does not do so as an observer of the store, because the writer
// waits for observers: if it woke 1,000 followers itself, all other appends would
// wait for that.
type Hub struct {
	tapedeck.Store

	mu    sync.Mutex
	bells map[string]*bell
}

// A bell is shared by the followers of one session.
type bell struct {
	rung      chan struct{} // closed and replaced when the session changes
	followers int
}

// New returns a hub over store.
func New(store tapedeck.Store) *Hub {
	return &Hub{Store: store, bells: make(map[string]*bell)}
}

// Append appends and rings.
func (h *Hub) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	done, err := h.Store.Append(ctx, a)
	h.Ring(a.Session) // after an error too: the events may be there, and a false ring costs one read
	return done, err
}

// Erase erases and rings. Followers get the receipt; what they have read before
// they keep.
func (h *Hub) Erase(ctx context.Context, e tapedeck.Erasure) (tapedeck.Appended, []string, error) {
	done, forks, err := h.Store.Erase(ctx, e)
	h.Ring(e.Session)
	return done, forks, err
}

// Create creates and rings: followers of a session that was deleted and is
// made anew under its id must notice.
func (h *Hub) Create(ctx context.Context, s tapedeck.Spec) (tapedeck.Session, bool, error) {
	session, made, err := h.Store.Create(ctx, s)
	h.Ring(s.ID)
	return session, made, err
}

// Delete deletes and rings, so that followers see the end.
func (h *Hub) Delete(ctx context.Context, session string) error {
	err := h.Store.Delete(ctx, session)
	h.Ring(session)
	return err
}

// Ring wakes the followers of a session. A store that learns of other writers
// calls it. A ring too many costs each follower one read.
func (h *Hub) Ring(session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b, ok := h.bells[session]; ok {
		close(b.rung)
		b.rung = make(chan struct{})
	}
}

// Followers returns the number of followers at this moment.
func (h *Hub) Followers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, b := range h.bells {
		n += b.followers
	}
	return n
}

// enter adds a follower to the session's bell; leave takes it away, and the
// bell with the last one.
func (h *Hub) enter(session string) *bell {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.bells[session]
	if !ok {
		b = &bell{rung: make(chan struct{})}
		h.bells[session] = b
	}
	b.followers++
	return b
}

func (h *Hub) leave(session string, b *bell) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.followers--; b.followers == 0 {
		delete(h.bells, session)
	}
}

func (h *Hub) handle(b *bell) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return b.rung
}

// Follow yields the records of a session from an offset on: pages of what is
// there, then, each time it has caught up and something new is durable, pages
// of that. The first page that ends at the head is yielded even if it is empty;
// [tapedeck.Page.CaughtUp] tells which that is.
//
// It ends when the session is closed and all of it was yielded, when the loop
// is left, or with an error: that of ctx, or of reading ([tapedeck.NotFound] or
// [tapedeck.Gone] when the session was deleted).
func (h *Hub) Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error] {
	return func(yield func(tapedeck.Page, error) bool) {
		f := follower{hub: h, session: session, cursor: o.From, options: o}
		if err := f.start(ctx); err != nil {
			yield(tapedeck.Page{}, err)
			return
		}
		b := h.enter(session)
		defer h.leave(session, b)
		f.run(ctx, b, yield)
	}
}

type follower struct {
	hub     *Hub
	session string
	gen     int64 // incarnation: after delete and re-create a cursor means nothing
	cursor  int64
	caught  bool // a page that reaches the head has been yielded
	options tapedeck.FollowOptions
	idle    *time.Timer // nil while it has not waited, or waits for ever
}

// start finds out which incarnation it follows. It is not inlined: the copies of
// a session that it needs would lie on the stack of every follower for as long
// as that waits, and double it.
//
//go:noinline
func (f *follower) start(ctx context.Context) error {
	s, err := f.hub.Head(ctx, f.session)
	f.gen = s.Gen
	return err
}

func (f *follower) run(ctx context.Context, b *bell, yield func(tapedeck.Page, error) bool) {
	defer f.stop()
	for {
		rung := f.hub.handle(b) // before reading: an append meanwhile rings this very bell
		p, err := f.read(ctx)
		if err != nil {
			yield(p, err)
			return
		}
		f.cursor = p.Next
		// What is written to a slow reader must not be held here, too.
		bare := tapedeck.Page{Next: p.Next, Head: p.Head, Closed: p.Closed}
		if len(p.Records) > 0 || !f.caught && p.CaughtUp() || p.Closed && p.CaughtUp() {
			f.caught = f.caught || p.CaughtUp()
			if !yield(p, nil) {
				return
			}
		}
		switch {
		case !bare.CaughtUp(): // read on
		case bare.Closed:
			return
		default:
			if !f.wait(ctx, rung, bare, yield) {
				return
			}
		}
	}
}

func (f *follower) stop() {
	if f.idle != nil {
		f.idle.Stop()
	}
}

// wait waits for the bell; p is the page before, without its records. It reports false if the follower is to stop.
func (f *follower) wait(ctx context.Context, rung <-chan struct{}, p tapedeck.Page, yield func(tapedeck.Page, error) bool) bool {
	var idle <-chan time.Time // nil waits for ever
	switch {
	case f.options.Idle <= 0:
	case f.idle == nil:
		f.idle = time.NewTimer(f.options.Idle)
		idle = f.idle.C
	default:
		f.idle.Reset(f.options.Idle)
		idle = f.idle.C
	}
	select {
	case <-rung:
		return true
	case <-idle:
		return yield(p, nil)
	case <-f.options.Wake:
		return yield(p, nil)
	case <-ctx.Done():
		yield(tapedeck.Page{}, ctx.Err())
		return false
	}
}

// read reads on, and makes sure that what it read is of the session that it
// began with. If the page does not say, the incarnation is looked at after the
// records: many readers that wait for that would all hold theirs.
func (f *follower) read(ctx context.Context) (tapedeck.Page, error) {
	p, err := f.hub.Read(ctx, f.session, tapedeck.Range{From: f.cursor, Limit: f.options.Limit, MaxBytes: f.options.MaxBytes})
	gen := p.Gen
	if err != nil || gen == 0 {
		s, headErr := f.hub.Head(ctx, f.session)
		if headErr != nil {
			return tapedeck.Page{}, headErr
		}
		gen = s.Gen
	}
	if gen != f.gen {
		return tapedeck.Page{}, tapedeck.Errorf(tapedeck.NotFound, "session %s was deleted and made anew", f.session).
			WithHint("read it from offset 0")
	}
	return p, err
}
