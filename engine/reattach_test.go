package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/engine"
)

// A remote is a runner whose agent works elsewhere.
type remote struct{ talker }

func (remote) Capabilities() tapedeck.Capabilities { return tapedeck.Capabilities{} }
func (remote) Available() error                    { return nil }
func (remote) Reattaches()                         {}

// elsewhere makes the agent bot work elsewhere.
func elsewhere(f talker) func(*engine.Options) {
	return func(o *engine.Options) { o.Agents[0].Runner = remote{f} }
}

// A run whose agent works elsewhere continues after a crash, under its id, and the runner
// gets what the log has of it.
func TestReattach(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.Engine = w.open(chatty, elsewhere(chatty))
		w.create("s")
		began := w.start("s")
		w.create("other")
		w.start("other")
		crash(w)

		w.Engine = w.open(silent, elsewhere(func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			var types []string
			for e, err := range in.Begun(ctx) {
				if err != nil {
					return err
				}
				types = append(types, e.Type)
			}
			if in.Session == "s" {
				say("TEXT_MESSAGE_START", `{"messageId":"m","role":"assistant"}`)
				say("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"word"}`)
				say("TEXT_MESSAGE_END", `{"messageId":"m"}`)
			}
			return tapedeck.Errorf(tapedeck.Unavailable, "%s saw %s", in.ID, strings.Join(types, " "))
		}))
		if n, err := w.Recover(w.Context()); n != 0 || err != nil {
			w.Errorf("%d runs were ended, %v", n, err)
		}
		time.Sleep(time.Second) // in the bubble: until the runs end
		end, status := w.end("s")
		want := began.Invocation + " saw message.added RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TOOL_CALL_START"
		if status != tapedeck.StatusFailed || !strings.Contains(string(end.Data), want) || end.Invocation != began.Invocation {
			w.Errorf("it ended %s with %s, want %s", status, end.Data, want)
		}
		events := w.events("s")
		if got := said(w, events)["m"]; got != "half a word" {
			w.Errorf("the message is %q", got)
		}
		if got := types(events); strings.Count(got, tapedeck.RunStarted) != 1 || strings.Count(got, tapedeck.RunError) != 1 {
			w.Error(got)
		}
		if runs := w.head("other").Runs; len(runs) != 0 {
			w.Errorf("the other run is open: %v", runs)
		}
	})
}

// A run whose agent is not here any more, or that waits for an answer, ends as
// interrupted.
func TestRunsThatAreNotReattached(t *testing.T) {
	ask := func(ctx context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
		_, err := in.Ask(ctx, tapedeck.Question{ID: "q", Options: []tapedeck.PermissionOption{{ID: "yes"}}})
		return err
	}
	gone := func(o *engine.Options) { o.Agents = o.Agents[1:] }
	for i, tt := range []struct {
		first talker
		then  func(*engine.Options)
	}{{chatty, gone}, {ask, elsewhere(silent)}, {chatty, func(*engine.Options) {}}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			inBubble(t, chatty, func(w *world) {
				w.Engine = w.open(chatty, elsewhere(tt.first))
				w.create("s")
				w.start("s")
				crash(w)
				e := w.open(silent, tt.then)
				if n, err := e.Recover(w.Context()); n != 1 || err != nil {
					w.Errorf("%d runs were ended, %v", n, err)
				}
				if _, status := w.end("s"); status != tapedeck.StatusInterrupted {
					w.Errorf("it ended %s", status)
				}
			})
		})
	}
}
