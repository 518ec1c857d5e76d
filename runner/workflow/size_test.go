package workflow

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// TestSizeOfTheState: what a process keeps is bounded, wherever it is, and what is replaced
// does not count.
func TestSizeOfTheState(t *testing.T) {
	const limit = 64 << 10
	loop := func(script string) string {
		return diagramOf(startEnd+gateway("exclusive", "M")+script+gateway("exclusive", "G", `default="G_E"`), "S>M", "M>T", "T>G", "G>M:n < 100", "G>E")
	}
	text := strings.Repeat("x", 10<<10)
	for _, tt := range []struct {
		name, xml string
		variables []any
		fails     bool
	}{
		{"variables", diagramOf(startEnd+script("T", "a = text\nb = text\nc = text\nd = text\ne = text\nf = text"), "S>T", "T>E"), nil, true},
		{"a variable that is replaced", loop(script("T", "n = n + 1\ncopy = text + string(n)")), []any{"n", 0}, false},
		{"own variables of instances", diagramOf(startEnd+`<subProcess id="T"><extensionElements><tapedeck:input name="own" value="= text"/></extensionElements>`+
			`<multiInstanceLoopCharacteristics><loopCardinality>10</loopCardinality></multiInstanceLoopCharacteristics><startEvent id="S1"/><userTask id="U"/>`+flowsOf("S1>U")+`</subProcess>`, "S>T", "T>E"), nil, true},
		{"own variables of instances that follow each other", diagramOf(startEnd+`<scriptTask id="T"><extensionElements><tapedeck:input name="own" value="= text"/></extensionElements>`+
			`<multiInstanceLoopCharacteristics isSequential="true"><loopCardinality>50</loopCardinality></multiInstanceLoopCharacteristics><script>n = n + 1</script></scriptTask>`, "S>T", "T>E"), []any{"n", 0}, false},
		{"results of instances", diagramOf(startEnd+`<scriptTask id="T"><multiInstanceLoopCharacteristics isSequential="true" tapedeck:outputCollection="all" tapedeck:outputElement="= r"><loopCardinality>10</loopCardinality></multiInstanceLoopCharacteristics><script>r = text</script></scriptTask>`, "S>T", "T>E"), nil, true},
	} {
		h := newHost(t, tt.xml, append(tt.variables, "text", text)...)
		h.runner.maxState = limit
		w, err := h.run()
		switch {
		case !tt.fails && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.fails && (err == nil || !strings.Contains(err.Error(), `"T" failed: the variables of the workflow would have`) || w.Code != codeOutput):
			t.Errorf("%s: got %v, %s", tt.name, err, w.Code)
		}
	}
	h := newHost(t, diagramOf(startEnd, "S>E"))
	h.runner.maxState = limit
	for i := range 7 {
		h.config.Variables[fmt.Sprint("v", i)] = encode(text)
	}
	if err := h.begin(t.Context(), ""); tapedeck.KindOf(err) != tapedeck.TooLarge || len(h.log) > 0 {
		t.Errorf("got %v and %d events", err, len(h.log))
	}
}

// TestLongTask: the text of a task is a variable as every other one.
func TestLongTask(t *testing.T) {
	h := newHost(t, diagramOf(startEnd, "S>E"))
	in := h.invocation("")
	in.Task = strings.Repeat(`"`, 600<<10) // twice as long in JSON
	if _, err := h.runner.Opening(t.Context(), in); tapedeck.KindOf(err) != tapedeck.TooLarge || !strings.Contains(err.Error(), `the variable "task" would have`) {
		t.Errorf("got %v", err)
	}
}

// TestLongAnswer: an answer of an agent that no variable takes may have any length. One that
// a variable would take is an error of its element.
func TestLongAnswer(t *testing.T) {
	long := strings.Repeat("x", 5<<20)
	task := func(attributes, inside string) string {
		return diagramOf(startEnd+`<serviceTask id="T" tapedeck:agent="a" tapedeck:prompt="p"`+attributes+`>`+inside+`</serviceTask>`, "S>T", "T>E")
	}
	mapping := func(value string) string {
		return `<extensionElements><tapedeck:output name="v" value="` + value + `"/></extensionElements>`
	}
	for name, c := range map[string]struct {
		xml   string
		fails bool
	}{
		"nothing takes it":            {task("", ""), false},
		"an output without it":        {task("", mapping("= 1 + 1")), false},
		"a variable":                  {task(` tapedeck:output="v"`, ""), true},
		"an output":                   {task("", mapping("= result")), true},
		"it must be JSON":             {task(` tapedeck:resultAs="json"`, ""), true},
		"several, into no collection": {task("", `<multiInstanceLoopCharacteristics><loopCardinality>2</loopCardinality></multiInstanceLoopCharacteristics>`), false},
	} {
		h := newHost(t, c.xml)
		h.agent = func(context.Context, tapedeck.Delegation) (tapedeck.Delegated, error) {
			return tapedeck.Delegated{Status: tapedeck.StatusComplete, Text: long}, nil
		}
		w, err := h.run()
		switch {
		case !c.fails && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.fails && (err == nil || !strings.Contains(err.Error(), "the agent's answer does not fit into a variable, which has at most 1048576 bytes") || w.Code != codeOutput):
			t.Errorf("%s: got %v, %s", name, err, w.Code)
		}
	}
}
