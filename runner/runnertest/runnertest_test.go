package runnertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/runnertest"
)

// A parrot is a runner that is right, unless it has a flaw.
type parrot struct{ flaw string }

func (p parrot) Run(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		id := in.ID
		if p.flaw == "mixes runs" {
			id = "always the same"
		}
		say := func(typ, delta string) bool {
			data, _ := json.Marshal(map[string]string{"messageId": id, "delta": delta})
			ev := tapedeck.Event{Type: typ, Data: data}
			if p.flaw == "stamps" {
				ev.Thread = in.Thread
			}
			return ctx.Err() == nil && yield(ev, nil)
		}
		if in.Task == "fail" {
			if p.flaw != "does not fail" {
				yield(tapedeck.Event{}, errors.New("it failed"))
			}
			if p.flaw == "goes on after its error" {
				say(tapedeck.TextMessageStart, "")
			}
			return
		}
		if p.flaw == "deaf" {
			ctx = context.WithoutCancel(ctx)
		}
		if p.flaw == "leaks" {
			go func() { select {} }()
		}
		began := time.Now()
		if !say(tapedeck.TextMessageStart, "") || !say(tapedeck.TextMessageContent, "hello ") {
			return
		}
		for in.Task == "endless" && say(tapedeck.TextMessageContent, "x") {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
		if p.flaw == "drops what is taken slowly" && time.Since(began) > time.Second || !say(tapedeck.TextMessageContent, "you") {
			return
		}
		if p.flaw != "leaves a message open" {
			say(tapedeck.TextMessageEnd, "")
		}
	}
}

// TestParrot shows that a good runner passes, and is what a flawed one fails.
func TestParrot(t *testing.T) {
	flaw := os.Getenv("TAPEDECK_TEST_FLAW")
	runnertest.Run(t, func(testing.TB) runnertest.Harness {
		return runnertest.Harness{
			Runner: parrot{flaw}, Text: "hello you", Bubble: true,
			Talk:    tapedeck.Invocation{Task: "talk"},
			Endless: tapedeck.Invocation{Task: "endless"},
			Fail:    &tapedeck.Invocation{Task: "fail"},
		}
	})
}

// Each flaw must be found, by the test that looks for it.
func TestFlaws(t *testing.T) {
	for flaw, found := range map[string]string{
		"leaves a message open":      "what_it_yields_is_in_order_and_complete",
		"stamps":                     "it_leaves_to_the_engine_what_is_the_engine's",
		"deaf":                       "it_stops_when_it_is_cancelled",
		"drops what is taken slowly": "it_holds_the_agent_back_for_a_slow_reader_and_drops_nothing",
		"does not fail":              "an_error_ends_it",
		"goes on after its error":    "an_error_ends_it",
		"mixes runs":                 "runs_at_the_same_time_do_not_mix",
		"leaks":                      "what_it_yields_is_in_order_and_complete",
	} {
		t.Run(flaw, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestParrot$/^"+found+"$", "-test.timeout=60s")
			cmd.Env = append(os.Environ(), "TAPEDECK_TEST_FLAW="+flaw)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("it was not found:\n%s", out)
			}
			if !strings.Contains(string(out), found) {
				t.Errorf("it was not %s that found it:\n%.2000s", found, out)
			}
		})
	}
}
