// Package indexer keeps the full-text index up to date: complete messages, thinking,
// tool calls with their results, and titles. It reads the log in the background. So
// an event can be found soon after it was appended, and appends do not wait for the
// index.
//
// Events that a fork inherited are found only in the session that they belong to.
package indexer

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/view"
)

// index stores the documents. It belongs to a store.
type index interface {
	// Unindexed returns sessions with events that are not indexed, at most limit
	// of them, and the number of all.
	Unindexed(ctx context.Context, limit int) ([]search.Pending, int, error)

	// Index adds documents. They replace those that began at From or later.
	Index(ctx context.Context, in search.Batch) error

	// Search finds documents of sessions that can be read. It does not set
	// Behind and Rewound.
	Search(ctx context.Context, q search.Query) (search.Result, error)

	// Forget removes the documents of a session and of all deleted sessions.
	// Copies may stay in files until Clean.
	Forget(ctx context.Context, session string) error

	// Clean removes those copies. It may take seconds.
	Clean(ctx context.Context) error
}

// log has the events.
type log interface {
	Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error)
}

// timelines know which events are active.
type timelines interface {
	Timeline(ctx context.Context, session string, at int64) (*view.Timeline, error)
}

// Options of an [Index]. Index and Log are required.
type Options struct {
	Index     index
	Log       log
	Timelines timelines     // nil: hits do not say whether they were reverted
	Delay     time.Duration // the time to wait for more changes before indexing; 0 for 500 ms
	Patience  time.Duration // the time that a search waits for the indexing of newer events; 0 for 300 ms
	Logger    *slog.Logger  // nil for none
}

// An Index can be searched. Its methods may be called by several goroutines.
type Index struct {
	Options
	changed chan struct{}
	behind  atomic.Int64 // see Behind

	// lock has an element while a goroutine creates documents from a part of a
	// session, or removes documents. It guards the fields below.
	lock    chan struct{}
	forgot  int                // number of calls of forget
	pending map[int64]*pending // the sessions that wait for indexing, by Gen
}

// New returns an index. Run keeps it up to date.
func New(o Options) *Index {
	if o.Delay <= 0 {
		o.Delay = 500 * time.Millisecond
	}
	if o.Patience <= 0 {
		o.Patience = 300 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Index{Options: o, changed: make(chan struct{}, 1), lock: make(chan struct{}, 1), pending: map[int64]*pending{}}
}

// acquire waits for the lock until ctx is done; call release afterwards. Removing
// documents can take seconds, and a search must not wait for that.
func (x *Index) acquire(ctx context.Context) error {
	select {
	case x.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *Index) release() { <-x.lock }

// Observer returns an observer of the store. It wakes Run after commits, and removes the
// documents of a session with an erasure. It ignores the forks, because inherited
// events are indexed only in the session that they belong to.
func (x *Index) Observer() tapedeck.Observer {
	return tapedeck.Observer{
		Committed: func([]tapedeck.Commit) { x.Changed() },
		Erased:    func(ctx context.Context, session string, _ []string) error { return x.Forget(ctx, session) },
	}
}

// Behind returns how many sessions had events that were not indexed when the index was
// last looked at. That happens soon after each change.
func (x *Index) Behind() int { return int(x.behind.Load()) }

// Changed says that a session has changed. It never waits, so that it can be called
// after every commit.
func (x *Index) Changed() {
	select {
	case x.changed <- struct{}{}:
	default:
	}
}

// Run indexes all events that are not indexed, at once and then after changes, until
// ctx is done.
func (x *Index) Run(ctx context.Context) {
	for {
		if err := x.CatchUp(ctx); err != nil && ctx.Err() == nil {
			x.Logger.Warn("the search index could not be brought up to date; it is tried again after the next change", "error", err)
		}
		select {
		case <-x.changed:
		case <-ctx.Done():
			return
		}
		gather := time.NewTimer(x.Delay)
		select {
		case <-gather.C:
		case <-ctx.Done():
			gather.Stop()
			return
		}
		select { // the changes of the meantime are indexed now
		case <-x.changed:
		default:
		}
	}
}

// batch is how many sessions are read from the index at once.
const batch = 64

// CatchUp indexes all events that are not indexed.
func (x *Index) CatchUp(ctx context.Context) error {
	for {
		if err := x.acquire(ctx); err != nil {
			return err
		}
		epoch := x.forgot
		sessions, behind, err := x.Index.Unindexed(ctx, batch)
		x.release()
		if err == nil {
			x.behind.Store(int64(behind))
		}
		if err != nil || len(sessions) == 0 {
			return err
		}
		for _, s := range sessions {
			if ok, err := x.step(ctx, s, epoch); err != nil {
				return err
			} else if !ok {
				break
			}
		}
	}
}

// stepEvents is about how many events a step reads. A step reads on until all its
// documents are complete, but at most ten times as many events; then it cuts the
// documents.
const stepEvents = 5000

// maxPending is how many incomplete folds are kept in memory. Those of other sessions
// are read again.
const maxPending = 1024

// A pending fold has documents that are not complete. It has read the events below
// next.
type pending struct {
	fold
	next int64
}

// step indexes a part of a session. It reports false if documents were removed since
// epoch, so that s may be outdated.
func (x *Index) step(ctx context.Context, s search.Pending, epoch int) (bool, error) {
	if err := x.acquire(ctx); err != nil {
		return false, err
	}
	defer x.release()
	if x.forgot != epoch {
		return false, nil
	}
	f := x.pending[s.Gen]
	delete(x.pending, s.Gen)
	if f == nil || f.next < s.From || f.next > s.Head {
		f = &pending{next: s.From}
	}
	from, n := f.next, 0
	for f.next < s.Head && (n < stepEvents || len(f.open) > 0 && n < 10*stepEvents) {
		p, err := x.Log.Read(ctx, s.Session, tapedeck.Range{From: f.next})
		if err != nil {
			return x.skip(ctx, s, err)
		}
		for _, r := range p.Records {
			if e, err := r.Event(); err == nil { // a record that is no event has nothing to find
				f.add(&e)
			}
		}
		f.next, n = p.Next, n+len(p.Records)
	}
	base := cmp.Or(s.Base, s.Head)
	if f.receipt > 0 && f.receipt >= base { // events were erased after they had been indexed, and the process may have ended before it could remove them
		return false, errors.Join(x.forget(ctx, s.Session), x.Index.Clean(ctx))
	}
	if f.next-f.first(f.next) >= 10*stepEvents {
		f.endAll()
	}
	err := x.Index.Index(ctx, search.Batch{
		Session: s.Session, Gen: s.Gen, From: from, Base: base, Resume: f.first(f.next), Seen: f.next, Documents: f.documents(),
	})
	if err == nil && len(f.open) > 0 && len(x.pending) < maxPending {
		f.docs = nil
		x.pending[s.Gen] = f
	}
	return true, err
}

// skip marks a session as indexed because it cannot be read: it was deleted or is
// damaged. Without the mark it would block the others.
func (x *Index) skip(ctx context.Context, s search.Pending, err error) (bool, error) {
	switch tapedeck.KindOf(err) {
	case tapedeck.NotFound, tapedeck.Gone, tapedeck.Invalid:
	case tapedeck.Internal:
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		x.Logger.Warn("a session cannot be read for the search index", "session", s.Session, "error", err)
	default:
		return false, err
	}
	return true, x.Index.Index(ctx, search.Batch{Session: s.Session, Gen: s.Gen, From: s.From, Base: cmp.Or(s.Base, s.Head), Resume: s.Head, Seen: s.Head})
}

// Search finds documents. It first indexes new events, for at most Options.Patience;
// [search.Result.Behind] is the number of sessions that are not indexed completely.
func (x *Index) Search(ctx context.Context, q search.Query) (search.Result, error) {
	if err := valid(&q); err != nil {
		return search.Result{}, err
	}
	soon, cancel := context.WithTimeout(ctx, x.Patience)
	err := x.CatchUp(soon)
	cancel()
	if err != nil && soon.Err() == nil {
		x.Logger.Warn("the search index could not be brought up to date", "error", err)
	}
	found, err := x.Index.Search(ctx, q)
	if err != nil {
		return search.Result{}, err
	}
	if _, found.Behind, err = x.Index.Unindexed(ctx, 0); err != nil {
		return search.Result{}, err
	}
	return found, x.mark(ctx, found.Hits)
}

func valid(q *search.Query) error {
	switch q.Kind {
	case "", search.DocMessage, search.DocTool, search.DocTitle:
	default:
		return tapedeck.Errorf(tapedeck.Invalid, "there is no kind %q to search for", q.Kind).WithHint("there are message, tool and title")
	}
	if q.Limit <= 0 {
		q.Limit = 20
	}
	q.Limit = min(q.Limit, 100)
	_, err := search.Parse(q.Text)
	return err
}

// mark sets Rewound of the hits that were reverted.
func (x *Index) mark(ctx context.Context, hits []search.Hit) error {
	if x.Timelines == nil {
		return nil
	}
	known := map[string]*view.Timeline{}
	for i := range hits {
		h := &hits[i]
		if h.Kind == search.DocTitle {
			continue // events of the session itself are always active
		}
		t, ok := known[h.Session]
		if !ok {
			var err error
			if t, err = x.Timelines.Timeline(ctx, h.Session, -1); err != nil && tapedeck.KindOf(err) != tapedeck.NotFound {
				return err
			}
			known[h.Session] = t
		}
		h.Rewound = t != nil && !t.Has(h.Offset, h.Thread, math.MaxInt64)
	}
	return nil
}

// Forget removes the documents of a session whose events were erased, also those that
// are not complete. The session is indexed again.
func (x *Index) Forget(ctx context.Context, session string) error {
	defer x.Changed()
	if err := x.acquire(ctx); err != nil {
		return err
	}
	err := x.forget(ctx, session)
	x.release()
	if err != nil {
		return err
	}
	return x.Index.Clean(ctx) // without the lock, so that other calls of Forget share one cleaning
}

// forget requires the lock.
func (x *Index) forget(ctx context.Context, session string) error {
	x.forgot++
	clear(x.pending)
	return x.Index.Forget(ctx, session)
}
