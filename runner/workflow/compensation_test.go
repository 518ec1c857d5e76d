package workflow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

const onCompensation = `<compensateEventDefinition/>`

// undone is a script task with a handler: what they do is in done, in its order.
func undone(id string) string { return script(id, does(id)) + undo(id) }

func does(what string) string { return `done = (done ?? "") + " ` + what + `"` }

// undo is a handler of an activity: it is called u and the id of the activity.
func undo(id string) string {
	return handled(id, strings.Replace(script("u"+id, does("u"+id)), "<scriptTask", `<scriptTask isForCompensation="true"`, 1))
}

// handled connects an activity with a handler.
func handled(id, handler string) string {
	return boundary("c"+id, id, "true", onCompensation) + handler + `<association id="a` + id + `" sourceRef="c` + id + `" targetRef="u` + id + `"/>`
}

func compensates(id, activity string) string {
	return throw(id, `<compensateEventDefinition activityRef="`+activity+`"/>`)
}

// loops makes an element a loop, which is written in XML.
func loops(element, loop string) string {
	return strings.Replace(element, ">", ">"+loop, 1)
}

// later is a handler that takes an hour.
func later(id string) string {
	return `<subProcess id="` + id + `" isForCompensation="true"><startEvent id="U1"/>` + timer("intermediateCatchEvent", `id="U2"`, "PT1H") + `<endEvent id="U3"/>` + flowsOf("U1>U2", "U2>U3") + `</subProcess>`
}

const (
	halfAnHour = `<timerEventDefinition><timeDuration>PT30M</timeDuration></timerEventDefinition>`
	goesOn     = `<compensateEventDefinition waitForCompletion="false"/>`
	twice      = `<multiInstanceLoopCharacteristics isSequential="true"><loopCardinality>2</loopCardinality></multiInstanceLoopCharacteristics>`
	atOnce     = `<multiInstanceLoopCharacteristics tapedeck:collection="= list" tapedeck:element="item"/>`
	stopping   = `<errorEventDefinition errorRef="err"/>`
	restoring  = `<multiInstanceLoopCharacteristics isSequential="true" tapedeck:collection="= list" tapedeck:element="item"/>`
)

var compensations = []struct {
	name, xml, want, has, fails string
	exact                       bool // the order is the same after a cut
}{
	{
		name: "all, in reverse order", xml: diagramOf(startEnd+undone("A")+undone("B")+script("C", does("C"))+throw("X", onCompensation), "S>A", "A>B", "B>C", "C>X", "X>E"),
		want: "+S -S +A -A +B -B +C -C +X +uB -uB +uA -uA -X +E -E completed", has: `"done":" A B C uB uA"`,
	},
	{
		name: "an end event", xml: diagramOf(start+undone("A")+ending("X", onCompensation), "S>A", "A>X"),
		want: "+S -S +A -A +X +uA -uA -X completed",
	},
	{
		name: "one activity", xml: diagramOf(startEnd+undone("A")+undone("B")+compensates("X", "A"), "S>A", "A>B", "B>X", "X>E"),
		want: "+S -S +A -A +B -B +X +uA -uA -X +E -E completed",
	},
	{
		name: "nothing has completed", xml: diagramOf(startEnd+undone("A")+throw("X", onCompensation)+throw("Y", onCompensation), "S>X", "X>A", "A>Y", "Y>E"),
		want: "+S -S +X -X +A -A +Y +uA -uA -Y +E -E completed",
	},
	{
		name: "each at most once", xml: diagramOf(startEnd+undone("A")+undone("B")+compensates("X", "A")+throw("Y", onCompensation)+throw("Z", onCompensation), "S>A", "A>B", "B>X", "X>Y", "Y>Z", "Z>E"),
		want: "+S -S +A -A +B -B +X +uA -uA -X +Y +uB -uB -Y +Z -Z +E -E completed",
	},
	{
		name: "each time, in a circle", xml: diagramOf(startEnd+gateway("exclusive", "M")+undone("A")+script("N", "n = (n ?? 0) + 1")+gateway("exclusive", "G", `default="G_X"`)+throw("X", onCompensation), "S>M", "M>A", "A>N", "N>G", "G>M:n < 3", "G>X", "X>E"),
		want: "+S -S +M -M +A -A +N -N +G -G +M -M +A -A +N -N +G -G +M -M +A -A +N -N +G -G +X +uA -uA +uA -uA +uA -uA -X +E -E completed",
	},
	{
		name: "each instance, the last first", xml: diagramOf(startEnd+loops(script("A", `r = item`), restoring)+handled("A", strings.Replace(script("uA", `done = (done ?? "") + item`), "<scriptTask", `<scriptTask isForCompensation="true"`, 1))+undone("B")+compensates("X", "A"), "S>A", "A>B", "B>X", "X>E"),
		want: "+S -S +A +A -A +A -A +A -A -A +B -B +X +uA -uA +uA -uA +uA -uA -X +E -E completed", has: `"done":" Bcba"`,
	},
	{
		name: "an activity with instances that has not completed", xml: diagramOf(startEnd+end2+gateway("parallel", "F")+loops(`<userTask id="A"></userTask>`, atOnce)+undo("A")+undone("B")+throw("X", onCompensation)+ending("T", `<terminateEventDefinition/>`), "S>F", "F>A", "F>B", "B>X", "X>T", "A>E"),
		want: "+S -S +F -F +A +A A~ +A A~ +A A~ +B -B +X +uB -uB -X +T -T terminated",
	},
	{
		name: "only what has completed", xml: diagramOf(startEnd+gateway("parallel", "F")+undone("A")+timer("intermediateCatchEvent", `id="W"`, "PT1H")+undone("B")+throw("X", onCompensation)+gateway("parallel", "J"), "S>F", "F>A", "A>X", "X>J", "F>W", "W>B", "B>J", "J>E"),
		want: "+S -S +F -F +A -A +W W~ +X +uA -uA -X !W -W +B -B +J -J +E -E completed",
	},
	{
		name: "a handler with instances sees what its activity saw", xml: diagramOf(startEnd+strings.Replace(script("A", "r = who"), "><script", `><extensionElements><tapedeck:input name="who" value="= list"/></extensionElements><script`, 1)+
			handled("A", strings.Replace(loops(script("uA", `done = (done ?? "") + one`), `<multiInstanceLoopCharacteristics isSequential="true" tapedeck:collection="= who" tapedeck:element="one"/>`), "<scriptTask", `<scriptTask isForCompensation="true"`, 1))+throw("X", onCompensation), "S>A", "A>X", "X>E"),
		want: "+S -S +A -A +X +uA +uA -uA +uA -uA +uA -uA -uA -X +E -E completed", has: `"done":"abc"`,
	},
	{
		name: "a sub-process: all in it", xml: diagramOf(startEnd+undone("A")+sub("P1", "1", undone("B")+undone("C"), "S1>B", "B>C")+undone("D")+throw("X", onCompensation), "S>A", "A>P1", "P1>D", "D>X", "X>E"),
		want: "+S -S +A -A +P1 +S1 -S1 +B -B +C -C -P1 +D -D +X +uD -uD +P1 +uC -uC +uB -uB -P1 +uA -uA -X +E -E completed",
	},
	{
		name: "a sub-process in a sub-process", xml: diagramOf(startEnd+sub("P1", "1", sub("P2", "2", undone("B"), "S2>B")+undone("C"), "S1>P2", "P2>C")+compensates("X", "P1"), "S>P1", "P1>X", "X>E"),
		want: "+S -S +P1 +S1 -S1 +P2 +S2 -S2 +B -B -P2 +C -C -P1 +X +P1 +uC -uC +P2 +uB -uB -P2 -P1 -X +E -E completed",
	},
	{
		name: "a sub-process in which nothing can be compensated any more", xml: diagramOf(startEnd+sub("P1", "1", undone("B")+throw("Y", onCompensation), "S1>B", "B>Y")+throw("X", onCompensation), "S>P1", "P1>X", "X>E"),
		want: "+S -S +P1 +S1 -S1 +B -B +Y +uB -uB -Y -P1 +X -X +E -E completed",
	},
	{
		name: "in a sub-process, only what is in it", xml: diagramOf(startEnd+undone("A")+sub("P1", "1", undone("B")+throw("Y", onCompensation), "S1>B", "B>Y"), "S>A", "A>P1", "P1>E"),
		want: "+S -S +A -A +P1 +S1 -S1 +B -B +Y +uB -uB -Y -P1 +E -E completed",
	},
	{
		name: "a sub-process with a handler", xml: diagramOf(startEnd+sub("P1", "1", undone("B"), "S1>B")+undo("P1")+throw("X", onCompensation), "S>P1", "P1>X", "X>E"),
		want: "+S -S +P1 +S1 -S1 +B -B -P1 +X +uP1 -uP1 -X +E -E completed",
	},
	{
		name: "a sub-process with an event sub-process that does all itself", xml: diagramOf(startEnd+sub("P1", "1", undone("B")+eventSub("H", "true", onCompensation, script("T", does("T")), "HA>T", "T>HZ"), "S1>B")+throw("X", onCompensation), "S>P1", "P1>X", "X>E"),
		want: "+S -S +P1 +S1 -S1 +B -B -P1 +X +P1 !H +H +HA -HA +T -T +HZ -HZ -H -P1 -X +E -E completed", has: `"done":" B T"`,
	},
	{
		name: "an event sub-process that throws", xml: diagramOf(startEnd+sub("P1", "1", undone("B")+undone("C")+eventSub("H", "true", onCompensation, undone("T")+compensates("Y", "B")+throw("Z", onCompensation), "HA>T", "T>Y", "Y>Z", "Z>HZ"), "S1>B", "B>C")+throw("X", onCompensation), "S>P1", "P1>X", "X>E"),
		want: "+S -S +P1 +S1 -S1 +B -B +C -C -P1 +X +P1 !H +H +HA -HA +T -T +Y +uB -uB -Y +Z +uT -uT +uC -uC -Z +HZ -HZ -H -P1 -X +E -E completed",
	},
	{
		name: "the instances of a sub-process see their own variables", xml: diagramOf(startEnd+loops(sub("P1", "1", script("B", `v = item`)+handled("B", strings.Replace(script("uB", `done = (done ?? "") + item + v`), "<scriptTask", `<scriptTask isForCompensation="true"`, 1)), "S1>B"), strings.Replace(restoring, `"item"/>`, `"item" tapedeck:outputCollection="all" tapedeck:outputElement="= v"/>`, 1))+throw("X", onCompensation), "S>P1", "P1>X", "X>E"),
		want: "+S -S +P1 +P1 +S1 -S1 +B -B -P1 +P1 +S1 -S1 +B -B -P1 +P1 +S1 -S1 +B -B -P1 -P1 +X +P1 +uB -uB -P1 +P1 +uB -uB -P1 +P1 +uB -uB -P1 -X +E -E completed", has: `"done":"ccbbaa"`,
	},
	{
		name: "what an instance throws is its own", xml: diagramOf(startEnd+loops(sub("P1", "1", undone("B")+throw("Y", onCompensation), "S1>B", "B>Y"), twice), "S>P1", "P1>E"),
		want: "+S -S +P1 +P1 +S1 -S1 +B -B +Y +uB -uB -Y -P1 +P1 +S1 -S1 +B -B +Y +uB -uB -Y -P1 -P1 +E -E completed",
	},
	{
		name: "an event sub-process for errors compensates what is around it", xml: diagramOf(startEnd+undone("A")+undone("B")+ending("Y", stopping)+eventSub("H", "true", stopping, undone("T")+throw("X", onCompensation), "HA>T", "T>X", "X>HZ"), "S>A", "A>B", "B>Y"),
		want: "+S -S +A -A +B -B +Y xY !H +H +HA -HA +T -T +X +uT -uT +uB -uB +uA -uA -X +HZ -HZ -H completed",
	},
	{
		name: "what a sub-process that failed has done is not compensated", xml: diagramOf(startEnd+undone("A")+sub("P1", "1", undone("B")+ending("Y", stopping), "S1>B", "B>Y")+boundary("R", "P1", "true", stopping)+throw("X", onCompensation), "S>A", "A>P1", "P1>E", "R>X", "X>E"),
		want: "+S -S +A -A +P1 +S1 -S1 +B -B +Y xY !R +R -R +X +uA -uA -X +E -E completed",
	},
	{
		name: "an error of a handler is thrown by the event", xml: diagramOf(startEnd+sub("P1", "1", undone("A")+sub("P2", "2", script("B", does("B"))+handled("B", `<subProcess id="uB" isForCompensation="true"><startEvent id="U1"/>`+ending("U2", stopping)+flowsOf("U1>U2")+`</subProcess>`)+eventSub("K", "true", stopping, ""), "S2>B")+boundary("Q", "P2", "true", stopping)+throw("X", onCompensation), "S1>A", "A>P2", "P2>X")+boundary("R", "P1", "true", stopping)+script("C", does("C")), "S>P1", "P1>E", "R>C", "C>E"),
		want: "+S -S +P1 +S1 -S1 +A -A +P2 +S2 -S2 +B -B -P2 +X +P2 +uB +U1 -U1 +U2 xU2 !R +R -R +C -C +E -E completed", has: `"done":" A B C"`,
	},
	{
		name: "an event sub-process goes on after a handler has failed", xml: diagramOf(startEnd+undone("A")+script("B", does("B"))+handled("B", `<subProcess id="uB" isForCompensation="true"><startEvent id="U1"/>`+ending("U2", stopping)+flowsOf("U1>U2")+`</subProcess>`)+throw("X", onCompensation)+eventSub("H", "true", stopping, throw("Y", onCompensation), "HA>Y", "Y>HZ"), "S>A", "A>B", "B>X", "X>E"),
		want: "+S -S +A -A +B -B +X +uB +U1 -U1 +U2 xU2 !H +H +HA -HA +Y +uA -uA -Y +HZ -HZ -H completed",
	},
	{
		name: "an error that nothing catches", xml: diagramOf(startEnd+undone("A")+handled("B", `<scriptTask id="uB" isForCompensation="true"><script>x = 1 / 0</script></scriptTask>`)+script("B", does("B"))+throw("X", onCompensation), "S>A", "A>B", "B>X", "X>E"),
		want: "+S -S +A -A +B -B +X +uB xuB failed", fails: `"uB" failed`,
	},
	{
		name: "an escalation of a handler", xml: diagramOf(startEnd+sub("P1", "1", script("B", does("B"))+handled("B", `<subProcess id="uB" isForCompensation="true"><startEvent id="U1"/>`+throw("U2", onLate)+`<endEvent id="U3"/>`+flowsOf("U1>U2", "U2>U3")+`</subProcess>`)+throw("X", onCompensation), "S1>B", "B>X")+boundary("R", "P1", "false", onLate), "S>P1", "P1>E", "R>E"),
		want: "+S -S +P1 +S1 -S1 +B -B +X +uB +U1 -U1 +U2 !R -U2 +R -R +U3 -U3 -uB -X -P1 +E -E +E -E completed",
	},
	{
		name: "what interrupts ends the handlers", xml: diagramOf(startEnd+sub("P1", "1", undone("A")+script("B", does("B"))+handled("B", `<userTask id="uB" isForCompensation="true"/>`)+throw("X", onCompensation), "S1>A", "A>B", "B>X")+boundary("R", "P1", "true", inAnHour), "S>P1", "P1>E", "R>E"),
		want: "+S -S +P1 R~ +S1 -S1 +A -A +B -B +X +uB uB~ !R +R -R +E -E completed",
	},
	{
		name: "a terminate event ends the handlers", xml: diagramOf(startEnd+gateway("parallel", "F")+script("B", does("B"))+handled("B", `<userTask id="uB" isForCompensation="true"/>`)+throw("X", onCompensation)+timer("intermediateCatchEvent", `id="W"`, "PT1H")+ending("T", `<terminateEventDefinition/>`), "S>F", "F>B", "B>X", "X>E", "F>W", "W>T"),
		want: "+S -S +F -F +B -B +W W~ +X +uB uB~ !W -W +T -T terminated",
	},
	{
		name: "two events at once: the second waits for the first", xml: diagramOf(startEnd+undone("A")+script("B", does("B"))+handled("B", later("uB"))+gateway("parallel", "F")+gateway("parallel", "J")+throw("X", onCompensation)+compensates("Y", "A"), "S>A", "A>B", "B>F", "F>X", "F>Y", "X>J", "Y>J", "J>E"),
		want: "+S -S +A -A +B -B +F -F +X +uB +Y +U1 -U1 +U2 U2~ !U2 -U2 +U3 -U3 -uB +uA -uA -X -Y +J -J +E -E completed", exact: true,
	},
	{
		name: "an event in an event sub-process waits for one that is beside that", xml: diagramOf(startEnd+undone("A")+script("B", does("B"))+handled("B", later("uB"))+throw("X", onCompensation)+eventSub("H", "false", halfAnHour, throw("Y", onCompensation), "HA>Y", "Y>HZ"), "S>A", "A>B", "B>X", "X>E"),
		want: "H~ +S -S +A -A +B -B +X +uB +U1 -U1 +U2 U2~ !H +H +HA -HA +Y !U2 -U2 +U3 -U3 -uB +uA -uA -X -Y +E -E +HZ -HZ -H completed",
	},
	{
		name: "an event goes on when the one for which it waited was interrupted", xml: diagramOf(startEnd+undone("A")+script("B", does("B"))+handled("B", later("uB"))+eventSub("H", "false", halfAnHour, gateway("parallel", "F")+throw("X", onCompensation)+timer("intermediateCatchEvent", `id="W"`, "PT15M")+ending("T", `<terminateEventDefinition/>`), "HA>F", "F>X", "X>HZ", "F>W", "W>T")+timer("intermediateCatchEvent", `id="V"`, "PT40M")+throw("Y", onCompensation), "S>A", "A>B", "B>V", "V>Y", "Y>E"),
		want: "H~ +S -S +A -A +B -B +V V~ !H +H +HA -HA +F -F +X +uB +W W~ +U1 -U1 +U2 U2~ !V -V +Y !W -W +T -T -H +uA -uA -Y +E -E completed",
	},
	{
		name: "a flow that does not wait", xml: diagramOf(startEnd+undone("A")+throw("X", goesOn)+undone("B")+gateway("inclusive", "J"), "S>A", "A>X", "X>B", "B>J", "J>E"),
		want: "+S -S +A -A +X -X +X +uA -uA -X +B -B +J -J +E -E completed", has: `"done":" A uA B"`,
	},
	{
		name: "a gateway does not wait for the compensation, and the process does", xml: diagramOf(startEnd+script("A", does("A"))+handled("A", later("uA"))+throw("X", goesOn)+gateway("inclusive", "F")+gateway("inclusive", "J")+script("B", does("B")), "S>A", "A>X", "X>F", "F>B", "F>J", "B>J", "J>E"),
		want: "+S -S +A -A +X -X +X +uA +F -F +U1 -U1 +B -B +J -J +U2 U2~ +E -E !U2 -U2 +U3 -U3 -uA -X completed",
	},
	{
		name: "an end event has nothing to wait for", xml: diagramOf(start+undone("A")+ending("X", goesOn), "S>A", "A>X"),
		want: "+S -S +A -A +X +uA -uA -X completed",
	},
	{
		name: "what completes meanwhile is not compensated", xml: diagramOf(startEnd+script("A", does("A"))+handled("A", later("uA"))+gateway("parallel", "F")+gateway("parallel", "J")+throw("X", onCompensation)+undone("B")+compensates("Y", "B"), "S>A", "A>F", "F>X", "F>B", "X>J", "B>J", "J>Y", "Y>E"),
		want: "+S -S +A -A +F -F +X +uA +B -B +U1 -U1 +U2 U2~ !U2 -U2 +U3 -U3 -uA -X +J -J +Y +uB -uB -Y +E -E completed",
	},
	{
		name: "a call activity has its handler, and what it did is its own", xml: called(processOf("P", startEnd+`<callActivity id="C" calledElement="Q"/>`+undo("C")+throw("X", onCompensation), "S>C", "C>X", "X>E"), undone("A")+throw("Y", onCompensation)+undone("B"), "QS>A", "A>Y", "Y>B", "B>QE"),
		want: "+S -S +C +QS -QS +A -A +Y +uA -uA -Y +B -B +QE -QE -C +X +uC -uC -X +E -E completed",
	},
	{
		name: "a call activity as a handler", xml: called(processOf("P", startEnd+script("A", does("A"))+handled("A", `<callActivity id="uA" calledElement="Q" isForCompensation="true"/>`)+throw("X", onCompensation), "S>A", "A>X", "X>E"), script("T", does("T")), "QS>T", "T>QE"),
		want: "+S -S +A -A +X +uA +QS -QS +T -T +QE -QE -uA -X +E -E completed", has: `"done":" A T"`,
	},
	{
		name: "an activity of which only the first instance has completed before", xml: diagramOf(startEnd+undone("A")+script("C", does("C"))+handled("C", later("uC"))+gateway("parallel", "F")+gateway("parallel", "J")+timer("intermediateCatchEvent", `id="W"`, "PT30M")+throw("X", onCompensation)+
			loops(sub("B", "1", timer("intermediateCatchEvent", `id="V"`, "PT20M"), "S1>V"), twice)+undo("B"), "S>A", "A>C", "C>F", "F>W", "W>X", "X>J", "F>B", "B>J", "J>E"),
		want: "+S -S +A -A +C -C +F -F +W W~ +B +B +S1 -S1 +V V~ !V -V -B +B +S1 -S1 +V V~ !W -W +X +uC +U1 -U1 +U2 U2~ !V -V -B -B !U2 -U2 +U3 -U3 -uC +uA -uA -X +J -J +E -E completed",
	},
	{
		name: "the handler of a call activity sees the values of now", xml: called(processOf("P", startEnd+`<callActivity id="C" calledElement="Q"/>`+handled("C", strings.Replace(script("uC", "seen = n"), "<scriptTask", `<scriptTask isForCompensation="true"`, 1))+script("N", "n = 3")+throw("X", onCompensation), "S>C", "C>N", "N>X", "X>E"), script("T", "n = 2"), "QS>T", "T>QE"),
		want: "+S -S +C +QS -QS +T -T +QE -QE -C +N -N +X +uC -uC -X +E -E completed", has: `"seen":3`,
	},
	{
		name: "the handler of the instances of a call activity sees their numbers", xml: called(processOf("P", startEnd+loops(`<callActivity id="C" calledElement="Q"></callActivity>`, restoring)+handled("C", strings.Replace(script("uC", "done = (done ?? '') + list[loopCounter - 1]"), "<scriptTask", `<scriptTask isForCompensation="true"`, 1))+throw("X", onCompensation), "S>C", "C>X", "X>E"), script("T", "n = 2"), "QS>T", "T>QE"),
		want: "+S -S +C +C +QS -QS +T -T +QE -QE -C +C +QS -QS +T -T +QE -QE -C +C +QS -QS +T -T +QE -QE -C -C +X +uC -uC +uC -uC +uC -uC -X +E -E completed", has: `"done":"cba"`,
	},
	{
		name: "a called diagram", xml: withCalled(diagramOf(startEnd+`<callActivity id="C" calledElement="other"/>`, "S>C", "C>E"), diagramOf(startEnd+undone("A")+undone("B")+compensates("X", "A"), "S>A", "A>B", "B>X", "X>E")),
		want: "+S -S +C +other.S -other.S +other.A -other.A +other.B -other.B +other.X +other.uA -other.uA -other.X +other.E -other.E -C +E -E completed",
	},
	{
		name: "a loop with a condition", xml: diagramOf(startEnd+loops(undone("A"), `<standardLoopCharacteristics loopMaximum="2"/>`)+throw("X", onCompensation), "S>A", "A>X", "X>E"),
		want: "+S -S +A +A -A +A -A -A +X +uA -uA +uA -uA -X +E -E completed",
	},
	{
		name: "an event sub-process that has completed", xml: diagramOf(startEnd+eventSub("H", "false", inAnHour, undone("A"), "HA>A", "A>HZ")+timer("intermediateCatchEvent", `id="W"`, "PT2H")+throw("X", onCompensation), "S>W", "W>X", "X>E"),
		want: "H~ +S -S +W W~ !H +H +HA -HA +A -A +HZ -HZ -H !W -W +X +H +uA -uA -H -X +E -E completed",
	},
	{
		name: "a gateway that joins waits for the event, not for the handler", xml: diagramOf(startEnd+gateway("inclusive", "F")+gateway("inclusive", "J")+undone("A")+throw("X", onCompensation)+script("B", does("B")), "S>F", "F>A", "F>B", "A>X", "X>J", "B>J", "J>E"),
		want: "+S -S +F -F +A -A +B -B +X +uA -uA -X +J -J +E -E completed",
	},
}

// TestCompensation: what is compensated, in which order, and with which variables. A walk that
// is cut off after any event, and continued, takes the same decisions.
func TestCompensation(t *testing.T) {
	for _, tt := range compensations {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				for n := range 6 {
					h := newHost(t, withEscalations(tt.xml), "list", []string{"a", "b", "c"})
					var err error
					if n == 0 {
						_, err = h.run()
					} else {
						err = h.cutOff(n)
					}
					got := h.trace()
					if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) || (n == 0 || tt.exact) && got != tt.want || sorted(got) != sorted(tt.want) {
						t.Errorf("cut off every %d events: %v\ngot  %s\nwant %s", n, err, got, tt.want)
					}
					if got := values(h.state()); !strings.Contains(got, tt.has) {
						t.Errorf("the variables are %s, want %s", got, tt.has)
					}
					h.checkOnce()
					h.checkKept()
				}
			})
		})
	}
}

// checkKept checks that the fold counts what can be compensated, after each event.
func (h *host) checkKept() {
	f := view.NewWorkflowFold("")
	var count func(list []*view.WorkflowCompensable) int
	count = func(list []*view.WorkflowCompensable) int {
		n := len(list)
		for _, c := range list {
			n += count(c.Inside)
		}
		return n
	}
	for ev := range h.events(func(*tapedeck.Event) bool { return true }) {
		f.Apply(&ev)
		n := count(f.Compensable(""))
		for a := range f.EachOpen() {
			n += count(a.Compensable)
		}
		if f.Kept() != n {
			h.Errorf("after event %d the fold has %d activities that can be compensated, and counts %d", ev.Offset, n, f.Kept())
			return
		}
	}
}

// compensated returns what activations compensate, as the log says it.
func (h *host) compensated() string {
	var out []string
	names := map[string]string{}
	for ev := range h.events(func(e *tapedeck.Event) bool { return e.Type == tapedeck.WorkflowEntered }) {
		d, _ := payload.DecodeAs[payload.WorkflowEntered](ev)
		names[d.Activation] = d.Element
		if d.Compensates != "" {
			out = append(out, fmt.Sprint(d.Element, " in ", names[d.Scope], " for ", names[d.Compensates], " ", d.Compensates))
		}
	}
	return strings.Join(out, ", ")
}

// TestCompensationInTheLog: an activity is kept only if it can be compensated, and what
// compensates it names it.
func TestCompensationInTheLog(t *testing.T) {
	nothing := diagramOf(startEnd+undone("A")+sub("P1", "1", script("B", does("B")), "S1>B"), "S>A", "A>P1", "P1>E")
	for xml, want := range map[string]string{
		nothing: "",
		strings.Replace(nothing, `<endEvent id="E"/>`, ending("E", onCompensation), 1):                                                     "A2",
		diagramOf(start+sub("P1", "1", undone("B"), "S1>B")+ending("X", onCompensation), "S>P1", "P1>X"):                                   "B4 P12",
		diagramOf(start+loops(script("A", "r = item"), restoring)+undo("A")+ending("X", onCompensation), "S>A", "A>X"):                     "A3 A4 A5 A2",
		diagramOf(start+sub("P1", "1", undone("B")+throw("Y", onCompensation), "S1>B", "B>Y")+ending("X", onCompensation), "S>P1", "P1>X"): "B4",
	} {
		h := newHost(t, xml, "list", []string{"a", "b", "c"})
		if _, err := h.run(); err != nil {
			t.Fatal(err)
		}
		var kept []string
		for ev := range h.events(func(e *tapedeck.Event) bool { return e.Type == tapedeck.WorkflowLeft }) {
			if d, _ := payload.DecodeAs[payload.WorkflowLeft](ev); d.Compensable {
				kept = append(kept, d.Element+d.Activation)
			}
		}
		if got := strings.Join(kept, " "); got != want {
			t.Errorf("kept %s, want %s of %s", got, want, xml)
		}
	}
	h := newHost(t, diagramOf(start+sub("P1", "1", undone("B"), "S1>B")+ending("X", onCompensation), "S>P1", "P1>X"))
	if _, err := h.run(); err != nil || h.compensated() != "P1 in X for P1 2, uB in P1 for B 4" {
		t.Error(err, h.compensated())
	}
}

// TestCompensationLimits: what a run remembers is limited in number and in size. More is an error
// of the activity.
func TestCompensationLimits(t *testing.T) {
	many := diagramOf(start+loops(script("A", "r = 1"), `<multiInstanceLoopCharacteristics><loopCardinality>10000</loopCardinality></multiInstanceLoopCharacteristics>`)+undo("A")+undone("B")+ending("X", `<compensateEventDefinition activityRef="B"/>`), "S>A", "A>B", "B>X")
	h := newHost(t, many)
	if _, err := h.run(); err == nil || !strings.Contains(err.Error(), `"B" failed: 10000 activities have completed and may be compensated, which is the limit`) {
		t.Errorf("of 10,001 activities: %v", err)
	}
	large := strings.Replace(script("A", "r = 1"), "><script", `><extensionElements><tapedeck:input name="text" value="= given"/></extensionElements><script`, 1)
	h = newHost(t, diagramOf(start+loops(large, twice)+undo("A")+ending("X", onCompensation), "S>A", "A>X"), "given", strings.Repeat("x", 1000))
	h.runner.maxState = 2500
	if _, err := h.run(); err == nil || !strings.Contains(err.Error(), "at most 2500 are allowed") {
		t.Errorf("of large variables: %v", err)
	}
	h = newHost(t, diagramOf(start+large+undo("A")+strings.ReplaceAll(large, `"A"`, `"B"`)+undo("B")+ending("X", onCompensation), "S>A", "A>B", "B>X"), "given", strings.Repeat("x", 1000))
	h.runner.maxState = 2500
	if _, err := h.run(); err == nil || !strings.Contains(err.Error(), `"B" failed: the variables of the workflow would have `) {
		t.Errorf("of the large variables of two activities: %v", err)
	}
}

// TestCompensationThatDoesNotFit: variables that do not fit once more are an error where the event
// is, also if a restart comes before that is in the log.
func TestCompensationThatDoesNotFit(t *testing.T) {
	input := `<extensionElements><tapedeck:input name="text" value="= given"/></extensionElements>`
	for _, in := range []string{
		strings.Replace(script("P1", "r = 1"), "><script", ">"+input+"<script", 1) + undo("P1"),
		`<subProcess id="P1">` + input + `<startEvent id="S1"/>` + undone("B") + flowsOf("S1>B") + `</subProcess>`,
	} {
		xml := diagramOf(startEnd+sub("P2", "2", in+ending("X", onCompensation), "S2>P1", "P1>X")+boundary("R", "P2", "true", `<errorEventDefinition camunda:errorMessageVariable="why"/>`), "S>P2", "P2>E", "R>E")
		for cut := 0; ; cut++ {
			h := newHost(t, xml, "given", strings.Repeat("x", 1000))
			h.runner.maxState, h.cutAt = 2500, cut
			err := h.begin(t.Context(), "")
			if err == nil {
				err = h.walk(t.Context(), "")
			}
			if h.cutAt = 0; errors.Is(err, errCut) {
				err = h.walk(t.Context(), "")
			} else if cut > 0 && len(h.log) < cut {
				break
			}
			if got := values(h.state()); err != nil || !strings.Contains(got, `"why":"the variables of the workflow would have `) {
				t.Errorf("cut off after %d events: %v, %.100s", cut, err, got)
			}
		}
	}
}

// TestCompensationAndResume: a handler that has failed is tried again with the variables that it
// had, and the rest follows. So does a run that was stopped while it compensated.
func TestCompensationAndResume(t *testing.T) {
	for _, tt := range []struct{ stopped, inside bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		stopped := tt.stopped
		inBubble(t, func(t *testing.T) {
			handler := strings.Replace(agentTask("uA", "no {{ item }}", "r"), "<serviceTask", `<serviceTask isForCompensation="true"`, 1)
			done := loops(script("A", "x = item"), restoring) + handled("A", handler) + undone("B")
			xml := diagramOf(startEnd+done+throw("X", onCompensation), "S>A", "A>B", "B>X", "X>E")
			want := "uB in X for B 6, uA in X for A 5, uA in X for A 4, uA in X for A 4, uA in X for A 3"
			if tt.inside {
				xml = diagramOf(startEnd+sub("P1", "1", done, "S1>A", "A>B")+throw("X", onCompensation), "S>P1", "P1>X", "X>E")
				want = "P1 in X for P1 2, uB in P1 for B 8, uA in P1 for A 7, uA in P1 for A 6, uA in P1 for A 6, uA in P1 for A 5"
			}
			h := newHost(t, xml, "list", []string{"a", "b", "c"})
			worse := true
			ctx, cancel := context.WithCancel(t.Context())
			h.agent = func(_ context.Context, d tapedeck.Delegation) (tapedeck.Delegated, error) {
				if d.Task == "no b" && worse {
					if stopped {
						cancel()
					}
					return tapedeck.Delegated{Status: tapedeck.StatusFailed, Message: "no luck"}, nil
				}
				return tapedeck.Delegated{Status: tapedeck.StatusComplete, Text: d.Task}, nil
			}
			if err := h.begin(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			if err := h.walk(ctx, ""); err == nil {
				t.Fatal("it did not fail")
			}
			end := payload.NewEvent(payload.RunError{Message: "no luck"})
			if stopped {
				end = payload.NewEvent(payload.RunFinished{Outcome: &payload.Outcome{Type: payload.OutcomeCancelled}})
			}
			end.Invocation = h.open
			h.append(end)
			worse, h.once = false, map[string]tapedeck.Delegated{}
			first := h.open
			if err := h.begin(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			if err := h.walk(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			if stopped {
				want = strings.NewReplacer("uA in X for A 4, uA in X for A 4", "uA in X for A 4", "uA in P1 for A 6, uA in P1 for A 6", "uA in P1 for A 6").Replace(want)
			}
			if got := h.compensated(); got != want {
				t.Errorf("stopped %v: compensated %s, want %s", stopped, got, want)
			}
			if got := values(h.state()); !strings.Contains(got, `"r":"no a"`) {
				t.Error(got)
			}
		})
	}
}
