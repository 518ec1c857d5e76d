package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Spending is what the runs of owners have used, in the database of the store. The suite in
// store/storetest is its contract.
type Spending struct{ store *Store }

// Spending returns what the runs of owners have used.
func (s *Store) Spending() *Spending { return &Spending{s} }

const (
	sqlSpending = `SELECT tokens, usd, turns, seconds, grants FROM spending WHERE owner = $1 AND period = $2`
	sqlCharge   = `INSERT INTO spending AS s (owner, period, tokens, usd, turns, seconds)
	VALUES ($1::text, $2::text, $4::bigint, $5::float8, $6::bigint, $7::float8), ($1, $3, $4, $5, $6, $7)
	ON CONFLICT (owner, period) DO UPDATE SET tokens = least(s.tokens + excluded.tokens, $8::bigint), usd = s.usd + excluded.usd,
		turns = least(s.turns + excluded.turns, $8), seconds = s.seconds + excluded.seconds`
	sqlGrant = `INSERT INTO spending AS s (owner, period, grants) VALUES ($1, $2, $3)
	ON CONFLICT (owner, period) DO UPDATE SET grants = greatest(s.grants, excluded.grants)`
)

// Of returns what the runs of an owner have used in a period, see [store.Day].
func (x *Spending) Of(ctx context.Context, owner, period string) (s store.Spending, err error) {
	err = x.store.read(ctx, func(r pgx.Rows) error {
		return r.Scan(&s.Tokens, &s.USD, &s.Turns, &s.Seconds, &s.Grants)
	}, sqlSpending, stored(owner), period)
	s.Amount = s.Plus(tapedeck.Amount{})
	return s, err
}

// Grant notes that the budget of a period was granted again n times in all. A smaller
// number than before changes nothing, so a repetition does no harm.
func (x *Spending) Grant(ctx context.Context, owner, period string, n int64) error {
	return x.store.submit(ctx, grant{owner, period, n}, rowSize)
}

// A grant is the task of a Grant.
type grant struct {
	owner, period string
	n             int64
}

func (t grant) do(w *writer) error {
	w.exec(sqlGrant, stored(t.owner), t.period, t.n)
	return nil
}

// charge adds to the spending of an owner, in the transaction of the append.
func (w *writer) charge(c store.Charge, ok bool) {
	if ok {
		w.exec(sqlCharge, stored(c.Owner), c.Periods[0], c.Periods[1], c.Tokens, c.USD, c.Turns, c.Seconds, int64(store.MaxCount))
	}
}
