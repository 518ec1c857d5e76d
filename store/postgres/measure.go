package postgres

import (
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck/store"
)

// costs are what the writer measures.
type costs struct {
	commit time.Duration // of the current group
	hot    atomic.Int64  // see [store.Figures]
}

// measured is write, and says what the group has cost.
func (w *writer) measured(group []*request) error {
	measure := w.store.options.Measure
	if measure == nil {
		return w.write(group)
	}
	began := time.Now()
	w.costs.commit = 0
	err := w.write(group)
	w.costs.hot.Store(int64(len(w.cache.states)))
	measure(store.Group{Requests: len(group), Took: time.Since(began), Commit: w.costs.commit, Failed: err != nil})
	return err
}

// timed adds the time of a commit to the time of the group.
func (w *writer) timed(began time.Time) { w.costs.commit += time.Since(began) }

// Figures describes the store as of now. PostgreSQL measures its log and its tables
// itself, so their sizes are 0 here. Figures.Hot is 0 without [Options.Measure].
func (s *Store) Figures() store.Figures {
	return store.Figures{Queue: s.writer.queue.Len(), Hot: int(s.writer.costs.hot.Load()), Damaged: s.damages.Count()}
}
