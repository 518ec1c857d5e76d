// Package projection keeps the views of sessions folded: it reads logs, folds
// them by the rules of package view, keeps in memory what was asked for last,
// and puts checkpoints away, so that a view costs the same however long its
// session is.
//
// Nothing it keeps is a source of truth. All of it can be lost, and is made
// again from the log.
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
	Create(ctx context.Context, s tapedeck.Spec) (tapedeck.Session, bool, error)
	Delete(ctx context.Context, session string) error
	List(ctx context.Context, f tapedeck.Filter) ([]tapedeck.Session, string, error)
}

// Options say what is projected. Store is required.
type Options struct {
	Store  Store
	Logger *slog.Logger // for checkpoints that could not be kept; nil for none
	Every  int64        // events between checkpoints; 0 for [DefaultEvery]
	Kept   int          // sessions that are kept folded in memory; 0 for [DefaultKept]
}

// Projections answer what sessions look like. Their methods may be called by
// several goroutines. An offset that is negative means the head; one beyond the
// head is [tapedeck.Invalid].
type Projections struct {
	options Options
	store   Store

	mu    sync.Mutex
	kept  lru.Map[string, *folded] // by session
	inUse map[*folded]bool         // those with users, dropped ones included

	life      string
	forgotten atomic.Int64 // how often a session was
	watch     watch
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
	return &Projections{options: o, store: o.Store, inUse: map[*folded]bool{}, watch: newWatch(), life: rand.Text()[:8]}
}

// folded is what is kept in memory of a session.
type folded struct {
	gen   int64 // of the session: a recreated one has another
	users int   // how many have it or wait for it; guarded by Projections.mu

	lock     chan struct{} // has an element while somebody has it
	folds    folds         // each as of some offset, or nil
	timeline *view.Timeline
	lastJump int64 // with which the timeline was made
}

// of returns what is kept of a session, locked, until it is released. Nobody
// else has it, and it is not dropped meanwhile: whoever has waited for it has
// waited for everything that is being done with the session. Waiting ends with
// ctx.
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

// enlist returns what is kept of a session, with one more user.
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

// release is the end of what of began.
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

// settle waits for all folds that are under way, and drops what they leave in
// memory. One that begins later reads the log as it is now. Waiting ends with
// ctx.
func (p *Projections) settle(ctx context.Context) error {
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

// unload drops what is in memory of sessions.
func (p *Projections) unload(sessions []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range sessions {
		p.kept.Delete(id)
	}
}

// Epoch names what a view at an offset is the same in. It is another one after
// something was erased, and in another life of the program.
func (p *Projections) Epoch() string { return p.life + "." + strconv.FormatInt(p.forgotten.Load(), 36) }

// session returns a session and the offset that is meant by at.
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

// same reports an error if a session is not the one it was: what was read of it
// in several pages may then be of two.
func (p *Projections) same(ctx context.Context, s *tapedeck.Session) error {
	now, err := p.store.Head(ctx, s.ID)
	if err == nil && now.Gen != s.Gen {
		err = tapedeck.Errorf(tapedeck.Conflict, "session %s was deleted and made anew in the meantime", s.ID).WithHint("ask again")
	}
	return err
}
