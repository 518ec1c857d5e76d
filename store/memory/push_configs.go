package memory

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// PushConfigs keeps the push notification configs of tasks. The suite in store/storetest
// is its contract.
type PushConfigs struct{ store *Store }

// PushConfigs returns the push notification configs of the store.
func (m *Store) PushConfigs() *PushConfigs { return &PushConfigs{m} }

// A pushConfig is what is stored of a config.
type pushConfig struct {
	task, id string
	config   []byte
	acked    int64 // below 0: nothing follows
}

// Active calls each for every config for which something may follow: with the id and the
// Gen of its session, the task, the id of the config, and the offset below which
// everything was told. each must not call the store.
func (x *PushConfigs) Active(ctx context.Context, each func(session string, gen int64, task, id string, acked int64)) error {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for gen, configs := range x.store.pushes {
		for _, c := range configs {
			if c.acked >= 0 {
				each(x.store.byGen(gen).ID, gen, c.task, c.id, c.acked)
			}
		}
	}
	return nil
}

// Of returns the configs of a task, by their ids.
func (x *PushConfigs) Of(ctx context.Context, gen int64, task string) (map[string][]byte, error) {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	out := map[string][]byte{}
	for _, c := range x.store.pushes[gen] {
		if c.task == task {
			out[c.id] = slices.Clone(c.config)
		}
	}
	return out, nil
}

// Put stores a config of a task, also instead of one that has its id. Everything below
// offset acked was told; below 0 nothing follows. It is [tapedeck.NotFound] if the session
// does not exist.
func (x *PushConfigs) Put(ctx context.Context, gen int64, task, id string, config []byte, acked int64) error {
	return x.change(ctx, func() error {
		if x.store.byGen(gen) == nil {
			return tapedeck.Errorf(tapedeck.NotFound, "the session was deleted")
		}
		x.drop(gen, task, id)
		x.store.pushes[gen] = append(x.store.pushes[gen], &pushConfig{task, id, slices.Clone(config), acked})
		return nil
	})
}

// Ack stores up to which offset everything was told; below 0 nothing follows. It does
// nothing if there is no such config.
func (x *PushConfigs) Ack(ctx context.Context, gen int64, task, id string, acked int64) error {
	return x.change(ctx, func() error {
		for _, c := range x.store.pushes[gen] {
			if c.task == task && c.id == id {
				c.acked = acked
			}
		}
		return nil
	})
}

// Delete removes a config. It is no error if there is none.
func (x *PushConfigs) Delete(ctx context.Context, gen int64, task, id string) error {
	return x.change(ctx, func() error {
		x.drop(gen, task, id)
		return nil
	})
}

// change makes a change in a commit.
func (x *PushConfigs) change(ctx context.Context, f func() error) error {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := x.store.commit(); err != nil {
		return err
	}
	return f()
}

// drop removes a config. Requires m.mu.
func (x *PushConfigs) drop(gen int64, task, id string) {
	left := slices.DeleteFunc(x.store.pushes[gen], func(c *pushConfig) bool { return c.task == task && c.id == id })
	if x.store.pushes[gen] = left; len(left) == 0 {
		delete(x.store.pushes, gen)
	}
}
