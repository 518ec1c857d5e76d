package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// withEscalations adds the escalations late, dear, and esc with the code of the error err to what events refer to.
func withEscalations(xml string) string {
	return strings.Replace(withEvents(xml), "<process ", `<escalation id="late" name="Too late" escalationCode="late"/><escalation id="dear" escalationCode="dear"/><escalation id="esc" escalationCode="broken"/><process `, 1)
}

const (
	onLate       = `<escalationEventDefinition escalationRef="late"/>`
	onDear       = `<escalationEventDefinition escalationRef="dear"/>`
	onEscalation = `<escalationEventDefinition camunda:escalationCodeVariable="code"/>`
	end2         = `<endEvent id="E2"/>`
)

func throw(id, trigger string) string {
	return `<intermediateThrowEvent id="` + id + `">` + trigger + `</intermediateThrowEvent>`
}

func ending(id, trigger string) string {
	return `<endEvent id="` + id + `">` + trigger + `</endEvent>`
}

// sub is a sub-process with a start S and an id, such as S1, and what is in it.
func sub(id, n, inside string, flows ...string) string {
	return `<subProcess id="` + id + `"><startEvent id="S` + n + `"/>` + inside + flowsOf(flows...) + `</subProcess>`
}

// late1 is a sub-process that throws in its middle.
var late1 = sub("P1", "1", throw("X", onLate)+`<endEvent id="E1"/>`, "S1>X", "X>E1")

var escalations = []struct{ name, xml, want, has, note string }{
	{
		name: "the boundary of a sub-process, interrupting", xml: diagramOf(startEnd+end2+late1+boundary("B", "P1", "true", onLate), "S>P1", "P1>E", "B>E2"),
		want: "+S -S +P1 +S1 -S1 +X !B +B -B +E2 -E2 completed",
	},
	{
		name: "the boundary of a sub-process, not interrupting", xml: diagramOf(startEnd+end2+late1+boundary("B", "P1", "false", onLate), "S>P1", "P1>E", "B>E2"),
		want: "+S -S +P1 +S1 -S1 +X !B -X +B -B +E1 -E1 -P1 +E2 -E2 +E -E completed",
	},
	{
		name: "an end event, interrupting", xml: diagramOf(startEnd+end2+sub("P1", "1", ending("X", onLate), "S1>X")+boundary("B", "P1", "true", onLate), "S>P1", "P1>E", "B>E2"),
		want: "+S -S +P1 +S1 -S1 +X !B +B -B +E2 -E2 completed",
	},
	{
		name: "an end event, not interrupting", xml: diagramOf(startEnd+end2+sub("P1", "1", ending("X", onLate), "S1>X")+boundary("B", "P1", "false", onLate), "S>P1", "P1>E", "B>E2"),
		want: "+S -S +P1 +S1 -S1 +X !B -X -P1 +B -B +E -E +E2 -E2 completed",
	},
	{
		name: "an event sub-process, interrupting", xml: diagramOf(startEnd+throw("X", onLate)+eventSub("H", "true", onLate, ""), "S>X", "X>E"),
		want: "+S -S +X !H +H +HA -HA +HZ -HZ -H completed",
	},
	{
		name: "an event sub-process, not interrupting", xml: diagramOf(startEnd+throw("X", onLate)+eventSub("H", "false", onLate, ""), "S>X", "X>E"),
		want: "+S -S +X !H -X +H +E -E +HA -HA +HZ -HZ -H completed",
	},
	{
		name: "an event sub-process twice", xml: diagramOf(startEnd+throw("X", onLate)+throw("Y", onLate)+eventSub("H", "false", onLate, ""), "S>X", "X>Y", "Y>E"),
		want: "+S -S +X !H -X +H +Y !H -Y +HA -HA +H +E -E +HZ -HZ -H +HA -HA +HZ -HZ -H completed",
	},
	{
		name: "an event sub-process of a sub-process comes before its boundary", xml: diagramOf(startEnd+end2+sub("P1", "1", ending("X", onLate)+eventSub("H", "true", onEscalation, ""), "S1>X")+boundary("B", "P1", "true", onLate), "S>P1", "P1>E", "B>E2"),
		want: "+S -S +P1 +S1 -S1 +X !H +H +HA -HA +HZ -HZ -H -P1 +E -E completed", has: `"code":"late"`,
	},
	{
		name: "the inner one catches it", xml: diagramOf(startEnd+end2+sub("P0", "0", late1+boundary("A", "P1", "false", onEscalation), "S0>P1")+boundary("B", "P0", "true", onLate), "S>P0", "P0>E", "B>E2"),
		want: "+S -S +P0 +S0 -S0 +P1 +S1 -S1 +X !A -X +A -A +E1 -E1 -P1 -P0 +E -E completed", has: `"code":"late"`,
	},
	{
		name: "the inner one catches another code", xml: diagramOf(startEnd+end2+sub("P0", "0", late1+boundary("A", "P1", "false", onDear), "S0>P1")+boundary("B", "P0", "true", onLate), "S>P0", "P0>E", "B>E2"),
		want: "+S -S +P0 +S0 -S0 +P1 +S1 -S1 +X !B +B -B +E2 -E2 completed",
	},
	{
		name: "the code comes before all codes", xml: diagramOf(startEnd+end2+sub("P1", "1", throw("X", onDear)+ending("Y", onLate), "S1>X", "X>Y")+boundary("A", "P1", "false", onEscalation)+boundary("B", "P1", "false", onLate), "S>P1", "P1>E", "B>E2"),
		want: "+S -S +P1 +S1 -S1 +X !A -X +A -A +Y !B -Y -P1 +B -B +E -E +E2 -E2 completed", has: `"code":"dear"`,
	},
	{
		name: "without a code only an event without one catches it", xml: diagramOf(startEnd+end2+sub("P1", "1", ending("X", `<escalationEventDefinition/>`), "S1>X")+boundary("A", "P1", "true", onLate)+boundary("B", "P1", "true", onEscalation), "S>P1", "P1>E", "A>E", "B>E2"),
		want: "+S -S +P1 +S1 -S1 +X !B +B -B +E2 -E2 completed", has: `"code":""`,
	},
	{
		name: "an error of the same code is no escalation", xml: diagramOf(startEnd+end2+sub("P1", "1", throw("X", `<escalationEventDefinition escalationRef="esc"/>`)+ending("Y", `<errorEventDefinition errorRef="err"/>`), "S1>X", "X>Y")+
			boundary("A", "P1", "true", `<errorEventDefinition errorRef="err"/>`)+boundary("B", "P1", "false", `<escalationEventDefinition escalationRef="esc"/>`), "S>P1", "P1>E", "A>E", "B>E2"),
		want: "+S -S +P1 +S1 -S1 +X !B -X +B -B +Y xY !A +E2 -E2 +A -A +E -E completed",
	},
	{
		name: "the boundary of a call, interrupting", xml: called(processOf("P", startEnd+end2+`<callActivity id="C" calledElement="Q"/>`+boundary("B", "C", "true", onLate), "S>C", "C>E", "B>E2"), throw("X", onLate), "QS>X", "X>QE"),
		want: "+S -S +C +QS -QS +X !B +B -B +E2 -E2 completed",
	},
	{
		name: "the boundary of a call, not interrupting", xml: called(processOf("P", startEnd+end2+`<callActivity id="C" calledElement="Q"/>`+boundary("B", "C", "false", onLate)+script("T", "n = 1"), "S>C", "C>E", "B>T", "T>E2"), throw("X", onLate), "QS>X", "X>QE"),
		want: "+S -S +C +QS -QS +X !B -X +B -B +QE -QE -C +T -T +E -E +E2 -E2 completed", has: `"n":1`,
	},
	{
		name: "a call in a sub-process, caught outside of both", xml: called(processOf("P", startEnd+end2+sub("P1", "1", `<callActivity id="C" calledElement="Q"/>`, "S1>C")+boundary("B", "P1", "false", onLate), "S>P1", "P1>E", "B>E2"), throw("X", onLate), "QS>X", "X>QE"),
		want: "+S -S +P1 +S1 -S1 +C +QS -QS +X !B -X +B -B +QE -QE -C -P1 +E2 -E2 +E -E completed",
	},
	{
		name: "a called diagram, with the same ids", xml: withCalled(withEscalations(diagramOf(startEnd+end2+`<callActivity id="C" calledElement="other"/>`+boundary("B", "C", "true", onLate), "S>C", "C>E", "B>E2")), withEscalations(diagramOf(startEnd+throw("X", onLate), "S>X", "X>E"))),
		want: "+S -S +C +other.S -other.S +other.X !B +B -B +E2 -E2 completed",
	},
	{
		name: "nothing catches it", xml: diagramOf(startEnd+sub("P1", "1", throw("X", onLate)+ending("Y", onDear), "S1>X", "X>Y")+boundary("B", "P1", "true", `<errorEventDefinition/>`), "S>P1", "P1>E", "B>E"),
		want: "+S -S +P1 +S1 -S1 +X -X +Y -Y -P1 +E -E completed", note: `X: nothing catches the escalation "late", Y: nothing catches the escalation "dear"`,
	},
	{
		name: "nothing catches one without a code", xml: diagramOf(start+ending("E", `<escalationEventDefinition/>`), "S>E"),
		want: "+S -S +E -E completed", note: `E: nothing catches the escalation, which has no code`,
	},
	{
		name: "what an event sub-process throws goes to what is around its scope", xml: diagramOf(startEnd+end2+boundary("B", "P1", "true", onLate)+
			sub("P1", "1", ending("X", onLate)+strings.Replace(eventSub("H", "false", onLate, ""), `<endEvent id="HZ"/>`, ending("HZ", onLate), 1), "S1>X"), "S>P1", "P1>E", "B>E2"),
		want: "+S -S +P1 +S1 -S1 +X !H -X +H +HA -HA +HZ !B +B -B +E2 -E2 completed",
	},
	{
		name: "parallel branches, not interrupting", xml: diagramOf(startEnd+end2+sub("P1", "1", gateway("parallel", "F")+throw("X", onLate)+throw("Y", onLate)+gateway("parallel", "J"), "S1>F", "F>X", "F>Y", "X>J", "Y>J")+boundary("B", "P1", "false", onLate), "S>P1", "P1>E", "B>E2"),
		want: "+S -S +P1 +S1 -S1 +F -F +X !B -X +Y !B -Y +B -B +J -J -P1 +B -B +E2 -E2 +E -E +E2 -E2 completed",
	},
	{
		name: "parallel branches, interrupting", xml: diagramOf(startEnd+end2+sub("P1", "1", gateway("parallel", "F")+ending("X", onLate)+ending("Y", onLate)+`<userTask id="U"/>`, "S1>F", "F>U", "F>X", "F>Y")+boundary("B", "P1", "true", onLate), "S>P1", "P1>E", "B>E2"),
		want: "+S -S +P1 +S1 -S1 +F -F +U U~ +X !B +B -B +E2 -E2 completed",
	},
	{
		name: "each instance, not interrupting", xml: diagramOf(startEnd+end2+strings.Replace(late1, `"P1">`, `"P1"><multiInstanceLoopCharacteristics><loopCardinality>2</loopCardinality></multiInstanceLoopCharacteristics>`, 1)+boundary("B", "P1", "false", onLate), "S>P1", "P1>E", "B>E2"),
		want: "+S -S +P1 +P1 +P1 +S1 -S1 +S1 -S1 +X !B -X +X !B -X +B -B +E1 -E1 -P1 +B -B +E1 -E1 -P1 -P1 +E2 -E2 +E2 -E2 +E -E completed",
	},
	{
		name: "one instance interrupts all", xml: diagramOf(startEnd+end2+strings.Replace(late1, `"P1">`, `"P1"><multiInstanceLoopCharacteristics><loopCardinality>3</loopCardinality></multiInstanceLoopCharacteristics>`, 1)+boundary("B", "P1", "true", onLate), "S>P1", "P1>E", "B>E2"),
		want: "+S -S +P1 +P1 +P1 +P1 +S1 -S1 +S1 -S1 +S1 -S1 +X !B +B -B +E2 -E2 completed",
	},
	{
		name: "an event sub-process in each instance interrupts only that", xml: diagramOf(startEnd+`<subProcess id="P1"><multiInstanceLoopCharacteristics><loopCardinality>2</loopCardinality></multiInstanceLoopCharacteristics><startEvent id="S1"/>`+ending("X", onLate)+eventSub("H", "true", onLate, script("T", "n = (n ?? 0) + 1"), "HA>T", "T>HZ")+flowsOf("S1>X")+`</subProcess>`, "S>P1", "P1>E"),
		want: "+S -S +P1 +P1 +P1 +S1 -S1 +S1 -S1 +X !H +X !H +H +H +HA -HA +HA -HA +T -T +T -T +HZ -HZ -H -P1 +HZ -HZ -H -P1 -P1 +E -E completed", has: `"n":2`,
	},
	{
		name: "a gateway that joins waits for what a boundary began", xml: diagramOf(startEnd+late1+boundary("B", "P1", "false", onLate)+gateway("inclusive", "J")+timer("intermediateCatchEvent", `id="W"`, "PT1H"), "S>P1", "P1>J", "B>W", "W>J", "J>E"),
		want: "+S -S +P1 +S1 -S1 +X !B -X +B -B +E1 -E1 -P1 +W W~ !W -W +J -J +E -E completed",
	},
}

// TestEscalations: who catches an escalation, and what goes on. A walk that is cut off after
// any event, and continued, takes the same decisions, and throws nothing twice.
func TestEscalations(t *testing.T) {
	for _, tt := range escalations {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				xml := tt.xml
				if !strings.Contains(xml, "<escalation ") {
					xml = withEscalations(xml)
				}
				for n := range 6 {
					h := newHost(t, xml)
					var err error
					if n == 0 {
						_, err = h.run()
					} else {
						err = h.cutOff(n)
					}
					got := h.trace()
					if err != nil || n == 0 && got != tt.want || sorted(got) != sorted(tt.want) {
						t.Errorf("cut off every %d events: %v\ngot  %s\nwant %s", n, err, got, tt.want)
					}
					if got := values(h.state()); !strings.Contains(got, tt.has) {
						t.Errorf("the variables are %s, want %s", got, tt.has)
					}
					if got := h.notes(); got != tt.note {
						t.Errorf("the notes are %s, want %s", got, tt.note)
					}
					h.checkOnce()
				}
			})
		})
	}
}

// notes returns the notes of elements that were left.
func (h *host) notes() string {
	var out []string
	for ev := range h.events(func(e *tapedeck.Event) bool { return e.Type == tapedeck.WorkflowLeft }) {
		if d, _ := payload.DecodeAs[payload.WorkflowLeft](ev); d.Note != "" {
			out = append(out, d.Element+": "+d.Note)
		}
	}
	return strings.Join(out, ", ")
}

// TestEscalationStopsWork: one that interrupts stops the agent and withdraws the question of its
// scope; one that does not leaves both.
func TestEscalationStopsWork(t *testing.T) {
	for _, interrupting := range []string{"true", "false"} {
		inBubble(t, func(t *testing.T) {
			inside := gateway("parallel", "F") + agentTask("T", "x", "r") + `<userTask id="U"/>` + timer("intermediateCatchEvent", `id="W"`, "PT1M") + ending("X", onLate)
			xml := withEscalations(diagramOf(startEnd+end2+sub("P1", "1", inside, "S1>F", "F>T", "F>U", "F>W", "W>X")+boundary("B", "P1", interrupting, onLate), "S>P1", "P1>E", "B>E2"))
			h := newHost(t, xml)
			stopped := false
			h.agent = func(ctx context.Context, _ tapedeck.Delegation) (tapedeck.Delegated, error) {
				select {
				case <-ctx.Done():
					stopped = true
				case <-time.After(time.Hour):
				}
				return tapedeck.Delegated{Status: tapedeck.StatusComplete, Text: "done"}, nil
			}
			if err := h.begin(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			ended, stop := h.walkOn()
			time.Sleep(2 * time.Hour)
			withdrawn := ""
			for ev := range h.events(func(e *tapedeck.Event) bool { return e.Type == tapedeck.PermissionAnswered }) {
				withdrawn += string(ev.Data)
			}
			w := h.state()
			if interrupts := interrupting == "true"; stopped != interrupts || strings.Contains(withdrawn, `"cancelled"`) != interrupts || (w.Outcome == view.WorkflowCompleted) != interrupts || strings.Contains(values(w), `"r":"done"`) == interrupts {
				t.Errorf("interrupting %s: stopped %v, answers %s, %s, %s", interrupting, stopped, withdrawn, w.Outcome, values(w))
			}
			stop()
			<-ended
		})
	}
}

// TestEscalationAndCancel: a run that is stopped right after an escalation was caught continues in
// a new run. What was thrown is not thrown again.
func TestEscalationAndCancel(t *testing.T) {
	for _, interrupting := range []string{"true", "false"} {
		inBubble(t, func(t *testing.T) {
			h := newHost(t, withEscalations(diagramOf(startEnd+end2+late1+boundary("B", "P1", interrupting, onLate), "S>P1", "P1>E", "B>E2")))
			whole := newHost(t, h.config.BPMN)
			if _, err := whole.run(); err != nil {
				t.Fatal(err)
			}
			if err := h.begin(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			for i, ev := range whole.log {
				if ev.Type == tapedeck.WorkflowCaught {
					h.cutAt = i + 1
				}
			}
			if err := h.walk(t.Context(), ""); !errors.Is(err, errCut) {
				t.Fatal(err)
			}
			h.cutAt = 0
			finished := payload.NewEvent(payload.RunFinished{Outcome: &payload.Outcome{Type: payload.OutcomeCancelled}})
			finished.Invocation = h.open
			h.append(finished)
			first := h.open
			if err := h.begin(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			if err := h.walk(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			if got := h.trace(); got != whole.trace() {
				t.Errorf("interrupting %s:\ngot  %s\nwant %s", interrupting, got, whole.trace())
			}
		})
	}
}

// TestEscalationInTheLog: the event that catches has the code, the name and the one that threw.
func TestEscalationInTheLog(t *testing.T) {
	h := newHost(t, withEscalations(diagramOf(startEnd+late1+boundary("B", "P1", "false", onLate), "S>P1", "P1>E", "B>E")))
	if _, err := h.run(); err != nil {
		t.Fatal(err)
	}
	for ev := range h.events(func(e *tapedeck.Event) bool { return e.Type == tapedeck.WorkflowCaught }) {
		var got map[string]any
		_ = json.Unmarshal(ev.Data, &got)
		if want := "map[activation:2 by:escalation code:late element:B message:Too late sender:4]"; fmt.Sprint(got) != want {
			t.Errorf("got  %v\nwant %s", got, want)
		}
	}
}

// TestEscalationInACircle: an event at the boundary that leads back to its sub-process begins it
// again and again. The limit ends that.
func TestEscalationInACircle(t *testing.T) {
	h := newHost(t, withEscalations(diagramOf(startEnd+gateway("exclusive", "M")+late1+boundary("B", "P1", "false", onLate), "S>M", "M>P1", "P1>E", "B>M")))
	h.runner.options.MaxEntries = 50
	if _, err := h.run(); err == nil || !strings.Contains(err.Error(), "it was entered 50 times, which is the limit") {
		t.Errorf("got %v", err)
	}
}
