package a2a_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/protocol/a2a"
)

// Configs that cannot work, that are too many, or that belong to the task of another agent,
// are errors. None has a secret.
func TestPushErrors(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		id := w.call("SendMessage", message("m", "say Hello", "")).task().ID
		set := func(more string) *answer {
			return w.call("CreateTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,%s}`, id, more))
		}
		long := strings.Repeat("x", 5000)
		for more, want := range map[string]string{
			`"url":""`: "neither https:// nor http://", `"url":"http://hook.example"`: "begins with http://", `"url":"https://127.0.0.1/"`: "not public",
			`"url":"https://localhost/"`: "not public", `"url":"https://u:p@h/"`: "user name", `"url":"https://h/` + long + `"`: "more than 2048 bytes",
			`"url":"https://h/","token":"secret\nX: y"`: "no header can have", `"url":"https://h/","token":"` + long + `"`: "more than 4096 bytes",
			`"url":"https://h/","id":"a/b"`: "the id of the push", `"url":"https://h/","id":"."`: "choose another", `"url":"https://h/","id":".."`: "choose another", `"url":"https://h/","id":"` + long + `"`: "the id of the push",
			`"url":"https://h/","authentication":{"scheme":"Bear er","credentials":"secret"}`:  "not one of HTTP",
			`"url":"https://h/","authentication":{"scheme":"Bearer","credentials":"secret\r"}`: "no header can have",
			`"url":"https://h/","authentication":{"credentials":"secret"}`:                     "have no scheme",
			`"url":7`: "url cannot be a number",
		} {
			a := set(more)
			if a.fails(-32602, want); strings.Contains(a.Body, "secret") || strings.Contains(a.Body, "xxxxx") {
				t.Errorf("the answer repeats the request: %s", a.Body)
			}
		}
		w.call("CreateTaskPushNotificationConfig", `{"url":"https://h/"}`).fails(-32602, "no id of a task")
		w.call("CreateTaskPushNotificationConfig", config("c~none", "p", "https://h/")).fails(-32001, "there is no task")
		for i := range 10 {
			set(fmt.Sprintf(`"id":"p%d","url":"https://h/"`, i))
		}
		set(`"url":"https://h/"`).fails(-32000, "has 10 push notification configs")
		set(`"id":"p3","url":"https://h/again"`) // it is replaced
		params := fmt.Sprintf(`{"taskId":%q,"id":"p3"}`, id)
		for _, method := range []string{"Get", "Delete"} {
			w.post("/a2a/other", `{"jsonrpc":"2.0","id":1,"method":"`+method+`TaskPushNotificationConfig","params":`+params+`}`, "A2A-Version", "1.0").fails(-32001, "there is no task")
			w.call(method+"TaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q}`, id)).fails(-32602, "no id of a push notification config")
		}
		w.post("/a2a/other", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/list","params":{"id":%q}}`, id)).fails(-32001, "there is no task")
		w.call("ListTaskPushNotificationConfigs", fmt.Sprintf(`{"taskId":%q,"pageToken":"x"}`, id)).fails(-32602, "pageToken")
		is(t, "the config", strings.Contains(w.call("GetTaskPushNotificationConfig", params).Body, "https://h/again"), true)
		w.call03("tasks/pushNotificationConfig/set", fmt.Sprintf(`{"taskId":%q}`, id)).fails(-32602, "neither https:// nor http://")
	})
}

// A handler without push notifications says so, in its card and in errors.
func TestNoPush(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		w.Handler = a2a.New(a2a.Options{Sessions: w.hub, Verbs: w.engine, Views: w.views})
		w.call("CreateTaskPushNotificationConfig", `{}`).fails(-32003, "sends no push notifications; subscribe to the task")
		w.call03("tasks/pushNotificationConfig/set", `{}`).fails(-32003, "sends no push notifications")
		w.call("SendMessage", pushed(message("m", "go", ""), hook)).fails(-32003, "sends no push notifications")
		w.call03("message/send", pushed03(message03("m", "go", ""), hook)).fails(-32003, "sends no push notifications")
		if a := w.do("GET", "/a2a/bot/tasks/c~x/pushNotificationConfigs", ""); a.Status != 400 || !strings.Contains(a.Body, "PUSH_NOTIFICATION_NOT_SUPPORTED") {
			t.Errorf("got %d %s", a.Status, a.Body)
		}
		if a := w.do("GET", "/a2a/bot/.well-known/agent-card.json", ""); strings.Contains(a.Body, "pushNotifications") {
			t.Errorf("the card is %s", a.Body)
		}
	})
}
