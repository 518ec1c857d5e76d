package view

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// An Index says where things are in the log: the invocations and their status,
// markers for notable events, gaps in time, and the density of events. A player
// of the session navigates by it. It covers the raw log, so reverted events are
// in it.
//
// Positions are those in the recording, see [Clock].
//
// In Go, [Index.Append] joins the indexes of two adjacent ranges of offsets, so an
// index can be built and stored in pieces, each begun with [Index.Next]. In Go, the zero value is the index of no
// events, and a decoded index can fold on, because the JSON has the whole state.
//
// In Go, do not copy an Index that goes on folding, because the copy shares its lists;
// use [Index.Clone].
type Index struct {
	From int64 `json:"from"` // offset of the first event
	At   int64 `json:"at"`   // offset after the last event

	Events int64 `json:"events"`
	Clock
	Stretches        []Stretch `json:"stretches"`                   // the parts of the recording between silences that it skips, by offset; at most 1,000
	StretchesThinned uint      `json:"stretches_thinned,omitempty"` // the number n if there are more: of each 2^n offsets, counted from 0, only the first stretch is left

	Invocations []IndexedInvocation `json:"invocations"`       // the first 10,000, by first offset
	Earlier     int64               `json:"earlier,omitempty"` // number of older invocations that are left out
	Runs        int64               `json:"runs"`              // number of runs that began
	Forks       []IndexedFork       `json:"forks,omitempty"`   // the offsets at which inherited events end, oldest first
	Markers     []Marker            `json:"markers"`           // the markers, by offset
	Marked      map[string]int64    `json:"marked"`            // number of events by kind, with and without a marker
	Thinned     map[string]uint     `json:"thinned,omitempty"` // the number n of each kind that has more than 2,000 markers: of each 2^n offsets, counted from 0, only the first marker is left
	Gaps        []Gap               `json:"gaps"`              // the longest 1,000, by offset
	GapsLeftOut int64               `json:"gaps_left_out,omitempty"`
	Density     Density             `json:"density"`
	Keyframes   []int64             `json:"keyframes,omitempty"` // offsets at which a snapshot is stored; the caller sets it

	cache *indexCache
}

// An IndexedInvocation is an invocation in an [Index].
type IndexedInvocation struct {
	Invocation string          `json:"invocation"`
	Thread     string          `json:"thread"`
	First      int64           `json:"first"` // offset of its first event
	Last       int64           `json:"last"`  // offset of its newest event
	StartedAt  Time            `json:"started_at"`
	EndedAt    *Time           `json:"ended_at,omitempty"` // absent while its run is open
	Status     tapedeck.Status `json:"status,omitempty"`   // the status of its run; absent if no run has begun
	Title      string          `json:"title,omitempty"`    // the beginning of the user's text: at most 80 runes, on one line
}

// An IndexedFork is where a session was forked.
type IndexedFork struct {
	Offset int64 `json:"offset"`
	At     Time  `json:"at"`
}

// MaxInvocations is the largest number of invocations in an [Index].
const MaxInvocations = 10_000

// An indexCache has values that are derived from the lists of an index.
type indexCache struct {
	owner    *Index           // the index that it belongs to; a copy builds its own
	places   map[string]int   // the index in Invocations, by invocation
	kept     map[string]int   // number of markers by kind
	last     map[string]int64 // the offset of the newest marker that was kept, by kind
	shortest int              // index of the shortest gap; -1 if unknown
}

// MarshalJSON encodes the index. Empty lists are [], never null.
func (x Index) MarshalJSON() ([]byte, error) {
	type plain Index
	x.Invocations, x.Markers, x.Stretches = notNil(x.Invocations), notNil(x.Markers), notNil(x.Stretches)
	x.Gaps, x.Density.Counts = notNil(x.Gaps), notNil(x.Density.Counts)
	x.setAxis()
	if x.Marked == nil {
		x.Marked = map[string]int64{}
	}
	return json.Marshal(plain(x))
}

// UnmarshalJSON replaces the index with a decoded one.
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

// Limited returns a copy with at most limit invocations (the newest), limit
// markers of each kind and limit stretches (both thinned), and limit gaps (the
// longest). The copy says how many it leaves out, and is for reading only.
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
	for len(y.Stretches) > limit {
		y.thinStretches(y.StretchesThinned + 1)
	}
	if step := 1 + (len(y.Keyframes)-1)/limit; step > 1 {
		kept := y.Keyframes[:0]
		for i := step - 1; i < len(y.Keyframes); i += step {
			kept = append(kept, y.Keyframes[i])
		}
		y.Keyframes = kept
	}
	y.cache = nil // the copy is for reading only
	return y
}

// Clone returns an independent copy of x.
func (x *Index) Clone() Index {
	y := *x
	y.prepare()
	y.cache = nil // the result is returned by value, so the cache would have the wrong owner
	return y
}

// prepare makes x ready for changes: it copies lists that may be shared, and
// builds the cache.
func (x *Index) prepare() {
	if x.cache != nil && x.cache.owner == x {
		return
	}
	x.cache = &indexCache{owner: x, places: map[string]int{}, kept: map[string]int{}, last: map[string]int64{}, shortest: -1}
	x.Invocations, x.Markers, x.Gaps = slices.Clone(x.Invocations), slices.Clone(x.Markers), slices.Clone(x.Gaps)
	x.Stretches = slices.Clone(x.Stretches)
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

// Apply folds one event of the raw log. Events must arrive in the order of
// their offsets. An event that was folded before is ignored.
func (x *Index) Apply(e *tapedeck.Event) {
	if e.Offset < x.At {
		return
	}
	x.prepare()
	if x.Events == 0 {
		x.From = e.Offset
	}
	x.tick(e)
	x.At = e.Offset + 1
	x.Events++
	x.Density.add(x.DurationMS, 1)
	var v *IndexedInvocation
	if e.Invocation != "" {
		v = x.invocation(e)
	}
	if fold, ok := indexFolds[e.Type]; ok {
		fold(x, e, v)
	}
}

// tick moves the clock to e, and adds the gap or the stretch that this gives.
func (x *Index) tick(e *tapedeck.Event) {
	before := x.Clock
	silence := x.Clock.Apply(e)
	at := Time{e.Time}
	if silence.Skipped || before.FirstAt == nil && x.FirstAt != nil {
		x.keepStretch(Stretch{Offset: e.Offset, At: at, PositionMS: x.DurationMS})
	}
	if silence.MS > minGapMS {
		x.addGap(Gap{After: before.LastOffset, From: *before.LastAt, To: at, MS: silence.MS, PositionMS: before.DurationMS, Skipped: silence.Skipped})
	}
}

// Next returns the index of no events whose events will follow those of x. When it has
// them, [Index.Append] joins it to x.
func (x *Index) Next() Index {
	return Index{From: x.At, At: x.At, Clock: x.Clock}
}

// invocation returns the entry of e's invocation, and creates it if necessary.
// It returns nil if there are too many.
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

// addInvocation returns the index of the new entry, -1 if there are too many.
func (x *Index) addInvocation(v IndexedInvocation) int {
	i := len(x.Invocations)
	if i >= MaxInvocations {
		return -1
	}
	x.Invocations = append(x.Invocations, v)
	x.cache.places[v.Invocation] = i
	return i
}

// Append joins the index of the offsets that follow, which began as [Index.Next]. An
// index of other offsets is ignored.
func (x *Index) Append(next Index) {
	if next.Events == 0 || next.From < x.At {
		return
	}
	x.prepare()
	if x.Events == 0 {
		x.From = next.From
	}
	x.At, x.Clock = next.At, next.Clock
	x.Events += next.Events
	x.Runs += next.Runs
	for i, n := range next.Density.Counts {
		if n > 0 {
			x.Density.addSlot(next.Density.slotStart(i), next.Density.WidthMS, n)
		}
	}
	x.joinInvocations(&next)
	x.joinMarkers(&next)
	x.joinStretches(&next)
	for _, g := range next.Gaps {
		x.addGap(g)
	}
	x.GapsLeftOut += next.GapsLeftOut
	x.Forks = append(x.Forks, next.Forks...)
	x.Keyframes = append(x.Keyframes, next.Keyframes...)
}

func (x *Index) joinInvocations(next *Index) {
	if len(next.Forks) > 0 { // the fork ended what was open here, but next does not know it
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

// interrupt gives all running invocations the status interrupted.
func (x *Index) interrupt(at Time) {
	for i := range x.Invocations {
		if v := &x.Invocations[i]; v.Status == tapedeck.StatusRunning {
			v.Status, v.EndedAt = tapedeck.StatusInterrupted, &at
		}
	}
}
