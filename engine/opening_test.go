package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
)

// A task of a client with messages of its own: the session is created under its id,
// the messages keep theirs, and the earlier ones are history for the agent.
func TestTaskWithMessages(t *testing.T) {
	var got tapedeck.Invocation
	var history []string
	runner := func(ctx context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
		got = in
		for e, err := range in.History(ctx) {
			if err != nil {
				return err
			}
			history = append(history, e.Type)
		}
		return nil
	}
	inBubble(t, runner, func(w *world) {
		message := payload.NewMessage
		task := api.Task{
			Session: "mine", Create: true, Invocation: "run-1", Text: "go", State: json.RawMessage(`{"n":1}`),
			Messages: []payload.Message{message("sys", "system", "Be short."), message("u", "user", "go")},
			Input:    &payload.RunInput{ThreadID: "mine", RunID: "run-1", Messages: []payload.Message{}, Tools: json.RawMessage(`[{"name":"pick"}]`)},
		}
		started, err := w.Start(w.Context(), task)
		if err != nil || started.Session != "mine" || started.Invocation != "run-1" || started.Offset != 1 {
			w.Fatalf("%+v, %v", started, err)
		}
		synctest.Wait()
		if got.ID != "run-1" || got.Task != "go" || !bytes.Contains(got.Input, []byte(`"pick"`)) || !slices.Equal(history, []string{"session.created", "message.added"}) {
			w.Errorf("the agent gets %+v and %q", got, history)
		}
		var types []string
		for _, e := range eventsOf(w, w.store, "mine") {
			types = append(types, e.Type)
		}
		want := "session.created message.added message.added RUN_STARTED STATE_SNAPSHOT RUN_FINISHED"
		if got := strings.Join(types, " "); got != want {
			w.Errorf("the log has %s", got)
		}
		for name, change := range map[string]func(*api.Task){
			"a used id": func(*api.Task) {},
			"a bad id":  func(t *api.Task) { t.Invocation = "a b" },
			"an activity": func(t *api.Task) {
				t.Invocation, t.Messages = "run-2", []payload.Message{{ID: "a", Role: "activity", ActivityType: "x", Content: json.RawMessage(`{}`)}}
			},
			"no session": func(t *api.Task) { t.Invocation, t.Session, t.Create = "run-2", "other", false },
			"no agent":   func(t *api.Task) { t.Invocation, t.Session, t.Agent = "run-2", "other", "nobody" },
		} {
			wrong := task
			change(&wrong)
			if _, err := w.Start(w.Context(), wrong); err == nil {
				w.Errorf("%s: the task was accepted", name)
			}
		}
		if _, err := w.store.Head(w.Context(), "other"); tapedeck.KindOf(err) != tapedeck.NotFound {
			w.Errorf("a session without a run was left behind: %v", err)
		}
	})
}
