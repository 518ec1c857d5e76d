package bpmn_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

const head = `<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:tapedeck="https://tapedeck.dev/bpmn" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" xmlns:camunda="http://camunda.org/schema/1.0/bpmn" xmlns:flowable="http://flowable.org/bpmn" xmlns:other="http://example.com/other" id="defs">
`

// headElement is head without the declaration.
var headElement = strings.SplitAfterN(head, "\n", 2)[1]

// whole makes a file of what is in a process, in which s, t and e are connected: the
// start, a task that the case may replace, and the end.
func whole(inside string) string {
	text := head + "<process id=\"p\" isExecutable=\"true\">\n"
	for id, element := range map[string]string{"s": `<startEvent id="s"/>`, "t": `<userTask id="t"/>`, "e": `<endEvent id="e"/>`} {
		if !strings.Contains(inside, `id="`+id+`"`) {
			text += element
		}
	}
	return text + `<sequenceFlow id="f1" sourceRef="s" targetRef="t"/><sequenceFlow id="f2" sourceRef="t" targetRef="e"/>` + "\n" + inside + "\n</process></definitions>"
}

// manyTasks are n tasks without flows.
func manyTasks(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `<task id="n%d"/>`, i)
	}
	return b.String()
}

// ext is a task with extension elements.
func ext(kind, inside string) string {
	return fmt.Sprintf("<%s id=\"t\"><extensionElements>\n%s\n</extensionElements></%s>", kind, inside, kind)
}

// Each case has what is in a process, the element that the problem names and a part of
// its sentence. The problem is on the line with the comment "here", or on the first line
// of what is inside.
var refusals = []struct{ name, inside, element, sentence string }{
	{"ad hoc", `<adHocSubProcess id="a"/>`, "a", "ad hoc sub-processes are not supported"},
	{"transaction", `<transaction id="a"/>`, "a", "transactions are not supported"},
	{"complex gateway", `<complexGateway id="a"/>`, "a", "complex gateways are not supported"},
	{"choreography", `<choreographyTask id="a"/>`, "a", "choreographies are not supported"},
	{"unknown element", "<receiveTask id=\"w\"/>\n<servceTask id=\"a\"/><!--here-->", "a", "servceTask is no element of BPMN 2.0"},
	{"unknown element in a task", "<userTask id=\"t\">\n<foo/><!--here--></userTask>", "t", "foo is no element of BPMN 2.0 that may be in userTask"},
	{"element of BPMN in another namespace", "<other:task id=\"o\"/>", "p", `the element task of the namespace "http://example.com/other" is not known`},
	{"element without a namespace", "<note xmlns=\"\"/>", "p", `the element note of the namespace "" is not known`},
	{"prefix that is not declared", "<toll:note/>", "p", `the element note of the namespace "toll" is not known`},
	{"element of an engine", "<task id=\"u\">\n<zeebe:taskDefinition type=\"a\"/><!--here--></task>", "u", `the element taskDefinition of the namespace "http://camunda.org/schema/zeebe/1.0" is not known`},
	{"element of another engine", `<task id="u"><d:rule xmlns:d="http://www.jboss.org/drools"/></task>`, "u", `the element rule of the namespace "http://www.jboss.org/drools" is not known`},
	{"element of an older BPMN", `<d:note xmlns:d="http://schema.omg.org/spec/BPMN/2.0"/>`, "p", "the element note of the namespace"},
	{"element in a condition", `<sequenceFlow id="f" sourceRef="t" targetRef="e"><conditionExpression id="c">a <other:and/> b</conditionExpression></sequenceFlow>`, "c", "the element and of the namespace"},
	{"element in a script", `<scriptTask id="t"><script id="c">a = <other:x/>1</script></scriptTask>`, "c", "the element x of the namespace"},
	{"element in a time", `<intermediateCatchEvent id="t"><timerEventDefinition><timeDuration id="c">PT1H<other:x/></timeDuration></timerEventDefinition></intermediateCatchEvent>`, "c", "the element x of the namespace"},
	{"task in an element of a tool", `<other:group><task id="u"/></other:group>`, "", `the element task is in the element group of the namespace "http://example.com/other"`},
	{"worker in an element of a tool", `<other:group><other:x><zeebe:taskDefinition type="a"/></other:x></other:group>`, "", "the element taskDefinition is in the element group of the namespace"},
	{"prompt in an element of a tool", `<serviceTask id="t" tapedeck:agent="x"><documentation><other:p>Do it.</other:p></documentation></serviceTask>`, "t", "the documentation of the task would be its prompt, and has elements in it that are not read"},
	{"no id", `<task/>`, "", "the element has no id"},
	{"bad id", `<task id="a b"/>`, "a b", `"a b" is not an id`},
	{"two ids", "<userTask id=\"t\"/>\n<task id=\"t\"/><!--here-->", "t", "the id t is not unique"},
	{"flow to nowhere", `<sequenceFlow id="f" sourceRef="t" targetRef="zz"/>`, "f", "targetRef of the flow is zz, which is no element"},
	{"flow from nowhere", `<sequenceFlow id="f" targetRef="t"/>`, "f", "the flow has no sourceRef"},
	{"flow into a sub-process", `<subProcess id="sp"><startEvent id="a"/></subProcess><sequenceFlow id="f" sourceRef="t" targetRef="a"/>`, "f", "in another process or sub-process"},
	{"two starts", "\n<startEvent id=\"s2\"/><!--here--><sequenceFlow id=\"f\" sourceRef=\"s2\" targetRef=\"t\"/>", "s2", "2 start events without a trigger: s, s2"},
	{"two triggers", "<startEvent id=\"s\"><messageEventDefinition/></startEvent>\n<startEvent id=\"s2\"><timerEventDefinition/></startEvent><!--here-->", "s2", "2 start events with a trigger"},
	{"flow to the start", `<startEvent id="s"/><sequenceFlow id="f" sourceRef="t" targetRef="s"/>`, "s", "a flow leads to a start event"},
	{"flow from the end", "\n<endEvent id=\"e\"/><!--here--><sequenceFlow id=\"f\" sourceRef=\"e\" targetRef=\"t\"/>", "e", "a flow leaves an end event"},
	{"cycle", "\n<exclusiveGateway id=\"g\"/><!--here--><task id=\"u\"/><sequenceFlow id=\"f3\" sourceRef=\"t\" targetRef=\"g\"/><sequenceFlow id=\"f4\" sourceRef=\"g\" targetRef=\"u\"/><sequenceFlow id=\"f5\" sourceRef=\"u\" targetRef=\"g\"/>", "g", "the cycle g, u never ends"},
	{"cycle by links", "<exclusiveGateway id=\"t\"/><!--here--><intermediateThrowEvent id=\"a\"><linkEventDefinition name=\"x\"/></intermediateThrowEvent><intermediateCatchEvent id=\"b\"><linkEventDefinition name=\"x\"/></intermediateCatchEvent><sequenceFlow id=\"f3\" sourceRef=\"t\" targetRef=\"a\"/><sequenceFlow id=\"f4\" sourceRef=\"b\" targetRef=\"t\"/>", "t", "the cycle t, a, b never ends"},
	{"default", `<exclusiveGateway id="t" default="f1"/>`, "t", "its default flow is f1, which does not leave it"},
	{"condition", `<sequenceFlow id="f" sourceRef="t" targetRef="e"><conditionExpression>a &gt;</conditionExpression></sequenceFlow>`, "f", "cannot be read"},
	{"condition language", `<sequenceFlow id="f" sourceRef="t" targetRef="e"><conditionExpression language="groovy">a</conditionExpression></sequenceFlow>`, "f", `conditions in "groovy"`},
	{"several triggers", `<intermediateCatchEvent id="t"><messageEventDefinition/><signalEventDefinition/></intermediateCatchEvent>`, "t", "several triggers"},
	{"no trigger", `<intermediateCatchEvent id="t"/>`, "t", "the event has no trigger"},
	{"escalation that is awaited", `<intermediateCatchEvent id="t"><escalationEventDefinition/></intermediateCatchEvent>`, "t", "an intermediateCatchEvent cannot have an escalation trigger"},
	{"escalation that is not there", `<intermediateThrowEvent id="t"><escalationEventDefinition escalationRef="x"/></intermediateThrowEvent>`, "t", `the file has no escalation "x"`},
	{"escalation that is an error", `<intermediateThrowEvent id="t"><escalationEventDefinition escalationRef="x"/></intermediateThrowEvent></process><error id="x"/><process id="q">`, "t", `the file has no escalation "x"`},
	{"computed escalation", `<endEvent id="e"><escalationEventDefinition escalationRef="x"/></endEvent></process><escalation id="x" escalationCode="= code"/><process id="q">`, "e", `the escalation code "= code" is an expression`},
	{"escalation of a task", `<boundaryEvent id="b" attachedToRef="t"><escalationEventDefinition/></boundaryEvent>`, "b", "a userTask throws no escalation, so the boundary event at t never happens"},
	{"escalation at the start", `<startEvent id="s"><escalationEventDefinition/></startEvent>`, "s", "only an event sub-process can begin with an escalation"},
	{"error that is thrown in between", `<intermediateThrowEvent id="t"><errorEventDefinition/></intermediateThrowEvent>`, "t", "an intermediateThrowEvent cannot have an error trigger"},
	{"conditional", `<intermediateCatchEvent id="t"><conditionalEventDefinition/></intermediateCatchEvent>`, "t", "conditional events are not supported"},
	{"cancel", `<endEvent id="e"><cancelEventDefinition/></endEvent>`, "e", "cancel events belong to transactions"},
	{"unknown trigger", `<endEvent id="e"><fooEventDefinition/></endEvent>`, "e", "fooEventDefinition is no trigger"},
	{"trigger elsewhere", `<intermediateCatchEvent id="t"><eventDefinitionRef>x</eventDefinitionRef></intermediateCatchEvent>`, "t", `the file has no event definition "x"`},
	{"timer at an end", `<endEvent id="e"><timerEventDefinition/></endEvent>`, "e", "an endEvent cannot have a timer trigger"},
	{"timer without a time", "<intermediateCatchEvent id=\"t\">\n<timerEventDefinition/><!--here--></intermediateCatchEvent>", "t", "the timer has no time"},
	{"timer with a wrong time", "<intermediateCatchEvent id=\"t\"><timerEventDefinition>\n<timeDuration>5 minutes</timeDuration><!--here--></timerEventDefinition></intermediateCatchEvent>", "t", `"5 minutes" is not a duration`},
	{"timer with two times", "<intermediateCatchEvent id=\"t\"><timerEventDefinition><timeDuration>PT1S</timeDuration><timeCycle>R/PT1S</timeCycle></timerEventDefinition></intermediateCatchEvent>", "t", "more than one time"},
	{"cron", "<intermediateCatchEvent id=\"t\"><timerEventDefinition><timeCycle>0 0 9 * * ?</timeCycle></timerEventDefinition></intermediateCatchEvent>", "t", "is not a cycle"},
	{"message that is not there", `<receiveTask id="t" messageRef="m"/>`, "t", `the file has no message "m"`},
	{"link without a catch", `<intermediateThrowEvent id="a"><linkEventDefinition name="x"/></intermediateThrowEvent><sequenceFlow id="f" sourceRef="t" targetRef="a"/>`, "a", `no event catches the link "x"`},
	{"link with two", `<intermediateCatchEvent id="a"><linkEventDefinition name="x"/></intermediateCatchEvent><intermediateCatchEvent id="b"><linkEventDefinition name="x"/></intermediateCatchEvent>`, "b", `two events catch the link "x": a and b`},
	{"link without a name", `<intermediateThrowEvent id="a"><linkEventDefinition/></intermediateThrowEvent><sequenceFlow id="f" sourceRef="t" targetRef="a"/>`, "a", "the link event has no name"},
	{"boundary without an activity", `<boundaryEvent id="b" attachedToRef="e"><errorEventDefinition/></boundaryEvent>`, "b", `attached to "e", which is no activity`},
	{"error that does not interrupt", `<boundaryEvent id="b" attachedToRef="t" cancelActivity="false"><errorEventDefinition/></boundaryEvent>`, "b", "always interrupts"},
	{"event-based gateway", "<eventBasedGateway id=\"g\"/><sequenceFlow id=\"f\" sourceRef=\"t\" targetRef=\"g\"/>\n<sequenceFlow id=\"h\" sourceRef=\"g\" targetRef=\"e\"/><!--here-->", "h", "leads to e, which waits for no event"},
	{"event sub-process without a trigger", "<subProcess id=\"sp\" triggeredByEvent=\"true\">\n<startEvent id=\"a\"/><!--here--></subProcess>", "a", "needs a trigger"},
	{"event sub-process with a flow", `<subProcess id="sp" triggeredByEvent="true"><startEvent id="a"><messageEventDefinition/></startEvent></subProcess><sequenceFlow id="f" sourceRef="t" targetRef="sp"/>`, "sp", "an event sub-process has no flows"},
	{"sub-process with a trigger", "<subProcess id=\"t\">\n<startEvent id=\"a\"><messageEventDefinition/></startEvent><!--here--></subProcess>", "a", "the start event of a sub-process has no trigger"},
	{"sub-process without a start", `<subProcess id="t"><endEvent id="a"/><task id="b"/><task id="c"/><sequenceFlow id="f3" sourceRef="b" targetRef="c"/><sequenceFlow id="f4" sourceRef="c" targetRef="b"/></subProcess>`, "t", "the sub-process has no start event, and nothing else where it could begin"},
	{"sub-process of events alone", `<subProcess id="t"><intermediateCatchEvent id="a"><linkEventDefinition name="x"/></intermediateCatchEvent><subProcess id="b" triggeredByEvent="true"><startEvent id="c"><signalEventDefinition/></startEvent></subProcess></subProcess>`, "t", "nothing else where it could begin"},
	{"many starts", `<subProcess id="t">` + manyTasks(1001) + `</subProcess>`, "t", "no flow leads to 1001 of its elements; it can begin at 1000 at most"},
	{"one of two messages begins it", "<subProcess id=\"t\"><task id=\"a\"/>\n<receiveTask id=\"b\" instantiate=\"true\"/><!--here--></subProcess>", "b", "begins either with the event of this element or at another one: a, b"},
	{"gateway for all events", `<eventBasedGateway id="t" eventGatewayType="Parallel"/>`, "t", "an event-based gateway that waits for all its events is not supported"},
	{"no end", `<startEvent id="s"/><sequenceFlow id="f3" sourceRef="e" targetRef="t"/><intermediateCatchEvent id="e"><signalEventDefinition/></intermediateCatchEvent>`, "p", "the process has no end"},
	{"loop without an end", "<userTask id=\"t\">\n<standardLoopCharacteristics/><!--here--></userTask>", "t", "neither a condition nor a maximum"},
	{"instances of nothing", "<userTask id=\"t\">\n<multiInstanceLoopCharacteristics/><!--here--></userTask>", "t", "neither a collection nor a number"},
	{"instances of both", `<userTask id="t"><multiInstanceLoopCharacteristics tapedeck:collection="a"><loopCardinality>3</loopCardinality></multiInstanceLoopCharacteristics></userTask>`, "t", "a collection and a number"},
	{"output collection alone", `<userTask id="t"><multiInstanceLoopCharacteristics tapedeck:collection="a" tapedeck:outputCollection="b"/></userTask>`, "t", "belong together"},
	{"script in JavaScript", `<scriptTask id="t" scriptFormat="text/javascript"><script>x</script></scriptTask>`, "t", `scripts in "text/javascript" are not supported`},
	{"no script", `<scriptTask id="t"/>`, "t", "the script task has no script"},
	{"script without a variable", `<scriptTask id="t"><script>1 + 2</script></scriptTask>`, "t", "no variable gets the value"},
	{"script that is wrong", `<scriptTask id="t"><script>a = 1 +</script></scriptTask>`, "t", "line 1 of the script"},
	{"call of another file", `<callActivity id="t" calledElement="q"/>`, "t", `runs the process "q", which the file does not have`},
	{"call of an expression", `<callActivity id="t" calledElement="${q}"/>`, "t", "computes which process"},
	{"misspelt attribute", `<serviceTask id="t" tapedeck:agnet="x"/>`, "t", "tapedeck:agnet is no attribute of serviceTask"},
	{"attribute at the wrong element", `<userTask id="t" tapedeck:agent="x"/>`, "t", "tapedeck:agent is no attribute of userTask"},
	{"attribute at a flow", `<sequenceFlow id="f" sourceRef="t" targetRef="e" tapedeck:agent="x"/>`, "f", "tapedeck:agent is no attribute of sequenceFlow"},
	{"misspelt element", ext("serviceTask", `<tapedeck:agnt name="x"/><!--here-->`), "t", "tapedeck:agnt is no extension element of a serviceTask"},
	{"misspelt attribute of the agent", ext("serviceTask", `<tapedeck:agent name="x" promt="y"/><!--here-->`), "t", "promt is no attribute of tapedeck:agent"},
	{"misspelt element of the agent", ext("serviceTask", "<tapedeck:agent name=\"x\">\n<tapedeck:promt>y</tapedeck:promt><!--here--></tapedeck:agent>"), "t", "promt is no element of tapedeck:agent"},
	{"agent without a name", ext("serviceTask", `<tapedeck:agent prompt="x"/><!--here-->`), "t", "tapedeck:agent has no name"},
	{"empty agent", `<serviceTask id="t" tapedeck:prompt="x"/>`, "t", "the task does not name its agent"},
	{"computed agent", `<serviceTask id="t" tapedeck:agent="= x"/>`, "t", "is an expression, which is not supported"},
	{"prompt", `<serviceTask id="t" tapedeck:agent="x" tapedeck:prompt="Hi {{ name"/>`, "t", "has {{ without }}"},
	{"schema is no JSON", `<serviceTask id="t" tapedeck:agent="x" tapedeck:schema="{"/>`, "t", "the schema is not a JSON Schema"},
	{"schema is no schema", `<serviceTask id="t" tapedeck:agent="x" tapedeck:schema="{&quot;type&quot;: &quot;nothing&quot;, &quot;pattern&quot;: &quot;(&quot;}"/>`, "t", "the schema cannot be used"},
	{"schema of elsewhere", `<serviceTask id="t" tapedeck:agent="x" tapedeck:schema="{&quot;$ref&quot;: &quot;http://example.com/x&quot;}"/>`, "t", "the schema cannot be used"},
	{"schema with a long number", `<serviceTask id="t" tapedeck:agent="x" tapedeck:schema="{&quot;const&quot;: [{&quot;a&quot;: 9007199254740993}]}"/>`, "t", "the schema has the number 9007199254740993, which is too long"},
	{"limit with a long number", ext("userTask", `<tapedeck:form><tapedeck:field id="f" type="integer" max="9007199254740993"/><!--here--></tapedeck:form>`), "t", "max of the field f is \"9007199254740993\", which is too long for a limit"},
	{"length that is too large", ext("userTask", `<tapedeck:form><tapedeck:field id="f" minLength="1e30"/><!--here--></tapedeck:form>`), "t", `minLength of the field f is "1e30", not a whole number from 0 to 9007199254740992`},
	{"length below 0", ext("userTask", `<tapedeck:form><tapedeck:field id="f" maxLength="-1"/><!--here--></tapedeck:form>`), "t", `maxLength of the field f is "-1", not a whole number`},
	{"length that is not whole", ext("userTask", `<tapedeck:form><tapedeck:field id="f" maxLength="1.5"/><!--here--></tapedeck:form>`), "t", `maxLength of the field f is "1.5", not a whole number`},
	{"limit that is no number", ext("userTask", `<tapedeck:form><tapedeck:field id="f" type="integer" max="NaN"/><!--here--></tapedeck:form>`), "t", "not a number"},
	{"default with too many digits", ext("userTask", `<tapedeck:form><tapedeck:field id="f" type="number" default="12345678901234567890123456789012345"/><!--here--></tapedeck:form>`), "t", "has at most 34 digits"},
	{"large default with too many digits", ext("userTask", `<tapedeck:form><tapedeck:field id="f" type="integer" default="12345678901234567890123456789012345"/><!--here--></tapedeck:form>`), "t", "has at most 34 digits"},
	{"default that is no whole number", ext("userTask", `<tapedeck:form><tapedeck:field id="f" type="integer" default="1.5"/><!--here--></tapedeck:form>`), "t", "not a whole number"},
	{"resultAs", `<serviceTask id="t" tapedeck:agent="x" tapedeck:resultAs="xml"/>`, "t", `"xml" is no form of a result`},
	{"text with a schema", `<serviceTask id="t" tapedeck:agent="x" tapedeck:resultAs="text" tapedeck:schema="{}"/>`, "t", "a result with a schema is JSON"},
	{"output", `<serviceTask id="t" tapedeck:agent="x" tapedeck:output="a.b"/>`, "t", `the output "a.b" is not the name of a variable`},
	{"agent and script", `<serviceTask id="t" tapedeck:agent="x" camunda:expression="${a}" camunda:resultVariable="b"/>`, "t", "an agent and a script"},
	{"worker of a gateway", `<exclusiveGateway id="t"><extensionElements><zeebe:taskDefinition type="agent:x"/></extensionElements></exclusiveGateway>`, "t", "an exclusiveGateway cannot have a worker"},
	{"Java", `<receiveTask id="t" name="Wait" camunda:class="org.example.A"/>`, "t", "runs a program (class), which is not possible here"},
	{"delegate", `<scriptTask id="t" flowable:delegateExpression="${a}"/>`, "t", "runs a program (delegateExpression), which is not possible here"},
	{"delegate that is computed", `<serviceTask id="t" flowable:delegateExpression="${a{b}}"/>`, "t", "is an expression, which is not supported"},
	{"DMN 7", `<businessRuleTask id="t" camunda:decisionRef="d"/>`, "t", "a decision table"},
	{"DMN 8", ext("businessRuleTask", `<zeebe:calledDecision decisionId="d"/><!--here-->`), "t", "a decision table"},
	{"mail", `<serviceTask id="t" flowable:type="mail"/>`, "t", `tasks of the type "mail"`},
	{"external without a topic", `<serviceTask id="t" camunda:type="external"/>`, "t", "the external task has no topic"},
	{"connector", ext("serviceTask", `<camunda:connector/><!--here-->`), "t", "connectors are not supported"},
	{"list parameter", ext("userTask", "<camunda:inputOutput>\n<camunda:inputParameter name=\"a\"><camunda:list/></camunda:inputParameter><!--here--></camunda:inputOutput>"), "t", "a parameter with a list in it"},
	{"mapping", ext("userTask", "<zeebe:ioMapping>\n<zeebe:output source=\"= a +\" target=\"b\"/><!--here--></zeebe:ioMapping>"), "t", "cannot be read"},
	{"target", ext("userTask", `<tapedeck:output name="1a" value="= 1"/><!--here-->`), "t", `the target "1a" is not the name`},
	{"field type", ext("userTask", "<tapedeck:form>\n<tapedeck:field id=\"a\" type=\"colour\"/><!--here--></tapedeck:form>"), "t", `"colour" is no type of a field`},
	{"field twice", ext("userTask", `<tapedeck:form><tapedeck:field id="a"/><tapedeck:field id="a"/></tapedeck:form><!--here-->`), "t", `two fields "a"`},
	{"field without options", ext("userTask", `<tapedeck:form><tapedeck:field id="a" type="enum"/></tapedeck:form><!--here-->`), "t", "no options"},
	{"field with a wrong default", ext("userTask", `<tapedeck:form><tapedeck:field id="a" type="integer" default="x"/></tapedeck:form><!--here-->`), "t", `the default of the field a is "x", not a whole number`},
	{"field with a wrong limit", ext("userTask", `<tapedeck:form><tapedeck:field id="a" type="integer" min="x"/></tapedeck:form><!--here-->`), "t", "not a number"},
	{"field with crossed limits", ext("userTask", `<tapedeck:form><tapedeck:field id="a" type="integer" min="5" max="4"/></tapedeck:form><!--here-->`), "t", "above the largest"},
	{"field with an empty limit", ext("userTask", `<tapedeck:form><tapedeck:field id="a" type="integer" min=""/></tapedeck:form><!--here-->`), "t", `min of the field a is "", not a number`},
	{"field with an empty length", ext("userTask", `<tapedeck:form><tapedeck:field id="a" maxLength=""/></tapedeck:form><!--here-->`), "t", `maxLength of the field a is "", not a number`},
	{"field with an empty type", ext("userTask", `<tapedeck:form><tapedeck:field id="a" type=""/></tapedeck:form><!--here-->`), "t", `"" is no type of a field`},
	{"field with an option without a value", ext("userTask", `<tapedeck:form><tapedeck:field id="a" type="enum"><tapedeck:option label="x"/></tapedeck:field></tapedeck:form><!--here-->`), "t", `an option of the field a has no value`},
	{"field with a default below its limit", ext("userTask", `<tapedeck:form><tapedeck:field id="a" type="integer" min="0" max="10" default="-1"/></tapedeck:form><!--here-->`), "t", `the default of the field a is "-1", which is below its smallest value 0`},
	{"field with a default above its limit", ext("userTask", `<tapedeck:form><tapedeck:field id="a" type="number" max="0.1" default="0.11"/></tapedeck:form><!--here-->`), "t", `the default of the field a is "0.11", which is above its largest value 0.1`},
	{"field with a default that is too short", ext("userTask", `<tapedeck:form><tapedeck:field id="a" minLength="3" default="éé"/></tapedeck:form><!--here-->`), "t", `which has fewer than 3 characters`},
	{"field with a default that is too long", ext("userTask", `<tapedeck:form><tapedeck:field id="a" type="text" maxLength="1" default="éé"/></tapedeck:form><!--here-->`), "t", `which has more than 1 characters`},
	{"field with a default with more than its digits", ext("userTask", `<tapedeck:form><tapedeck:field id="a" type="integer" default="10000000000000000000000000000000000"/></tapedeck:form><!--here-->`), "t", `a whole number has at most 34 digits`},
	{"an empty limit of Camunda 7", ext("userTask", `<camunda:formData><camunda:formField id="a" type="long"><camunda:validation><camunda:constraint name="min" config=""/></camunda:validation></camunda:formField></camunda:formData><!--here-->`), "t", `min of the field a is "", not a number`},
	{"field id", ext("userTask", `<camunda:formData><camunda:formField id="a.b" type="string"/></camunda:formData><!--here-->`), "t", `the field "a.b" is not the name`},
	{"misspelt field", ext("userTask", `<tapedeck:form><tapedeck:field id="a" requierd="true"/></tapedeck:form><!--here-->`), "t", "requierd is no attribute of tapedeck:field"},
	{"misspelt false", "<userTask id=\"t\"/>\n<boundaryEvent id=\"b\" attachedToRef=\"t\" cancelActivity=\"flase\"><messageEventDefinition/></boundaryEvent><!--here-->", "b", `cancelActivity is "flase", not true or false`},
	{"misspelt interrupting", "<subProcess id=\"sp\" triggeredByEvent=\"1\">\n<startEvent id=\"a\" isInterrupting=\"x\"><messageEventDefinition/></startEvent><!--here--></subProcess>", "a", `isInterrupting is "x", not true or false`},
	{"misspelt sequential", "<userTask id=\"t\">\n<multiInstanceLoopCharacteristics isSequential=\"ture\"><loopCardinality>3</loopCardinality></multiInstanceLoopCharacteristics><!--here--></userTask>", "t", `isSequential is "ture"`},
	{"misspelt required", ext("userTask", `<tapedeck:form><tapedeck:field id="a" required="yes"/></tapedeck:form><!--here-->`), "t", `required is "yes", not true or false`},
	{"misspelt propagation", `<callActivity id="t"><extensionElements><zeebe:calledElement processId="p" propagateAllChildVariables="flase"/></extensionElements></callActivity>`, "t", `propagateAllChildVariables is "flase"`},
	{"connector of Camunda 8", ext("serviceTask", `<zeebe:taskDefinition type="io.camunda:http-json:1"/><!--here-->`), "t", "connectors are not supported: io.camunda:http-json:1"},
	{"agent connector of Camunda 8", ext("serviceTask", `<zeebe:taskDefinition type="io.camunda.agenticai:aiagent:1"/><!--here-->`), "t", "connectors are not supported"},
	{"text in a group", `<userTask id="t"><multiInstanceLoopCharacteristics behavior="One"><loopCardinality>3</loopCardinality></multiInstanceLoopCharacteristics></userTask>`, "t", `the behavior "One"`},
}

func TestRefused(t *testing.T) {
	for _, c := range append(refusals, compensationRefusals...) {
		t.Run(c.name, func(t *testing.T) {
			file := whole(c.inside)
			line := 0
			for i, text := range strings.Split(file, "\n") {
				if strings.Contains(text, "<!--here-->") || line == 0 && i == 4 && !strings.Contains(file, "<!--here-->") {
					line = i + 1
				}
			}
			_, err := bpmn.Read(strings.NewReader(file), bpmn.Options{})
			var e *bpmn.Error
			if !errors.As(err, &e) || tapedeck.KindOf(err) != tapedeck.Invalid {
				t.Fatalf("error %v of kind %s", err, tapedeck.KindOf(err))
			}
			for _, p := range e.Problems {
				if p.Element == c.element && strings.Contains(p.Message, c.sentence) {
					if want := line; p.Line != want && c.element != "p" {
						t.Errorf("the problem is on line %d, want %d: %s", p.Line, want, p)
					}
					return
				}
			}
			t.Errorf("no problem of %q has %q:\n%s", c.element, c.sentence, problems(err))
		})
	}
}

// TestOneProblem has files with one thing that is wrong, which other elements refer to:
// the consequences are no problems of their own.
func TestOneProblem(t *testing.T) {
	for inside, want := range map[string]string{
		`<adHocSubProcess id="t"><task id="x"/></adHocSubProcess><boundaryEvent id="b" attachedToRef="t"><errorEventDefinition/></boundaryEvent>`: "ad hoc sub-processes",
		`<complexGateway id="t"/>`: "complex gateways",
		`<exclusiveGateway id="s" default="f1"/><startEvent id="a"/><sequenceFlow id="f0" sourceRef="a" targetRef="s"/><complexGateway id="t"/>`: "complex gateways",
		`<startEvnt id="s"/>`: "startEvnt is no element",
		`</process><escalation id="x"/><escalation id="x"/><error/><error/><process id="q">`: "the id x is not unique",
		`<endEvnt id="e"/>`: "endEvnt is no element",
		`<subProcess id="t"><transaction id="x"/></subProcess>`:                                                                                                                                   "transactions",
		`<transaction id="t"/><intermediateThrowEvent id="x"><compensateEventDefinition activityRef="t"/></intermediateThrowEvent>`:                                                               "transactions",
		`<boundaryEvent id="b" attachedToRef="t"><compensateEventDefinition/></boundaryEvent><adHocSubProcess id="u" isForCompensation="true"/><association id="a" sourceRef="b" targetRef="u"/>`: "ad hoc sub-processes",
	} {
		_, err := bpmn.Read(strings.NewReader(whole(inside)), bpmn.Options{})
		var e *bpmn.Error
		if !errors.As(err, &e) || len(e.Problems) != 1 || !strings.Contains(e.Problems[0].Message, want) {
			t.Errorf("%s: want only %q in\n%s", inside, want, problems(err))
		}
	}
}

// TestFlags checks both ways to write true and false.
func TestFlags(t *testing.T) {
	for text, want := range map[string]bool{`cancelActivity="true"`: true, `cancelActivity="1"`: true, ``: true, `cancelActivity="false"`: false, `cancelActivity="0"`: false} {
		d, err := bpmn.Read(strings.NewReader(whole(`<boundaryEvent id="b" attachedToRef="t" `+text+`><messageEventDefinition/></boundaryEvent>`)), bpmn.Options{})
		if err != nil {
			t.Errorf("%s: %s", text, problems(err))
		} else if got := d.Node("b").Interrupting; got != want {
			t.Errorf("%s interrupts: %v", text, got)
		}
	}
}

// TestFiles has files that are wrong as a whole.
func TestFiles(t *testing.T) {
	laughs := `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "x"><!ENTITY b "&a;&a;">]>` + headElement + "&b;</definitions>"
	for name, c := range map[string]struct{ file, want string }{
		"empty":           {"", "line 1: the file is empty"},
		"JSON":            {`{"bpmn": "x"}`, "line 1: this is JSON"},
		"text":            {"hello", "line 1: this is not XML"},
		"UTF-16":          {"\xff\xfe<\x00", "not well-formed XML"},
		"only a mark":     {"\xef\xbb\xbf", "line 1: the file is empty"},
		"HTML":            {"<html></html>", "the root element is html"},
		"other BPMN":      {`<definitions xmlns="http://schema.omg.org/spec/BPMN/1.0"/>`, "not of BPMN 2.0"},
		"entities":        {laughs, "line 1: the file has a DOCTYPE"},
		"external":        {strings.Replace(laughs, "lolz [", `lolz SYSTEM "file:///etc/passwd" [`, 1), "DOCTYPE"},
		"undefined":       {head + "&x;</definitions>", "line 3: the file is not well-formed XML"},
		"broken":          {head + "\n<process id=\"p\">\n</definitions>", "line 5: the file is not well-formed XML"},
		"twice":           {head + `<process id="p" name="a" name="b"/></definitions>`, "the attribute name of process is there twice"},
		"cut":             {head + "<process id=", "not well-formed XML"},
		"two roots":       {head + "</definitions><definitions/>", "more than one root"},
		"text after":      {head + "</definitions> hello", "text outside of the root"},
		"encoding":        {`<?xml version="1.0" encoding="KOI8-R"?>` + headElement + "</definitions>", `the encoding "KOI8-R" is not supported`},
		"no process":      {head + "</definitions>", "line 2: the file has no process"},
		"empty process":   {head + `<process id="p"/></definitions>`, "no process of the file has an element"},
		"unknown":         {head + `<processus id="p"/></definitions>`, "processus is no element of BPMN 2.0"},
		"choreography":    {head + `<choreography id="c"/></definitions>`, "choreography is not supported"},
		"deep":            {head + strings.Repeat("<documentation>", 200), "more than 100 levels"},
		"deep extension":  {head + "<extensionElements>" + strings.Repeat("<x>", 200), "more than 100 levels"},
		"namespace":       {strings.Replace(head, "http://example.com/other", "urn:"+strings.Repeat("x", 1000), 1) + "</definitions>", "line 2: a namespace has more than 1000 bytes"},
		"own namespace":   {head + `<task xmlns="` + strings.Repeat("x", 1001) + `"/></definitions>`, "line 3: a namespace has more than 1000 bytes"},
		"inner namespace": {head + `<other:x><other:y/><y xmlns="` + strings.Repeat("x", 1001) + `"/></other:x></definitions>`, "line 3: a namespace has more than 1000 bytes"},
		"many attributes": {head + `<process id="p" ` + strings.Repeat(`a="" `, 1001) + "/></definitions>", "an element has more than 1000 attributes"},
		"many":            {head + strings.Repeat("<itemDefinition/>", 100_001), "more than 100000 elements"},
		"two executables": {head + `<process id="p" isExecutable="true"><task id="a"/></process><process id="q" isExecutable="true"><task id="b"/></process></definitions>`, "the file has 2 processes that could run"},
		"other namespace": {head + `<process id="p" tapedeck:agent="x"/></definitions>`, "tapedeck:agent is no attribute of process"},
		"executable":      {head + `<process id="p" isExecutable="flase"><startEvent id="s"/></process></definitions>`, `line 3: element "p": isExecutable is "flase", not true or false`},
		"extension":       {head + `<extension xmlns:x="urn:x" definition="x:Rule" mustUnderstand="true"/></definitions>`, `line 3: the file says that its extension "x:Rule" must be understood`},
		"language":        {strings.Replace(whole(`<sequenceFlow id="f" sourceRef="t" targetRef="e"><conditionExpression>[a] = 1</conditionExpression></sequenceFlow>`), `id="defs"`, `id="defs" expressionLanguage="http://example.com/basic"`, 1), `element "f": conditions in "http://example.com/basic" are not supported`},
		"message":         {head + `<message id="m" tapedeck:corelation="x"/></definitions>`, "tapedeck:corelation is no attribute of message"},
	} {
		_, err := bpmn.Read(strings.NewReader(c.file), bpmn.Options{})
		if err == nil {
			t.Errorf("%s is accepted", name)
		} else if !strings.Contains(problems(err), c.want) {
			t.Errorf("%s: want %q in\n%s", name, c.want, problems(err))
		}
	}
}

// TestLargeFile checks that no more of a file is read than is allowed.
func TestLargeFile(t *testing.T) {
	n := 0
	_, err := bpmn.Read(readerFunc(func(b []byte) (int, error) {
		if n += len(b); n > 20<<20 {
			t.Fatal("it reads on")
		}
		return len(b), nil
	}), bpmn.Options{})
	if err == nil || tapedeck.KindOf(err) != tapedeck.TooLarge || !strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Error(err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

var _ io.Reader = readerFunc(nil)

// TestManyProblems checks that a file with many problems reports a bounded number.
func TestManyProblems(t *testing.T) {
	var b strings.Builder
	for range 120 {
		b.WriteString("<task/>\n")
	}
	_, err := bpmn.Read(strings.NewReader(whole(b.String())), bpmn.Options{})
	var e *bpmn.Error
	if !errors.As(err, &e) || len(e.Problems) != 50 || len(e.Problems)+e.More < 120 || !strings.Contains(err.Error(), fmt.Sprintf("(and %d more)", 49+e.More)) {
		t.Error(err)
	}
}

func TestWarnings(t *testing.T) {
	for inside, want := range map[string]string{
		`<callActivity id="t"/>`:                                            "t: the call activity does not say which process it runs, so it does nothing",
		`<serviceTask id="t" camunda:class=" org.example.A "/>`:             `t: the program of Java is not run; "org.example.A" is the type of the work of an agent`,
		`<sendTask id="t" flowable:delegateExpression="#{ mail.Sender }"/>`: `t: the program of Java is not run; "mail.Sender" is the type of the work of an agent`,
		`<serviceTask id="t"/>`:                                             "t: the task names no agent and no type of work, so it does nothing",
		`<exclusiveGateway id="t" standard="f2"/>`:                          "t: standard is no attribute of BPMN 2.0, so it is not read",
		`<userTask id="t" camunda:dueDate="x"/>`:                            "t: dueDate is not read",
		`<serviceTask id="t" tapedeck:agent="x"><extensionElements><zeebe:taskListeners/></extensionElements></serviceTask>`: "t: the listeners are not run",
		`<other:note><other:note/></other:note>`:                                                                              `p: the element note of the namespace "http://example.com/other" is not read`,
		`<userTask id="t"><documentation id="d">Look. <other:b>Now.</other:b></documentation></userTask>`:                     `d: the element b of the namespace "http://example.com/other" is not read`,
		`<serviceTask id="t" tapedeck:agent="x" tapedeck:prompt="Go"><documentation><other:p/></documentation></serviceTask>`: `: the element p of the namespace "http://example.com/other" is not read`,
		`<task id="u"/>`: "u: no flow leads from the start to the element, so it never runs",
		`<exclusiveGateway id="t"/><sequenceFlow id="f3" sourceRef="t" targetRef="e"/>`:                                                           "f2: the flow has no condition, so it is taken whenever the flows before it are not, and the flows after it never are",
		`<inclusiveGateway id="t"/><sequenceFlow id="f3" sourceRef="t" targetRef="e"><conditionExpression>a</conditionExpression></sequenceFlow>`: "f2: the flow has no condition, so it is always taken",
		`<receiveTask id="t" name="Reply"/>`:                                                                                                                                             "t: the event has no message; its message is named \"Reply\", like the element",
		`<startEvent id="s"><timerEventDefinition/></startEvent>`:                                                                                                                        "s: a run begins here at once: it does not wait for the timer of its start event",
		`<subProcess id="t"/>`:                                                                                                                                                           "t: the sub-process is empty, so it does nothing",
		`<subProcess id="t">` + manyTasks(11) + `<endEvent id="x"/></subProcess>`:                                                                                                        "t: the sub-process has no start event, so it begins at each element to which no flow leads: n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, …",
		`<subProcess id="t"><task id="a"/><endEvent id="x"/></subProcess>`:                                                                                                               "x: no flow leads from the start to the element, so it never runs",
		`<userTask id="t"><extensionElements><zeebe:formDefinition formId="f"/></extensionElements></userTask>`:                                                                          "t: the form \"f\" is not read",
		`<serviceTask id="t" tapedeck:agent="x" tapedeck:prompt="About ${topic}."/>`:                                                                                                     "t: ${topic} is not read as an expression here: it stays as it is",
		ext("serviceTask", `<tapedeck:agent name="x"><tapedeck:prompt>About ${ topic.name }.</tapedeck:prompt></tapedeck:agent>`):                                                        "t: ${ topic.name } is not read as an expression",
		ext("serviceTask", `<zeebe:taskDefinition type="agent"/><zeebe:taskHeaders><zeebe:header key="agnet" value="x"/></zeebe:taskHeaders>`):                                           "t: the header or property \"agnet\" is not read",
		ext("serviceTask", `<zeebe:taskDefinition type="agent" />`):                                                                                                                      "t: the type is agent, but no header agent names one",
		ext("serviceTask", `<zeebe:taskDefinition type="agent:x"/><zeebe:taskHeaders><zeebe:header key="prompt" value="${a}"/></zeebe:taskHeaders>`):                                     "t: ${a} is not read",
		`<startEvent id="s"><extensionElements><zeebe:properties><zeebe:property name="inbound.type" value="io.camunda:webhook:1"/></zeebe:properties></extensionElements></startEvent>`: "s: the connector io.camunda:webhook:1 is not run",
		`<subProcess id="t"/><boundaryEvent id="b" attachedToRef="t"><escalationEventDefinition/></boundaryEvent>`:                                                                       "t: the sub-process is empty, so it does nothing",
		`<callActivity id="t" calledElement="p"/><boundaryEvent id="b" attachedToRef="t"><escalationEventDefinition/></boundaryEvent><boundaryEvent id="c" attachedToRef="t"><escalationEventDefinition/></boundaryEvent>`:               "c: the event never happens: b catches the same",
		`<subProcess id="h" triggeredByEvent="true"><startEvent id="a"><errorEventDefinition/></startEvent></subProcess><subProcess id="i" triggeredByEvent="true"><startEvent id="c"><errorEventDefinition/></startEvent></subProcess>`: "i: the event never happens: h catches the same",
		`<boundaryEvent id="b" attachedToRef="t"><messageEventDefinition camunda:escalationCodeVariable="x"/></boundaryEvent>`:                                                                                                           "b: escalationCodeVariable is not read",
	} {
		d, err := bpmn.Read(strings.NewReader(whole(inside)), bpmn.Options{})
		if err != nil {
			t.Errorf("%s: %s", inside, problems(err))
		} else if got := warnings(d); len(got) == 0 || !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s has the warnings %q, want %q", inside, got, want)
		}
	}
}

func TestChooseProcess(t *testing.T) {
	file := head + `<process id="p"><startEvent id="a"/></process><process id="q"><startEvent id="b"/></process><process id="r"/></definitions>`
	d, err := bpmn.Read(strings.NewReader(file), bpmn.Options{Process: "q"})
	if err != nil || d.Main.ID != "q" {
		t.Error(d, err)
	}
	if _, err := bpmn.Read(strings.NewReader(file), bpmn.Options{Process: "z"}); err == nil || !strings.Contains(problems(err), `no process "z" | the processes are p, q, r`) {
		t.Error(err)
	}
	// What a pool cannot do that does not run is no problem.
	file = head + `<process id="p" isExecutable="true"><startEvent id="a"/></process><process id="q"><transaction id="b"/></process></definitions>`
	if _, err := bpmn.Read(strings.NewReader(file), bpmn.Options{}); err != nil {
		t.Error(err)
	}
}

func TestTimers(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ kind, text, first, second, wrong string }{
		{"timeDuration", "PT15M", "2026-01-31T12:15:00Z", "", ""},
		{"timeDuration", "P1DT2H0.5S", "2026-02-01T14:00:00.5Z", "", ""},
		{"timeDuration", "P1M", "2026-03-03T12:00:00Z", "", ""}, // as time.AddDate counts
		{"timeDuration", "P2W", "2026-02-14T12:00:00Z", "", ""},
		{"timeDuration", "PT0S", "2026-01-31T12:00:00Z", "", ""},
		{"timeDuration", "P", "", "", "not a duration"},
		{"timeDuration", "P1DT", "", "", "not a duration"},
		{"timeDuration", "15", "", "", "not a duration"},
		{"timeDuration", "PT99999999999S", "", "", "not a duration"},
		{"timeDate", "2026-12-24T18:00:00Z", "2026-12-24T18:00:00Z", "", ""},
		{"timeDate", "2026-12-24T18:00:00+02:00", "2026-12-24T16:00:00Z", "", ""},
		{"timeDate", "2026-12-24T18:00:00[Europe/Berlin]", "2026-12-24T17:00:00Z", "", ""},
		{"timeDate", "2026-12-24", "2026-12-24T00:00:00Z", "", ""},
		{"timeDate", "2026-12-24T18:00:00[Local]", "", "", "not a time zone"},
		{"timeDate", "tomorrow", "", "", "not a date"},
		{"timeCycle", "R3/PT10S", "2026-01-31T12:00:10Z", "2026-01-31T12:00:20Z", ""},
		{"timeCycle", "R1/PT10S", "2026-01-31T12:00:10Z", "", ""},
		{"timeCycle", "R/2026-02-01T00:00:00Z/P1D", "2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z", ""},
		{"timeCycle", "R/PT0.1S", "", "", "more than once a second"},
		{"timeCycle", "R0/PT1S", "", "", "not a cycle"},
		{"timeCycle", "PT1S", "", "", "not a cycle"},
		{"timeCycle", "R5/", "", "", "not a duration"},
	} {
		file := whole(fmt.Sprintf(`<intermediateCatchEvent id="t"><timerEventDefinition><%s>= when</%s></timerEventDefinition></intermediateCatchEvent>`, c.kind, c.kind))
		d, err := bpmn.Read(strings.NewReader(file), bpmn.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Node("t").Event.Timer.Schedule(t.Context(), map[string]any{"when": c.text}, now)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) || tapedeck.KindOf(err) != tapedeck.Invalid {
				t.Errorf("%s: error %v, want %q", c.text, err, c.wrong)
			}
			continue
		}
		second := ""
		if at, ok := s.Next(1); ok {
			second = at.UTC().Format(time.RFC3339Nano)
		}
		first, ok := s.Next(0)
		if err != nil || !ok || first.UTC().Format(time.RFC3339Nano) != c.first || second != c.second {
			t.Errorf("%s is due at %v, then %s, %v; want %s, %s", c.text, first, second, err, c.first, c.second)
		}
	}
	missing := whole(`<intermediateCatchEvent id="t"><timerEventDefinition><timeDuration>= when</timeDuration></timerEventDefinition></intermediateCatchEvent>`)
	d, err := bpmn.Read(strings.NewReader(missing), bpmn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Node("t").Event.Timer.Schedule(t.Context(), nil, now); err == nil {
		t.Error("a timer without its variable is due")
	}
}

// FuzzRead checks that no file makes the reader panic, and that every problem has a line
// and a sentence.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.bpmn")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, c := range append(refusals, compensationRefusals...) {
		f.Add([]byte(whole(c.inside)))
	}
	f.Add([]byte(whole(handled)))
	f.Add([]byte(whole(`<subProcess id="t"><task id="y"/>` + compensating("h") + `</subProcess>` + throwsIt)))
	f.Add([]byte(rooted(`<endEvent id="e">{d1}</endEvent>`, `signalEventDefinition signalRef="d1"><endEvent>{d1}</endEvent></signalEventDefinition>`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := bpmn.Read(bytes.NewReader(data), bpmn.Options{})
		if err == nil {
			checkModel(t, d)
			return
		}
		var e *bpmn.Error
		if !errors.As(err, &e) || len(e.Problems) == 0 || len(e.Problems) > 50 || tapedeck.KindOf(err) == tapedeck.Internal {
			t.Fatalf("%T %v", err, err)
		}
		for _, p := range e.Problems {
			if p.Line < 1 || p.Line > bytes.Count(data, []byte("\n"))+1 || p.Message == "" {
				t.Errorf("%+v", p)
			}
		}
	})
}

// checkModel checks what the walker relies on.
func checkModel(t *testing.T, d *bpmn.Definitions) {
	t.Helper()
	if d.Main == nil || len(d.Main.Starts) == 0 {
		t.Fatal("there is no start")
	}
	for n := range d.Reached() {
		switch {
		case n.ID == "" || n.Line < 1 || d.Node(n.ID) == nil:
			t.Errorf("%+v", n)
		case n.Kind == bpmn.SubProcess && (n.Scope == nil || len(n.Scope.Starts) == 0),
			n.Kind == bpmn.CallActivity && n.CalledProcess != "" && (n.Called == nil || len(n.Called.Starts) == 0),
			n.Kind == bpmn.BoundaryEvent && (n.AttachedTo == nil || n.Event == nil),
			n.Kind == bpmn.CatchEvent && n.Event == nil, n.Kind == bpmn.ReceiveTask && n.Event == nil,
			n.Kind == bpmn.ScriptTask && n.Script == nil && n.Agent == nil,
			n.Agent != nil && (n.Agent.Prompt == nil || n.Agent.Agent+n.Agent.Type == ""),
			n.Triggered && (n.Scope.Start == nil || n.Scope.Start.Event == nil),
			n.Compensable && n.Handler == nil && n.Scope == nil, n.Handler != nil && (!n.Handler.ForCompensation || n.Handler.Parent != n.Parent),
			n.Kind == bpmn.BoundaryEvent && n.Event.Kind == bpmn.CompensationEvent && n.AttachedTo.Handler == nil,
			n.Event != nil && n.Event.Kind == bpmn.MessageEvent && n.Event.Name == nil:
			t.Errorf("%s %s lacks something", n.Kind, n.ID)
		}
		for _, f := range n.Out {
			if f.To == nil || f.From != n {
				t.Errorf("the flow %s is not connected", f.ID)
			}
		}
	}
}
