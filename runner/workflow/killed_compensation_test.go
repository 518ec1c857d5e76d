package workflow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// undo is a handler of an agent for a task.
func undo(id, prompt string) string {
	return `<boundaryEvent id="C` + id + `" attachedToRef="` + id + `"><compensateEventDefinition/></boundaryEvent><association id="A` + id + `" sourceRef="C` + id + `" targetRef="Undo` + id + `"/>` +
		strings.Replace(task("Undo"+id, "a", prompt), "<serviceTask", `<serviceTask isForCompensation="true"`, 1)
}

// compensating undoes a trip: a train, and in a sub-process, with its own variable, a bed for
// each night.
var compensating = xmlOf(task("Train", "a", "train")+undo("Train", "no {{ r_Train }}")+
	`<subProcess id="Trip"><extensionElements><tapedeck:input name="nights" value='= ["mo", "tu"]'/></extensionElements><startEvent id="TS"/>`+
	strings.Replace(task("Bed", "b", "bed {{ night }}"), "/>", `><multiInstanceLoopCharacteristics isSequential="true" tapedeck:collection="= nights" tapedeck:element="night"/></serviceTask>`, 1)+undo("Bed", "no {{ night }} of {{ string(len(nights)) }}")+
	`<sequenceFlow id="t1" sourceRef="TS" targetRef="Bed"/></subProcess>`+
	`<intermediateThrowEvent id="X"><compensateEventDefinition/></intermediateThrowEvent>`, "S>Train", "Train>Trip", "Trip>X", "X>E")

// TestKilledWhileItCompensates kills the server at each append of a workflow in turn. Each
// activity is compensated once, in reverse order.
func TestKilledWhileItCompensates(t *testing.T) {
	const want = `{"r_Bed":"bed tu","r_Train":"train","r_UndoBed":"no mo of 2","r_UndoTrain":"no train","task":"go"}`
	for n := int64(2); n < 50; n++ {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, nil)
			s.run("s", compensating, nil)
			for kills := n; ; kills++ {
				s.restart(n)
				s.settle("s")
				if !s.store.dead.Load() || kills > n+80 {
					break
				}
			}
			s.restart(0)
			s.settle("s")
			w := s.workflow("s")
			if got, _ := json.Marshal(w.Variables); w.Outcome != view.WorkflowCompleted || string(got) != want {
				t.Errorf("killed every %d appends it is %s with %s: %s", n, w.Status, got, w.Message)
			}
			var order []string
			names := map[string]string{}
			for ev := range tapedeck.Events(t.Context(), s.log, "s", 0) {
				if d, err := payload.DecodeAs[payload.WorkflowEntered](ev); ev.Type == tapedeck.WorkflowEntered && err == nil {
					names[d.Activation] = d.Element
					if d.Compensates != "" {
						order = append(order, fmt.Sprint(d.Element, " for ", names[d.Compensates], d.Compensates, " in ", names[d.Scope]))
					}
				}
			}
			if got := strings.Join(order, ", "); got != "Trip for Trip3 in X, UndoBed for Bed7 in Trip, UndoBed for Bed6 in Trip, UndoTrain for Train2 in X" {
				t.Errorf("killed every %d appends the order is %s", n, got)
			}
			complete := map[string]int{}
			for _, r := range s.runs("s") {
				if thread, ok := strings.CutSuffix(r, " complete"); ok {
					complete[thread]++
				}
			}
			if got := fmt.Sprint(complete); got != "map[main:1 thread_Bed:1 thread_Bed_2:1 thread_Train:1 thread_UndoBed:1 thread_UndoBed_2:1 thread_UndoTrain:1]" {
				t.Errorf("killed every %d appends the complete runs are %s", n, got)
			}
		})
	}
}

// TestRewindBeforeAHandler: after a rewind into a compensation, what was reverted is compensated
// once more, and nothing else is.
func TestRewindBeforeAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, nil)
		s.run("s", compensating, nil)
		s.settle("s")
		now, err := s.views().Snapshot(t.Context(), "s", view.Query{Thread: "thread_UndoBed_2"})
		if err != nil || len(now.Runs) != 1 {
			t.Fatal(err, len(now.Runs))
		}
		if _, err := s.Rewind(t.Context(), api.Rewind{Session: "s", BeforeInvocation: now.Runs[0].Invocation}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Resume(t.Context(), api.Resume{Session: "s"}); err != nil {
			t.Fatal(err)
		}
		s.settle("s")
		w := s.workflow("s")
		entered := map[string]int64{}
		for _, el := range w.Elements {
			entered[el.Element] = el.Entered
		}
		if w.Outcome != view.WorkflowCompleted || entered["UndoBed"] != 2 || entered["UndoTrain"] != 1 || entered["Trip"] != 2 || string(w.Variables["r_UndoBed"]) != `"no mo of 2"` {
			t.Errorf("it is %s %s, %v, %s", w.Status, w.Message, entered, w.Variables["r_UndoBed"])
		}
	})
}
