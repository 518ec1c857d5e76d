package a2a_test

import (
	"encoding/json"
	"fmt"
	"net/http"
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
				if got := words(w.saved()); got != "" {
					t.Errorf("after the rewind of the first turn: %s", got)
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
				list = append(list, fmt.Sprintf(`{"kind":"message","messageId":%q,"role":"user","parts":[]}`, m.ID))
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
		save("PUT", "/api/sessions/c/effective_history", `[]`, 200, `"data":[]`)
		if got := words(w.saved()); got != "" {
			t.Errorf("got %s", got)
		}
	})
}
