package workflow

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck/view"
)

// The expression of a boundary event fails at run time. Then the process fails, and its message
// names the element. That holds for each kind of element that waits or contains others.
func TestBoundaryThatCannotWait(t *testing.T) {
	const many = `<multiInstanceLoopCharacteristics><loopCardinality>20</loopCardinality></multiInstanceLoopCharacteristics>`
	hosts := map[string]string{
		"a user task":                  `<userTask id="A"/>`,
		"user tasks":                   `<userTask id="A">` + many + `</userTask>`,
		"an agent":                     agentTask("A", "hi", "r"),
		"agents":                       strings.Replace(agentTask("A", "hi {{ loopCounter }}", "r"), "/>", ">"+many+"</serviceTask>", 1),
		"a sub-process":                `<subProcess id="A"><startEvent id="S1"/><userTask id="U"/>` + flowsOf("S1>U") + `</subProcess>`,
		"sub-processes":                `<subProcess id="A">` + many + `<startEvent id="S1"/><userTask id="U"/>` + flowsOf("S1>U") + `</subProcess>`,
		"a call":                       `<callActivity id="A" calledElement="Q"/>`,
		"one that waits for a message": `<receiveTask id="A" messageRef="other"/>`,
	}
	timer := func(kind, text string) string {
		return `<timerEventDefinition><` + kind + `>` + text + `</` + kind + `></timerEventDefinition>`
	}
	triggers := map[string]string{
		"a duration that is null":   timer("timeDuration", "= d"),
		"a duration of JUEL":        timer("timeDuration", "${d}"),
		"a duration that is none":   timer("timeDuration", "= words"),
		"a date":                    timer("timeDate", "= words"),
		"a cycle":                   timer("timeCycle", "= words"),
		"a key that does not exist": `<messageEventDefinition messageRef="msg" tapedeck:correlation="= d.id"/>`,
		"an expression that fails":  timer("timeDuration", "= words.first.second"),
		"a signal":                  `<signalEventDefinition signalRef="named"/>`,
	}
	for host, element := range hosts {
		for trigger, event := range triggers {
			for _, interrupts := range []string{"true", "false"} {
				if strings.Contains(event, "timeCycle") && interrupts == "true" {
					continue // it is refused
				}
				t.Run(host+", "+trigger+", "+interrupts, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						xml := called(processOf("P", startEnd+element+boundary("B", "A", interrupts, event)+`<endEvent id="E2"/>`, "S>A", "A>E", "B>E2"), `<userTask id="QU"/>`, "QS>QU", "QU>QE")
						xml = strings.Replace(xml, `<process id="P"`, `<message id="msg" name="hello"/><message id="other" name="other"/><signal id="named" name="{{ d.name }}"/><process id="P"`, 1)
						h := newHost(t, xml, "d", nil, "words", "no duration")
						w, err := h.run()
						if err == nil || w.Outcome != view.WorkflowFailed || !strings.Contains(w.Message, `"A"`) && !strings.Contains(w.Message, `"B"`) {
							t.Fatalf("%v: it is %s, %s: %s", err, w.Outcome, w.Message, h.trace())
						}
						if err := h.walk(t.Context(), ""); err == nil || len(h.log) == 0 {
							t.Errorf("walked again after its end: %v", err)
						}
					})
				})
			}
		}
	}
}

// The prompt of each of many instances fails, and so does the process.
func TestPromptsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		many := strings.Replace(agentTask("A", "{{ d.words.first }}", "r"), "/>", `><multiInstanceLoopCharacteristics><loopCardinality>5000</loopCardinality></multiInstanceLoopCharacteristics></serviceTask>`, 1)
		h := newHost(t, diagramOf(startEnd+many, "S>A", "A>E"), "d", nil)
		if w, err := h.run(); err == nil || w.Outcome != view.WorkflowFailed {
			t.Errorf("%v: it is %s", err, w.Outcome)
		}
	})
}
