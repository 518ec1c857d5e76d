package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Spending is what the runs of owners have used, in the database of the store. The suite in
// store/storetest is its contract.
type Spending struct{ store *Store }

// Spending returns what the runs of owners have used.
func (s *Store) Spending() *Spending { return &Spending{s} }

const (
	sqlSpending = `SELECT tokens, usd, turns, seconds, grants FROM spending WHERE owner = ? AND period = ?`
	sqlCharge   = `INSERT INTO spending (owner, period, tokens, usd, turns, seconds) VALUES (?1, ?2, ?4, ?5, ?6, ?7), (?1, ?3, ?4, ?5, ?6, ?7)
	ON CONFLICT DO UPDATE SET tokens = min(tokens + excluded.tokens, ?8), usd = usd + excluded.usd,
		turns = min(turns + excluded.turns, ?8), seconds = seconds + excluded.seconds`
	sqlGrant = `INSERT INTO spending (owner, period, grants) VALUES (?1, ?2, ?3)
	ON CONFLICT DO UPDATE SET grants = max(grants, excluded.grants)`
)

// Of returns what the runs of an owner have used in a period, see [store.Day].
func (x *Spending) Of(ctx context.Context, owner, period string) (s store.Spending, err error) {
	err = x.store.read(ctx, func(c *conn) error {
		return c.query(func(row []driver.Value) error {
			s = store.Spending{Amount: tapedeck.Amount{Tokens: integer(row[0]), USD: decimal(row[1]), Turns: integer(row[2]), Seconds: decimal(row[3])}, Grants: integer(row[4])}
			return nil
		}, sqlSpending, owner, period)
	})
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
	if err := w.begin(); err != nil {
		return err
	}
	return w.conn.exec(sqlGrant, t.owner, t.period, t.n)
}

// charge adds to the spending of an owner, in the transaction of the append.
func (w *writer) charge(c store.Charge, ok bool) error {
	if !ok {
		return nil
	}
	return w.conn.exec(sqlCharge, c.Owner, c.Periods[0], c.Periods[1], c.Tokens, c.USD, c.Turns, c.Seconds, int64(store.MaxCount))
}

func decimal(v driver.Value) float64 {
	f, _ := v.(float64)
	return f
}
