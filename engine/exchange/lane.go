package exchange

import (
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// maxDelta is the most bytes of text in one event, so that a page of a huge
// message is no huge page.
const maxDelta = 1 << 20

// maxTokens is the most tokens that are believed: what survives in JavaScript.
const maxTokens = 1<<53 - 1

// A lane is one thread of the session that is being made.
//
// An invocation begins with what a user says, and has a run from the first thing
// that the agent does. What a user says while nothing has answered belongs to
// the same invocation.
type lane struct {
	*session
	thread     string // "" for the main one
	invocation string // under way; "" for none
	asked      time.Time
	last       time.Time // of the newest event
	running    bool
	cancelled  bool
	cutOff     bool // the input is at its end
	turn       int

	source  string               // the model's answer that is being read, as the source names it
	message string               // the id that its first text gets, and that its calls belong to
	spoken  bool                 // that text has come
	usage   *payload.TokenCounts // of the answer
	sum     []payload.TokenUsage // of the run, by model
	calls   map[string][]string  // by the id in the source: ids here, the newest last
	open    map[string]struct{}  // calls of the run without an answer
}

// outside emits an event that belongs to no invocation.
func (l *lane) outside(p payload.Payload) {
	l.send(payload.NewEvent(p), l.at)
}

// put emits an event of the invocation, as of at.
func (l *lane) put(p payload.Payload, at time.Time) {
	e := payload.NewEvent(p)
	e.Invocation = l.invocation
	l.send(e, at)
}

// say emits an event of the agent's turn.
func (l *lane) say(p payload.Payload) {
	e := payload.NewEvent(p)
	e.Invocation, e.Turn = l.invocation, l.turn
	l.send(e, l.at)
}

func (l *lane) send(e tapedeck.Event, at time.Time) {
	l.create()
	e.Thread, e.Time = l.thread, at
	l.events++
	if e.Time.After(l.last) {
		l.last = e.Time
	}
	l.d.emit(e)
}

// system adds a message that belongs to no invocation.
func (l *lane) system(m payload.Message) {
	m.Metadata = l.takeMeta()
	l.outside(payload.MessageAdded{Message: m})
}

// user adds what a user said. It ends the run that is open and begins an
// invocation, unless it goes into the one that is under way.
func (l *lane) user(m payload.Message, into bool) {
	if !into && l.running {
		l.end()
	}
	l.invoke()
	m.Metadata = l.takeMeta()
	l.put(payload.MessageAdded{Message: m}, l.at)
}

func (l *lane) invoke() {
	if l.invocation == "" {
		l.invocation, l.asked = l.d.options.NewID("inv_"), l.at
	}
}

// begin opens the run, if it is not open. It has begun when it was asked for.
func (l *lane) begin() {
	l.invoke()
	if l.running {
		return
	}
	l.running, l.turn = true, 0
	p := payload.RunStarted{ThreadID: l.threadID(), RunID: l.invocation}
	if l.thread != "" {
		p.ParentRunID = l.mainRun()
	}
	l.put(p, l.asked)
}

func (l *lane) threadID() string {
	if l.thread == "" {
		return tapedeck.MainThread
	}
	return l.thread
}

func (s *session) mainRun() string {
	for _, l := range s.lanes {
		if l.thread == "" && l.running {
			return l.invocation
		}
	}
	return ""
}

// end ends the invocation.
func (l *lane) end() {
	if l.thread == "" && l.running {
		l.others()
	}
	l.endAnswer()
	if l.running {
		l.put(l.ending(), l.last)
	}
	l.invocation, l.running, l.cancelled, l.turn, l.sum = "", false, false, 0, nil
	clear(l.open)
}

// ending says how the run has ended, as far as the source tells: a call that was
// never answered was cancelled if something else came in its place, and is the
// end of what was recorded if nothing did.
func (l *lane) ending() payload.Payload {
	if l.cutOff && !l.cancelled && len(l.open) > 0 {
		return payload.RunError{
			Message: "the recording ends before the tool has answered", Code: tapedeck.CodeInterrupted, Usage: l.sum,
		}
	}
	p := payload.RunFinished{ThreadID: l.threadID(), RunID: l.invocation, Usage: l.sum}
	if l.cancelled || len(l.open) > 0 {
		p.Outcome = &payload.Outcome{Type: payload.OutcomeCancelled}
	}
	return p
}

// answer begins an answer of the model, unless it is the one that is being read.
func (l *lane) answer(source string) {
	l.begin()
	if l.message != "" && source != "" && source == l.source {
		return
	}
	l.endAnswer()
	l.turn++
	l.source, l.spoken = source, false
	l.message = l.unique(source, "msg")
}

// endAnswer reports what the answer has used, which sources say several times
// while it is streamed.
func (l *lane) endAnswer() {
	if u := l.usage; u != nil && l.running {
		e := payload.NewEvent(payload.UsageReported{TokenCounts: *u})
		e.Invocation, e.Turn = l.invocation, l.turn
		l.send(e, l.last)
		l.addUsage(u)
	}
	l.usage, l.source, l.message = nil, "", ""
}

func (l *lane) addUsage(u *payload.TokenCounts) {
	i := slices.IndexFunc(l.sum, func(s payload.TokenUsage) bool { return s.Model == u.Model && s.Provider == u.Provider })
	if i < 0 {
		l.sum = append(l.sum, payload.TokenUsage{TokenCounts: *u})
		return
	}
	s := &l.sum[i].TokenCounts
	s.InputTokens = plus(s.InputTokens, u.InputTokens)
	s.OutputTokens = plus(s.OutputTokens, u.OutputTokens)
	s.CachedInputTokens = plus(s.CachedInputTokens, u.CachedInputTokens)
	s.CacheWriteInputTokens = plus(s.CacheWriteInputTokens, u.CacheWriteInputTokens)
}

func plus(a, b *int64) *int64 {
	if a == nil || b == nil || *a+*b > maxTokens {
		return nil // not known
	}
	sum := *a + *b
	return &sum
}

func (l *lane) common() payload.Attributed {
	return payload.Attributed{Common: payload.Common{Metadata: l.takeMeta()}}
}

// text adds a message of the agent.
func (l *lane) text(id, name, s string) {
	if !l.spoken {
		id, l.spoken = l.message, true
	} else {
		id = l.unique(id, "msg")
	}
	l.say(payload.TextMessageStart{MessageID: id, Role: payload.RoleAssistant, Name: name, Attributed: l.common()})
	for delta := range deltas(s) {
		l.say(payload.TextMessageContent{MessageID: id, Delta: delta})
	}
	l.say(payload.TextMessageEnd{MessageID: id})
}

// reasoning adds what the agent thought, and what its provider wants back unseen.
func (l *lane) reasoning(s, encrypted string) {
	id := l.unique("", "thought")
	l.say(payload.ReasoningStart{MessageID: id, Attributed: l.common()})
	if s != "" {
		l.say(payload.ReasoningMessageStart{MessageID: id, Role: payload.RoleReasoning})
		for delta := range deltas(s) {
			l.say(payload.ReasoningMessageContent{MessageID: id, Delta: delta})
		}
		l.say(payload.ReasoningMessageEnd{MessageID: id})
	}
	if encrypted != "" {
		l.say(payload.ReasoningEncryptedValue{Subtype: "message", EntityID: id, EncryptedValue: encrypted})
	}
	l.say(payload.ReasoningEnd{MessageID: id})
}

// call adds a tool call.
func (l *lane) call(given, name, args string) {
	id := l.unique(given, "call")
	l.calls[given] = append(l.unanswered(given), id)
	l.open[id] = struct{}{}
	l.say(payload.ToolCallStart{ToolCallID: id, ToolCallName: name, ParentMessageID: l.message, Attributed: l.common()})
	for delta := range deltas(args) {
		l.say(payload.ToolCallArgs{ToolCallID: id, Delta: delta})
	}
	l.say(payload.ToolCallEnd{ToolCallID: id})
}

// maxSame is how many calls of one id in the source may wait for an answer.
const maxSame = 64

// unanswered returns the calls of a source's id that wait for an answer.
func (l *lane) unanswered(given string) []string {
	var ids []string
	for _, id := range l.calls[given] {
		if _, open := l.open[id]; open {
			ids = append(ids, id)
		}
	}
	return ids[max(0, len(ids)-maxSame+1):]
}

// answered returns the call that an answer to a source's id is for. Sources use
// ids again, and some have none: then the first that waits is meant, or the last
// one if none does.
func (l *lane) answered(given string) string {
	if ids := l.unanswered(given); len(ids) > 0 {
		return ids[0]
	}
	ids := l.calls[given]
	if len(ids) == 0 {
		ids = []string{l.unique(given, "call")}
		l.calls[given] = ids
	}
	return ids[len(ids)-1]
}

// result adds the answer to a call. One that answers no call is kept all the
// same: the call may be in what the source has lost.
func (l *lane) result(message, given string, content json.RawMessage, failed bool) {
	l.begin()
	id := l.answered(given)
	delete(l.open, id)
	p := payload.ToolCallResult{
		MessageID: l.unique(message, "msg"), ToolCallID: id, Content: content, Role: payload.RoleTool, Attributed: l.common(),
	}
	if failed {
		if p.Metadata == nil {
			p.Metadata = tapedeck.Members{}
		}
		p.Metadata[tapedeck.VendorKey] = payload.Meta{Error: true}.Raw()
	}
	l.say(p)
}

// deltas divides a text into parts that are not too long.
func deltas(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for len(s) > maxDelta {
			cut := maxDelta
			for !utf8.RuneStart(s[cut]) {
				cut--
			}
			if !yield(s[:cut]) {
				return
			}
			s = s[cut:]
		}
		if s != "" {
			yield(s)
		}
	}
}
