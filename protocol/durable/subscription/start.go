package subscription

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tapedeck/tapedeck"
)

// start loads the subscriptions and finds out what is pending: everything above the
// offsets that were acknowledged. Commits that happen meanwhile wait in dirty.
func (d *Dispatcher) start(ctx context.Context) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	states, err := d.options.Store.All(ctx)
	if err != nil {
		return err
	}
	subs := make([]*subscriber, 0, len(states))
	for id, b := range states {
		s := d.newSubscriber(id)
		if err := json.Unmarshal(b, &s.state); err != nil {
			return fmt.Errorf("the state of subscription %q cannot be read: %w", id, err)
		}
		s.configure()
		s.announceAgain()
		subs = append(subs, s)
	}
	d.mu.Lock()
	clear(d.subs) // an attempt before this one may have failed
	clear(d.wake)
	d.mu.Unlock()
	for _, s := range subs {
		d.add(s)
	}
	if err := d.catchUp(ctx, subs); err != nil {
		return err
	}
	d.watchCommits(len(subs) > 0)
	d.running = ctx
	for _, s := range subs {
		d.launch(s)
	}
	close(d.ready)
	wakeUp(d.changed)
	return nil
}

// announceAgain makes a wake that no worker has claimed unsent. The workers that read its
// message may have found nothing to do, which is not stored.
func (s *subscriber) announceAgain() {
	if w := s.state.Wake; w != nil && w.Until.IsZero() {
		w.Sent = false
	}
}

// watchCommits says whether commits are looked at from now on.
func (d *Dispatcher) watchCommits(any bool) {
	d.active.Store(any)
	if !any {
		d.dirtyMu.Lock()
		clear(d.dirty)
		d.dirtyMu.Unlock()
	}
}

// catchUp finds out what is pending for subscriptions that were loaded.
func (d *Dispatcher) catchUp(ctx context.Context, subs []*subscriber) error {
	if len(subs) == 0 {
		return nil
	}
	acked := make([]map[int64]int64, len(subs))
	for i, s := range subs {
		acked[i] = map[int64]int64{}
		err := d.options.Store.Acks(ctx, s.id, func(_ string, gen, at int64) { acked[i][gen] = at })
		if err != nil {
			return err
		}
	}
	passed := make([]map[int64]int64, len(subs)) // up to where nothing is pending
	err := d.eachSession(ctx, func(session *tapedeck.Session, path string) error {
		for i, s := range subs {
			if !s.watches(path) {
				continue
			}
			from, ok := acked[i][session.Gen]
			if !ok {
				from = session.ForkedAt // it is newer than the subscription
			}
			if from >= session.Head {
				continue
			}
			found, err := s.begin(ctx, session, path, from)
			if err != nil {
				return err
			}
			if !found {
				if passed[i] == nil {
					passed[i] = map[int64]int64{}
				}
				passed[i][session.Gen] = session.Head
			}
		}
		return nil
	})
	for i, s := range subs {
		if err == nil && passed[i] != nil { // so that the next start need not search there again
			err = d.options.Store.Put(ctx, s.id, nil, passed[i])
		}
	}
	return err
}

// begin finds out whether something is pending in a session from an offset on.
func (s *subscriber) begin(ctx context.Context, session *tapedeck.Session, path string, from int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watch(ctx, &change{session: session.ID, path: path, gen: session.Gen, head: session.Head}, from)
}

// eachSession calls f for every session and stream.
func (d *Dispatcher) eachSession(ctx context.Context, f func(s *tapedeck.Session, path string) error) error {
	for _, kind := range []tapedeck.SessionKind{tapedeck.KindSession, tapedeck.KindStream} {
		filter := tapedeck.Filter{Kind: kind, Limit: 1000}
		for {
			page, err := d.options.Log.List(ctx, filter)
			if err != nil {
				return err
			}
			for i := range page.Sessions {
				if err := f(&page.Sessions[i], pathOf(page.Sessions[i].ID, kind)); err != nil {
					return err
				}
			}
			if filter.Cursor = page.Next; page.Next == "" {
				break
			}
		}
	}
	return nil
}
