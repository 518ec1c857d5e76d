package backlog

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/hangup"
)

const (
	// large is the size above which a record passes the gate. Smaller ones cost
	// no more than the look at their size.
	large = 1 << 20

	// budget is how much memory all large records together may take. One that is
	// larger than that passes alone.
	budget = 64 << 20

	// turn is how long a reader may hold a large record while others wait.
	turn = time.Second
)

// all bounds the records of the process, whichever door they go out by.
var all = newGate(budget)

// A gate bounds the memory of large records that are being written. Readers of the
// same record share its bytes. The others wait in line, and hold nothing meanwhile.
type gate struct {
	budget int

	// reading has one element while a record that was read is not yet counted: it
	// is compared with those that are shared, which takes longer than to read it.
	reading chan struct{}

	mu      sync.Mutex
	held    int
	shared  []*shared
	queue   []*waiter
	crowded atomic.Bool // the queue is not empty
}

func newGate(budget int) *gate { return &gate{budget: budget, reading: make(chan struct{}, 1)} }

// shared is a record in memory.
type shared struct {
	offset  int64
	data    []byte
	readers int // guarded by gate.mu
	since   time.Time
}

type waiter struct {
	size    int
	granted chan struct{} // closed when size counts as held
}

// A Pass is that a large record may be in memory. The nil Pass is that of a small
// one.
type Pass struct {
	gate   *gate
	shared *shared
}

// Leave gives up the pass.
func (p *Pass) Leave() {
	if p != nil && p.shared != nil {
		p.gate.leave(p.shared)
		p.shared = nil
	}
}

// overdue reports whether others have waited for longer than a turn.
func (p *Pass) overdue() bool {
	return p != nil && p.shared != nil && p.gate.crowded.Load() && time.Since(p.shared.since) > turn
}

// Large reports whether the page needs a pass. A store gives a record that is
// larger than a page by itself.
func Large(page []tapedeck.Record) bool { return len(page) == 1 && len(page[0].Data) > large }

// Enter waits until the large record of a page may be in memory, and returns it as
// it is then. The caller holds nothing else of the page, and gives up the pass by
// [Records.Hold] or [Pass.Leave]. Where a reader that is stuck is not noticed (see
// [hangup.Stalled]) nobody waits.
func Enter(ctx context.Context, page []tapedeck.Record, again func(offset int64) (tapedeck.Record, error)) ([]tapedeck.Record, *Pass, error) {
	if !hangup.Notices(ctx) {
		return page, nil, nil
	}
	rec := page[0]
	rec, pass, err := all.enter(ctx, rec, again)
	if err != nil {
		return nil, nil, err
	}
	return []tapedeck.Record{rec}, pass, nil
}

func (g *gate) enter(ctx context.Context, rec tapedeck.Record, again func(int64) (tapedeck.Record, error)) (tapedeck.Record, *Pass, error) {
	offset, reserved := rec.Offset, 0
	for {
		select {
		case g.reading <- struct{}{}:
		default:
			rec = tapedeck.Record{}
			select {
			case g.reading <- struct{}{}:
			case <-ctx.Done():
				g.release(reserved)
				return rec, nil, ctx.Err()
			}
		}
		var s *shared
		var w *waiter
		var err error
		rec, s, w, err = g.admit(rec, offset, reserved, again)
		<-g.reading
		switch {
		case err != nil || w == nil && s == nil:
			return rec, nil, err
		case s != nil:
			return rec, &Pass{g, s}, nil
		}
		if err := g.wait(ctx, w); err != nil {
			return rec, nil, err
		}
		reserved = w.size
	}
}

// admit is enter for one that need not wait to read. It returns how to wait for
// room if there is none, and then holds nothing of the record.
func (g *gate) admit(rec tapedeck.Record, offset int64, reserved int, again func(int64) (tapedeck.Record, error)) (tapedeck.Record, *shared, *waiter, error) {
	if rec.Data == nil {
		var err error
		if rec, err = again(offset); err == nil && rec.Offset != offset {
			err = errChanged
		}
		if err != nil || len(rec.Data) <= large {
			g.release(reserved)
			return rec, nil, nil, err
		}
	}
	s, w := g.claim(rec, reserved)
	if s == nil {
		return tapedeck.Record{}, nil, w, nil
	}
	rec.Data = s.data
	return rec, s, nil, nil
}

// claim returns the memory that rec may take, or how to wait for it. What the
// caller has reserved is given back.
func (g *gate) claim(rec tapedeck.Record, reserved int) (*shared, *waiter) {
	var others []*shared
	for {
		s, w := g.tryClaim(rec, reserved, others)
		if s == nil || &s.data[0] == &rec.Data[0] || bytes.Equal(s.data, rec.Data) {
			return s, w
		}
		g.leave(s)
		others, reserved = append(others, s), 0
	}
}

// tryClaim returns a record that may be the same as rec unless it is among others,
// else that of rec if there is room.
func (g *gate) tryClaim(rec tapedeck.Record, reserved int, others []*shared) (*shared, *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held -= reserved
	now, size := time.Now(), len(rec.Data)
	for _, s := range g.shared {
		old := len(g.queue) > 0 && now.Sub(s.since) > turn
		if s.offset == rec.Offset && len(s.data) == size && !old && !slices.Contains(others, s) {
			s.readers++
			g.grant()
			return s, nil
		}
	}
	if g.fits(size) && (reserved > 0 || len(g.queue) == 0) {
		s := &shared{offset: rec.Offset, data: rec.Data, readers: 1, since: now}
		g.shared = append(g.shared, s)
		g.held += size
		g.grant()
		return s, nil
	}
	w := &waiter{size, make(chan struct{})}
	g.queue = append(g.queue, w)
	g.grant()
	return nil, w
}

func (g *gate) fits(size int) bool { return g.held == 0 || g.held+size <= g.budget }

// grant lets in those at the head of the line for whom there is room.
func (g *gate) grant() {
	for len(g.queue) > 0 && g.fits(g.queue[0].size) {
		g.held += g.queue[0].size
		close(g.queue[0].granted)
		g.queue = slices.Delete(g.queue, 0, 1)
	}
	g.crowded.Store(len(g.queue) > 0)
}

func (g *gate) wait(ctx context.Context, w *waiter) error {
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.queue, w); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	} else {
		g.held -= w.size // it was granted in the last moment
	}
	g.grant()
	return ctx.Err()
}

func (g *gate) release(size int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held -= size
	g.grant()
}

func (g *gate) leave(s *shared) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.readers--; s.readers > 0 {
		return
	}
	g.shared = slices.Delete(g.shared, slices.Index(g.shared, s), slices.Index(g.shared, s)+1)
	g.held -= len(s.data)
	g.grant()
}
