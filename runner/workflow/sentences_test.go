package workflow

import (
	"encoding/json"
	"strings"
	"testing"
)

// nested returns a list in lists.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// TestSentences: what fails says which element it is, and why.
func TestSentences(t *testing.T) {
	instances := func(count string) string {
		return diagramOf(startEnd+`<scriptTask id="T"><multiInstanceLoopCharacteristics><loopCardinality>`+count+`</loopCardinality></multiInstanceLoopCharacteristics><script>x = 1</script></scriptTask>`, "S>T", "T>E")
	}
	const deep = `"T" failed: `
	collection := diagramOf(startEnd+`<scriptTask id="T"><multiInstanceLoopCharacteristics tapedeck:collection="= deep" tapedeck:element="e"/><script>x = 1</script></scriptTask>`, "S>T", "T>E")
	for _, c := range []struct{ name, xml, want string }{
		{"no number of instances", instances("= none"), `the number of instances of "T" is null; it must be a whole number from 0 to 10000`},
		{"a fraction of an instance", instances("= 2.5"), `the number of instances of "T" is 2.5; it must be`},
		{"a text of instances", instances("= word"), `the number of instances of "T" is the text "two"; it must be`},
		{"an object of instances", instances(`= {"a": 1}`), `the number of instances of "T" is an object; it must be`},
		{"too many instances", instances("= 10001"), `the number of instances of "T" is 10001; it must be`},
		{"a deep value", diagramOf(startEnd+script("T", "x = deep"), "S>T", "T>E"), deep + `line 1 of the script: the expression "deep" fails: it has a value that is nested more than 200 deep`},
		{"a deep value in a function", diagramOf(startEnd+script("T", "x = len(string(deep))"), "S>T", "T>E"), "fails: it has a value that is nested more than 200 deep"},
		{"a deep value in a text", diagramOf(startEnd+agentTask("T", "look at {{ deep }}", "r"), "S>T", "T>E"), deep + `the expression "deep" fails: it has a value that is nested more than 200 deep`},
		{"a deep list", collection, deep + `the expression "= deep" fails: it has a value that is nested more than 200 deep`},
	} {
		inBubble(t, func(t *testing.T) {
			h := newHost(t, c.xml, "none", nil, "word", "two", "deep", json.RawMessage(nested(500)))
			if _, err := h.run(); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"T" failed: `) || strings.Contains(err.Error(), "nil") {
				t.Errorf("%s: %v, want %s", c.name, err, c.want)
			}
		})
	}
}

// TestNestedValues: a value that no event can have is refused with its name, wherever it comes from.
func TestNestedValues(t *testing.T) {
	const want = `the variable "v" is nested more than 990 deep`
	task := `<serviceTask id="T" tapedeck:agent="a" tapedeck:prompt="x" tapedeck:output="v" tapedeck:resultAs="json"/>`
	for _, depth := range []int{990, 991, 1000} {
		inBubble(t, func(t *testing.T) {
			h := newHost(t, diagramOf(startEnd+task, "S>T", "T>E"))
			h.agent = says(nested(depth))
			if _, err := h.run(); (err == nil) != (depth <= 990) || err != nil && !strings.Contains(err.Error(), `"T" failed: `+want) {
				t.Errorf("%d: %v", depth, err)
			}
			h = newHost(t, diagramOf(startEnd, "S>E"), "v", json.RawMessage(nested(depth)))
			if _, err := h.run(); (err == nil) != (depth <= 990) || err != nil && err.Error() != want {
				t.Errorf("%d at the start: %v", depth, err)
			}
		})
	}
}

// TestEntriesOfInstances: each instance is an entry of its element, and the element as a whole is
// none.
func TestEntriesOfInstances(t *testing.T) {
	for _, sequential := range []string{"true", "false"} {
		for n, fails := range map[string]bool{"5": false, "6": true} {
			h := newHost(t, diagramOf(startEnd+`<scriptTask id="T"><multiInstanceLoopCharacteristics isSequential="`+sequential+`"><loopCardinality>`+n+`</loopCardinality></multiInstanceLoopCharacteristics><script>x = 1</script></scriptTask>`, "S>T", "T>E"))
			h.runner.options.MaxEntries = 5
			if _, err := h.run(); (err != nil) != fails || fails && !strings.Contains(err.Error(), "it was entered 5 times, which is the limit") {
				t.Errorf("%s instances, sequential %s: %v", n, sequential, err)
			}
		}
	}
}
