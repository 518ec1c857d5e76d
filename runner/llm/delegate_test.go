package llm_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/llm"
)

func TestStartAgent(t *testing.T) {
	const call = `[tool start_agent {"agent":"scout","task":"look"}]`
	for _, tt := range []struct {
		name, want string
		policy     llm.Policy
		given      tapedeck.Delegated
		err        error
	}{
		{"it finishes", "answered start_agent: found", nil, tapedeck.Delegated{Text: "found", Status: tapedeck.StatusComplete}, nil},
		{"it has no message", "answered start_agent: The agent has finished without a message.", nil, tapedeck.Delegated{Status: tapedeck.StatusComplete}, nil},
		{"it is cancelled", "failed start_agent: The agent did not finish (cancelled). Its last message: half", nil, tapedeck.Delegated{Text: "half", Status: tapedeck.StatusCancelled}, nil},
		{"it cannot be started", "failed start_agent: The agent could not be started: no", nil, tapedeck.Delegated{}, tapedeck.Errorf(tapedeck.Unavailable, "no")},
		{"people reject it", "failed start_agent: The user does not allow this.", llm.Policy{}, tapedeck.Delegated{}, nil},
		{"the policy denies it", "failed start_agent: There is no tool start_agent.", llm.Policy{{Tool: "start_agent", Decision: llm.Deny}}, tapedeck.Delegated{}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			if w.options.Policy = tt.policy; tt.policy == nil {
				w.options.Policy = llm.Policy{{Tool: "*", Decision: llm.Allow}}
			}
			in := task(call)
			var asked tapedeck.Delegation
			in.Delegates = []tapedeck.Agent{{Name: "scout", Description: "looks around"}}
			in.Delegate = func(_ context.Context, d tapedeck.Delegation) (tapedeck.Delegated, error) {
				asked = d
				return tt.given, tt.err
			}
			in.Ask = func(_ context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
				return tapedeck.Choice{ID: q.ID, Option: "reject_once"}, nil
			}
			var events []tapedeck.Event
			for e, err := range w.runner().Run(t.Context(), in) {
				if err != nil {
					t.Fatal(err)
				}
				events = append(events, e)
			}
			if got := summary(events, nil); !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if tt.policy == nil && (asked.Agent != "scout" || asked.Task != "look" || asked.ToolCallID == "") {
				t.Errorf("it was asked %+v", asked)
			}
			if told := string(w.model.Requests()[0].Body); strings.Contains(told, "scout: looks around") != (tt.name != "the policy denies it") {
				t.Errorf("the model received %s", told)
			}
		})
	}
}
