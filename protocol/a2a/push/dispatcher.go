package push

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/webhook"
)

// A key names a config.
type key struct {
	gen      int64  // of its session
	task, id string // task as the store knows it
}

// A Dispatcher has the configs and sends their notifications.
type Dispatcher struct {
	options Options
	tasks   Tasks
	client  *webhook.Client
	sealer  *sealer
	slots   slots

	ready   chan struct{}   // closed when the active configs are known
	running context.Context // of the goroutines that send; set before ready is closed
	group   sync.WaitGroup  // of them

	changing sync.Mutex  // held while a config is set or deleted
	any      atomic.Bool // there may be active configs; false: commits are not looked at

	mu     sync.Mutex // guards the fields below and those of receivers
	ended  bool       // no goroutine may start
	active map[int64]map[key]*receiver
	count  int // of receivers
}

// A receiver is an active config in memory. It has neither the URL nor secrets.
type receiver struct {
	key
	session string

	// d.mu guards these.
	acked  int64              // everything below was told; below 0: the task has ended
	head   int64              // of the session, as far as that is known
	busy   bool               // a goroutine sends
	gone   bool               // it is not in active any more
	cancel context.CancelFunc // ends the goroutine; nil if there was none yet
}

// New returns a dispatcher for tasks. Register its [Dispatcher.Observer] with the store,
// then call [Dispatcher.Run].
func New(o Options, tasks Tasks) *Dispatcher {
	return &Dispatcher{
		options: o.withDefaults(), tasks: tasks, client: webhook.New(o.Allow, o.Transport), sealer: sealerIn(o.Folder),
		slots: newSlots(), ready: make(chan struct{}), active: map[int64]map[key]*receiver{},
	}
}

// Observer returns the observer of the store.
func (d *Dispatcher) Observer() tapedeck.Observer {
	return tapedeck.Observer{Committed: d.committed, Erased: d.erased}
}

// committed lets goroutines send what is new. The writer of the store waits for it.
func (d *Dispatcher) committed(commits []tapedeck.Commit) {
	if !d.any.Load() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range commits {
		s := &commits[i].Session
		for _, r := range d.active[s.Gen] { // it may yield those that restart adds, which are up to date
			switch {
			case commits[i].Gone: // the store has removed the config
				d.remove(r)
			case s.LastJump > 0 && s.LastJump >= r.head: // what its goroutine has read may be reverted
				d.restart(r, s.Head)
			default:
				r.head = s.Head
				d.wake(r)
			}
		}
	}
}

// restart ends the goroutine of a receiver, and what that has read with it. Another one
// continues where the receiver is. Requires d.mu.
func (d *Dispatcher) restart(r *receiver, head int64) {
	d.remove(r)
	again := &receiver{key: r.key, session: r.session, acked: r.acked, head: head}
	d.add(again)
	d.wake(again)
}

// erased drops what goroutines hold of sessions whose events were erased: from now on they
// send what the log has.
func (d *Dispatcher) erased(_ context.Context, session string, forks []string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []*receiver
	for _, receivers := range d.active {
		for _, r := range receivers {
			if r.session == session || slices.Contains(forks, r.session) {
				found = append(found, r)
			}
		}
	}
	for _, r := range found {
		d.restart(r, r.head)
	}
	return nil
}

// remove makes a receiver unknown and ends its goroutine. Requires d.mu.
func (d *Dispatcher) remove(r *receiver) {
	if r.gone {
		return
	}
	r.gone = true
	if r.cancel != nil {
		r.cancel()
	}
	delete(d.active[r.gen], r.key)
	if len(d.active[r.gen]) == 0 {
		delete(d.active, r.gen)
	}
	d.count--
	d.any.Store(d.count > 0)
}

// add makes a receiver known. Requires d.mu.
func (d *Dispatcher) add(r *receiver) {
	if d.active[r.gen] == nil {
		d.active[r.gen] = map[key]*receiver{}
	}
	d.active[r.gen][r.key] = r
	d.count++
	d.any.Store(true)
}

// wake starts the goroutine of a receiver if there may be something to send. Requires
// d.mu.
func (d *Dispatcher) wake(r *receiver) {
	if r.busy || r.gone || d.ended || r.head <= r.acked {
		return
	}
	ctx, cancel := context.WithCancel(d.running)
	r.busy, r.cancel = true, cancel
	d.group.Go(func() {
		defer cancel()
		d.serve(ctx, r)
	})
}

// retryPause is the time between two attempts to use a store that fails.
const retryPause = time.Second

// Run sends notifications until ctx ends. It returns when all its goroutines have ended.
func (d *Dispatcher) Run(ctx context.Context) {
	d.running = ctx
	for err := d.start(ctx); err != nil; err = d.start(ctx) {
		if ctx.Err() != nil {
			return
		}
		d.options.Logger.Error("push notification configs cannot be read; trying again", "error", err)
		if !pause(ctx, retryPause) {
			return
		}
	}
	close(d.ready)
	<-ctx.Done()
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	d.group.Wait()
	d.client.Close()
}

// start loads the active configs and wakes those with something to send.
func (d *Dispatcher) start(ctx context.Context) error {
	var all []*receiver
	err := d.options.Store.Active(ctx, func(session string, gen int64, task, id string, acked int64) {
		all = append(all, &receiver{key: key{gen, task, id}, session: session, acked: acked})
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	clear(d.active) // an attempt before this one may have failed
	d.count = 0
	for _, r := range all {
		d.add(r) // before the heads are read, so that no commit is missed
	}
	d.mu.Unlock()
	for _, r := range all {
		if err := d.look(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// look finds out whether a receiver has something to be told. If its session was deleted
// before the receiver was known, the observer could not remove it.
func (d *Dispatcher) look(ctx context.Context, r *receiver) error {
	s, err := d.options.Sessions.Head(ctx, r.session)
	if err != nil && !isGone(err) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil || s.Gen != r.gen {
		d.remove(r)
		return nil
	}
	r.head = max(r.head, s.Head)
	d.wake(r)
	return nil
}

// await waits until the active configs are known.
func (d *Dispatcher) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	select {
	case <-d.ready:
		if d.running.Err() != nil {
			return tapedeck.Errorf(tapedeck.Unavailable, "the server is stopping")
		}
		return nil
	case <-ctx.Done():
		return tapedeck.Errorf(tapedeck.Unavailable, "the server has just started, and is not ready for push notifications").WithHint("try again")
	}
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

// isGone reports whether err says that a session was deleted.
func isGone(err error) bool {
	k := tapedeck.KindOf(err)
	return k == tapedeck.NotFound || k == tapedeck.Gone
}
