package postgres

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/search"
)

// An Index keeps the searchable documents of a store, in tables beside the log. It can
// be recreated from the log at any time.
type Index struct {
	store *Store

	mu     sync.Mutex // held while the index is written; guards the fields below
	conn   *pgx.Conn
	closed bool
}

// OpenIndex returns the index of the store. [Store.Close] closes it.
func (s *Store) OpenIndex() (*Index, error) { return s.search, nil }

func (x *Index) close(ctx context.Context) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	if x.conn != nil {
		_ = x.conn.Close(ctx)
	}
}

const (
	sqlUnindexed = `FROM sessions s JOIN heads h ON h.session = s.gen LEFT JOIN indexed i ON i.session = s.gen
	WHERE s.kind = 'session' AND s.deleted IS NULL AND h.head <> coalesce(i.seen, -1)`
	sqlUnindexedList = `SELECT s.id, s.gen, h.head, CASE WHEN h.head >= i.seen THEN i.resume ELSE s.fork_at END,
	CASE WHEN h.head >= i.seen THEN i.base ELSE 0 END ` + sqlUnindexed + ` ORDER BY s.gen DESC LIMIT $1`
	sqlDeletedDocs = `SELECT i.session FROM indexed i WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.gen = i.session AND s.deleted IS NULL) LIMIT $1`
)

// Unindexed returns the sessions with events that are not indexed, newest first. It
// also removes the documents of deleted sessions.
func (x *Index) Unindexed(ctx context.Context, limit int) ([]search.Pending, int, error) {
	var out []search.Pending
	var total int
	err := x.store.read(ctx, func(r pgx.Rows) error { return r.Scan(&total) }, `SELECT count(*) `+sqlUnindexed)
	if err != nil || limit <= 0 {
		return nil, total, err
	}
	err = x.store.read(ctx, func(r pgx.Rows) error {
		var p search.Pending
		err := r.Scan(&p.Session, &p.Gen, &p.Head, &p.From, &p.Base)
		p.Session = original(p.Session)
		out = append(out, p)
		return err
	}, sqlUnindexedList, limit)
	if err != nil {
		return nil, 0, err
	}
	dead, err := x.deleted(ctx, 1000)
	if err == nil && len(dead) > 0 {
		err = x.write(ctx, removal(dead))
	}
	return out, total, err
}

// deleted returns sessions that are indexed and were deleted.
func (x *Index) deleted(ctx context.Context, limit int64) (gens []int64, err error) {
	err = x.store.read(ctx, func(r pgx.Rows) error {
		var gen int64
		err := r.Scan(&gen)
		gens = append(gens, gen)
		return err
	}, sqlDeletedDocs, limit)
	return gens, err
}

// write sends statements as one transaction. Like a commit it changes nothing if another
// server has taken over.
func (x *Index) write(ctx context.Context, b *pgx.Batch) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.store
	if x.closed || s.lost.Load() != nil {
		return s.errClosed()
	}
	if x.conn == nil || x.conn.IsClosed() {
		c, err := s.target.connect(ctx, "index")
		if err != nil {
			return unreadable(err)
		}
		x.conn = c
	}
	b.Queue(sqlOwns, s.lease.epoch.Load())
	ctx, cancel := s.limited(ctx)
	defer cancel()
	if err := x.conn.SendBatch(ctx, b).Close(); err != nil {
		return unreadable(&dbError{err})
	}
	return nil
}

func unreadable(err error) error {
	return tapedeck.Errorf(tapedeck.Unavailable, "the search index could not be written").WithHint("try again").Because(err)
}

const (
	// sqlOwns divides by zero, and so ends the transaction, if another server has taken
	// over. Unlike sqlFence it keeps no lock that a commit would have to wait for.
	sqlOwns      = `SELECT 1 / count(*) FROM owner WHERE epoch = $1`
	sqlGen       = `SELECT gen FROM sessions WHERE id = $1 AND deleted IS NULL`
	sqlDropDocs  = `DELETE FROM docs WHERE session = $1 AND "offset" >= $2`
	sqlDropTitle = `DELETE FROM docs WHERE session = $1 AND kind = 'title'`
	sqlAddDoc    = `INSERT INTO docs (session, "offset", kind, role, thread, invocation, time, text, words) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::text::tsvector)`
	sqlSeen      = `INSERT INTO indexed (session, seen, resume, base) VALUES ($1, $2, $3, $4)
	ON CONFLICT (session) DO UPDATE SET seen = excluded.seen, resume = excluded.resume, base = excluded.base`
	sqlForgetDocs = `DELETE FROM docs WHERE session = ANY($1::bigint[])`
	sqlForgetSeen = `DELETE FROM indexed WHERE session = ANY($1::bigint[])`
)

// Index adds documents. They replace those that began at From or later.
func (x *Index) Index(ctx context.Context, in search.Batch) error {
	var gen int64
	err := x.store.read(ctx, func(r pgx.Rows) error { return r.Scan(&gen) }, sqlGen, stored(in.Session))
	if err != nil || gen != in.Gen { // it was deleted meanwhile
		return err
	}
	var b pgx.Batch
	b.Queue(sqlDropDocs, gen, in.From)
	for _, d := range in.Documents {
		if d.Kind == search.DocTitle {
			b.Queue(sqlDropTitle, gen)
			if d.Text == "" {
				continue
			}
		}
		b.Queue(sqlAddDoc, gen, d.Offset, d.Kind, stored(d.Role), stored(d.Thread), stored(d.Invocation), d.Time.UnixMilli(), stored(d.Text), vector(d.Text))
	}
	b.Queue(sqlSeen, gen, in.Seen, in.Resume, in.Base)
	return x.write(ctx, &b)
}

// removal removes the documents of sessions.
func removal(gens []int64) *pgx.Batch {
	var b pgx.Batch
	b.Queue(sqlForgetDocs, gens)
	b.Queue(sqlForgetSeen, gens)
	return &b
}

// Forget removes the documents of a session and of all deleted sessions.
func (x *Index) Forget(ctx context.Context, session string) error {
	v, err := x.store.view(ctx, session)
	if err != nil {
		return err
	}
	gens, err := x.deleted(ctx, 1<<40)
	if err != nil {
		return err
	}
	if v != nil {
		gens = append(gens, v.Gen)
	}
	if len(gens) == 0 {
		return nil
	}
	return x.write(ctx, removal(gens))
}

// Clean does nothing: what PostgreSQL keeps of deleted rows is not for the program to
// remove, see docs/postgres.md.
func (x *Index) Clean(ctx context.Context) error { return ctx.Err() }
