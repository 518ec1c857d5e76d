package subscription

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A state is what the store has of a subscription.
type state struct {
	Config   config    `json:"config"`
	Explicit []string  `json:"explicit,omitempty"` // the streams of the list as it is now, sorted
	Created  time.Time `json:"created"`
	Base     string    `json:"base"` // URL of the server, for the callbacks of webhooks

	Generation int64 `json:"generation"`
	Wake       *wake `json:"wake,omitempty"` // nil: none

	Failures  int       `json:"failures,omitempty"` // attempts to deliver that failed since the last success
	Next      time.Time `json:"next,omitzero"`      // when to try again; zero for at once
	LastError string    `json:"last_error,omitempty"`
}

// A wake is the wake of a subscription that is not done yet.
type wake struct {
	ID     string    `json:"id"`
	Sent   bool      `json:"sent,omitempty"`   // it was delivered
	Holder string    `json:"holder,omitempty"` // the worker that has claimed it
	Until  time.Time `json:"until,omitzero"`   // end of the lease; zero if nobody has it
}

// A subscriber is a subscription in memory.
type subscriber struct {
	id string
	d  *Dispatcher

	config  config // it and what follows never change
	pattern glob
	filter  *filter // nil: everything

	signal chan struct{}      // has an element when run should look again
	cancel context.CancelFunc // ends run

	mu       sync.Mutex // guards the fields below
	state    state
	explicit map[string]bool
	pending  map[int64]*link // by Gen. What is not in it was acknowledged up to its head
	count    int64           // of links, for their order
	since    int64           // changes up to this number may be older than the subscription, or than a stream in its list
	deleted  bool
}

// A link is a session in which something is pending.
type link struct {
	session, path string
	gen           int64
	acked         int64
	head          int64
	hit           int64 // with a filter: the offset of the first trigger; otherwise acked
	order         int64
}

func (d *Dispatcher) newSubscriber(id string) *subscriber {
	return &subscriber{id: id, d: d, signal: make(chan struct{}, 1), pending: map[int64]*link{}, cancel: func() {}}
}

// configure sets what follows from the state and does not change.
func (s *subscriber) configure() {
	s.config = s.state.Config
	s.pattern, s.filter = parseGlob(s.config.Pattern), filters[s.config.Filter]
	s.setExplicit()
}

// setExplicit sets what follows from the list of streams. Requires s.mu.
func (s *subscriber) setExplicit() {
	s.explicit = make(map[string]bool, len(s.state.Explicit))
	for _, p := range s.state.Explicit {
		s.explicit[p] = true
	}
}

// watches reports whether a path belongs to the subscription.
func (s *subscriber) watches(path string) bool {
	s.mu.Lock()
	explicit := s.explicit[path]
	s.mu.Unlock()
	return explicit || s.matches(path)
}

// matches reports whether a path belongs to the subscription by its pattern. A filter
// selects nothing in streams.
func (s *subscriber) matches(path string) bool {
	return (s.filter == nil || strings.HasPrefix(path, sessions)) && s.pattern.match(path) && !s.d.isWakeStream(path)
}

// note notes that a session has changed.
func (s *subscriber) note(ctx context.Context, c *change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deleted {
		return nil
	}
	if l := s.pending[c.gen]; l != nil {
		l.head = c.head
		if c.erased && s.filter != nil {
			return s.search(ctx, l, l.acked)
		}
		return nil
	}
	// Nothing was pending, so everything before the change was acknowledged.
	from := c.first
	if c.number <= s.since {
		acked, _, err := s.d.options.Store.Acked(ctx, s.id, c.gen)
		if err != nil {
			return err
		}
		from = max(from, acked)
	}
	if from >= c.head {
		return nil
	}
	if s.filter != nil && from == c.first {
		ok, err := c.has(ctx, s.d.options.Log, s.filter)
		if err != nil || !ok {
			return err
		}
	}
	_, err := s.watch(ctx, c, from)
	return err
}

// watch adds a session to those with something pending, if there is something from an
// offset on. It reports whether there is. Requires s.mu.
func (s *subscriber) watch(ctx context.Context, c *change, from int64) (bool, error) {
	s.count++
	l := &link{session: c.session, path: c.path, gen: c.gen, acked: from, head: c.head, hit: from, order: s.count}
	s.pending[c.gen] = l
	if err := s.search(ctx, l, from); err != nil {
		delete(s.pending, c.gen)
		return false, err
	}
	if s.pending[c.gen] == nil {
		return false, nil
	}
	wakeUp(s.signal)
	return true, nil
}

// search finds the first trigger of a link from an offset on. It removes the link if
// there is none. Requires s.mu.
func (s *subscriber) search(ctx context.Context, l *link, from int64) error {
	l.hit = from
	if s.filter != nil {
		hit, ok, err := s.firstTrigger(ctx, l, from)
		if err != nil {
			return err
		}
		if !ok {
			from = l.head
		}
		l.hit = hit
	}
	if from >= l.head {
		delete(s.pending, l.gen)
	}
	return nil
}

func (s *subscriber) firstTrigger(ctx context.Context, l *link, from int64) (hit int64, ok bool, err error) {
	found, end, err := s.filter.find(ctx, s.d.options.Log, l.session, l.gen, from, l.head, 1)
	if isGone(err) {
		return 0, false, nil
	}
	return end - 1, len(found) > 0, err
}

// isGone reports whether err says that a session was deleted. If it was also recreated
// with fewer events, the offset is Invalid.
func isGone(err error) bool {
	switch tapedeck.KindOf(err) {
	case tapedeck.NotFound, tapedeck.Gone, tapedeck.Invalid:
		return true
	}
	return false
}

// forget removes a session that was deleted.
func (s *subscriber) forget(gen int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, gen)
}

// links returns the links in the order in which they became pending. Requires s.mu.
func (s *subscriber) links() []*link {
	return slices.SortedFunc(maps.Values(s.pending), func(a, b *link) int { return cmp.Compare(a.order, b.order) })
}

// save stores a state together with what it acknowledges, and takes it over. An
// interrupted request does not interrupt it, because then nobody would know whether it
// is stored. Requires s.mu.
func (s *subscriber) save(ctx context.Context, next *state, acked map[int64]int64) error {
	if s.deleted {
		return errNoSubscription(s.id)
	}
	b, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := s.d.options.Store.Put(context.WithoutCancel(ctx), s.id, b, acked); err != nil {
		return err
	}
	s.state = *next
	return nil
}

// expire ends a wake whose lease has ended. Requires s.mu.
func (s *subscriber) expire(now time.Time) {
	if w := s.state.Wake; w != nil && !w.Until.IsZero() && !now.Before(w.Until) {
		s.state.Wake = nil // the store learns it with the next wake; after a crash the lease ends again
	}
}

// acknowledge returns what follows for the links when sessions, by Gen, are acknowledged
// up to an offset. The returned function makes it so. Requires s.mu, also for that
// function.
func (s *subscriber) acknowledge(ctx context.Context, acked map[int64]int64) (apply func(), err error) {
	var after []link
	for gen, at := range acked {
		l := s.pending[gen]
		if l == nil {
			continue
		}
		next := *l
		next.acked = at
		if next.hit < at {
			next.hit = at
			if s.filter != nil && at < l.head {
				hit, ok, err := s.firstTrigger(ctx, l, at)
				if err != nil {
					return nil, err
				}
				if next.hit = hit; !ok {
					next.acked = l.head
				}
			}
		}
		after = append(after, next)
	}
	return func() {
		for _, l := range after {
			if l.acked >= l.head {
				delete(s.pending, l.gen)
				continue
			}
			s.count++
			l.order = s.count // so that one session does not keep the others waiting
			s.pending[l.gen] = &l
		}
	}, nil
}
