package a2a_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/protocol/a2a"
	"github.com/tapedeck/tapedeck/protocol/a2a/push"
)

// ofTask returns the parameters of a method about the config p of a task.
func ofTask(id string) string { return fmt.Sprintf(`{"taskId":%q,"id":"p"}`, id) }

// invocationOf returns the invocation of a task.
func invocationOf(id string) string {
	_, invocation, _ := strings.Cut(id, "~")
	return invocation
}

func (w *world) rewind(r api.Rewind) {
	w.Helper()
	r.Session = "c"
	if _, err := w.engine.Rewind(w.Context(), r); err != nil {
		w.Fatal(err)
	}
}

// holds fails the test if the answer has not a text.
func (a *answer) holds(text string) {
	a.Helper()
	if !strings.Contains(a.Body, text) {
		a.Errorf("got %d %s, want %q in it", a.Status, a.Body, text)
	}
}

// refuse makes the receiver answer 500 until take is called, which also forgets what it got.
func (w *world) refuse() (take func()) {
	w.receiver.answers(func(*notified) int { return 500 })
	return func() {
		w.receiver.taken()
		w.receiver.answers(nil)
	}
}

// If only the message of the user is erased, the receiver still learns the rest of the task.
func TestPushOfAnErasedMessage(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		take := w.refuse()
		id := w.call("SendMessage", pushed(message("m", "say Hello", ""), hook)).task().ID
		time.Sleep(10 * time.Second)
		if _, err := w.engine.Erase(w.Context(), api.Erase{Session: "c", Events: []tapedeck.OffsetRange{{From: 1, To: 2}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		is(t, "the config", strings.Contains(w.call("ListTaskPushNotificationConfigs", ofTask(id)).Body, "hook.example"), true)
		take()
		time.Sleep(time.Minute)
		is(t, "told", w.receiver.told(), `working | "Hello" | working | "Hello" | completed`)
		frames := w.call("SubscribeToTask", get(id), "Last-Event-ID", "1").frames
		is(t, "the events of a stream from the message on", len(frames), 6)
	})
}

// A rewind that reverts a task ends the delivery of its configs, also if a request is under
// way. They can still be read and deleted, by who sees the task, and no new one can be set.
func TestPushOfARevertedTask(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		w.call("SendMessage", message("m0", "say First", ""))
		var under *notified
		w.receiver.answers(func(n *notified) int {
			under = n
			<-n.context.Done()
			return 0
		})
		id := w.call("SendMessage", pushed(message("m", "say Hello", ""), hook)).task().ID
		time.Sleep(time.Second)
		w.receiver.taken()
		w.rewind(api.Rewind{BeforeInvocation: invocationOf(id)})
		w.receiver.taken()
		if under.context.Err() == nil {
			t.Error("the request has not ended")
		}
		w.receiver.answers(nil)
		time.Sleep(time.Hour)
		w.call("SendMessage", message("m2", "say Other", ""))
		w.stop()
		w.start(a2a.Options{})
		time.Sleep(time.Hour)
		is(t, "told", w.receiver.told(), "")

		for _, method := range []string{"GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs"} {
			w.call(method, ofTask(id)).holds("hook.example")
			w.post("/a2a/other", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+ofTask(id)+`}`, "A2A-Version", "1.0").fails(-32001, "there is no task")
		}
		w.call("CreateTaskPushNotificationConfig", config(id, "q", "https://hook.example/b")).fails(-32001, "there is no task")
		is(t, "deleted", w.call("DeleteTaskPushNotificationConfig", ofTask(id)).Body, `{"jsonrpc":"2.0","id":7,"result":{}}`)
		w.call("GetTaskPushNotificationConfig", ofTask(id)).fails(-32001, "does not have this push notification config")
	})
}

// After an undo nothing follows either, because the delivery has ended.
func TestPushAfterUndo(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		take := w.refuse()
		id := w.call("SendMessage", pushed(message("m", "say Hello", ""), hook)).task().ID
		time.Sleep(time.Second)
		w.rewind(api.Rewind{BeforeInvocation: invocationOf(id)})
		take()
		if _, err := w.engine.Undo(w.Context(), api.Undo{Session: "c"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		is(t, "told", w.receiver.told(), "")
		w.call("GetTaskPushNotificationConfig", ofTask(id)).holds("hook.example")
	})
}

// A rewind that reverts a part of a task sends the whole task as it is then, and nothing of
// the part. One that reverts nothing of the task changes nothing.
func TestPushOfAPartlyRevertedTask(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		take := w.refuse()
		id := w.call("SendMessage", pushed(message("m", "say Hello\nsay Secret", ""), hook)).task().ID
		time.Sleep(time.Second)
		at := int64(0)
		for i, typ := range w.log() {
			if typ == tapedeck.TextMessageEnd && at == 0 {
				at = int64(i + 1)
			}
		}
		w.rewind(api.Rewind{ToOffset: &at})
		take()
		time.Sleep(time.Hour)
		got := w.receiver.taken()
		if len(got) == 0 {
			t.Fatal("the receiver was not told")
		}
		if len(got) != 1 || got[0].short() != "task canceled 2" || strings.Contains(got[0].body, `"Secret"`) {
			t.Errorf("told %d times, the first is %s", len(got), got[0].body)
		}
		is(t, "the task", w.call("GetTask", get(id)).task().Status.State, "TASK_STATE_CANCELED")

		take = w.refuse()
		w.call("SendMessage", pushed(message("m2", "say Again", ""), hook))
		time.Sleep(time.Second)
		next := w.call("SendMessage", message("m3", "say Later", "")).task().ID
		w.rewind(api.Rewind{BeforeInvocation: invocationOf(next)})
		take()
		time.Sleep(time.Hour)
		is(t, "of a later task", w.receiver.told(), `working | "Again" | working | "Again" | completed`)
	})
}

// Updates that meet a jump stop before it, and begin with the task as the jump has left it
// when they are asked for again.
func TestUpdatesUpToARewind(t *testing.T) {
	inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
		w.call("SendMessage", message("m1", "say Hello", ""))
		s, err := w.hub.Head(w.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		w.call("SendMessage", pushed(message("m2", "wait", ""), hook))
		task := push.Task{Session: "c", Gen: s.Gen}
		updates := func(from int64, each func(n *notified)) (next int64) {
			for u, err := range w.Handler.(*a2a.Handler).Updates(w.Context(), task, "1.0", from) {
				if err != nil {
					t.Fatal(err)
				}
				if next = u.Next; u.Body != nil {
					each(&notified{body: string(u.Body)})
				}
			}
			return next
		}
		var jump int64
		next := updates(s.Head, func(n *notified) {
			if n.short() == "working" && jump == 0 {
				at, err := w.hub.Head(w.Context(), "c")
				if err != nil {
					t.Fatal(err)
				}
				w.rewind(api.Rewind{BeforeInvocation: at.Runs[0].Invocation})
				jump = int64(len(w.log()) - 1)
			}
		})
		is(t, "where the updates stop", next, jump)
		var got []string
		next = updates(next, func(n *notified) { got = append(got, n.short()) })
		is(t, "the updates from there on", got, []string{"task completed 2"})
		is(t, "where they end", next, jump+1)
	})
}
