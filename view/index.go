package view

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// An Index is what a player of a session needs to find its way: where
// invocations are and how they went, what happened at which offset, where nothing
// happened for a while, and how much happened when. It is of the raw log: what
// was taken back is in it like all else.
//
// The index of a range of offsets, and that of the range which follows it, join
// to that of both, see [Index.Append]; so it can be kept in pieces. The zero value
// is that of no events. Its JSON is the whole of it, from which it can go on.
//
// A copy can go on by itself, and then leaves the index alone that it was copied
// from; but what that one does while it goes on shows in copies.
type Index struct {
	From int64 `json:"from"` // the offset of the first event
	At   int64 `json:"at"`   // the events from From up to this offset are in it

	Events     int64 `json:"events"`
	FirstAt    *Time `json:"first_at,omitempty"` // when the first event was
	LastAt     *Time `json:"last_at,omitempty"`  // and the last one
	DurationMS int64 `json:"duration_ms"`        // between these two

	Invocations []IndexedInvocation `json:"invocations"`       // by first offset; at most the first 10,000
	Earlier     int64               `json:"earlier,omitempty"` // how many invocations were before these, and are not here; see [Index.Limited]
	Runs        int64               `json:"runs"`              // how often a run began
	Forks       []IndexedFork       `json:"forks,omitempty"`   // where the events of a parent end, oldest first
	Markers     []Marker            `json:"markers"`           // by offset
	Marked      map[string]int64    `json:"marked"`            // how many there are of each kind
	Thinned     map[string]uint     `json:"thinned,omitempty"` // kinds of which there are more than 2,000: of each 2^n offsets, counted from 0, the first marker is left
	Gaps        []Gap               `json:"gaps"`              // by offset; the 1,000 longest
	GapsLeftOut int64               `json:"gaps_left_out,omitempty"`
	Density     Density             `json:"density"`
	Keyframes   []int64             `json:"keyframes,omitempty"` // offsets at which a snapshot is at hand; whoever keeps them fills it in

	cache *indexCache
}

// An IndexedInvocation is a request to an agent and all that it caused.
type IndexedInvocation struct {
	Invocation string          `json:"invocation"`
	Thread     string          `json:"thread"`
	First      int64           `json:"first"` // the offset of its first event
	Last       int64           `json:"last"`  // and of its newest
	StartedAt  Time            `json:"started_at"`
	EndedAt    *Time           `json:"ended_at,omitempty"` // absent while its run is open
	Status     tapedeck.Status `json:"status,omitempty"`   // of its run; absent if none has begun
	Title      string          `json:"title,omitempty"`    // how the user's text begins: at most 80 runes, on one line
}

// An IndexedFork is where a session was forked.
type IndexedFork struct {
	Offset int64 `json:"offset"`
	At     Time  `json:"at"`
}

// MaxInvocations is the most invocations in an [Index].
const MaxInvocations = 10_000

// An indexCache is what follows from the lists of an index.
type indexCache struct {
	of       *Index           // a copy of an index has to make its own
	places   map[string]int   // of invocations
	kept     map[string]int   // markers, by kind
	last     map[string]int64 // the offset of the newest marker that is kept, by kind
	shortest int              // of the gaps; -1 if it has to be looked for
}

// MarshalJSON encodes the index, its lists never as null.
func (x Index) MarshalJSON() ([]byte, error) {
	type plain Index
	x.Invocations, x.Markers = notNil(x.Invocations), notNil(x.Markers)
	x.Gaps, x.Density.Counts = notNil(x.Gaps), notNil(x.Density.Counts)
	if x.Marked == nil {
		x.Marked = map[string]int64{}
	}
	return json.Marshal(plain(x))
}

// UnmarshalJSON replaces the index.
func (x *Index) UnmarshalJSON(b []byte) error {
	type plain Index
	var p plain
	err := json.Unmarshal(b, &p)
	*x = Index(p)
	return err
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Limited returns a copy with at most so many invocations, the newest; so many
// markers of each kind, thinned; and so many gaps, the longest. It says how many it
// leaves out.
func (x *Index) Limited(limit int) Index {
	y := x.Clone()
	y.prepare()
	if n := len(y.Invocations) - limit; n > 0 {
		y.Invocations, y.Earlier = y.Invocations[n:], int64(n)
	}
	for _, kind := range slices.Collect(maps.Keys(y.cache.kept)) {
		for y.cache.kept[kind] > limit {
			y.thin(kind, y.Thinned[kind]+1)
		}
	}
	if n := len(y.Gaps) - limit; n > 0 {
		longest := slices.Clone(y.Gaps)
		slices.SortStableFunc(longest, func(a, b Gap) int { return cmp.Compare(b.MS, a.MS) })
		y.Gaps = longest[:limit]
		slices.SortFunc(y.Gaps, func(a, b Gap) int { return cmp.Compare(a.After, b.After) })
		y.GapsLeftOut += int64(n)
	}
	if step := 1 + (len(y.Keyframes)-1)/limit; step > 1 {
		kept := y.Keyframes[:0]
		for i := step - 1; i < len(y.Keyframes); i += step {
			kept = append(kept, y.Keyframes[i])
		}
		y.Keyframes = kept
	}
	y.cache = nil // it can only be looked at
	return y
}

// Clone returns a copy that goes on by itself, and leaves x alone.
func (x *Index) Clone() Index {
	y := *x
	y.prepare()
	y.cache = nil // it is of this place
	return y
}

// prepare makes x ready to be changed.
func (x *Index) prepare() {
	if x.cache != nil && x.cache.of == x {
		return
	}
	x.cache = &indexCache{of: x, places: map[string]int{}, kept: map[string]int{}, last: map[string]int64{}, shortest: -1}
	x.Invocations, x.Markers, x.Gaps = slices.Clone(x.Invocations), slices.Clone(x.Markers), slices.Clone(x.Gaps)
	x.Forks, x.Keyframes, x.Density.Counts = slices.Clone(x.Forks), slices.Clone(x.Keyframes), slices.Clone(x.Density.Counts)
	x.Marked, x.Thinned = maps.Clone(x.Marked), maps.Clone(x.Thinned)
	for i := range x.Invocations {
		x.cache.places[x.Invocations[i].Invocation] = i
	}
	for i := range x.Markers {
		m := &x.Markers[i]
		x.cache.kept[m.Kind]++
		x.cache.last[m.Kind] = m.Offset
	}
}

// Apply folds one raw event. Events come in the order of their offsets; one that
// was folded before is passed over.
func (x *Index) Apply(e *tapedeck.Event) {
	if e.Offset < x.At {
		return
	}
	x.prepare()
	at := Time{e.Time}
	x.reach(e.Offset, at)
	x.At, x.LastAt = e.Offset+1, &at
	x.Events++
	x.setDuration()
	x.Density.add(e.Time.UnixMilli(), 1)
	var v *IndexedInvocation
	if e.Invocation != "" {
		v = x.invocation(e)
	}
	if fold, ok := indexFolds[e.Type]; ok {
		fold(x, e, v)
	}
}

// reach notes when the next event is.
func (x *Index) reach(offset int64, at Time) {
	if x.FirstAt == nil {
		x.From, x.FirstAt = offset, &at
		return
	}
	if ms := at.Sub(x.LastAt.Time).Milliseconds(); ms > minGapMS {
		x.addGap(Gap{After: x.At - 1, From: *x.LastAt, To: at, MS: ms})
	}
}

func (x *Index) setDuration() {
	x.DurationMS = max(0, x.LastAt.Sub(x.FirstAt.Time).Milliseconds())
}

// invocation returns the entry of the invocation of e, nil if there are too many.
func (x *Index) invocation(e *tapedeck.Event) *IndexedInvocation {
	i, ok := x.cache.places[e.Invocation]
	if !ok {
		if i = x.addInvocation(IndexedInvocation{
			Invocation: e.Invocation, Thread: e.ThreadName(), First: e.Offset, StartedAt: Time{e.Time},
		}); i < 0 {
			return nil
		}
	}
	v := &x.Invocations[i]
	v.Last = e.Offset
	return v
}

// addInvocation returns its place, -1 if there is none.
func (x *Index) addInvocation(v IndexedInvocation) int {
	i := len(x.Invocations)
	if i >= MaxInvocations {
		return -1
	}
	x.Invocations = append(x.Invocations, v)
	x.cache.places[v.Invocation] = i
	return i
}

// Append adds the index of the offsets which follow. An index of others is passed
// over.
func (x *Index) Append(next Index) {
	if next.Events == 0 || next.From < x.At {
		return
	}
	x.prepare()
	x.reach(next.From, *next.FirstAt)
	x.At, x.LastAt = next.At, next.LastAt
	x.Events += next.Events
	x.Runs += next.Runs
	x.setDuration()
	for i, n := range next.Density.Counts {
		if n > 0 {
			x.Density.addSlot(next.Density.slotTime(i), next.Density.WidthMS, n)
		}
	}
	x.joinInvocations(&next)
	x.joinMarkers(&next)
	for _, g := range next.Gaps {
		x.addGap(g)
	}
	x.GapsLeftOut += next.GapsLeftOut
	x.Forks = append(x.Forks, next.Forks...)
	x.Keyframes = append(x.Keyframes, next.Keyframes...)
}

func (x *Index) joinInvocations(next *Index) {
	if len(next.Forks) > 0 { // it has ended what was open here, of which next does not know
		x.interrupt(next.Forks[0].At)
	}
	for _, v := range next.Invocations {
		i, ok := x.cache.places[v.Invocation]
		if !ok {
			x.addInvocation(v)
			continue
		}
		old := &x.Invocations[i]
		old.Last = v.Last
		if v.Status != "" {
			old.Status, old.EndedAt = v.Status, v.EndedAt
		}
		if old.Title == "" {
			old.Title = v.Title
		}
	}
}

// interrupt ends all that is open.
func (x *Index) interrupt(at Time) {
	for i := range x.Invocations {
		if v := &x.Invocations[i]; v.Status == tapedeck.StatusRunning {
			v.Status, v.EndedAt = tapedeck.StatusInterrupted, &at
		}
	}
}
