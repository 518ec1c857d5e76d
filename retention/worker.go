package retention

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
)

// Options of a worker. All but Every and Pause are required.
type Options struct {
	Policy Policy
	Store  Lister
	Logger *slog.Logger

	// Delete deletes a session if it is as it was seen. It reports whether it has.
	Delete func(ctx context.Context, c Candidate) (bool, error)

	Every time.Duration // between two passes; 0 for ten minutes
	Pause time.Duration // between two deletions, so that writers come first; 0 for 20 ms
}

// A Worker applies a policy in the background.
type Worker struct {
	options Options

	mu    sync.Mutex
	check map[string]bool // owners that may have too many sessions
}

// everyOwner is after how many passes all owners are looked at again: the owner of a
// session can change.
const everyOwner = 144

// New returns a worker. Register its [Worker.Observer], and call [Worker.Run].
func New(o Options) *Worker {
	if o.Every <= 0 {
		o.Every = 10 * time.Minute
	}
	if o.Pause <= 0 {
		o.Pause = 20 * time.Millisecond
	}
	return &Worker{options: o, check: map[string]bool{}}
}

// Observer returns the observer of the store. It notes whose sessions become more.
func (w *Worker) Observer() tapedeck.Observer {
	return tapedeck.Observer{Committed: func(commits []tapedeck.Commit) {
		for i := range commits {
			c := &commits[i]
			if c.Gone || len(c.Records) == 0 || c.Records[0].Offset != c.Session.ForkedAt || w.options.Policy.of(c.Session.Owner).Sessions == 0 {
				continue
			}
			w.note(c.Session.Owner)
		}
	}}
}

func (w *Worker) note(owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check[owner] = true
}

// Run makes a pass at once and then regularly, until ctx is done.
func (w *Worker) Run(ctx context.Context) {
	tick := time.NewTicker(w.options.Every)
	defer tick.Stop()
	for n := 0; ; n++ {
		if err := w.pass(ctx, n%everyOwner == 0); err != nil && ctx.Err() == nil {
			w.options.Logger.Warn("the retention could not finish its work; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pass deletes what the policy says. all looks at all owners.
func (w *Worker) pass(ctx context.Context, all bool) error {
	if err := w.delete(ctx, w.options.Policy.Old(ctx, w.options.Store, time.Now())); err != nil {
		return err
	}
	if all && w.limitsSessions() {
		if err := Owners(ctx, w.options.Store, w.note); err != nil {
			return err
		}
	}
	for _, owner := range w.owners() {
		if err := w.delete(ctx, w.options.Policy.Surplus(ctx, w.options.Store, owner)); err != nil {
			w.note(owner)
			return err
		}
	}
	return nil
}

func (w *Worker) limitsSessions() bool {
	for _, r := range w.options.Policy.Owners {
		if r.Sessions > 0 {
			return true
		}
	}
	return w.options.Policy.Sessions > 0
}

// owners returns the owners that are to be looked at, and forgets them.
func (w *Worker) owners() (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for owner := range w.check {
		out = append(out, owner)
	}
	clear(w.check)
	return out
}

// delete deletes candidates, one after the other. One that cannot be deleted is left for
// the next pass.
func (w *Worker) delete(ctx context.Context, candidates iter.Seq2[Candidate, error]) error {
	var failed error
	for c, err := range candidates {
		if err != nil {
			return err
		}
		gone, err := w.options.Delete(ctx, c)
		if gone {
			w.options.Logger.Info("the retention has deleted a session", "session", c.Session.ID, "reason", c.Reason)
		}
		if err != nil && failed == nil && tapedeck.KindOf(err) != tapedeck.NotFound {
			failed = err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(w.options.Pause):
		}
	}
	return failed
}
