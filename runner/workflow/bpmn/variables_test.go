package bpmn_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

const agentT = `<serviceTask id="t" tapedeck:agent="a" tapedeck:prompt="%s" tapedeck:output="out">%s</serviceTask>`

// branch is a gateway after the task, with a condition.
func branch(condition string) string {
	return `<exclusiveGateway id="g" default="no"/><endEvent id="e2"/><sequenceFlow id="in" sourceRef="t" targetRef="g"/>` +
		"\n" + `<sequenceFlow id="yes" name="Yes" sourceRef="g" targetRef="e"><conditionExpression>` + condition + `</conditionExpression></sequenceFlow><sequenceFlow id="no" sourceRef="g" targetRef="e2"/>`
}

func extended(inside string) string { return "<extensionElements>" + inside + "</extensionElements>" }

// Each case has what is in a process, and the variables that nothing sets, each with the
// element that uses it. "given" is given by the run.
var variableCases = []struct{ name, inside, want string }{
	{"a prompt", fmt.Sprintf(agentT, "{{ tpoic }}", ""), "t tpoic"},
	{"given", fmt.Sprintf(agentT, "{{ given }} {{ task }}", ""), ""},
	{"a condition", branch("= price > 10"), "yes price"},
	{"a condition with what is set", fmt.Sprintf(agentT, "x", "") + branch("= out.price > 10 and given"), ""},
	{"the condition of a default flow is not evaluated", strings.Replace(branch("= price"), `default="no"`, `default="yes"`, 1), ""},
	{"a script", `<scriptTask id="t"><script>a = 1
b = a + c</script></scriptTask>`, "t c"},
	{"a script that needs its own variable", `<scriptTask id="t"><script>count = count + 1</script></scriptTask>`, "t count"},
	{"a variable that may be missing", `<scriptTask id="t"><script>a = x ?? 1
b = y == null ? 1 : y
c = z?.name
d = get_or_else(u, 1)
e = is defined(v)</script></scriptTask>`, ""},
	{"set by another element", `<scriptTask id="t"><script>a = b</script></scriptTask><scriptTask id="o"><script>b = 1</script></scriptTask>`, ""},
	{"a form", `<userTask id="t">` + extended(`<tapedeck:form><tapedeck:field id="ok" type="boolean"/><tapedeck:field id="shown" readonly="true" default="= draft"/></tapedeck:form>`) + `</userTask>` + branch("= ok and shown"), "t draft, yes shown"},
	{"inputs are for their element", `<scriptTask id="t">` + extended(`<zeebe:ioMapping><zeebe:input source="= given" target="inner"/><zeebe:input source="= inner" target="two"/></zeebe:ioMapping>`) + `<script>r = two</script></scriptTask>` + branch("= inner = 1"), "yes inner"},
	{"inputs of a sub-process are for what is in it", `<subProcess id="t">` + extended(`<zeebe:ioMapping><zeebe:input source="= given" target="inner"/></zeebe:ioMapping>`) + `<startEvent id="s1"/><scriptTask id="i"><script>r = inner + 1</script></scriptTask><sequenceFlow id="x" sourceRef="s1" targetRef="i"/></subProcess>`, ""},
	{"only outputs leave an element", fmt.Sprintf(agentT, "x", extended(`<tapedeck:output name="score" value="= result.score + out.n"/>`)) + branch("= score > out"), "yes out"},
	{"an output of what nothing sets", fmt.Sprintf(agentT, "x", extended(`<tapedeck:output name="score" value="= answer"/>`)), "t answer"},
	{"a list", `<scriptTask id="t"><multiInstanceLoopCharacteristics tapedeck:collection="= items" tapedeck:element="item" tapedeck:outputCollection="all" tapedeck:outputElement="= r + r2"><completionCondition>numberOfCompletedInstances = 2</completionCondition></multiInstanceLoopCharacteristics><script>r = item + loopCounter</script></scriptTask>` + branch("= count(all) = 2 and r = 1"), "t items, t r2, yes r"},
	{"an element is for its instance", `<userTask id="t"><multiInstanceLoopCharacteristics tapedeck:collection="= [1]" tapedeck:element="item"/></userTask>` + branch("= item = 1"), "yes item"},
	{"a timer", `<boundaryEvent id="b" attachedToRef="t"><timerEventDefinition><timeDuration>= wait</timeDuration></timerEventDefinition></boundaryEvent>`, "b wait"},
	{"a caught error", `<boundaryEvent id="b" attachedToRef="t"><errorEventDefinition camunda:errorMessageVariable="why"/></boundaryEvent><scriptTask id="x"><script>y = why + code</script></scriptTask><sequenceFlow id="bx" sourceRef="b" targetRef="x"/>`, "x code"},
	{"elements that no run reaches", `<scriptTask id="t"><script>a = 1</script></scriptTask></process><process id="other"><startEvent id="os"/><scriptTask id="ot"><script>a = never</script></scriptTask><sequenceFlow id="of" sourceRef="os" targetRef="ot"/>`, ""},
	{"a called process", `<callActivity id="t" calledElement="other">` + extended(`<zeebe:ioMapping><zeebe:input source="= given" target="inner"/></zeebe:ioMapping>`) + `</callActivity>` + branch("= set = 1") + `</process><process id="other"><startEvent id="os"/><scriptTask id="ot"><script>set = inner + never</script></scriptTask><sequenceFlow id="of" sourceRef="os" targetRef="ot"/>`, "ot never"},
}

// TestVariablesThatDoNotExist: what no element sets and no run gives is found, where it is used.
func TestVariablesThatDoNotExist(t *testing.T) {
	given := func(name string) bool { return name == "given" || name == "task" }
	for _, c := range variableCases {
		t.Run(c.name, func(t *testing.T) {
			d, err := bpmn.Read(strings.NewReader(whole(c.inside)), bpmn.Options{Process: "p"})
			if err != nil {
				t.Fatal(problems(err))
			}
			var got []string
			found, fromMessage := d.Missing(given)
			for _, p := range found {
				name := strings.Split(p.Message, `"`)
				got = append(got, p.Element+" "+name[len(name)-2])
				if p.Line < 1 || p.Hint == "" || !strings.Contains(p.Message, "does not exist") {
					t.Errorf("the problem is %+v", p)
				}
			}
			if text := strings.Join(got, ", "); text != c.want || fromMessage {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
			if err := d.CheckVariables(given); (err == nil) != (c.want == "") {
				t.Errorf("the check says %v", err)
			}
		})
	}
}

// TestVariablesOfMessages: where a message can bring a variable, a run is not refused, and
// a check says which variables are meant.
func TestVariablesOfMessages(t *testing.T) {
	inside := `<receiveTask id="t"/>` + branch("= paid")
	d, err := bpmn.Read(strings.NewReader(whole(inside)), bpmn.Options{})
	if err != nil {
		t.Fatal(problems(err))
	}
	if err := d.CheckVariables(func(string) bool { return false }); err != nil {
		t.Error(err)
	}
	same(t, "wanted", d.Wanted(), []bpmn.WantedVariable{{Name: "paid", Element: "yes", Line: 6, FromMessage: true}})
}

// TestErrorOfVariables: the error has all places, each with line, element and hint.
func TestErrorOfVariables(t *testing.T) {
	d, err := bpmn.Read(strings.NewReader(whole(fmt.Sprintf(agentT, "{{ a }}", "")+branch("= a > b"))), bpmn.Options{})
	if err != nil {
		t.Fatal(problems(err))
	}
	err = d.CheckVariables(func(string) bool { return false })
	var e *tapedeck.Error
	if !errors.As(err, &e) || e.Kind != tapedeck.Invalid || len(e.Problems) != 3 {
		t.Fatalf("got %v, %+v", err, e)
	}
	want := `line 5: element "t": the expression "a" uses the variable "a", which does not exist (and 2 more)`
	if e.Message != want || e.Problems[1].Line != 6 || e.Problems[1].Name != "Yes" || !strings.Contains(e.Hint, `a ?? "none"`) {
		t.Errorf("got %s, %+v", e.Message, e.Problems)
	}
	same(t, "wanted", d.Wanted(), []bpmn.WantedVariable{{Name: "a", Element: "t", Line: 5}, {Name: "b", Element: "yes", Line: 6}})
}

// TestManyVariables: a file with very many names is checked, and no error has more than 50
// problems.
func TestManyVariables(t *testing.T) {
	var inputs strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&inputs, `<tapedeck:input name="v%d" value="= w%d"/>`, i, i)
	}
	d, err := bpmn.Read(strings.NewReader(whole(`<userTask id="t">`+extended(inputs.String())+`</userTask>`)), bpmn.Options{})
	if err != nil {
		t.Fatal(problems(err))
	}
	err = d.CheckVariables(func(string) bool { return false })
	var e *bpmn.Error
	if !errors.As(err, &e) || len(e.Problems) != 50 || e.More != 19_950 {
		t.Errorf("got %v", err)
	}
	if n := len(d.Wanted()); n != 200 {
		t.Errorf("%d variables are wanted", n)
	}
}
