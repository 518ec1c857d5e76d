package subscription

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/webhook"
)

// Options configure a dispatcher. Log and Store are required.
type Options struct {
	Log   Log   // the hub: it has the sessions that are watched, and the wake streams
	Store Store // keeps the subscriptions

	// Folder is the data folder, in which the keys are kept; "" keeps them in memory.
	Folder string

	// PublicURL is where receivers of webhooks reach the server, such as
	// https://deck.example. "" stands for the address that the request used which
	// created the subscription.
	PublicURL string

	// Allow are addresses that webhooks may have although they are not public, such as
	// 127.0.0.0/8. There a webhook may also use plain HTTP.
	Allow []netip.Prefix

	Transport http.RoundTripper // sends webhooks; nil for one that connects only to allowed addresses
	Now       func() time.Time  // nil for time.Now
	Logger    *slog.Logger      // nil for none
}

// A Log has the sessions and streams.
type Log interface {
	Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error)
	Head(ctx context.Context, session string) (tapedeck.Session, error)
	List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error)
}

// A Store keeps subscriptions durably. The suite in store/storetest is its contract.
type Store interface {
	// All returns the state of every subscription, by its id.
	All(ctx context.Context) (map[string][]byte, error)

	// Put stores the state of a subscription, and up to which offset it has
	// acknowledged sessions, by their Gen: both or neither. A nil state stays as it
	// is. Sessions that do not exist are left out.
	Put(ctx context.Context, id string, state []byte, acked map[int64]int64) error

	// Delete removes a subscription and everything that it has acknowledged.
	Delete(ctx context.Context, id string) error

	// Acked returns up to which offset a subscription has acknowledged a session, and
	// whether it has.
	Acked(ctx context.Context, id string, gen int64) (int64, bool, error)

	// Acks calls each for every session that a subscription has acknowledged. each
	// must not call the store.
	Acks(ctx context.Context, id string, each func(session string, gen, acked int64)) error
}

// A Dispatcher has the subscriptions and delivers their wakes. It is also the handler of
// their requests.
type Dispatcher struct {
	options Options
	keys    *keyring
	client  *webhook.Client

	active  atomic.Bool   // there may be subscriptions; false: commits are not looked at
	changed chan struct{} // has an element when Run should look at dirty

	dirtyMu sync.Mutex
	dirty   map[int64]*change // by Gen: what was committed and not looked at
	changes int64             // how many changes there were

	ready   chan struct{}   // closed when what is pending is known
	running context.Context // of the goroutines of the subscriptions; set before ready is closed
	group   sync.WaitGroup  // of them

	// writing is held while dirty is looked at, and while a subscription is created or
	// deleted: so a new subscription misses no commit.
	writing sync.Mutex

	mu   sync.RWMutex // guards the fields below
	subs map[string]*subscriber
	wake map[string]int // how many subscriptions have this wake stream, by path
}

// A change is what was committed to a session.
type change struct {
	number  int64 // it counts the changes
	session string
	path    string
	gen     int64
	first   int64 // offset of the first new record
	head    int64
	erased  bool
	gone    bool

	found map[*filter]bool // whether it has a trigger of a filter, as far as that is known
}

// has reports whether a change has a trigger of a filter. Subscriptions with the same
// filter share the answer.
func (c *change) has(ctx context.Context, log Log, f *filter) (bool, error) {
	if found, ok := c.found[f]; ok {
		return found, nil
	}
	found, _, err := f.find(ctx, log, c.session, c.gen, c.first, c.head, 1)
	if err != nil && !isGone(err) {
		return false, err
	}
	if c.found == nil {
		c.found = map[*filter]bool{}
	}
	c.found[f] = len(found) > 0
	return len(found) > 0, nil
}

// New returns a dispatcher. Register its [Dispatcher.Observer] with the store, then call
// [Dispatcher.Run].
func New(o Options) *Dispatcher {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Dispatcher{
		options: o, keys: keysIn(o.Folder, o.Now), client: webhook.New(o.Allow, o.Transport),
		changed: make(chan struct{}, 1), ready: make(chan struct{}),
		dirty: map[int64]*change{}, subs: map[string]*subscriber{}, wake: map[string]int{},
	}
	d.active.Store(true) // until Run knows better
	return d
}

// RotateKey makes a new key sign webhooks from now on. Receivers can check signatures of
// the old key for another day.
func (d *Dispatcher) RotateKey() error { return d.keys.rotate() }

// Observer returns the observer of the store.
func (d *Dispatcher) Observer() tapedeck.Observer { return tapedeck.Observer{Committed: d.committed} }

// committed notes which sessions have changed. The writer of the store waits for it.
func (d *Dispatcher) committed(commits []tapedeck.Commit) {
	if !d.active.Load() {
		return
	}
	d.dirtyMu.Lock()
	for i := range commits {
		d.noteCommit(&commits[i])
	}
	d.dirtyMu.Unlock()
	wakeUp(d.changed)
}

// noteCommit adds a commit to dirty. Requires d.dirtyMu.
func (d *Dispatcher) noteCommit(c *tapedeck.Commit) {
	s := &c.Session
	if s.Kind == tapedeck.KindView || len(c.Records) == 0 && !c.Gone {
		return
	}
	known := d.dirty[s.Gen]
	if known == nil {
		d.changes++
		known = &change{number: d.changes, session: s.ID, path: pathOf(s.ID, s.Kind), gen: s.Gen, first: s.Head - int64(len(c.Records))}
		d.dirty[s.Gen] = known
	}
	known.head, known.erased, known.gone = s.Head, known.erased || c.Erased, known.gone || c.Gone
}

// wakeUp sends a notification that is kept until its receiver has time.
func wakeUp(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// retryPause is the time between two attempts to use a store that fails.
const retryPause = time.Second

// Run delivers until ctx ends. It returns when all its goroutines have ended.
func (d *Dispatcher) Run(ctx context.Context) {
	defer d.finish()
	for err := d.start(ctx); err != nil; err = d.start(ctx) {
		if ctx.Err() != nil {
			return
		}
		d.options.Logger.Error("subscriptions cannot be read; trying again", "error", err)
		if !pause(ctx, retryPause) {
			return
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.changed:
		}
		if err := d.drain(ctx); err != nil && ctx.Err() == nil {
			d.options.Logger.Warn("new events could not be looked at for subscriptions; trying again", "error", err)
			wakeUp(d.changed)
			if !pause(ctx, retryPause) {
				return
			}
		}
		if !pause(ctx, rest) {
			return
		}
	}
}

// rest is the time between two looks at what was committed. Under load one look is for
// many commits. After a quiet time there is none to wait for.
const rest = 5 * time.Millisecond

// finish waits for the goroutines of the subscriptions, which end with the context of Run.
func (d *Dispatcher) finish() {
	d.writing.Lock()   // a subscription that is being created starts its goroutine before, or not at all
	d.writing.Unlock() //nolint:staticcheck // nothing is to be done with the lock
	d.group.Wait()
	d.client.Close()
}

// pause waits. It reports false if ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// await waits until what is pending is known.
func (d *Dispatcher) await(ctx context.Context) error {
	select {
	case <-d.ready:
		return d.running.Err()
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	select {
	case <-d.ready:
		return d.running.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drain looks at what was committed since the last call. After it everything that was
// acknowledged to a writer before the call is known to the subscriptions.
func (d *Dispatcher) drain(ctx context.Context) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	return d.drainLocked(ctx)
}

func (d *Dispatcher) drainLocked(ctx context.Context) error {
	d.dirtyMu.Lock()
	dirty := d.dirty
	d.dirty = make(map[int64]*change)
	d.dirtyMu.Unlock()
	subs := d.all()
	for gen, c := range dirty {
		if err := note(ctx, subs, c); err != nil {
			d.putBack(dirty)
			return err
		}
		delete(dirty, gen)
	}
	return nil
}

// putBack adds changes to dirty again.
func (d *Dispatcher) putBack(changes map[int64]*change) {
	d.dirtyMu.Lock()
	defer d.dirtyMu.Unlock()
	for gen, c := range changes {
		c.found = nil
		if later := d.dirty[gen]; later != nil {
			c.head, c.erased, c.gone = later.head, c.erased || later.erased, c.gone || later.gone
		}
		d.dirty[gen] = c
	}
}

// note passes a change to the subscriptions that watch its session.
func note(ctx context.Context, subs []*subscriber, c *change) error {
	for _, s := range subs {
		if c.gone {
			s.forget(c.gen)
			continue
		}
		if !s.watches(c.path) {
			continue
		}
		if err := s.note(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// all returns the subscriptions, in the order of their ids.
func (d *Dispatcher) all() []*subscriber {
	d.mu.RLock()
	defer d.mu.RUnlock()
	out := make([]*subscriber, 0, len(d.subs))
	for _, id := range slices.Sorted(maps.Keys(d.subs)) {
		out = append(out, d.subs[id])
	}
	return out
}

// find returns a subscription, when what is pending is known.
func (d *Dispatcher) find(ctx context.Context, id string) (*subscriber, error) {
	if err := d.await(ctx); err != nil {
		return nil, err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if s := d.subs[id]; s != nil {
		return s, nil
	}
	return nil, errNoSubscription(id)
}

// add makes a subscription known and starts its goroutine.
func (d *Dispatcher) add(s *subscriber) {
	d.mu.Lock()
	d.subs[s.id] = s
	if s.config.WakeStream != "" {
		d.wake[s.config.WakeStream]++
	}
	d.mu.Unlock()
}

// launch starts the goroutine of a subscription, unless the dispatcher ends. Requires
// d.writing.
func (d *Dispatcher) launch(s *subscriber) {
	if d.running.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(d.running)
	s.cancel = cancel
	d.group.Go(func() { s.run(ctx) })
}

// remove makes a subscription unknown.
func (d *Dispatcher) remove(s *subscriber) {
	d.mu.Lock()
	delete(d.subs, s.id)
	if w := s.config.WakeStream; w != "" {
		if d.wake[w]--; d.wake[w] == 0 {
			delete(d.wake, w)
		}
	}
	d.active.Store(len(d.subs) > 0)
	d.mu.Unlock()
}

// changesSoFar returns the number of the newest change.
func (d *Dispatcher) changesSoFar() int64 {
	d.dirtyMu.Lock()
	defer d.dirtyMu.Unlock()
	return d.changes
}

// isWakeStream reports whether wakes are written to a stream. Patterns do not match such
// a stream: two subscriptions could wake each other for ever.
func (d *Dispatcher) isWakeStream(path string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.wake[path] > 0
}
