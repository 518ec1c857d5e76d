package bpmn_test

import (
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

const (
	throwsIt = `<intermediateThrowEvent id="x"><compensateEventDefinition/></intermediateThrowEvent>`
	atBorder = `<boundaryEvent id="b" attachedToRef="t"><compensateEventDefinition/></boundaryEvent>`
	undoes   = `<task id="u" isForCompensation="true"/>`
	leads    = `<association id="a" sourceRef="b" targetRef="u"/>`
	handled  = atBorder + undoes + leads + throwsIt
)

// compensating is an event sub-process for compensation.
func compensating(id string) string {
	return `<subProcess id="` + id + `" triggeredByEvent="true"><startEvent id="` + id + `s"><compensateEventDefinition/></startEvent></subProcess>`
}

var compensationRefusals = []struct{ name, inside, element, sentence string }{
	{"compensation that is awaited", `<intermediateCatchEvent id="t"><compensateEventDefinition/></intermediateCatchEvent>`, "t", "an intermediateCatchEvent cannot have a compensation trigger"},
	{"compensation at the start", `<startEvent id="s"><compensateEventDefinition/></startEvent>`, "s", "only an event sub-process can begin with a compensation"},
	{"compensation that may wait", `<intermediateThrowEvent id="t"><compensateEventDefinition waitForCompletion="no"/></intermediateThrowEvent>`, "t", `waitForCompletion is "no", not true or false`},
	{"an event for compensation", `<endEvent id="e" isForCompensation="true"/>`, "e", "an endEvent cannot be for compensation"},
	{"no association", atBorder + undoes, "b", "no association leads from the compensation event to an activity"},
	{"an association to an annotation", atBorder + `<textAnnotation id="n"/><association id="a" sourceRef="b" targetRef="n"/>`, "b", "no association leads from the compensation event"},
	{"an association in the other direction", atBorder + undoes + `<association id="a" sourceRef="u" targetRef="b"/>`, "b", "no association leads from the compensation event"},
	{"two associations", atBorder + undoes + leads + `<task id="v" isForCompensation="true"/><association id="a2" sourceRef="b" targetRef="v"/>`, "b", "several elements: u, v"},
	{"an association to a task without the mark", atBorder + `<task id="u"/>` + leads, "b", "leads from the compensation event to u, which is not marked for compensation"},
	{"an association into a sub-process", atBorder + leads + `<subProcess id="p1">` + undoes + `</subProcess>`, "b", "leads from the compensation event to u, which is in another process or sub-process"},
	{"an association to another process", atBorder + leads + `</process><process id="q">` + undoes, "b", "which is in another process or sub-process"},
	{"two events at a boundary", handled + `<boundaryEvent id="b2" attachedToRef="t"><compensateEventDefinition/></boundaryEvent><association id="a2" sourceRef="b2" targetRef="u"/>`, "b2", "t has several compensation events at its boundary"},
	{"a flow from the boundary", handled + `<sequenceFlow id="f3" sourceRef="b" targetRef="e"/>`, "b", "a flow leaves a compensation event at a boundary"},
	{"a flow from the handler", handled + `<sequenceFlow id="f3" sourceRef="u" targetRef="e"/>`, "u", "an activity that is marked for compensation has no flows"},
	{"a flow to the handler", handled + `<sequenceFlow id="f3" sourceRef="t" targetRef="u"/>`, "u", "an activity that is marked for compensation has no flows"},
	{"an event at the boundary of the handler", handled + `<boundaryEvent id="c" attachedToRef="u"><errorEventDefinition/></boundaryEvent>`, "u", "events at the boundary of an activity that is marked for compensation are not supported"},
	{"an activity that compensates itself", strings.Replace(handled, `attachedToRef="t"`, `attachedToRef="u"`, 1), "u", "events at the boundary of an activity that is marked for compensation"},
	{"an event sub-process for compensation of a process", compensating("h") + throwsIt, "h", "nothing compensates the process, so its event sub-process"},
	{"an event sub-process for compensation of a handler", strings.Replace(handled, undoes, `<subProcess id="u" isForCompensation="true"><task id="y"/>`+compensating("h")+`</subProcess>`, 1), "h", "nothing compensates u, so its event sub-process"},
	{"an event sub-process that is marked", strings.Replace(compensating("h"), "<subProcess", `<subProcess isForCompensation="true"`, 1), "h", "an event sub-process is not marked for compensation"},
	{"an event sub-process that does not interrupt", `<subProcess id="t"><task id="y"/>` + strings.Replace(compensating("h"), "<startEvent", `<startEvent isInterrupting="false"`, 1) + `</subProcess>`, "hs", "an event sub-process for compensation always interrupts"},
	{"two event sub-processes", `<subProcess id="t"><task id="y"/>` + compensating("h") + compensating("i") + `</subProcess>`, "i", "t has several event sub-processes for compensation"},
	{"a handler and an event sub-process", `<subProcess id="t"><task id="y"/>` + compensating("h") + `</subProcess>` + handled, "h", "u and the event sub-process compensate t, and only one can"},
	{"an activity that is not there", `<intermediateThrowEvent id="t"><compensateEventDefinition activityRef="z"/></intermediateThrowEvent>`, "t", `the file has no activity "z" that could be compensated`},
	{"an activity that is a gateway", `<exclusiveGateway id="g"/><intermediateThrowEvent id="t"><compensateEventDefinition activityRef="g"/></intermediateThrowEvent>`, "t", `the file has no activity "g"`},
	{"an activity in a sub-process", strings.Replace(handled, "<compensateEventDefinition/></intermediate", `<compensateEventDefinition activityRef="y"/></intermediate`, 1) + `<subProcess id="p1"><task id="y"/></subProcess>`, "x", "y is in another process or sub-process, where the event compensates nothing"},
	{"the sub-process around the event", `<subProcess id="t"><intermediateThrowEvent id="x"><compensateEventDefinition activityRef="t"/></intermediateThrowEvent></subProcess>`, "x", "t is in another process or sub-process"},
	{"an activity around two event sub-processes", atBorder + undoes + leads + `<subProcess id="h" triggeredByEvent="true"><startEvent id="hs"><errorEventDefinition/></startEvent><subProcess id="i" triggeredByEvent="true"><startEvent id="is"><errorEventDefinition/></startEvent><endEvent id="x"><compensateEventDefinition activityRef="t"/></endEvent></subProcess></subProcess>`, "x", "t is in another process or sub-process"},
	{"an activity that nothing compensates", `<task id="y"/><intermediateThrowEvent id="t"><compensateEventDefinition activityRef="y"/></intermediateThrowEvent>`, "t", "nothing compensates y"},
	{"a handler that is to be compensated", strings.Replace(handled, "<compensateEventDefinition/></intermediate", `<compensateEventDefinition activityRef="u"/></intermediate`, 1), "x", "nothing compensates u"},
}

// TestCompensationWarnings: what a run leaves out.
func TestCompensationWarnings(t *testing.T) {
	for inside, want := range map[string]string{
		atBorder + undoes + leads: "b: the event never happens: nothing in the process throws compensation",
		undoes:                    "u: no compensation event leads to the activity, so it never runs",
		throwsIt:                  "x: the event does nothing: nothing compensates an activity beside it",
		strings.Replace(handled, "<compensateEventDefinition/></boundary", `<compensateEventDefinition activityRef="u"/></boundary`, 1): "b: activityRef is not read: the event is of the activity to which it belongs",
	} {
		d, err := bpmn.Read(strings.NewReader(whole(inside)), bpmn.Options{})
		if err != nil {
			t.Errorf("%s: %s", inside, problems(err))
		} else if got := strings.Join(warnings(d), "\n"); !strings.Contains(got, want) {
			t.Errorf("%s has the warnings %q, want %q", inside, got, want)
		}
	}
	d, err := bpmn.Read(strings.NewReader(whole(strings.Replace(handled, "<intermediateThrowEvent", `<sequenceFlow id="f3" sourceRef="t" targetRef="x"/><sequenceFlow id="f4" sourceRef="x" targetRef="e"/><intermediateThrowEvent`, 1))), bpmn.Options{})
	if err != nil || len(warnings(d)) > 0 {
		t.Error(err, warnings(d))
	}
}

// TestCompensable: a run remembers only what can be compensated, and nothing if no event throws
// compensation.
func TestCompensable(t *testing.T) {
	inside := `<subProcess id="t"><task id="y"/>` + strings.NewReplacer(`"t"`, `"y"`).Replace(atBorder+undoes+leads) + `</subProcess><subProcess id="t2"><task id="y2"/></subProcess>` +
		`<subProcess id="t3"><task id="y3"/>` + compensating("h") + `</subProcess>`
	for more, want := range map[string]string{"": "", throwsIt: "t t3 y"} {
		d, err := bpmn.Read(strings.NewReader(whole(inside+more)), bpmn.Options{})
		if err != nil {
			t.Fatal(problems(err))
		}
		var got []string
		for _, id := range []string{"h", "s", "t", "t2", "t3", "u", "x", "y", "y2", "y3"} {
			if n := d.Node(id); n != nil && n.Compensable {
				got = append(got, id)
			}
		}
		if strings.Join(got, " ") != want || d.Node("y").Handler != d.Node("u") {
			t.Errorf("compensable with %q: %v, want %s", more, got, want)
		}
	}
}
