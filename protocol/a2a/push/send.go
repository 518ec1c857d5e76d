package push

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/webhook"
)

// Limits of the delivery.
const (
	attemptTime = 15 * time.Second // from the connection to the end of the answer
	ackEvery    = time.Second      // while updates follow each other, the store learns what was told this often

	// A config is given up after this many failures in a row, if the update that cannot
	// be sent is also this old.
	giveUpAfter = 10
	giveUpAge   = 24 * time.Hour
)

// OffsetsHeader is the header of a notification that has the offsets of its first and its
// last event, such as 12-15. A repeated notification begins at an offset that the receiver
// has already got.
const OffsetsHeader = "Tapedeck-Offsets"

// slots limit how many tasks are loaded and how many requests are under way at a time. Those
// for receivers that have failed have slots of their own, so that receivers that do not
// answer delay only each other.
type slots struct{ first, again chan struct{} }

func newSlots() slots { return slots{make(chan struct{}, 192), make(chan struct{}, 64)} }

// take waits for a slot. It returns the function that frees it, nil if ctx ends.
func (s *slots) take(ctx context.Context, failures int) (free func()) {
	c := s.first
	if failures > 0 {
		c = s.again
	}
	select {
	case c <- struct{}{}:
		return func() { <-c }
	case <-ctx.Done():
		return nil
	}
}

// A refusal is an update that a receiver did not take.
type refusal struct {
	err  error
	time time.Time // of the update
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// A delivery is the work of the goroutine of a receiver.
type delivery struct {
	*Dispatcher
	to       *receiver
	failures int       // attempts that failed since the last success
	stored   int64     // what the store has of the receiver's acked
	saved    time.Time // when that was stored
	free     func()    // frees its slot; nil if it has none
}

// take takes a slot, unless the delivery has one.
func (v *delivery) take(ctx context.Context) error {
	if v.free == nil {
		if v.free = v.slots.take(ctx, v.failures); v.free == nil {
			return ctx.Err()
		}
	}
	return nil
}

// leave frees the slot, if the delivery has one.
func (v *delivery) leave() {
	if v.free != nil {
		v.free()
		v.free = nil
	}
}

// serve sends what is new, until there is nothing more or ctx ends.
func (d *Dispatcher) serve(ctx context.Context, r *receiver) {
	d.mu.Lock()
	v := &delivery{Dispatcher: d, to: r, stored: r.acked}
	d.mu.Unlock()
	for {
		err := v.send(ctx)
		v.save(context.WithoutCancel(ctx))
		switch {
		case ctx.Err() != nil, v.settled(err):
			return
		case err == nil:
			continue
		case v.hopeless(err):
			v.drop(ctx, err)
			return
		}
		v.failures++
		v.log("a push notification could not be sent", err)
		if !pause(ctx, webhook.Backoff(v.failures)) {
			return
		}
	}
}

// settled reports whether nothing is left to send. Then the goroutine of the receiver must
// end: the next commit starts another one.
func (v *delivery) settled(err error) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.to.gone || err == nil && v.to.head <= v.to.acked {
		v.to.busy = false
		return true
	}
	return false
}

// hopeless reports whether a config has to be given up.
func (v *delivery) hopeless(err error) bool {
	var r *refusal
	if errors.As(err, &r) {
		return v.failures+1 >= giveUpAfter && time.Since(r.time) > giveUpAge
	}
	return isGone(err) || errors.Is(err, errNoKey)
}

// drop deletes a config for which nothing more can be done, unless it was replaced meanwhile.
func (v *delivery) drop(ctx context.Context, why error) {
	v.changing.Lock()
	defer v.changing.Unlock()
	v.mu.Lock()
	gone := v.to.gone
	v.remove(v.to)
	v.mu.Unlock()
	if gone {
		return
	}
	if !isGone(why) { // otherwise the task or the config was deleted, and nobody misses it
		v.options.Logger.Warn("a push notification config is given up and deleted", "session", v.to.session, "task", v.to.task, "reason", reason(why))
	}
	if err := v.options.Store.Delete(context.WithoutCancel(ctx), v.to.gen, v.to.task, v.to.id); err != nil {
		v.log("a push notification config could not be deleted", err) // the next start tries it again
	}
}

// log logs a failure without the URL, which may have secrets.
func (v *delivery) log(text string, err error) {
	v.options.Logger.Debug(text, "session", v.to.session, "task", v.to.task, "attempt", v.failures, "reason", reason(err))
}

// reason returns what the log may have of an error.
func reason(err error) string {
	var r *refusal
	switch {
	case errors.As(err, &r):
		return "the receiver failed: " + webhook.Reason(r.err)
	case errors.Is(err, errNoKey):
		return errNoKey.Error()
	}
	return "the task or the config could not be read: " + string(tapedeck.KindOf(err))
}

// send sends the updates of the task from where the receiver is, until the task rests. It
// takes a slot before it loads the task: what waits for a slot needs no memory.
func (v *delivery) send(ctx context.Context) error {
	if err := v.take(ctx); err != nil {
		return err
	}
	defer v.leave()
	c, err := v.find(ctx, v.to.key)
	if err != nil {
		return err
	}
	v.mu.Lock()
	from := v.to.acked
	v.mu.Unlock()
	for u, err := range v.tasks.Updates(ctx, Task{v.to.session, v.to.gen, v.to.task}, c.Version, from) {
		if err == nil && u.Body != nil {
			err = v.post(ctx, c, &u)
		}
		if err != nil {
			return err
		}
		v.leave()
		if v.told(&u); u.Ended {
			return nil
		}
		if time.Since(v.saved) >= ackEvery {
			v.save(ctx)
		}
	}
	return nil
}

// post makes one attempt to send an update.
func (v *delivery) post(ctx context.Context, c *Config, u *Update) error {
	if err := v.take(ctx); err != nil {
		return err
	}
	h := c.header()
	h.Set(OffsetsHeader, strconv.FormatInt(u.First, 10)+"-"+strconv.FormatInt(u.Last, 10))
	attempt, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	if _, err := v.client.Post(attempt, c.URL, h, u.Body); err != nil {
		return &refusal{err, u.Time}
	}
	v.failures = 0
	return nil
}

// told notes that the receiver has an update. After the last one the receiver is done: the
// config stays in the store, so that the client finds it.
func (v *delivery) told(u *Update) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.to.gone {
		return
	}
	v.to.acked = u.Next
	v.to.head = max(v.to.head, u.Next)
	if u.Ended {
		v.to.acked = -1
		v.remove(v.to)
	}
}

// save stores what the receiver was told.
func (v *delivery) save(ctx context.Context) {
	v.mu.Lock()
	acked, gone := v.to.acked, v.to.gone
	v.mu.Unlock()
	if acked == v.stored || gone && acked >= 0 { // it was deleted, or another receiver has replaced it
		return
	}
	v.saved = time.Now()
	if err := v.options.Store.Ack(ctx, v.to.gen, v.to.task, v.to.id, acked); err != nil {
		v.log("what was sent could not be stored; after a crash it is sent again", err)
		return
	}
	v.stored = acked
}

// find reads the config of a key.
func (d *Dispatcher) find(ctx context.Context, k key) (*Config, error) {
	all, err := d.options.Store.Of(ctx, k.gen, k.task)
	if err != nil {
		return nil, err
	}
	sealed, ok := all[k.id]
	if !ok {
		return nil, noConfig(k.id)
	}
	return d.sealer.open(k, sealed)
}
