package view

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// A Run is one invocation of an agent, from RUN_STARTED to its terminal event.
// Its status is running, complete, failed, cancelled or interrupted.
type Run struct {
	Item
	Agent      string          `json:"agent,omitempty"`
	Resumable  *bool           `json:"resumable,omitempty"` // of a cancelled one: whether the agent had begun; absent if not known
	Error      *RunError       `json:"error,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Interrupts json.RawMessage `json:"interrupts,omitempty"` // what an interrupted run waits for, as in RUN_FINISHED
	Usage      json.RawMessage `json:"usage,omitempty"`      // as in the terminal event
}

// A RunError says why a run failed.
type RunError struct {
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
}

// runMetadata is what the engine says of a run beside what AG-UI has for it.
type runMetadata struct {
	Tapedeck struct {
		Agent     string `json:"agent"`
		Resumable *bool  `json:"resumable"`
	} `json:"tapedeck"`
}

func (c *Conversation) runStarted(l *lane, e *tapedeck.Event) bool {
	w := c.work(l, e.Invocation)
	if w.run == nil {
		c.session.openRuns++
	} else {
		w.run.end(e, tapedeck.StatusInterrupted) // started again; its end was lost
	}
	w.run = c.run(l, e)
	var d struct {
		Metadata runMetadata `json:"metadata"`
	}
	wellFormed := decode(e, &d) // if not, the run has begun all the same
	w.run.Agent = d.Metadata.Tapedeck.Agent
	c.session.Status, l.Status = tapedeck.StatusRunning, tapedeck.StatusRunning
	return wellFormed
}

func (c *Conversation) run(l *lane, e *tapedeck.Event) *Run {
	r := &Run{Item: item(l, e, tapedeck.StatusRunning)}
	c.runs = append(c.runs, r)
	return r
}

func (c *Conversation) runEnded(l *lane, e *tapedeck.Event) bool {
	var d struct {
		Message string          `json:"message"`
		Code    string          `json:"code"`
		Result  json.RawMessage `json:"result"`
		Usage   json.RawMessage `json:"usage"`
		Outcome struct {
			Interrupts json.RawMessage `json:"interrupts"`
		} `json:"outcome"`
		Metadata runMetadata `json:"metadata"`
	}
	wellFormed := decode(e, &d) // if not, the run has ended all the same
	w := c.work(l, e.Invocation)
	if w.run == nil { // it failed before it started
		w.run = c.run(l, e)
		c.session.openRuns++
	}
	w.run.Result, w.run.Usage, w.run.Interrupts = d.Result, d.Usage, d.Outcome.Interrupts
	w.run.Resumable = d.Metadata.Tapedeck.Resumable
	if e.Type == tapedeck.RunError {
		w.run.Error = &RunError{Message: d.Message, Code: d.Code}
	}
	status := endStatus(e)
	c.end(workKey{l, e.Invocation}, e, status)
	if c.session.openRuns == 0 {
		c.session.Status = status
	}
	return wellFormed
}

// endStatus returns the status that a terminal event leaves, by the rule of
// [tapedeck.Session].
func endStatus(e *tapedeck.Event) tapedeck.Status {
	var s tapedeck.Session
	s.Apply(e)
	return s.Status
}

// end ends an invocation with e: its run, and what that has left open. An agent
// may leave a tool call to be answered from outside: when its run is complete,
// or waits, the call is pending.
func (c *Conversation) end(key workKey, e *tapedeck.Event, status tapedeck.Status) {
	w := c.open[key]
	delete(c.open, key)
	if w.run != nil {
		w.run.end(e, status)
		key.lane.Status = status
		c.session.openRuns--
	}
	if status == tapedeck.StatusFailed {
		status = tapedeck.StatusInterrupted // what a failed run left open did not fail itself
	}
	waits := e.Type == tapedeck.RunFinished && status != tapedeck.StatusCancelled
	for m := range w.messages {
		m.end(e, status)
	}
	for k := range w.calls {
		if waits {
			k.Status = tapedeck.StatusPending
		} else {
			k.end(e, status)
		}
	}
}

// A sessionFold is what events say of the session itself.
type sessionFold struct {
	SessionInfo
	entry       tapedeck.Session
	openRuns    int
	state       json.RawMessage // with which every thread begins
	stateOffset int64
}

func (c *Conversation) applySession(e *tapedeck.Event) {
	s := &c.session
	switch e.Type {
	case tapedeck.SessionCreated:
		var d struct {
			State json.RawMessage `json:"state"`
		}
		if decode(e, &d) && len(d.State) > 0 && string(d.State) != "null" {
			s.state, s.stateOffset = d.State, e.Offset
		}
	case tapedeck.SessionForked:
		c.fork(e)
	case tapedeck.SessionClosed:
		s.Closed = true
	}
	s.entry.Apply(e)
	s.Title, s.Owner, s.Agent, s.Labels = s.entry.Title, s.entry.Owner, s.entry.Agent, s.entry.Labels
}

// fork ends what the parent had open where the fork left it: nobody will go on
// with it here.
func (c *Conversation) fork(e *tapedeck.Event) {
	if c.session.openRuns > 0 {
		c.session.Status = tapedeck.StatusInterrupted
	}
	for key := range c.open {
		c.end(key, e, tapedeck.StatusInterrupted)
	}
	c.session.Closed = false // the parent's end is not the fork's
}
