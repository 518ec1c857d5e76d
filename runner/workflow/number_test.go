package workflow

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// exactID is not a float64: the next one is 9007199254740992.
const exactID = "9007199254740993"

// exactWays are ways that a number takes through a process. Each begins with id, which is
// exactID, and ends with out. Values are as they stand in the log.
var exactWays = []struct {
	name, xml string
	answers   string // of agents
	input     string // of the form of a user
	want      string // out
}{
	{name: "a script", xml: diagramOf(startEnd+script("T", "out = id"), "S>T", "T>E"), want: exactID},
	{name: "a calculation", xml: diagramOf(startEnd+script("T", "out = [id - 1, id == 9007199254740992, 0.1 + 0.2 == 0.3, id * 3, 12.50]"), "S>T", "T>E"), want: `[9007199254740992,false,true,27021597764222979,12.5]`},
	{name: "a mapping", xml: diagramOf(startEnd+`<serviceTask id="T" tapedeck:agent="a" tapedeck:prompt="x"><extensionElements><zeebe:ioMapping><zeebe:input source="= id" target="same"/><zeebe:output source="= same" target="out"/></zeebe:ioMapping></extensionElements></serviceTask>`, "S>T", "T>E"), want: exactID},
	{name: "a template", xml: diagramOf(startEnd+agentTask("T", "{{ id }} and {{ tenth }}", "out"), "S>T", "T>E"), want: `"` + exactID + ` and 0.1"`},
	{name: "the default of the start", xml: diagramOf(`<startEvent id="S"><extensionElements><tapedeck:form><tapedeck:field id="out" type="integer" default="`+exactID+`"/></tapedeck:form></extensionElements></startEvent>`+end, "S>E"), want: exactID},
	{name: "a default that is an expression", xml: diagramOf(`<startEvent id="S"><extensionElements><tapedeck:form><tapedeck:field id="out" type="integer" default="= id"/></tapedeck:form></extensionElements></startEvent>`+end, "S>E"), want: exactID},
	{name: "a default that is a text", xml: diagramOf(`<startEvent id="S"><extensionElements><tapedeck:form><tapedeck:field id="out" type="number" default="= string(id) + &quot;.50&quot;"/></tapedeck:form></extensionElements></startEvent>`+end, "S>E"), want: exactID + ".5"},
	{name: "the default of a user", xml: diagramOf(startEnd+`<userTask id="U"><extensionElements><tapedeck:form><tapedeck:field id="out" type="integer" default="= id"/></tapedeck:form></extensionElements></userTask>`, "S>U", "U>E"), want: exactID},
	{name: "the answer of a user", xml: diagramOf(startEnd+`<userTask id="U"><extensionElements><tapedeck:form><tapedeck:field id="out" type="integer"/></tapedeck:form></extensionElements></userTask>`, "S>U", "U>E"), input: exactID, want: exactID},
	{name: "a large answer of a user", xml: diagramOf(startEnd+`<userTask id="U"><extensionElements><tapedeck:form><tapedeck:field id="out" type="integer"/></tapedeck:form></extensionElements></userTask>`, "S>U", "U>E"), input: "12345678901234567890", want: "12345678901234567890"},
	{name: "the result of an agent", xml: diagramOf(startEnd+`<serviceTask id="T" tapedeck:agent="a" tapedeck:prompt="x" tapedeck:output="out" tapedeck:resultAs="json"/>`, "S>T", "T>E"), answers: `{"id": ` + exactID + `, "far": 1e400, "price": 0.10}`, want: `{"far":1e400,"id":` + exactID + `,"price":0.10}`},
	{name: "the result of an agent with a schema", xml: diagramOf(startEnd+`<serviceTask id="T" tapedeck:agent="a" tapedeck:prompt="x" tapedeck:output="out" tapedeck:schema='{"type": "object", "properties": {"id": {"type": "integer", "minimum": 1}, "price": {"type": "number"}}}'/>`, "S>T", "T>E"), answers: "```json\n" + `{"id": ` + exactID + `, "price": 0.1}` + "\n```", want: `{"id":` + exactID + `,"price":0.1}`},
	{name: "a collection", xml: diagramOf(startEnd+`<serviceTask id="T" tapedeck:agent="a" tapedeck:prompt="x"><multiInstanceLoopCharacteristics tapedeck:collection="= [id, id - 1, tenth]" tapedeck:element="item" tapedeck:outputCollection="out" tapedeck:outputElement="= item" isSequential="true"/></serviceTask>`, "S>T", "T>E"), want: `[9007199254740993,9007199254740992,0.1]`},
	{name: "a collection in parallel", xml: diagramOf(startEnd+`<serviceTask id="T" tapedeck:agent="a" tapedeck:prompt="x"><multiInstanceLoopCharacteristics tapedeck:collection="= [id, far]" tapedeck:element="item" tapedeck:outputCollection="out" tapedeck:outputElement="= item"/></serviceTask>`, "S>T", "T>E"), want: `[9007199254740993,1e7000]`},
	{name: "a number of instances", xml: diagramOf(startEnd+`<serviceTask id="T" tapedeck:agent="a" tapedeck:prompt="x"><multiInstanceLoopCharacteristics tapedeck:outputCollection="out" tapedeck:outputElement="= loopCounter"><loopCardinality>= id - 9007199254740991</loopCardinality></multiInstanceLoopCharacteristics></serviceTask>`, "S>T", "T>E"), want: `[1,2]`},
	{name: "a called process", xml: called(processOf("P", startEnd+`<callActivity id="C" calledElement="Q"/>`, "S>C", "C>E"), script("T", "out = id"), "QS>T", "T>QE"), want: exactID},
	{name: "a condition", xml: diagramOf(startEnd+gateway("exclusive", "G", `default="G_B"`)+script("A", `out = "the other one"`)+script("B", `out = id`), "S>G", "G>A:id == 9007199254740992", "G>B", "A>E", "B>E"), want: exactID},
	{name: "what cannot be computed with is passed on", xml: diagramOf(startEnd+script("T", "out = [far, long, huge]"), "S>T", "T>E"), want: `[1e7000,0.12345678901234567890123456789012345678,1e+400]`},
}

// exactHost has a run with the variables of exactWays, as a client gives them.
func exactHost(t *testing.T, xml string) *host {
	h := newHost(t, xml)
	for name, value := range map[string]string{"id": exactID, "tenth": "0.10", "far": "1e7000", "huge": "1e400", "long": "0.12345678901234567890123456789012345678"} {
		h.config.Variables[name] = json.RawMessage(value)
	}
	return h
}

// TestExactNumbers: no way through a process changes a number.
func TestExactNumbers(t *testing.T) {
	for _, tt := range exactWays {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h := exactHost(t, tt.xml)
				if tt.answers != "" {
					h.agent = says(tt.answers)
				}
				if err := h.begin(t.Context(), ""); err != nil {
					t.Fatal(err)
				}
				ended, stop := h.walkOn()
				defer stop()
				synctest.Wait()
				for _, a := range h.state().Activations {
					for _, wait := range a.Waits {
						c := tapedeck.Choice{ID: wait.Permission, Option: optionSubmit}
						if tt.input != "" {
							c.Input = tapedeck.Members{"out": json.RawMessage(tt.input)}
						}
						h.send(payload.PermissionAnswered{Choice: c})
					}
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
				w := h.state()
				if got := string(w.Variables["out"]); got != tt.want || string(w.Variables["id"]) != exactID {
					t.Errorf("out is %s, want %s; id is %s", got, tt.want, w.Variables["id"])
				}
			})
		})
	}
}

// TestExactTask: the text of a task becomes the number that it is.
func TestExactTask(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for text, want := range map[string]string{exactID: exactID, "12.0": "12", "12.50": "", "12345678901234567890": "12345678901234567890", "1e33": "1000000000000000000000000000000000", "1e34": "", "1e7000": "", "NaN": "", "0x10": ""} {
			h := newHost(t, diagramOf(`<startEvent id="S"><extensionElements><tapedeck:form><tapedeck:field id="task" type="integer"/></tapedeck:form></extensionElements></startEvent>`+end, "S>E"))
			in := h.invocation("")
			in.Task = text
			opening, err := h.runner.Opening(t.Context(), in)
			if want == "" {
				if err == nil || tapedeck.KindOf(err) != tapedeck.Invalid {
					t.Errorf("%q: %v", text, err)
				}
				continue
			}
			if err != nil || !strings.Contains(string(opening[0].Data), `"task":`+want+`}`) {
				t.Errorf("%q: %v, %v", text, opening, err)
			}
		}
	})
}

// TestExactCorrelation: the message for another number is that of another order.
func TestExactCorrelation(t *testing.T) {
	for name, correlation := range map[string]string{"an expression": "= id", "a template": "{{ id }}"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h := exactHost(t, diagramOf(startEnd+`<receiveTask id="W" messageRef="m"/>`, "S>W", "W>E"))
				h.config.BPMN = strings.Replace(h.config.BPMN, "<process ", `<message id="m" name="paid" tapedeck:correlation="`+correlation+`"/><process `, 1)
				if err := h.begin(t.Context(), ""); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- h.walk(ctx, "") }()
				synctest.Wait()
				h.send(payload.WorkflowMessage{Name: "paid", Correlation: "9007199254740992", Variables: tapedeck.Members{"of": json.RawMessage("9007199254740992")}})
				synctest.Wait()
				if w := h.state(); w.Outcome != "" || len(w.Messages) != 1 {
					t.Fatalf("the message of another order has ended it: %s", values(w))
				}
				h.send(payload.WorkflowMessage{Name: "paid", Correlation: exactID, Variables: tapedeck.Members{"of": json.RawMessage(exactID)}})
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if w := h.state(); string(w.Variables["of"]) != exactID || w.Outcome != "completed" {
					t.Errorf("the variables are %s", values(w))
				}
			})
		})
	}
}

// TestSentCorrelation: two processes of a number each, and the one sends to itself.
func TestSentCorrelation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		xml := diagramOf(startEnd+gateway("parallel", "F")+`<endEvent id="E2"/><receiveTask id="W" messageRef="m"/><intermediateThrowEvent id="X"><messageEventDefinition messageRef="n"/></intermediateThrowEvent>`, "S>F", "F>W", "F>X", "W>E", "X>E2")
		h := exactHost(t, strings.Replace(xml, "<process ", `<message id="m" name="paid" tapedeck:correlation="= id"/><message id="n" name="paid" tapedeck:correlation="= id - 1"/><process `, 1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := h.begin(ctx, ""); err != nil {
			t.Fatal(err)
		}
		if err := h.walk(ctx, ""); err == nil || h.state().Outcome != "" {
			t.Errorf("%v, %s", err, h.trace())
		}
	})
}

// TestFarNumbersFail: an element that computes with such a number fails, with its name.
func TestFarNumbersFail(t *testing.T) {
	for _, xml := range []string{
		diagramOf(startEnd+script("T", "out = far + 1"), "S>T", "T>E"),
		diagramOf(startEnd+gateway("exclusive", "G", `default="G_E"`)+`<endEvent id="E2"/>`, "S>G", "G>E2:far == 1", "G>E"),
		diagramOf(startEnd+`<serviceTask id="T" tapedeck:agent="a" tapedeck:prompt="x"><multiInstanceLoopCharacteristics><loopCardinality>= far</loopCardinality></multiInstanceLoopCharacteristics></serviceTask>`, "S>T", "T>E"),
		diagramOf(startEnd+`<serviceTask id="T" tapedeck:agent="a" tapedeck:prompt="1e7000" tapedeck:output="out" tapedeck:schema='{"type": "number"}'/>`, "S>T", "T>E"),
	} {
		inBubble(t, func(t *testing.T) {
			h := exactHost(t, xml)
			if _, err := h.run(); err == nil || !strings.Contains(err.Error(), "1e7000") {
				t.Errorf("%v", err)
			}
		})
	}
}
