package projection

import (
	"context"
	"sync"

	"github.com/tapedeck/tapedeck"
)

// A watch knows which sessions have something to do in the background.
type watch struct {
	mu   sync.Mutex
	due  map[string]tapedeck.Session
	gone []tapedeck.Session
	bell chan struct{}
}

func newWatch() watch {
	return watch{due: map[string]tapedeck.Session{}, bell: make(chan struct{}, 1)}
}

// maxGone bounds the deleted sessions that are remembered. The checkpoints of
// those beyond it stay, and take room.
const maxGone = 10_000

// Watch hears of commits: [Projections.Run] then puts checkpoints away while
// sessions grow, and removes those of deleted ones. It returns at once.
func (p *Projections) Watch(commits []tapedeck.Commit) {
	for i := range commits {
		c := &commits[i]
		if c.Session.Kind != tapedeck.KindSession {
			continue
		}
		w, head := &p.watch, c.Session.Head
		crossed := head/p.step() > (head-int64(len(c.Records)))/p.step()
		if !c.Gone && !crossed || c.Gone && head < p.options.Every {
			continue
		}
		w.mu.Lock()
		if c.Gone && len(w.gone) < maxGone {
			w.gone = append(w.gone, c.Session)
		} else {
			w.due[c.Session.ID] = c.Session
		}
		w.mu.Unlock()
		select {
		case w.bell <- struct{}{}:
		default:
		}
	}
}

// Run does what [Projections.Watch] has heard of, until ctx is done.
func (p *Projections) Run(ctx context.Context) {
	if err := p.sweep(ctx); err != nil && ctx.Err() == nil {
		p.options.Logger.Warn("checkpoints of deleted sessions could not be removed", "error", err)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.watch.bell:
		}
		p.watch.mu.Lock()
		due, gone := p.watch.due, p.watch.gone
		p.watch.due, p.watch.gone = map[string]tapedeck.Session{}, nil
		p.watch.mu.Unlock()
		for i := range gone {
			p.background(ctx, &gone[i], p.remove(ctx, &gone[i]))
		}
		for _, s := range due {
			p.background(ctx, &s, p.Advance(ctx, s.ID))
		}
	}
}

func (p *Projections) background(ctx context.Context, s *tapedeck.Session, err error) {
	switch tapedeck.KindOf(err) {
	case tapedeck.NotFound, tapedeck.Gone:
		return
	}
	if err != nil && ctx.Err() == nil {
		p.options.Logger.Warn("the views of a session could not be brought forward", "session", s.ID, "error", err)
	}
}
