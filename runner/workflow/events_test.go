package workflow

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// eventSub is an event sub-process H: a start HA with a trigger, what is in it, and an end HZ.
func eventSub(id, interrupting, trigger, inside string, flows ...string) string {
	if inside == "" {
		flows = []string{id + "A>" + id + "Z"}
	}
	return `<subProcess id="` + id + `" triggeredByEvent="true"><startEvent id="` + id + `A" isInterrupting="` + interrupting + `">` + trigger +
		`</startEvent>` + inside + `<endEvent id="` + id + `Z"/>` + flowsOf(flows...) + `</subProcess>`
}

func boundary(id, host, interrupting, trigger string) string {
	return `<boundaryEvent id="` + id + `" attachedToRef="` + host + `" cancelActivity="` + interrupting + `">` + trigger + `</boundaryEvent>`
}

const (
	onMessage = `<messageEventDefinition messageRef="msg"/>`
	onOther   = `<messageEventDefinition messageRef="other"/>`
	onSignal  = `<signalEventDefinition signalRef="sig"/>`
	inAnHour  = `<timerEventDefinition><timeDuration>PT1H</timeDuration></timerEventDefinition>`
	thrice    = `<timerEventDefinition><timeCycle>R3/PT1H</timeCycle></timerEventDefinition>`
	throws    = `<intermediateThrowEvent id="X"><signalEventDefinition signalRef="sig"/></intermediateThrowEvent>`
	long      = `<intermediateCatchEvent id="W"><timerEventDefinition><timeDuration>PT9H</timeDuration></timerEventDefinition></intermediateCatchEvent>`
)

// called is a second process of the same file, which a call activity C runs.
func called(main, inside string, flows ...string) string {
	return definitionsOf(main + `<process id="Q"><startEvent id="QS"/><endEvent id="QE"/>` + inside + flowsOf(flows...) + `</process>`)
}

// eventCases are diagrams with the messages that others send, half an hour after each other
// from the second hour on: NAME or NAME=VALUE of the variable v. In the trace, +A is
// entered, A~ waits, !A has happened, -A is left.
var eventCases = []struct {
	name, xml string
	sends     []string
	want      string
	has       string
}{
	{
		name: "a timer begins an event sub-process and interrupts", xml: diagramOf(startEnd+long+eventSub("H", "true", inAnHour, ""), "S>W", "W>E"),
		want: "H~ +S -S +W W~ !H +H +HA -HA +HZ -HZ -H completed",
	},
	{
		name: "a timer begins an event sub-process beside the others", xml: diagramOf(startEnd+long+eventSub("H", "false", inAnHour, ""), "S>W", "W>E"),
		want: "H~ +S -S +W W~ !H +H +HA -HA +HZ -HZ -H !W -W +E -E completed",
	},
	{
		name: "a timer begins an event sub-process three times", xml: diagramOf(startEnd+long+eventSub("H", "false", thrice, ""), "S>W", "W>E"),
		want: "H~ +S -S +W W~ " + strings.Repeat("!H +H +HA -HA +HZ -HZ -H ", 3) + "!W -W +E -E completed",
	},
	{
		name: "a message begins an event sub-process and interrupts", xml: diagramOf(startEnd+long+eventSub("H", "true", onMessage, script("T", "got = v"), "HA>T", "T>HZ"), "S>W", "W>E"),
		sends: []string{"hello=1", "hello=2"},
		want:  "H~ +S -S +W W~ !H +H +HA -HA +T -T +HZ -HZ -H completed", has: `"got":1`,
	},
	{
		name: "two messages begin an event sub-process beside the others", xml: diagramOf(startEnd+long+eventSub("H", "false", onMessage, script("T", "sum = (sum ?? 0) + v"), "HA>T", "T>HZ"), "S>W", "W>E"),
		sends: []string{"hello=1", "nothing=5", "hello=2"},
		want:  "H~ +S -S +W W~ " + strings.Repeat("!H +H +HA -HA +T -T +HZ -HZ -H ", 2) + "!W -W +E -E completed", has: `"sum":3`,
	},
	{
		name: "a signal begins an event sub-process and interrupts", xml: diagramOf(startEnd+long+gateway("parallel", "F")+throws+`<endEvent id="E2"/>`+eventSub("H", "true", onSignal, ""), "S>F", "F>W", "F>X", "X>E2", "W>E"),
		want: "H~ +S -S +F -F +W W~ +X !H +H +HA -HA +HZ -HZ -H completed",
	},
	{
		name: "a signal begins an event sub-process beside the others", xml: diagramOf(startEnd+throws+long+eventSub("H", "false", onSignal, ""), "S>X", "X>W", "W>E"),
		want: "H~ +S -S +X !H -X +H +W W~ +HA -HA +HZ -HZ -H !W -W +E -E completed",
	},
	{
		name: "in a sub-process, only that is interrupted", xml: diagramOf(startEnd+script("T", "after = v")+`<subProcess id="P1"><startEvent id="S1"/>`+long+eventSub("H", "true", onMessage, "")+flowsOf("S1>W")+`</subProcess>`, "S>P1", "P1>T", "T>E"),
		sends: []string{"hello=1"},
		want:  "+S -S +P1 H~ +S1 -S1 +W W~ !H +H +HA -HA +HZ -HZ -H -P1 +T -T +E -E completed", has: `"after":1`,
	},
	{
		name: "in a called process", xml: called(processOf("P", startEnd+`<callActivity id="C" calledElement="Q"/>`, "S>C", "C>E"), long+eventSub("H", "true", onMessage, ""), "QS>W", "W>QE"),
		sends: []string{"hello=1"},
		want:  "+S -S +C H~ +QS -QS +W W~ !H +H +HA -HA +HZ -HZ -H -C +E -E completed", has: `"v":1`,
	},
	{
		name: "in each instance of a sub-process", xml: diagramOf(startEnd+`<subProcess id="P1"><multiInstanceLoopCharacteristics tapedeck:collection="= [1, 2]" tapedeck:element="item"/><startEvent id="S1"/>`+long+
			strings.ReplaceAll(eventSub("H", "true", onMessage, ""), `<messageEventDefinition`, `<messageEventDefinition tapedeck:correlation="= item"`)+flowsOf("S1>W")+`</subProcess>`, "S>P1", "P1>E"),
		sends: []string{"hello=1@2", "hello=2@2", "hello=3@1"},
		want:  "+S -S +P1 +P1 H~ +P1 H~ +S1 -S1 +S1 -S1 +W W~ +W W~ !H +H +HA -HA +HZ -HZ -H -P1 !H +H +HA -HA +HZ -HZ -H -P1 -P1 +E -E completed", has: `"v":3`,
	},
	{
		name: "after one that interrupts, no other event sub-process begins", xml: diagramOf(startEnd+long+eventSub("H", "true", onMessage, timer("intermediateCatchEvent", `id="V"`, "PT5H"), "HA>V", "V>HZ")+eventSub("K", "true", onOther, "")+eventSub("L", "false", inAnHour, ""), "S>W", "W>E"),
		sends: []string{"hello=1", "other=1", "hello=2"},
		want:  "H~ K~ L~ +S -S +W W~ !L +L +LA -LA +LZ -LZ -L !H +H +HA -HA +V V~ !V -V +HZ -HZ -H completed", has: `"v":1`,
	},
	{
		name: "one that interrupts ends one that does not", xml: diagramOf(startEnd+long+eventSub("H", "false", onMessage, `<userTask id="V"/>`, "HA>V", "V>HZ")+eventSub("K", "true", onOther, ""), "S>W", "W>E"),
		sends: []string{"hello=1", "other=1"},
		want:  "H~ K~ +S -S +W W~ !H +H +HA -HA +V V~ !K +K +KA -KA +KZ -KZ -K completed",
	},
	{
		name: "an error in an event sub-process goes to what is around its scope", xml: diagramOf(startEnd+`<endEvent id="E2"/>`+boundary("B", "P1", "true", `<errorEventDefinition errorRef="err"/>`)+
			`<subProcess id="P1"><startEvent id="S1"/>`+long+strings.Replace(eventSub("H", "false", onMessage, ""), `<endEvent id="HZ"/>`, `<endEvent id="HZ"><errorEventDefinition errorRef="err"/></endEvent>`, 1)+flowsOf("S1>W")+`</subProcess>`, "S>P1", "P1>E", "B>E2"),
		sends: []string{"hello=1"},
		want:  "+S -S +P1 H~ +S1 -S1 +W W~ !H +H +HA -HA +HZ xHZ !B +B -B +E2 -E2 completed",
	},
	{
		name: "the end of an event sub-process that terminates ends only that", xml: diagramOf(startEnd+long+strings.Replace(eventSub("H", "false", onMessage, ""), `<endEvent id="HZ"/>`, `<endEvent id="HZ"><terminateEventDefinition/></endEvent>`, 1), "S>W", "W>E"),
		sends: []string{"hello=1"},
		want:  "H~ +S -S +W W~ !H +H +HA -HA +HZ -HZ -H !W -W +E -E completed",
	},
	{
		name: "a scope waits for its event sub-process", xml: diagramOf(startEnd+timer("intermediateCatchEvent", `id="W"`, "PT3H")+eventSub("H", "false", onMessage, timer("intermediateCatchEvent", `id="V"`, "PT9H"), "HA>V", "V>HZ"), "S>W", "W>E"),
		sends: []string{"hello=1"},
		want:  "H~ +S -S +W W~ !H +H +HA -HA +V V~ !W -W +E -E !V -V +HZ -HZ -H completed",
	},
	{
		name: "messages at the boundary of a task, twice", xml: diagramOf(startEnd+`<receiveTask id="R" messageRef="other"/>`+boundary("B", "R", "false", onMessage)+script("T", "sum = (sum ?? 0) + v")+`<endEvent id="E2"/>`, "S>R", "R>E", "B>T", "T>E2"),
		sends: []string{"hello=1", "hello=2", "other=0"},
		want:  "+S -S +R B~ R~ " + strings.Repeat("!B +B -B +T -T +E2 -E2 ", 2) + "!R -R +E -E completed", has: `"sum":3`,
	},
	{
		name: "messages at the boundary of a call, twice", xml: called(processOf("P", startEnd+`<callActivity id="C" calledElement="Q"/><endEvent id="E2"/>`+script("T", "sum = (sum ?? 0) + v")+boundary("B", "C", "false", onMessage), "S>C", "C>E", "B>T", "T>E2"), long, "QS>W", "W>QE"),
		sends: []string{"hello=1", "hello=2"},
		want:  "+S -S +C B~ +QS -QS +W W~ " + strings.Repeat("!B +B -B +T -T +E2 -E2 ", 2) + "!W -W +QE -QE -C +E -E completed", has: `"sum":3`,
	},
	{
		name: "a message at the boundary of a call interrupts", xml: called(processOf("P", startEnd+`<callActivity id="C" calledElement="Q"/><endEvent id="E2"/>`+boundary("B", "C", "true", onMessage), "S>C", "C>E", "B>E2"), long, "QS>W", "W>QE"),
		sends: []string{"hello=1"},
		want:  "+S -S +C B~ +QS -QS +W W~ !B +B -B +E2 -E2 completed",
	},
	{
		name: "a timer at the boundary of a call, three times", xml: called(processOf("P", startEnd+`<callActivity id="C" calledElement="Q"/><endEvent id="E2"/>`+boundary("B", "C", "false", thrice), "S>C", "C>E", "B>E2"), long, "QS>W", "W>QE"),
		want: "+S -S +C B~ +QS -QS +W W~ " + strings.Repeat("!B +B -B +E2 -E2 ", 3) + "!W -W +QE -QE -C +E -E completed",
	},
	{
		name: "a signal at the boundary of a call, twice", xml: called(processOf("P", startEnd+`<callActivity id="C" calledElement="Q"/><endEvent id="E2"/>`+boundary("B", "C", "false", onSignal), "S>C", "C>E", "B>E2"), throws+strings.Replace(throws, `"X"`, `"X2"`, 1), "QS>X", "X>X2", "X2>QE"),
		want: "+S -S +C B~ +QS -QS +X !B -X +B -B +X2 !B -X2 +E2 -E2 +B -B +QE -QE -C +E2 -E2 +E -E completed",
	},
	{
		name: "messages at the boundary of several instances, twice", xml: diagramOf(startEnd+`<subProcess id="P1"><multiInstanceLoopCharacteristics><loopCardinality>2</loopCardinality></multiInstanceLoopCharacteristics><startEvent id="S1"/>`+long+flowsOf("S1>W")+`</subProcess><endEvent id="E2"/>`+script("T", "sum = (sum ?? 0) + v")+boundary("B", "P1", "false", onMessage), "S>P1", "P1>E", "B>T", "T>E2"),
		sends: []string{"hello=1", "hello=2"},
		want:  "+S -S +P1 B~ +P1 +P1 +S1 -S1 +S1 -S1 +W W~ +W W~ " + strings.Repeat("!B +B -B +T -T +E2 -E2 ", 2) + "!W -W -P1 !W -W -P1 -P1 +E -E completed", has: `"sum":3`,
	},
	{
		name: "a message at the boundary of several instances ends all", xml: diagramOf(startEnd+`<userTask id="U"><multiInstanceLoopCharacteristics><loopCardinality>3</loopCardinality></multiInstanceLoopCharacteristics></userTask><endEvent id="E2"/>`+boundary("B", "U", "true", onMessage), "S>U", "U>E", "B>E2"),
		sends: []string{"hello=1"},
		want:  "+S -S +U B~ +U U~ +U U~ +U U~ !B +B -B +E2 -E2 completed",
	},
	{
		name: "a timer at the boundary of instances one after another", xml: diagramOf(startEnd+`<subProcess id="P1"><multiInstanceLoopCharacteristics isSequential="true"><loopCardinality>2</loopCardinality></multiInstanceLoopCharacteristics><startEvent id="S1"/>`+long+flowsOf("S1>W")+`</subProcess><endEvent id="E2"/>`+boundary("B", "P1", "false", inAnHour), "S>P1", "P1>E", "B>E2"),
		want: "+S -S +P1 B~ +P1 +S1 -S1 +W W~ !B +B -B +E2 -E2 !W -W -P1 +P1 +S1 -S1 +W W~ !W -W -P1 -P1 +E -E completed",
	},
}

// TestEvents: events at boundaries and event sub-processes, by timers, messages and signals.
// The walk is stopped and continued before each message, and takes the same decisions.
func TestEvents(t *testing.T) {
	for _, tt := range eventCases {
		for _, stops := range []bool{false, true} {
			name := tt.name
			if stops {
				name += ", stopped in between"
			}
			t.Run(name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					xml := strings.Replace(withEvents(tt.xml), "<process ", `<message id="other" name="other"/><process `, 1)
					h := newHost(t, xml)
					if err := h.attendEvents(tt.sends, stops); err != nil {
						t.Error(err)
					}
					if got := h.trace(); got != tt.want {
						t.Errorf("\ngot  %s\nwant %s", got, tt.want)
					}
					if got := values(h.state()); !strings.Contains(got, tt.has) {
						t.Errorf("the variables are %s, want %s", got, tt.has)
					}
					h.checkOnce()
				})
			})
		}
	}
}

// attendEvents runs a process to its end and sends it messages. If it stops, the walk is
// stopped before each of them, and continued after it.
func (h *host) attendEvents(sends []string, stops bool) error {
	if err := h.begin(context.Background(), ""); err != nil {
		return err
	}
	ended, stop := h.walkOn()
	time.Sleep(90 * time.Minute)
	for _, send := range sends {
		time.Sleep(30 * time.Minute)
		if stops {
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				return errors.Join(err, stillThere(sends, send))
			}
			h.drop()
		}
		h.sendText(send)
		if stops {
			h.drop()
			ended, stop = h.walkOn()
		}
	}
	synctest.Wait()
	time.Sleep(100 * time.Hour)
	stop()
	return <-ended
}

// stillThere is an error if a message was not the last: a process may end before that.
func stillThere(sends []string, send string) error {
	if send == sends[len(sends)-1] {
		return nil
	}
	return errors.New("the process ended before the message " + send)
}

func (h *host) walkOn() (ended chan error, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	go func() { ended <- h.walk(ctx, "") }()
	return ended, cancel
}

// sendText sends NAME=VALUE@CORRELATION.
func (h *host) sendText(text string) {
	text, correlation, _ := strings.Cut(text, "@")
	name, value, _ := strings.Cut(text, "=")
	h.send(payload.WorkflowMessage{Name: name, Correlation: correlation, Variables: tapedeck.Members{"v": []byte(value)}})
}
