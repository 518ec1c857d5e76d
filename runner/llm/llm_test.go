package llm_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/testmodel"
	"github.com/tapedeck/tapedeck/runner/llm"
	"github.com/tapedeck/tapedeck/runner/runnertest"
)

// A world is a runner with a scripted model of its own in this process.
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
	runnertest.Run(t, func(t testing.TB) runnertest.Harness {
		dir := t.TempDir()
		in := func(text string) *tapedeck.Invocation {
			i := task(text)
			i.Folder = dir
			return &i
		}
		return runnertest.Harness{
			Abilities: runnertest.Abilities{
				Tools: in(`[tool todo_write {"todos":[{"content":"a","status":"pending"}]}]`), Plan: in("[tools]"), Usage: in("hello"),
				Ask: in(`[tool write_file {"path":"x","content":"y"}]`),
				Did: func() bool { _, err := os.Stat(filepath.Join(dir, "x")); return err == nil },
			},
			Runner: newWorld().runner(), Bubble: true,
			Talk:    task("[think] hello"),
			Text:    "Hello! This is answer number 1.",
			Endless: task("[slow]"),
			Fail:    &tapedeck.Invocation{Task: "[cut]"},
		}
	})
}

// collect runs an invocation to its end and returns its events.
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

// TestEquipment checks that the model and the tools of an agent are known before it
// runs.
func TestEquipment(t *testing.T) {
	r := llm.New(llm.Options{BaseURL: "http://localhost", Model: "m-1"})
	q := r.Equipment(tapedeck.Invocation{})
	if q.Model != "m-1" || len(q.Tools) != 1 {
		t.Errorf("without a folder: %+v", q)
	}
	q = r.Equipment(tapedeck.Invocation{Folder: t.TempDir(), Config: json.RawMessage(`{"model":"m-2"}`)})
	if q.Model != "m-2" || len(q.Tools) < 5 {
		t.Errorf("with a folder and another model: %+v", q)
	}
	if q := r.Equipment(tapedeck.Invocation{Config: json.RawMessage(`[]`)}); q.Model != "m-1" {
		t.Errorf("with a config that cannot be read: %+v", q)
	}
}

// TestModels: a task may choose one of the models of the agent; any, if the agent has no list.
func TestModels(t *testing.T) {
	for _, tt := range []struct {
		models []string
		model  string
		good   bool
	}{{nil, "x", true}, {[]string{"b"}, "a", true}, {[]string{"b"}, "b", true}, {[]string{"b"}, "x", false}, {[]string{"b"}, "", true}} {
		r := llm.New(llm.Options{BaseURL: "http://model", Model: "a", Models: tt.models})
		err := r.CheckConfig(json.RawMessage(`{"model":"` + tt.model + `"}`))
		if (err == nil) != tt.good || err != nil && tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("the model %q of %v: %v", tt.model, tt.models, err)
		}
	}
}
