package deck

import (
	"context"
	"errors"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/shards"
	"github.com/tapedeck/tapedeck/store/tail"
)

// openDatabases opens several databases as one store. It takes their leases in their order,
// which is the same for every server, so that two servers do not wait for each other.
func (d *Deck) openDatabases(ctx context.Context) (s storage, err error) {
	o := *d.options.Postgres
	o.OnLost, o.Measure = d.loseOnce, d.measure()
	numbers := new(shards.Numbers)
	open, err := d.openParts(ctx, o.With(d.options.MorePostgres...), numbers)
	if err != nil {
		return s, err
	}
	list := make([]shards.Shard, len(open))
	for i, db := range open {
		list[i] = shardOf(db)
		if err := db.FinishPart(ctx); err != nil {
			return s, errors.Join(err, closeAll(open))
		}
	}
	joined := shards.New(list, numbers)
	recent := tail.New(tailBytes)
	s.store, s.index, s.ready = recent.Layer(joined), joined.Index(), joined.Ready
	s.figures = func() api.StoreStats { return storeStats("postgres", joined.Figures(), recent) }
	s.owns = ownsAll(open)
	s.subs, s.pushes, s.diagrams, s.totals, s.spending = joined.Subscriptions(), joined.PushConfigs(), joined.Workflows(), joined, joined.Spending()
	return s, nil
}

// openParts opens each database of a store of several.
func (d *Deck) openParts(ctx context.Context, all []postgres.Options, numbers *shards.Numbers) (open []*postgres.Store, err error) {
	cluster, err := postgres.Arrange(ctx, all)
	if err != nil {
		return nil, err
	}
	if cluster == "" {
		cluster = tapedeck.NewID("clu_")
	}
	for i, o := range all {
		o.Logger = d.options.Logger.With("database", i+1)
		if i > 0 {
			o.Name = "" // a name is for one store: connections of an owner are ended by it
		}
		o.NextGen, o.Part = numbers.Of(i), &store.Part{Cluster: cluster, Number: i + 1, Of: len(all)}
		db, err := postgres.Open(ctx, o)
		if err != nil {
			return nil, errors.Join(err, closeAll(open))
		}
		open = append(open, db)
	}
	return open, nil
}

// ownsAll returns what asks each database.
func ownsAll(open []*postgres.Store) func(context.Context) bool {
	return func(ctx context.Context) bool {
		return !slices.ContainsFunc(open, func(db *postgres.Store) bool { return !db.Owns(ctx) })
	}
}

func shardOf(db *postgres.Store) shards.Shard {
	index, _ := db.OpenIndex() // it was opened with the database
	return shards.Shard{
		Store: db, Index: index, Subscriptions: db.Subscriptions(), PushConfigs: db.PushConfigs(),
		Workflows: db.Workflows(), Spending: db.Spending(), Writable: db.Writable, Figures: db.Figures,
	}
}

func closeAll(open []*postgres.Store) error {
	var errs []error
	for _, db := range open {
		errs = append(errs, db.Close())
	}
	return errors.Join(errs...)
}

// loseOnce reports that another server has taken over: the first of several databases is
// enough to end this one.
func (d *Deck) loseOnce(err error) {
	select {
	case d.lost <- err:
	default:
	}
}
