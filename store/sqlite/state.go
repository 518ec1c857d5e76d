package sqlite

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
	spans   []span // the records it inherits, oldest first
	forks   int64  // sessions forked from it that are kept
	gone    bool   // deleted, and kept only for its forks
	touched int64  // when its TTL began to run, in milliseconds, as far as the database knows
}

// A span is a range of records that some session holds.
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

// deadline returns when v expires if its TTL began to run at touched, in
// milliseconds, and whether it ever does.
func (v *view) deadline(touched int64) (at int64, mortal bool) {
	if !v.Expires.IsZero() {
		at, mortal = v.Expires.UnixMilli(), true
	}
	if v.TTL > 0 {
		d := touched + int64(v.TTL/time.Millisecond)
		if v.TTL%time.Millisecond > 0 {
			d++ // a session may expire late, but not early
		}
		if !mortal || d < at {
			at, mortal = d, true
		}
	}
	return at, mortal
}

// A state is what the writer knows of a session. Its view is ahead of the
// published one while a group is being written.
type state struct {
	view
	streamSeq string
	producers map[string]store.ProducerState // those that were asked for

	published atomic.Pointer[view] // what readers see; nil until the first commit
	listed    bool                 // readers find it; one that they do not find any more is not used again

	written    view // what the database holds, as of the transaction under way
	writtenSeq string

	// Of the group under way:
	dirty   bool              // it touches the session
	notify  bool              // who listens to commits must hear of it
	removed bool              // it deletes the session's row
	renewed bool              // it restarts the session's TTL
	erased  bool              // it erases some of its records
	records []tapedeck.Record // it appends them
	pos     []int64           // and these are their positions

	recent *list.Element
}

// maxProducers bounds the producers that are kept in memory for one session.
const maxProducers = 1024

func (st *state) remember(id string, a store.ProducerState) {
	if st.producers == nil || len(st.producers) >= maxProducers {
		st.producers = make(map[string]store.ProducerState)
	}
	st.producers[id] = a
}

// sameEntry reports whether the row of a session, apart from its head, is the
// same for a and b.
func sameEntry(a, b *view) bool {
	return a.Title == b.Title && a.Owner == b.Owner && a.Agent == b.Agent && a.Status == b.Status &&
		a.Closed == b.Closed && slices.Equal(a.Runs, b.Runs) && (a.Runs == nil) == (b.Runs == nil) &&
		maps.Equal(a.Labels, b.Labels) && (a.Labels == nil) == (b.Labels == nil) &&
		a.LastJump == b.LastJump && a.Copy == b.Copy && sameFlag(a.Resumable, b.Resumable)
}

func sameFlag(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }

// A cache holds the states of the sessions that were written to last. It belongs
// to the writer.
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

// drop forgets st. Another state may already be there under the same id.
func (c *cache) drop(st *state) {
	if c.states[st.ID] == st {
		delete(c.states, st.ID)
	}
	c.recent.Remove(st.recent)
}

// oldest returns a state to drop, nil while there is room.
func (c *cache) oldest() *state {
	if c.recent.Len() <= c.max {
		return nil
	}
	return c.recent.Back().Value.(*state)
}
