package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
)

// PushConfigs keeps the push notification configs of tasks, in the database of the store.
// The suite in store/storetest is its contract.
type PushConfigs struct{ store *Store }

// PushConfigs returns the push notification configs of the store.
func (s *Store) PushConfigs() *PushConfigs { return &PushConfigs{s} }

const (
	sqlActivePushConfigs = `SELECT s.id, p.session, p.task, p.id, p.acked FROM push_configs p JOIN sessions s ON s.gen = p.session WHERE p.acked IS NOT NULL`
	sqlPushConfigs       = `SELECT id, config FROM push_configs WHERE session = $1 AND task = $2`
	sqlLives             = `SELECT count(*) FROM sessions WHERE gen = $1 AND deleted IS NULL`
	sqlPutPushConfig     = `INSERT INTO push_configs (session, task, id, config, acked) VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (session, task, id) DO UPDATE SET config = excluded.config, acked = excluded.acked`
	sqlAckPushConfig   = `UPDATE push_configs SET acked = $4 WHERE session = $1 AND task = $2 AND id = $3`
	sqlDropPushConfig  = `DELETE FROM push_configs WHERE session = $1 AND task = $2 AND id = $3`
	sqlDropPushConfigs = `DELETE FROM push_configs WHERE session = $1`
)

// Active calls each for every config for which something may follow: with the id and the
// Gen of its session, the task, the id of the config, and the offset below which
// everything was told. each must not call the store.
func (x *PushConfigs) Active(ctx context.Context, each func(session string, gen int64, task, id string, acked int64)) error {
	return x.store.read(ctx, func(r pgx.Rows) error {
		var session, task, id string
		var gen, acked int64
		if err := r.Scan(&session, &gen, &task, &id, &acked); err != nil {
			return err
		}
		each(original(session), gen, original(task), original(id), acked)
		return ctx.Err()
	}, sqlActivePushConfigs)
}

// Of returns the configs of a task, by their ids.
func (x *PushConfigs) Of(ctx context.Context, gen int64, task string) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := x.store.read(ctx, func(r pgx.Rows) error {
		var id string
		var config []byte
		err := r.Scan(&id, &config)
		out[original(id)] = config
		return err
	}, sqlPushConfigs, gen, stored(task))
	return out, err
}

// Put stores a config of a task, also instead of one that has its id. Everything below
// offset acked was told; below 0 nothing follows. It is [tapedeck.NotFound] if the session
// does not exist.
func (x *PushConfigs) Put(ctx context.Context, gen int64, task, id string, config []byte, acked int64) error {
	return x.store.submit(ctx, &putPushConfig{pushConfigKey{gen, stored(task), stored(id)}, config, acked}, len(config)+rowSize)
}

// Ack stores up to which offset everything was told; below 0 nothing follows. It does
// nothing if there is no such config.
func (x *PushConfigs) Ack(ctx context.Context, gen int64, task, id string, acked int64) error {
	return x.store.submit(ctx, &ackPushConfig{pushConfigKey{gen, stored(task), stored(id)}, acked}, rowSize)
}

// Delete removes a config. It is no error if there is none.
func (x *PushConfigs) Delete(ctx context.Context, gen int64, task, id string) error {
	return x.store.submit(ctx, &dropPushConfig{pushConfigKey{gen, stored(task), stored(id)}}, rowSize)
}

type pushConfigKey struct {
	gen      int64
	task, id string
}

// ackedOrNull returns what the column acked has.
func ackedOrNull(acked int64) *int64 {
	if acked < 0 {
		return nil
	}
	return &acked
}

// A putPushConfig is the task of a Put.
type putPushConfig struct {
	pushConfigKey
	config []byte
	acked  int64
}

func (t *putPushConfig) do(w *writer) error {
	switch lives, err := w.integer(sqlLives, t.gen); {
	case err != nil:
		return err
	case lives == 0:
		return tapedeck.Errorf(tapedeck.NotFound, "the session was deleted")
	}
	config := t.config
	if config == nil {
		config = []byte{} // nil is null
	}
	w.exec(sqlPutPushConfig, t.gen, t.task, t.id, config, ackedOrNull(t.acked))
	return nil
}

// An ackPushConfig is the task of an Ack.
type ackPushConfig struct {
	pushConfigKey
	acked int64
}

func (t *ackPushConfig) do(w *writer) error {
	w.exec(sqlAckPushConfig, t.gen, t.task, t.id, ackedOrNull(t.acked))
	return nil
}

// A dropPushConfig is the task of a Delete.
type dropPushConfig struct{ pushConfigKey }

func (t *dropPushConfig) do(w *writer) error {
	w.exec(sqlDropPushConfig, t.gen, t.task, t.id)
	return nil
}
