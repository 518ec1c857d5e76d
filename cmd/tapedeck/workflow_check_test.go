package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// needsMuch is a diagram that needs agents and variables of all kinds.
const needsMuch = `<?xml version="1.0"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:tapedeck="https://tapedeck.dev/bpmn" targetNamespace="t">
<process id="P" isExecutable="true">
<startEvent id="S"><extensionElements><tapedeck:form>
<tapedeck:field id="topic" required="true"/><tapedeck:field id="tone"/><tapedeck:field id="size" type="integer" required="true" default="3"/>
</tapedeck:form></extensionElements></startEvent>
<serviceTask id="T" tapedeck:agent="writer" tapedeck:prompt="{{ topic }} {{ more }}"/>
WAIT<endEvent id="E"/><sequenceFlow id="f1" sourceRef="S" targetRef="T"/><sequenceFlow id="f2" sourceRef="T" targetRef="E"/>
</process></definitions>`

// TestNeeded: check says what a run needs, what it can have, and what a message may bring.
func TestNeeded(t *testing.T) {
	always := `A run needs:
  the variable topic (string), for which its start asks
`
	can := `A run can have:
  the variable tone (string), for which its start asks
  the variable size (integer), for which its start asks
`
	unset := "  the variable more, which no element sets (line 7: T)\n"
	for wait, want := range map[string]string{
		"": always + unset + "  the agent writer\n" + can,
		`<boundaryEvent id="B" attachedToRef="T"><messageEventDefinition/></boundaryEvent>`: always + "  the agent writer\n" + can + "A message may bring, or the run:\n" + unset,
	} {
		var out strings.Builder
		e := &env{stdin: strings.NewReader(strings.Replace(needsMuch, "WAIT", wait, 1)), stdout: &out, stderr: &out, noColor: true}
		if ok, err := e.checkDiagram("-", ""); err != nil || !ok || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%v %v; got\n%s\nwant at the end\n%s", ok, err, out.String(), want)
		}
	}
	var out strings.Builder
	e := &env{stdin: strings.NewReader(strings.Replace(needsMuch, "WAIT", "", 1)), stdout: &out, stderr: &out, json: true}
	if _, err := e.checkDiagram("-", ""); err != nil {
		t.Fatal(err)
	}
	var got checkedDiagram
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || len(got.Fields) != 3 || !got.Fields[0].Required || got.Fields[2].Required || len(got.Variables) != 1 || got.Variables[0].FromMessage {
		t.Errorf("%v in %s", err, out.String())
	}
}

// TestDiagramInUTF16: what the command line sends is JSON, which has no other encoding than
// UTF-8.
func TestDiagramInUTF16(t *testing.T) {
	e := &env{stdin: strings.NewReader("\xff\xfe<\x00\xfc\x00/\x00>\x00")}
	if text, err := e.readDiagram("-"); err != nil || text != "<ü/>" {
		t.Errorf("%q, %v", text, err)
	}
}
