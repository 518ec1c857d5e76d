package view

import (
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A Filter selects events of any of the named channels, threads, types and invocations. A
// nil list selects all. The events of [tapedeck.ChannelSession] pass every selection by
// channel, thread or timeline: they say what becomes of the others. The zero value selects
// all events.
type Filter struct {
	Channels, Threads, Types, Invocations []string

	// Timeline, if not nil, selects only the events that are active as of offset At. Later
	// events are active until an event reverts them, and that event passes the filter.
	Timeline *Timeline
	At       int64
}

// IsEmpty reports whether f selects all events, so that they need not be decoded.
func (f *Filter) IsEmpty() bool {
	return f.Channels == nil && f.Threads == nil && f.Types == nil && f.Invocations == nil && f.Timeline == nil
}

// Match reports whether f selects e.
func (f *Filter) Match(e *tapedeck.Event) bool {
	if !isOneOf(f.Types, e.Type) || !isOneOf(f.Invocations, e.Invocation) {
		return false
	}
	if e.Channel == tapedeck.ChannelSession {
		return true
	}
	reverted := f.Timeline != nil && e.Offset < f.At && !f.Timeline.Has(e.Offset, e.Thread, f.At)
	return !reverted && isOneOf(f.Channels, e.Channel) && isOneOf(f.Threads, e.ThreadName())
}

// isOneOf reports whether s is in list. Everything is in a nil list.
func isOneOf(list []string, s string) bool { return list == nil || slices.Contains(list, s) }
