package workflow

import (
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
