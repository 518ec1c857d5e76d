package sqlite

import (
	"context"
	"database/sql/driver"
)

// Subscriptions keeps the subscriptions of readers, in the database of the store. The
// suite in store/storetest is its contract.
type Subscriptions struct{ store *Store }

// Subscriptions returns the subscriptions of the store.
func (s *Store) Subscriptions() *Subscriptions { return &Subscriptions{s} }

const (
	sqlSubscriptions     = `SELECT id, state FROM subscriptions`
	sqlPutSubscription   = `INSERT INTO subscriptions (id, state) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET state = ?2`
	sqlAck               = `INSERT INTO acks (session, subscription, acked) SELECT gen, ?2, ?3 FROM sessions WHERE gen = ?1 AND deleted IS NULL ON CONFLICT DO UPDATE SET acked = ?3`
	sqlAcked             = `SELECT acked FROM acks WHERE session = ? AND subscription = ?`
	sqlAcks              = `SELECT s.id, a.session, a.acked FROM acks a JOIN sessions s ON s.gen = a.session WHERE a.subscription = ?`
	sqlDropSubscription  = `DELETE FROM subscriptions WHERE id = ?`
	sqlDropAcks          = `DELETE FROM acks WHERE subscription = ?`
	sqlDropAcksOfSession = `DELETE FROM acks WHERE session = ?`
)

// All returns the state of every subscription, by its id.
func (x *Subscriptions) All(ctx context.Context) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := x.store.read(ctx, func(c *conn) error {
		return c.query(func(row []driver.Value) error {
			out[text(row[0])] = []byte(text(row[1]))
			return nil
		}, sqlSubscriptions)
	})
	return out, err
}

// Put stores the state of a subscription, and up to which offset it has acknowledged
// sessions, by their Gen: both or neither. A nil state stays as it is. Sessions that
// do not exist are left out.
func (x *Subscriptions) Put(ctx context.Context, id string, state []byte, acked map[int64]int64) error {
	return x.store.submit(ctx, &putSubscription{id, state, acked}, len(state)+rowSize+64*len(acked))
}

// Delete removes a subscription and everything that it has acknowledged. It is no
// error if there is none.
func (x *Subscriptions) Delete(ctx context.Context, id string) error {
	return x.store.submit(ctx, dropSubscription(id), rowSize)
}

// Acked returns up to which offset a subscription has acknowledged a session, and
// whether it has.
func (x *Subscriptions) Acked(ctx context.Context, id string, gen int64) (acked int64, ok bool, err error) {
	err = x.store.read(ctx, func(c *conn) error {
		return c.query(func(row []driver.Value) error {
			acked, ok = integer(row[0]), true
			return errStop
		}, sqlAcked, gen, id)
	})
	return acked, ok, err
}

// Acks calls each for every session that a subscription has acknowledged. each must
// not call the store.
func (x *Subscriptions) Acks(ctx context.Context, id string, each func(session string, gen, acked int64)) error {
	return x.store.read(ctx, func(c *conn) error {
		return c.query(func(row []driver.Value) error {
			each(text(row[0]), integer(row[1]), integer(row[2]))
			return ctx.Err()
		}, sqlAcks, id)
	})
}

// read reads with a connection of a reader.
func (s *Store) read(ctx context.Context, f func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.readers.use(ctx, f)
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
	if err := w.begin(); err != nil {
		return err
	}
	if t.state != nil {
		if err := w.conn.exec(sqlPutSubscription, t.id, string(t.state)); err != nil {
			return err
		}
	}
	for gen, acked := range t.acked {
		if err := w.conn.exec(sqlAck, gen, t.id, acked); err != nil {
			return err
		}
	}
	return nil
}

// A dropSubscription is the task of a Delete; it is the id of the subscription.
type dropSubscription string

func (id dropSubscription) do(w *writer) error {
	err := w.begin()
	for _, statement := range [...]string{sqlDropSubscription, sqlDropAcks} {
		if err == nil {
			err = w.conn.exec(statement, string(id))
		}
	}
	return err
}
