package shards

import (
	"context"

	"github.com/tapedeck/tapedeck/store"
)

// Spending is what the runs of owners have used in all shards: each shard counts what its
// sessions use, in the transaction of the append. The suite in store/storetest is its
// contract.
type Spending struct{ store *Store }

// Spending returns what the runs of owners have used.
func (s *Store) Spending() *Spending { return &Spending{s} }

// Of returns what the runs of an owner have used in a period. It needs all shards: a budget
// cannot be kept with a part of what was used.
func (x *Spending) Of(ctx context.Context, owner, period string) (sum store.Spending, err error) {
	s := x.store
	parts := make([]store.Spending, len(s.shards))
	err = s.every(ctx, "it is not known what the owner has used", func(i int) (err error) {
		parts[i], err = s.shards[i].Spending.Of(ctx, owner, period)
		return err
	})
	if err != nil {
		return store.Spending{}, err
	}
	for _, p := range parts {
		sum.Amount = sum.Plus(p.Amount)
		sum.Grants = max(sum.Grants, p.Grants)
	}
	return sum, nil
}

// Grant notes that the budget of a period was granted again n times in all.
func (x *Spending) Grant(ctx context.Context, owner, period string, n int64) error {
	s := x.store
	return s.shards[Home("owner/"+owner, len(s.shards))].Spending.Grant(ctx, owner, period, n)
}
