// Package view folds the events of a session into what people look at. A fold
// knows no clock and does no I/O: the same events give the same view, on every
// machine and at any time.
package view

import (
	"iter"

	"github.com/tapedeck/tapedeck"
)

// A Conversation is the fold of a session's events into messages, tool calls,
// runs, shared state and plan. The zero value is an empty one.
//
// It never fails: what it does not know it passes over, and what it cannot make
// sense of it notes, see [Note]. An event costs the same however long the
// conversation is (MESSAGES_SNAPSHOT costs what it holds), and so does what it
// keeps in memory, see [Window].
type Conversation struct {
	next     int64     // offset after the last event folded
	timeline *Timeline // what is in force; nil for everything
	at       int64     // as of which offset
	session  sessionFold
	lanes    map[string]*lane
	runners  map[string]*lane // by invocation, where its newest open run is
	archive  archive          // what has settled; nil if it is not kept
	notes    []Note
	unnoted  int
	purse    purse // for patches
}

// A lane is the fold of one thread. Ids of messages and calls are looked up in
// their own thread only: two agents that work side by side may use the same.
type lane struct {
	Thread
	messages                  list[message] // at hand
	calls                     list[call]
	runs                      []*Run
	message                   map[string]*message // by id, the newest of it
	call                      map[string]*call
	groups                    [groups][]*message // what MESSAGES_SNAPSHOT restates together
	open                      map[string]*work   // by invocation
	past                      [groups]pastGroup
	settledCalls, settledRuns int64             // those that have settled began before these offsets; 0 for none
	ended                     int64             // offset of the newest end of a run
	restating                 bool              // by a MESSAGES_SNAPSHOT: nothing settles before it is through
	newest                    map[string]*Run   // at hand, by invocation
	waiting                   map[string]*Tally // of invocations without a run
	pastRuns                  int               // how many have settled
	pastSubs                  int               // and how many of them are of sub-agents
	state                     state
	plan                      *Plan
	permissions               []*Permission
}

// work is what an invocation has begun in a thread and not ended.
type work struct {
	run      *Run // nil before RUN_STARTED
	messages map[*message]struct{}
	calls    map[*call]struct{}
}

// Fold folds the events that are in force as of offset at, by timeline; a nil
// one is that of a session without jumps.
func Fold(events iter.Seq2[tapedeck.Event, error], timeline *Timeline, at int64) (*Conversation, error) {
	c := new(Conversation)
	c.Keep()
	c.Follow(timeline, at)
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if e.Offset >= at {
			break
		}
		c.Apply(&e)
	}
	return c, nil
}

// Follow makes c pass over what is not in force as of offset at, which is not
// below what was folded already. What was folded must be in force as of at, too:
// no jump that lies between may go back below it.
func (c *Conversation) Follow(t *Timeline, at int64) { c.timeline, c.at = t, at }

// inForce reports whether an event counts.
func (c *Conversation) inForce(offset int64, thread string) bool {
	return c.timeline == nil || c.timeline.Has(offset, thread, c.at)
}

// Advance says that the events below offset to, as far as they were not folded,
// are not in force.
func (c *Conversation) Advance(to int64) { c.next = max(c.next, to) }

// Through returns the offset of the last event that was folded, -1 for none.
func (c *Conversation) Through() int64 { return c.next - 1 }

// Apply folds one event. Events come in the order of their offsets; offsets may
// be missing, and an event that was folded before is passed over.
func (c *Conversation) Apply(e *tapedeck.Event) {
	if e.Offset < c.next {
		return
	}
	c.next = e.Offset + 1
	if e.Channel == tapedeck.ChannelSession {
		c.applySession(e)
		return
	}
	if !c.inForce(e.Offset, e.ThreadName()) {
		return
	}
	l := c.lane(e)
	if fold, ok := folds[e.Type]; ok && !fold(c, l, e) {
		c.note(e, Malformed)
	}
}

// folds has what each event type does. A fold reports false if the data of the
// event has another shape than its type says.
var folds = map[string]func(*Conversation, *lane, *tapedeck.Event) bool{
	tapedeck.MessageAdded:            (*Conversation).messageAdded,
	tapedeck.MessagesSnapshot:        (*Conversation).messagesSnapshot,
	tapedeck.TextMessageStart:        (*Conversation).textStart,
	tapedeck.TextMessageContent:      (*Conversation).textContent,
	tapedeck.TextMessageEnd:          (*Conversation).textEnd,
	tapedeck.ReasoningMessageStart:   (*Conversation).textStart,
	tapedeck.ReasoningMessageContent: (*Conversation).textContent,
	tapedeck.ReasoningMessageEnd:     (*Conversation).textEnd,
	tapedeck.ActivitySnapshot:        (*Conversation).activitySnapshot,
	tapedeck.ActivityDelta:           (*Conversation).activityDelta,
	tapedeck.ToolCallStart:           (*Conversation).toolStart,
	tapedeck.ToolCallArgs:            (*Conversation).toolArgs,
	tapedeck.ToolCallEnd:             (*Conversation).toolEnd,
	tapedeck.ToolCallResult:          (*Conversation).toolResult,
	tapedeck.RunStarted:              (*Conversation).runStarted,
	tapedeck.RunFinished:             (*Conversation).runEnded,
	tapedeck.RunError:                (*Conversation).runEnded,
	tapedeck.SubagentStarted:         (*Conversation).subagentStarted,
	tapedeck.StateSnapshot:           (*Conversation).stateSnapshot,
	tapedeck.StateDelta:              (*Conversation).stateDelta,
	tapedeck.PlanUpdated:             (*Conversation).planUpdated,
	tapedeck.AgentLinked:             (*Conversation).agentLinked,
	tapedeck.PermissionRequested:     (*Conversation).permissionRequested,
	tapedeck.PermissionAnswered:      (*Conversation).permissionAnswered,
}

// lane returns the lane of e, which is not an event of the session channel.
func (c *Conversation) lane(e *tapedeck.Event) *lane {
	name := e.ThreadName()
	l, ok := c.lanes[name]
	if !ok {
		l = newLane(Thread{Name: name, Offset: e.Offset, Status: tapedeck.StatusIdle})
		l.state = state{raw: c.session.state, shared: true, offset: c.session.stateOffset}
		if c.lanes == nil {
			c.lanes = map[string]*lane{}
		}
		c.lanes[name] = l
	}
	l.Last = e.Offset
	return l
}

func newLane(t Thread) *lane {
	return &lane{Thread: t, message: map[string]*message{}, call: map[string]*call{}, open: map[string]*work{}, newest: map[string]*Run{}, waiting: map[string]*Tally{}}
}

// work returns the work of an invocation.
func (l *lane) work(invocation string) *work {
	w, ok := l.open[invocation]
	if !ok {
		w = &work{messages: map[*message]struct{}{}, calls: map[*call]struct{}{}}
		l.open[invocation] = w
	}
	return w
}

// settle takes a message or a call that has ended from the work of its
// invocation.
func (l *lane) settle(invocation string, m *message, k *call) {
	if w, ok := l.open[invocation]; ok {
		delete(w.messages, m)
		delete(w.calls, k)
	}
}

// isOpen reports whether a call is neither answered nor ended with its invocation.
func (l *lane) isOpen(k *call) bool {
	w, ok := l.open[k.Invocation]
	if ok {
		_, ok = w.calls[k]
	}
	return ok
}

// isBusy reports whether a message is being streamed.
func (l *lane) isBusy(m *message) bool {
	w, ok := l.open[m.Invocation]
	if ok {
		_, ok = w.messages[m]
	}
	return ok
}

// decode decodes the data of e. It reports false if it is of another shape, or
// nests so deep that a view which holds it could not be encoded.
func decode(e *tapedeck.Event, into any) bool {
	return len(e.Data) == 0 || nesting(e.Data) <= maxDepth && e.Unpack(into)
}

// A list keeps items in the order they came, and forgets those that are gone
// when they are many.
type list[T any] struct {
	items []*T
	gone  int
}

func (l *list[T]) add(item *T) { l.items = append(l.items, item) }

func (l *list[T]) alive() int { return len(l.items) - l.gone }

// lose is called when one more item is gone.
func (l *list[T]) lose(gone func(*T) bool) {
	if l.gone++; l.gone < 32 || l.gone < len(l.items)/2 {
		return
	}
	kept := make([]*T, 0, len(l.items)-l.gone)
	for _, item := range l.items {
		if !gone(item) {
			kept = append(kept, item)
		}
	}
	l.items, l.gone = kept, 0
}
