package agui_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// An agent elsewhere gives the messages of its users ids that it has used. All of them are
// stored, once, whether it sends the whole conversation with each run or only what is new.
func TestQuestionsOfOneID(t *testing.T) {
	type message = map[string]any
	user := func(id, text string) message { return message{"id": id, "role": "user", "content": text} }
	agent := func(id, text string) message { return message{"id": id, "role": "assistant", "content": text} }
	for name, runs := range map[string][][]message{
		"one id":             {{user("u", "one")}, {user("u", "two")}, {user("u", "three")}},
		"counted in a run":   {{user("1", "one")}, {user("2", "two")}, {user("1", "three")}},
		"whole conversation": {{user("u", "one")}, {user("u", "one"), agent("2", "answer"), user("u", "two")}, {user("u", "one"), agent("2", "answer"), user("u", "two"), agent("2", "answer"), user("u", "three")}},
		"a run goes on":      {{user("u", "one")}, {user("u", "one")}, {user("u", "two")}, {user("u", "one"), agent("2", "answer"), user("u", "two")}, {user("u", "three")}},
	} {
		for _, atOnce := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				send := func(lines []string) {
					r := httptest.NewRequestWithContext(t.Context(), "POST", "/agui/out/events/s", strings.NewReader(strings.Join(lines, "\n")))
					r.Header.Set("Content-Type", "application/x-ndjson")
					got := httptest.NewRecorder()
					if w.Handler.ServeHTTP(got, r); got.Code != 200 {
						t.Fatalf("%s: %d %s", name, got.Code, got.Body)
					}
				}
				var lines []string
				for n, messages := range runs {
					run := fmt.Sprint("r", n)
					in, _ := json.Marshal(message{"threadId": "s", "runId": run, "messages": messages, "tools": []any{}, "context": []any{}, "state": message{}})
					lines = append(lines, fmt.Sprintf(`{"type":"RUN_STARTED","threadId":"s","runId":%q,"input":%s}`, run, in),
						`{"type":"TEXT_MESSAGE_CHUNK","messageId":"2","role":"assistant","delta":"answer"}`, fmt.Sprintf(`{"type":"RUN_FINISHED","threadId":"s","runId":%q}`, run))
					if !atOnce || n == len(runs)-1 {
						send(lines)
						lines = nil
					}
				}
				f := &frontend{t: t}
				f.receive(w.run("/agui/steps/connect", input("s", "x", "u", "")).events())
				var said []string
				ids := map[any]bool{}
				for _, m := range f.messages {
					if ids[m["id"]] = true; m["role"] == "user" {
						said = append(said, m["content"].(string))
					}
				}
				if !slices.Equal(said, []string{"one", "two", "three"}) || len(ids) != len(runs)+3 {
					t.Errorf("%s, at once %v: the conversation is\n%s", name, atOnce, f)
				}
			})
		}
	}
}
