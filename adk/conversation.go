package adk

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/adk/v2/session"
)

// A conversation is a session as ADK holds it: a copy of the log as of an offset, which
// AppendEvent brings forward.
type conversation struct {
	service *Service
	key     key
	log     string // the id of the Tapedeck session

	deltas deltas // text that is being streamed

	writing sync.Mutex // held during an append; guards the fields below it
	next    int64      // the events below this offset are known
	run     *run       // the open run; nil if there is none
	runs    map[string]bool
	calls   map[string]string // the newest item of each id of a function call
	used    map[string]bool   // ids of tool calls that the log has
	titled  bool
	stopped string // the invocation that a user has cancelled

	mu      sync.RWMutex // guards what ADK sees
	events  []*session.Event
	state   map[string]any
	updated time.Time
}

var (
	_ session.Session = (*conversation)(nil)
	_ session.State   = (*state)(nil)
	_ session.Events  = events(nil)
)

// ID returns the id of the session in ADK.
func (c *conversation) ID() string { return c.key.session }

// AppName returns the name of the app.
func (c *conversation) AppName() string { return c.key.app }

// UserID returns the id of the user.
func (c *conversation) UserID() string { return c.key.user }

// State returns the state of the session, with that of the app and of the user.
func (c *conversation) State() session.State { return (*state)(c) }

// Events returns the events that the copy has now.
func (c *conversation) Events() session.Events {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return events(c.events)
}

// LastUpdateTime returns the timestamp of the newest event. Without one, and in a list of
// sessions, it is the time of the log.
func (c *conversation) LastUpdateTime() time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.updated
}

// keep leaves out all events but the newest n, and all before a time. Zero values leave
// out nothing.
func (c *conversation) keep(n int, after time.Time) {
	if n > 0 && len(c.events) > n {
		c.events = c.events[len(c.events)-n:]
	}
	if !after.IsZero() {
		c.events = slices.DeleteFunc(slices.Clone(c.events), func(e *session.Event) bool { return e.Timestamp.Before(after) })
	}
}

// add adds a stored event to the copy. Temporary state is in the copy only.
func (c *conversation) add(event, stored *session.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.state, event.Actions.StateDelta)
	c.events = append(c.events, stored)
	c.updated = event.Timestamp
}

// withoutTemp returns the event without temporary state: the same one if it has none.
func withoutTemp(event *session.Event) *session.Event {
	isTemp := func(k string, _ any) bool { return strings.HasPrefix(k, session.KeyPrefixTemp) }
	kept := maps.Clone(event.Actions.StateDelta)
	maps.DeleteFunc(kept, isTemp)
	if len(kept) == len(event.Actions.StateDelta) {
		return event
	}
	stored := *event
	stored.Actions.StateDelta = kept
	return &stored
}

type events []*session.Event

// All yields the events, oldest first.
func (e events) All() iter.Seq[*session.Event] { return slices.Values(e) }

// Len returns the number of events.
func (e events) Len() int { return len(e) }

// At returns an event, nil if there is none at i.
func (e events) At(i int) *session.Event {
	if i < 0 || i >= len(e) {
		return nil
	}
	return e[i]
}

// A state is the state of a conversation.
type state conversation

// Get returns a value, or session.ErrStateKeyNotExist.
func (s *state) Get(key string) (any, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, ok := s.state[key]
	if !ok {
		return nil, session.ErrStateKeyNotExist
	}
	return v, nil
}

// Set changes the copy only, as in ADK: what is to be stored is in the state delta of an
// event.
func (s *state) Set(key string, value any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state[key] = value
	return nil
}

// All yields the keys and values as of now.
func (s *state) All() iter.Seq2[string, any] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.All(maps.Clone(s.state))
}
