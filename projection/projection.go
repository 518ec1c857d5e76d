// Package projection does the I/O of views. It reads logs and folds them by the
// rules of package view. It keeps the folds of the sessions that were used last in
// memory, and saves checkpoints in the store. So the cost of a view does not depend
// on the length of its session.
//
// All of this is a cache: what is lost is made again from the log.
package projection

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/lru"
	"github.com/tapedeck/tapedeck/view"
)

// Defaults of [Options].
const (
	DefaultEvery = 10_000
	DefaultKept  = 64
)

// A Store is the part of a [tapedeck.Store] that projections use: they read logs,
// and write checkpoints.
type Store interface {
	Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error)
	Head(ctx context.Context, session string) (tapedeck.Session, error)
	Create(ctx context.Context, s tapedeck.Spec) (tapedeck.Created, error)
	Delete(ctx context.Context, session string) error
	List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error)
}

// Options of projections. Store is required.
type Options struct {
	Store  Store
	Logger *slog.Logger // logs checkpoints that cannot be saved; nil logs nothing
	Every  int64        // events between checkpoints; 0 for [DefaultEvery]
	Kept   int          // sessions whose folds are kept in memory; 0 for [DefaultKept]
	Totals TotalsStore  // keeps the totals of sessions; nil for none
}

// Projections return views of sessions. Their methods may be called by several
// goroutines. A negative offset means the head. An offset beyond the head is
// [tapedeck.Invalid].
type Projections struct {
	options Options
	store   Store

	mu    sync.Mutex
	kept  lru.Map[string, *folded] // by session
	inUse map[*folded]bool         // has users, though kept may have dropped it

	life      string       // differs in each process
	forgotten atomic.Int64 // calls of Forget
	watch     watch
	totalling chan struct{} // has an element while totals are made and saved
}

// New returns projections.
func New(o Options) *Projections {
	if o.Every <= 0 {
		o.Every = DefaultEvery
	}
	if o.Kept <= 0 {
		o.Kept = DefaultKept
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Projections{options: o, store: o.Store, inUse: map[*folded]bool{}, watch: newWatch(), totalling: make(chan struct{}, 1), life: rand.Text()[:8]}
}

// folded has the folds of one session.
type folded struct {
	gen   int64 // of the session: a recreated session has another one
	users int   // goroutines that hold the lock or wait for it; guarded by Projections.mu

	lock     chan struct{} // has an element while it is held; guards the fields below
	folds    folds         // each up to some offset, or nil
	timeline *view.Timeline
	lastJump int64 // the newest jump in the timeline
}

// acquire returns the locked entry of a session; call release. It is a channel
// and not a mutex, so that a caller stops waiting when ctx ends. One lock covers
// all work on a session, including the saving of its checkpoints.
func (p *Projections) acquire(ctx context.Context, s *tapedeck.Session) (*folded, error) {
	f := p.addUser(s)
	select {
	case f.lock <- struct{}{}:
		return f, nil
	case <-ctx.Done():
		p.removeUser(f)
		return nil, ctx.Err()
	}
}

// addUser returns the entry of a session and counts the caller as a user. An entry
// with users stays in memory.
func (p *Projections) addUser(s *tapedeck.Session) *folded {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.kept.Get(s.ID)
	if !ok || f.gen != s.Gen {
		f = &folded{gen: s.Gen, lock: make(chan struct{}, 1)}
		p.kept.Put(s.ID, f)
	}
	f.users++
	p.inUse[f] = true
	p.kept.Trim(p.options.Kept, func(f *folded) bool { return f.users > 0 })
	return f
}

// release unlocks an entry that acquire returned.
func (p *Projections) release(f *folded) {
	<-f.lock
	p.removeUser(f)
}

func (p *Projections) removeUser(f *folded) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.users--; f.users == 0 {
		delete(p.inUse, f)
	}
}

// waitForFolds waits for all active folds and drops their results from memory. A
// fold that begins later reads the log as it is now. Waiting ends with ctx.
func (p *Projections) waitForFolds(ctx context.Context) error {
	p.mu.Lock()
	busy := slices.Collect(maps.Keys(p.inUse))
	p.mu.Unlock()
	for _, f := range busy {
		select {
		case f.lock <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		f.folds = folds{}
		<-f.lock
	}
	return nil
}

// unload drops the folds of sessions from memory.
func (p *Projections) unload(sessions []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range sessions {
		p.kept.Delete(id)
	}
}

// Epoch names the period in which a view at one offset does not change. Every
// erasure and every start of the program begins a new one.
func (p *Projections) Epoch() string { return p.life + "." + strconv.FormatInt(p.forgotten.Load(), 36) }

// session returns the entry of a session, and at as an offset of it.
func (p *Projections) session(ctx context.Context, id string, at int64) (tapedeck.Session, int64, error) {
	s, err := p.store.Head(ctx, id)
	switch {
	case err != nil:
		return s, 0, err
	case s.Kind != tapedeck.KindSession:
		return s, 0, tapedeck.Errorf(tapedeck.NotFound, "there is no session %q", id)
	case at > s.Head:
		return s, 0, tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d, you asked for %d", id, s.Head, at)
	case at < 0:
		at = s.Head
	}
	return s, at, nil
}

// same returns a [tapedeck.Conflict] if a session was recreated: pages that were
// read one after the other may be from two sessions.
func (p *Projections) same(ctx context.Context, s *tapedeck.Session) error {
	now, err := p.store.Head(ctx, s.ID)
	if err == nil && now.Gen != s.Gen {
		err = tapedeck.Errorf(tapedeck.Conflict, "session %s was deleted and recreated in the meantime", s.ID).WithHint("ask again")
	}
	return err
}
