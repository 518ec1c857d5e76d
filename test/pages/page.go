package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/view"
	"github.com/tapedeck/tapedeck/view/viewtest"
)

// A page is a log with its snapshots.
type page struct {
	Seed   uint64           `json:"seed"`
	Events []tapedeck.Event `json:"events"`
	Steps  []step           `json:"steps"` // one for each snapshot, in the order of their offsets
}

// A step turns a snapshot into the next one. It has only what differs, because
// whole snapshots at every offset would be a thousand times as long as the log.
type step struct {
	Set   map[string]json.RawMessage `json:"set,omitempty"`   // members that differ; null for those that are now absent
	Lists map[string]change          `json:"lists,omitempty"` // members that are lists before and after
}

// A change turns a list into the next one.
type change struct {
	Len   int                     `json:"len"`
	Items map[int]json.RawMessage `json:"items,omitempty"` // by index
}

// newPage returns the encoded page of a seed.
func newPage(seed uint64) ([]byte, error) {
	p := page{Seed: seed, Events: viewtest.Log(seed, viewtest.Varied(seed))}
	var jumps []tapedeck.Jump
	for i := range p.Events {
		if j, ok := p.Events[i].Jump(); ok {
			jumps = append(jumps, j)
		}
	}
	f := folder{events: p.Events, timeline: view.NewTimeline(jumps)}
	var last snapshot
	for _, at := range offsets(seed, len(p.Events)) {
		next, err := f.snapshot(at)
		if err != nil {
			return nil, err
		}
		p.Steps = append(p.Steps, last.stepTo(next))
		last = next
	}
	return json.Marshal(p)
}

// offsets returns every offset of a short log. Of a long one, whose snapshots
// are long, it returns every offset in a stretch, some others, and the head.
func offsets(seed uint64, n int) []int {
	if n <= 100 {
		all := make([]int, n)
		for i := range all {
			all[i] = i + 1
		}
		return all
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	some := []int{n}
	for range 4 {
		some = append(some, 1+rng.IntN(n))
	}
	for from := 1 + rng.IntN(n-20); len(some) < 25; from++ {
		some = append(some, from)
	}
	slices.Sort(some)
	return slices.Compact(some)
}

// A folder folds a log as of one offset after another.
type folder struct {
	events   []tapedeck.Event
	timeline *view.Timeline
	fold     *view.Conversation
	folded   int // events below this offset
}

// snapshot returns the snapshot as of an offset, which must not decrease. Like a
// reader that follows the log, it folds on from the offset before, and from the
// start after each jump, because a jump changes which events are active.
func (f *folder) snapshot(at int) (snapshot, error) {
	jumped := slices.ContainsFunc(f.events[f.folded:at], func(e tapedeck.Event) bool {
		_, ok := e.Jump()
		return ok
	})
	if f.fold == nil || jumped {
		f.fold, f.folded = new(view.Conversation), 0
		f.fold.Keep()
	}
	f.fold.UseTimeline(f.timeline, int64(at))
	for ; f.folded < at; f.folded++ {
		f.fold.Apply(&f.events[f.folded])
	}
	now := f.fold.Snapshot()
	b, err := json.Marshal(now.Exact())
	if err != nil {
		return nil, err
	}
	return parts(b), nil
}

// A snapshot has the members of an encoded snapshot: each in one part, and lists
// in a part for each item.
type snapshot map[string]member

type member struct {
	whole  json.RawMessage
	isList bool
	items  []json.RawMessage
}

func parts(b []byte) snapshot {
	s := snapshot{}
	o := jsonobj.Read(b)
	for name, raw, ok := o.Next(); ok; name, raw, ok = o.Next() {
		m := member{whole: raw}
		if raw[0] == '[' {
			m.isList = true
			for rest := raw[1 : len(raw)-1]; len(rest) > 0; {
				n := jsonobj.ValueLen(rest)
				m.items = append(m.items, rest[:n])
				rest = bytes.TrimPrefix(rest[n:], []byte(","))
			}
		}
		s[string(name)] = m
	}
	return s
}

func (s snapshot) stepTo(next snapshot) step {
	d := step{Set: map[string]json.RawMessage{}, Lists: map[string]change{}}
	for name := range s {
		if _, ok := next[name]; !ok {
			d.Set[name] = json.RawMessage("null")
		}
	}
	for name, m := range next {
		old, ok := s[name]
		switch {
		case bytes.Equal(old.whole, m.whole):
		case ok && old.isList && m.isList:
			d.Lists[name] = old.changeTo(m)
		default:
			d.Set[name] = m.whole
		}
	}
	return d
}

func (m member) changeTo(next member) change {
	c := change{Len: len(next.items), Items: map[int]json.RawMessage{}}
	for i, item := range next.items {
		if i >= len(m.items) || !bytes.Equal(item, m.items[i]) {
			c.Items[i] = item
		}
	}
	return c
}
