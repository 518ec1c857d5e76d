package view

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A Run is one invocation of an agent, from RUN_STARTED to its terminal event.
// Its status is running, complete, failed, cancelled or interrupted.
type Run struct {
	Item
	Agent      string          `json:"agent,omitempty"`
	Parent     string          `json:"parent,omitempty"`    // the parent run: the invocation that started this sub-agent
	Context    string          `json:"context,omitempty"`   // the text that the agent gets before its task: it says how the earlier run ended
	Resumable  *bool           `json:"resumable,omitempty"` // whether the agent of a cancelled run had begun; absent if that is unknown
	Error      *RunError       `json:"error,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Interrupts json.RawMessage `json:"interrupts,omitempty"` // the answers that an interrupted run waits for, as in RUN_FINISHED
	Usage      json.RawMessage `json:"usage,omitempty"`      // the usage that the terminal event has
	Retries    []Retry         `json:"retries,omitempty"`    // the newest 100 times that it repeated a step

	Tally Tally `json:"-"` // counts its messages and calls
	Sub   bool  `json:"-"` // it has a parent run in another thread
}

// A RunError says why a run failed.
type RunError struct {
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
}

func (c *Conversation) runStarted(l *lane, e *tapedeck.Event) bool {
	w := l.work(e.Invocation)
	if w.run != nil {
		w.run.end(e, tapedeck.StatusInterrupted) // it starts again, so its end is missing
	}
	w.run = c.addRun(l, e)
	c.noteOpenRun(l, e.Invocation)
	var d struct {
		Parent   string          `json:"parentRunId"`
		Metadata json.RawMessage `json:"metadata"`
	}
	wellFormed := decode(e, &d) // if not, the run has begun all the same
	meta := tapedeck.MetaOf(d.Metadata)
	w.run.Agent, w.run.Parent, w.run.Context = meta.Agent, d.Parent, meta.Context
	w.run.Sub = d.Parent != "" && l.newest[d.Parent] == nil // AG-UI also calls the previous run of a thread a parent
	c.setParent(l, d.Parent)
	l.Status = tapedeck.StatusRunning
	return wellFormed
}

// setParent notes the thread of the parent run, if that is open in another
// thread: a sub-agent does not outlive its parent run.
func (c *Conversation) setParent(l *lane, invocation string) {
	if invocation == "" {
		return
	}
	if other := c.openRunLane[invocation]; other != nil && other != l {
		l.Parent = other.Name
	}
}

// noteOpenRun notes which lane has the open run of an invocation.
func (c *Conversation) noteOpenRun(l *lane, invocation string) {
	if c.openRunLane == nil {
		c.openRunLane = map[string]*lane{}
	}
	c.openRunLane[invocation] = l
}

// endRun ends an invocation in a lane, see [lane.end].
func (c *Conversation) endRun(l *lane, invocation string, e *tapedeck.Event, status tapedeck.Status) {
	if c.openRunLane[invocation] == l {
		delete(c.openRunLane, invocation)
	}
	l.end(invocation, e, status)
}

// subagentStarted notes in a tool call the thread of the sub-agent that it has
// started. Sub-agents of other hosts have no thread.
func (c *Conversation) subagentStarted(l *lane, e *tapedeck.Event) bool {
	var d struct {
		Call     string          `json:"parentToolCallId"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if !decode(e, &d) {
		return false
	}
	k, ok := l.call[d.Call]
	thread := tapedeck.MetaOf(d.Metadata).Thread
	if ok && thread != "" && !slices.Contains(k.Threads, thread) && len(k.Threads) < maxCallThreads {
		k.Threads = append(slices.Clip(k.Threads), thread)
	}
	return true
}

// maxCallThreads is the largest number of threads of sub-agents that a tool
// call names.
const maxCallThreads = 100

func (c *Conversation) addRun(l *lane, e *tapedeck.Event) *Run {
	r := &Run{Item: newItem(l, e, tapedeck.StatusRunning)}
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
		Metadata json.RawMessage `json:"metadata"`
	}
	wellFormed := decode(e, &d) // if not, the run has ended all the same
	w := l.work(e.Invocation)
	if w.run == nil { // it failed before it started
		w.run = c.addRun(l, e)
	}
	w.run.Result, w.run.Usage, w.run.Interrupts = d.Result, d.Usage, d.Outcome.Interrupts
	w.run.Resumable = tapedeck.MetaOf(d.Metadata).Resumable
	if e.Type == tapedeck.RunError {
		w.run.Error = &RunError{Message: d.Message, Code: d.Code}
	}
	c.endRun(l, e.Invocation, e, endStatus(e))
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

// endStatus returns the status that a terminal event gives, by the rule of
// [tapedeck.Session].
func endStatus(e *tapedeck.Event) tapedeck.Status {
	var s tapedeck.Session
	s.Apply(e)
	return s.Status
}

// end ends an invocation with e: its run, and everything that the run left
// open. A tool call may get its answer from outside: if the run is complete or
// waits, the call becomes pending.
func (l *lane) end(invocation string, e *tapedeck.Event, status tapedeck.Status) {
	w := l.open[invocation]
	delete(l.open, invocation)
	if w.run != nil {
		w.run.end(e, status)
		l.Status, l.ended = status, e.Offset
		l.endPlan(invocation, status, e)
	}
	if status == tapedeck.StatusFailed {
		status = tapedeck.StatusInterrupted // the open items of a failed run did not fail themselves
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

// A sessionFold folds the events about the session itself.
type sessionFold struct {
	SessionInfo
	entry       tapedeck.Session
	state       json.RawMessage // with which each thread begins
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
	case tapedeck.SessionImported: // the conversations of agents are elsewhere, or another user's
		for _, l := range c.lanes {
			l.Link = nil
		}
	case tapedeck.SessionForked: // the parent was closed, not the fork
		s.Closed = false
		c.interrupt(e, &tapedeck.Jump{})
		c.cutContext(e)
		c.withdrawInputs(e)
	case tapedeck.SessionRewound, tapedeck.SessionCleared, tapedeck.SessionOverwritten:
		j, _ := e.Jump()
		c.interrupt(e, &j)
		c.cutContext(e)
	case tapedeck.SessionClosed:
		s.Closed = true
	case tapedeck.AttemptSuperseded:
		c.attemptSuperseded(e)
	case payload.TypeInputQueued, payload.TypeInputMoved, payload.TypeInputSteered, payload.TypeInputStarted, payload.TypeInputWithdrawn:
		c.applyInput(e)
		return
	}
	s.entry.Apply(e)
	s.Title, s.Owner, s.Agent, s.Labels = s.entry.Title, s.entry.Owner, s.entry.Agent, s.entry.Labels
}

// interrupt ends what is open in the threads that a fork or a jump left: it
// does not continue here. A jump that is not active itself is ignored for that
// thread.
func (c *Conversation) interrupt(e *tapedeck.Event, j *tapedeck.Jump) {
	for _, l := range c.lanes {
		if !j.Reverts(l.Name) || !c.isActive(e.Offset, l.Name) {
			continue
		}
		for invocation := range l.open {
			c.endRun(l, invocation, e, tapedeck.StatusInterrupted)
		}
	}
}

// isStep reports whether a call is a tool_call that no message of the context has.
func (k *call) isStep() bool {
	return k.maker != nil && tapedeck.MetaOf(k.maker.Metadata).Step == CallEvent
}

// cutContext marks the calls that a cut in the context of an agent leaves to their message
// only.
func (c *Conversation) cutContext(e *tapedeck.Event) {
	var d struct {
		Context *ContextCut `json:"context"`
	}
	if !decode(e, &d) || d.Context == nil {
		return
	}
	l, ok := c.lanes[cmp.Or(d.Context.Thread, tapedeck.MainThread)]
	if !ok || !c.isActive(e.Offset, l.Name) {
		return
	}
	uncalled := map[string]bool{}
	for _, id := range d.Context.Uncalled {
		uncalled[id] = true
	}
	for _, k := range slices.Backward(l.calls.items) {
		if k.removed {
			continue
		}
		id := k.ContextID()
		if uncalled[id] && k.Result == nil && !k.isStep() {
			k.Step = CallStep{ID: k.Step.ID, Uncalled: true}
		}
		delete(uncalled, id) // older calls with the id are others
	}
}

// status returns the status of all runs together: running while one is open, or
// waiting if it waits for a person; otherwise the status of the run that ended
// last, as in [tapedeck.Session].
func (c *Conversation) status() tapedeck.Status {
	status, last, running := tapedeck.StatusIdle, int64(-1), false
	for _, l := range c.lanes {
		if l.waitsForPeople() {
			return tapedeck.StatusWaiting
		}
		switch {
		case l.Status == tapedeck.StatusRunning:
			running = true
		case l.Status == tapedeck.StatusPending && last < 0:
			status = l.Status
		case l.Status.Begun() && l.ended > last:
			status, last = l.Status, l.ended
		}
	}
	if running {
		return tapedeck.StatusRunning
	}
	return status
}

// waitsForPeople reports whether an open run of the lane has asked a question that
// is pending.
func (l *lane) waitsForPeople() bool {
	for _, p := range l.permissions {
		if p.Status != PermissionOpen {
			continue
		}
		if w := l.open[p.Invocation]; w != nil && w.run != nil {
			return true
		}
		for _, w := range l.open {
			if p.Invocation == "" && w.run != nil && w.run.Offset < p.Offset {
				return true
			}
		}
	}
	return false
}
