package engine_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/payload"
)

// calling calls its model until it is stopped. Each call takes a second, and uses 60
// tokens and a cent.
func calling(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
	for n := range 100 {
		if err := in.Proceed(ctx); err != nil {
			return err
		}
		time.Sleep(time.Second) // in a bubble
		say("usage.reported", `{"model":"m","inputTokens":50,"outputTokens":10,"costUsd":0.01}`)
		say("TEXT_MESSAGE_START", fmt.Sprintf(`{"messageId":"m%d"}`, n))
		say("TEXT_MESSAGE_END", fmt.Sprintf(`{"messageId":"m%d"}`, n))
	}
	return nil
}

// budgetWorld runs a test with an agent that has a budget.
func budgetWorld(t *testing.T, runner talker, b tapedeck.Amount, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, runner, func(o *engine.Options) { o.Agents[0].Budget = b })
		w.create("s")
		test(w)
	})
}

// asked returns the questions of a session, and how often the model was called before each.
func (w *world) askedAfter(session string) (out []string) {
	calls := 0
	for _, e := range w.log(session) {
		switch e.Type {
		case tapedeck.UsageReported:
			calls++
		case tapedeck.PermissionRequested:
			d, err := payload.DecodeAs[payload.PermissionRequested](e)
			w.must(err)
			out = append(out, fmt.Sprintf("%d: %s", calls, d.Message))
		}
	}
	return out
}

func (w *world) answerNewest(session, option string) {
	w.Helper()
	for _, e := range slices.Backward(w.log(session)) {
		if e.Type == tapedeck.PermissionRequested {
			d, err := payload.DecodeAs[payload.PermissionRequested](e)
			w.must(err)
			_, err = w.Answer(w.Context(), api.Answer{Session: session, Permission: d.ID, Option: option})
			w.must(err)
			return
		}
	}
	w.Fatal("nothing was asked")
}

// At its limit a run pauses with a question. It continues until the next limit, or ends.
func TestBudgets(t *testing.T) {
	for _, tt := range []struct {
		name   string
		budget tapedeck.Amount
		asked  []string
		end    string
	}{
		{"tokens", tapedeck.Amount{Tokens: 100}, []string{"2: The run has used 120 of 100 tokens. Continue for 100 more tokens?", "4: The run has used 240 of 200 tokens. Continue for 100 more tokens?"}, "the run has used 240 of 200 tokens"},
		{"many tokens", tapedeck.Amount{Tokens: 1020}, []string{"17: The run has used 1,020 of 1,020 tokens. Continue for 1,020 more tokens?", "34: The run has used 2,040 of 2,040 tokens. Continue for 1,020 more tokens?"}, "2,040 of 2,040 tokens"},
		{"money", tapedeck.Amount{USD: .025}, []string{"3: The run has used $0.03 of $0.03. Continue for $0.03 more?", "5: The run has used $0.05 of $0.05. Continue for $0.03 more?"}, "$0.05 of $0.05"},
		{"turns", tapedeck.Amount{Turns: 1}, []string{"1: The run has used 1 of 1 model call. Continue for 1 more model call?", "2: The run has used 2 of 2 model calls. Continue for 1 more model call?"}, "2 of 2 model calls"},
		{"time", tapedeck.Amount{Seconds: 3}, []string{"3: The run has used 3s of 3s. Continue for 3s more?", "6: The run has used 6s of 6s. Continue for 3s more?"}, "6s of 6s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			budgetWorld(t, calling, tt.budget, func(w *world) {
				w.start("s")
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := w.askedAfter("s"); !slices.Equal(got, tt.asked[:1]) {
					w.Fatalf("asked %q", got)
				}
				w.answerNewest("s", "continue") // after a minute, which is not time of the run
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := w.askedAfter("s"); !slices.Equal(got, tt.asked) {
					w.Fatalf("asked %q\nwant %q", got, tt.asked)
				}
				w.answerNewest("s", "stop")
				synctest.Wait()
				events := w.events("s")
				last := events[len(events)-1]
				d, err := payload.DecodeAs[payload.RunError](last)
				if err != nil || d.Code != "budget" || !strings.Contains(d.Message, tt.end) {
					w.Errorf("the end is %s %s", last.Type, last.Data)
				}
			})
		})
	}
}

// Nobody is asked without a budget, after the last call, or twice at once. A cancel ends
// the question.
func TestBudgetIsNotAskedFor(t *testing.T) {
	t.Run("no budget", func(t *testing.T) {
		budgetWorld(t, calling, tapedeck.Amount{}, func(w *world) {
			w.start("s")
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := w.askedAfter("s"); got != nil || w.head("s").Status != tapedeck.StatusComplete {
				w.Errorf("%q, %s", got, w.head("s").Status)
			}
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		budgetWorld(t, calling, tapedeck.Amount{Turns: 1}, func(w *world) {
			run := w.start("s")
			time.Sleep(time.Minute)
			synctest.Wait()
			_, err := w.Cancel(w.Context(), "s", run.Invocation)
			w.must(err)
			if w.head("s").Status != tapedeck.StatusCancelled {
				w.Errorf("%s", w.head("s").Status)
			}
		})
	})
}

// An agent that knows no budget pauses at its next question.
func TestBudgetAtAQuestion(t *testing.T) {
	budgetWorld(t, func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		say("usage.reported", `{"totalTokens":7}`)
		c, err := in.Ask(ctx, tapedeck.Question{ID: "q", Message: "May I?", Options: []tapedeck.PermissionOption{{ID: "yes", Kind: "allow_once"}}})
		say("acme.chosen", `{"option":"`+c.Option+`"}`)
		return err
	}, tapedeck.Amount{Tokens: 7}, func(w *world) {
		w.start("s")
		synctest.Wait()
		w.answerNewest("s", "continue")
		synctest.Wait()
		w.answerNewest("s", "yes")
		synctest.Wait()
		if got := w.askedAfter("s"); len(got) != 2 || !strings.Contains(got[1], "May I?") || w.head("s").Status != tapedeck.StatusComplete {
			w.Errorf("%q, %s", got, w.head("s").Status)
		}
	})
}

// A task sets the budget of its run: what it leaves out is as for the agent.
func TestTaskBudget(t *testing.T) {
	budgetWorld(t, calling, tapedeck.Amount{Tokens: 300, Turns: 90}, func(w *world) {
		_, err := w.Start(w.Context(), api.Task{Session: "s", Text: "go", Budget: &tapedeck.Amount{Tokens: 100, USD: 1}, Capped: true})
		w.must(err)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.askedAfter("s"); !slices.Equal(got, []string{"2: The run has used 120 of 100 tokens. Continue for 100 more tokens?"}) {
			w.Errorf("asked %q", got)
		}
		// A task that waits keeps its budget.
		_, err = w.Start(w.Context(), api.Task{Session: "s", Text: "more", When: api.WhenQueue, Budget: &tapedeck.Amount{Turns: 1}})
		w.must(err)
		w.answerNewest("s", "stop")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.askedAfter("s"); len(got) != 2 || !strings.Contains(got[1], "1 of 1 model call") {
			w.Errorf("asked %q", got)
		}
	})
}

func TestBadTaskBudget(t *testing.T) {
	budgetWorld(t, calling, tapedeck.Amount{Tokens: 300}, func(w *world) {
		for _, tt := range []struct {
			budget tapedeck.Amount
			when   string
			kind   tapedeck.Kind
			want   string
		}{
			{tapedeck.Amount{}, "", tapedeck.Invalid, "no limit above 0"},
			{tapedeck.Amount{Tokens: -1}, "", tapedeck.Invalid, "-1 tokens"},
			{tapedeck.Amount{Tokens: 1 << 60}, "", tapedeck.Invalid, "tokens"},
			{tapedeck.Amount{USD: math.NaN()}, "", tapedeck.Invalid, "NaN usd"},
			{tapedeck.Amount{USD: math.Inf(1)}, "", tapedeck.Invalid, "+Inf usd"},
			{tapedeck.Amount{Turns: -5, Tokens: 1}, "", tapedeck.Invalid, "-5 turns"},
			{tapedeck.Amount{Seconds: 1e300}, "", tapedeck.Invalid, "seconds"},
			{tapedeck.Amount{Turns: 5}, api.WhenSteer, tapedeck.Invalid, "no budget of its own"},
			{tapedeck.Amount{Tokens: 301}, "", tapedeck.Forbidden, "may use 300 tokens at most, not 301"},
		} {
			_, err := w.Start(w.Context(), api.Task{Session: "s", Text: "go", When: tt.when, Budget: &tt.budget, Capped: true})
			refuses(w, err, tt.kind, tt.want)
		}
		if got := len(w.events("s")); got != 1 {
			w.Errorf("the session has %d events", got)
		}
		_, err := w.Start(w.Context(), api.Task{Session: "s", Text: "go", Budget: &tapedeck.Amount{Tokens: 301}})
		w.must(err) // an admin may
		_, err = w.Start(w.Context(), api.Task{Session: "s", Text: "go", When: api.WhenQueue, Budget: &tapedeck.Amount{Tokens: 301}, Capped: true})
		refuses(w, err, tapedeck.Forbidden, "at most")
	})
}

// An agent that is stopped at its limit is not asked about, also if it never asks whether
// it may proceed.
func TestStopAtLimit(t *testing.T) {
	deaf := func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		in.Proceed = func(context.Context) error { return ctx.Err() }
		return calling(ctx, in, say)
	}
	for name, runner := range map[string]talker{"llm": calling, "program": deaf} {
		for _, b := range []tapedeck.Amount{{Tokens: 180}, {Seconds: 3}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, runner, func(o *engine.Options) { o.Agents[0].Budget, o.Agents[0].StopAtLimit = b, true })
					w.create("s")
					w.start("s")
					time.Sleep(time.Minute)
					synctest.Wait()
					last, _ := w.end("s")
					d, err := payload.DecodeAs[payload.RunError](last)
					if err != nil || d.Code != "budget" || w.askedAfter("s") != nil {
						w.Errorf("it ended with %s %s after %q", last.Type, last.Data, w.askedAfter("s"))
					}
					if n := len(w.events("s")); n > 17 { // 3 calls, and what the agent says until it hears of it
						w.Errorf("the session has %d events", n)
					}
				})
			})
		}
	}
}

// A budget below what was spent already does not ask again and again.
func TestBudgetFarExceeded(t *testing.T) {
	budgetWorld(t, func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		say("usage.reported", `{"totalTokens":1050}`)
		return in.Proceed(ctx)
	}, tapedeck.Amount{Tokens: 100}, func(w *world) {
		w.start("s")
		synctest.Wait()
		w.answerNewest("s", "continue")
		synctest.Wait()
		want := []string{"1: The run has used 1,050 of 100 tokens. Continue for 1,000 more tokens?"}
		if got := w.askedAfter("s"); !slices.Equal(got, want) || w.head("s").Status != tapedeck.StatusComplete {
			w.Errorf("asked %q, %s", got, w.head("s").Status)
		}
	})
}
