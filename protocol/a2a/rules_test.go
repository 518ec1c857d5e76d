package a2a_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/protocol/a2a"
)

// immediately returns the parameters of a message whose answer does not wait.
func immediately(params string) string {
	return strings.Replace(params, `{"message"`, `{"configuration":{"returnImmediately":true},"message"`, 1)
}

func get(id string) string { return fmt.Sprintf(`{"id":%q}`, id) }

// Every malformed request gets an error that says what is wrong, and starts nothing.
func TestHostileRequests(t *testing.T) {
	inBubble(t, a2a.Options{MaxBody: 10_000}, func(w *world) {
		w.create()
		before := len(w.log())
		for _, tt := range []struct {
			body string
			code int
			want string
		}{
			{``, -32700, "not JSON"},
			{`{`, -32700, "not JSON"},
			{"{\"jsonrpc\":\"\xff\"}", -32700, "not valid UTF-8"},
			{strings.Repeat("[", 1001) + strings.Repeat("]", 1001), -32600, "nested more than 1000 levels deep"},
			{`"` + strings.Repeat("x", 10_000) + `"`, -32602, "more than 10000 bytes"},
			{`[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]`, -32600, "batches are not supported"},
			{`{"jsonrpc":"1.0","id":1,"method":"GetTask"}`, -32600, "must be \"2.0\""},
			{`{"jsonrpc":"2.0","id":{},"method":"GetTask"}`, -32600, "the id of the request"},
			{`{"jsonrpc":"2.0","id":1,"method":7}`, -32600, "method cannot be a number"},
			{`{"jsonrpc":"2.0","id":1}`, -32600, "names no method"},
			{`{"jsonrpc":"2.0","id":1,"method":"message/send"}`, -32601, "version 0.3 has it; say so with the header A2A-Version: 0.3"},
			{`{"jsonrpc":"2.0","id":1,"method":"Steal"}`, -32601, `no method "Steal"`},
			{`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}`, -32602, "not an object"},
			{`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":7}}`, -32602, "id cannot be a number"},
			{`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}`, -32602, "no id of a task"},
			{`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"c~x","historyLength":-1}}`, -32602, "historyLength is -1"},
		} {
			w.post("/a2a/bot", tt.body, "A2A-Version", "1.0").fails(tt.code, tt.want)
		}
		w.post("/a2a/bot", `{"jsonrpc":"2.0","id":1,"method":"GetTask"}`, "A2A-Version", "9.9").fails(-32009, `version "9.9" of A2A is not supported; send A2A-Version: 1.0 or 0.3`)
		w.post("/a2a/bot?A2A-Version=9.9", `{}`).fails(-32009, "not supported")
		for _, id := range []string{"c", "none~inv", "c~none", "c~../x", "~", "c~", "../x~y", strings.Repeat("x", 3000)} {
			for _, method := range []string{"GetTask", "CancelTask", "SubscribeToTask"} {
				w.call(method, get(id)).fails(-32001, "there is no task")
			}
		}
		if after := len(w.log()); after != before {
			t.Errorf("%d events were appended", after-before)
		}
	})
}

// A malformed message is refused, whether it is sent or streamed.
func TestHostileMessages(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		w.create()
		before := len(w.log())
		for params, want := range map[string]string{
			`{}`:                  "no message",
			`{"message":{}}`:      "no messageId",
			message("", "go", ""): "no messageId",
			message(strings.Repeat("x", 600), "go", ""):                                              "at most 512",
			strings.Replace(message("m", "go", ""), "ROLE_USER", "ROLE_AGENT", 1):                    "the role of the user",
			strings.Replace(message("m", "go", ""), `[{"text":"go"}]`, "[]", 1):                      "no parts",
			strings.Replace(message("m", "go", ""), `[{"text":"go"}]`, "[null]", 1):                  "empty",
			strings.Replace(message("m", "go", ""), `[{"text":"go"}]`, "[{}]", 1):                    "the parameters do not have the form",
			strings.Replace(message("m", "go", ""), `"contextId":"c"`, `"contextId":"../../etc"`, 1): "the contextId",
			message("m", "  ", ""): "the task is empty",
			strings.Replace(message("mX", "go", ""), "mX", `m\u0000`, 1): "control character",
			message("m", "go", `"taskId":"d~inv_1"`):                     "is not in the context c",
			message("m", "go", `"metadata":{"tapedeckConfig":7}`):        "tapedeckConfig is not an object",
		} {
			w.call("SendMessage", params).fails(-32602, want)
			w.call("SendStreamingMessage", params).fails(-32602, want)
		}
		w.call("SendMessage", strings.Replace(message("m", "go", ""), `"text":"go"`, `"url":"http://127.0.0.1/secret"`, 1)).fails(-32005, "does not load files by their URL")
		w.call("SendMessage", strings.Replace(message("m", "go", ""), `"text":"go"`, `"raw":"AAEC","mediaType":"image/png"`, 1)).fails(-32005, `the type "image/png"`)
		w.call03("message/send", strings.Replace(message03("m", "go", ""), `"kind":"text"`, `"kind":"file","file":{"bytes":"%"}`, 1)).fails(-32602, "not in base64")
		w.call03("message/send", strings.Replace(message03("m", "go", ""), `"kind":"text"`, `"kind":"video"`, 1)).fails(-32602, `the kind "video"`)
		if after := len(w.log()); after != before {
			t.Errorf("%d events were appended", after-before)
		}
	})
}

// A client can resume only after an event that the session has.
func TestHostileCursors(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		w.call("SendMessage", message("m0", "say Before", ""))
		id := w.call("SendMessage", message("m1", "say Hi", "")).task().ID
		for cursor, want := range map[string]string{
			"-1": "has no event", "x": "has no event", "999": "its newest is", "99999999999999999999": "has no event", "1.5": "has no event",
			"2": "did not exist yet at event 2",
		} {
			w.call("SubscribeToTask", get(id), "Last-Event-ID", cursor).fails(-32602, want)
		}
	})
}

// The names of members may be in snake case, but the metadata of a client stays.
func TestSnakeCase(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		params := `{"message":{"message_id":"m1","role":"ROLE_USER","context_id":"c","parts":[{"text":"say Hi"}]},"configuration":{"history_length":1}}`
		got := w.call("SendMessage", params).task()
		if got.ContextID != "c" || got.words() != "agent: Hi" {
			t.Errorf("got %+v", got)
		}
		if got := w.call("GetTask", fmt.Sprintf(`{"id":%q,"history_length":0}`, got.ID)).task(); len(got.History) != 0 {
			t.Errorf("got %s", got.words())
		}
	})
}

// A task belongs to the agent that runs it.
func TestTasksOfAnotherAgent(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		id := w.call("SendMessage", message("m1", "say Hi", "")).task().ID
		other := func(method, params string) *answer {
			return w.post("/a2a/other", fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params), "A2A-Version", "1.0")
		}
		for _, method := range []string{"GetTask", "CancelTask", "SubscribeToTask"} {
			other(method, get(id)).fails(-32001, "there is no task")
		}
		if got := other("ListTasks", `{}`).tasks(); len(got) != 0 {
			t.Errorf("listed are %v", got)
		}
		if got := other("SendMessage", message("m2", "say Hello", "")).task(); got.words() != "user: say Hello | agent: Hello" {
			t.Errorf("got %s", got.words())
		}
		if got := w.do("GET", "/a2a/nobody/.well-known/agent-card.json", ""); got.Status != 404 || !strings.Contains(got.Body, `there is no agent \"nobody\"`) {
			t.Errorf("got %d %s", got.Status, got.Body)
		}
		if got := w.do("GET", "/a2a/.well-known/agent-card.json", ""); got.Status != 404 || !strings.Contains(got.Body, "with the slash at its end") {
			t.Errorf("got %d %s", got.Status, got.Body)
		}
	})
}

// A question of the agent makes the task wait for input. A message to the task answers.
func TestQuestion(t *testing.T) {
	for name, answers := range map[string]string{
		"by id":       message("m2", "yes", `"taskId":"ID"`),
		"by name":     message("m2", " YES ", `"taskId":"ID"`),
		"by data":     strings.Replace(message("m2", "x", `"taskId":"ID"`), `{"text":"x"}`, `{"data":{"option":"yes"}}`, 1),
		"as a choice": strings.Replace(message("m2", "x", `"taskId":"ID"`), `{"text":"x"}`, `{"data":{"decision_type":"approve"}}`, 1),
	} {
		for _, policy := range []a2a.Policy{a2a.PerTurn, a2a.PerSession} {
			t.Run(name+" "+string(policy), func(t *testing.T) {
				inBubble(t, a2a.Options{Policy: policy}, func(w *world) {
					s := w.call("SendStreamingMessage", message("m1", "say First\nask May I?", ""))
					c := s.follow()
					if c.Status.State != "TASK_STATE_INPUT_REQUIRED" || !strings.HasSuffix(c.words(), "agent: May I? | agent: <nil>") {
						t.Errorf("got %s %s", c.Status.State, c.words())
					}
					w.call("SendMessage", strings.Replace(message("m3", "maybe", `"taskId":"ID"`), "ID", c.ID, 1)).fails(-32602, "chooses none of the options")
					s = w.call("SendStreamingMessage", strings.Replace(answers, "ID", c.ID, 1))
					if c = s.follow(); !strings.HasSuffix(c.words(), "agent: You chose yes") {
						t.Errorf("after the answer: %s %s", c.Status.State, c.words())
					}
					c.same(s, w.call("GetTask", get(c.ID)).task())
				})
			})
		}
	}
}

// Of several pending questions, the task shows the one that a message answers: nobody
// allows what they did not see. A message can name another.
func TestSeveralQuestions(t *testing.T) {
	for name, tt := range map[string]struct{ first, then, want string }{
		"the one that is shown": {`{"text":"yes"}`, "May I q2?", "You chose yes and no"},
		"the other":             {`{"data":{"option":"yes","permission":"q2"}}`, "May I q1?", "You chose no and yes"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, a2a.Options{}, func(w *world) {
				asked := w.call("SendStreamingMessage", message("m1", "ask2", "")).follow()
				time.Sleep(time.Second) // in the bubble: until both are asked
				shown := func() string {
					task := w.call("GetTask", get(asked.ID)).task()
					if task.Status.State != "TASK_STATE_INPUT_REQUIRED" {
						t.Fatalf("the task is %s", task.Status.State)
					}
					return task.Status.Message.Parts[0].Text
				}
				if got := shown(); got != "May I q1?" {
					t.Errorf("the task shows %q", got)
				}
				to := strings.Replace(`"taskId":"ID"`, "ID", asked.ID, 1)
				w.call("SendMessage", strings.Replace(message("m2", "x", to), `{"text":"x"}`, `{"data":{"option":"yes","permission":"q3"}}`, 1)).fails(-32004, `the question "q3" is not pending`)
				w.call("SendMessage", strings.Replace(message("m3", "x", to), `{"text":"x"}`, tt.first, 1))
				if got := shown(); got != tt.then {
					t.Errorf("after the first answer the task shows %q", got)
				}
				done := w.call("SendStreamingMessage", message("m4", "no", to)).follow()
				if !strings.HasSuffix(done.words(), tt.want) {
					t.Errorf("got %s", done.words())
				}
			})
		})
	}
}

// A message to a task that cannot take it is refused with the reason.
func TestMessagesToATask(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		done := w.call("SendMessage", message("m1", "say Hi", "")).task()
		w.call("SendMessage", message("m2", "more", fmt.Sprintf(`"taskId":%q`, done.ID))).fails(-32004, "has ended; send the message with the contextId only")
		busy := w.call("SendMessage", immediately(message("m3", "say Well\nwait", ""))).task()
		time.Sleep(time.Second) // in the bubble: until the agent waits
		w.call("SendMessage", message("m4", "more", fmt.Sprintf(`"taskId":%q`, busy.ID))).fails(-32004, "the agent is working on task")
		w.call("SendMessage", message("m5", "more", "")).fails(-32004, "thread main is busy with inv_")
		if got := w.call("CancelTask", get(busy.ID)).task(); got.Status.State != "TASK_STATE_CANCELED" {
			t.Errorf("got %+v", got.Status)
		}
		w.call("CancelTask", get(busy.ID)).fails(-32002, "has ended, so it cannot be cancelled")
		failed := w.call("SendMessage", message("m6", "fail The disk is full", "")).task()
		if failed.Status.State != "TASK_STATE_FAILED" || failed.Status.Message.Parts[0].Text != "The disk is full" {
			t.Errorf("got %+v", failed.Status)
		}
	})
}

// A message that is sent twice begins one run, and both answers are that of its task.
func TestTheSameMessageTwice(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		first := w.call("SendMessage", immediately(message("m1", "say One\nsleep\nsay Two", ""))).task()
		again := w.call("SendMessage", message("m1", "say One\nsleep\nsay Two", "")).task()
		if again.ID != first.ID || !strings.HasSuffix(again.words(), "Two") {
			t.Errorf("got %s %s, then %s %s", first.ID, first.words(), again.ID, again.words())
		}
		if s := w.call("SendStreamingMessage", message("m1", "say One\nsleep\nsay Two", "")); s.task().ID != first.ID {
			t.Errorf("got %s", s.Body)
		}
		w.call("SendMessage", message("m1", "say Three", "")).fails(-32004, `another message with the id "m1"`)
	})
}

// A list has the tasks by the time of their status, in pages.
func TestList(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		var ids []string
		for i := range 5 {
			task := "say Hi"
			if i == 2 {
				task = "fail Never"
			}
			context := fmt.Sprintf(`"contextId":"c%d"`, i%2)
			ids = append(ids, w.call("SendMessage", strings.Replace(message(fmt.Sprint("m", i), task, ""), `"contextId":"c"`, context, 1)).task().ID)
			time.Sleep(time.Second) // in the bubble: so that their times differ
		}
		newest := []string{ids[4], ids[3], ids[2], ids[1], ids[0]}
		var env struct {
			Result struct {
				Total int     `json:"totalSize"`
				Next  *string `json:"nextPageToken"`
			}
		}
		var got []string
		for token := ""; ; token = *env.Result.Next {
			a := w.call("ListTasks", fmt.Sprintf(`{"pageSize":2,"pageToken":%q}`, token))
			for _, raw := range a.tasks() {
				got = append(got, a.taskIn(`{"result":`+raw+`}`).ID)
			}
			if json.Unmarshal([]byte(a.Body), &env) != nil || env.Result.Total != 5 || env.Result.Next == nil || len(got) > 5 {
				t.Fatalf("got %s", a.Body)
			}
			if *env.Result.Next == "" {
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(newest) {
			t.Errorf("got %v, want %v", got, newest)
		}
		for params, want := range map[string][]string{
			`{"contextId":"c1"}`:                                  {ids[3], ids[1]},
			`{"contextId":"none"}`:                                nil,
			`{"status":"TASK_STATE_FAILED"}`:                      {ids[2]},
			`{"status":"TASK_STATE_WORKING"}`:                     nil,
			`{"statusTimestampAfter":"2000-01-01T00:00:03.001Z"}`: {ids[4], ids[3]},
		} {
			var got []string
			for _, l := range w.list(params) {
				if got = append(got, l.ID); len(l.Artifacts) > 0 {
					t.Errorf("%s has artifacts", params)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: got %v, want %v", params, got, want)
			}
		}
		if got := w.list(`{"contextId":"c1","includeArtifacts":true,"historyLength":1}`); len(got[0].Artifacts) != 1 || got[0].words() != "agent: Hi" {
			t.Errorf("got %+v", got[0])
		}
	})
}

// A list refuses parameters that it does not understand.
func TestHostileLists(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		for params, want := range map[string]string{
			`{"pageSize":101}`: "pageSize is 101", `{"pageSize":-1}`: "pageSize is -1", `{"pageToken":"x"}`: "not one that this server",
			`{"historyLength":-1}`: "historyLength is -1", `{"contextId":"/"}`: "the contextId",
		} {
			w.call("ListTasks", params).fails(-32602, want)
		}
	})
}

// The state in a list is that of the task.
func TestListHasTheStateOfTheTask(t *testing.T) {
	for _, policy := range []a2a.Policy{a2a.PerTurn, a2a.PerSession} {
		inBubble(t, a2a.Options{Policy: policy}, func(w *world) {
			for i, text := range []string{"say Hi", "fail Never", "wait", "ask May I?"} {
				c := fmt.Sprintf("c%d", i)
				id := w.call("SendMessage", immediately(strings.Replace(message("m", text, ""), `"contextId":"c"`, fmt.Sprintf(`"contextId":%q`, c), 1))).task().ID
				time.Sleep(time.Second) // in the bubble: until the agent rests
				want := w.call("GetTask", get(id)).task().Status.State
				if list := w.list(fmt.Sprintf(`{"contextId":%q,"status":%q}`, c, want)); len(list) != 1 || list[0].Status.State != want {
					w.Errorf("%s %q: got %v, want one task in state %s", policy, text, list, want)
				}
			}
		})
	}
}

// A session that goes back into the middle of a run leaves no task that works for ever.
func TestRewindIntoARun(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		id := w.call("SendMessage", message("m1", "say One two three", "")).task().ID
		if _, err := w.engine.Rewind(w.Context(), api.Rewind{Session: "c", ToOffset: new(int64(5))}); err != nil {
			t.Fatal(err)
		}
		if got := w.call("GetTask", get(id)).task(); got.Status.State != "TASK_STATE_CANCELED" {
			t.Errorf("got %s %s", got.Status.State, got.words())
		}
		if list := w.list(`{"contextId":"c","status":"TASK_STATE_CANCELED"}`); len(list) != 1 {
			t.Errorf("listed are %v", list)
		}
	})
}

// The REST form has the same answers, without the envelope.
func TestREST(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		a := w.post("/a2a/bot/message:send", message("m1", "say Hi", ""))
		id := a.taskIn(`{"result":` + a.Body + `}`).ID
		for _, tt := range []struct {
			method, path, body string
			status             int
			want               string
		}{
			{"GET", "/tasks/" + id, "", 200, `"state":"TASK_STATE_COMPLETED"`},
			{"GET", "/tasks/" + id + "?historyLength=x", "", 400, "it must be a number from 0"},
			{"GET", "/tasks?contextId=c&includeArtifacts=true", "", 200, `"totalSize":1`},
			{"GET", "/tasks?pageSize=0", "", 400, "pageSize is -1"},
			{"GET", "/tasks?includeArtifacts=maybe", "", 400, "true or false"},
			{"GET", "/tasks?statusTimestampAfter=yesterday", "", 400, "RFC 3339"},
			{"GET", "/tasks/none", "", 404, `"reason":"TASK_NOT_FOUND"`},
			{"POST", "/tasks/" + id + ":cancel", "", 409, `"reason":"TASK_NOT_CANCELABLE"`},
			{"GET", "/tasks/" + id + ":subscribe", "", 409, `"reason":"UNSUPPORTED_OPERATION"`},
			{"GET", "/tasks/" + id + ":steal", "", 404, "there is no task"},
			{"GET", "/tasks/" + id + "/x", "", 404, "there is nothing at"},
			{"PUT", "/tasks/" + id, "", 405, "cannot be used"},
			{"GET", "/message:send", "", 405, "cannot be used"},
			{"GET", "/nothing", "", 404, "there is nothing at"},
			{"GET", "/extendedAgentCard", "", 200, `"taskPolicy":"per-turn"`},
			{"POST", "/message:send", "{", 400, "not JSON"},
			{"GET", "", "", 405, "cannot be used"},
		} {
			got := w.do(tt.method, "/a2a/bot"+tt.path, tt.body)
			if got.Status != tt.status || !strings.Contains(got.Body, tt.want) {
				t.Errorf("%s %s: got %d %s", tt.method, tt.path, got.Status, got.Body)
			}
		}
		if got := w.do("GET", "/a2a/bot/tasks", "", "A2A-Version", "0.3"); got.Status != 400 || !strings.Contains(got.Body, "VERSION_NOT_SUPPORTED") {
			t.Errorf("got %d %s", got.Status, got.Body)
		}
		s := w.post("/a2a/bot/message:stream", message("m2", "say Hi", ""))
		if len(s.frames) < 4 || !strings.HasPrefix(string(s.frames[0].Data), `{"task":`) {
			t.Errorf("got %s", s.Body)
		}
		again := w.do("GET", "/a2a/bot/tasks/"+s.taskIn(`{"result":`+string(s.frames[0].Data)+`}`).ID+":subscribe", "", "Last-Event-ID", s.frames[0].ID)
		if again.Body != s.Body {
			t.Errorf("the resumed stream differs: %s", again.Body)
		}
	})
}

// The card of an agent names its URL as the client reached it.
func TestCards(t *testing.T) {
	inBubble(t, a2a.Options{Version: "1.2.3"}, func(w *world) {
		for path, url := range map[string]string{
			"/.well-known/agent-card.json":                "http://example.com/a2a/bot",
			"/a2a/other/.well-known/agent-card.json":      "http://example.com/a2a/other",
			"/api/a2a/any/bot/.well-known/agent.json":     "http://example.com/api/a2a/any/bot",
			"/api/a2a/ns/bot/.well-known/agent-card.json": "http://example.com/api/a2a/ns/bot",
		} {
			got := w.do("GET", path, "")
			if got.Status != 200 || !strings.Contains(got.Body, `"url":"`+url+`"`) || !strings.Contains(got.Body, `"version":"1.2.3"`) {
				t.Errorf("%s: got %d %s", path, got.Status, got.Body)
			}
			if strings.Contains(path, "/ns/") != strings.Contains(got.Body, `"name":"ns.bot"`) {
				t.Errorf("%s is the card of another agent: %s", path, got.Body)
			}
			if again := w.do("GET", path, "", "If-None-Match", got.Header.Get("ETag")); again.Status != 304 {
				t.Errorf("%s: got %d", path, again.Status)
			}
		}
		if got := w.do("POST", "/.well-known/agent-card.json", ""); got.Status != 405 {
			t.Errorf("got %d", got.Status)
		}
		if got := w.do("GET", "/.well-known/agent-card.json", "", "X-Forwarded-Proto", "https"); !strings.Contains(got.Body, `"url":"https://example.com/a2a/bot"`) {
			t.Errorf("got %s", got.Body)
		}
	})
}
