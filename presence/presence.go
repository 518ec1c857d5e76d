// Package presence knows who is in a session at this moment: in memory, and for
// as long as they say so. Nothing of it is an event of the log; who wants that
// appends one.
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

// After is how long somebody is thought to be there who says nothing more.
const After = time.Minute

// Limits of what is kept.
const (
	maxRooms  = 10_000
	maxGuests = 256
	maxCursor = 4 << 10 // bytes
)

// Rooms has a room for each session in which somebody is. Its methods may be
// called at the same time.
type Rooms struct {
	after time.Duration
	gone  func(session string, p payload.Presence)

	mu    sync.Mutex
	rooms map[string]*room
}

type room struct {
	guests   map[string]*guest
	watchers map[*Watcher]struct{}
}

type guest struct {
	payload.Presence
	until time.Time
	timer *time.Timer
}

// New returns empty rooms. gone is called after somebody has left without a
// word; it may be nil. After is how long that takes; 0 for [After].
func New(after time.Duration, gone func(session string, p payload.Presence)) *Rooms {
	if after <= 0 {
		after = After
	}
	if gone == nil {
		gone = func(string, payload.Presence) {}
	}
	return &Rooms{after: after, gone: gone, rooms: make(map[string]*room)}
}

// Note takes down where somebody is, and returns what that amounts to: who comes
// again has moved, who moves without having come has joined. It returns false if
// it amounts to nothing: somebody is still there, or leaves who was not.
func (r *Rooms) Note(n api.PresenceNote) (payload.Payload, bool, error) {
	if err := check(&n); err != nil {
		return nil, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.Action == api.PresenceLeave {
		g := r.remove(n.Session, n.User)
		if g == nil {
			return nil, false, nil
		}
		g.timer.Stop()
		return payload.PresenceLeft{Presence: g.Presence}, true, nil
	}
	return r.put(&n)
}

func check(n *api.PresenceNote) error {
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

// put takes down that somebody is there.
func (r *Rooms) put(n *api.PresenceNote) (payload.Payload, bool, error) {
	now := time.Now()
	rm, known := r.rooms[n.Session]
	if !known && len(r.rooms) >= maxRooms {
		return nil, false, tapedeck.Errorf(tapedeck.Unavailable, "people are in %d sessions already", len(r.rooms))
	}
	if !known {
		rm = r.open(n.Session)
	}
	g, here := rm.guests[n.User]
	if !here {
		if len(rm.guests) >= maxGuests {
			return nil, false, tapedeck.Errorf(tapedeck.TooLarge, "%d people are in session %s already", len(rm.guests), n.Session)
		}
		g = &guest{Presence: payload.Presence{User: n.User, JoinedAt: stamp(now)}}
		g.timer = time.AfterFunc(r.after, func() { r.expire(n.Session, g) })
		rm.guests[n.User] = g
	}
	moved := n.Cursor != nil && !bytes.Equal(g.Cursor, n.Cursor)
	if moved {
		g.Cursor = slices.Clone(n.Cursor) // the note is the caller's
	}
	g.LastSeen, g.until = stamp(now), now.Add(r.after)
	g.timer.Reset(r.after)
	switch {
	case !here:
		rm.ring()
		return payload.PresenceJoined{Presence: g.Presence}, true, nil
	case moved:
		rm.ring()
		return payload.PresenceMoved{Presence: g.Presence}, true, nil
	}
	return nil, false, nil
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (r *Rooms) open(session string) *room {
	rm, ok := r.rooms[session]
	if !ok {
		rm = &room{guests: make(map[string]*guest), watchers: make(map[*Watcher]struct{})}
		r.rooms[session] = rm
	}
	return rm
}

// remove takes somebody out of a room, and the room away with the last one.
func (r *Rooms) remove(session, user string) *guest {
	rm := r.rooms[session]
	if rm == nil || rm.guests[user] == nil {
		return nil
	}
	g := rm.guests[user]
	delete(rm.guests, user)
	rm.ring()
	r.tidy(session, rm)
	return g
}

func (r *Rooms) tidy(session string, rm *room) {
	if len(rm.guests) == 0 && len(rm.watchers) == 0 {
		delete(r.rooms, session)
	}
}

// expire removes somebody of whom nothing was heard. The timer may have fired
// just as they said something.
func (r *Rooms) expire(session string, g *guest) {
	r.mu.Lock()
	rm := r.rooms[session]
	late := rm != nil && rm.guests[g.User] == g && !time.Now().Before(g.until)
	if late {
		r.remove(session, g.User)
	}
	r.mu.Unlock()
	if late {
		r.gone(session, g.Presence)
	}
}

// Present returns who is in a session, who came first first.
func (r *Rooms) Present(session string) []payload.Presence {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []payload.Presence{}
	if rm := r.rooms[session]; rm != nil {
		for _, g := range rm.guests {
			all = append(all, g.Presence)
		}
	}
	slices.SortFunc(all, func(a, b payload.Presence) int {
		return cmp.Or(cmp.Compare(a.JoinedAt, b.JoinedAt), cmp.Compare(a.User, b.User))
	})
	return all
}

// Empty sends everybody out, as when the session was deleted.
func (r *Rooms) Empty(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rm := r.rooms[session]
	if rm == nil {
		return
	}
	for _, user := range slices.Collect(maps.Keys(rm.guests)) {
		r.remove(session, user).timer.Stop()
	}
}

func (rm *room) ring() {
	for w := range rm.watchers {
		select {
		case w.c <- struct{}{}:
		default: // it has been told already
		}
	}
}

// A Watcher tells what has changed in a room since it was asked last. One that
// asks seldom hears less, not late: what has come and gone in between it does not
// hear of.
type Watcher struct {
	rooms   *Rooms
	session string
	c       chan struct{}
	shown   map[string]payload.Presence
}

// Watch watches a room. The watcher must be stopped.
func (r *Rooms) Watch(session string) api.PresenceWatcher {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &Watcher{rooms: r, session: session, c: make(chan struct{}, 1), shown: map[string]payload.Presence{}}
	r.open(session).watchers[w] = struct{}{}
	return w
}

// Changed receives when something has changed.
func (w *Watcher) Changed() <-chan struct{} { return w.c }

// Stop ends the watch.
func (w *Watcher) Stop() {
	w.rooms.mu.Lock()
	defer w.rooms.mu.Unlock()
	if rm := w.rooms.rooms[w.session]; rm != nil {
		delete(rm.watchers, w)
		w.rooms.tidy(w.session, rm)
	}
}

// Changes returns what has changed; the first time, who is there.
func (w *Watcher) Changes() []tapedeck.Event {
	var changes []tapedeck.Event
	add := func(user string, p payload.Payload) {
		e := payload.NewEvent(p)
		e.Time, e.Channel, e.Actor = time.Now().UTC(), tapedeck.ChannelPresence, "user:"+user
		changes = append(changes, e)
	}
	now := map[string]payload.Presence{}
	for _, p := range w.rooms.Present(w.session) {
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
