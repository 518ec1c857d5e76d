package view

import (
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// An Axis says what a player moves along.
type Axis string

// The axes.
const (
	AxisTime   Axis = "time"   // the recording time
	AxisEvents Axis = "events" // the offsets, because the events have no times of their own
)

// A Clock folds the raw events of a session into its recording time: how long the
// conversation takes, not how old its log is. Every event has a position in it, in
// milliseconds, which never decreases: [Clock.DurationMS] after the event was applied.
//
//   - An event of the session itself (such as an import, a bookmark, a rename, a rewind or
//     a fork) and an event of presence take no time. Their position is that of the event
//     before.
//   - Time between two events of the conversation counts, unless it is a silence that
//     nobody's work caused: see [Silence.Skipped].
//
// The zero value is the clock of no events. Its JSON is a checkpoint, from which a decoded
// clock continues.
type Clock struct {
	Axis       Axis     `json:"axis"`                // AxisEvents while DurationMS is less than a second
	FirstAt    *Time    `json:"first_at,omitempty"`  // time of the first event of the conversation
	LastAt     *Time    `json:"last_at,omitempty"`   // time of its newest event
	LastOffset int64    `json:"last_offset"`         // and its offset
	DurationMS int64    `json:"duration_ms"`         // length of the recording
	OpenRuns   []string `json:"open_runs,omitempty"` // invocations of the runs that are open, oldest first; at most 1,000
	HasEnded   bool     `json:"has_ended,omitempty"` // whether a run has ended
}

// A Silence is what passes between two successive events of a conversation.
type Silence struct {
	MS int64 // from the one to the other, below 0 if the clock of the writer was set back

	// Skipped reports whether it takes no time in the recording. This is so if it is longer
	// than two seconds and no run is open, after a run has ended or before a turn begins; if
	// a run did not survive it; if it is longer than a day; or if it is less than minus two
	// seconds.
	Skipped bool
}

const (
	minTimedMS   = 1000             // a shorter recording has no times to move along
	maxSilenceMS = 24 * 3600 * 1000 // in a recording; nothing works for so long without an event
	maxOpenRuns  = 1000             // as many as package order allows
	maxSetBackMS = minGapMS         // clocks of several writers differ by less
)

// IsAdministrative reports whether an event of this channel takes no time in a recording.
func IsAdministrative(channel string) bool {
	return channel == tapedeck.ChannelSession || channel == tapedeck.ChannelPresence
}

// Apply folds one event, and returns the silence before it: zero for the first event, and
// for an event that takes no time. Events must arrive in the order of their offsets, and
// each only once.
func (c *Clock) Apply(e *tapedeck.Event) (s Silence) {
	if IsAdministrative(e.Channel) {
		if e.Type == tapedeck.SessionForked { // the runs that it inherits do not continue in it
			c.HasEnded = c.HasEnded || len(c.OpenRuns) > 0
			c.OpenRuns = nil
		}
		c.setAxis()
		return Silence{}
	}
	at := Time{e.Time}
	if c.FirstAt == nil {
		c.FirstAt, c.LastAt = &at, &at
	} else {
		s.MS = e.Time.UnixMilli() - c.LastAt.UnixMilli()
		s.Skipped = c.skips(e, s.MS)
		if s.Skipped || s.MS > 0 {
			c.LastAt = &at // a little earlier than the newest event: the position stays where it is
		}
		if !s.Skipped && s.MS > 0 {
			c.DurationMS += s.MS
		}
	}
	c.LastOffset = e.Offset
	c.trackRun(e)
	c.setAxis()
	return s
}

func (c *Clock) setAxis() {
	c.Axis = AxisTime
	if c.DurationMS < minTimedMS {
		c.Axis = AxisEvents
	}
}

// skips reports whether the silence before e takes no time.
func (c *Clock) skips(e *tapedeck.Event, ms int64) bool {
	switch {
	case ms < -maxSetBackMS || ms > maxSilenceMS:
		return true
	case ms <= minGapMS:
		return false
	case len(c.OpenRuns) == 0:
		return c.HasEnded || beginsTurn(e)
	}
	return endsDead(e)
}

// beginsTurn reports whether an agent's work begins with e.
func beginsTurn(e *tapedeck.Event) bool {
	if payload.IsSubThread(e.Thread) {
		return false
	}
	var d struct {
		Role    string `json:"role"`
		Message struct {
			Role string `json:"role"`
		} `json:"message"`
	}
	switch e.Type {
	case tapedeck.RunStarted:
		return true
	case tapedeck.MessageAdded, tapedeck.TextMessageStart:
		_ = decode(e, &d)
		return d.Role == payload.RoleUser || d.Message.Role == payload.RoleUser
	}
	return false
}

// endsDead reports whether e was written in place of a process that had died or fallen
// silent: nobody worked in the time before it.
func endsDead(e *tapedeck.Event) bool {
	if e.Type == tapedeck.RunError {
		return endStatus(e) == tapedeck.StatusInterrupted
	}
	var d struct {
		Metadata tapedeck.Members `json:"metadata"`
	}
	_ = decode(e, &d) // a member of another shape counts as absent
	return tapedeck.MetaOf(d.Metadata).Closed == tapedeck.StatusInterrupted
}

func (c *Clock) trackRun(e *tapedeck.Event) {
	if e.Invocation == "" {
		return
	}
	switch e.Type {
	case tapedeck.RunStarted:
		if len(c.OpenRuns) < maxOpenRuns && !slices.Contains(c.OpenRuns, e.Invocation) {
			c.OpenRuns = append(slices.Clip(c.OpenRuns), e.Invocation) // copies of a clock share the list
		}
	case tapedeck.RunFinished, tapedeck.RunError:
		c.HasEnded = true
		c.OpenRuns = slices.DeleteFunc(slices.Clone(c.OpenRuns), func(id string) bool { return id == e.Invocation })
		if len(c.OpenRuns) == 0 {
			c.OpenRuns = nil
		}
	}
}

// A Stretch is a part of a recording in which its time passes as that of the clock: an
// event in it is at PositionMS plus the time since At.
type Stretch struct {
	Offset     int64 `json:"offset"`      // of its first event
	At         Time  `json:"at"`          // time of this event
	PositionMS int64 `json:"position_ms"` // and its position in the recording
}

// maxStretches is the largest number of stretches in an [Index].
const maxStretches = 1000

// keepStretch adds a stretch, unless the index was thinned and has one for the same range
// of offsets.
func (x *Index) keepStretch(s Stretch) {
	if n := len(x.Stretches); n > 0 && x.Stretches[n-1].Offset>>x.StretchesThinned == s.Offset>>x.StretchesThinned {
		return
	}
	x.Stretches = append(x.Stretches, s)
	for len(x.Stretches) > maxStretches {
		x.thinStretches(x.StretchesThinned + 1)
	}
}

// thinStretches keeps the first stretch in each range of 2^level offsets, counted from 0,
// so that the result does not depend on the pieces in which an index was built.
func (x *Index) thinStretches(level uint) {
	x.StretchesThinned = level
	x.Stretches = slices.CompactFunc(x.Stretches, func(a, b Stretch) bool { return a.Offset>>level == b.Offset>>level })
}

func (x *Index) joinStretches(next *Index) {
	if next.StretchesThinned > x.StretchesThinned {
		x.thinStretches(next.StretchesThinned)
	}
	for _, s := range next.Stretches {
		x.keepStretch(s)
	}
}
