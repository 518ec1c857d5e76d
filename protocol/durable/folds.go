package durable

import "sync"

// folds keeps projections that remember something, each for who reads on from
// where it stopped: the next page, or the next event of a live session. One
// that is not found is made anew and reads what it must know of the past.
type folds struct {
	mu   sync.Mutex
	kept [64]keptFold
	next int
}

type keptFold struct {
	gen   int64
	view  string
	n     int64  // it has seen all events below
	epoch string // and none that were erased before it, see [reading.epoch]
	pr    projection
}

// maxWeight is the largest projection that is kept.
const maxWeight = 1 << 20

// take returns a projection for the events from n on. Nobody else has it.
func (f *folds) take(rd *reading, n int64, from source, epoch string) projection {
	if rd.view == "" {
		return envelopes{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.kept {
		k := &f.kept[i]
		if k.pr != nil && k.n == n && k.gen == rd.session.Gen && k.view == rd.view && k.epoch == epoch {
			pr := k.pr
			*k = keptFold{}
			return pr
		}
	}
	return views[rd.view].begin(from, rd.id, n)
}

// keep keeps a projection that has seen all events below n, unless some were
// erased since they were read.
func (f *folds) keep(rd *reading, n int64, pr projection, epoch string) {
	if w := pr.weight(); w == 0 || w > maxWeight || epoch != rd.epoch {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept[f.next] = keptFold{rd.session.Gen, rd.view, n, epoch, pr}
	f.next = (f.next + 1) % len(f.kept)
}
