package shards

import (
	"context"
	"sync"
)

// A cleaner removes the pointers of sessions that were deleted or have expired. An observer
// of commits tells it of them, and it works later, because an observer must not call the
// store. A pointer that it does not remove leads nowhere and does no harm.
type cleaner struct {
	store *Store
	mu    sync.Mutex
	todo  map[string]bool
	wake  chan struct{}
	ctx   context.Context // until stop
	end   context.CancelFunc
	ended chan struct{}
}

// maxToClean limits the ids that wait.
const maxToClean = 1 << 16

func (c *cleaner) start(s *Store) {
	c.store, c.todo, c.wake, c.ended = s, map[string]bool{}, make(chan struct{}, 1), make(chan struct{})
	c.ctx, c.end = context.WithCancel(context.Background())
	go c.run()
}

func (c *cleaner) stop() {
	c.end()
	<-c.ended
}

// add notes ids whose pointers may be of no use any more.
func (c *cleaner) add(ids ...string) {
	c.mu.Lock()
	for _, id := range ids {
		if len(c.todo) < maxToClean {
			c.todo[id] = true
		}
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *cleaner) take() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := c.todo
	c.todo = map[string]bool{}
	return ids
}

func (c *cleaner) run() {
	defer close(c.ended)
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.wake:
		}
		for id := range c.take() {
			_ = c.store.dropPointer(c.ctx, id) // an error leaves the pointer
		}
	}
}

// dropPointer removes the pointer of an id if it leads nowhere.
func (s *Store) dropPointer(ctx context.Context, id string) error {
	defer s.ids.lock(id)()
	at, ok, err := s.pointer(ctx, id)
	if err != nil || !ok {
		return err
	}
	if exists, err := s.shards[at].has(ctx, id); err != nil || exists {
		return err
	}
	return s.unpoint(ctx, id)
}
