package a2a_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/protocol/a2a"
)

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
		is(t, "told", w.receiver.told(), `working | "one two three" | working | "one two three" | "four" | working | "four" | completed`)
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
		is(t, "the other receiver", strings.Join(b, " "), `"Hello" working "Hello" completed`)
		is(t, "the receiver that fails", strings.Join(slices.Compact(a), " "), `working "Hello" working "Hello" completed`)
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
		is(t, "after", w.receiver.told(), `"Hello" | working | "Hello" | failed`)
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
		is(t, "replaced", w.receiver.told(), `working | "Hello" | working | "Hello" | completed`)

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
		is(t, "the first run", w.receiver.told(), `submitted | working | "Hello" | working | "Hello" | completed`)
		task := w.call("SendMessage", message("m2", "fail no", "")).task()
		is(t, "a run that fails", w.receiver.told(), `submitted | working | failed`)
		time.Sleep(time.Hour)
		invocation, _ := task.History[2].Metadata["kagent_invocation_id"].(string)
		w.call("SendMessage", message("r", "", `"metadata":{"kagent_rewind_before_invocation_id":"`+invocation+`"}`))
		is(t, "the rewind", w.receiver.told(), `task completed 2`)
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
		is(t, "told", w.receiver.told(), `working | "Hello" | working | "Hello" | completed`)
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
		is(t, "told", w.receiver.told(), `working | "Hello" | working | "Hello" | completed`)
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
		is(t, "how many updates the other receiver has", told, 5)
		is(t, "the longest request", longest, 15*time.Second)
	})
}
