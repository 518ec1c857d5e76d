package durable

import (
	"sync"

	"github.com/tapedeck/tapedeck/protocol/durable/views"
)

// folds keeps the folds that remember something, each for the reader that continues
// where it stopped: with the next page, or the next event of a live session. If there
// is none, a new fold reads what it must know of the past.
type folds struct {
	mu   sync.Mutex
	kept [64]keptFold
	next int
}

type keptFold struct {
	gen   int64
	view  string
	n     int64  // the fold has seen all events below n
	epoch string // the epoch in which the fold read its events, see [reading.epoch]; take needs the same epoch
	fold  views.Fold
}

// maxFold is the largest fold that is kept, in bytes.
const maxFold = 1 << 20

// take returns a fold for the events from n on. No other reader has it. It is nil if rd
// reads no view.
func (f *folds) take(rd *reading, n int64, from views.Source, epoch string) views.Fold {
	if rd.view == "" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.kept {
		k := &f.kept[i]
		if k.fold != nil && k.n == n && k.gen == rd.session.Gen && k.view == rd.view && k.epoch == epoch {
			fold := k.fold
			*k = keptFold{}
			return fold
		}
	}
	kind, _ := views.Find(rd.view) // parseTarget has checked the name
	return kind.New(from, rd.id, n)
}

// keep keeps a fold that has seen all events below n, unless events were erased since
// they were read.
func (f *folds) keep(rd *reading, n int64, fold views.Fold, epoch string) {
	if fold == nil || fold.Size() == 0 || fold.Size() > maxFold || epoch != rd.epoch {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept[f.next] = keptFold{rd.session.Gen, rd.view, n, epoch, fold}
	f.next = (f.next + 1) % len(f.kept)
}
