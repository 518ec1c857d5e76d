package adk

import (
	"maps"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A run is the open run of a session. It never changes: an append works on a copy, which
// replaces it when the append is durable.
type run struct {
	id         string
	invocation string // of ADK
	restored   bool   // it was open when the session was loaded
	turn       int    // the newest model call
	streams    map[string]*stream
	open       []item    // that a restored run has open
	waiting    []waiting // long-running calls that only a user can answer
	final      bool      // the newest event is a final response
	failed     *payload.RunError
}

// A waiting is a long-running call without an answer.
type waiting struct{ call, item string }

// An item is something that is opened and closed in a run.
type item struct{ start, id string }

func (r *run) clone() *run {
	c := *r
	c.streams = maps.Clone(r.streams)
	c.open, c.waiting = slices.Clone(r.open), slices.Clone(r.waiting)
	return &c
}

// A builder makes the events of one append.
type builder struct {
	c      *conversation
	r      *run // the run after the append; nil if none is open
	out    []tapedeck.Event
	begins bool // r has no RUN_STARTED yet
	calls  []madeCall

	invocation, author string // of what is appended
}

// A madeCall is a function call of ADK and the tool call that it is in the log.
type madeCall struct{ adk, id string }

// hasCall reports whether the session has a tool call with an id.
func (b *builder) hasCall(id string) bool {
	return b.c.used[id] || slices.ContainsFunc(b.calls, func(m madeCall) bool { return m.id == id })
}

// newBuilder returns a builder of events of an invocation. It ends the run of another
// invocation.
func (c *conversation) newBuilder(invocation, author string) *builder {
	b := &builder{c: c, invocation: invocation, author: author}
	if c.run != nil {
		b.r = c.run.clone()
		if invocation == "" || b.r.invocation == invocation {
			return b
		}
		b.leave()
	}
	if invocation == "" {
		invocation = tapedeck.NewID("inv_")
	}
	n := 1
	for c.runs[runID(invocation, n)] {
		n++
	}
	b.r, b.begins = &run{id: runID(invocation, n), invocation: invocation, streams: map[string]*stream{}}, true
	return b
}

// add adds an event of the run.
func (b *builder) add(p payload.Payload) {
	b.start()
	b.place(payload.NewEvent(p))
}

// place adds an event as it is.
func (b *builder) place(e tapedeck.Event) {
	e.Invocation, e.Actor = b.r.id, b.c.actor(b.author)
	if e.Turn = b.r.turn; e.Type == tapedeck.RunStarted || e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError {
		e.Turn = 0
	}
	b.out = append(b.out, e)
}

// start begins the run if it has not begun. What comes before the first call, such as the
// user's message, is before RUN_STARTED, as in the sessions of other agents.
func (b *builder) start() {
	if !b.begins {
		return
	}
	b.begins = false
	begun := payload.RunStarted{ThreadID: tapedeck.MainThread, RunID: b.r.id}
	begun.Metadata = tapedeck.Meta{Agent: b.c.key.app}.In(metadata(stored{Invocation: b.r.invocation}))
	b.place(payload.NewEvent(begun))
}

// leave ends a run because another invocation begins. If another process has begun the
// run, that process has died.
func (b *builder) leave() {
	if b.r.restored {
		b.close()
		b.add(payload.RunError{Code: tapedeck.CodeInterrupted, Message: "the program was restarted while the agent was running"})
		return
	}
	b.end()
}

// end ends the run.
func (b *builder) end() {
	b.close()
	switch {
	case b.r.failed != nil:
		b.add(*b.r.failed)
	case len(b.r.waiting) > 0:
		b.finish(payload.Outcome{Type: payload.OutcomeInterrupt, Interrupts: b.interrupts()})
	default:
		b.add(payload.RunFinished{ThreadID: tapedeck.MainThread, RunID: b.r.id})
	}
	b.r = nil
}

// finish ends the run with an outcome.
func (b *builder) finish(o payload.Outcome) {
	b.add(payload.RunFinished{ThreadID: tapedeck.MainThread, RunID: b.r.id, Outcome: &o})
}

// interrupts returns the calls that wait for a user.
func (b *builder) interrupts() (list []payload.Interrupt) {
	for _, w := range b.r.waiting {
		list = append(list, payload.Interrupt{ID: w.call, Reason: "tool_call", ToolCallID: w.item})
	}
	return list
}

// close closes everything that is open in the run.
func (b *builder) close() {
	for _, k := range slices.Sorted(maps.Keys(b.r.streams)) {
		b.endStream(k)
	}
	for _, i := range slices.Backward(b.r.open) {
		if end, ok := endOf[i.start]; ok {
			b.add(end(i.id))
		}
	}
	b.r.open = nil
}

// endOf has the event that closes an item, by the type that opens it.
var endOf = map[string]func(id string) payload.Payload{
	tapedeck.TextMessageStart: func(id string) payload.Payload { return payload.TextMessageEnd{MessageID: id} },
	tapedeck.ReasoningMessageStart: func(id string) payload.Payload {
		return payload.ReasoningMessageEnd{MessageID: id}
	},
	tapedeck.ToolCallStart: func(id string) payload.Payload { return payload.ToolCallEnd{ToolCallID: id} },
}

// actor returns the actor of what an author does.
func (c *conversation) actor(author string) string {
	if author == "" || author == userAuthor {
		return userActor(c.key.user)
	}
	return validActor("agent:" + author)
}

// userAuthor is the author of the user's events.
const userAuthor = "user"

func userActor(user string) string { return validActor("user:" + user) }

// validActor returns an actor, "" if Tapedeck does not allow it.
func validActor(a string) string {
	if tapedeck.CheckName("the actor", a) != nil {
		return ""
	}
	return a
}
