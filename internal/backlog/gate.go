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
	// large is the size above which a record must pass the gate. For a smaller record
	// only its size is checked.
	large = 1 << 20

	// budget is how much memory all large records together may take. A record that is
	// larger passes alone.
	budget = 64 << 20

	// maxHold is how long a reader may hold a large record while others wait.
	maxHold = time.Second
)

// processGate bounds the records of the process, in all protocols.
var processGate = newGate(budget)

// A gate bounds the memory of the large records that are being written. Readers of the
// same record share its bytes. Other readers wait in line without a record in memory.
type gate struct {
	budget int

	// reading is a lock. One goroutine at a time reads a large record, compares it with
	// the shared ones and counts it. The others wait without a record.
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

// A Pass allows a large record to be in memory. A small record has a nil Pass.
type Pass struct {
	gate   *gate
	shared *shared
}

// Leave ends the pass: the record must not be in memory any more.
func (p *Pass) Leave() {
	if p != nil && p.shared != nil {
		p.gate.leave(p.shared)
		p.shared = nil
	}
}

// overdue reports whether others wait and the pass is older than maxHold.
func (p *Pass) overdue() bool {
	return p != nil && p.shared != nil && p.gate.crowded.Load() && time.Since(p.shared.since) > maxHold
}

// Large reports whether the page needs a pass. A store returns a record that is larger
// than a page alone.
func Large(page []tapedeck.Record) bool { return len(page) == 1 && len(page[0].Data) > large }

// Enter waits until the large record of a page may be in memory, and returns the page as
// it is then. The caller must not keep its own page, because nothing may keep the record
// in memory while Enter waits. The caller ends the returned Pass with [Records.Hold] or
// [Pass.Leave]. Where stalled clients are not noticed, see [hangup.Notices], Enter does
// not wait.
func Enter(ctx context.Context, page []tapedeck.Record, again func(offset int64) (tapedeck.Record, error)) ([]tapedeck.Record, *Pass, error) {
	if !hangup.Notices(ctx) {
		return page, nil, nil
	}
	rec := page[0]
	rec, pass, err := processGate.enter(ctx, rec, again)
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

// admit admits rec, or reads it if it has no data. If there is no space, it returns a
// waiter and no record. The caller has an element in g.reading.
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

// claim returns the shared record for rec, or a waiter if there is no space. It releases
// what the caller has reserved.
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

// tryClaim returns a shared record with the offset and size of rec that is not in
// others; the caller compares the bytes. If there is none, it returns a new one for rec,
// or a waiter if there is no space.
func (g *gate) tryClaim(rec tapedeck.Record, reserved int, others []*shared) (*shared, *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held -= reserved
	now, size := time.Now(), len(rec.Data)
	for _, s := range g.shared {
		old := len(g.queue) > 0 && now.Sub(s.since) > maxHold
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

// grant admits the first waiters, as far as there is space.
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
		g.held -= w.size // it was granted although ctx had ended, or just before
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
