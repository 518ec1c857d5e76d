package memory

import (
	"context"

	"github.com/tapedeck/tapedeck/store"
)

// Spending is what the runs of owners have used. The suite in store/storetest is its
// contract.
type Spending struct{ store *Store }

// Spending returns what the runs of owners have used.
func (m *Store) Spending() *Spending { return &Spending{m} }

// An ownerPeriod names a spending.
type ownerPeriod struct{ owner, period string }

// Of returns what the runs of an owner have used in a period, see [store.Day].
func (x *Spending) Of(ctx context.Context, owner, period string) (store.Spending, error) {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return store.Spending{}, err
	}
	defer unlock()
	return x.store.spending[ownerPeriod{owner, period}], nil
}

// Grant notes that the budget of a period was granted again n times in all. A smaller
// number than before changes nothing, so a repetition does no harm.
func (x *Spending) Grant(ctx context.Context, owner, period string, n int64) error {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := x.store.commit(); err != nil {
		return err
	}
	s := x.store.spending[ownerPeriod{owner, period}]
	s.Grants = max(s.Grants, n)
	x.store.spending[ownerPeriod{owner, period}] = s
	return nil
}

// charge adds to the spending of an owner. Requires m.mu.
func (m *Store) charge(c store.Charge, ok bool) {
	if !ok {
		return
	}
	for _, period := range c.Periods {
		s := m.spending[ownerPeriod{c.Owner, period}]
		s.Amount = s.Plus(c.Amount)
		m.spending[ownerPeriod{c.Owner, period}] = s
	}
}
