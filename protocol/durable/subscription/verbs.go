package subscription

import (
	"context"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
)

// put creates a subscription, or finds that it exists as requested. base is the URL at
// which the client reaches the server.
func (d *Dispatcher) put(ctx context.Context, id string, c config, base string) (s *subscriber, made bool, err error) {
	if err := tapedeck.CheckID("the id of the subscription", id); err != nil {
		return nil, false, invalid("%s", err)
	}
	if err := c.check(); err != nil {
		return nil, false, err
	}
	if c.Type == typeWebhook {
		if err := d.checkURL(c.URL); err != nil {
			return nil, false, err
		}
	}
	if err := d.await(ctx); err != nil {
		return nil, false, err
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.RLock()
	s, n := d.subs[id], len(d.subs)
	d.mu.RUnlock()
	switch {
	case s != nil:
		return s, false, s.confirm(ctx, &c, base)
	case n >= maxSubscriptions:
		return nil, false, tooMany("the server has %d subscriptions, and no more are allowed", n).hint("delete one, or use a pattern that matches more streams")
	}
	s, err = d.create(ctx, id, c, base)
	return s, err == nil, err
}

// confirm checks that the subscription is as requested. It takes over the address at
// which the server can be reached now.
func (s *subscriber) confirm(ctx context.Context, c *config, base string) error {
	if !s.config.same(c) {
		return failed(codeExists, "subscription %q exists and differs from the request", s.id).hint("delete it first, or use another id")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Base == base {
		return nil
	}
	next := s.state
	next.Base = base
	return s.save(ctx, &next, nil)
}

// linkedAtOnce is how many acknowledgements of a new subscription one transaction has, so
// that others do not wait for all of them.
const linkedAtOnce = 1000

// create creates a subscription. It acknowledges every session that exists up to its head,
// so that the worker gets only what is new. Requires d.writing.
func (d *Dispatcher) create(ctx context.Context, id string, c config, base string) (*subscriber, error) {
	if c.Type == typeWebhook {
		if _, err := d.keys.active(); err != nil {
			return nil, err
		}
	}
	s := d.newSubscriber(id)
	s.state = state{Config: c, Explicit: c.Streams, Created: d.options.Now().UTC().Truncate(time.Millisecond), Base: base}
	s.configure()
	d.active.Store(true)             // before the heads are read
	err := d.link(ctx, s, s.watches) // before the subscription is stored: after a crash it is complete, or it does not exist
	if err == nil {
		s.mu.Lock()
		s.since = d.changesSoFar()
		err = s.save(ctx, &s.state, nil)
		s.mu.Unlock()
	}
	if err != nil {
		d.mu.RLock()
		d.active.Store(len(d.subs) > 0)
		d.mu.RUnlock()
		return nil, err
	}
	d.add(s)
	d.launch(s)
	return s, nil
}

// link acknowledges all sessions that a new subscription watches.
func (d *Dispatcher) link(ctx context.Context, s *subscriber, watches func(path string) bool) error {
	store := d.options.Store
	if err := store.Delete(ctx, s.id); err != nil { // an attempt before this one may have left something
		return err
	}
	heads := map[int64]int64{}
	err := d.eachSession(ctx, func(session *tapedeck.Session, path string) error {
		if !watches(path) {
			return nil
		}
		heads[session.Gen] = session.Head
		if len(heads) < linkedAtOnce {
			return nil
		}
		defer clear(heads)
		return store.Put(ctx, s.id, nil, heads)
	})
	if err == nil && len(heads) > 0 {
		err = store.Put(ctx, s.id, nil, heads)
	}
	return err
}

// drop deletes a subscription. It is no error if there is none.
func (d *Dispatcher) drop(ctx context.Context, id string) error {
	if err := d.await(ctx); err != nil {
		return err
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.RLock()
	s := d.subs[id]
	d.mu.RUnlock()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := d.options.Store.Delete(context.WithoutCancel(ctx), id); err != nil {
		return err
	}
	s.deleted = true
	s.cancel()
	d.remove(s)
	return nil
}

// addStreams adds explicit streams, from their heads on.
func (d *Dispatcher) addStreams(ctx context.Context, id string, paths []string) error {
	s, err := d.find(ctx, id)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if err := s.config.checkStream(p); err != nil {
			return err
		}
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	if err := d.drainLocked(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state
	heads := map[int64]int64{}
	for _, p := range paths {
		i, found := slices.BinarySearch(next.Explicit, p)
		if found {
			continue
		}
		next.Explicit = slices.Insert(slices.Clone(next.Explicit), i, p)
		if s.matches(p) { // it is linked already
			continue
		}
		sessionID, _ := sessionOf(p) // it was checked above
		switch session, err := d.options.Log.Head(ctx, sessionID); {
		case err == nil:
			heads[session.Gen] = session.Head
		case !isGone(err):
			return err
		}
	}
	if len(next.Explicit) > maxStreams {
		return tooMany("a subscription has at most %d explicit streams", maxStreams).hint("use a pattern")
	}
	return s.setStreams(ctx, &next, heads)
}

// removeStream removes an explicit stream. It is no error if there is none.
func (d *Dispatcher) removeStream(ctx context.Context, id, path string) error {
	s, err := d.find(ctx, id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state
	i, found := slices.BinarySearch(next.Explicit, path)
	if !found {
		return nil
	}
	next.Explicit = slices.Delete(slices.Clone(next.Explicit), i, i+1)
	return s.setStreams(ctx, &next, nil)
}

// setStreams takes over another list of streams. Requires s.mu.
func (s *subscriber) setStreams(ctx context.Context, next *state, heads map[int64]int64) error {
	if err := s.save(ctx, next, heads); err != nil {
		return err
	}
	s.since = s.d.changesSoFar()
	s.setExplicit()
	for gen, l := range s.pending {
		if !s.explicit[l.path] && !s.matches(l.path) {
			delete(s.pending, gen)
		}
	}
	return nil
}
