package viewtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A Shape is an event type with data for it, in which %s stands for an id.
type Shape struct{ Type, Data string }

// Shapes are events for random orders, all of which a fold must accept.
var Shapes = []Shape{
	{tapedeck.MessageAdded, `{"message":{"id":"u%s","role":"user","content":"hello"}}`},
	{tapedeck.MessageAdded, `{"message":{"id":"t%s","role":"tool","content":"yes","toolCallId":"c1"}}`},
	{"TEXT_MESSAGE_START", `{"messageId":"m%s"}`},
	{"TEXT_MESSAGE_CONTENT", `{"messageId":"m%s","delta":"some \"text\" "}`},
	{"TEXT_MESSAGE_END", `{"messageId":"m%s"}`},
	{"REASONING_MESSAGE_START", `{"messageId":"r%s","role":"reasoning"}`},
	{"REASONING_MESSAGE_CONTENT", `{"messageId":"r%s","delta":"hm"}`},
	{"TOOL_CALL_START", `{"toolCallId":"c%s","toolCallName":"Read","parentMessageId":"m1"}`},
	{"TOOL_CALL_ARGS", `{"toolCallId":"c%s","delta":"{}"}`},
	{"TOOL_CALL_END", `{"toolCallId":"c%s"}`},
	{"TOOL_CALL_RESULT", `{"toolCallId":"c%s","messageId":"x","content":"ok"}`},
	{"MESSAGES_SNAPSHOT", `{"messages":[{"id":"m%s","role":"assistant","content":"said","toolCalls":[{"id":"c2","function":{"name":"Read","arguments":"{}"}}]},{"id":"u1","role":"user","content":"hello"}]}`},
	{"MESSAGES_SNAPSHOT", `{"messages":[{"id":"r%s","role":"reasoning","content":"thought"}]}`},
	{"RUN_STARTED", `{"threadId":"t","runId":"i%s"}`},
	{"RUN_FINISHED", `{"threadId":"t","runId":"i%s"}`},
	{"RUN_FINISHED", `{"threadId":"t","runId":"i%s","outcome":{"type":"cancelled"}}`},
	{"RUN_ERROR", `{"message":"broken","code":"x%s"}`},
	{"STATE_SNAPSHOT", `{"snapshot":{"n":"%s","list":[1,2]}}`},
	{"STATE_DELTA", `{"delta":[{"op":"add","path":"/list/-","value":"%s"}]}`},
	{"STATE_DELTA", `{"delta":[{"op":"remove","path":"/n%s"}]}`},
	{"ACTIVITY_SNAPSHOT", `{"messageId":"p%s","activityType":"X","content":{"n":1}}`},
	{"ACTIVITY_DELTA", `{"messageId":"p%s","activityType":"X","patch":[{"op":"replace","path":"/n","value":2}]}`},
	{tapedeck.PlanUpdated, `{"entries":[{"content":"step %s"}]}`},
	{tapedeck.PermissionRequested, `{"id":"q%s","options":[{"id":"yes"}]}`},
	{tapedeck.PermissionAnswered, `{"id":"q%s","option":"yes","outcome":"selected"}`},
	{tapedeck.SessionRenamed, `{"title":"Name %s"}`},
	{"acme.unknown", `{"x":"%s"}`},
}

// Others are events of the catalogue's types that are neither in Shapes nor in
// the turns of an agent. %s stands for an id.
var Others = []Shape{
	{tapedeck.TextMessageChunk, `{"messageId":"k%s","delta":"chunk"}`},
	{tapedeck.ToolCallChunk, `{"toolCallId":"kc%s","toolCallName":"Read","delta":"{}"}`},
	{tapedeck.ReasoningMessageChunk, `{"messageId":"kr%s","delta":"hm"}`},
	{tapedeck.ReasoningStart, `{"messageId":"r%s"}`},
	{tapedeck.ReasoningEnd, `{"messageId":"r%s"}`},
	{tapedeck.ReasoningEncryptedValue, `{"subtype":"message","entityId":"r%s","encryptedValue":"AAAA"}`},
	{tapedeck.StepStarted, `{"stepName":"step %s"}`},
	{tapedeck.StepFinished, `{"stepName":"step %s"}`},
	{tapedeck.SubagentStarted, `{"subagentRunId":"s%s","name":"search","parentSubagentRunId":"s1"}`},
	{tapedeck.SubagentFinished, `{"subagentRunId":"s%s"}`},
	{tapedeck.SubagentError, `{"subagentRunId":"s%s","message":"lost"}`},
	{tapedeck.TextMessageStart, `{"messageId":"sm%s","role":"assistant","subagentRunId":"s1","metadata":{"tapedeck":{"closed":"cancelled"}}}`},
	{tapedeck.TextMessageEnd, `{"messageId":"sm%s","metadata":{"tapedeck":{"closed":"interrupted"}}}`},
	{tapedeck.Raw, `{"event":{"n":%s},"source":"other"}`},
	{tapedeck.Custom, `{"name":"acme.n%s","value":null}`},
	{tapedeck.InstanceStarted, `{"id":"ins_%s","name":"coder","parent":"ins_2"}`},
	{tapedeck.AgentStarted, `{"pid":%s,"started":"1","host":"h"}`},
	{tapedeck.WorkflowStarted, `{"process":"p%s","digest":"sha256:0"}`},
	{tapedeck.WorkflowEntered, `{"element":"task_%s"}`},
	{tapedeck.WorkflowEntered, `{"element":"task_%s","activation":"%s","items":[1,2],"variables":{"a":1},"thread":"thread_task_%s","attempt":1}`},
	{tapedeck.WorkflowWaiting, `{"element":"task_%s","activation":"%s","for":"timer","due":"2026-01-05T12:34:56Z","repeats":-1}`},
	{tapedeck.WorkflowWaiting, `{"element":"sub_%s","activation":"%s","for":"message","message":"m","within":true}`},
	{tapedeck.WorkflowCaught, `{"element":"late_%s","activation":"%s","by":"timer","interrupts":true}`},
	{tapedeck.WorkflowCaught, `{"element":"beside_%s","activation":"%s","by":"escalation","code":"late","sender":"%s"}`},
	{tapedeck.WorkflowEntered, `{"element":"undo_%s","activation":"%s1","scope":"%s","compensates":"%s","variables":{"a":1}}`},
	{tapedeck.WorkflowLeft, `{"element":"task_%s","activation":"%s","flows":["f%s"],"variables":{"a":2}}`},
	{tapedeck.WorkflowLeft, `{"element":"task_%s","activation":"%s","compensable":true}`},
	{tapedeck.WorkflowFailed, `{"element":"task_%s","message":"broken"}`},
	{tapedeck.WorkflowVariables, `{"variables":{"n":%s}}`},
	{tapedeck.WorkflowMessage, `{"name":"m%s","variables":{"paid":true}}`},
	{tapedeck.WorkflowEnded, `{"message":"%s"}`},
	{tapedeck.TerminalOutput, `{"terminal":"t%s","data":"\u001b[1mbold"}`},
	{tapedeck.TerminalInput, `{"terminal":"t%s","data":"ls\r"}`},
	{tapedeck.TerminalResize, `{"terminal":"t%s","cols":80,"rows":24}`},
	{tapedeck.TerminalExit, `{"terminal":"t%s","code":0}`},
	{tapedeck.PresenceJoined, `{"user":"user_%s"}`},
	{tapedeck.PresenceLeft, `{"user":"user_%s"}`},
	{tapedeck.PresenceMoved, `{"user":"user_%s","cursor":{"line":1}}`},
	{tapedeck.SessionForked, `{"parent":"ses_%s","session":"ses_fork","at":3,"title":"Fork"}`},
	{tapedeck.SessionImported, `{"format":"jsonl","title":"Import %s"}`},
	{tapedeck.SessionRedacted, `{"offsets":[{"from":1,"to":2}],"reason":"%s"}`},
	{tapedeck.SessionClosed, `{"reason":"%s"}`},
	{tapedeck.FeedbackAdded, `{"messageId":"m%s","rating":"up"}`},
	{tapedeck.BookmarkAdded, `{"offset":1,"label":"look %s"}`},
	{payload.TypeInputQueued, `{"id":"in_%s","text":"and then","when":"queue","invocation":"i%s","before":"in_2"}`},
	{payload.TypeInputQueued, `{"id":"in_%s","text":"be quick","when":"steer","agent":"coder","outside":true}`},
	{payload.TypeInputMoved, `{"id":"in_%s"}`},
	{payload.TypeInputMoved, `{"id":"in_%s","before":"in_1"}`},
	{payload.TypeInputSteered, `{"id":"in_%s","invocation":"i1"}`},
	{payload.TypeInputStarted, `{"id":"in_%s","invocation":"i%s"}`},
	{payload.TypeInputWithdrawn, `{"id":"in_%s","reason":"rewound"}`},
}

// metadata is Tapedeck's part of metadata, well-formed or odd.
var metadata = []string{
	`{"agent":"coder","context":"before"}`, `{"agent":5,"context":"kept"}`, `{"resumable":false}`, `{"resumable":"no"}`, `{"thread":7}`, `"odd"`, `null`,
	`{"error":true,"durationMs":1200}`, `{"error":"yes","durationMs":1.0}`, `{"durationMs":1e3}`, `{"durationMs":-1}`, `{"durationMs":1.5}`,
	`{"durationMs":9007199254740993}`, `{"closed":"cancelled"}`, `{"closed":"failed"}`, `{"closed":[]}`, `{"prompt":"sha256:1"}`, `{"prompt":1}`,
}

// withMetadata are events whose metadata a fold reads. The first %s stands for an
// id, the second one for metadata.
var withMetadata = []Shape{
	{tapedeck.RunStarted, `{"threadId":"t","runId":"i%s","metadata":{"tapedeck":%s}}`},
	{tapedeck.RunFinished, `{"threadId":"t","runId":"i%s","outcome":{"type":"cancelled"},"metadata":{"tapedeck":%s}}`},
	{tapedeck.TextMessageEnd, `{"messageId":"m%s","metadata":{"tapedeck":%s}}`},
	{tapedeck.ToolCallResult, `{"toolCallId":"c%s","messageId":"x","content":"ok","metadata":{"tapedeck":%s}}`},
	{tapedeck.SubagentStarted, `{"subagentRunId":"s","name":"sub","parentToolCallId":"c%s","metadata":{"tapedeck":%s}}`},
	{tapedeck.MessageAdded, `{"message":{"id":"s%s","role":"system","content":"Be brief.","metadata":{"tapedeck":%s}}}`},
	{tapedeck.MessageAdded, `{"message":{"id":"t%s","role":"tool","content":"yes","toolCallId":"c1","metadata":{"tapedeck":%s}}}`},
}

// other appends one of Others, or an event with metadata.
func (w *writer) other(l *lane) {
	if w.chance(.3) {
		s := withMetadata[w.IntN(len(withMetadata))]
		own := *l
		own.run = fmt.Sprint("i", 1+w.IntN(3))
		w.add(&own, s.Type, s.Data, strconv.Itoa(1+w.IntN(3)), metadata[w.IntN(len(metadata))])
		return
	}
	s := Others[w.IntN(len(Others))]
	if tapedeck.ChannelOf(s.Type) == tapedeck.ChannelSession {
		l = nil
	}
	w.add(l, s.Type, "%s", strings.ReplaceAll(s.Data, "%s", strconv.Itoa(1+w.IntN(3))))
}

// wild appends an event that fits nothing before it. Its data may have members
// of other types or in another case, or may not have the members of its type at
// all.
func (w *writer) wild(l *lane) {
	s := Shapes[w.IntN(len(Shapes))]
	data := strings.ReplaceAll(s.Data, "%s", strconv.Itoa(1+w.IntN(3)))
	if w.chance(.5) {
		data = w.mangle(data)
	}
	own := *l
	if w.chance(.7) {
		own.run = fmt.Sprint("i", 1+w.IntN(3))
	}
	if s.Type == tapedeck.SessionRenamed {
		w.add(nil, s.Type, "%s", data)
		return
	}
	w.add(&own, s.Type, "%s", data)
}

// odd has values that no member expects.
var odd = []string{
	`null`, `true`, `0`, `-0`, `1e3`, `1.0`, `12345678901234567890`, `""`, `"x"`, `[]`, `[null]`, `[[1]]`, `{}`, `{"":null}`,
	`{"__proto__":{"x":1}}`, `"\u0000"`, `"\ud800"`, `"\u2028"`, `{"id":1}`, `[{"op":"add"}]`, `[{"op":"add","path":"/__proto__","value":1}]`,
}

// mangle changes or removes one member of an object, or replaces the object.
func (w *writer) mangle(data string) string {
	var members map[string]json.RawMessage
	if w.chance(.1) || json.Unmarshal([]byte(data), &members) != nil {
		return `{"odd":` + odd[w.IntN(len(odd))] + `}`
	}
	names := sortedNames(members)
	name := names[w.IntN(len(names))]
	switch value := members[name]; w.IntN(4) {
	case 0: // another case is another member
		delete(members, name)
		members[strings.ToUpper(name[:1])+name[1:]] = value
	case 1:
		members[strings.ToUpper(name)] = json.RawMessage(odd[w.IntN(len(odd))])
	case 2:
		delete(members, name)
	default:
		members[name] = json.RawMessage(odd[w.IntN(len(odd))])
	}
	out := "{"
	for i, name := range sortedNames(members) {
		if i > 0 {
			out += ","
		}
		out += strconv.Quote(name) + ":" + string(members[name])
	}
	return out + "}"
}

func sortedNames(m map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(m)) }
