package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

const harmless = `permission.requested {"id":"p","message":"May I look?","options":[{"id":"yes"},{"id":"no"}]}`

// on returns events of a thread and, if invocation is not "", of an invocation.
func on(thread, invocation string, lines ...string) []tapedeck.Event {
	events := parse(lines...)
	for i := range events {
		events[i].Thread, events[i].Invocation = thread, invocation
	}
	return events
}

// While a question is pending, no other question with its id is accepted, on any
// thread and of any kind: people would answer the one that they see, and allow the
// other.
func TestOneQuestionOfAnID(t *testing.T) {
	inBubble(t, asking, func(w *world) {
		w.create("s")
		run := w.start("s")
		synctest.Wait()
		begin := `RUN_STARTED {"threadId":"t","runId":"r"}`
		for name, events := range map[string][]tapedeck.Event{
			"without an invocation":     on("", "", harmless),
			"in the run":                on("", run.Invocation, harmless),
			"on a thread without a run": on("t", "", harmless),
			"in a run of its own":       on("t", "r", begin, harmless),
			"without its invocation":    append(on("t", "r", begin), on("t", "", harmless)...),
		} {
			_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: events})
			if tapedeck.KindOf(err) != tapedeck.Conflict {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := w.answer("s", "yes")
		w.must(err)
		asked := 0
		for _, ev := range w.events("s") {
			if ev.Type == tapedeck.PermissionRequested {
				asked++
			}
		}
		if asked != 1 {
			t.Errorf("the log has %d questions", asked)
		}
	})
}

// An id that only looks like that of a pending question is free.
func TestAnIDThatLooksLikeAnother(t *testing.T) {
	inBubble(t, asking, func(w *world) {
		w.create("s")
		begin := `RUN_STARTED {"threadId":"t","runId":"r"}`
		for _, id := range []string{"p ", " p", `p\u0000`, `p\n`, `p\u009b`, `p\u200b`, `\u202ep`, `\u0440`, "p/1"} {
			ask := `permission.requested {"id":"` + id + `","options":[{"id":"yes"}]}`
			_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: on("t", "r", begin, ask)})
			if tapedeck.KindOf(err) != tapedeck.Invalid {
				t.Errorf("%q: %v", id, err)
			}
		}
		long := `permission.requested {"id":"` + strings.Repeat("i", 1000) + `.p-1:2@_","options":[{"id":"yes"}]}`
		_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: on("t", "r", begin, long)})
		w.must(err)
	})
}

// A pending question of an external run keeps an agent from asking with the same
// id, also after a restart.
func TestAnIDThatIsOpenOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, silent)
		w.create("s")
		_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: on("t", "r", `RUN_STARTED {"threadId":"t","runId":"r"}`, harmless)})
		w.must(err)
		second := w.open(func(ctx context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
			_, err := in.Ask(ctx, tapedeck.Question{ID: "p", Message: "rm -rf", Options: yesNo})
			return err
		})
		_, err = second.Start(w.Context(), api.Task{Session: "s", Text: "go"})
		w.must(err)
		synctest.Wait()
		for _, ev := range w.log("s") {
			var d tapedeck.Question
			if ev.Type == tapedeck.PermissionRequested && json.Unmarshal(ev.Data, &d) == nil && d.Message != "May I look?" {
				t.Errorf("the log has %s", ev.Data)
			}
		}
	})
}

// A question without an invocation belongs to the run of its thread and ends with
// it. Then its id is free.
func TestQuestionsEndWithTheirRun(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		begin := func(run string) {
			_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: append(on("t", run, `RUN_STARTED {"threadId":"t","runId":"`+run+`"}`), on("t", "", harmless)...)})
			w.must(err)
		}
		begin("r1")
		_, err := w.Cancel(w.Context(), "s", "r1")
		w.must(err)
		answers := w.answers("s")
		if len(answers) != 1 || answers[0].Invocation != "r1" {
			t.Fatalf("after the cancel there are %+v", answers)
		}
		_, err = w.answer("s", "yes")
		refuses(t, err, tapedeck.Conflict, "not pending any more")
		begin("r2")
		_, err = w.answer("s", "no")
		w.must(err)
		_, err = w.Append(w.Context(), tapedeck.Append{Session: "s", Events: on("t", "r2", harmless)})
		w.must(err) // the first was answered
	})
}

// An answer is only for the question that the user saw.
func TestAnswerToWhatWasShown(t *testing.T) {
	answer := func(w *world, offset int64) error {
		_, err := w.Answer(context.Background(), api.Answer{Session: "s", Permission: "p", Option: "yes", Offset: &offset})
		return err
	}
	inBubble(t, asking, func(w *world) {
		w.create("s")
		w.start("s")
		synctest.Wait()
		refuses(t, answer(w, 3), tapedeck.Conflict, "was asked at offset 5, not at 3")
		w.must(answer(w, 5))
	})
	inBubble(t, silent, func(w *world) {
		w.create("s")
		_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: on("", "r", `RUN_STARTED {"threadId":"t","runId":"r"}`, harmless)})
		w.must(err)
		refuses(t, answer(w, 1), tapedeck.Conflict, "was asked at offset 2, not at 1")
		w.must(answer(w, 2))
	})
}
