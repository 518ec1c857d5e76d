package runnertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner"
	"github.com/tapedeck/tapedeck/runner/runnertest"
)

// A parrot is a runner that is correct unless it has a flaw.
type parrot struct {
	flaw string
	did  *atomic.Bool // whether it did what it asked for
}

func (p parrot) Capabilities() tapedeck.Capabilities { return tapedeck.Capabilities{Interrupt: true} }
func (p parrot) Available() error                    { return nil }

func (p parrot) CheckConfig(config json.RawMessage) error {
	if p.flaw == "takes any config" {
		return nil
	}
	return runner.NoConfig(config)
}

// act plays the tasks for abilities. It reports false for any other task.
func (p parrot) act(ctx context.Context, in tapedeck.Invocation, say func(p payload.Payload)) bool {
	switch in.Task {
	case "tools":
		say(payload.ToolCallStart{ToolCallID: in.ID, ToolCallName: "Read"})
		say(payload.ToolCallEnd{ToolCallID: in.ID})
		if p.flaw != "loses a result" {
			say(payload.ToolCallResult{ToolCallID: in.ID, MessageID: "r", Content: json.RawMessage(`"ok"`)})
		}
	case "plan":
		status := "pending"
		if p.flaw == "has an unknown plan status" {
			status = "soon"
		}
		say(payload.PlanUpdated{Entries: []payload.PlanEntry{{Content: "squawk", Status: status}}})
	case "subagent":
		p.delegate(say)
	case "usage":
		var d payload.UsageReported
		if p.flaw != "reports nothing" {
			d.InputTokens = new(int64(5))
		}
		say(d)
	case "ask":
		p.ask(ctx, in, say)
	default:
		return false
	}
	return true
}

func (p parrot) delegate(say func(p payload.Payload)) {
	by := payload.Attributed{SubagentRunID: "a"}
	say(payload.SubagentStarted{SubagentRunID: "a", Name: "chick"})
	if p.flaw == "names no sub-agent" {
		by.SubagentRunID = ""
	}
	if p.flaw == "names an ended sub-agent" {
		say(payload.SubagentFinished{SubagentRunID: "a"})
	}
	say(payload.TextMessageStart{MessageID: "c", Attributed: by})
	say(payload.TextMessageContent{MessageID: "c", Delta: "cheep"})
	say(payload.TextMessageEnd{MessageID: "c"})
	if p.flaw != "names an ended sub-agent" {
		say(payload.SubagentFinished{SubagentRunID: "a"})
	}
}

func (p parrot) ask(ctx context.Context, in tapedeck.Invocation, say func(p payload.Payload)) {
	q := tapedeck.Question{ID: "p", Options: []tapedeck.PermissionOption{{ID: "y", Kind: "allow_once"}, {ID: "n", Kind: "reject_once"}}}
	if p.flaw == "writes its questions" {
		say(payload.PermissionRequested{Question: q})
	}
	if p.flaw == "waits for ever" {
		ctx = context.WithoutCancel(ctx)
	}
	answer := ""
	if in.Ask != nil {
		a, _ := in.Ask(ctx, q)
		answer = a.Option
		if p.flaw == "waits for ever" && answer == "" {
			select {}
		}
	}
	if answer == "y" && p.flaw != "does not" || p.flaw == "does it anyway" || p.flaw == "does it unasked" && in.Ask == nil {
		p.did.Store(true)
	}
}

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
			if ctx.Err() != nil && p.flaw == "fails when it stops" {
				yield(tapedeck.Event{Type: tapedeck.ToolCallEnd, Data: json.RawMessage(`{"toolCallId":"never begun"}`)}, nil)
			}
			return ctx.Err() == nil && yield(ev, nil)
		}
		if in.Task == "fail" {
			if p.flaw != "does not fail" {
				yield(tapedeck.Event{}, errors.New("it failed"))
			}
			if p.flaw == "continues after its error" {
				say(tapedeck.TextMessageStart, "")
			}
			return
		}
		if p.flaw == "deaf" {
			ctx = context.WithoutCancel(ctx)
		}
		if p.act(ctx, in, func(d payload.Payload) { yield(payload.NewEvent(d), nil) }) {
			return
		}
		if in.Task == "talk" && !yield(payload.NewEvent(payload.AgentLinked{Runner: "parrot", NativeID: "me"}), nil) {
			return
		}
		if in.Link != nil && p.flaw != "forgets" {
			id += in.Link.NativeID
		}
		if p.flaw == "leaks" {
			go func() { select {} }()
		}
		word := "hello "
		if in.Task == "resume" && !strings.HasSuffix(id, "me") {
			word = "who are "
		}
		began := time.Now()
		if !say(tapedeck.TextMessageStart, "") || !say(tapedeck.TextMessageContent, word) {
			return
		}
		for in.Task == "endless" && say(tapedeck.TextMessageContent, "x") {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
		if p.flaw == "drops events of a slow reader" && time.Since(began) > time.Second || !say(tapedeck.TextMessageContent, "you") {
			return
		}
		if p.flaw != "leaves a message open" {
			say(tapedeck.TextMessageEnd, "")
		}
	}
}

// TestParrot shows that a correct runner passes. [TestFlaws] runs it with flaws.
func TestParrot(t *testing.T) {
	flaw := os.Getenv("TAPEDECK_TEST_FLAW")
	runnertest.Run(t, func(testing.TB) runnertest.Harness {
		did := new(atomic.Bool)
		return runnertest.Harness{
			Runner: parrot{flaw, did}, Text: "hello you", Bubble: true,
			Abilities: runnertest.Abilities{
				Tools: &tapedeck.Invocation{Task: "tools"}, Plan: &tapedeck.Invocation{Task: "plan"}, Usage: &tapedeck.Invocation{Task: "usage"},
				Subagent: &tapedeck.Invocation{Task: "subagent"},
				Ask:      &tapedeck.Invocation{Task: "ask"}, Did: did.Load,
				Resume: &tapedeck.Invocation{Task: "resume"}, Remembers: "hello you",
			},
			Talk:    tapedeck.Invocation{Task: "talk"},
			Endless: tapedeck.Invocation{Task: "endless"},
			Fail:    &tapedeck.Invocation{Task: "fail"},
		}
	})
}

// TestFlaws checks that the suite finds each flaw, in the test that looks for it.
func TestFlaws(t *testing.T) {
	for flaw, found := range map[string]string{
		"leaves a message open":         "its_events_are_in_order_and_complete",
		"stamps":                        "it_does_not_set_what_the_engine_sets",
		"deaf":                          "it_stops_when_it_is_cancelled",
		"drops events of a slow reader": "a_slow_reader_gets_every_event",
		"does not fail":                 "an_error_ends_it",
		"continues after its error":     "an_error_ends_it",
		"mixes runs":                    "concurrent_runs_do_not_mix",
		"leaks":                         "its_events_are_in_order_and_complete",
		"loses a result":                "every_tool_call_has_a_result",
		"has an unknown plan status":    "it_reports_its_plan",
		"names no sub-agent":            "messages_of_sub-agents_name_the_sub-agent",
		"names an ended sub-agent":      "messages_of_sub-agents_name_the_sub-agent",
		"reports nothing":               "it_reports_usage",
		"takes any config":              "it_refuses_a_config_that_it_cannot_use",
		"does not":                      "it_does_what_is_allowed",
		"does it anyway":                "it_does_not_do_what_is_denied",
		"does it unasked":               "it_does_nothing_that_needs_permission_if_nobody_can_be_asked",
		"writes its questions":          "it_does_what_is_allowed",
		"waits for ever":                "it_does_not_wait_for_an_answer_when_it_is_cancelled",
		"forgets":                       "it_resumes_its_own_conversation",
		"fails when it stops":           "its_events_are_in_order_after_an_interrupt",
	} {
		t.Run(flaw, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestParrot$/^"+found+"$", "-test.timeout=60s")
			cmd.Env = append(os.Environ(), "TAPEDECK_TEST_FLAW="+flaw)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("the suite passes:\n%s", out)
			}
			if !strings.Contains(string(out), found) {
				t.Errorf("the test %s does not fail:\n%.2000s", found, out)
			}
		})
	}
}
