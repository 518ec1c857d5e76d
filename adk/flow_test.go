package adk_test

import (
	"iter"
	"strings"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagents/parallelagent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/tapedeck/tapedeck"
)

// use replaces the agent of the world.
func (w *world) use(a agent.Agent, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := w.service.Plugin()
	if err != nil {
		w.t.Fatal(err)
	}
	c := runner.Config{AppName: "app", Agent: a, SessionService: w.service, AutoCreateSession: true}
	c.PluginConfig.Plugins = []*plugin.Plugin{p}
	if w.runner, err = runner.New(c); err != nil {
		w.t.Fatal(err)
	}
}

// TestSideBySide: the texts of agents that work side by side are streamed together and do
// not mix. All is one run.
func TestSideBySide(t *testing.T) {
	w := newWorld(t, "", true)
	left, right := streams("left ", "says ", "this."), streams("right ", "says ", "that.")
	said, seen := make(chan struct{}), make(chan struct{})
	left.during = func() { close(said); <-seen }
	right.during = func() {
		defer close(seen)
		<-said
		w.await("", len("left says this.right says that."))
		wants(t, "the screen meanwhile", w.shown(), "assistant: left says this.", "assistant: right says that.")
	}
	var both []agent.Agent
	for name, r := range map[string]reply{"left": left, "right": right} {
		a, err := llmagent.New(llmagent.Config{Name: name, Model: &script{replies: []reply{r}}})
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, a)
	}
	w.use(parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "both", SubAgents: both}}))
	w.must("Go")
	wants(t, "the screen", w.shown(), "assistant: left says this.", "assistant: right says that.")
	wants(t, "ADK", w.got(), "model: left says this.;", "model: right says that.;")
	now := w.snapshot()
	check(t, "messages", len(now.Messages), 3)
	check(t, "runs", len(now.Runs), 1)
	check(t, "status", w.status(), tapedeck.StatusComplete)
}

// TestEventWhileStreaming: an event of the agent between the pieces of a text does not end
// its message.
func TestEventWhileStreaming(t *testing.T) {
	w := newWorld(t, "", true)
	w.use(agent.New(agent.Config{Name: "bot", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			piece := func(text string, partial bool) *session.Event {
				e := session.NewEvent(ctx, ctx.InvocationID())
				e.Author, e.Content, e.Partial = "bot", genai.NewContentFromText(text, genai.RoleModel), partial
				return e
			}
			change := session.NewEvent(ctx, ctx.InvocationID())
			change.Author, change.Actions.StateDelta = "bot", map[string]any{"k": "v"}
			for _, e := range []*session.Event{piece("It ", true), change, piece("rains.", true), piece("It rains.", false)} {
				if !yield(e, nil) {
					return
				}
			}
		}
	}}))
	w.must("Weather?")
	check(t, "shown", w.shown(), "user: Weather?\nassistant: It rains.")
	check(t, "state", string(w.snapshot().State.Value), `{"k":"v"}`)
}

// TestUserAnswersLongRunningCall: a long-running call ends the run. When the user answers
// it, the same invocation continues in a new run.
func TestUserAnswersLongRunningCall(t *testing.T) {
	call := &genai.FunctionCall{ID: "q1", Name: "approve", Args: map[string]any{}}
	w := newWorld(t, "", true, reply{parts: []*genai.Part{{FunctionCall: call}}}, says("I wait."), says("Done."))
	approve, err := functiontool.New(functiontool.Config{Name: "approve", Description: "asks", IsLongRunning: true}, func(agent.Context, struct{}) (map[string]any, error) {
		return map[string]any{"status": "pending"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.use(llmagent.New(llmagent.Config{Name: "bot", Model: w.model, Tools: []tool.Tool{approve}}))
	first := w.must("Do it")
	check(t, "status while it waits", w.status(), tapedeck.StatusInterrupted)
	check(t, "waits for", strings.Contains(string(w.snapshot().Runs[0].Interrupts), `"toolCallId":"q1"`), true)
	answer := &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: "q1", Name: "approve", Response: map[string]any{"ok": true}}}}}
	for e, err := range w.runner.Run(t.Context(), "ada", "s1", answer, agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		check(t, "invocation", e.InvocationID, first)
	}
	check(t, "status", w.status(), tapedeck.StatusComplete)
	runs := w.snapshot().Runs
	check(t, "runs", len(runs), 2)
	check(t, "second run", runs[1].Invocation, first+".2")
}
