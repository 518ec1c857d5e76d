package shards

import (
	"context"

	"github.com/tapedeck/tapedeck"
)

// PushConfigs keeps the push notification configs of tasks, each in the shard of its
// session. The suite in store/storetest is its contract.
type PushConfigs struct{ store *Store }

// PushConfigs returns the push notification configs of the store.
func (s *Store) PushConfigs() *PushConfigs { return &PushConfigs{s} }

// Active calls f for every config for which something may follow, one at a time.
func (x *PushConfigs) Active(ctx context.Context, f func(session string, gen int64, task, id string, acked int64)) error {
	for i := range x.store.shards {
		if err := x.store.shards[i].PushConfigs.Active(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// Of returns the configs of a task, by their ids.
func (x *PushConfigs) Of(ctx context.Context, gen int64, task string) (map[string][]byte, error) {
	if err := ctx.Err(); err != nil || !x.store.holds(gen) {
		return map[string][]byte{}, err
	}
	return x.store.shards[shardOf(gen)].PushConfigs.Of(ctx, gen, task)
}

// Put stores a config of a task.
func (x *PushConfigs) Put(ctx context.Context, gen int64, task, id string, config []byte, acked int64) error {
	switch err := ctx.Err(); {
	case err != nil:
		return err
	case !x.store.holds(gen):
		return tapedeck.Errorf(tapedeck.NotFound, "the session was deleted")
	}
	return x.store.shards[shardOf(gen)].PushConfigs.Put(ctx, gen, task, id, config, acked)
}

// Ack stores up to which offset everything was told.
func (x *PushConfigs) Ack(ctx context.Context, gen int64, task, id string, acked int64) error {
	if err := ctx.Err(); err != nil || !x.store.holds(gen) {
		return err
	}
	return x.store.shards[shardOf(gen)].PushConfigs.Ack(ctx, gen, task, id, acked)
}

// Delete removes a config.
func (x *PushConfigs) Delete(ctx context.Context, gen int64, task, id string) error {
	if err := ctx.Err(); err != nil || !x.store.holds(gen) {
		return err
	}
	return x.store.shards[shardOf(gen)].PushConfigs.Delete(ctx, gen, task, id)
}
