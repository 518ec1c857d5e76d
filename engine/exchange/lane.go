package exchange

import (
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// maxDelta is the largest number of bytes of text in one event, so that a page of
// events stays small even for a huge message.
const maxDelta = 1 << 20

// maxTokens is the largest accepted count of tokens: the largest integer that
// survives in JavaScript.
const maxTokens = 1<<53 - 1

// A lane is one thread of the current session.
//
// An invocation begins with a message of a user. Its run begins with the agent's
// first event. Further messages of users before an answer belong to the same
// invocation.
type lane struct {
	*session
	thread     string // "" for the main thread
	invocation string // the current one; "" for none
	asked      time.Time
	last       time.Time // the time of the newest event
	running    bool
	cancelled  bool
	cutOff     bool // the input has ended
	turn       int

	source  string               // the source's id of the current answer of the model
	message string               // the id of its first text, to which its calls belong
	hasText bool                 // that text was emitted
	usage   *payload.TokenCounts // of the answer
	sum     []payload.TokenUsage // of the run, by model
	calls   map[string][]string  // ids of calls, newest last, by the id in the source
	latest  []string             // the calls of the answer, oldest first
	open    map[string]struct{}  // calls of the run without a result
}

// emitOutside emits an event without an invocation.
func (l *lane) emitOutside(p payload.Payload) {
	l.send(payload.NewEvent(p), l.at)
}

// emitAt emits an event of the invocation at a time.
func (l *lane) emitAt(p payload.Payload, at time.Time) {
	e := payload.NewEvent(p)
	e.Invocation = l.invocation
	l.send(e, at)
}

// emitTurn emits an event of the agent's turn.
func (l *lane) emitTurn(p payload.Payload) {
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

// addSystemMessage adds a message without an invocation.
func (l *lane) addSystemMessage(m payload.Message) {
	m.Metadata = l.takeMeta()
	l.emitOutside(payload.MessageAdded{Message: m})
}

// addUserMessage adds a message of a user. It ends the open run and begins an
// invocation, unless the current invocation has no answer yet.
func (l *lane) addUserMessage(m payload.Message, into bool) {
	if !into && l.running {
		l.end()
	}
	l.invoke()
	m.Metadata = l.takeMeta()
	l.emitAt(payload.MessageAdded{Message: m}, l.at)
}

func (l *lane) invoke() {
	if l.invocation == "" {
		l.invocation, l.asked = l.d.options.NewID("inv_"), l.at
	}
}

// begin opens the run, if it is not open. The run starts at the time of the user's
// message.
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
	l.emitAt(p, l.asked)
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
		l.endOtherRuns()
	}
	l.endAnswer()
	if l.running {
		l.emitAt(l.ending(), l.last)
	}
	l.invocation, l.running, l.cancelled, l.turn, l.sum = "", false, false, 0, nil
	clear(l.open)
}

// ending returns how the run ended, as far as the source tells. A call without a
// result was cancelled if other events follow; otherwise the recording ends there.
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

// answer begins an answer of the model, unless it is the current one.
func (l *lane) answer(source string) {
	l.begin()
	if l.message != "" && source != "" && source == l.source {
		return
	}
	l.endAnswer()
	l.turn++
	l.source, l.hasText, l.latest = source, false, nil
	l.message = l.unique(source, "msg")
}

// endAnswer reports the usage of the answer. Sources repeat it while they stream
// an answer.
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
		return nil // the usage is unknown
	}
	sum := *a + *b
	return &sum
}

func (l *lane) common() payload.Attributed {
	return payload.Attributed{Common: payload.Common{Metadata: l.takeMeta()}}
}

// text adds a message of the agent.
func (l *lane) text(id, name, s string) {
	if !l.hasText {
		id, l.hasText = l.message, true
	} else {
		id = l.unique(id, "msg")
	}
	l.emitTurn(payload.TextMessageStart{MessageID: id, Role: payload.RoleAssistant, Name: name, Attributed: l.common()})
	for delta := range deltas(s) {
		l.emitTurn(payload.TextMessageContent{MessageID: id, Delta: payload.Piece(delta)})
	}
	l.emitTurn(payload.TextMessageEnd{MessageID: id})
}

// reasoning adds the agent's reasoning, and the encrypted value that its provider
// wants back.
func (l *lane) reasoning(s, encrypted string) {
	id := l.unique("", "thought")
	l.emitTurn(payload.ReasoningStart{MessageID: id, Attributed: l.common()})
	if s != "" {
		l.emitTurn(payload.ReasoningMessageStart{MessageID: id, Role: payload.RoleReasoning})
		for delta := range deltas(s) {
			l.emitTurn(payload.ReasoningMessageContent{MessageID: id, Delta: payload.Piece(delta)})
		}
		l.emitTurn(payload.ReasoningMessageEnd{MessageID: id})
	}
	if encrypted != "" {
		l.emitTurn(payload.ReasoningEncryptedValue{Subtype: "message", EntityID: id, EncryptedValue: encrypted})
	}
	l.emitTurn(payload.ReasoningEnd{MessageID: id})
}

// call adds a tool call.
func (l *lane) call(given, name, args string) {
	id := l.unique(given, "call")
	if given != "" {
		l.calls[given] = append(l.unanswered(given), id)
	}
	l.latest = append(l.latest, id)
	l.open[id] = struct{}{}
	l.emitTurn(payload.ToolCallStart{ToolCallID: id, ToolCallName: name, ParentMessageID: l.message, Attributed: l.common()})
	for delta := range deltas(args) {
		l.emitTurn(payload.ToolCallArgs{ToolCallID: id, Delta: payload.Piece(delta)})
	}
	l.emitTurn(payload.ToolCallEnd{ToolCallID: id})
}

// maxUnanswered is how many calls with one id of the source may wait for a result.
const maxUnanswered = 64

// unanswered returns the calls with an id of the source that wait for a result.
func (l *lane) unanswered(given string) []string {
	var ids []string
	for _, id := range l.calls[given] {
		if _, open := l.open[id]; open {
			ids = append(ids, id)
		}
	}
	return ids[max(0, len(ids)-maxUnanswered+1):]
}

// answered returns the call to which a result belongs. Sources use ids again: then
// the result belongs to the first waiting call, or to the last call if none is waiting.
func (l *lane) answered(given string) string {
	if given == "" {
		return l.nextOfAnswer()
	}
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

// nextOfAnswer returns the call to which a result without an id belongs: the oldest call of
// the answer before it that waits. If none waits, it returns a new id.
func (l *lane) nextOfAnswer() string {
	for ; len(l.latest) > 0; l.latest = l.latest[1:] {
		if _, open := l.open[l.latest[0]]; open {
			return l.latest[0]
		}
	}
	return l.unique("", "call")
}

// result adds the result of a call. A result without a call is kept, too: the
// source may have lost the call.
func (l *lane) result(message, given string, content json.RawMessage, failed bool) {
	l.begin()
	id := l.answered(given)
	delete(l.open, id)
	p := payload.ToolCallResult{
		MessageID: l.unique(message, "msg"), ToolCallID: id, Content: content, Role: payload.RoleTool, Attributed: l.common(),
	}
	if failed {
		p.Metadata = tapedeck.Meta{Error: true}.In(p.Metadata)
	}
	l.emitTurn(p)
}

// deltas divides a text into parts of at most maxDelta bytes.
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
