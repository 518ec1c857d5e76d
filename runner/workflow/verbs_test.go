package workflow_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/runner/workflow"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

// TestFailedWorkflowIsResumed: a resume tries the failed task again, in a new thread. A task
// that was done stays done. One that ended only because the workflow did is not done: it works
// again, in its thread.
func TestFailedWorkflowIsResumed(t *testing.T) {
	for name, want := range map[string]string{
		"after the other task":                                  "main complete, main failed, thread_Look complete, thread_One complete, thread_Two failed, thread_Two_2 complete",
		"while the other one runs":                              "main complete, main failed, thread_Look complete, thread_One complete, thread_One failed, thread_Two failed, thread_Two_2 complete",
		"while the other one runs, which ends without an error": "main complete, main failed, thread_Look complete, thread_One complete, thread_One failed, thread_Two failed, thread_Two_2 complete",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, two, during := 0, 0, name != "after the other task"
				s := newServer(t, map[string]agent{
					"a": func(ctx context.Context, in tapedeck.Invocation) (string, error) {
						if strings.HasPrefix(in.Task, "one") {
							if one++; one == 1 && during {
								<-ctx.Done()
								if strings.HasSuffix(name, "without an error") {
									return "", nil // as a program whose conversation was closed
								}
								return "", ctx.Err()
							}
						}
						return "one", nil
					},
					"b": func(context.Context, tapedeck.Invocation) (string, error) {
						if two++; two == 1 {
							<-time.After(time.Second) // the other task has begun, or is done
							return "", tapedeck.Errorf(tapedeck.Unavailable, "the model is down")
						}
						return "two", nil
					},
				})
				s.run("s", triage, map[string]any{"cve": "CVE-1"})
				<-time.After(10 * time.Second)
				synctest.Wait()
				w := s.workflow("s")
				if w.Outcome != view.WorkflowFailed || w.Element != "Two" || !strings.Contains(w.Message, "the model is down") || w.Code != "agent" {
					t.Errorf("it is %s at %s: %s (%s)", w.Outcome, w.Element, w.Message, w.Code)
				}
				if _, err := s.Resume(t.Context(), api.Resume{Session: "s"}); err != nil {
					t.Fatal(err)
				}
				s.settle("s")
				w = s.workflow("s")
				if w.Outcome != view.WorkflowCompleted || string(w.Variables["r_One"]) != `"one"` || string(w.Variables["r_Two"]) != `"two"` {
					t.Errorf("it is %s %s %s", w.Outcome, w.Message, w.Variables)
				}
				if got := strings.Join(s.runs("s"), ", "); got != want {
					t.Error(got)
				}
			})
		})
	}
}

// TestSecondWorkflowOfASession: each workflow of a session asks its agents again, whatever their
// threads have from before: the tasks of an earlier workflow that were done, that failed or
// were stopped, and what others did there.
func TestSecondWorkflowOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		s := newServer(t, map[string]agent{"a": func(ctx context.Context, in tapedeck.Invocation) (string, error) {
			heard := 0
			for _, err := range in.History(ctx) {
				if err == nil {
					heard++
				}
			}
			if asked = append(asked, in.Task); heard > 0 {
				t.Errorf("the agent that is asked %q knows %d events from before", in.Task, heard)
			}
			switch {
			case strings.Contains(in.Task, "fail"):
				return "", tapedeck.Errorf(tapedeck.Unavailable, "the model is down")
			case strings.Contains(in.Task, "stay"):
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "done " + in.Task, nil
		}})
		one := xmlOf(task("Look", "a", "look at {{ cve }}"), "S>Look", "Look>E")
		if _, err := s.Start(t.Context(), api.Task{Session: "s", Create: true, Agent: "b", Thread: "thread_Look", Text: "before", Actor: "user:ada"}); err != nil {
			t.Fatal(err)
		}
		s.settle("s")
		for _, what := range []string{"one", "fail", "two", "stay", "three"} {
			started := s.run("s", one, map[string]any{"cve": what})
			synctest.Wait()
			if what == "stay" {
				if _, err := s.Cancel(t.Context(), "s", started.Invocation); err != nil {
					t.Fatal(err)
				}
			}
			s.settle("s")
			w := s.workflow("s")
			if ends := map[string]string{"fail": view.WorkflowFailed, "stay": view.WorkflowCancelled}[what]; ends != "" && w.Outcome != ends || ends == "" && string(w.Variables["r_Look"]) != `"done look at `+what+`"` {
				t.Errorf("%s: it is %s with %s", what, w.Outcome, w.Variables)
			}
		}
		if got, want := strings.Join(asked, ", "), "look at one, look at fail, look at two, look at stay, look at three"; got != want {
			t.Errorf("the agent was asked: %s; want %s", got, want)
		}
	})
}

// TestRewindWhileItRuns: a rewind of the session stops the workflow and its tasks; a
// resume continues it from there.
func TestRewindWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := newServer(t, map[string]agent{"b": func(ctx context.Context, _ tapedeck.Invocation) (string, error) {
			if n++; n == 1 {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "two", nil
		}})
		s.run("s", triage, map[string]any{"cve": "CVE-1"})
		synctest.Wait()
		var at int64
		for ev := range tapedeck.Events(t.Context(), s.log, "s", 0) {
			if ev.Type == tapedeck.WorkflowEntered && strings.Contains(string(ev.Data), `"element":"F"`) {
				at = ev.Offset
			}
		}
		if _, err := s.Rewind(t.Context(), api.Rewind{Session: "s", ToOffset: &at}); err != nil {
			t.Fatal(err)
		}
		if w := s.workflow("s"); len(w.Elements) != 2 || w.Elements[1].Element != "Look" {
			t.Errorf("the elements are %+v", w.Elements)
		}
		if _, err := s.Resume(t.Context(), api.Resume{Session: "s"}); err != nil {
			t.Fatal(err)
		}
		s.settle("s")
		if w := s.workflow("s"); w.Outcome != view.WorkflowCompleted || string(w.Variables["r_Two"]) != `"two"` {
			t.Errorf("it is %s %s", w.Outcome, w.Message)
		}
	})
}

// TestWorkflowInAWorkflow: a task can be a workflow, whose tasks have threads of their
// own. It continues after a restart, too.
func TestWorkflowInAWorkflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := workflow.New(workflow.Options{XML: []byte(xmlOf(task("T", "a", "inner {{ task }}"), "S>T", "T>E"))})
		o := engine.Options{Store: memory.New(memory.Options{}), Agents: []engine.Agent{
			{Agent: tapedeck.Agent{Name: "flow"}, Runner: workflow.New(workflow.Options{}), Starts: []string{"inner"}},
			{Agent: tapedeck.Agent{Name: "inner"}, Runner: inner, Starts: []string{"a"}},
			{Agent: tapedeck.Agent{Name: "a"}, Runner: agent(echo)},
		}}
		e := engine.New(o)
		s := &server{TB: t, log: o.Store, Engine: e, store: &mortal{Store: o.Store}}
		s.run("s", xmlOf(task("T", "inner", "do it"), "S>T", "T>E"), nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if w := s.workflow("s"); w.Outcome != view.WorkflowCompleted {
			t.Errorf("it is %s %s", w.Outcome, w.Message)
		}
		if got := strings.Join(s.runs("s"), ", "); got != "main complete, thread_T complete, thread_T:thread_T complete" {
			t.Error(got)
		}
		_ = e.Shutdown(context.Background())
	})
}

// TestErasedWorkflow: an erasure of a task's thread keeps the process as it was.
func TestErasedWorkflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, nil)
		s.run("s", triage, map[string]any{"cve": "CVE-1"})
		s.settle("s")
		var first, last int64
		for ev := range tapedeck.Events(t.Context(), s.log, "s", 0) {
			if ev.Thread == "thread_One" {
				if first == 0 {
					first = ev.Offset
				}
				last = ev.Offset + 1
			}
		}
		if _, err := s.Erase(t.Context(), api.Erase{Session: "s", Events: []tapedeck.OffsetRange{{From: first, To: first + 1}}, Reason: "test"}); err != nil || last == 0 {
			t.Fatal(err)
		}
		if w := s.workflow("s"); w.Outcome != view.WorkflowCompleted {
			t.Errorf("it is %s", w.Outcome)
		}
		copied, err := s.Fork(t.Context(), api.Fork{Parent: "s", Copy: true})
		if err != nil {
			t.Fatal(err)
		}
		if w := s.workflow(copied.ID); w.Outcome != view.WorkflowCompleted || string(w.Variables["fix"]) != "true" {
			t.Errorf("the copy is %s", w.Outcome)
		}
	})
}

// TestStopAndStart: a stop of the server leaves the workflow open, and its timers go on.
func TestStopAndStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, map[string]agent{"b": func(ctx context.Context, in tapedeck.Invocation) (string, error) {
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(50 * time.Second): // more than the server lives, less than the idle timeout
				return "two", nil
			}
		}})
		began := s.run("s", triage, map[string]any{"cve": "CVE-1"})
		time.Sleep(10 * time.Second)
		for range 3 {
			if err := s.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if w := s.workflow("s"); w.Status != tapedeck.StatusRunning {
				t.Fatalf("it is %s", w.Status)
			}
			s.begin(0)
			if _, err := s.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(40 * time.Second)
		}
		time.Sleep(time.Hour)
		s.settle("s")
		w := s.workflow("s")
		if w.Outcome != view.WorkflowCompleted || w.Invocation != began.Invocation || string(w.Variables["r_Two"]) != `"two"` {
			t.Errorf("it is %s %s %s", w.Status, w.Message, w.Variables["r_Two"])
		}
	})
}
