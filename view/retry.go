package view

import (
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A Retry says that a run repeated a step. What the step had done before is not
// active; see [tapedeck.AttemptSuperseded].
type Retry struct {
	From    int64  `json:"from"`             // the offset at which the earlier attempt began
	To      int64  `json:"to"`               // the offset of the event that superseded it; the next attempt comes after it
	Attempt int64  `json:"attempt"`          // the number of the next attempt, from 2
	Reason  string `json:"reason,omitempty"` // why the earlier attempt failed
}

// maxRetries is how many of its newest retries a run shows.
const maxRetries = 100

// attemptSuperseded notes a retry in the open run of e. The timeline has already left
// out what it reverts.
func (c *Conversation) attemptSuperseded(e *tapedeck.Event) {
	l := c.lanes[e.ThreadName()]
	if l == nil || !c.isActive(e.Offset, e.ThreadName()) {
		return
	}
	w := l.open[e.Invocation]
	if w == nil || w.run == nil {
		return
	}
	var d struct {
		Attempt int64  `json:"attempt"`
		Reason  string `json:"reason"`
	}
	if !decode(e, &d) {
		c.note(e, Malformed)
		return
	}
	j, _ := e.Jump()
	old := w.run.Retries // earlier snapshots share it
	w.run.Retries = append(slices.Clip(old[max(0, len(old)-maxRetries+1):]), Retry{j.To, e.Offset, d.Attempt, d.Reason})
}
