package bpmn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

// rooted makes a file whose event definitions, with the ids d1, d2 and so on, are beside the
// process; in the process, {d1} stands for a reference to the first one.
func rooted(inside string, definitions ...string) string {
	roots := ""
	for i, d := range definitions {
		id := fmt.Sprint("d", i+1)
		name, rest, _ := strings.Cut(d, " ")
		roots += "<" + name + ` id="` + id + `" ` + rest
		inside = strings.ReplaceAll(inside, "{"+id+"}", "<eventDefinitionRef>x:"+id+"</eventDefinitionRef>")
	}
	return strings.Replace(whole(inside), "</definitions>", roots+"</definitions>", 1)
}

// events describes the events of a file.
func events(t *testing.T, d *bpmn.Definitions) string {
	t.Helper()
	var out []string
	for _, n := range d.Main.Nodes {
		e := n.Event
		if e == nil {
			continue
		}
		text := n.ID + " " + string(e.Kind)
		if e.Name != nil {
			text += " " + e.Name.Text
		}
		if e.Correlation != nil {
			text += " " + e.Correlation.Text
		}
		if e.Timer != nil {
			text += " " + string(e.Timer.Kind) + " " + e.Timer.Value.Text
		}
		if e.Code+e.CodeVariable != "" {
			text += " " + e.Code + " " + e.CodeName + " " + e.CodeVariable
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

// TestInline: an event definition beside the process is the same as one in the event, also
// for several events, and in a file that is called.
func TestInline(t *testing.T) {
	shared := `<message id="m" name="paid"/><error id="x" name="Broken" errorCode="broken"/><signal id="g" name="stop"/></definitions>`
	inside := `<boundaryEvent id="b1" attachedToRef="t">{d1}</boundaryEvent><boundaryEvent id="b2" attachedToRef="t" cancelActivity="false">{d2}</boundaryEvent>` +
		`<boundaryEvent id="b3" attachedToRef="t">{d3}</boundaryEvent><boundaryEvent id="b4" attachedToRef="t">{d4}</boundaryEvent><boundaryEvent id="b5" attachedToRef="t">{d2}</boundaryEvent><endEvent id="e">{d5}</endEvent>`
	definitions := []string{
		`messageEventDefinition messageRef="m"><extensionElements><zeebe:subscription correlationKey="= task"/></extensionElements></messageEventDefinition>`,
		`timerEventDefinition ><timeDuration>PT5M</timeDuration></timerEventDefinition>`,
		`errorEventDefinition errorRef="x" camunda:errorCodeVariable="code"/>`, `signalEventDefinition signalRef="g"/>`, `terminateEventDefinition />`,
	}
	file := strings.Replace(rooted(inside, definitions...), "</definitions>", shared, 1)
	for i, d := range definitions {
		inside = strings.ReplaceAll(inside, fmt.Sprintf("{d%d}", i+1), "<"+d)
	}
	written := strings.Replace(whole(inside), "</definitions>", shared, 1)
	var got [3]string
	for i, file := range []string{written, file, embed(t, calls("ship"), map[string]string{"ship": file})} {
		d, err := bpmn.Read(strings.NewReader(file), bpmn.Options{})
		if err != nil {
			t.Fatal(problems(err))
		}
		if call := d.Node("t"); call.Called != nil {
			d = call.CalledIn
		}
		got[i] = events(t, d)
	}
	const want = "b1 message paid = task\nb2 timer timeDuration PT5M\nb3 error broken Broken code\nb4 signal stop\nb5 timer timeDuration PT5M\ne terminate"
	same(t, "in the events", got[0], want)
	same(t, "beside the process", got[1], want)
	same(t, "called", strings.ReplaceAll(got[2], "ship.", ""), want)
}

func TestRefusedDefinitions(t *testing.T) {
	const catches = `<intermediateCatchEvent id="t">%s</intermediateCatchEvent>`
	large := "signalEventDefinition signalRef=\"" + strings.Repeat("x", 1<<20) + "\"/>"
	for name, c := range map[string]struct{ file, want string }{
		"nothing":            {rooted(fmt.Sprintf(catches, "<eventDefinitionRef>y:zz</eventDefinitionRef>"), `signalEventDefinition />`), `element "t": the file has no event definition "zz"`},
		"no id":              {strings.Replace(rooted(fmt.Sprintf(catches, "<eventDefinitionRef/>")), "</definitions>", "<signalEventDefinition/></definitions>", 1), `the file has no event definition ""`},
		"a message":          {rooted(fmt.Sprintf(catches, "{d1}"), `message name="m"/>`), `element "t": the file has no event definition "d1"`},
		"not there":          {rooted(fmt.Sprintf(catches, "{d1}"), `messageEventDefinition messageRef="m"/>`), `element "t": the file has no message "m"`},
		"not supported":      {rooted(fmt.Sprintf(catches, "{d1}"), `conditionalEventDefinition />`), `element "t": conditional events are not supported`},
		"no time":            {rooted(fmt.Sprintf(catches, "{d1}"), `timerEventDefinition />`), `element "t": the timer has no time`},
		"at the wrong one":   {rooted(`<endEvent id="e">{d1}</endEvent>`, `timerEventDefinition ><timeDate>2026-01-01</timeDate></timerEventDefinition>`), `element "e": an endEvent cannot have a timer trigger`},
		"two":                {rooted(fmt.Sprintf(catches, "{d1}<signalEventDefinition/>"), `signalEventDefinition />`), "events with several triggers"},
		"unknown":            {rooted("", `fooEventDefinition />`), "fooEventDefinition is no element of BPMN 2.0 that may be in definitions"},
		"misspelt":           {rooted("", `messageEventDefinition tapedeck:corelation="x"/>`), "tapedeck:corelation is no attribute of messageEventDefinition"},
		"a circle":           {rooted(fmt.Sprintf(catches, "{d1}"), `conditionalEventDefinition ><startEvent><eventDefinitionRef>d1</eventDefinitionRef></startEvent></conditionalEventDefinition>`), "conditional events are not supported"},
		"one large, often":   {rooted(strings.Repeat("<endEvent>{d1}</endEvent>", 8), large), "more than 100000 elements or 8 MiB, if each event has the event definitions"},
		"of many, and often": {rooted(strings.Repeat("<endEvent>{d1}</endEvent>", 100), `timerEventDefinition >`+strings.Repeat("<timeDate/>", 1000)+"</timerEventDefinition>"), "more than 100000 elements or 8 MiB, if each event"},
	} {
		_, err := bpmn.Read(strings.NewReader(c.file), bpmn.Options{})
		if err == nil {
			t.Errorf("%s is accepted", name)
		} else if !strings.Contains(problems(err), c.want) {
			t.Errorf("%s: want %q in\n%.2000s", name, c.want, problems(err))
		}
	}
}
