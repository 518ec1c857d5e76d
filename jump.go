package tapedeck

import (
	"slices"
)

// A Jump is what an event says that takes others back: session.rewound,
// session.cleared and session.overwritten. With it, what is in force in the
// session (or, with a thread, in that thread) is what was in force just before
// the event at offset To; what comes after it adds to that.
//
//	E(log + jump) = E(log[0:To])
//
// So a jump to the offset of another jump undoes it. Nothing is deleted: every
// jump keeps its offset, and so do the events it takes back. Events of
// [ChannelSession] are never taken back: they are about the session itself.
//
// The jumps of a session are linked from the newest, [Session.LastJump], to the
// oldest, so that to know them all costs their number, not that of the events.
type Jump struct {
	Offset   int64    // of the event
	To       int64    // at most Offset
	Thread   string   // the only one that goes back; "" for all
	Marker   string   // its id
	Previous int64    // offset of the jump before it; 0 for none
	With     []string // threads that go back with Thread
}

// Takes reports whether a thread goes back.
func (j *Jump) Takes(thread string) bool {
	return j.Thread == "" || j.Thread == thread || slices.Contains(j.With, thread)
}

// Jump returns what e says, if it takes others back.
func (e *Event) Jump() (Jump, bool) {
	switch e.Type {
	case SessionRewound, SessionCleared, SessionOverwritten:
	default:
		return Jump{}, false
	}
	var d struct {
		Marker     string   `json:"marker"`
		Thread     string   `json:"thread"`
		ToOffset   int64    `json:"toOffset"`
		FromOffset int64    `json:"fromOffset"`
		Previous   int64    `json:"previous"`
		With       []string `json:"with"`
	}
	_ = e.Unpack(&d) // only the engine makes these; a member of another shape counts as absent
	j := Jump{Offset: e.Offset, Thread: d.Thread, Marker: d.Marker, Previous: max(d.Previous, 0), With: d.With}
	switch e.Type {
	case SessionRewound:
		j.To = d.ToOffset
	case SessionOverwritten:
		j.To = d.FromOffset
	}
	j.To = min(max(j.To, 0), e.Offset)
	if j.Previous >= e.Offset {
		j.Previous = 0 // or whoever follows the links would never come to an end
	}
	return j, true
}

func (s *Session) applyTaking(e *Event) {
	s.LastJump = e.Offset
	s.applyStanding(e)
}

// applyStanding sets the status to what the runs amount to that are in force
// after e: those of the log below cannot be asked here.
func (s *Session) applyStanding(e *Event) {
	var d struct {
		Status    Status `json:"status"`
		Resumable *bool  `json:"resumable"`
	}
	if e.Unpack(&d) && d.Status != "" && len(s.Runs) == 0 {
		s.Status, s.Resumable = d.Status, d.Resumable
	}
}

func (s *Session) applyFork(e *Event) {
	var d struct {
		Previous int64 `json:"previous"`
		Copy     bool  `json:"copy"`
	}
	_ = e.Unpack(&d)
	s.Runs, s.LastJump, s.Copy = nil, max(d.Previous, 0), d.Copy // runs of the parent are nobody's here
	s.applyStanding(e)
}
