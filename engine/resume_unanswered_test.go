package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// A listener is a runner that notes its task and the messages of its history, and says "yes".
type listener struct{ heard []string }

func (l *listener) run(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
	var c view.Conversation
	for e, err := range in.History(ctx) {
		if err != nil {
			return err
		}
		c.Apply(&e)
	}
	var said []string
	for _, m := range c.Thread(in.Thread).Messages {
		said = append(said, m.Text)
	}
	l.heard = append(l.heard, strings.Join(said, " ")+" | "+in.Task)
	if in.Task == "mute" {
		<-ctx.Done()
		return ctx.Err()
	}
	say("message.added", `{"message":{"id":"`+in.ID+`.m","role":"assistant","content":"yes"}}`)
	return nil
}

// A resume without a text answers the last message of the thread if nobody has: what a cut
// has left, or what a program has appended. It adds no message, and the agent gets the message
// once, after what was before it.
func TestResumeAnswersTheLastMessage(t *testing.T) {
	const user = `message.added {"message":{"id":"u","role":"user","content":"two"}}`
	cut := &view.ContextCut{Thread: "main"}
	for name, tt := range map[string]struct {
		script string
		change func(w *world) error
		want   string // what the agent hears; the sentence of the refusal
	}{
		"appended by a program": {"", func(w *world) error { return w.append("s", user) }, " | two"},
		"after a run":           {"task one", func(w *world) error { return w.append("s", user) }, "one yes | two"},
		"two of them": {"", func(w *world) error {
			return w.append("s", strings.ReplaceAll(user, "two", "one"), strings.ReplaceAll(user, `"u"`, `"v"`))
		}, "one | two"},
		"after an overwrite": {"task one; task two", func(w *world) error {
			_, err := w.Overwrite(w.Context(), api.Overwrite{Session: "s", FromOffset: w.startOf("two"), Context: cut})
			return err
		}, "one yes | two"},
		"after an overwrite with an offset": {"task one; task two", func(w *world) error {
			_, err := w.Overwrite(w.Context(), api.Overwrite{Session: "s", FromOffset: w.startOf("two")})
			return err
		}, "one yes | two"},
		"after a cancelled run": {"task mute; cancel mute", func(w *world) error {
			_, err := w.Overwrite(w.Context(), api.Overwrite{Session: "s", FromOffset: 2, Context: cut})
			return err
		}, " | mute"},
		"answered": {"task one", func(*world) error { return nil }, "has completed, so there is nothing to resume"},
		"the last is the agent": {"", func(w *world) error {
			return w.append("s", user, `message.added {"message":{"id":"a","role":"assistant","content":"x"}}`)
		}, "nothing has run on thread main"},
		"erased": {"", func(w *world) error { return w.append("s", strings.ReplaceAll(user, "two", "")) }, "nothing has run on thread main"},
		"a call after it": {"", func(w *world) error {
			return w.append("s", user, `message.added {"message":{"id":"a","role":"assistant","content":"","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}]}}`)
		}, "nothing has run on thread main"},
	} {
		t.Run(name, func(t *testing.T) {
			var l listener
			inBubble(t, l.run, func(w *world) {
				w.create("s")
				if tt.script != "" {
					w.tape("s").play(tt.script)
				}
				w.must(tt.change(w))
				l.heard = nil
				before := w.texts("s")
				_, err := w.Resume(w.Context(), api.Resume{Session: "s"})
				synctest.Wait()
				if !strings.Contains(tt.want, "|") {
					refuses(t, err, tapedeck.Conflict, tt.want)
					return
				}
				w.must(err)
				if got := strings.Join(l.heard, "; "); got != tt.want {
					t.Errorf("the agent hears %q, want %q", got, tt.want)
				}
				if got, want := w.texts("s"), strings.TrimSpace(before+" yes"); tt.want != " | mute" && got != want {
					t.Errorf("the thread has %q, want %q", got, want)
				}
				w.must(w.Shutdown(context.Background()))
			})
		})
	}
}

// startOf returns the offset of the RUN_STARTED of a task.
func (w *world) startOf(task string) int64 {
	w.Helper()
	asked := false
	for _, e := range w.log("s") {
		asked = asked || strings.Contains(string(e.Data), task)
		if asked && e.Type == tapedeck.RunStarted {
			return e.Offset
		}
	}
	w.Fatalf("no run has the task %s", task)
	return 0
}

// texts returns the texts of the main thread.
func (w *world) texts(session string) string {
	w.Helper()
	var all []string
	for _, m := range w.snapshot(session, w.head(session).Head).Messages {
		all = append(all, m.Text)
	}
	return strings.Join(all, " ")
}
