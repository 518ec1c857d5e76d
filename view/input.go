package view

import (
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// An Input is what a user sent to a thread while a run was open there. It begins when
// it is queued, and ends when it is run, given to the open run, or withdrawn.
type Input struct {
	Item           // the invocation is that of the run which got it; while it waits, that of the run which it will be
	ID      string `json:"id"`
	When    string `json:"when"`              // queue, steer or interrupt
	Text    string `json:"text,omitempty"`    // the words of the user; absent when a run has them
	Agent   string `json:"agent,omitempty"`   // the agent that it is for
	Outside bool   `json:"outside,omitempty"` // the outside program that writes the runs of the thread takes it; no server runs it
	Reason  string `json:"reason,omitempty"`  // why it was withdrawn; absent if a user withdrew it
}

// An [Input] has one of these statuses.
const (
	InputWaiting   tapedeck.Status = "waiting"
	InputSteered   tapedeck.Status = "steered" // the open run got it
	InputStarted   tapedeck.Status = "started" // it became a run
	InputWithdrawn tapedeck.Status = "withdrawn"
)

// maxEndedInputs is how many inputs that do not wait any more are kept.
const maxEndedInputs = 20

// applyInput folds an event of an input. An id that does not wait changes nothing, and
// so does an id that was queued before.
func (c *Conversation) applyInput(e *tapedeck.Event) {
	var d struct {
		ID         string `json:"id"`
		Text       string `json:"text"`
		When       string `json:"when"`
		Invocation string `json:"invocation"`
		Before     string `json:"before"`
		Agent      string `json:"agent"`
		Outside    bool   `json:"outside"`
		Reason     string `json:"reason"`
	}
	if !decode(e, &d) || d.ID == "" {
		c.note(e, Malformed)
		return
	}
	at := slices.IndexFunc(c.inputs, func(in Input) bool { return in.ID == d.ID })
	if e.Type == payload.TypeInputQueued {
		if at < 0 {
			if d.When == "" {
				d.When = "queue"
			}
			in := Input{Item: newItem(&lane{Thread: Thread{Name: e.ThreadName()}}, e, InputWaiting), ID: d.ID, When: d.When, Text: d.Text, Agent: d.Agent, Outside: d.Outside}
			in.Invocation = d.Invocation
			c.placeInput(in, d.Before)
		}
		return
	}
	if at < 0 || c.inputs[at].Status != InputWaiting {
		return
	}
	in := c.inputs[at]
	if e.Type == payload.TypeInputMoved {
		c.inputs = slices.Delete(c.inputs, at, at+1)
		c.placeInput(in, d.Before)
		return
	}
	in.endInput(e, d.Invocation, d.Reason)
	c.inputs[at] = in
	c.trimInputs()
}

// placeInput adds an input before another one that waits, or at the end.
func (c *Conversation) placeInput(in Input, before string) {
	at := slices.IndexFunc(c.inputs, func(o Input) bool { return o.ID == before && o.Status == InputWaiting })
	if at < 0 {
		at = len(c.inputs)
	}
	c.inputs = slices.Insert(c.inputs, at, in)
}

func (in *Input) endInput(e *tapedeck.Event, invocation, reason string) {
	switch e.Type {
	case payload.TypeInputSteered:
		in.end(e, InputSteered)
	case payload.TypeInputStarted:
		in.end(e, InputStarted)
	default:
		in.end(e, InputWithdrawn)
		in.Reason, in.Invocation = reason, ""
		return
	}
	in.Text = ""
	if invocation != "" {
		in.Invocation = invocation
	}
}

// withdrawInputs ends the inputs that a fork has from its parent: they run there.
func (c *Conversation) withdrawInputs(e *tapedeck.Event) {
	for i := range c.inputs {
		if c.inputs[i].Status == InputWaiting {
			c.inputs[i].endInput(e, "", "it waits in the session from which this one was forked")
		}
	}
	c.trimInputs()
}

// trimInputs drops the first inputs that do not wait, if there are too many.
func (c *Conversation) trimInputs() {
	n := 0
	for i := range c.inputs {
		if c.inputs[i].Status != InputWaiting {
			n++
		}
	}
	c.inputs = slices.DeleteFunc(c.inputs, func(in Input) bool {
		drop := n > maxEndedInputs && in.Status != InputWaiting
		if drop {
			n--
		}
		return drop
	})
}

// inputsOf returns a copy of the inputs of a thread, or of all if thread is "".
func (c *Conversation) inputsOf(thread string) (out []Input) {
	for _, in := range c.inputs {
		if thread == "" || in.Thread == thread {
			out = append(out, in)
		}
	}
	return out
}
