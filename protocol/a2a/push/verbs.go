package push

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// Set stores a config of a task, which [Dispatcher.Check] accepts and which has an id. The
// receiver is told of the updates from an offset on; below 0 nothing follows. A config with
// the same id is replaced; the new one continues where that one is. It is
// [tapedeck.Limited] if the task or the server has too many configs.
func (d *Dispatcher) Set(ctx context.Context, t Task, c *Config, from int64) error {
	if err := d.await(ctx); err != nil {
		return err
	}
	k := key{t.Gen, t.Name, c.ID}
	sealed, err := d.sealer.seal(k, c)
	if err != nil {
		return err
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	all, err := d.options.Store.Of(ctx, t.Gen, t.Name)
	if err != nil {
		return err
	}
	_, replaces := all[c.ID]
	d.mu.Lock()
	n, old := d.count, d.active[t.Gen][k]
	switch {
	case old != nil:
		from = old.acked
	case replaces: // nothing follows for that one
		from = -1
	}
	d.mu.Unlock()
	switch {
	case !replaces && len(all) >= MaxPerTask:
		return tapedeck.Errorf(tapedeck.Limited, "the task has %d push notification configs, and no more are allowed", len(all)).WithHint("delete one")
	case from >= 0 && old == nil && n >= maxActive:
		return tapedeck.Errorf(tapedeck.Limited, "the server has %d push notification configs, and no more are allowed now", n).
			WithHint("subscribe to the task, or delete configs that are not needed")
	}
	// A cancelled request does not interrupt it, because then nobody would know whether
	// the config is stored.
	if err := d.options.Store.Put(context.WithoutCancel(ctx), t.Gen, t.Name, c.ID, sealed, from); err != nil || from < 0 {
		return err
	}
	return d.launch(ctx, &receiver{key: k, session: t.Session, acked: from})
}

// launch makes a receiver known, instead of the one with its key.
func (d *Dispatcher) launch(ctx context.Context, r *receiver) error {
	d.mu.Lock()
	if old := d.active[r.gen][r.key]; old != nil {
		r.acked = old.acked
		d.remove(old)
	}
	d.add(r)
	d.mu.Unlock()
	return d.look(context.WithoutCancel(ctx), r)
}

// Get returns a config of a task. It is [tapedeck.NotFound] if there is none.
func (d *Dispatcher) Get(ctx context.Context, t Task, id string) (*Config, error) {
	c, err := d.find(ctx, key{t.Gen, t.Name, id})
	if errors.Is(err, errNoKey) {
		err = noConfig(id)
	}
	return c, err
}

// List returns the configs of a task, in the order of their ids. Those that were stored
// with another key are left out.
func (d *Dispatcher) List(ctx context.Context, t Task) ([]*Config, error) {
	all, err := d.options.Store.Of(ctx, t.Gen, t.Name)
	if err != nil {
		return nil, err
	}
	out := make([]*Config, 0, len(all))
	for _, id := range slices.Sorted(maps.Keys(all)) {
		c, err := d.sealer.open(key{t.Gen, t.Name, id}, all[id])
		switch {
		case err == nil:
			out = append(out, c)
		case !errors.Is(err, errNoKey):
			return nil, err
		}
	}
	return out, nil
}

// Delete removes a config of a task, and ends a request that is under way for it. It is no
// error if there is none.
func (d *Dispatcher) Delete(ctx context.Context, t Task, id string) error {
	if err := d.await(ctx); err != nil {
		return err
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.options.Store.Delete(context.WithoutCancel(ctx), t.Gen, t.Name, id); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.active[t.Gen][key{t.Gen, t.Name, id}]; r != nil {
		d.remove(r)
	}
	return nil
}

// noConfig is the error of a config that does not exist.
func noConfig(id string) error {
	return tapedeck.Errorf(tapedeck.NotFound, "the task has no push notification config %.300q", id)
}
