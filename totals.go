package tapedeck

import "time"

// Totals are figures of a session by which lists are sorted, and the row that lists
// show. They are derived from the log a moment after its events became durable, so they
// may be those of an earlier offset. The zero value is that of a session without events.
type Totals struct {
	At          int64  // the events before this offset are in it
	Tokens      int64  // the tokens that models read and wrote
	CostMicros  int64  // the reported cost, in millionths of a US dollar
	RecordingMS int64  // the length of the recording, in milliseconds
	Failures    int64  // the number of tool calls that failed
	Row         []byte // the row, in JSON; nil for none. The store does not read it
}

// activeStep is by how much an event outside of runs must be newer before it moves
// Session.Active. A store writes the entry whenever that moves.
const activeStep = time.Second

// applyActive folds an event into Active. IsAdministrative in package view is the same
// rule.
func (s *Session) applyActive(e *Event) {
	switch {
	case e.Channel == ChannelSession, e.Channel == ChannelPresence, !e.Time.After(s.Active):
	case e.Type == RunStarted, e.Type == RunFinished, e.Type == RunError,
		len(s.Runs) == 0 && e.Time.Sub(s.Active) >= activeStep:
		s.Active = e.Time
	}
}
