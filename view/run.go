package view

import (
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A Run is one invocation of an agent, from RUN_STARTED to its terminal event.
// Its status is running, complete, failed, cancelled or interrupted.
type Run struct {
	Item
	Agent      string          `json:"agent,omitempty"`
	Parent     string          `json:"parent,omitempty"`    // the invocation that started it, of a sub-agent with a run of its own
	Context    string          `json:"context,omitempty"`   // what the agent was told before its task: how the run before it ended
	Resumable  *bool           `json:"resumable,omitempty"` // of a cancelled one: whether the agent had begun; absent if not known
	Error      *RunError       `json:"error,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Interrupts json.RawMessage `json:"interrupts,omitempty"` // what an interrupted run waits for, as in RUN_FINISHED
	Usage      json.RawMessage `json:"usage,omitempty"`      // as in the terminal event

	Tally Tally `json:"-"` // of what it said and did
	Sub   bool  `json:"-"` // it has a parent, which is no run of its own thread
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
		Context   string `json:"context"`
		Resumable *bool  `json:"resumable"`
		Thread    string `json:"thread"` // of the sub-agent that is started
	} `json:"tapedeck"`
}

func (c *Conversation) runStarted(l *lane, e *tapedeck.Event) bool {
	w := l.work(e.Invocation)
	if w.run != nil {
		w.run.end(e, tapedeck.StatusInterrupted) // started again; its end was lost
	}
	w.run = c.run(l, e)
	c.opens(l, e.Invocation)
	var d struct {
		Parent   string      `json:"parentRunId"`
		Metadata runMetadata `json:"metadata"`
	}
	wellFormed := decode(e, &d) // if not, the run has begun all the same
	w.run.Agent, w.run.Parent, w.run.Context = d.Metadata.Tapedeck.Agent, d.Parent, d.Metadata.Tapedeck.Context
	w.run.Sub = d.Parent != "" && l.newest[d.Parent] == nil // AG-UI also calls the run before in a thread a parent
	c.addParent(l, d.Parent)
	l.Status = tapedeck.StatusRunning
	return wellFormed
}

// addParent notes the thread of the run that has started one here, if that is
// open: a sub-agent does not outlive what has started it.
func (c *Conversation) addParent(l *lane, invocation string) {
	if invocation == "" {
		return
	}
	if other := c.runners[invocation]; other != nil && other != l {
		l.Parent = other.Name
	}
}

// opens notes where the run of an invocation is.
func (c *Conversation) opens(l *lane, invocation string) {
	if c.runners == nil {
		c.runners = map[string]*lane{}
	}
	c.runners[invocation] = l
}

// end ends an invocation in a lane, see [lane.end].
func (c *Conversation) end(l *lane, invocation string, e *tapedeck.Event, status tapedeck.Status) {
	if c.runners[invocation] == l {
		delete(c.runners, invocation)
	}
	l.end(invocation, e, status)
}

// subagentStarted notes in a tool call which thread the sub-agent has that it has
// started. Those of other hosts have none.
func (c *Conversation) subagentStarted(l *lane, e *tapedeck.Event) bool {
	var d struct {
		Call     string      `json:"parentToolCallId"`
		Metadata runMetadata `json:"metadata"`
	}
	if !decode(e, &d) {
		return false
	}
	k, ok := l.call[d.Call]
	thread := d.Metadata.Tapedeck.Thread
	if ok && thread != "" && !slices.Contains(k.Threads, thread) && len(k.Threads) < maxCallThreads {
		k.Threads = append(slices.Clip(k.Threads), thread)
	}
	return true
}

// maxCallThreads is how many threads of sub-agents are named in a tool call.
const maxCallThreads = 100

func (c *Conversation) run(l *lane, e *tapedeck.Event) *Run {
	r := &Run{Item: item(l, e, tapedeck.StatusRunning)}
	r.Tally = l.takeTally(r)
	l.runs = append(l.runs, r)
	c.settleRuns(l, e.Offset)
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
	w := l.work(e.Invocation)
	if w.run == nil { // it failed before it started
		w.run = c.run(l, e)
	}
	w.run.Result, w.run.Usage, w.run.Interrupts = d.Result, d.Usage, d.Outcome.Interrupts
	w.run.Resumable = d.Metadata.Tapedeck.Resumable
	if e.Type == tapedeck.RunError {
		w.run.Error = &RunError{Message: d.Message, Code: d.Code}
	}
	c.end(l, e.Invocation, e, endStatus(e))
	return wellFormed
}

func (c *Conversation) agentLinked(l *lane, e *tapedeck.Event) bool {
	var d struct {
		Runner   string `json:"runner"`
		NativeID string `json:"nativeId"`
	}
	if !decode(e, &d) || d.NativeID == "" {
		return false
	}
	l.Link = &Link{d.Runner, d.NativeID, e.Offset, e.Invocation}
	return true
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
func (l *lane) end(invocation string, e *tapedeck.Event, status tapedeck.Status) {
	w := l.open[invocation]
	delete(l.open, invocation)
	if w.run != nil {
		w.run.end(e, status)
		l.Status, l.ended = status, e.Offset
		l.endPlan(invocation, status, e)
	}
	if status == tapedeck.StatusFailed {
		status = tapedeck.StatusInterrupted // what a failed run left open did not fail itself
	}
	waits := e.Type == tapedeck.RunFinished && status != tapedeck.StatusCancelled
	l.cancelPermissions(invocation, w.run, e)
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
	case tapedeck.SessionForked: // the parent's end is not the fork's
		s.Closed = false
		c.interrupt(e, &tapedeck.Jump{})
	case tapedeck.SessionRewound, tapedeck.SessionCleared, tapedeck.SessionOverwritten:
		j, _ := e.Jump()
		c.interrupt(e, &j)
	case tapedeck.SessionClosed:
		s.Closed = true
	}
	s.entry.Apply(e)
	s.Title, s.Owner, s.Agent, s.Labels = s.entry.Title, s.entry.Owner, s.entry.Agent, s.entry.Labels
}

// interrupt ends what is open where a fork or a jump has left it: nobody will go
// on with it here. A jump that is not in force itself has never been, for that
// thread.
func (c *Conversation) interrupt(e *tapedeck.Event, j *tapedeck.Jump) {
	for _, l := range c.lanes {
		if !j.Takes(l.Name) || !c.inForce(e.Offset, l.Name) {
			continue
		}
		for invocation := range l.open {
			c.end(l, invocation, e, tapedeck.StatusInterrupted)
		}
	}
}

// status returns what the runs amount to: running while one is open, otherwise
// the status of the one that ended last, as [tapedeck.Session] has it.
func (c *Conversation) status() tapedeck.Status {
	status, last := tapedeck.StatusIdle, int64(-1)
	for _, l := range c.lanes {
		if l.Status == tapedeck.StatusRunning {
			return l.Status
		}
		switch {
		case l.Status == tapedeck.StatusPending && last < 0:
			status = l.Status
		case l.Status.Begun() && l.ended > last:
			status, last = l.Status, l.ended
		}
	}
	return status
}
