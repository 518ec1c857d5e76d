package tapedeck

import (
	"slices"
)

// A Jump is an event that reverts others: session.rewound, session.cleared,
// session.overwritten or attempt.superseded. After it, the active events of the session (or of its
// threads, if it has some) are those that were active just before the event at
// offset To. Later events add to these. With E for the set of active events:
//
//	E(log + jump) = E(log[0:To])
//
// So a jump to the offset of another jump undoes it. Nothing is deleted: jumps
// and the events that they revert keep their offsets. Events of
// [ChannelSession] are never reverted, because they are about the session
// itself.
//
// The jumps of a session are linked from the newest, [Session.LastJump], to the
// oldest, so that finding them all costs their number, not that of the events.
type Jump struct {
	Offset   int64    // of the jump's own event
	To       int64    // the first offset that is reverted; at most Offset
	Thread   string   // the only thread that it reverts; "" for all
	Marker   string   // the id of the jump
	Previous int64    // offset of the jump before it; 0 if none
	With     []string // further threads that it reverts

	// Inputs means that the reverted range may have events of inputs. No jump reverts these,
	// so a view reads the range.
	Inputs bool

	// Attempt means that a running agent repeats a step: the jump reverts what the
	// step had done so far, and the run continues. Users did not ask for such a
	// jump, so it has no marker and no verb undoes it.
	Attempt bool
}

// Reverts reports whether the jump reverts events of a thread.
func (j *Jump) Reverts(thread string) bool {
	return j.Thread == "" || j.Thread == thread || slices.Contains(j.With, thread)
}

// Jump returns the jump that e is. It reports false for events of other types.
func (e *Event) Jump() (Jump, bool) {
	switch e.Type {
	case SessionRewound, SessionCleared, SessionOverwritten, AttemptSuperseded:
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
		Inputs     bool     `json:"inputs"`
	}
	_ = e.Unpack(&d) // the engine has checked it; a member of another shape counts as absent
	j := Jump{Offset: e.Offset, Thread: d.Thread, Marker: d.Marker, Previous: max(d.Previous, 0), With: d.With, Inputs: d.Inputs}
	switch e.Type {
	case SessionRewound:
		j.To = d.ToOffset
	case SessionOverwritten:
		j.To = d.FromOffset
	case AttemptSuperseded:
		j.To, j.Thread, j.With, j.Marker, j.Attempt = d.FromOffset, e.ThreadName(), nil, "", true
		j.Inputs = true // a user can write at any time; the range is a short part of a run
	}
	j.To = min(max(j.To, 0), e.Offset)
	if j.Previous >= e.Offset {
		j.Previous = 0 // otherwise following the links would never end
	}
	return j, true
}

func (s *Session) applyJump(e *Event) {
	s.LastJump = e.Offset
	s.applyStatus(e)
}

// applyStatus sets the status to the one in e, which the engine has computed
// from the runs that are active after e. The entry cannot compute it, because
// it does not see the log before e.
func (s *Session) applyStatus(e *Event) {
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
	// The parent's runs, inputs and questions do not continue in the fork.
	s.Runs, s.Inputs, s.Waiting, s.LastJump, s.Copy = nil, nil, nil, max(d.Previous, 0), d.Copy
	s.applyStatus(e)
}
