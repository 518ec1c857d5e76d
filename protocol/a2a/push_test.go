package a2a_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/protocol/a2a"
)

// A receiver is the network of push notifications: every request reaches it.
type receiver struct {
	mu     sync.Mutex
	answer func(n *notified) (status int) // nil: 204; the status 0 is a failure of the connection
	got    []*notified
}

// A notified is a notification as its receiver sees it.
type notified struct {
	path    string
	header  http.Header
	body    string
	at      time.Time
	context context.Context
}

func (r *receiver) RoundTrip(q *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	n := &notified{q.URL.Path, q.Header, string(b), time.Now(), q.Context()}
	r.mu.Lock()
	r.got = append(r.got, n)
	answer := r.answer
	r.mu.Unlock()
	status := http.StatusNoContent
	if answer != nil {
		status = answer(n)
	}
	switch {
	case q.Context().Err() != nil:
		return nil, q.Context().Err()
	case status == 0:
		return nil, errors.New("no connection")
	}
	return &http.Response{StatusCode: status, Body: http.NoBody}, nil
}

func (r *receiver) answers(f func(n *notified) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

// taken returns what was received since the last call, when nothing more happens now.
func (r *receiver) taken() []*notified {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

// told returns what was received in short: states of status updates and tasks, parts of
// artifacts, each in its own form.
func (r *receiver) told() string {
	var out []string
	for _, n := range r.taken() {
		out = append(out, n.short())
	}
	return strings.Join(out, " | ")
}

func (n *notified) short() string {
	type status struct{ Status struct{ State string } }
	var b struct {
		status        // of 0.3
		Kind   string `json:"kind"`
		Task   *struct {
			status
			History []json.RawMessage
		}
		StatusUpdate   *status
		ArtifactUpdate *struct {
			Artifact struct{ Parts []struct{ Text string } }
		}
	}
	if err := json.Unmarshal([]byte(n.body), &b); err != nil {
		return n.body
	}
	state := func(s status) string { return strings.ToLower(strings.TrimPrefix(s.Status.State, "TASK_STATE_")) }
	switch {
	case b.Task != nil:
		return fmt.Sprint("task ", state(b.Task.status), " ", len(b.Task.History))
	case b.StatusUpdate != nil:
		return state(*b.StatusUpdate)
	case b.ArtifactUpdate != nil:
		return fmt.Sprintf("%q", b.ArtifactUpdate.Artifact.Parts[0].Text)
	}
	return b.Kind + " " + state(b.status)
}

func is(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got)\n%s", what, d)
	}
}

const hook = `{"id":"p","url":"https://hook.example/a","token":"tok-1","authentication":{"scheme":"Bearer","credentials":"cred-1"}}`

// pushed returns the parameters of a message with a config; the answer does not wait.
func pushed(params, config string) string {
	return strings.Replace(params, `{"message"`, `{"configuration":{"returnImmediately":true,"taskPushNotificationConfig":`+config+`},"message"`, 1)
}

func pushed03(params, config string) string {
	return strings.Replace(params, `{"message"`, `{"configuration":{"blocking":false,"pushNotificationConfig":`+config+`},"message"`, 1)
}

// config returns the parameters of a config of a task.
func config(task, id, url string) string {
	return fmt.Sprintf(`{"taskId":%q,"id":%q,"url":%q}`, task, id, url)
}

// A receiver is told of every update, in the order and in the form of a stream, with the
// headers that the client has asked for.
func TestPush(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		id := w.call("SendMessage", pushed(message("m", "say Hello you\ntool ls", ""), hook)).task().ID
		time.Sleep(time.Second)
		got := w.receiver.taken()
		var stream []string
		for _, f := range w.call("SubscribeToTask", get(id), "Last-Event-ID", "1").frames[1:] {
			var env struct{ Result json.RawMessage }
			if err := json.Unmarshal(f.Data, &env); err != nil {
				t.Fatal(err)
			}
			stream = append(stream, string(env.Result))
		}
		var bodies []string
		at := "2-2"
		for i, n := range got {
			bodies = append(bodies, n.body)
			is(t, "the token", n.header.Get("X-A2A-Notification-Token"), "tok-1")
			is(t, "the credentials", n.header.Get("Authorization"), "Bearer cred-1")
			is(t, "the type", n.header.Get("Content-Type"), "application/a2a+json")
			is(t, "the version", n.header.Get("A2A-Version"), "1.0")
			if i == 0 {
				is(t, "the first offsets", n.header.Get("Tapedeck-Offsets"), at)
			}
		}
		is(t, "the notifications", bodies, stream)
		is(t, "the last", got[len(got)-1].short(), "completed")
		time.Sleep(time.Hour)
		is(t, "later", w.receiver.told(), "")
	})
}

// Version 0.3 gets the whole task, with each status.
func TestPush03(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		config := `{"url":"https://hook.example/a","token":"tok-1","authentication":{"schemes":["Basic","Bearer"],"credentials":"dTpw"}}`
		id := w.call03("message/send", pushed03(message03("m", "say Hello you", ""), config)).task().ID
		time.Sleep(time.Second)
		got := w.receiver.taken()
		last := got[len(got)-1]
		is(t, "the credentials", last.header.Get("Authorization"), "Basic dTpw")
		is(t, "the token", last.header.Get("X-A2A-Notification-Token"), "tok-1")
		is(t, "the type", last.header.Get("Content-Type"), "application/json")
		is(t, "the last task", `{"jsonrpc":"2.0","id":"x","result":`+last.body+`}`, strings.TrimSpace(w.call03("tasks/get", get(id)).Body))
		var all []string
		for _, n := range got {
			all = append(all, n.short())
		}
		is(t, "the tasks", strings.Join(all, " | "), "task working | task working | task completed")
	})
}

// While a receiver is slow, the parts that follow each other are joined: nothing is lost
// and the order stays.
func TestPushJoinsParts(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		w.receiver.answers(func(*notified) int { time.Sleep(3 * time.Second); return 200 })
		w.call("SendMessage", pushed(message("m", "say one two three\nsay four", ""), hook))
		time.Sleep(time.Minute)
		is(t, "told", w.receiver.told(), `working | "one two three" | working | "four" | working | completed`)
	})
}

// What a receiver has not taken is sent again, after a pause that grows, and nothing that
// follows overtakes it. Other receivers and the run do not wait.
func TestPushRetries(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		began := time.Now()
		w.receiver.answers(func(n *notified) int {
			if n.path == "/a" && time.Since(began) < 40*time.Second {
				return 500
			}
			return 200
		})
		task := w.call("SendMessage", pushed(message("m", "sleep\nsay Hello", ""), hook)).task()
		w.call("CreateTaskPushNotificationConfig", config(task.ID, "q", "https://hook.example/b"))
		time.Sleep(3 * time.Minute)
		var a, b []string
		var times []int
		for _, n := range w.receiver.taken() {
			if n.path == "/b" {
				b = append(b, n.short())
				if n.at.Sub(began) > 2*time.Second {
					t.Errorf("the other receiver was told after %v", n.at.Sub(began))
				}
			} else if a = append(a, n.short()); n.at.Sub(began) < 40*time.Second {
				times = append(times, int(n.at.Sub(began).Seconds()))
			}
		}
		is(t, "the other receiver", strings.Join(b, " "), `"Hello" working completed`)
		is(t, "the receiver that fails", strings.Join(slices.Compact(a), " "), `working "Hello" working completed`)
		if n := len(times); n < 5 || n > 7 || times[n-1]-times[n-2] < 6 {
			t.Errorf("the attempts were at %v", times)
		}
	})
}

// A receiver that never takes anything is given up after a day, and its config is deleted.
func TestPushGivesUp(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		w.receiver.answers(func(*notified) int { return 0 })
		id := w.call("SendMessage", pushed(message("m", "say Hello", ""), hook)).task().ID
		time.Sleep(23 * time.Hour)
		w.receiver.taken()
		is(t, "after 23 hours", strings.Contains(w.call("ListTaskPushNotificationConfigs", fmt.Sprintf(`{"taskId":%q}`, id)).Body, "hook.example"), true)
		time.Sleep(2 * time.Hour)
		w.receiver.taken()
		w.call("GetTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"id":"p"}`, id)).fails(-32001, "does not have this push notification config")
		time.Sleep(time.Hour)
		is(t, "later", w.receiver.told(), "")
	})
}

// After a restart, notifications continue with what was not acknowledged, also with the end
// of a run that the restart has interrupted.
func TestPushAfterRestart(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		w.receiver.answers(func(n *notified) int {
			if strings.Contains(n.short(), "Hello") {
				return 503
			}
			return 200
		})
		id := w.call("SendMessage", pushed(message("m", "say Hello\nwait", ""), hook)).task().ID
		time.Sleep(time.Second)
		is(t, "before", strings.HasPrefix(w.receiver.told(), `working | "Hello"`), true)
		w.stop()
		w.receiver.taken()
		w.receiver.answers(nil)
		w.start(a2a.Options{})
		time.Sleep(time.Second)
		is(t, "after", w.receiver.told(), `"Hello" | working | failed`)
		w.stop()
		w.start(a2a.Options{})
		time.Sleep(time.Second)
		is(t, "after another restart", w.receiver.told(), "")
		is(t, "the config", strings.Contains(w.call("GetTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"id":"p"}`, id)).Body, "cred-1"), true)
	})
}

// A config that is replaced continues where it was, with the new URL. One that is deleted,
// also with its session or in an erasure of everything, sends nothing more. The request that
// is under way ends at once.
func TestPushReplaceAndDelete(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		w.receiver.answers(func(n *notified) int {
			if n.path == "/a" {
				<-n.context.Done()
			}
			return 200
		})
		// stuck sends a message whose notifications are not answered, and returns the task
		// and the request that is under way.
		stuck := func(id string) (task string, request *notified) {
			task = w.call("SendMessage", pushed(message(id, "say Hello", ""), hook)).task().ID
			time.Sleep(time.Second)
			got := w.receiver.taken()
			return task, got[len(got)-1]
		}
		ended := func(what string, n *notified) {
			t.Helper()
			synctest.Wait()
			if n.context.Err() == nil {
				t.Errorf("%s: the request has not ended", what)
			}
		}
		id, request := stuck("m1")
		w.call("CreateTaskPushNotificationConfig", config(id, "p", "https://hook.example/b"))
		ended("replaced", request)
		time.Sleep(time.Second)
		is(t, "replaced", w.receiver.told(), `working | "Hello" | working | completed`)

		id, request = stuck("m2")
		for range 2 {
			is(t, "deleted", w.call("DeleteTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"id":"p"}`, id)).Body, `{"jsonrpc":"2.0","id":7,"result":{}}`)
		}
		ended("deleted", request)
		id, _ = stuck("m3")
		if _, err := w.engine.Erase(t.Context(), api.Erase{Session: "c", All: true}); err != nil {
			t.Fatal(err)
		}
		w.call("GetTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"id":"p"}`, id)).fails(-32001, "")
		_, request = stuck("m4")
		if err := w.hub.Delete(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		ended("deleted with its session", request)
		w.receiver.taken()
		w.call("SendMessage", immediately(message("m5", "say Hello", ""))) // in a session of the same id
		time.Sleep(time.Hour)
		is(t, "afterwards", w.receiver.told(), "")
	})
}

// What was erased is not sent any more, also if the receiver is so slow that it was read
// before.
func TestPushOfErasedEvents(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		w.receiver.answers(func(n *notified) int {
			select {
			case <-time.After(5 * time.Second):
			case <-n.context.Done():
			}
			return 200
		})
		w.call("SendMessage", pushed(message("m", "say Hello", ""), hook))
		time.Sleep(7 * time.Second)
		is(t, "before", w.receiver.told(), `working | "Hello"`)
		if _, err := w.engine.Erase(t.Context(), api.Erase{Session: "c", Events: []tapedeck.OffsetRange{{From: 3, To: 6}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		got := w.receiver.taken()
		is(t, "the last", got[len(got)-1].short(), "completed")
		for _, n := range got {
			if strings.Contains(n.body, "Hello") {
				t.Errorf("after the erasure: %s", n.body)
			}
		}
	})
}

// The task of a session is told of when it rests, continues, and goes back.
func TestPushOfASession(t *testing.T) {
	inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
		w.create()
		w.call("CreateTaskPushNotificationConfig", config("c", "p", "https://hook.example/a"))
		w.call("SendMessage", message("m1", "say Hello", ""))
		is(t, "the first run", w.receiver.told(), `submitted | working | "Hello" | working | input_required`)
		task := w.call("SendMessage", message("m2", "fail no", "")).task()
		is(t, "a run that fails", w.receiver.told(), `submitted | working | failed`)
		time.Sleep(time.Hour)
		invocation, _ := task.History[2].Metadata["kagent_invocation_id"].(string)
		w.call("SendMessage", message("r", "", `"metadata":{"kagent_rewind_before_invocation_id":"`+invocation+`"}`))
		is(t, "the rewind", w.receiver.told(), `task input_required 2`)
	})
}

// A message that is sent again sets no second config, and a message with a config that is
// refused starts nothing.
func TestPushWithAMessage(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		w.call("SendMessage", pushed(message("m", "say Hello", ""), `{"url":"http://10.0.0.1/"}`)).fails(-32602, "address of the webhook is not public")
		if page, err := w.hub.List(t.Context(), tapedeck.Filter{}); err != nil || len(page.Sessions) > 0 {
			t.Errorf("got %v %v", page.Sessions, err)
		}
		m := pushed(message("m", "say Hello", ""), `{"url":"https://hook.example/a"}`)
		first := w.call("SendMessage", m).task()
		time.Sleep(time.Second)
		again := w.call("SendMessage", m).task()
		time.Sleep(time.Second)
		is(t, "the task", again.ID, first.ID)
		is(t, "told", w.receiver.told(), `working | "Hello" | working | completed`)
		is(t, "the configs", w.call("ListTaskPushNotificationConfigs", fmt.Sprintf(`{"taskId":%q}`, first.ID)).Body,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"result":{"configs":[{"taskId":%q,"id":%q,"url":"https://hook.example/a"}]}}`, first.ID, first.ID))
	})
}

// A config that is set only with the repetition of a message, because the server died before,
// misses nothing.
func TestPushWithARepetition(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		m := message("m", "say Hello", "")
		w.call("SendMessage", m)
		time.Sleep(time.Hour)
		w.call("SendMessage", pushed(m, hook))
		is(t, "told", w.receiver.told(), `working | "Hello" | working | completed`)
	})
}

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
			`"url":"https://h/","id":"a/b"`: "the id of the push", `"url":"https://h/","id":"` + long + `"`: "the id of the push",
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

// Receivers that never answer delay only each other: their requests have a time limit, and
// another receiver is told at once, however many of them there are.
func TestPushNeverAnswered(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		var longest time.Duration
		w.receiver.answers(func(n *notified) int {
			if n.path != "/never" {
				return 200
			}
			<-n.context.Done()
			w.receiver.mu.Lock()
			longest = max(longest, time.Since(n.at))
			w.receiver.mu.Unlock()
			return 200
		})
		for i := range 60 {
			id := w.call("SendMessage", pushed(message(fmt.Sprint("m", i), "sleep", ""), `{"url":"https://hook.example/never"}`)).task().ID
			for j := range 9 {
				w.call("CreateTaskPushNotificationConfig", config(id, fmt.Sprint("p", j), "https://hook.example/never"))
			}
			time.Sleep(2 * time.Second)
		}
		time.Sleep(30 * time.Second)
		w.receiver.taken()
		began := time.Now()
		w.call("SendMessage", pushed(message("m", "say Hello", ""), hook))
		time.Sleep(time.Second)
		told := 0
		for _, n := range w.receiver.taken() {
			if n.path == "/a" && n.at.Sub(began) < 100*time.Millisecond {
				told++
			}
		}
		is(t, "how many updates the other receiver has", told, 4)
		is(t, "the longest request", longest, 15*time.Second)
	})
}

// A request of JSON-RPC without an id is carried out, and gets no answer.
func TestRequestWithoutID(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		for i, method := range []string{"SendMessage", "SendStreamingMessage"} {
			params := message(fmt.Sprint("m", i), "say Hello", "")
			a := w.post("/a2a/bot", fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params), "A2A-Version", "1.0")
			if a.Status != 204 || a.Body != "" {
				t.Errorf("%s: %d %q", method, a.Status, a.Body)
			}
			time.Sleep(time.Second)
			is(t, "the tasks", len(w.call("ListTasks", `{"contextId":"c"}`).tasks()), i+1)
		}
		for _, body := range []string{
			`{"jsonrpc":"2.0","method":"SubscribeToTask","params":{"id":"c~none"}}`, `{"jsonrpc":"2.0","method":"Steal"}`,
			`{"jsonrpc":"2.0","method":"GetTask","params":{"id":"c~none"}}`,
		} {
			if a := w.post("/a2a/bot", body, "A2A-Version", "1.0"); a.Status != 204 || a.Body != "" {
				t.Errorf("%s: %d %q", body, a.Status, a.Body)
			}
		}
		// What is no request at all gets an error, because nobody knows whether it had an id.
		w.post("/a2a/bot", `{"jsonrpc":"1.0","method":"GetTask"}`, "A2A-Version", "1.0").fails(-32600, "must be")
	})
}
