package workflow

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

const (
	start    = `<startEvent id="S"/>`
	end      = `<endEvent id="E"/>`
	startEnd = start + end
)

func gateway(kind, id string, more ...string) string {
	return `<` + kind + `Gateway id="` + id + `" ` + strings.Join(more, " ") + `/>`
}

func timer(tag, attrs, duration string) string {
	return `<` + tag + ` ` + attrs + `><timerEventDefinition><timeDuration>` + duration + `</timeDuration></timerEventDefinition></` + tag + `>`
}

// fails is an agent that fails.
func fails(context.Context, tapedeck.Delegation) (tapedeck.Delegated, error) {
	return tapedeck.Delegated{Status: tapedeck.StatusFailed, Message: "no luck"}, nil
}

func says(text string) func(context.Context, tapedeck.Delegation) (tapedeck.Delegated, error) {
	return func(context.Context, tapedeck.Delegation) (tapedeck.Delegated, error) {
		return tapedeck.Delegated{Status: tapedeck.StatusComplete, Text: text}, nil
	}
}

// walks are diagrams with the order of the decisions that a walk takes.
var walks = []struct {
	name, xml string
	variables []any
	agent     func(context.Context, tapedeck.Delegation) (tapedeck.Delegated, error)
	want      string // the trace
	has       string // a part of the variables as JSON
	fails     string // a part of the error
	again     bool   // what an element needs cannot be evaluated: after a restart it begins again
}{
	{
		name: "a task of an agent", xml: diagramOf(startEnd+agentTask("T", "hello {{ who }}", "said"), "S>T", "T>E"), variables: []any{"who", "world"},
		want: "+S -S +T T~ -T +E -E completed", has: `"said":"hello world"`,
	},
	{
		name: "scripts and an exclusive gateway", xml: diagramOf(startEnd+script("A", "x = n + 1")+script("B", "y = 'big'")+script("C", "y = 'small'")+gateway("exclusive", "G", `default="G_C"`),
			"S>A", "A>G", "G>B:x > 10", "G>C", "B>E", "C>E"), variables: []any{"n", 10},
		want: "+S -S +A -A +G -G +B -B +E -E completed", has: `"y":"big"`,
	},
	{
		name: "no flow is true", xml: diagramOf(startEnd+`<endEvent id="F"/>`+gateway("exclusive", "G"), "S>G", "G>E:n > 1", "G>F:n > 2"), variables: []any{"n", 0},
		want: "+S -S +G xG failed", fails: "no flow out of",
	},
	{
		name: "parallel branches join", xml: diagramOf(startEnd+gateway("parallel", "F")+gateway("parallel", "J")+script("A", "a = 1")+script("B", "b = 2"),
			"S>F", "F>A", "F>B", "A>J", "B>J", "J>E"),
		want: "+S -S +F -F +A -A +B -B +J -J +E -E completed", has: `"a":1,"b":2`,
	},
	{
		name: "inclusive branches join", xml: diagramOf(startEnd+gateway("inclusive", "F")+gateway("inclusive", "J")+script("A", "a = 1")+script("B", "b = 2")+script("C", "c = 3")+script("A2", "a = 2"),
			"S>F", "F>A:n > 0", "F>B:n > 1", "F>C:n > 5", "A>A2", "A2>J", "B>J", "C>J", "J>E"), variables: []any{"n", 3},
		want: "+S -S +F -F +A -A +B -B +A2 -A2 +J -J +E -E completed", has: `"a":2,"b":2`,
	},
	{
		name: "a loop back", xml: diagramOf(startEnd+script("A", "n = n + 1")+gateway("exclusive", "M")+gateway("exclusive", "G", `default="G_E"`), "S>M", "M>A", "A>G", "G>M:n < 3", "G>E"),
		variables: []any{"n", 0},
		want:      "+S -S +M -M +A -A +G -G +M -M +A -A +G -G +M -M +A -A +G -G +E -E completed", has: `"n":3`,
	},
	{
		name: "a sub-process with an error at its boundary", xml: diagramOf(startEnd+`<endEvent id="E2"/>`+
			`<subProcess id="P1"><startEvent id="S1"/><endEvent id="X"><errorEventDefinition errorRef="err"/></endEvent>`+flowsOf("S1>X")+`</subProcess>`+
			`<boundaryEvent id="B" attachedToRef="P1"><errorEventDefinition errorRef="err"/></boundaryEvent>`,
			"S>P1", "P1>E", "B>E2"),
		want: "+S -S +P1 +S1 -S1 +X xX !B +B -B +E2 -E2 completed",
	},
	{
		name: "an agent fails and its boundary catches that", xml: diagramOf(startEnd+agentTask("T", "x", "r")+`<endEvent id="E2"/><boundaryEvent id="B" attachedToRef="T"><errorEventDefinition/></boundaryEvent>`, "S>T", "T>E", "B>E2"),
		agent: fails, want: "+S -S +T T~ xT !B +B -B +E2 -E2 completed",
	},
	{
		name: "an agent fails and nothing catches that", xml: diagramOf(startEnd+agentTask("T", "x", "r"), "S>T", "T>E"),
		agent: fails, want: "+S -S +T T~ xT failed", fails: `"T" failed: no luck`,
	},
	{
		name: "an event sub-process catches the failure", xml: diagramOf(startEnd+agentTask("T", "x", "r")+
			`<subProcess id="H" triggeredByEvent="true"><startEvent id="HA"><errorEventDefinition/></startEvent><endEvent id="HZ"/>`+flowsOf("HA>HZ")+`</subProcess>`, "S>T", "T>E"),
		agent: fails, want: "+S -S +T T~ xT !H +H +HA -HA +HZ -HZ -H completed",
	},
	{
		name: "a result that does not fit its schema", xml: diagramOf(startEnd+`<serviceTask id="T" tapedeck:agent="a" tapedeck:prompt="x" tapedeck:output="r" tapedeck:schema='{"type":"object","required":["sum"]}'/>`, "S>T", "T>E"),
		agent: says(`{"total":1}`), want: "+S -S +T T~ xT failed", fails: "does not fit its schema",
	},
	{
		name: "a result with a schema", xml: diagramOf(startEnd+`<serviceTask id="T" tapedeck:agent="a" tapedeck:prompt="x" tapedeck:output="r" tapedeck:schema='{"type":"object","required":["sum"]}'/>`, "S>T", "T>E"),
		agent: says("```json\n{\"sum\":1}\n```"), want: "+S -S +T T~ -T +E -E completed", has: `"r":{"sum":1}`,
	},
	{
		name: "a result of 10 MB", xml: diagramOf(startEnd+agentTask("T", "x", "r"), "S>T", "T>E"),
		agent: says(strings.Repeat("x", 10<<20)), want: "+S -S +T T~ xT failed", fails: "at most 1048576",
	},
	{
		name: "a timer", xml: diagramOf(startEnd+timer("intermediateCatchEvent", `id="W"`, "PT2H"), "S>W", "W>E"),
		want: "+S -S +W W~ !W -W +E -E completed",
	},
	{
		name: "a timer at the boundary interrupts", xml: diagramOf(startEnd+`<userTask id="T"/><endEvent id="E2"/>`+timer("boundaryEvent", `id="B" attachedToRef="T"`, "PT1H"), "S>T", "T>E", "B>E2"),
		want: "+S -S +T B~ T~ !B +B -B +E2 -E2 completed",
	},
	{
		name: "a timer at the boundary does not interrupt", xml: diagramOf(startEnd+timer("intermediateCatchEvent", `id="T"`, "PT1M")+`<subProcess id="P1"><startEvent id="S1"/><endEvent id="X"/>`+
			timer("intermediateCatchEvent", `id="W"`, "PT2H")+flowsOf("S1>W", "W>X")+`</subProcess>`+
			`<endEvent id="E2"/>`+timer("boundaryEvent", `id="B" cancelActivity="false" attachedToRef="P1"`, "PT1H"), "S>T", "T>P1", "P1>E", "B>E2"),
		want: "+S -S +T T~ !T -T +P1 B~ +S1 -S1 +W W~ !B +B -B +E2 -E2 !W -W +X -X -P1 +E -E completed",
	},
	{
		name: "the first of two events", xml: diagramOf(startEnd+`<endEvent id="E2"/>`+gateway("eventBased", "G")+timer("intermediateCatchEvent", `id="A"`, "PT2H")+timer("intermediateCatchEvent", `id="B"`, "PT1H"),
			"S>G", "G>A", "G>B", "A>E", "B>E2"),
		want: "+S -S +G A~ B~ !B +B -B +E2 -E2 completed",
	},
	{
		name: "a message that the process sends itself", xml: diagramOf(startEnd+gateway("parallel", "F")+gateway("parallel", "J")+
			`<intermediateCatchEvent id="W"><messageEventDefinition messageRef="msg"/></intermediateCatchEvent><intermediateThrowEvent id="T"><messageEventDefinition messageRef="msg"/></intermediateThrowEvent>`,
			"S>F", "F>W", "F>T", "W>J", "T>J", "J>E"),
		want: "+S -S +F -F +W W~ +T -T !W -W +J -J +E -E completed",
	},
	{
		name: "a signal", xml: diagramOf(startEnd+gateway("parallel", "F")+gateway("parallel", "J")+
			`<intermediateCatchEvent id="W"><signalEventDefinition signalRef="sig"/></intermediateCatchEvent><intermediateThrowEvent id="T"><signalEventDefinition signalRef="sig"/></intermediateThrowEvent>`,
			"S>F", "F>W", "F>T", "W>J", "T>J", "J>E"),
		want: "+S -S +F -F +W W~ +T !W -T -W +J -J +E -E completed",
	},
	{
		name: "a link", xml: diagramOf(startEnd+`<intermediateThrowEvent id="L1"><linkEventDefinition name="l"/></intermediateThrowEvent><intermediateCatchEvent id="L2"><linkEventDefinition name="l"/></intermediateCatchEvent>`,
			"S>L1", "L2>E"),
		want: "+S -S +L1 -L1 +L2 -L2 +E -E completed",
	},
	{
		name: "a terminate event", xml: diagramOf(start+gateway("parallel", "F")+`<endEvent id="E"/><userTask id="U"/>`+`<endEvent id="X"><terminateEventDefinition/></endEvent>`, "S>F", "F>U", "F>X", "U>E"),
		want: "+S -S +F -F +U U~ +X -X terminated",
	},
	{
		name: "a sequential multi-instance", xml: diagramOf(startEnd+`<scriptTask id="T"><multiInstanceLoopCharacteristics isSequential="true" camunda:collection="list" camunda:elementVariable="item"/><script>sum = sum + item</script></scriptTask>`, "S>T", "T>E"),
		variables: []any{"list", []int{1, 2, 3}, "sum", 0}, want: "+S -S +T +T -T +T -T +T -T -T +E -E completed", has: `"sum":6`,
	},
	{
		name: "a parallel multi-instance with an output collection", xml: diagramOf(startEnd+`<serviceTask id="T" tapedeck:agent="a" tapedeck:prompt="n {{ item }}" tapedeck:output="r"><multiInstanceLoopCharacteristics><extensionElements><zeebe:loopCharacteristics inputCollection="= list" inputElement="item" outputCollection="all" outputElement="= r"/></extensionElements></multiInstanceLoopCharacteristics></serviceTask>`, "S>T", "T>E"),
		variables: []any{"list", []int{7, 8}}, has: `"all":["n 7","n 8"]`,
	},
	{
		name: "one of several instances fails, and the others are left", xml: diagramOf(startEnd+`<subProcess id="T"><extensionElements><tapedeck:input name="own" value="= loopCounter == 2 ? missing : 1"/></extensionElements>`+
			`<multiInstanceLoopCharacteristics><loopCardinality>4</loopCardinality></multiInstanceLoopCharacteristics><startEvent id="S1"/><userTask id="U"/>`+flowsOf("S1>U")+`</subProcess>`, "S>T", "T>E"),
		fails: `uses the variable "missing"`, again: true,
	},
	{
		name: "an empty collection", xml: diagramOf(startEnd+`<scriptTask id="T"><multiInstanceLoopCharacteristics camunda:collection="list" camunda:elementVariable="item"/><script>sum = 1</script></scriptTask>`, "S>T", "T>E"),
		variables: []any{"list", []int{}}, want: "+S -S +T -T +E -E completed",
	},
	{
		name: "a completion condition", xml: diagramOf(startEnd+`<scriptTask id="T"><multiInstanceLoopCharacteristics isSequential="true" camunda:collection="list" camunda:elementVariable="item"><completionCondition>nrOfCompletedInstances == 2</completionCondition></multiInstanceLoopCharacteristics><script>sum = sum + item</script></scriptTask>`, "S>T", "T>E"),
		variables: []any{"list", []int{1, 2, 3}, "sum", 0}, want: "+S -S +T +T -T +T -T -T +E -E completed", has: `"sum":3`,
	},
	{
		name: "a standard loop", xml: diagramOf(startEnd+`<scriptTask id="T"><standardLoopCharacteristics><loopCondition>n &lt; 3</loopCondition></standardLoopCharacteristics><script>n = n + 1</script></scriptTask>`, "S>T", "T>E"),
		variables: []any{"n", 0}, want: "+S -S +T +T -T +T -T +T -T -T +E -E completed", has: `"n":3`,
	},
	{
		name: "a call", xml: definitionsOf(processOf("P", startEnd+`<callActivity id="C" calledElement="Q"><extensionElements><zeebe:ioMapping><zeebe:input source="= n" target="m"/><zeebe:output source="= r" target="result"/></zeebe:ioMapping></extensionElements></callActivity>`, "S>C", "C>E") +
			`<process id="Q" isExecutable="false"><startEvent id="S2"/><endEvent id="E2"/>` + script("T", "r = m * 2") + flowsOf("S2>T", "T>E2") + `</process>`),
		variables: []any{"n", 21}, want: "+S -S +C +S2 -S2 +T -T +E2 -E2 -C +E -E completed", has: `"result":42`,
	},
	{
		name: "a call of another diagram, with the same ids", xml: withCalled(diagramOf(startEnd+`<callActivity id="C" calledElement="other"/>`+script("T", "n = r + 1"), "S>C", "C>T", "T>E"),
			diagramOf(startEnd+agentTask("T", "n is {{ n }}", "said")+script("U", "r = n * 2"), "S>T", "T>U", "U>E")),
		variables: []any{"n", 21}, want: "+S -S +C +other.S -other.S +other.T other.T~ -other.T +other.U -other.U +other.E -other.E -C +T -T +E -E completed", has: `"n":43,"r":42,"said":"n is 21"`,
	},
	{
		name: "a called process gets the defaults of its form", xml: withCalled(diagramOf(startEnd+`<callActivity id="C" calledElement="other"/>`, "S>C", "C>E"), diagramOf(`<startEvent id="S"><extensionElements><tapedeck:form><tapedeck:field id="m" type="integer" required="true"/><tapedeck:field id="k" type="integer" default="3"/></tapedeck:form></extensionElements></startEvent>`+end+script("T", "r = m * k"), "S>T", "T>E")),
		variables: []any{"m", 5}, has: `"r":15`,
	},
	{
		name: "a called process without a variable that its form requires", xml: withCalled(diagramOf(startEnd+`<callActivity id="C" calledElement="other"/>`, "S>C", "C>E"), diagramOf(`<startEvent id="S"><extensionElements><tapedeck:form><tapedeck:field id="m" type="integer" required="true"/><tapedeck:field id="k" type="integer" default="3"/></tapedeck:form></extensionElements></startEvent>`+end+script("T", "r = m * k"), "S>T", "T>E")),
		want: "+S -S +C xC failed", fails: `the variable m is missing: the start event "other.S" asks for it`, again: true,
	},
	{
		name: "a called process with a computed default above the limit of its field", xml: withCalled(diagramOf(startEnd+`<callActivity id="C" calledElement="other"/>`, "S>C", "C>E"), diagramOf(`<startEvent id="S"><extensionElements><tapedeck:form><tapedeck:field id="k" type="integer" max="5" default="{{ n * 3 }}"/></tapedeck:form></extensionElements></startEvent>`+end+script("T", "r = k"), "S>T", "T>E")),
		variables: []any{"n", 3}, want: "+S -S +C xC failed", fails: "the default of the field k is \"9\", which is above its largest value 5", again: true,
	},
	{
		name: "a called process whose required field has an empty default", xml: withCalled(diagramOf(startEnd+`<callActivity id="C" calledElement="other"/>`, "S>C", "C>E"), diagramOf(`<startEvent id="S"><extensionElements><tapedeck:form><tapedeck:field id="k" required="true" default=""/></tapedeck:form></extensionElements></startEvent>`+end+script("T", "r = k"), "S>T", "T>E")),
		variables: []any{"n", 3}, want: "+S -S +C xC failed", fails: "the default of the field k is empty, and the field is required", again: true,
	},
	{
		name: "a called process whose text field has a number as default", xml: withCalled(diagramOf(startEnd+`<callActivity id="C" calledElement="other"/>`, "S>C", "C>E"), diagramOf(`<startEvent id="S"><extensionElements><tapedeck:form><tapedeck:field id="k" default="{{ n * 3 }}"/></tapedeck:form></extensionElements></startEvent>`+end+script("T", "r = k"), "S>T", "T>E")),
		variables: []any{"n", 3}, has: `"r":"9"`,
	},
	{
		name: "a variable that is not there yet", xml: diagramOf(startEnd+script("T", "y = x + 1")+script("U", "x = 1"), "S>T", "T>U", "U>E"),
		want: "+S -S +T xT failed", fails: "x",
	},
	{
		name: "without a start event, all begins to which no flow leads", xml: diagramOf(end+gateway("parallel", "J")+script("A", "a = 1")+agentTask("B", "b", "b")+script("C", "c = 1")+`<endEvent id="X"><terminateEventDefinition/></endEvent>`+
			`<intermediateThrowEvent id="L1"><linkEventDefinition name="l"/></intermediateThrowEvent><intermediateCatchEvent id="L2"><linkEventDefinition name="l"/></intermediateCatchEvent>`+
			`<boundaryEvent id="R" attachedToRef="B"><errorEventDefinition/></boundaryEvent><endEvent id="E2"/>`+
			`<subProcess id="H" triggeredByEvent="true"><startEvent id="HA"><errorEventDefinition/></startEvent><endEvent id="HZ"/>`+flowsOf("HA>HZ")+`</subProcess>`,
			"A>J", "B>L1", "L2>J", "C>J", "J>E", "R>E2"),
		want: "+A -A +B +C -C B~ -B +L1 -L1 +L2 -L2 +J -J +E -E completed", has: `"a":1,"b":"b","c":1`,
	},
	{
		name: "instances of a sub-process without a start event", xml: diagramOf(startEnd+`<subProcess id="P1"><multiInstanceLoopCharacteristics isSequential="true"><loopCardinality>2</loopCardinality></multiInstanceLoopCharacteristics>`+
			`<userTask id="U"/><boundaryEvent id="B" attachedToRef="U"><timerEventDefinition><timeDuration>PT1H</timeDuration></timerEventDefinition></boundaryEvent>`+script("A", "a = loopCounter")+`<endEvent id="X"/>`+flowsOf("U>X", "B>X", "A>X")+`</subProcess>`, "S>P1", "P1>E"),
		want: "+S -S +P1 +P1 +U B~ U~ +A -A +X -X !B +B -B +X -X -P1 +P1 +U B~ U~ +A -A +X -X !B +B -B +X -X -P1 -P1 +E -E completed", has: `"a":2`,
	},
	{
		name: "a called process without a start event", xml: withCalled(diagramOf(startEnd+`<callActivity id="C" calledElement="other"/>`, "S>C", "C>E"),
			diagramOf(end+script("T", "r = n * 2")+script("U", "q = n * 3"), "T>E", "U>E")),
		variables: []any{"n", 21}, want: "+S -S +C +other.T -other.T +other.U -other.U +other.E -other.E +other.E -other.E -C +E -E completed", has: `"n":21,"q":63,"r":42`,
	},
	{
		name: "without a start event, a message from one branch to another", xml: diagramOf(end+`<receiveTask id="W" messageRef="msg"/><intermediateThrowEvent id="T"><messageEventDefinition messageRef="msg"/></intermediateThrowEvent>`+gateway("inclusive", "J"), "W>J", "T>J", "J>E"),
		want: "+W W~ +T -T !W -W +J -J +E -E completed",
	},
	{
		name: "an inclusive gateway in a loop", xml: diagramOf(startEnd+gateway("inclusive", "J")+gateway("exclusive", "G", `default="G_E"`)+script("A", "n = n + 1"), "S>J", "J>A", "A>G", "G>J:n < 2", "G>E"),
		variables: []any{"n", 0}, has: `"n":2`,
	},
}

// withCalled adds the diagram other to a diagram that calls it.
func withCalled(xml, other string) string {
	out, err := bpmn.Embed([]byte(xml), func(string) ([]byte, error) { return []byte(other), nil })
	if err != nil {
		panic(err)
	}
	return string(out)
}

func TestWalks(t *testing.T) {
	for _, tt := range walks {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h := newHost(t, withEvents(tt.xml), tt.variables...)
				h.agent = tt.agent
				w, err := h.run()
				switch {
				case tt.fails == "" && err != nil:
					t.Errorf("it failed: %v", err)
				case tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)):
					t.Errorf("got %v, want %s", err, tt.fails)
				}
				if got := h.trace(); tt.want != "" && got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
				if got := values(w); !strings.Contains(got, tt.has) {
					t.Errorf("the variables are %s, want %s", got, tt.has)
				}
			})
		})
	}
}

// withEvents adds what events refer to.
func withEvents(xml string) string {
	return strings.Replace(xml, "<process ", `<error id="err" name="Broken" errorCode="broken"/><message id="msg" name="hello"/><signal id="sig" name="stop"/><process `, 1)
}

// TestEndlessLoop: an element can be entered so often and not more.
func TestEndlessLoop(t *testing.T) {
	h := newHost(t, diagramOf(startEnd+gateway("exclusive", "M")+timer("intermediateCatchEvent", `id="W"`, "PT0S")+gateway("exclusive", "G", `default="G_M"`), "S>M", "M>W", "W>G", "G>M", "G>E:false"))
	h.runner.options.MaxEntries = 50
	if _, err := h.run(); err == nil || !strings.Contains(err.Error(), "it was entered 50 times, which is the limit") {
		t.Errorf("got %v", err)
	}
}

// TestUserTask: the form of the question, the answer, and its variables.
func TestUserTask(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, diagramOf(startEnd+`<userTask id="U" name="Approve"><extensionElements><tapedeck:form><tapedeck:field id="sum" type="number" required="true" min="1"/><tapedeck:field id="why" default="none"/></tapedeck:form></extensionElements></userTask>`, "S>U", "U>E"), "sum", 5)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if err := h.begin(ctx, ""); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- h.walk(ctx, "") }()
		time.Sleep(time.Second)
		var q payload.PermissionRequested
		for ev := range h.events(func(e *tapedeck.Event) bool { return e.Type == tapedeck.PermissionRequested }) {
			q, _ = payload.DecodeAs[payload.PermissionRequested](ev)
		}
		if q.Message != "Approve" || len(q.Form) != 2 || string(q.Form[0].Default) != "5" || *q.Form[0].Min != 1 {
			t.Errorf("the question is %+v", q)
		}
		h.send(payload.PermissionAnswered{Choice: tapedeck.Choice{ID: q.ID, Option: "submit", Input: tapedeck.Members{"sum": encode(7)}}})
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := values(h.state()); got != `{"sum":7,"why":"none"}` {
			t.Error(got)
		}
	})
}

// TestMessages: a message waits for its element, and one of another name or another
// correlation is not its.
func TestMessages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, diagramOf(startEnd+timer("intermediateCatchEvent", `id="T"`, "PT1H")+`<receiveTask id="W" messageRef="m"/>`, "S>T", "T>W", "W>E"), "order", "7")
		h.config.BPMN = strings.Replace(h.config.BPMN, "<process ", `<message id="m" name="paid" tapedeck:correlation="= order"/><process `, 1)
		if err := h.begin(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- h.walk(context.Background(), "") }()
		time.Sleep(time.Minute)
		h.send(payload.WorkflowMessage{Name: "other"})
		h.send(payload.WorkflowMessage{Name: "paid", Correlation: "8", Variables: tapedeck.Members{"sum": encode(1)}})
		h.send(payload.WorkflowMessage{Name: "paid", Correlation: "7", Variables: tapedeck.Members{"sum": encode(2)}})
		if err := <-ended; err != nil {
			t.Error(err)
		}
		w := h.state()
		if string(w.Variables["sum"]) != "2" || len(w.Messages) != 2 {
			t.Errorf("the variables are %s, %d messages wait", values(w), len(w.Messages))
		}
	})
}

// TestThreadNames: no two activations get one thread, whatever elements are called.
func TestThreadNames(t *testing.T) {
	h := newHost(t, diagramOf(startEnd+gateway("exclusive", "M")+agentTask("T", "x", "a")+agentTask("T_2", "y", "b")+script("N", "n = n + 1")+gateway("exclusive", "G", `default="G_E"`),
		"S>M", "M>T", "T>T_2", "T_2>N", "N>G", "G>M:n < 2", "G>E"), "n", 0)
	if _, err := h.run(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"thread_T", "thread_T_2", "thread_T_3", "thread_T_2_2"} {
		if h.calls[name] != 1 {
			t.Errorf("%s: %d", name, h.calls[name])
		}
	}
}

// TestRefused: a task that cannot run begins nothing.
func TestRefused(t *testing.T) {
	good := diagramOf(startEnd+agentTask("T", "x", "r"), "S>T", "T>E")
	for _, tt := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.BPMN = "" }, "has no diagram"},
		{func(c *Config) { c.BPMN = "{}" }, "is JSON"},
		{func(c *Config) { c.BPMN = "<no" }, ""},
		{func(c *Config) { c.Name = "stored" }, "has a diagram and the name of one"},
		{func(c *Config) { c.BPMN, c.Name = "", "stored" }, "no stored workflow"},
		{func(c *Config) { c.Agents = map[string]string{"T": "nobody"} }, `no agent "nobody"`},
		{func(c *Config) { c.Agents = map[string]string{"X": "a"} }, `"X"`},
		{func(c *Config) { c.BPMN = diagramOf(startEnd+script("T", "y = x + 1"), "S>T", "T>E") }, `element "T": line 1 of the script: the expression "x + 1" uses the variable "x", which does not exist`},
		{func(c *Config) { c.Variables["big"] = encode(strings.Repeat("x", 2<<20)) }, "the variable"},
	} {
		h := newHost(t, good)
		tt.change(&h.config)
		err := h.begin(t.Context(), "")
		if err == nil || !strings.Contains(err.Error(), tt.want) || len(h.log) > 0 {
			t.Errorf("got %v and %d events, want %s", err, len(h.log), tt.want)
		}
	}
	h := newHost(t, good)
	if err := h.begin(t.Context(), "inv_0"); tapedeck.KindOf(err) != tapedeck.Conflict {
		t.Errorf("got %v", err)
	}
	if _, err := newHost(t, good).run(); errors.Is(err, errCut) || err != nil {
		t.Error(err)
	}
}

// TestAgentsOfAllDiagrams: agents that the runner has for all diagrams are used where
// they fit, and agents of the task come first.
func TestAgentsOfAllDiagrams(t *testing.T) {
	h := newHost(t, diagramOf(startEnd+`<serviceTask id="T" tapedeck:prompt="x" tapedeck:output="r"><extensionElements><zeebe:taskDefinition type="review"/></extensionElements></serviceTask>`, "S>T", "T>E"))
	h.runner.options.Agents = map[string]string{"review": "b", "Other": "scout"}
	used := ""
	h.agent = func(_ context.Context, d tapedeck.Delegation) (tapedeck.Delegated, error) {
		used += d.Agent
		return tapedeck.Delegated{Status: tapedeck.StatusComplete}, nil
	}
	if _, err := h.run(); err != nil {
		t.Fatal(err)
	}
	h.config.Agents, h.log, h.once = map[string]string{"T": "a"}, nil, map[string]tapedeck.Delegated{}
	if _, err := h.run(); err != nil {
		t.Fatal(err)
	}
	if used != "ba" {
		t.Errorf("the agents were %s", used)
	}
}
