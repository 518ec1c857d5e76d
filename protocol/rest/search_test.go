package rest_test

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/search/indexer"
	"github.com/tapedeck/tapedeck/store/memory"
)

func (g *engine) Erase(ctx context.Context, e api.Erase) (api.Erased, error) {
	if e.All == (len(e.Events) > 0) {
		return api.Erased{}, tapedeck.Errorf(tapedeck.Invalid, "it does not say which events to erase")
	}
	if e.All {
		s, err := g.Head(ctx, e.Session)
		if err != nil {
			return api.Erased{}, err
		}
		e.Events = []tapedeck.OffsetRange{{From: s.ForkedAt, To: s.Head}}
	}
	n := int64(0)
	for _, r := range e.Events {
		n += r.To - r.From
	}
	receipt := payload.NewEvent(payload.SessionRedacted{Offsets: e.Events, Reason: e.Reason})
	done, err := g.Hub.Erase(ctx, tapedeck.Erasure{Session: e.Session, Ranges: e.Events, Events: []tapedeck.Event{receipt}})
	return api.Erased{Session: e.Session, Receipt: done.First, Events: n, Ranges: e.Events, Forks: done.Forks}, err
}

// newSearch returns an index of the store of an engine.
func newSearch(g *engine) *indexer.Index {
	x, err := g.Store.(*memory.Store).OpenIndex()
	if err != nil {
		panic(err) // an index in memory does not fail
	}
	return indexer.New(indexer.Options{Index: x, Log: g.Hub})
}
