package a2a_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/protocol/a2a"
)

// saved returns the tasks as the screen of kagent loads them.
func (w *world) saved() (out []*task) {
	w.Helper()
	a := w.do(http.MethodGet, "/api/sessions/c/tasks", "")
	var env struct {
		Error bool
		Data  []json.RawMessage
	}
	if err := json.Unmarshal([]byte(a.Body), &env); err != nil || env.Error || env.Data == nil {
		w.Fatalf("got %d %s", a.Status, a.Body)
	}
	for _, raw := range env.Data {
		if !strings.Contains(string(raw), `"kind":"task"`) {
			w.Errorf("this is not a task of version 0.3: %s", raw)
		}
		out = append(out, a.taskIn(`{"result":`+string(raw)+`}`))
	}
	return out
}

func words(tasks []*task) string {
	var out []string
	for _, t := range tasks {
		out = append(out, t.words())
	}
	return strings.Join(out, " || ")
}

// A screen that is loaded again shows the conversation without what was reverted.
func TestTasksOfASessionAfterARewind(t *testing.T) {
	for policy, divided := range map[a2a.Policy]string{a2a.PerTurn: " || ", a2a.PerSession: " | "} {
		t.Run(string(policy), func(t *testing.T) {
			inBubble(t, a2a.Options{Policy: policy}, func(w *world) {
				ids := threeTurns(w)
				if got, want := words(w.saved()), strings.Join([]string{firstTurn, "user: say Two | agent: Two", "user: say Three | agent: Three"}, divided); got != want {
					t.Errorf("got %s\nwant %s", got, want)
				}
				w.call03("message/stream", rewindTo("r", ids[1]))
				if got := words(w.saved()); got != firstTurn {
					t.Errorf("after the rewind: %s", got)
				}
				w.call03("message/stream", rewindTo("r", ids[0]))
				left := w.saved()
				if want := map[a2a.Policy]int{a2a.PerSession: 1}[policy]; words(left) != "" || len(left) != want {
					t.Errorf("after the rewind of the first turn: %v", left)
				}
			})
		})
	}
}

// A history that is saved and ends earlier is a rewind. Nothing else can be saved.
func TestSaveAHistory(t *testing.T) {
	inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
		threeTurns(w)
		all := w.saved()[0].History
		history := func(n int) string {
			var list []string
			for _, m := range all[:n] {
				list = append(list, fmt.Sprintf(`{"kind":"message","messageId":%q,"role":%q,"parts":[]}`, m.ID, m.Role))
			}
			return "[" + strings.Join(list, ",") + "]"
		}
		save := func(method, path, body string, status int, want string) {
			t.Helper()
			a := w.do(method, path, body)
			if a.Status != status || !strings.Contains(a.Body, want) {
				t.Errorf("%s %s %s: got %d %s", method, path, body, a.Status, a.Body)
			}
		}
		task := func(history string) string {
			return fmt.Sprintf(`{"kind":"task","id":"c","contextId":"c","status":{"state":"completed"},"history":%s}`, history)
		}
		before := len(w.log())
		save("POST", "/api/tasks", task(history(6)), 200, `"error":false`)
		save("POST", "/api/tasks", `{"kind":"task","id":"c","contextId":"c","status":{"state":"working"}}`, 200, `"error":false`)
		save("POST", "/api/tasks", task(history(3)), 400, "the messages end within the invocation")
		save("POST", "/api/tasks", task(`[{"messageId":"new"}]`), 409, "are not a beginning of the conversation of session c")
		save("POST", "/api/tasks", task(`[null]`), 409, "are not a beginning")
		save("POST", "/api/tasks", strings.Replace(task("[]"), `"contextId":"c"`, `"contextId":"../x"`, 1), 400, "the contextId of the task")
		save("POST", "/api/tasks", strings.Replace(task("[]"), `"contextId":"c"`, `"contextId":"none"`, 1), 404, "none")
		save("POST", "/api/tasks", `{`, 400, "not JSON")
		save("GET", "/api/tasks", ``, 405, "cannot be used")
		save("PUT", "/api/sessions/c/effective_history", `{}`, 400, "the body has no messages")
		save("GET", "/api/sessions/none/tasks", ``, 404, "none")
		save("GET", "/api/sessions/%20/tasks", ``, 400, "the session")
		if after := len(w.log()); after != before {
			t.Errorf("%d events were appended", after-before)
		}
		save("POST", "/api/tasks", task(history(4)), 200, `"error":false`)
		if got := len(w.saved()[0].History); got != 4 || len(w.log()) != before+1 {
			t.Errorf("there are %d messages and %d new events", got, len(w.log())-before)
		}
		save("PUT", "/api/sessions/c/effective_history", `{"messages":`+history(2)+`}`, 200, "say One")
		save("PUT", "/api/sessions/c/effective_history", `[]`, 200, `"history":[]`)
		if got := words(w.saved()); got != "" {
			t.Errorf("got %s", got)
		}
	})
}

// With a task for each run, an agent may save its task as it is, and a history of the whole
// session under the id of the session: that is how the design of kagent rewinds.
func TestSaveAHistoryPerTurn(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		threeTurns(w)
		before := len(w.log())
		w.call03("message/send", message03("m9", "say Four", `"taskId":"c"`)).fails(-32001, "each run is a task here")
		var all []string
		for _, saved := range w.saved() {
			var own []string
			for _, m := range saved.History {
				b, err := json.Marshal(map[string]any{"kind": "message", "messageId": m.ID, "role": m.Role, "parts": []any{}, "taskId": saved.ID, "contextId": "c"})
				if err != nil {
					t.Fatal(err)
				}
				own = append(own, string(b))
			}
			all = append(all, own...)
			body := fmt.Sprintf(`{"kind":"task","id":%q,"contextId":"c","status":{"state":"completed"},"history":[%s]}`, saved.ID, strings.Join(own, ","))
			if a := w.post("/api/tasks", body); a.Status != 200 {
				t.Errorf("a task as it is: %d %s", a.Status, a.Body)
			}
		}
		if after := len(w.log()); after != before {
			t.Errorf("%d events were appended", after-before)
		}
		body := fmt.Sprintf(`{"kind":"task","id":"c","contextId":"c","status":{"state":"completed"},"history":[%s]}`, strings.Join(all[:4], ","))
		if a := w.post("/api/tasks", body); a.Status != 200 {
			t.Errorf("an effective history: %d %s", a.Status, a.Body)
		}
		if got := words(w.saved()); got != firstTurn+" || user: say Two | agent: Two" {
			t.Errorf("got %s", got)
		}
		a := w.do("PUT", "/api/sessions/c/effective_history", "["+strings.Join(all[:2], ",")+"]")
		if got := words(w.saved()); a.Status != 200 || got != firstTurn {
			t.Errorf("got %d and %s", a.Status, got)
		}
		if after := len(w.log()); after != before+2 { // the rewinds; nothing was removed
			t.Errorf("the log has %d events, and had %d", after, before)
		}
	})
}

// An agent gives its messages, and its tasks, ids of its own. What it saves is understood by
// who said what; the calls of tools may be missing.
func TestSaveAHistoryWithOtherIDs(t *testing.T) {
	inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
		for i, text := range []string{"say One", work, "say Three"} {
			w.call03("message/send", message03(fmt.Sprintf("m%d", i), text, ""))
		}
		var list []string
		for i, m := range w.saved()[0].History {
			if m.Parts[0].Text == "" {
				continue // a call of a tool
			}
			list = append(list, fmt.Sprintf(`{"kind":"message","messageId":"own-%d","role":%q,"parts":[{"kind":"text","text":%q}]}`, i, m.Role, m.Parts[0].Text))
		}
		save := func(task string, status int, list ...string) {
			t.Helper()
			a := w.post("/api/tasks", fmt.Sprintf(`{"kind":"task","id":%q,"contextId":"c","status":{"state":"completed"},"history":[%s]}`, task, strings.Join(list, ",")))
			if a.Status != status {
				t.Errorf("%v: got %d %s", list, a.Status, a.Body)
			}
		}
		before := len(w.log())
		ids := w.saved()[0].History
		edited := func(id, role, text, meta string) string {
			return fmt.Sprintf(`{"messageId":%q,"role":%q,"parts":[{"kind":"text","text":%q}]%s}`, id, role, text, meta)
		}
		save("c", 200, list...)
		save("own-task", 200, list[len(list)-2:]...) // the newest run
		save("own-task", 200, list[len(list)-2])
		save("own-task", 200)
		save("own-task", 409, list[:2]...)
		save("own-task", 409, list[2:]...)
		save("c", 409, edited(ids[0].ID, "user", "another text", ""))
		save("c", 409, edited(ids[0].ID, "agent", "say One", ""))
		save("c", 409, edited(ids[2].ID, "user", "say One", ""))
		save("c", 409, edited("own-0", "user", "say One", fmt.Sprintf(`,"metadata":{"kagent_invocation_id":%q}`, ids[2].Metadata["kagent_invocation_id"])))
		save(strings.Repeat("x", 600), 400)
		if a := w.post("/api/tasks", `{"id":"c","contextId":"c","status":{"state":"banana"}}`); a.Status != 400 {
			t.Errorf("got %d %s", a.Status, a.Body)
		}
		save("c", 409, list[2:]...)
		save("c", 409, list[1], list[0])
		save("c", 409, strings.Replace(list[0], `"user"`, `"agent"`, 1))
		save("c", 409, `{"messageId":"own-9","role":"agent","parts":[{"kind":"data","data":{}}]}`)
		save("c", 400, list[:3]...)
		if after := len(w.log()); after != before {
			t.Errorf("%d events were appended", after-before)
		}
		words := func() string { return words(w.saved()) }
		save("c", 200, list[:len(list)-2]...)
		if got := words(); !strings.HasSuffix(got, "agent: It is done") || len(w.log()) != before+1 {
			t.Errorf("after the first save: %s", got)
		}
		save("c", 200, list[:2]...)
		if got := words(); got != firstTurn {
			t.Errorf("after the second save: %s", got)
		}
	})
}

// Everything that the page of kagent does works at its paths, with the namespace of the
// agent: a turn, the invocation of each message, a rewind in a stream, and the tasks after
// a reload.
func TestPathsWithANamespace(t *testing.T) {
	for _, path := range []string{"/api/a2a/ns/bot", "/a2a/ns/bot", "/api/a2a/default/bot", "/a2a/default/bot/"} {
		inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
			send := func(params string) *answer {
				return w.post(path, `{"jsonrpc":"2.0","id":1,"method":"message/stream","params":`+params+`}`)
			}
			send(message03("m1", "say One", ""))
			send(message03("m2", "say Two", ""))
			invocation, _ := w.saved()[0].History[2].Metadata["kagent_invocation_id"].(string)
			back := send(rewindTo("r", invocation)).task()
			if got := back.words(); got != firstTurn || back.ID != "c" {
				t.Errorf("%s: the rewind: %s %s", path, back.ID, got)
			}
			if got := words(w.saved()); got != firstTurn {
				t.Errorf("%s: after a reload: %s", path, got)
			}
			app, _ := back.Metadata["kagent_app_name"].(string)
			if want := map[bool]string{true: "ns.bot", false: "bot"}[strings.Contains(path, "ns/")]; app != want {
				t.Errorf("%s: the agent is %q, want %q", path, app, want)
			}
		})
	}
}

// The page of kagent makes a session for an agent, looks for it, lists those of the agent and
// deletes it. Without the user that each of these requests names, none of them is kagent's.
func TestSessionsOfKagent(t *testing.T) {
	inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
		type session struct {
			ID, Name string
			User     string `json:"user_id"`
			Agent    string `json:"agent_id"`
		}
		var got struct {
			Error any
			Data  json.RawMessage
		}
		ask := func(status int, method, path, body string, into any) string {
			t.Helper()
			a := w.do(method, path, body)
			got.Error, got.Data = nil, nil
			if err := json.Unmarshal([]byte(a.Body), &got); err != nil || a.Status != status || (got.Error == false) != (status < 300) {
				t.Fatalf("%s %s: got %d %s", method, path, a.Status, a.Body)
			}
			if err := json.Unmarshal(got.Data, into); into != nil && err != nil {
				t.Fatalf("%s %s: %v in %s", method, path, err, a.Body)
			}
			return a.Body
		}
		const user = "?user_id=admin@kagent.dev"
		var s session
		ask(201, "POST", "/api/sessions"+user, `{"agent_ref":"default/bot","name":"A trip","user_id":"admin@kagent.dev"}`, &s)
		if s.ID == "" || s != (session{s.ID, "A trip", "admin@kagent.dev", "bot"}) {
			t.Errorf("got %+v", s)
		}
		ask(201, "POST", "/api/sessions"+user, `{"agent_ref":"ns/bot","id":"mine"}`, nil)
		var one struct{ Session session }
		ask(200, "GET", "/api/sessions/"+s.ID+user, "", &one)
		if one.Session != s {
			t.Errorf("got %+v", one)
		}
		list := func(path string) (ids string) {
			var list []session
			ask(200, "GET", path+user, "", &list)
			for _, s := range list {
				ids += " " + s.Agent + "/" + s.Name
			}
			return ids
		}
		if all, bots, others := list("/api/sessions"), list("/api/sessions/agent/default/bot"), list("/api/sessions/agent/default/other"); all != " ns.bot/mine bot/A trip" || bots != " bot/A trip" || others != "" {
			t.Errorf("listed are%s, of the agent%s, of the other%s", all, bots, others)
		}
		ask(200, "DELETE", "/api/sessions/"+s.ID+user, "", nil)
		ask(404, "GET", "/api/sessions/"+s.ID+user, "", nil)
		ask(404, "GET", "/api/sessions/none"+user, "", nil)
		ask(404, "GET", "/api/sessions/agent/default/none"+user, "", nil)
		ask(400, "POST", "/api/sessions"+user, `{"agent_ref":"default/none"}`, nil)
		ask(400, "POST", "/api/sessions"+user, `{"name":"x"}`, nil)
		ask(409, "POST", "/api/sessions"+user, `{"agent_ref":"default/bot","id":"mine"}`, nil)
		ask(405, "PUT", "/api/sessions"+user, `{}`, nil)
		ask(400, "GET", "/api/sessions/%20"+user, "", nil)
		for _, path := range []string{"/api/sessions", "/api/sessions/mine", "/api/sessions/agent/default/bot", "/api/sessions/mine/events" + user, "/api/v1/sessions" + user} {
			if a2a.IsKagent(httptest.NewRequest(http.MethodGet, path, nil)) {
				t.Errorf("%s is a request of kagent", path)
			}
		}
	})
}
