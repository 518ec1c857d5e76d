package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

// A studio is a session whose agent is the runner.
type studio struct {
	*world
	*engine.Engine
	t       *testing.T
	store   *memory.Store
	session string
}

func inStudio(t *testing.T, test func(s *studio)) {
	synctest.Test(t, func(t *testing.T) {
		s := &studio{world: newWorld(), t: t, store: memory.New(memory.Options{})}
		s.options.Tools = []tool.Tool{{Name: "wait", ReadOnly: true, Run: func(ctx context.Context, _ tool.Call) tool.Result {
			<-ctx.Done()
			return tool.Failed("half of it")
		}}, echo}
		s.Engine = engine.New(engine.Options{Store: s.store, Agents: []engine.Agent{{Agent: tapedeck.Agent{Name: "bot"}, Runner: s.runner()}}})
		defer func() {
			if err := s.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		made, err := s.Create(t.Context(), api.NewSession{})
		if err != nil {
			t.Fatal(err)
		}
		s.session = made.ID
		test(s)
	})
}

// start starts a task and waits until the run is blocked or has ended.
func (s *studio) start(text string) string {
	s.t.Helper()
	started, err := s.Start(s.t.Context(), api.Task{Session: s.session, Text: text})
	if err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
	return started.Invocation
}

func (s *studio) cancel(invocation string) {
	s.t.Helper()
	if _, err := s.Cancel(s.t.Context(), s.session, invocation); err != nil {
		s.t.Fatal(err)
	}
}

// last returns the messages of the newest request in a short form.
func (s *studio) last() []string {
	s.t.Helper()
	all := s.model.Requests()
	var out []string
	for _, raw := range messages(s.t, all[len(all)-1].Body) {
		var m struct {
			Role, Content string
			ToolCallID    string `json:"tool_call_id"`
			ToolCalls     []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			s.t.Fatal(err)
		}
		line := m.Role + ": " + m.Content
		for _, c := range m.ToolCalls {
			line += fmt.Sprintf(" [%s %s]", c.Function.Name, c.Function.Arguments)
		}
		out = append(out, line)
	}
	return out
}

func (s *studio) expect(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.last()); diff != "" {
		s.t.Error(diff)
	}
}

// TestContinueAfterCancel checks that a run which was cancelled during a tool call leaves a
// conversation that a provider accepts: each call has an answer.
func TestContinueAfterCancel(t *testing.T) {
	inStudio(t, func(s *studio) {
		s.cancel(s.start("[parallel] [tool echo {}] [tool wait {}]")) // nobody answers the question
		s.cancel(s.start("[tool wait {}]"))
		s.start("go on")
		const context = "[RESUME CONTEXT]\nPrevious execution was cancelled by user.\n[END RESUME CONTEXT]\n\n"
		s.expect(
			"user: [parallel] [tool echo {}] [tool wait {}]",
			"assistant: Now I call echo. [echo {}] [wait {}]",
			"tool: The call was cancelled before the tool answered. It may have taken effect.",
			"tool: The call was cancelled before the tool answered. It may have taken effect.",
			"user: "+context+"[tool wait {}]",
			"assistant: Now I call wait. [wait {}]",
			"tool: Error: half of it",
			"user: "+context+"go on",
		)
	})
}

// TestContinueHalfAnAnswer checks that half of an answer stays, and that the model continues from it.
func TestContinueHalfAnAnswer(t *testing.T) {
	inStudio(t, func(s *studio) {
		s.start("[cut]")
		time.Sleep(time.Minute) // until the last attempt has broken off, too
		s.start("next")
		s.expect("user: [cut]", "assistant: Hello! This is ", "user: next")
	})
}

// TestRewind checks that the model does not get rewound messages, and gets them again
// after an undo.
func TestRewind(t *testing.T) {
	inStudio(t, func(s *studio) {
		s.start("one")
		two := s.start("two")
		done, err := s.Rewind(s.t.Context(), api.Rewind{Session: s.session, BeforeInvocation: two})
		if err != nil {
			t.Fatal(err)
		}
		s.start("three")
		s.expect("user: one", "assistant: Hello! This is answer number 1.", "user: three")
		if _, err := s.Undo(s.t.Context(), api.Undo{Session: s.session, Marker: done.Marker}); err != nil {
			t.Fatal(err)
		}
		s.start("four")
		s.expect("user: one", "assistant: Hello! This is answer number 1.", "user: two", "assistant: Hello! This is answer number 2.", "user: four")
	})
}

// TestThreads checks that each thread is a conversation of its own.
func TestThreads(t *testing.T) {
	inStudio(t, func(s *studio) {
		s.start("one")
		if _, err := s.Start(s.t.Context(), api.Task{Session: s.session, Thread: "side", Text: "two"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.expect("user: two")
		s.start("three")
		s.expect("user: one", "assistant: Hello! This is answer number 1.", "user: three")
	})
}

// TestMemoryIsTheLog checks that the messages in the middle of a run are byte for byte the same as
// the messages that a later run builds from the log.
func TestMemoryIsTheLog(t *testing.T) {
	inStudio(t, func(s *studio) {
		s.start("[think] " + `[tool todo_write {"todos":[]}] [tool nope {"<a>":"é"}] [tool todo_write []]`)
		var events []tapedeck.Event
		for e, err := range tapedeck.Events(s.t.Context(), s.store, s.session, 0) {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
		fold, err := view.Fold(func(yield func(tapedeck.Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
		}, nil, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(view.Context(fold.Snapshot(), view.InThread("")))
		if err != nil {
			t.Fatal(err)
		}
		requests := s.model.Requests()
		told := messages(t, requests[len(requests)-1].Body)
		if len(requests) != 4 {
			t.Errorf("%d requests", len(requests))
		}
		told = append(told, `{"role":"assistant","content":"Done after 3 tool results."}`) // the answer to the newest request
		if diff := cmp.Diff(string(want), "["+strings.Join(told, ",")+"]"); diff != "" {
			t.Error(diff)
		}
	})
}
