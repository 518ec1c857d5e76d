package postgres

import (
	"container/list"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A view is a session as of one commit. Views are shared and never change.
type view struct {
	tapedeck.Session
	spans   []span     // the records that it inherits, oldest first
	forks   int64      // number of its forks that exist
	gone    bool       // it was deleted, and exists only for its forks
	link    store.Link // what the next record is chained to
	touched int64      // when its TTL began to run, in milliseconds, as the database has it; see deadlines
}

// A span is a range of records that the session gen holds itself.
type span struct{ gen, from, to int64 }

// upTo returns the spans of the records of v below offset at.
func (v *view) upTo(at int64) []span {
	var out []span
	for _, s := range append(slices.Clip(v.spans), span{v.Gen, v.ForkedAt, v.Head}) {
		s.to = min(s.to, at)
		if s.from < s.to {
			out = append(out, s)
		}
	}
	return out
}

// deadline returns when v expires if its TTL began to run at touched, both in
// milliseconds, and whether it expires at all.
func (v *view) deadline(touched int64) (at int64, expires bool) {
	if !v.Expires.IsZero() {
		at, expires = v.Expires.UnixMilli(), true
	}
	if v.TTL > 0 {
		d := touched + int64(v.TTL/time.Millisecond)
		if v.TTL%time.Millisecond > 0 {
			d++ // a session may expire late, but not early
		}
		if !expires || d < at {
			at, expires = d, true
		}
	}
	return at, expires
}

// A state is the writer's knowledge of a session. While a group is being written,
// its view is ahead of the published one.
type state struct {
	view
	streamSeq string
	producers map[string]store.ProducerState // the producers that appended lately
	complete  bool                           // producers has all of them

	published atomic.Pointer[view] // the view that readers see; nil until the first commit
	listed    bool                 // Store.index has it; a state that was removed from there is not used again

	written    view // the rows in the database, as of the current transaction
	writtenSeq string

	// What the current group does to the session:
	dirty    bool                           // it changes the session
	notify   bool                           // observers must be notified
	removed  bool                           // it deletes the session's row
	renewed  bool                           // it restarts the session's TTL
	erased   bool                           // it erases payloads of the session
	records  []tapedeck.Record              // the records that it appends
	accepted map[string]store.ProducerState // what it accepts from producers

	recent *list.Element
}

// maxProducers limits the producers of one session that are kept in memory.
const maxProducers = 1024

func (st *state) remember(id string, a store.ProducerState) {
	if st.producers == nil || len(st.producers) >= maxProducers {
		st.complete = st.complete && len(st.producers) == 0
		st.producers = make(map[string]store.ProducerState)
	}
	st.producers[id] = a
}

// sameEntry reports whether a and b have the same row in the table sessions.
func sameEntry(a, b *view) bool {
	return a.Title == b.Title && a.Owner == b.Owner && a.Agent == b.Agent && a.Status == b.Status &&
		a.Closed == b.Closed && slices.Equal(a.Runs, b.Runs) && (a.Runs == nil) == (b.Runs == nil) &&
		slices.Equal(a.Inputs, b.Inputs) && slices.Equal(a.Waiting, b.Waiting) &&
		maps.Equal(a.Labels, b.Labels) && (a.Labels == nil) == (b.Labels == nil) &&
		a.Active.Equal(b.Active) && a.LastJump == b.LastJump && a.Copy == b.Copy && sameFlag(a.Resumable, b.Resumable) &&
		a.Budget == b.Budget && a.Spent == b.Spent // a change replaces what they point to
}

func sameFlag(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }

// A cache holds the states of the sessions with the newest writes. Only the writer
// uses it.
type cache struct {
	max    int
	states map[string]*state
	recent list.List // newest first
}

func newCache(max int) *cache { return &cache{max: max, states: make(map[string]*state)} }

func (c *cache) get(id string) *state {
	st := c.states[id]
	if st != nil {
		c.recent.MoveToFront(st.recent)
	}
	return st
}

func (c *cache) add(st *state) {
	st.recent = c.recent.PushFront(st)
	c.states[st.ID] = st
}

// drop removes st. The cache may already have another state of the same id.
func (c *cache) drop(st *state) {
	if c.states[st.ID] == st {
		delete(c.states, st.ID)
	}
	c.recent.Remove(st.recent)
}

// oldest returns the state to drop next, nil if the cache is not too large.
func (c *cache) oldest() *state {
	if c.recent.Len() <= c.max {
		return nil
	}
	return c.recent.Back().Value.(*state)
}
