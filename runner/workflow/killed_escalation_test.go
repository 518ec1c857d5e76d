package workflow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// escalating throws twice: Beside goes on beside the sub-process, and Stop ends it.
var escalating = strings.Replace(xmlOf(`<subProcess id="P1"><startEvent id="PS"/>`+task("One", "a", "one")+
	`<intermediateThrowEvent id="X"><escalationEventDefinition escalationRef="late"/></intermediateThrowEvent>`+task("Two", "b", "two")+
	`<endEvent id="Y"><escalationEventDefinition escalationRef="stop"/></endEvent>`+
	`<sequenceFlow id="p1" sourceRef="PS" targetRef="One"/><sequenceFlow id="p2" sourceRef="One" targetRef="X"/><sequenceFlow id="p3" sourceRef="X" targetRef="Two"/><sequenceFlow id="p4" sourceRef="Two" targetRef="Y"/></subProcess>`+
	`<boundaryEvent id="Beside" attachedToRef="P1" cancelActivity="false"><escalationEventDefinition escalationRef="late"/></boundaryEvent>`+task("Tell", "a", "tell")+
	`<boundaryEvent id="Stop" attachedToRef="P1"><escalationEventDefinition/></boundaryEvent>`+task("Undo", "a", "undo"),
	"S>P1", "P1>E", "Beside>Tell", "Tell>E", "Stop>Undo", "Undo>E"), "<process", `<escalation id="late" name="late"/><escalation id="stop" name="stop"/><process`, 1)

// TestKilledWhileItEscalates kills the server at each append of a workflow in turn. Each
// escalation is caught once, and what it begins is done once.
func TestKilledWhileItEscalates(t *testing.T) {
	const want = `{"r_One":"one","r_Tell":"tell","r_Two":"two","r_Undo":"undo","task":"go"}`
	for n := int64(2); n < 40; n++ {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, nil)
			s.run("s", escalating, nil)
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
			if got, _ := json.Marshal(w.Variables); w.Outcome != view.WorkflowCompleted || string(got) != want {
				t.Errorf("killed every %d appends it is %s with %s", n, w.Status, got)
			}
			elements := map[string]string{}
			for _, el := range w.Elements {
				elements[el.Element] = fmt.Sprint(el.Status, el.Entered)
			}
			if got := fmt.Sprint(elements); got != "map[Beside:completed1 E:completed2 One:completed1 P1:interrupted1 PS:completed1 S:completed1 Stop:completed1 Tell:completed1 Two:completed1 Undo:completed1 X:completed1 Y:interrupted1]" {
				t.Errorf("killed every %d appends the elements are %s", n, got)
			}
			caught := map[string]int{}
			for ev := range tapedeck.Events(t.Context(), s.log, "s", 0) {
				if d, err := payload.DecodeAs[payload.WorkflowCaught](ev); ev.Type == tapedeck.WorkflowCaught && err == nil {
					caught[d.Element+" "+d.Code]++
				}
			}
			if got := fmt.Sprint(caught); got != "map[Beside late:1 Stop stop:1]" {
				t.Errorf("killed every %d appends %s were caught", n, got)
			}
			complete := map[string]int{}
			for _, r := range s.runs("s") {
				if thread, ok := strings.CutSuffix(r, " complete"); ok {
					complete[thread]++
				}
			}
			if got := fmt.Sprint(complete); got != "map[main:1 thread_One:1 thread_Tell:1 thread_Two:1 thread_Undo:1]" {
				t.Errorf("killed every %d appends the complete runs are %s", n, got)
			}
		})
	}
}
