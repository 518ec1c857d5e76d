package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// prompted returns an agent that begins to answer and waits, and the lists of what its runs
// were asked.
func prompted() (talker, *[]string) {
	var asked []string
	return func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		n := 0
		for ev := range in.History(ctx) {
			if ev.ThreadName() == in.Thread {
				n++
			}
		}
		asked = append(asked, fmt.Sprintf("%q after %d, %s", in.Task, n, in.Message))
		return chatty(ctx, in, say)
	}, &asked
}

// TestDelegateAgain: an agent on a named thread that was stopped is asked again with exactly
// the prompt that the log has, also if its caller would ask something else by now. The
// thread has the prompt once.
func TestDelegateAgain(t *testing.T) {
	helper, asked := prompted()
	task := "weigh 1"
	bot := func(ctx context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
		in.Inbox.Rests() // or else it is suspected of the crash
		_, err := in.Delegate(ctx, tapedeck.Delegation{Agent: "helper", Task: task, Thread: "thread_T"})
		return err
	}
	durably(t, bot, helper, func(w *world) {
		w.start("s")
		synctest.Wait()
		task = "weigh 2"
		crash(w)
		w.recover(bot, helper)
		_, err := w.Cancel(w.Context(), "s", "") // the workflow is cancelled, and resumed
		w.must(err)
		synctest.Wait()
		_, err = w.Resume(w.Context(), api.Resume{Session: "s"})
		w.must(err)
		synctest.Wait()
		prompts := 0
		for _, ev := range w.events("s") {
			if ev.Type == tapedeck.MessageAdded && ev.ThreadName() == "thread_T" {
				prompts++
			}
		}
		for _, got := range *asked {
			if !strings.HasPrefix(got, `"weigh 1" after 0, {"id":"`) || got != (*asked)[0] {
				t.Errorf("it was asked %s", got)
			}
		}
		if prompts != 1 || len(*asked) != 3 {
			t.Errorf("the log has %d prompts of %d runs", prompts, len(*asked))
		}
	})
}
