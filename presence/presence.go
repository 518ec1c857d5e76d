// Package presence knows which users are in a session at this moment. It keeps
// them in memory, and only as long as their clients report them. It appends no
// events to the log; the engine does, for sessions that ask for it.
package presence

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
)

// DefaultTimeout is the default time after which a user without a report counts as
// absent.
const DefaultTimeout = time.Minute

// Limits of a [Tracker].
const (
	maxSessions = 10_000
	maxPeople   = 256
	maxCursor   = 4 << 10 // bytes
)

// A Tracker knows who is in which session. Its methods may be called by several
// goroutines.
type Tracker struct {
	after   time.Duration
	onLeave func(session string, p payload.Presence)

	mu       sync.Mutex
	sessions map[string]*sessionState
}

// sessionState has the users of one session and those who watch them.
type sessionState struct {
	people   map[string]*userState
	watchers map[*Watcher]struct{}
}

type userState struct {
	payload.Presence
	until time.Time // absent without another report before this time
	timer *time.Timer
}

// New returns a tracker in which nobody is present. A user without a report for as
// long as after (0 for [DefaultTimeout]) has left: then the tracker calls onLeave,
// which may be nil.
func New(after time.Duration, onLeave func(session string, p payload.Presence)) *Tracker {
	if after <= 0 {
		after = DefaultTimeout
	}
	if onLeave == nil {
		onLeave = func(string, payload.Presence) {}
	}
	return &Tracker{after: after, onLeave: onLeave, sessions: make(map[string]*sessionState)}
}

// Note records where a user is, and returns the event that follows from it: a
// repeated join is a move, and a first move is a join. It returns false if nothing
// has changed: the user is still at the same place, or leaves without having
// joined.
func (t *Tracker) Note(n api.PresenceNote) (payload.Payload, bool, error) {
	if err := checkNote(&n); err != nil {
		return nil, false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.Action == api.PresenceLeave {
		u := t.remove(n.Session, n.User)
		if u == nil {
			return nil, false, nil
		}
		u.timer.Stop()
		return payload.PresenceLeft{Presence: u.Presence}, true, nil
	}
	return t.update(&n)
}

func checkNote(n *api.PresenceNote) error {
	if err := tapedeck.CheckID("the user", n.User); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]api.PresenceAction{api.PresenceJoin, api.PresenceMove, api.PresenceLeave}, n.Action):
		return tapedeck.Errorf(tapedeck.Invalid, "there is no action %q", n.Action).WithHint("the actions are join, move and leave")
	case len(n.Cursor) > maxCursor:
		return tapedeck.Errorf(tapedeck.TooLarge, "the cursor has %d bytes; at most %d are allowed", len(n.Cursor), maxCursor)
	case len(n.Cursor) > 0 && !json.Valid(n.Cursor):
		return tapedeck.Errorf(tapedeck.Invalid, "the cursor is not JSON")
	}
	return nil
}

// update records that a user is in a session.
func (t *Tracker) update(n *api.PresenceNote) (payload.Payload, bool, error) {
	now := time.Now()
	s, known := t.sessions[n.Session]
	if !known && len(t.sessions) >= maxSessions {
		return nil, false, tapedeck.Errorf(tapedeck.Unavailable, "people are in %d sessions already, which is the limit", len(t.sessions))
	}
	if !known {
		s = t.open(n.Session)
	}
	u, here := s.people[n.User]
	if !here {
		if len(s.people) >= maxPeople {
			return nil, false, tapedeck.Errorf(tapedeck.TooLarge, "%d people are in session %s already, which is the limit", len(s.people), n.Session)
		}
		u = &userState{Presence: payload.Presence{User: n.User, JoinedAt: formatTime(now)}}
		u.timer = time.AfterFunc(t.after, func() { t.expire(n.Session, u) })
		s.people[n.User] = u
	}
	moved := n.Cursor != nil && !bytes.Equal(u.Cursor, n.Cursor)
	if moved {
		u.Cursor = slices.Clone(n.Cursor) // the note is the caller's
	}
	u.LastSeen, u.until = formatTime(now), now.Add(t.after)
	u.timer.Reset(t.after)
	switch {
	case !here:
		s.notify()
		return payload.PresenceJoined{Presence: u.Presence}, true, nil
	case moved:
		s.notify()
		return payload.PresenceMoved{Presence: u.Presence}, true, nil
	}
	return nil, false, nil
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (t *Tracker) open(session string) *sessionState {
	s, ok := t.sessions[session]
	if !ok {
		s = &sessionState{people: make(map[string]*userState), watchers: make(map[*Watcher]struct{})}
		t.sessions[session] = s
	}
	return s
}

// remove removes a user from a session. It returns nil if the user is not there.
func (t *Tracker) remove(session, user string) *userState {
	s := t.sessions[session]
	if s == nil || s.people[user] == nil {
		return nil
	}
	u := s.people[user]
	delete(s.people, user)
	s.notify()
	t.dropIfUnused(session, s)
	return u
}

func (t *Tracker) dropIfUnused(session string, s *sessionState) {
	if len(s.people) == 0 && len(s.watchers) == 0 {
		delete(t.sessions, session)
	}
}

// expire removes a user without a recent report. A report may have arrived just
// when the timer fired.
func (t *Tracker) expire(session string, u *userState) {
	t.mu.Lock()
	s := t.sessions[session]
	late := s != nil && s.people[u.User] == u && !time.Now().Before(u.until)
	if late {
		t.remove(session, u.User)
	}
	t.mu.Unlock()
	if late {
		t.onLeave(session, u.Presence)
	}
}

// Present returns the users in a session, in the order in which they joined.
func (t *Tracker) Present(session string) []payload.Presence {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := []payload.Presence{}
	if s := t.sessions[session]; s != nil {
		for _, u := range s.people {
			all = append(all, u.Presence)
		}
	}
	slices.SortFunc(all, func(a, b payload.Presence) int {
		return cmp.Or(cmp.Compare(a.JoinedAt, b.JoinedAt), cmp.Compare(a.User, b.User))
	})
	return all
}

// Clear removes all users from a session, for example when it was deleted.
func (t *Tracker) Clear(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[session]
	if s == nil {
		return
	}
	for _, user := range slices.Collect(maps.Keys(s.people)) {
		t.remove(session, user).timer.Stop()
	}
}

func (s *sessionState) notify() {
	for w := range s.watchers {
		select {
		case w.c <- struct{}{}:
		default: // it was notified already
		}
	}
}

// A Watcher returns what has changed in a session since the last call. It compares
// two states: a user who joined and left between two calls does not appear.
type Watcher struct {
	tracker *Tracker
	session string
	c       chan struct{}
	shown   map[string]payload.Presence
}

// Watch watches a session. Call Stop when done.
func (t *Tracker) Watch(session string) api.PresenceWatcher {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &Watcher{tracker: t, session: session, c: make(chan struct{}, 1), shown: map[string]payload.Presence{}}
	t.open(session).watchers[w] = struct{}{}
	return w
}

// Changed returns a channel that receives when something has changed.
func (w *Watcher) Changed() <-chan struct{} { return w.c }

// Stop ends the watch.
func (w *Watcher) Stop() {
	w.tracker.mu.Lock()
	defer w.tracker.mu.Unlock()
	if s := w.tracker.sessions[w.session]; s != nil {
		delete(s.watchers, w)
		w.tracker.dropIfUnused(w.session, s)
	}
}

// Changes returns an event for each change. The first call returns a join for
// each user who is present.
func (w *Watcher) Changes() []tapedeck.Event {
	var changes []tapedeck.Event
	add := func(user string, p payload.Payload) {
		e := payload.NewEvent(p)
		e.Time, e.Channel, e.Actor = time.Now().UTC(), tapedeck.ChannelPresence, "user:"+user
		changes = append(changes, e)
	}
	now := map[string]payload.Presence{}
	for _, p := range w.tracker.Present(w.session) {
		now[p.User] = p
		switch was, known := w.shown[p.User]; {
		case !known || was.JoinedAt != p.JoinedAt:
			add(p.User, payload.PresenceJoined{Presence: p})
		case !bytes.Equal(was.Cursor, p.Cursor):
			add(p.User, payload.PresenceMoved{Presence: p})
		}
	}
	for _, user := range slices.Sorted(maps.Keys(w.shown)) {
		if _, here := now[user]; !here {
			add(user, payload.PresenceLeft{Presence: w.shown[user]})
		}
	}
	w.shown = now
	return changes
}
