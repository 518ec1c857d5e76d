package workflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/runner/workflow"
	"github.com/tapedeck/tapedeck/view"
)

// TestKilledAtAnyMoment kills the server at each append of a workflow in turn. It ends
// with the same variables, and each task's thread has one complete run.
func TestKilledAtAnyMoment(t *testing.T) {
	const want = `{"cve":"CVE-1","fix":true,"r_Look":"look at CVE-1","r_One":"one look at CVE-1","r_Two":"two","task":"go"}`
	for n := int64(2); n < 40; n++ {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, nil)
			s.run("s", triage, map[string]any{"cve": "CVE-1"})
			for kills := n; ; kills++ {
				s.restart(n)
				s.settle("s")
				if !s.store.dead.Load() || kills > n+60 {
					break
				}
			}
			s.restart(0)
			s.settle("s")
			w := s.workflow("s")
			got, _ := json.Marshal(w.Variables)
			if w.Outcome != view.WorkflowCompleted || string(got) != want {
				t.Errorf("killed every %d appends it is %s with %s", n, w.Status, got)
			}
			complete := map[string]int{}
			for _, r := range s.runs("s") {
				if thread, ok := strings.CutSuffix(r, " complete"); ok {
					complete[thread]++
				}
			}
			if fmt.Sprint(complete) != "map[main:1 thread_Look:1 thread_One:1 thread_Two:1]" {
				t.Errorf("killed every %d appends the complete runs are %v", n, complete)
			}
		})
	}
}

// TestCancelAndResume: a cancelled workflow has no waiting tokens; a resume continues it.
func TestCancelAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, nil)
		s.run("s", triage, map[string]any{"cve": "CVE-1"})
		synctest.Wait()
		if _, err := s.Cancel(t.Context(), "s", ""); err != nil {
			t.Fatal(err)
		}
		w := s.workflow("s")
		open := 0
		for _, a := range w.Activations {
			if len(a.Waits) > 0 || a.Status == view.ActivationWaiting {
				open++
			}
		}
		if w.Outcome != view.WorkflowCancelled || len(w.Tokens) > 0 || open > 0 {
			t.Errorf("it is %s with %d tokens, %d activations wait", w.Outcome, len(w.Tokens), open)
		}
		if _, err := s.Resume(t.Context(), api.Resume{Session: "s"}); err != nil {
			t.Fatal(err)
		}
		s.restart(0)
		s.settle("s")
		if w := s.workflow("s"); w.Outcome != view.WorkflowCompleted || string(w.Variables["fix"]) != "true" {
			t.Errorf("it is %s %s, %s", w.Status, w.Outcome, w.Message)
		}
		if got := strings.Join(s.runs("s"), ", "); got != "main cancelled, main complete, thread_Look complete, thread_One complete, thread_Two complete" {
			t.Error(got)
		}
	})
}

// TestRewindBeforeATask: the task runs once more, in a run of its own, and the first one
// stays in the log.
func TestRewindBeforeATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := newServer(t, map[string]agent{"b": func(context.Context, tapedeck.Invocation) (string, error) {
			n++
			return fmt.Sprint("answer ", n), nil
		}})
		s.run("s", triage, map[string]any{"cve": "CVE-1"})
		s.settle("s")
		now, err := s.views().Snapshot(t.Context(), "s", view.Query{Thread: "thread_Two"})
		if err != nil || len(now.Runs) != 1 {
			t.Fatal(err, len(now.Runs))
		}
		first := now.Runs[0].Invocation
		if _, err := s.Rewind(t.Context(), api.Rewind{Session: "s", BeforeInvocation: first}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Resume(t.Context(), api.Resume{Session: "s"}); err != nil {
			t.Fatal(err)
		}
		s.settle("s")
		w := s.workflow("s")
		if w.Outcome != view.WorkflowCompleted || string(w.Variables["r_Two"]) != `"answer 2"` {
			t.Errorf("it is %s %s, r_Two is %s", w.Status, w.Message, w.Variables["r_Two"])
		}
		now, err = s.views().Snapshot(t.Context(), "s", view.Query{Thread: "thread_Two"})
		if err != nil || len(now.Runs) != 1 || now.Runs[0].Invocation == first || len(now.Messages) != 2 {
			t.Errorf("%v, the thread has %d runs and %d messages", err, len(now.Runs), len(now.Messages))
		}
		if _, err := s.Rewind(t.Context(), api.Rewind{Session: "s", BeforeInvocation: first, Force: true}); err != nil {
			t.Errorf("the first run is not in the log: %v", err)
		}
	})
}

// TestForkContinues: a fork of a workflow that waits is resumed by itself.
func TestForkContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, nil)
		s.run("s", triage, map[string]any{"cve": "CVE-1"})
		synctest.Wait()
		fork, err := s.Fork(t.Context(), api.Fork{Parent: "s"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Resume(t.Context(), api.Resume{Session: fork.ID}); err != nil {
			t.Fatal(err)
		}
		s.settle(fork.ID)
		if w := s.workflow(fork.ID); w.Outcome != view.WorkflowCompleted {
			t.Errorf("the fork is %s, %s", w.Status, w.Message)
		}
		if w := s.workflow("s"); w.Status != tapedeck.StatusRunning {
			t.Errorf("the parent is %s", w.Status)
		}
	})
}

// TestTaskThatAsks: a task waits for a permission, and the other branch does not.
func TestTaskThatAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, map[string]agent{"a": func(ctx context.Context, in tapedeck.Invocation) (string, error) {
			c, err := in.Ask(ctx, tapedeck.Question{ID: "per_x", Options: []tapedeck.PermissionOption{{ID: "yes"}}})
			return c.Option, err
		}})
		s.run("s", xmlOf(`<parallelGateway id="F"/><parallelGateway id="J"/>`+task("One", "a", "x")+task("Two", "b", "y"), "S>F", "F>One", "F>Two", "One>J", "Two>J", "J>E"), nil)
		time.Sleep(time.Hour) // no idle timeout
		synctest.Wait()
		if w := s.workflow("s"); string(w.Variables["r_Two"]) != `"y"` || w.Outcome != "" {
			t.Errorf("it is %s with %s", w.Status, w.Variables)
		}
		if _, err := s.Answer(t.Context(), api.Answer{Session: "s", Permission: "per_x", Option: "yes"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if w := s.workflow("s"); w.Outcome != view.WorkflowCompleted || string(w.Variables["r_One"]) != `"yes"` {
			t.Errorf("it is %s with %s", w.Status, w.Variables)
		}
	})
}

// TestMessageArrives: a message of a client moves the process.
func TestMessageArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, nil)
		xml := strings.Replace(xmlOf(`<receiveTask id="W" messageRef="m"/>`, "S>W", "W>E"), "<process", `<message id="m" name="paid"/><process`, 1)
		s.run("s", xml, nil)
		s.restart(0)
		synctest.Wait()
		if _, err := s.SendMessage(t.Context(), api.SendMessage{Session: "s", Name: "paid", Variables: tapedeck.Members{"sum": json.RawMessage("3")}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if w := s.workflow("s"); w.Outcome != view.WorkflowCompleted || string(w.Variables["sum"]) != "3" || len(w.Messages) > 0 {
			t.Errorf("it is %s with %s", w.Status, w.Variables)
		}
	})
}

// TestMessageThatIsAwaited: others fill the mailbox of a workflow. The message that an element
// waits for is received all the same.
func TestMessageThatIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, nil)
		xml := strings.Replace(xmlOf(`<receiveTask id="W" messageRef="m"/>`, "S>W", "W>E"), "<process", `<message id="m" name="paid"/><process`, 1)
		s.run("s", xml, nil)
		synctest.Wait()
		send := func(name string) error {
			_, err := s.SendMessage(t.Context(), api.SendMessage{Session: "s", Name: name})
			return err
		}
		var err error
		for range 1001 {
			err = send("other")
		}
		if tapedeck.KindOf(err) != tapedeck.Limited {
			t.Fatalf("the mailbox is not full: %v", err)
		}
		if err := send("paid"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if w := s.workflow("s"); w.Outcome != view.WorkflowCompleted {
			t.Errorf("it is %s", w.Status)
		}
	})
}

// TestManyQuestions: a user task asks at most 1,000 people at once. With more instances it fails
// before it asks anybody.
func TestManyQuestions(t *testing.T) {
	for n, want := range map[int]int{1000: 1000, 1001: 0} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, nil)
			s.run("s", xmlOf(fmt.Sprintf(`<userTask id="U"><multiInstanceLoopCharacteristics><loopCardinality>%d</loopCardinality></multiInstanceLoopCharacteristics></userTask>`, n), "S>U", "U>E"), nil)
			synctest.Wait()
			asked := 0
			for ev := range tapedeck.Events(t.Context(), s.log, "s", 0) {
				if ev.Type == tapedeck.PermissionRequested {
					asked++
				}
			}
			if w := s.workflow("s"); asked != want || (w.Outcome == view.WorkflowFailed) != (want == 0) {
				t.Errorf("%d instances: %d questions, %s %s", n, asked, w.Outcome, w.Message)
			}
		})
	}
}

// TestManyInstances: 200 tasks of agents at once, of which some work at a time.
func TestManyInstances(t *testing.T) {
	const n = 200
	var mu sync.Mutex
	working, most := 0, 0
	list := make([]int, n)
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, map[string]agent{"a": func(_ context.Context, in tapedeck.Invocation) (string, error) {
			mu.Lock()
			working++
			most = max(most, working)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			working--
			mu.Unlock()
			return in.Task, nil
		}})
		s.run("s", xmlOf(`<serviceTask id="T" tapedeck:agent="a" tapedeck:prompt="n {{ loopCounter }}" tapedeck:output="r"><multiInstanceLoopCharacteristics><extensionElements><zeebe:loopCharacteristics inputCollection="= list" inputElement="item" outputCollection="all" outputElement="= r"/></extensionElements></multiInstanceLoopCharacteristics></serviceTask>`, "S>T", "T>E"), map[string]any{"list": list})
		time.Sleep(time.Hour)
		synctest.Wait()
		w := s.workflow("s")
		var all []string
		_ = json.Unmarshal(w.Variables["all"], &all)
		if w.Outcome != view.WorkflowCompleted || len(all) != n || all[n-1] != "n 200" || most != workflow.DefaultMaxTasks {
			t.Errorf("it is %s %s with %d results, %d worked at once", w.Status, w.Message, len(all), most)
		}
		complete := 0
		now, err := s.views().Snapshot(t.Context(), "s", view.Query{Runs: true, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, th := range now.Threads {
			if strings.HasPrefix(th.Name, "thread_T") && th.Status == tapedeck.StatusComplete {
				complete++
			}
		}
		if complete != n {
			t.Errorf("%d threads are complete", complete)
		}
	})
}
