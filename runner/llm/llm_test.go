package llm_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/testmodel"
	"github.com/tapedeck/tapedeck/runner/llm"
	"github.com/tapedeck/tapedeck/runner/runnertest"
)

// A world is a runner with a model of its own, in this process.
type world struct {
	model   *testmodel.Model
	options llm.Options
}

func newWorld() *world {
	w := &world{model: testmodel.New(testmodel.Options{})}
	w.options = llm.Options{
		Name: "test", BaseURL: "http://model/v1", Model: "test-model", Key: "sk-secret",
		HTTPClient: &http.Client{Transport: testmodel.Transport(w.model)},
	}
	return w
}

func (w *world) runner() *llm.Runner { return llm.New(w.options) }

func task(text string) tapedeck.Invocation {
	return tapedeck.Invocation{ID: "inv_1", Session: "ses_1", Thread: tapedeck.MainThread, Task: text}
}

func TestRunner(t *testing.T) {
	runnertest.Run(t, func(testing.TB) runnertest.Harness {
		return runnertest.Harness{
			Runner: newWorld().runner(), Bubble: true,
			Talk:    task("[think] hello"),
			Text:    "Hello! This is answer number 1.",
			Endless: task("[slow]"),
			Fail:    &tapedeck.Invocation{Task: "[cut]"},
		}
	})
}

// collect runs in to its end.
func collect(ctx context.Context, r *llm.Runner, in tapedeck.Invocation) (events []tapedeck.Event, failed error) {
	for e, err := range r.Run(ctx, in) {
		if err != nil {
			failed = err
			break
		}
		events = append(events, e)
	}
	return events, failed
}
