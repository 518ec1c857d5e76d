package memory

import (
	"context"
	"maps"
	"slices"
)

// Subscriptions keeps the subscriptions of readers. The suite in store/storetest is its
// contract.
type Subscriptions struct{ store *Store }

// Subscriptions returns the subscriptions of the store.
func (m *Store) Subscriptions() *Subscriptions { return &Subscriptions{m} }

// All returns the state of every subscription, by its id.
func (x *Subscriptions) All(ctx context.Context) (map[string][]byte, error) {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return maps.Clone(x.store.subscriptions), nil
}

// Put stores the state of a subscription, and up to which offset it has acknowledged
// sessions, by their Gen: both or neither. A nil state stays as it is. Sessions that
// do not exist are left out.
func (x *Subscriptions) Put(ctx context.Context, id string, state []byte, acked map[int64]int64) error {
	m := x.store
	unlock, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.commit(); err != nil {
		return err
	}
	if state != nil {
		m.subscriptions[id] = slices.Clone(state)
	}
	acks := m.acks[id]
	if acks == nil {
		acks = map[int64]int64{}
		m.acks[id] = acks
	}
	for gen, at := range acked {
		if l := m.byGen(gen); l != nil {
			acks[gen] = at
		}
	}
	return nil
}

// byGen returns the session of a Gen, nil if there is none or if it was deleted.
// Requires m.mu.
func (m *Store) byGen(gen int64) *log {
	if i, ok := m.position(gen); ok && !m.order[i].gone {
		return m.order[i]
	}
	return nil
}

// Delete removes a subscription and everything that it has acknowledged. It is no
// error if there is none.
func (x *Subscriptions) Delete(ctx context.Context, id string) error {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := x.store.commit(); err != nil {
		return err
	}
	delete(x.store.subscriptions, id)
	delete(x.store.acks, id)
	return nil
}

// Acked returns up to which offset a subscription has acknowledged a session, and
// whether it has.
func (x *Subscriptions) Acked(ctx context.Context, id string, gen int64) (int64, bool, error) {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return 0, false, err
	}
	defer unlock()
	at, ok := x.store.acks[id][gen]
	return at, ok, nil
}

// Acks calls each for every session that a subscription has acknowledged. each must
// not call the store.
func (x *Subscriptions) Acks(ctx context.Context, id string, each func(session string, gen, acked int64)) error {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for gen, at := range x.store.acks[id] {
		if l := x.store.byGen(gen); l != nil {
			each(l.ID, gen, at)
		}
	}
	return nil
}
