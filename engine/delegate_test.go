package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/view"
)

// delegating is a world in which the agent bot starts the agent helper, whose
// runner is given, and reports the result.
func delegating(t *testing.T, runner talker, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		test(newWorld(t, func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			say("TOOL_CALL_START", `{"toolCallId":"c","toolCallName":"start_agent"}`)
			say("TOOL_CALL_END", `{"toolCallId":"c"}`)
			d, err := in.Delegate(ctx, tapedeck.Delegation{Agent: "helper", Task: "help", ToolCallID: "c"})
			say("TOOL_CALL_RESULT", fmt.Sprintf(`{"toolCallId":"c","messageId":"r","content":%q}`, fmt.Sprint(d.Status, ": ", d.Text, " ", err)))
			return nil
		}, func(o *engine.Options) {
			o.Agents[0].Starts = []string{"helper"}
			o.IdleTimeout = time.Minute
			o.Agents = append(o.Agents, engine.Agent{Agent: tapedeck.Agent{Name: "helper"}, Runner: runner, Starts: []string{"helper"}, IdleTimeout: -1})
		}))
	})
}

func answered(s view.Snapshot) string { return s.Calls[0].Result.Text }

func TestDelegate(t *testing.T) {
	delegating(t, func(_ context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		say("TEXT_MESSAGE_START", `{"messageId":"a","role":"assistant"}`)
		say("TEXT_MESSAGE_CONTENT", `{"messageId":"a","delta":"hm"}`)
		say("TEXT_MESSAGE_END", `{"messageId":"a"}`)
		say("TEXT_MESSAGE_START", `{"messageId":"b","role":"assistant"}`)
		time.Sleep(time.Hour) // an agent that waits for another one is not idle
		say("TEXT_MESSAGE_CONTENT", `{"messageId":"b","delta":"`+in.Task+`ed"}`)
		say("TEXT_MESSAGE_END", `{"messageId":"b"}`)
		return nil
	}, func(w *world) {
		w.create("s")
		w.turn("s", "bot", "")
		time.Sleep(2 * time.Hour)
		all, by := w.threads("s")
		bot, helper := by["bot"], by["helper"]
		if got := answered(bot); got != "complete: helped <nil>" {
			t.Errorf("it was answered %q", got)
		}
		if spoken(helper) != "help|hm|helped" || helper.Messages[0].Actor != "agent:bot" || helper.Threads[0].Parent != "main" || helper.Runs[0].Parent != bot.Runs[0].Invocation {
			t.Errorf("the helper's thread is %+v", helper)
		}
		if fmt.Sprint(bot.Calls[0].Threads) != "["+helper.Threads[0].Name+"]" || len(view.Tasks(all)) != 1 {
			t.Errorf("the call is %+v", bot.Calls[0])
		}
		if got := strings.Join(w.ends("s"), ", "); got != "helper complete, bot complete" {
			t.Error(got)
		}
	})
}

// However either run is stopped, both end, in order, and the waiting caller gets a
// result.
func TestDelegateEnds(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		helper     talker
		end        func(w *world)
	}{
		{"it fails", "helper failed, bot complete", func(context.Context, tapedeck.Invocation, func(string, string) bool) error { return errors.New("oh") }, func(*world) {}},
		{"it alone is cancelled", "helper cancelled, bot complete", silent, func(w *world) {
			_, err := w.Cancel(w.Context(), "s", w.head("s").Runs[1].Invocation)
			w.must(err)
		}},
		{"all is cancelled", "helper cancelled, bot cancelled", silent, func(w *world) {
			_, err := w.Cancel(w.Context(), "s", "")
			w.must(err)
		}},
		{"it does not stop", "helper cancelled, bot cancelled", func(context.Context, tapedeck.Invocation, func(string, string) bool) error {
			time.Sleep(time.Hour)
			return nil
		}, func(w *world) {
			_, err := w.Cancel(w.Context(), "s", "")
			w.must(err)
			time.Sleep(2 * time.Hour)
		}},
		{"a crash", "helper interrupted, bot interrupted", silent, func(w *world) {
			crash(w)
			_, err := w.open(silent).Recover(w.Context())
			w.must(err)
		}},
		{"too deep", "helper complete, helper complete, helper complete, helper complete, bot complete", func(ctx context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
			if in.Delegate == nil {
				return nil
			}
			_, err := in.Delegate(ctx, tapedeck.Delegation{Agent: "helper", Task: "help"})
			return err
		}, func(*world) {}},
		{"not its to start", "helper complete, bot complete", func(ctx context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
			if _, err := in.Delegate(ctx, tapedeck.Delegation{Agent: "mute", Task: "x"}); tapedeck.KindOf(err) != tapedeck.Forbidden {
				return fmt.Errorf("got %w", err)
			}
			return nil
		}, func(*world) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			delegating(t, tt.helper, func(w *world) {
				w.create("s")
				w.turn("s", "bot", "")
				tt.end(w)
				synctest.Wait()
				if got := strings.Join(w.ends("s"), ", "); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				if head := w.head("s"); len(head.Runs) != 0 {
					t.Errorf("%v are open", head.Runs)
				}
			})
		})
	}
}

// A sub-agent asks in the run of the user.
func TestDelegateAsks(t *testing.T) {
	delegating(t, func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		a, err := in.Ask(ctx, tapedeck.Question{ID: "p", Options: []tapedeck.PermissionOption{{ID: "yes"}}})
		say("TEXT_MESSAGE_START", `{"messageId":"b","role":"assistant"}`)
		say("TEXT_MESSAGE_CONTENT", `{"messageId":"b","delta":"`+a.Option+`"}`)
		say("TEXT_MESSAGE_END", `{"messageId":"b"}`)
		return err
	}, func(w *world) {
		w.create("s")
		w.turn("s", "bot", "")
		w.waitsFor("s", "p")
		_, err := w.Answer(w.Context(), api.Answer{Session: "s", Permission: "p", Option: "yes"})
		w.must(err)
		synctest.Wait()
		_, by := w.threads("s")
		if p := by["bot"].Permissions; len(p) != 1 || p[0].Option != "yes" || answered(by["bot"]) != "complete: yes <nil>" {
			t.Errorf("the questions are %+v, the answer %q", p, answered(by["bot"]))
		}
	})
}
