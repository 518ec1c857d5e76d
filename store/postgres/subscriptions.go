package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Subscriptions keeps the subscriptions of readers, in the database of the store. The
// suite in store/storetest is its contract.
type Subscriptions struct{ store *Store }

// Subscriptions returns the subscriptions of the store.
func (s *Store) Subscriptions() *Subscriptions { return &Subscriptions{s} }

const (
	sqlSubscriptions   = `SELECT id, state FROM subscriptions`
	sqlPutSubscription = `INSERT INTO subscriptions (id, state) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET state = excluded.state`
	sqlAck             = `INSERT INTO acks (session, subscription, acked)
	SELECT s.gen, $1, u.acked FROM unnest($2::bigint[], $3::bigint[]) AS u (gen, acked) JOIN sessions s ON s.gen = u.gen AND s.deleted IS NULL
	ON CONFLICT (session, subscription) DO UPDATE SET acked = excluded.acked`
	sqlAcked             = `SELECT acked FROM acks WHERE session = $1 AND subscription = $2`
	sqlAcks              = `SELECT s.id, a.session, a.acked FROM acks a JOIN sessions s ON s.gen = a.session WHERE a.subscription = $1`
	sqlDropSubscription  = `DELETE FROM subscriptions WHERE id = $1`
	sqlDropAcks          = `DELETE FROM acks WHERE subscription = $1`
	sqlDropAcksOfSession = `DELETE FROM acks WHERE session = $1`
)

// All returns the state of every subscription, by its id.
func (x *Subscriptions) All(ctx context.Context) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := x.store.read(ctx, func(r pgx.Rows) error {
		var id string
		var state []byte
		err := r.Scan(&id, &state)
		out[original(id)] = state
		return err
	}, sqlSubscriptions)
	return out, err
}

// Put stores the state of a subscription, and up to which offset it has acknowledged
// sessions, by their Gen: both or neither. A nil state stays as it is. Sessions that
// do not exist are left out.
func (x *Subscriptions) Put(ctx context.Context, id string, state []byte, acked map[int64]int64) error {
	return x.store.submit(ctx, &putSubscription{stored(id), state, acked}, len(state)+rowSize+64*len(acked))
}

// Delete removes a subscription and everything that it has acknowledged. It is no
// error if there is none.
func (x *Subscriptions) Delete(ctx context.Context, id string) error {
	return x.store.submit(ctx, dropSubscription(stored(id)), rowSize)
}

// Acked returns up to which offset a subscription has acknowledged a session, and
// whether it has.
func (x *Subscriptions) Acked(ctx context.Context, id string, gen int64) (acked int64, ok bool, err error) {
	err = x.store.read(ctx, func(r pgx.Rows) error {
		ok = true
		return r.Scan(&acked)
	}, sqlAcked, gen, stored(id))
	return acked, ok, err
}

// Acks calls each for every session that a subscription has acknowledged. each must
// not call the store.
func (x *Subscriptions) Acks(ctx context.Context, id string, each func(session string, gen, acked int64)) error {
	return x.store.read(ctx, func(r pgx.Rows) error {
		var session string
		var gen, acked int64
		if err := r.Scan(&session, &gen, &acked); err != nil {
			return err
		}
		each(original(session), gen, acked)
		return ctx.Err()
	}, sqlAcks, stored(id))
}

// submit gives the writer a task that no cancel interrupts.
func (s *Store) submit(ctx context.Context, t task, size int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.writer.submit(ctx, t, size)
}

// A putSubscription is the task of a Put.
type putSubscription struct {
	id    string
	state []byte
	acked map[int64]int64
}

func (t *putSubscription) do(w *writer) error {
	if t.state != nil {
		w.exec(sqlPutSubscription, t.id, t.state)
	}
	if len(t.acked) > 0 {
		gens, acked := make([]int64, 0, len(t.acked)), make([]int64, 0, len(t.acked))
		for gen, offset := range t.acked {
			gens, acked = append(gens, gen), append(acked, offset)
		}
		w.exec(sqlAck, t.id, gens, acked)
	}
	return nil
}

// A dropSubscription is the task of a Delete; it is the id of the subscription.
type dropSubscription string

func (id dropSubscription) do(w *writer) error {
	w.exec(sqlDropSubscription, string(id))
	w.exec(sqlDropAcks, string(id))
	return nil
}
