// Package view folds the events of a session into views: conversation, summary,
// index and others. A fold reads no clock and does no I/O, so the same events
// give the same view on every machine and at any time.
package view

import (
	"iter"

	"github.com/tapedeck/tapedeck"
)

// A Conversation is the fold of a session's events into messages, tool calls,
// runs, shared state and plan. The zero value is an empty conversation.
//
// Folding never fails: an unknown event is ignored, and an event that cannot be
// folded becomes a [Note]. The cost of an event and the memory of a
// conversation do not grow with its length, see [Window]; only
// MESSAGES_SNAPSHOT costs as much as it contains.
type Conversation struct {
	next        int64     // offset after the last event folded
	timeline    *Timeline // says which events are active; nil means all
	at          int64     // the offset for which timeline is asked
	session     sessionFold
	lanes       map[string]*lane
	openRunLane map[string]*lane // the lane that has the newest open run of each invocation
	archive     *archive         // settled items; nil if they are dropped
	inputs      []Input          // in the order of the queue
	notes       []Note
	unnoted     int
	budget      patchBudget // limits the cost of patches
}

// A lane is the fold of one thread. Ids of messages and calls are looked up in
// their own thread only, because agents in different threads may use the same
// ids.
type lane struct {
	Thread
	messages                  list[message] // messages, calls and runs hold the items that are not settled
	calls                     list[call]
	runs                      []*Run
	message                   map[named]*message // the newest message of each name
	call                      map[string]*call
	groups                    [groups][]*message // the messages that MESSAGES_SNAPSHOT restates together
	open                      map[string]*work   // the open work of each invocation
	past                      [groups]pastGroup
	settledCalls, settledRuns int64             // offsets: settled items began before them; 0 if none has settled
	ended                     int64             // offset of the newest end of a run
	restating                 bool              // a MESSAGES_SNAPSHOT is being folded; nothing settles before it is complete
	newest                    map[string]*Run   // the newest run of each invocation that has not settled
	waiting                   map[string]*Tally // the tallies of the invocations that have no run yet
	pastRuns                  int               // number of settled runs
	pastSubs                  int               // those of sub-agents among them
	state                     state
	plan                      *Plan
	permissions               []*Permission
}

// A work is what an invocation has begun in a thread and not ended.
type work struct {
	run      *Run // nil before RUN_STARTED
	messages map[*message]struct{}
	calls    map[*call]struct{}
}

// Fold folds the events that are active as of offset at, according to timeline.
// A nil timeline means that the session has no jumps.
func Fold(events iter.Seq2[tapedeck.Event, error], timeline *Timeline, at int64) (*Conversation, error) {
	c := new(Conversation)
	c.Keep()
	c.UseTimeline(timeline, at)
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

// UseTimeline makes c ignore events that are not active as of offset at, which
// must not be below the offset folded so far. What c has folded must be active
// as of at, too: no jump before at may revert an event that c has folded.
func (c *Conversation) UseTimeline(t *Timeline, at int64) { c.timeline, c.at = t, at }

// isActive reports whether c must fold the event at an offset.
func (c *Conversation) isActive(offset int64, thread string) bool {
	return c.timeline == nil || c.timeline.Has(offset, thread, c.at)
}

// Advance tells c that the events below offset to that it has not folded are
// not active.
func (c *Conversation) Advance(to int64) { c.next = max(c.next, to) }

// Through returns the offset of the last event that was folded, -1 if there is
// none.
func (c *Conversation) Through() int64 { return c.next - 1 }

// Apply folds one event. Events must arrive in the order of their offsets, with
// gaps or without. An event that was folded before is ignored.
func (c *Conversation) Apply(e *tapedeck.Event) {
	if e.Offset < c.next {
		return
	}
	c.next = e.Offset + 1
	if e.Channel == tapedeck.ChannelSession {
		c.applySession(e)
		return
	}
	if !c.isActive(e.Offset, e.ThreadName()) {
		return
	}
	l := c.lane(e)
	if fold, ok := folds[e.Type]; ok && !fold(c, l, e) {
		c.note(e, Malformed)
	}
}

// folds maps each event type to its fold. A fold reports false if the data of
// the event does not have the shape of its type.
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

// lane returns the lane of e, and creates it if necessary. e must not be of
// [tapedeck.ChannelSession].
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
	return &lane{Thread: t, message: map[named]*message{}, call: map[string]*call{}, open: map[string]*work{}, newest: map[string]*Run{}, waiting: map[string]*Tally{}}
}

// work returns the work of an invocation, and creates it if necessary.
func (l *lane) work(invocation string) *work {
	w, ok := l.open[invocation]
	if !ok {
		w = &work{messages: map[*message]struct{}{}, calls: map[*call]struct{}{}}
		l.open[invocation] = w
	}
	return w
}

// finish removes a message or call that has ended from the work of its
// invocation. m or k may be nil.
func (l *lane) finish(invocation string, m *message, k *call) {
	if w, ok := l.open[invocation]; ok {
		delete(w.messages, m)
		delete(w.calls, k)
	}
}

// isOpen reports whether a call was not answered and its run has not ended.
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

// decode decodes the data of e. It reports false if the data has another shape
// or is nested more than maxDepth deep: a view that holds such a value could
// not be encoded.
func decode(e *tapedeck.Event, into any) bool {
	return len(e.Data) == 0 || nesting(e.Data) <= maxDepth && e.Unpack(into)
}

// A list keeps items in the order of their arrival. Removed items stay in it
// until they are many.
type list[T any] struct {
	items   []*T
	removed int
}

func (l *list[T]) add(item *T) { l.items = append(l.items, item) }

func (l *list[T]) alive() int { return len(l.items) - l.removed }

// noteRemoved must be called after each removal; isRemoved reports whether an
// item was removed.
func (l *list[T]) noteRemoved(isRemoved func(*T) bool) {
	if l.removed++; l.removed < 32 || l.removed < len(l.items)/2 {
		return
	}
	kept := make([]*T, 0, len(l.items)-l.removed)
	for _, item := range l.items {
		if !isRemoved(item) {
			kept = append(kept, item)
		}
	}
	l.items, l.removed = kept, 0
}
