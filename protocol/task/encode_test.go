package task_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
)

// A page is a page of events.
type page struct {
	Events []taskEvent
	Next   int64
	Head   int64
}

type taskEvent struct {
	Type      string
	Data      map[string]any
	Timestamp string
	Sequence  int64
}

// offset is that of the event of the log that it comes from. The last number of the offset
// before is for agent_start.
func (e *taskEvent) offset() int64 { return (e.Sequence + 1) / 1000 }

// place is where an event comes from: an offset of the log, and "+2" for the third event that
// the event at it becomes, "-1" for agent_start before it.
func (e *taskEvent) place() string {
	s := fmt.Sprint(e.offset())
	if part := e.Sequence - 1000*e.offset(); part != 0 {
		s += fmt.Sprintf("%+d", part)
	}
	return s
}

func readTasks(t testing.TB, h http.Handler, target string) (p page) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/sessions/"+target, nil))
	if w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &p) != nil {
		t.Fatalf("%s: %d %s", target, w.Code, w.Body)
	}
	return p
}

// ours is an event of the agent of a run of this server.
func ours(typ, data string) tapedeck.Event {
	e := do(typ, data)
	e.Actor = "agent:a"
	return e
}

const (
	owned = `{~metadata~:{~tapedeck~:{~owner~:~srv_1~}}}`
	begun = `agent_start {"model":null,"session_id":"s","skills":[],"task":"","tools":[]}`
)

// The events that each event of the log becomes.
func TestEvents(t *testing.T) {
	begin := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		events []tapedeck.Event
		want   string // of the last event: type and data; "" for nothing
	}{
		{"user", []tapedeck.Event{do("message.added", `{~message~:{~id~:~u~,~role~:~user~,~content~:~Hi~}}`)}, `user_message {"text":"Hi"}`},
		{"system", []tapedeck.Event{do("message.added", `{~message~:{~id~:~u~,~role~:~system~,~content~:~Hi~}}`)}, ""},
		{"a whole answer", []tapedeck.Event{do("message.added", `{~message~:{~id~:~u~,~role~:~assistant~,~content~:~Yes~}}`)}, `message {"full_text":"Yes","is_partial":false,"text":"Yes"}`},
		{"start", []tapedeck.Event{
			do("message.added", `{~message~:{~id~:~u~,~role~:~user~,~content~:~Hi~}}`),
			do("RUN_STARTED", `{~threadId~:~t~,~runId~:~i~}`),
		}, `agent_start {"model":null,"session_id":"s","skills":[],"task":"Hi","tools":[]}`},
		{"start of a run that resumes", []tapedeck.Event{
			do("message.added", `{~message~:{~id~:~u~,~role~:~user~,~content~:~Hi~}}`),
			do("RUN_STARTED", `{~threadId~:~t~,~runId~:~i~,~metadata~:{~tapedeck~:{~context~:~[It was cancelled]~}}}`),
		}, `agent_start {"model":null,"session_id":"s","skills":[],"task":"Hi","tools":[]}`},
		{"start of an agent whose equipment is known", []tapedeck.Event{
			do("RUN_STARTED", `{~threadId~:~t~,~runId~:~i~,~metadata~:{~tapedeck~:{~model~:~m-1~,~tools~:[~Read~],~skills~:[~pdf~]}}}`),
		}, `agent_start {"model":"m-1","session_id":"s","skills":["pdf"],"task":"","tools":["Read"]}`},
		{"start of a run of this server", []tapedeck.Event{ours("RUN_STARTED", owned)}, ""},
		{"it begins with the first event of the agent", []tapedeck.Event{ours("RUN_STARTED", owned), ours("TEXT_MESSAGE_START", `{~messageId~:~m~}`)}, begun},
		{"or with what the agent says of itself", []tapedeck.Event{
			ours("RUN_STARTED", owned), ours(tapedeck.AgentStarted, `{}`), ours("CUSTOM", `{~name~:~tapedeck.equipment~,~value~:{~model~:~m-2~,~tools~:[~Read~],~skills~:[~pdf~]}}`),
		}, `agent_start {"model":"m-2","session_id":"s","skills":["pdf"],"task":"","tools":["Read"]}`},
		{"not with what comes before the agent", []tapedeck.Event{
			ours("RUN_STARTED", owned), ours("RAW", `{~event~:{}}`), ours("CUSTOM", `{~name~:~tapedeck.lossy~,~value~:{}}`),
		}, ""},
		{"not with an event of somebody else", []tapedeck.Event{ours("RUN_STARTED", owned), do("STATE_SNAPSHOT", `{~snapshot~:{}}`)}, ""},
		{"only once", []tapedeck.Event{ours("RUN_STARTED", owned), ours("STATE_SNAPSHOT", `{~snapshot~:{}}`), ours("TEXT_MESSAGE_START", `{~messageId~:~m~}`)}, ""},
		{"before the end of a run without a word", []tapedeck.Event{ours("RUN_STARTED", owned), do("RUN_FINISHED", `{}`)},
			begun + `agent_complete {"duration_ms":1000,"model":null,"num_turns":1,"status":"COMPLETE","total_cost_usd":null,"usage":null}`},
		{"before a cancel after which it can be resumed", []tapedeck.Event{ours("RUN_STARTED", owned), do("RUN_FINISHED", `{~outcome~:{~type~:~cancelled~},~metadata~:{~tapedeck~:{~resumable~:true}}}`)},
			begun + `cancelled {"message":"Task was cancelled","resumable":true}`},
		{"not before one after which it cannot", []tapedeck.Event{ours("RUN_STARTED", owned), do("RUN_FINISHED", `{~outcome~:{~type~:~cancelled~},~metadata~:{~tapedeck~:{~resumable~:false}}}`)},
			`cancelled {"message":"Task was cancelled","resumable":false}`},
		{"start by an external client", []tapedeck.Event{
			do("RUN_STARTED", `{~threadId~:~t~,~runId~:~i~,~input~:{~messages~:[{~id~:~a~,~role~:~user~,~content~:~Do~}],~tools~:[{~name~:~Read~}]}}`),
		}, `agent_start {"model":null,"session_id":"s","skills":[],"task":"Do","tools":["Read"]}`},
		{"the end of a connected agent", []tapedeck.Event{ours("RUN_STARTED", owned), ours("agent.linked", `{~kind~:~claude~,~id~:~x~}`), do("RUN_ERROR", `{~message~:~down~}`)},
			`session_disconnect {"session_id":"s","total_duration_ms":2000,"total_turns":1}error {"error_type":"error","message":"down"}`},
		{"the end of an agent that was disconnected", []tapedeck.Event{ours("RUN_STARTED", owned), ours("agent.linked", `{~kind~:~claude~,~id~:~x~}`),
			ours("CUSTOM", `{~name~:~task.session_disconnect~,~value~:{~session_id~:~x~}}`), do("RUN_ERROR", `{~message~:~down~}`)}, `error {"error_type":"error","message":"down"}`},
		{"partial", []tapedeck.Event{
			do("TEXT_MESSAGE_START", `{~messageId~:~m~}`), do("TEXT_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~a ~}`),
		}, `message {"is_partial":true,"text":"a "}`},
		{"final", []tapedeck.Event{
			do("TEXT_MESSAGE_START", `{~messageId~:~m~}`), do("TEXT_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~a ~}`),
			do("TEXT_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~b~}`), do("TEXT_MESSAGE_END", `{~messageId~:~m~}`),
		}, `message {"full_text":"a b","is_partial":false,"text":"a b"}`},
		{"an empty message", []tapedeck.Event{do("TEXT_MESSAGE_START", `{~messageId~:~m~}`), do("TEXT_MESSAGE_END", `{~messageId~:~m~}`)}, ""},
		{"a user's, streamed", []tapedeck.Event{
			do("TEXT_MESSAGE_START", `{~messageId~:~m~,~role~:~user~}`), do("TEXT_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~a~}`), do("TEXT_MESSAGE_END", `{~messageId~:~m~}`),
		}, `user_message {"text":"a"}`},
		{"a part of a user's message", []tapedeck.Event{
			do("TEXT_MESSAGE_START", `{~messageId~:~m~,~role~:~user~}`), do("TEXT_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~a~}`),
		}, ""},
		{"thinking, with the id of a message", []tapedeck.Event{
			do("TEXT_MESSAGE_START", `{~messageId~:~m~}`), do("REASONING_MESSAGE_START", `{~messageId~:~m~}`),
			do("REASONING_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~hm~}`), do("REASONING_MESSAGE_END", `{~messageId~:~m~}`),
		}, `thinking {"text":"hm"}`},
		{"tool", []tapedeck.Event{
			do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~Read~}`), do("TOOL_CALL_ARGS", `{~toolCallId~:~c~,~delta~:~{\~a\~:\n~}`),
			do("TOOL_CALL_ARGS", `{~toolCallId~:~c~,~delta~:~1}~}`), do("TOOL_CALL_END", `{~toolCallId~:~c~}`),
		}, `tool_start {"tool_id":"c","tool_input":{"a":1},"tool_name":"Read"}`},
		{"tool without arguments", []tapedeck.Event{
			do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~Read~}`), do("TOOL_CALL_END", `{~toolCallId~:~c~}`),
		}, `tool_start {"tool_id":"c","tool_input":{},"tool_name":"Read"}`},
		{"tool whose arguments are no JSON", []tapedeck.Event{
			do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~Read~}`), do("TOOL_CALL_ARGS", `{~toolCallId~:~c~,~delta~:~oh~}`), do("TOOL_CALL_END", `{~toolCallId~:~c~}`),
		}, `tool_start {"tool_id":"c","tool_input":{"raw":"oh"},"tool_name":"Read"}`},
		{"tool whose arguments are cut off", []tapedeck.Event{
			do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~Read~}`), do("TOOL_CALL_ARGS", `{~toolCallId~:~c~,~delta~:~ {oh~}`), do("TOOL_CALL_END", `{~toolCallId~:~c~}`),
		}, ``},
		{"answer of a tool whose arguments are cut off", []tapedeck.Event{
			do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~Read~}`), do("TOOL_CALL_ARGS", `{~toolCallId~:~c~,~delta~:~{oh~}`), do("TOOL_CALL_END", `{~toolCallId~:~c~}`),
			do("TOOL_CALL_RESULT", `{~toolCallId~:~c~,~messageId~:~r~,~content~:~no~,~role~:~tool~}`),
		}, `tool_start {"tool_id":"c","tool_input":{"raw":"{oh"},"tool_name":"Read"}tool_complete {"duration_ms":0,"is_error":false,"result":"no","tool_id":"c","tool_name":"Read"}`},
		{"answer", []tapedeck.Event{
			do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~Read~}`), do("TOOL_CALL_END", `{~toolCallId~:~c~}`),
			do("TOOL_CALL_RESULT", `{~messageId~:~r~,~toolCallId~:~c~,~content~:~text~}`),
		}, `tool_complete {"duration_ms":1000,"is_error":false,"result":"text","tool_id":"c","tool_name":"Read"}`},
		{"failed answer with a duration", []tapedeck.Event{
			do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~Read~}`), do("TOOL_CALL_END", `{~toolCallId~:~c~}`),
			do("TOOL_CALL_RESULT", `{~messageId~:~r~,~toolCallId~:~c~,~content~:[{~type~:~text~,~text~:~no~}],~metadata~:{~tapedeck~:{~error~:true,~durationMs~:70}}}`),
		}, `tool_complete {"duration_ms":70,"is_error":true,"result":"no","tool_id":"c","tool_name":"Read"}`},
		{"answer as a message", []tapedeck.Event{
			do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~Read~}`), do("TOOL_CALL_END", `{~toolCallId~:~c~}`),
			do("message.added", `{~message~:{~id~:~r~,~role~:~tool~,~toolCallId~:~c~,~content~:~~,~error~:~no~}}`),
		}, `tool_complete {"duration_ms":1000,"is_error":true,"result":"no","tool_id":"c","tool_name":"Read"}`},
		{"answer before the end of the input starts and completes the tool", []tapedeck.Event{
			do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~Read~}`), do("TOOL_CALL_RESULT", `{~messageId~:~r~,~toolCallId~:~c~,~content~:~x~}`),
		}, `tool_start {"tool_id":"c","tool_input":{},"tool_name":"Read"}tool_complete {"duration_ms":0,"is_error":false,"result":"x","tool_id":"c","tool_name":"Read"}`},
		{"and the end of the input nothing", []tapedeck.Event{
			do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~Read~}`), do("TOOL_CALL_RESULT", `{~messageId~:~r~,~toolCallId~:~c~,~content~:~x~}`), do("TOOL_CALL_END", `{~toolCallId~:~c~}`),
		}, ""},
		{"answered twice", []tapedeck.Event{
			do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~Read~}`), do("TOOL_CALL_RESULT", `{~messageId~:~r~,~toolCallId~:~c~,~content~:~x~}`),
			do("TOOL_CALL_RESULT", `{~messageId~:~r~,~toolCallId~:~c~,~content~:~y~}`),
		}, ""},
		{"plan", []tapedeck.Event{do("plan.updated", `{~entries~:[{~content~:~a~,~status~:~pending~}]}`)},
			`tool_start {"tool_id":"plan_0","tool_input":{"todos":[{"content":"a","status":"pending"}]},"tool_name":"TodoWrite"}tool_complete {"duration_ms":0,"is_error":false,"result":"","tool_id":"plan_0","tool_name":"TodoWrite"}`},
		{"a call that sets the plan", calls("todo_write", `{\~todos\~:[{\~content\~:\~a\~,\~activeForm\~:\~as\~,\~status\~:\~cancelled\~}]}`),
			`tool_start {"tool_id":"c","tool_input":{"todos":[{"activeForm":"as","content":"a","status":"cancelled"}]},"tool_name":"TodoWrite"}`},
		{"one in other words", calls("update_plan", `{\~plan\~:[{\~step\~:\~a\~,\~status\~:\~pending\~}]}`),
			`tool_start {"tool_id":"c","tool_input":{"todos":[{"content":"a","status":"pending"}]},"tool_name":"TodoWrite"}`},
		{"one without a plan", calls("todo_write", `{\~todos\~:7}`), `tool_start {"tool_id":"c","tool_input":{"todos":7},"tool_name":"todo_write"}`},
		{"the plan of such a call", append(calls("todo_write", `{\~todos\~:[]}`), do("plan.updated", `{~entries~:[]}`)), ""},
		{"the end of such a call", append(calls("todo_write", `{\~todos\~:[]}`), do("TOOL_CALL_RESULT", `{~messageId~:~r~,~toolCallId~:~c~,~content~:~x~}`)),
			`tool_complete {"duration_ms":1000,"is_error":false,"result":"x","tool_id":"c","tool_name":"TodoWrite"}`},
		{"the turn of such a call", append(calls("todo_write", `{\~todos\~:[]}`), do("usage.reported", `{}`)),
			`conversation_turn {"duration_ms":0,"prompt_preview":"","response_preview":"","tools_used":["TodoWrite"],"turn_number":1}`},
		{"plan of an agent with a tool for it", []tapedeck.Event{
			do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~TodoWrite~}`), do("plan.updated", `{~entries~:[{~content~:~a~,~status~:~pending~}]}`),
		}, ""},
		{"turn", []tapedeck.Event{
			do("message.added", `{~message~:{~id~:~u~,~role~:~user~,~content~:~Hi~}}`), do("RUN_STARTED", `{}`),
			do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~Read~}`),
			do("TEXT_MESSAGE_START", `{~messageId~:~m~}`), do("TEXT_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~a~}`), do("TEXT_MESSAGE_END", `{~messageId~:~m~}`),
			do("usage.reported", `{~inputTokens~:1}`),
		}, `conversation_turn {"duration_ms":5000,"prompt_preview":"Hi","response_preview":"a","tools_used":["Read"],"turn_number":1}`},
		{"turn whose usage is reported before its message ends", []tapedeck.Event{
			do("RUN_STARTED", `{}`),
			do("TEXT_MESSAGE_START", `{~messageId~:~m~}`), do("TEXT_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~first~}`), do("TEXT_MESSAGE_END", `{~messageId~:~m~}`),
			do("usage.reported", `{}`),
			do("TEXT_MESSAGE_START", `{~messageId~:~n~}`), do("TEXT_MESSAGE_CONTENT", `{~messageId~:~n~,~delta~:~sec~}`), do("TEXT_MESSAGE_CONTENT", `{~messageId~:~n~,~delta~:~ond~}`),
			do("usage.reported", `{}`),
		}, `conversation_turn {"duration_ms":4000,"prompt_preview":"","response_preview":"second","tools_used":[],"turn_number":2}`},
		{"turn after that, without text", []tapedeck.Event{
			do("RUN_STARTED", `{}`),
			do("TEXT_MESSAGE_START", `{~messageId~:~m~}`), do("TEXT_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~first~}`),
			do("usage.reported", `{}`), do("TEXT_MESSAGE_END", `{~messageId~:~m~}`),
			do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~Read~}`), do("usage.reported", `{}`),
		}, `conversation_turn {"duration_ms":3000,"prompt_preview":"","response_preview":"","tools_used":["Read"],"turn_number":2}`},
		{"turn with a whole message", []tapedeck.Event{
			do("RUN_STARTED", `{}`), do("message.added", `{~message~:{~id~:~a~,~role~:~assistant~,~content~:~Yes~}}`), do("usage.reported", `{}`),
		}, `conversation_turn {"duration_ms":2000,"prompt_preview":"","response_preview":"Yes","tools_used":[],"turn_number":1}`},
		{"a call in a whole message", []tapedeck.Event{
			do("message.added", `{~message~:{~id~:~a~,~role~:~assistant~,~toolCalls~:[{~id~:~c~,~type~:~function~,~function~:{~name~:~Read~,~arguments~:~{\~a\~:1}~}}]}}`),
		}, `tool_start {"tool_id":"c","tool_input":{"a":1},"tool_name":"Read"}`},
		{"its answer", []tapedeck.Event{
			do("message.added", `{~message~:{~id~:~a~,~role~:~assistant~,~toolCalls~:[{~id~:~c~,~type~:~function~,~function~:{~name~:~Read~,~arguments~:~{}~}}]}}`),
			do("message.added", `{~message~:{~id~:~t~,~role~:~tool~,~toolCallId~:~c~,~content~:~text~,~metadata~:{~tapedeck~:{~durationMs~:70}}}}`),
		}, `tool_complete {"duration_ms":70,"is_error":false,"result":"text","tool_id":"c","tool_name":"Read"}`},
		{"an answer after the run", []tapedeck.Event{
			do("RUN_STARTED", `{}`), do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~Read~}`), do("TOOL_CALL_END", `{~toolCallId~:~c~}`), do("RUN_FINISHED", `{}`),
			do("message.added", `{~message~:{~id~:~t~,~role~:~tool~,~toolCallId~:~c~,~content~:~text~}}`),
		}, `tool_complete {"duration_ms":2000,"is_error":false,"result":"text","tool_id":"c","tool_name":"Read"}`},
		{"done", []tapedeck.Event{
			do("RUN_STARTED", `{}`), do("usage.reported", `{~model~:~m-1~,~inputTokens~:8,~outputTokens~:2,~costUsd~:0.5}`),
			do("usage.reported", `{~model~:~m-1~,~inputTokens~:4,~cachedInputTokens~:3,~costUsd~:0.25}`), do("RUN_FINISHED", `{}`),
		}, `agent_complete {"duration_ms":3000,"model":"m-1","num_turns":2,"status":"COMPLETE","total_cost_usd":0.75,"usage":{"cache_creation_input_tokens":0,"cache_read_input_tokens":3,"input_tokens":12,"output_tokens":2}}`},
		{"done, without usage", []tapedeck.Event{do("RUN_FINISHED", `{}`)}, `agent_complete {"duration_ms":0,"model":null,"num_turns":1,"status":"COMPLETE","total_cost_usd":null,"usage":null}`},
		{"waiting for an answer", []tapedeck.Event{do("RUN_FINISHED", `{~outcome~:{~type~:~interrupt~,~interrupts~:[{}]}}`)}, `agent_complete {"duration_ms":0,"model":null,"num_turns":1,"status":"INTERRUPTED","total_cost_usd":null,"usage":null}`},
		{"cancelled", []tapedeck.Event{do("RUN_FINISHED", `{~outcome~:{~type~:~cancelled~},~metadata~:{~tapedeck~:{~resumable~:false}}}`)}, `cancelled {"message":"Task was cancelled","resumable":false}`},
		{"failed", []tapedeck.Event{do("RUN_ERROR", `{~message~:~no~,~code~:~agent~}`)}, `error {"error_type":"agent","message":"no"}`},
		{"failed, and erased", []tapedeck.Event{do("RUN_ERROR", ``)}, `error {"error_type":"error","message":"the run has failed"}`},
		{"linked", []tapedeck.Event{do("agent.linked", `{~runner~:~acp~,~nativeId~:~x~}`)}, `session_connect {"session_id":"s"}`},
		{"output", []tapedeck.Event{do("CUSTOM", `{~name~:~task.output_display~,~value~:{~output~:~42~,~extra~:1}}`)}, `output_display {"comments":null,"error":null,"extra":1,"output":"42","result_files":[],"status":null}`},
		{"profile", []tapedeck.Event{do("CUSTOM", `{~name~:~task.profile_switch~,~value~:{}}`)}, `profile_switch {"profile_name":null,"profile_type":null,"tools":[]}`},
		{"hook", []tapedeck.Event{do("CUSTOM", `{~name~:~task.hook_triggered~,~value~:{}}`)}, `hook_triggered {"decision":null,"hook_event":null,"message":null,"tool_name":null}`},
		{"disconnect", []tapedeck.Event{do("CUSTOM", `{~name~:~task.session_disconnect~,~value~:{~total_turns~:3}}`)}, `session_disconnect {"session_id":null,"total_duration_ms":null,"total_turns":3}`},
		{"an end cannot be sent so", []tapedeck.Event{do("CUSTOM", `{~name~:~task.agent_complete~,~value~:{}}`)}, ""},
		{"not an object", []tapedeck.Event{do("CUSTOM", `{~name~:~task.output_display~,~value~:7}`)}, ""},
		{"an unknown type", []tapedeck.Event{do("acme.said", `{}`)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, l := newHandler()
			for i := range c.events {
				c.events[i].Time = begin.Add(time.Duration(i) * time.Second)
			}
			l.create(t, c.events...)
			got, last := "", int64(len(c.events)-1)
			for _, e := range readTasks(t, h, "s/events?format=task").Events {
				if e.offset() == last {
					data, _ := json.Marshal(e.Data)
					got += e.Type + " " + string(data)
				}
			}
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// calls are the events of a call with arguments.
func calls(name, args string) []tapedeck.Event {
	return []tapedeck.Event{
		do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~`+name+`~}`), do("TOOL_CALL_ARGS", `{~toolCallId~:~c~,~delta~:~`+args+`~}`), do("TOOL_CALL_END", `{~toolCallId~:~c~}`),
	}
}

// TestWholeMessagesWithCalls has the form in which many agents store their history: one
// message has text and several calls, which other messages answer. It need not belong to
// a run.
func TestWholeMessagesWithCalls(t *testing.T) {
	for _, invocation := range []string{"i", ""} {
		h, l := newHandler()
		call := func(id string) string {
			return `{~id~:~` + id + `~,~type~:~function~,~function~:{~name~:~Tool ` + id + `~,~arguments~:~{}~}}`
		}
		log := []tapedeck.Event{
			do("session.created", `{}`),
			do("message.added", `{~message~:{~id~:~u~,~role~:~user~,~content~:~Do~}}`),
			do("message.added", `{~message~:{~id~:~a~,~role~:~assistant~,~content~:~I look.~,~toolCalls~:[`+call("x")+","+call("y")+`]}}`),
			do("message.added", `{~message~:{~id~:~t1~,~role~:~tool~,~toolCallId~:~y~,~content~:~2~}}`),
			do("message.added", `{~message~:{~id~:~t2~,~role~:~tool~,~toolCallId~:~x~,~content~:~1~}}`),
		}
		for i := range log {
			log[i].Invocation = invocation
		}
		l.create(t, log...)
		const want = "1 user_message, 2 message, 2+1 tool_start Tool x, 2+2 tool_start Tool y, 3 tool_complete Tool y, 4 tool_complete Tool x"
		for _, path := range []string{"s/events?format=task", "s/events/history"} {
			var got []string
			for _, e := range readTasks(t, h, path).Events {
				name, _ := e.Data["tool_name"].(string)
				got = append(got, strings.TrimSpace(fmt.Sprint(e.place(), " ", e.Type, " ", name)))
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%s of %q: %s", path, invocation, strings.Join(got, ", "))
			}
		}
		for _, cut := range []struct{ last, want string }{
			{"1000", "2 message, 2+1 tool_start, 2+2 tool_start, 3 tool_complete, 4 tool_complete"},
			{"2000", "2+1 tool_start, 2+2 tool_start, 3 tool_complete, 4 tool_complete"},
			{"2001", "2+2 tool_start, 3 tool_complete, 4 tool_complete"},
			{"2002", "3 tool_complete, 4 tool_complete"},
		} {
			synctest.Test(t, func(t *testing.T) {
				s := watch(t, h, "s/stream?format=task", "Last-Event-ID", cut.last)
				synctest.Wait()
				if got := received(t, s); got != cut.want {
					t.Errorf("after %s: %s", cut.last, got)
				}
				s.Disconnect()
			})
		}
	}
}

// An event has one number, in the stream of all events and in the history, which lacks those
// that a run has repeated: among these the one that brought agent_start.
func TestNumbersOfARepeatedStep(t *testing.T) {
	h, l := newHandler()
	log := []tapedeck.Event{
		do("session.created", `{}`), ours("RUN_STARTED", owned), ours("TEXT_MESSAGE_START", `{~messageId~:~m~}`), ours("TEXT_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~a~}`),
		ours(tapedeck.AttemptSuperseded, `{~marker~:~k~,~thread~:~main~,~fromOffset~:2}`),
		ours("message.added", `{~message~:{~id~:~n~,~role~:~assistant~,~content~:~b~}}`), do("RUN_FINISHED", `{}`),
	}
	l.create(t, log...)
	for target, want := range map[string]string{
		"s/events?format=task": "2-1 agent_start, 3 message, 5 message, 6 agent_complete", "s/events/history": "4-1 agent_start, 5 message, 6 agent_complete",
	} {
		var got []string
		for _, e := range readTasks(t, h, target).Events {
			got = append(got, e.place()+" "+e.Type)
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s\ngot  %s\nwant %s", target, s, want)
		}
	}
}

// A message with more calls than it can have numbers loses none: the last ones start with
// their answers.
func TestThousandCalls(t *testing.T) {
	h, l := newHandler()
	var list []string
	log := []tapedeck.Event{do("session.created", `{}`), do("RUN_STARTED", `{}`), {}}
	for i := range 1100 {
		list = append(list, fmt.Sprintf(`{~id~:~c%d~,~type~:~function~,~function~:{~name~:~Read~,~arguments~:~{\~n\~:%[1]d}~}}`, i))
		log = append(log, do("TOOL_CALL_RESULT", fmt.Sprintf(`{~messageId~:~r%d~,~toolCallId~:~c%[1]d~,~content~:~x~}`, i)))
	}
	log[2] = do("message.added", `{~message~:{~id~:~a~,~role~:~assistant~,~content~:~I look.~,~toolCalls~:[`+strings.Join(list, ",")+`]}}`)
	l.create(t, log...)
	last, started, completed := int64(-1), map[string]float64{}, 0
	for _, e := range readTasks(t, h, "s/events/history").Events {
		if e.Sequence <= last {
			t.Fatalf("%d comes after %d", e.Sequence, last)
		}
		last = e.Sequence
		switch id, _ := e.Data["tool_id"].(string); e.Type {
		case "tool_start":
			started[id] = e.Data["tool_input"].(map[string]any)["n"].(float64)
		case "tool_complete":
			if n, ok := started[id]; !ok || id != fmt.Sprint("c", n) {
				t.Fatalf("%s was not started with its input", id)
			}
			completed++
		}
	}
	if completed != 1100 {
		t.Errorf("%d calls are complete", completed)
	}
}

// Wherever a client continues, it gets the same events as a client that reads everything.
func TestResumeAnywhere(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h, l := newHandler()
		events := anyLog(r)
		if _, err := l.Create(t.Context(), tapedeck.Spec{ID: "s", Events: events}); err != nil {
			r.Fatal(err)
		}
		whole := readTasks(t, h, "s/events?format=task").Events
		for cut := range len(events) + 1 {
			want := slices.DeleteFunc(slices.Clone(whole), func(e taskEvent) bool { return e.offset() < int64(cut) })
			got := readTasks(t, h, fmt.Sprintf("s/events?format=task&from=%d", cut)).Events
			if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
				r.Fatalf("from %d (-want +got)\n%s", cut, diff)
			}
		}
	})
}

// anyLog is a log of runs on three threads, in any allowed order, with some events whose
// run never began.
func anyLog(r *rapid.T) []tapedeck.Event {
	log := []tapedeck.Event{do("session.created", `{}`)}
	at := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	runs := [3]int{}
	open := [3]bool{}
	n := rapid.IntRange(1, 60).Draw(r, "events")
	for len(log) < n {
		at = at.Add(time.Duration(rapid.IntRange(0, 900).Draw(r, "ms")) * time.Millisecond)
		lane := rapid.IntRange(0, 2).Draw(r, "thread")
		e := tapedeck.Event{Time: at, Thread: fmt.Sprint("t", lane)}
		id := rapid.SampledFrom([]string{"a", "b"}).Draw(r, "id")
		switch {
		case rapid.IntRange(0, 30).Draw(r, "stray") == 0:
			e.Invocation = "stray"
		case !open[lane]:
			runs[lane]++
			open[lane] = true
			e.Invocation = fmt.Sprintf("i%d.%d", lane, runs[lane])
			user := e
			user.Type, user.Data = tapedeck.MessageAdded, json.RawMessage(`{"message":{"id":"u","role":"user","content":"Do `+e.Invocation+`"}}`)
			e.Type, e.Data = tapedeck.RunStarted, json.RawMessage(rapid.SampledFrom([]string{`{}`, `{"metadata":{"tapedeck":{"owner":"srv_1"}}}`}).Draw(r, "run"))
			log = append(log, user, e)
			continue
		default:
			e.Invocation = fmt.Sprintf("i%d.%d", lane, runs[lane])
		}
		e.Turn, e.Actor = rapid.IntRange(0, 3).Draw(r, "turn"), rapid.SampledFrom([]string{"", "agent:a"}).Draw(r, "actor")
		e.Type = rapid.SampledFrom([]string{
			"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
			"REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END",
			"TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT", "message.added",
			"plan.updated", "usage.reported", "RUN_FINISHED",
		}).Draw(r, "type")
		e.Data = json.RawMessage(fmt.Sprintf(`{"messageId":%q,"toolCallId":%q,"toolCallName":"T%d","delta":"d%d ","content":"c","costUsd":1,"entries":[]}`, id, id, len(log), len(log)))
		if e.Type == tapedeck.MessageAdded {
			e.Data = json.RawMessage(fmt.Sprintf(`{"message":{"id":"m%d","role":"assistant","content":"w%d","toolCalls":[{"id":%q,"type":"function","function":{"name":"W%d","arguments":"{}"}}]}}`, len(log), len(log), id, len(log)))
		}
		if e.Type == "TOOL_CALL_START" && rapid.IntRange(0, 9).Draw(r, "todo") == 0 {
			e.Data = json.RawMessage(`{"toolCallId":"` + id + `","toolCallName":"TodoWrite"}`)
		}
		open[lane] = open[lane] && (e.Type != "RUN_FINISHED" || e.Invocation == "stray")
		log = append(log, e)
	}
	return log
}
