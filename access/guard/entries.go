package guard

import (
	"context"
	"maps"
	"sync"

	"github.com/tapedeck/tapedeck"
)

// maxEntries is how many sessions are remembered.
const maxEntries = 50_000

// entries remembers what decides about the access to sessions, so that an append does not
// read the catalogue. Commits keep it up to date.
type entries struct {
	mu      sync.RWMutex
	byID    map[string]*tapedeck.Session // only id, kind, gen, owner, labels and parent are set
	loading map[string]*load
}

// A load is a read of the catalogue that is in progress.
type load struct {
	readers int
	stale   bool // a commit has changed the session meanwhile
}

func newEntries() *entries {
	return &entries{byID: map[string]*tapedeck.Session{}, loading: map[string]*load{}}
}

// entry returns what decides about the access to a session.
func (g *Guard) entry(ctx context.Context, id string) (tapedeck.Session, error) {
	e := g.entries
	e.mu.RLock()
	known := e.byID[id]
	e.mu.RUnlock()
	if known != nil {
		return *known, nil
	}
	l := e.begin(id)
	s, err := g.store.Head(ctx, id)
	kept := kept(&s)
	e.end(id, l, kept, err)
	return *kept, err
}

// kept returns the members of a session that are remembered.
func kept(s *tapedeck.Session) *tapedeck.Session {
	return &tapedeck.Session{ID: s.ID, Kind: s.Kind, Gen: s.Gen, Owner: s.Owner, Labels: s.Labels, Parent: s.Parent}
}

func (e *entries) begin(id string) *load {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.loading[id]
	if l == nil {
		l = &load{}
		e.loading[id] = l
	}
	l.readers++
	return l
}

func (e *entries) end(id string, l *load, s *tapedeck.Session, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.readers--; l.readers == 0 {
		delete(e.loading, id)
	}
	if err != nil || l.stale {
		return
	}
	for other := range e.byID { // any one; the order of a map is random
		if len(e.byID) < maxEntries {
			break
		}
		delete(e.byID, other)
	}
	e.byID[id] = s
}

// committed takes over what has changed. The writer of the store waits for it.
func (e *entries) committed(commits []tapedeck.Commit) {
	e.mu.RLock()
	changed := false
	for i := range commits {
		changed = changed || e.changes(&commits[i])
	}
	e.mu.RUnlock()
	if !changed {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range commits {
		s := &commits[i].Session
		if l := e.loading[s.ID]; l != nil {
			l.stale = true
		}
		if e.byID[s.ID] != nil {
			delete(e.byID, s.ID)
		}
	}
}

// changes reports whether a commit changes what is remembered or is being read.
func (e *entries) changes(c *tapedeck.Commit) bool {
	s := &c.Session
	if e.loading[s.ID] != nil {
		return true
	}
	known := e.byID[s.ID]
	return known != nil && (c.Gone || known.Gen != s.Gen || known.Owner != s.Owner || known.Parent != s.Parent || !maps.Equal(known.Labels, s.Labels))
}
