package projection

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// An indexState is the index of a session in two parts.
type indexState struct {
	whole indexPart // up to a boundary
	tail  indexPart // from there on
	next  int64     // the offset of the event that it needs next

	names names // in the events of the tail
}

// An indexPart is the index of a part of a log, with the numbers of its events in the form of
// the six channels.
type indexPart struct {
	view.Index
	channels view.ChannelCounts
}

func (x *indexState) apply(e *tapedeck.Event) {
	if e.Offset >= x.next {
		x.tail.channels.Count(x.tail.From, e)
		x.tail.Apply(e)
		x.names.apply(e)
		x.next = e.Offset + 1
	}
}

// close joins the tail to the whole at a boundary, and begins a new tail.
func (x *indexState) close(n int64) {
	x.whole.channels = x.counts()
	x.whole.Append(x.tail.Index)
	x.whole.Keyframes = append(x.whole.Keyframes, n)
	x.tail, x.names = x.whole.next(), names{}
}

// next returns a part without events that follows x.
func (x *indexPart) next() indexPart { return indexPart{Index: x.Next()} }

// index returns a copy of both parts as one.
func (x *indexState) index() view.Index {
	all := x.whole.Clone()
	all.Append(x.tail.Index)
	return all
}

// counts returns the numbers of both parts as one.
func (x *indexState) counts() view.ChannelCounts {
	return x.whole.channels.Join(x.whole.From, x.tail.channels, x.tail.From)
}

// piecesPerWhole is after how many pieces of an index the whole is saved.
const piecesPerWhole = 10

func (p *Projections) wholeStep() int64 { return p.options.Every * piecesPerWhole }

// Index returns the replay index of a session's log, including the events that it
// shares with its parent.
func (p *Projections) Index(ctx context.Context, session string, at int64) (view.Index, error) {
	s, at, err := p.session(ctx, session, at)
	if err != nil {
		return view.Index{}, err
	}
	f, err := p.acquire(ctx, &s) // so that no piece is saved while its events are erased
	if err != nil {
		return view.Index{}, err
	}
	defer p.release(f)
	x, err := p.index(ctx, f, &s, at)
	if err == nil {
		err = p.same(ctx, &s)
	}
	return x, err
}

func (p *Projections) index(ctx context.Context, f *folded, s *tapedeck.Session, at int64) (view.Index, error) {
	x, err := p.foldIndex(ctx, f, s, at)
	if err != nil {
		return view.Index{}, err
	}
	return x.index(), nil
}

// foldIndex folds the index up to an offset. The caller may use it until it releases f.
func (p *Projections) foldIndex(ctx context.Context, f *folded, s *tapedeck.Session, at int64) (*indexState, error) {
	x := f.folds.index
	if x == nil || x.next > at {
		var err error
		if x, err = p.nearestIndex(ctx, s, at); err != nil {
			return nil, err
		}
	}
	if at == s.Head {
		f.folds.index = nil // a failure leaves it half folded
	}
	if err := p.forward(ctx, s, view.NewTimeline(nil), folds{index: x}, at); err != nil {
		return nil, err
	}
	if at == s.Head {
		f.folds.index = x
	}
	return x, nil
}

// A storedIndex is the JSON of a part of an index. The index in it has no methods: package
// json reads a type that decodes itself twice as often, and an index can be large.
type storedIndex struct {
	Index    plainIndex         `json:"index"`
	Channels view.ChannelCounts `json:"channels"`
}

type plainIndex view.Index

// stored returns the part for a checkpoint.
func (x *indexPart) stored() storedIndex { return storedIndex{plainIndex(x.Index), x.channels} }

// part returns the part of a checkpoint.
func (s *storedIndex) part() indexPart { return indexPart{view.Index(s.Index), s.Channels} }

// nearestIndex returns the index up to the newest offset at which saved pieces give
// it.
func (p *Projections) nearestIndex(ctx context.Context, s *tapedeck.Session, at int64) (*indexState, error) {
	x := new(indexState)
	for k := at / p.wholeStep() * p.wholeStep(); k > 0; k -= p.wholeStep() {
		holder := p.holder(ctx, s, k)
		var whole storedIndex
		found, err := p.load(ctx, &holder, wholes, k, &whole)
		if err != nil {
			return nil, err
		}
		if found && whole.Index.From == 0 && whole.Index.At == k {
			x.whole = whole.part()
			x.next, x.tail = k, x.whole.next()
			break
		}
	}
	return x, p.addPieces(ctx, s, x, at)
}

// addPieces adds the saved pieces that follow, up to the first missing one.
func (p *Projections) addPieces(ctx context.Context, s *tapedeck.Session, x *indexState, at int64) error {
	for to := x.next + p.options.Every; to <= at; to += p.options.Every {
		holder := p.holder(ctx, s, to)
		var piece storedIndex
		found, err := p.load(ctx, &holder, indexes, to, &piece)
		if err != nil || !found || piece.Index.From != x.next || piece.Index.At != to {
			return err
		}
		x.tail, x.next = piece.part(), to
		x.close(to)
	}
	return nil
}

// indexFrom returns the index of the events from an offset on. Up to the next
// boundary it reads the log, because no piece begins between boundaries.
func (p *Projections) indexFrom(ctx context.Context, s *tapedeck.Session, from, at int64) (view.Index, error) {
	x := &indexState{next: from}
	if from == 0 {
		var err error
		if x, err = p.nearestIndex(ctx, s, at); err != nil {
			return view.Index{}, err
		}
	}
	for x.next < at {
		to := min(at, p.nextBoundary(x.next))
		for e, err := range p.raw(ctx, s, x.next, to) {
			if err != nil {
				return view.Index{}, err
			}
			x.apply(&e)
		}
		x.close(to)
		x.next = to
		if err := p.addPieces(ctx, s, x, at); err != nil {
			return view.Index{}, err
		}
	}
	return x.whole.Index, nil
}
