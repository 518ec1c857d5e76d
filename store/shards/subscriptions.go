package shards

import (
	"context"
	"maps"
)

// Subscriptions keeps the state of a subscription in the shard of its id, and what it has
// acknowledged of a session in the shard of the session. The suite in store/storetest is
// its contract.
type Subscriptions struct{ store *Store }

// Subscriptions returns the subscriptions of the store.
func (s *Store) Subscriptions() *Subscriptions { return &Subscriptions{s} }

const subscriptionsMissing = "subscriptions are not complete"

// All returns the state of every subscription, by its id.
func (x *Subscriptions) All(ctx context.Context) (map[string][]byte, error) {
	s := x.store
	found := make([]map[string][]byte, len(s.shards))
	err := s.every(ctx, subscriptionsMissing, func(i int) (err error) {
		found[i], err = s.shards[i].Subscriptions.All(ctx)
		return err
	})
	out := map[string][]byte{}
	for _, states := range found {
		maps.Copy(out, states)
	}
	return out, err
}

// Put stores the state of a subscription, and what it has acknowledged. The state is stored
// last: if only a part is stored, the reader has acknowledged what it says, and gets an
// error, so it acknowledges again.
func (x *Subscriptions) Put(ctx context.Context, id string, state []byte, acked map[int64]int64) error {
	s, home := x.store, x.store.home(id)
	parts := make([]map[int64]int64, len(s.shards))
	for gen, offset := range acked {
		if s.holds(gen) {
			at := shardOf(gen)
			if parts[at] == nil {
				parts[at] = map[int64]int64{}
			}
			parts[at][gen] = offset
		}
	}
	err := s.every(ctx, "", func(i int) error {
		if i == home || parts[i] == nil {
			return nil
		}
		return s.shards[i].Subscriptions.Put(ctx, id, nil, parts[i])
	})
	if err != nil || state == nil && parts[home] == nil {
		return err
	}
	return s.shards[home].Subscriptions.Put(ctx, id, state, parts[home])
}

// Delete removes a subscription and everything that it has acknowledged, the state last.
func (x *Subscriptions) Delete(ctx context.Context, id string) error {
	s, home := x.store, x.store.home(id)
	err := s.every(ctx, "", func(i int) error {
		if i == home {
			return nil
		}
		return s.shards[i].Subscriptions.Delete(ctx, id)
	})
	if err != nil {
		return err
	}
	return s.shards[home].Subscriptions.Delete(ctx, id)
}

// Acked returns up to which offset a subscription has acknowledged a session, and whether
// it has.
func (x *Subscriptions) Acked(ctx context.Context, id string, gen int64) (int64, bool, error) {
	if err := ctx.Err(); err != nil || !x.store.holds(gen) {
		return 0, false, err
	}
	return x.store.shards[shardOf(gen)].Subscriptions.Acked(ctx, id, gen)
}

// Acks calls f with everything that a subscription has acknowledged, one at a time.
func (x *Subscriptions) Acks(ctx context.Context, id string, f func(session string, gen, acked int64)) error {
	for i := range x.store.shards {
		if err := x.store.shards[i].Subscriptions.Acks(ctx, id, f); err != nil {
			return err
		}
	}
	return nil
}
