package projection

import (
	"context"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A watch collects the work that [Projections.Run] does in the background.
type watch struct {
	mu       sync.Mutex
	due      map[string]tapedeck.Session // sessions to fold
	stale    map[string]bool             // ids of sessions whose totals may be old
	scanDue  bool                        // the totals of any session may be old
	failing  bool                        // the newest totals could not be saved
	gone     []tapedeck.Session          // deleted sessions
	sweepDue bool                        // the list is incomplete, at the start or after more than maxGone deletions: sweep all checkpoints
	wake     chan struct{}

	removing chan struct{} // has an element while the checkpoints of deleted sessions are removed
}

func newWatch() watch {
	return watch{due: map[string]tapedeck.Session{}, stale: map[string]bool{}, scanDue: true, sweepDue: true, wake: make(chan struct{}, 1), removing: make(chan struct{}, 1)}
}

// maxGone is the largest number of deleted sessions that a watch remembers.
const maxGone = 10_000

// Watch receives commits, and returns at once. [Projections.Run] then saves
// checkpoints and totals of the sessions that grow, and removes the checkpoints of
// deleted ones.
func (p *Projections) Watch(commits []tapedeck.Commit) {
	for i := range commits {
		c := &commits[i]
		if c.Session.Kind != tapedeck.KindSession {
			continue
		}
		w, head := &p.watch, c.Session.Head
		crossed := head/p.step() > (head-int64(len(c.Records)))/p.step()
		stale := p.options.Totals != nil && !c.Gone && isStale(&c.Session)
		if !c.Gone && !crossed && !stale || c.Gone && head < p.options.Every {
			continue
		}
		w.mu.Lock()
		if stale {
			w.stale[c.Session.ID] = true
		}
		switch {
		case !c.Gone && !crossed:
		case !c.Gone:
			w.due[c.Session.ID] = c.Session
		case len(w.gone) < maxGone:
			w.gone = append(w.gone, c.Session)
		default:
			w.sweepDue = true
		}
		w.mu.Unlock()
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// Observer returns an observer of the store: it keeps the checkpoints up to date,
// and removes what was derived from erased events.
func (p *Projections) Observer() tapedeck.Observer {
	return tapedeck.Observer{
		Committed: p.Watch,
		Erased: func(ctx context.Context, session string, forks []string) error {
			return p.Forget(ctx, append([]string{session}, forks...)...)
		},
	}
}

// Run does the work that follows from the commits which [Projections.Watch] gets,
// until ctx is done.
func (p *Projections) Run(ctx context.Context) {
	var rest <-chan time.Time // receives when totals may be made again; nil for now
	for {
		if err := p.removeGone(ctx); err != nil && ctx.Err() == nil {
			p.options.Logger.Warn("checkpoints of deleted sessions could not be removed", "error", err)
		}
		p.watch.mu.Lock()
		due := p.watch.due
		p.watch.due = map[string]tapedeck.Session{}
		p.watch.mu.Unlock()
		for _, s := range due {
			p.background(ctx, &s, p.Advance(ctx, s.ID))
		}
		if rest == nil && p.updateTotals(ctx) {
			rest = time.After(totalsEvery)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.watch.wake:
		case <-rest:
			rest = nil
		}
	}
}

// removeGone removes the checkpoints of deleted sessions. An active fold may still
// save one of them, so it waits for all active folds first.
func (p *Projections) removeGone(ctx context.Context) error {
	w := &p.watch
	select {
	case w.removing <- struct{}{}:
		defer func() { <-w.removing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	w.mu.Lock()
	gone, sweep := w.gone, w.sweepDue
	w.gone, w.sweepDue = nil, false
	w.mu.Unlock()
	if len(gone) == 0 && !sweep {
		return nil
	}
	err := p.waitForFolds(ctx)
	if err == nil && sweep {
		err = p.sweep(ctx)
	}
	for i := range gone {
		if err == nil {
			err = p.remove(ctx, &gone[i])
		}
	}
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sweepDue = true // the next call looks at all checkpoints
	}
	return err
}

func (p *Projections) background(ctx context.Context, s *tapedeck.Session, err error) {
	switch tapedeck.KindOf(err) {
	case tapedeck.NotFound, tapedeck.Gone:
		return
	}
	if err != nil && ctx.Err() == nil {
		p.options.Logger.Warn("the views of a session could not be advanced", "session", s.ID, "error", err)
	}
}
