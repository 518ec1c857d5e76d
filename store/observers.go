package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
)

// Observers are the observers of a store, in the order of their registration. The
// zero value has none. The methods may be called by several goroutines.
type Observers struct {
	list atomic.Pointer[[]tapedeck.Observer] // replaced as a whole, so that a commit takes no lock
	mu   sync.Mutex                          // held while the list is replaced
}

// Add registers an observer.
func (o *Observers) Add(observer tapedeck.Observer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := append(slices.Clip(o.all()), observer)
	o.list.Store(&list)
}

func (o *Observers) all() []tapedeck.Observer {
	if list := o.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Committed notifies the observers of a commit. A store calls it when readers can
// see the commit and before the append returns, one call at a time.
func (o *Observers) Committed(commits []tapedeck.Commit) {
	for _, observer := range o.all() {
		if observer.Committed != nil {
			observer.Committed(commits)
		}
	}
}

// Erasure returns the notice of an erasure that was committed. The store must
// deliver it.
func (o *Observers) Erasure(session string, forks []string) *Notice {
	n := &Notice{session: session, forks: forks}
	for _, observer := range o.all() {
		if observer.Erased != nil {
			n.pending = append(n.pending, observer.Erased)
		}
	}
	return n
}

// A Notice notifies observers of one erasure.
type Notice struct {
	session string
	forks   []string
	pending []func(ctx context.Context, session string, forks []string) error // those that have not succeeded
}

// Deliver calls each observer that has not succeeded yet, and returns the errors
// of those that fail again. A store calls it until there is no error. It must not
// be called by two goroutines at once.
func (n *Notice) Deliver(ctx context.Context) error {
	var errs []error
	n.pending = slices.DeleteFunc(n.pending, func(erased func(context.Context, string, []string) error) bool {
		err := erased(ctx, n.session, slices.Clone(n.forks))
		errs = append(errs, err)
		return err == nil
	})
	return errors.Join(errs...)
}

// Pauses between the attempts of [Retry].
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// Retry calls attempt until it reports success, at once and then after pauses
// that grow from a second to a minute. It reports false if ctx ended before.
func Retry(ctx context.Context, attempt func() bool) bool {
	for pause := firstPause; !attempt(); pause = min(2*pause, longestPause) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
	return true
}
