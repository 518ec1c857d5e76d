package viewtest

import (
	"encoding/json"
	"fmt"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// turns are the possible next actions of an agent in a run. The likelier ones
// are repeated.
var turns = []func(*writer, *lane){
	(*writer).text, (*writer).text, (*writer).text, (*writer).tool, (*writer).tool, (*writer).reasoning,
	(*writer).state, (*writer).activity, (*writer).plan, (*writer).permission, (*writer).aside, (*writer).end, (*writer).end,
}

func (w *writer) text(l *lane) {
	id := w.id("m")
	w.said = append(w.said, id)
	text := ""
	l.say(tapedeck.TextMessageStart, `{"messageId":%q,"role":"assistant"}`, id)
	for range w.IntN(6) {
		word := words[w.IntN(len(words))]
		text += word
		l.say(tapedeck.TextMessageContent, `{"messageId":%q,"delta":%s}`, id, quote(word))
	}
	l.said = append(l.said, fmt.Sprintf(`{"id":%q,"role":"assistant","content":%s}`, id, quote(text)))
	if w.chance(.97) {
		l.say(tapedeck.TextMessageEnd, `{"messageId":%q}`, id)
	}
}

var words = []string{"a ", "few ", "words ", "“quoted” ", "\n", "\t", "ünï ", "\\ ", "\"", ""}

func (w *writer) reasoning(l *lane) {
	id := w.id("r")
	l.say(tapedeck.ReasoningMessageStart, `{"messageId":%q,"role":"reasoning"}`, id)
	l.say(tapedeck.ReasoningMessageContent, `{"messageId":%q,"delta":"hm "}`, id)
	l.say(tapedeck.ReasoningMessageEnd, `{"messageId":%q}`, id)
	if w.chance(.5) {
		l.said = append(l.said, fmt.Sprintf(`{"id":%q,"role":"reasoning","content":"hm"}`, id))
	}
}

func (w *writer) tool(l *lane) {
	id, name := w.id("c"), []string{"Read", "Write", "TodoWrite"}[w.IntN(3)]
	parent := ""
	if len(w.said) > 0 && w.chance(.7) {
		parent = fmt.Sprintf(`,"parentMessageId":%q`, w.said[max(0, len(w.said)-1-w.IntN(3))])
	}
	l.say(tapedeck.ToolCallStart, `{"toolCallId":%q,"toolCallName":%q%s}`, id, name, parent)
	args := []string{`{\"path\":\"x\"}`, `{\"todos\":[{\"content\":\"step\",\"status\":\"pending\"}]}`, `{\"broken`}[w.IntN(3)]
	l.say(tapedeck.ToolCallArgs, `{"toolCallId":%q,"delta":"%s"}`, id, args)
	if w.chance(.95) {
		l.say(tapedeck.ToolCallEnd, `{"toolCallId":%q}`, id)
	}
	if w.chance(.1) {
		l.say(tapedeck.SubagentStarted, `{"subagentRunId":"s%s","name":"sub","parentToolCallId":%q,"metadata":{"tapedeck":{"thread":"sub_%s"}}}`, id, id, id)
	}
	if w.chance(.9) {
		content := []string{`"ok"`, `"broken","error":"why"`, `[{"type":"text","text":"part"}]`}[w.IntN(3)]
		l.say(tapedeck.ToolCallResult, `{"toolCallId":%q,"messageId":"t%s","content":%s}`, id, id, content)
	}
}

func (w *writer) state(l *lane) {
	if w.chance(.2) {
		l.say(tapedeck.StateSnapshot, `{"snapshot":%s}`, []string{`{"n":1,"list":[1,2]}`, `{"n":0,"list":[]}`, `null`, `[1]`, `"text"`}[w.IntN(5)])
		return
	}
	l.say(tapedeck.StateDelta, `{"delta":[%s]}`, patches[w.IntN(len(patches))])
}

var patches = []string{
	`{"op":"add","path":"/list/-","value":{"k":1.50}}`, `{"op":"replace","path":"/n","value":2}`, `{"op":"remove","path":"/n"}`,
	`{"op":"add","path":"/n","value":null}`, `{"op":"test","path":"/n","value":1}`, `{"op":"copy","from":"/list","path":"/copied"}`,
	`{"op":"move","from":"/list/0","path":"/moved"}`, `{"op":"add","path":"/a~1b","value":"slash"}`, `{"op":"replace","path":"","value":{"n":3,"list":[]}}`,
	`{"op":"add","path":"/new","value":true}`, `{"op":"remove","path":""}`,
}

func (w *writer) activity(l *lane) {
	id := w.id("p")
	l.say(tapedeck.ActivitySnapshot, `{"messageId":%q,"activityType":"X","content":%s}`, id, []string{`{"n":1,"list":[]}`, `null`, `{}`}[w.IntN(3)])
	for range w.IntN(3) {
		l.say(tapedeck.ActivityDelta, `{"messageId":%q,"activityType":"X","patch":[%s]}`, id, patches[w.IntN(len(patches))])
	}
}

func (w *writer) plan(l *lane) {
	l.say(tapedeck.PlanUpdated, `{"entries":[{"content":"step %d","status":"in_progress"},{"content":"next"}]}`, w.ids)
}

func (w *writer) permission(l *lane) {
	id := fmt.Sprint("q", w.IntN(10)) // ids repeat, also between runs
	l.say(tapedeck.PermissionRequested, `{"id":%q,"message":"May I?","options":[{"id":"yes","kind":"allow_once"},{"id":"no"}]}`, id)
	if w.chance(.7) {
		l.say(tapedeck.PermissionAnswered, `{"id":%q,"option":"yes","outcome":"selected"}`, id)
	}
	if w.chance(.2) { // an answer from another writer
		other := fmt.Sprint("q", w.IntN(10))
		run := l.run
		l.run = []string{"", w.id("inv_"), run}[w.IntN(3)]
		w.add(l, tapedeck.PermissionAnswered, `{"id":%q,"option":"no","outcome":"selected"}`, other)
		l.run = run
	}
}

// aside adds an event that belongs to no message.
func (w *writer) aside(l *lane) {
	switch w.IntN(5) {
	case 0:
		w.add(nil, tapedeck.SessionRenamed, `{"title":"Name %d","labels":{"k":"v"}}`, w.ids)
	case 1:
		l.say(tapedeck.AgentLinked, `{"runner":"acp","nativeId":"native-%d"}`, w.ids)
	case 2:
		l.say(tapedeck.UsageReported, `{"model":"m","inputTokens":10,"outputTokens":3}`)
	case 3:
		if len(w.lanes) < 2*w.o.Threads {
			w.lanes = append(w.lanes, w.child(l))
		}
	default:
		l.say("acme.unknown", `{"x":%d}`, w.ids)
	}
}

// child returns the lane of a sub-agent's thread.
func (w *writer) child(l *lane) *lane {
	c := &lane{name: w.id(payload.SubThreadPrefix)}
	c.run = w.id("inv_")
	c.say(tapedeck.RunStarted, `{"threadId":%q,"runId":%q,"parentRunId":%q}`, c.name, c.run, l.run)
	return c
}

func (w *writer) end(l *lane) {
	switch w.IntN(6) {
	case 0:
		l.say(tapedeck.RunError, `{"message":"broken","code":"agent"}`)
	case 1:
		l.say(tapedeck.RunFinished, `{"threadId":%q,"runId":%q,"outcome":{"type":"cancelled"},"metadata":{"tapedeck":{"resumable":true}}}`, l.name, l.run)
	case 2:
		l.say(tapedeck.RunFinished, `{"threadId":%q,"runId":%q,"outcome":{"type":"interrupt","interrupts":[{"id":"i"}]}}`, l.name, l.run)
	default:
		l.say(tapedeck.RunFinished, `{"threadId":%q,"runId":%q,"result":{"n":1},"usage":{"inputTokens":1}}`, l.name, l.run)
	}
}

func quote(text string) string {
	b, _ := json.Marshal(text) // encoding a string cannot fail
	return string(b)
}
