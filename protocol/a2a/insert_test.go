package a2a_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/protocol/a2a"
)

// savedTask returns the task of session c as an agent saves it. Each message is a role, an
// invocation and a text, divided by bars.
func savedTask(state string, messages ...string) string {
	var list []string
	for i, m := range messages {
		part := strings.SplitN(m, "|", 3)
		list = append(list, fmt.Sprintf(`{"kind":"message","messageId":"own-%d","role":%q,"parts":[{"kind":"text","text":%q}],"metadata":{"kagent_invocation_id":%q}}`, i, part[0], part[2], part[1]))
	}
	return fmt.Sprintf(`{"kind":"task","id":"c","contextId":"c","status":{"state":%q},"history":[%s]}`, state, strings.Join(list, ","))
}

// The first task that an agent saves in a session, which may not exist yet, becomes its
// conversation. It is read, continued and rewound like every other one.
func TestSaveATaskThatIsNotThere(t *testing.T) {
	for name, tt := range map[string]struct {
		state   string
		history []string
		log     string
	}{
		"two turns": {
			"completed", []string{"user|e-1|say One", "agent|e-1|One", "agent|e-1|more", "user|e-2|say Two", "agent|e-2|Two"},
			"message.added RUN_STARTED message.added message.added RUN_FINISHED message.added RUN_STARTED message.added RUN_FINISHED",
		},
		"without invocations": {
			"completed", []string{"user||say One", "agent||One", "user||say Two"},
			"message.added RUN_STARTED message.added RUN_FINISHED message.added RUN_STARTED RUN_FINISHED",
		},
		"it has failed":       {"failed", []string{"user|e-1|say One"}, "message.added RUN_STARTED RUN_ERROR"},
		"it was canceled":     {"canceled", []string{"user|e-1|say One", "agent|e-1|O"}, "message.added RUN_STARTED message.added RUN_FINISHED"},
		"an agent that spoke": {"completed", []string{"agent|e-1|One", "user|e-1|more"}, "RUN_STARTED message.added message.added RUN_FINISHED"},
	} {
		for _, exists := range []bool{false, true} {
			t.Run(fmt.Sprint(name, exists), func(t *testing.T) {
				inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
					if exists {
						if _, err := w.engine.Create(w.Context(), api.NewSession{ID: "c", Agent: "bot"}); err != nil {
							t.Fatal(err)
						}
					}
					body := savedTask(tt.state, tt.history...)
					if a := w.post("/api/tasks", body); a.Status != 200 || !strings.Contains(a.Body, fmt.Sprintf(`"state":%q`, tt.state)) {
						t.Fatalf("got %d %s", a.Status, a.Body)
					}
					if got := strings.Join(w.log()[1:], " "); got != tt.log {
						t.Errorf("the log is %s", got)
					}
					var said []string
					for _, m := range tt.history {
						part := strings.SplitN(m, "|", 3)
						said = append(said, part[0]+": "+part[2])
					}
					got := w.saved()
					if state := got[0].Status.State; !strings.HasPrefix(words(got), strings.Join(said, " | ")) || state != tt.state {
						t.Errorf("the task is %s: %s", state, words(got))
					}
					before := len(w.log())
					if a := w.post("/api/tasks", body); a.Status != 200 || len(w.log()) != before {
						t.Errorf("once more: %d %s", a.Status, a.Body)
					}
					next := w.call03("message/send", message03("m9", "say Nine", "")).task()
					if !strings.HasSuffix(next.words(), "user: say Nine | agent: Nine") {
						t.Errorf("the next turn: %s", next.words())
					}
					first := got[0].History[0].Metadata["kagent_invocation_id"].(string)
					if back := w.call03("message/send", rewindTo("r", first)).task(); back.Status.State != "completed" || back.words() != "" {
						t.Errorf("rewound: %v", back)
					}
				})
			})
		}
	}
}

// What cannot be a conversation is refused, and makes no session.
func TestSaveATaskThatIsRefused(t *testing.T) {
	inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
		for body, want := range map[string]string{
			savedTask("working", "user|e-1|say One"):                                               "no agent of this server would continue it",
			savedTask("input-required", "user|e-1|say One"):                                        "no agent of this server would continue it",
			savedTask("completed", "system|e-1|say One"):                                           "it is user or agent",
			savedTask("completed", "user|e-1|"):                                                    "no message with a text",
			savedTask("completed", "user|../x|say One"):                                            "the invocation",
			savedTask("completed", "user|e-1|One", "user|e-2|Two", "user|e-1|Three"):               "do not follow each other",
			strings.Replace(savedTask("completed", "user|e-1|One"), "own-0", "", 1):                "no messageId",
			strings.Replace(savedTask("completed"), `"history":[]`, `"history":[null]`, 1):         "no messageId",
			savedTask("completed"):                                                                 "there is no session",
			strings.Replace(savedTask("completed", "user|e-1|One"), `"id":"c"`, `"id":"other"`, 1): "there is no session",
		} {
			if a := w.post("/api/tasks", body); a.Status < 400 || a.Status > 499 || !strings.Contains(a.Body, want) {
				t.Errorf("%s\ngot %d %s, want %q", body, a.Status, a.Body, want)
			}
		}
		if _, err := w.hub.Head(w.Context(), "c"); tapedeck.KindOf(err) != tapedeck.NotFound {
			t.Errorf("a session was made: %v", err)
		}
		threeTurns(w)
		before := w.log()
		if a := w.post("/api/tasks", savedTask("completed", "user|e-1|say One", "agent|e-1|other")); a.Status != 409 {
			t.Errorf("another conversation: %d %s", a.Status, a.Body)
		}
		if after := w.log(); !slices.Equal(before, after) {
			t.Errorf("the log was %v, and is %v", before, after)
		}
	})
}
