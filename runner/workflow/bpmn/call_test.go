package bpmn_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

// calls is a file that calls a process, in the way of Camunda 7 or 8.
func calls(name string) string {
	return whole(fmt.Sprintf(`<callActivity id="t" calledElement="%s"/>`, name))
}

// shelf has files by their names.
func shelf(files map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if name == "lost" {
			return nil, errors.New("the disk is missing")
		}
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, tapedeck.Errorf(tapedeck.NotFound, "no %s", name)
	}
}

func embed(t *testing.T, file string, files map[string]string) string {
	t.Helper()
	text, err := bpmn.Embed([]byte(file), shelf(files))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ship is a file with all that names another element by its id, in an encoding of its own.
const ship = `<?xml version="1.0" encoding="ISO-8859-1"?>
<b:definitions xmlns:b="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" xmlns:tapedeck="https://tapedeck.dev/bpmn">
<b:message id="m" name="packed"/><b:error id="x" errorCode="lost"/>
<b:process id="ship" isExecutable="true"><b:laneSet><b:lane id="l" name="Docks"><b:flowNodeRef>t</b:flowNodeRef></b:lane></b:laneSet>
<b:startEvent id="s"/><b:task id="t" name="Packe f` + "\xfc" + `r Ada" tapedeck:agent="packer"/><b:exclusiveGateway id="g" default="f3"/><b:receiveTask id="r" messageRef="m"/>
<b:boundaryEvent id="b" attachedToRef="t"><b:errorEventDefinition errorRef="x"/></b:boundaryEvent><b:endEvent id="e"/>
<b:callActivity id="c" calledElement="label"/><b:callActivity id="o"><b:extensionElements><zeebe:calledElement processId="own"/></b:extensionElements></b:callActivity>
<b:sequenceFlow id="f1" sourceRef="s" targetRef="t"/><b:sequenceFlow id="f2" sourceRef="t" targetRef="g"/><b:sequenceFlow id="f3" sourceRef="g" targetRef="r"/>
<b:sequenceFlow id="f4" sourceRef="r" targetRef="c"/><b:sequenceFlow id="f5" sourceRef="c" targetRef="o"/><b:sequenceFlow id="f6" sourceRef="o" targetRef="e"/><b:sequenceFlow id="f7" sourceRef="b" targetRef="e"/>
</b:process><b:process id="own" isExecutable="false"><b:startEvent id="os"/><b:endEvent id="oe"/><b:sequenceFlow id="of" sourceRef="os" targetRef="oe"/></b:process>
</b:definitions><!-- </b:definitions -->`

// TestEmbed: what a file calls comes with it, and no ids are mixed up.
func TestEmbed(t *testing.T) {
	label := whole(`<scriptTask id="t"><script>x = 1</script></scriptTask>`)
	text := embed(t, calls("ship"), map[string]string{"ship": ship, "label": label, "other": "not this"})
	if again := embed(t, text, map[string]string{"ship": "a newer one", "label": "too"}); again != text {
		t.Error("what is in the file is exchanged")
	}
	d, err := bpmn.Read(strings.NewReader(text), bpmn.Options{})
	if err != nil {
		t.Fatal(problems(err))
	}
	checkModel(t, d)
	var reached []string
	for n := range d.Reached() {
		reached = append(reached, n.ID)
	}
	slices.Sort(reached)
	same(t, "the elements", strings.Join(reached, " "), "e label.e label.s label.t s ship.b ship.c ship.e ship.g ship.o ship.oe ship.os ship.r ship.s ship.t t")
	work, gate, receive := d.Node("ship.t"), d.Node("ship.g"), d.Node("ship.r")
	same(t, "the task", []any{work.Name, work.Lane, work.Agent.Agent, work.Boundary[0].Event.Code}, []any{"Packe für Ada", "Docks", "packer", "lost"})
	same(t, "the default flow", gate.Default.ID, "ship.f3")
	same(t, "the message", receive.Event.Name.Text, "packed")
	same(t, "the called", []any{d.Node("t").Called.ID, d.Node("ship.c").Called.ID, d.Node("ship.o").Called.ID}, []any{"ship.ship", "label.p", "ship.own"})

	own := calls("p")
	if text := embed(t, own, map[string]string{"p": label}); text != own {
		t.Error("a process of the file itself is looked up")
	}
	if text := embed(t, "no XML with a callActivity", nil); text != "no XML with a callActivity" {
		t.Error(text)
	}
	if _, err := bpmn.Embed([]byte(calls("lost")), shelf(nil)); err == nil {
		t.Error("an error of the store is lost")
	}
	big := strings.Repeat(" ", bpmn.MaxFile*3/4)
	if _, err := bpmn.Embed([]byte(calls("big")), shelf(map[string]string{"big": big})); tapedeck.KindOf(err) != tapedeck.TooLarge {
		t.Error(err)
	}
}

// TestRefusedCalls: a call that cannot run says why, and where.
func TestRefusedCalls(t *testing.T) {
	chain := map[string]string{}
	for i := range 30 {
		chain[fmt.Sprint("a", i)] = calls(fmt.Sprint("a", i+1))
	}
	raw := func(text string) string {
		return strings.Replace(calls("q"), "</definitions>", `<extensionElements><tapedeck:diagram name="q">`+text+`</tapedeck:diagram></extensionElements></definitions>`, 1)
	}
	for name, c := range map[string]struct {
		file  string
		files map[string]string
		want  string
	}{
		"missing":            {calls("q"), nil, `runs the process "q", which the file does not have | put the process into the same file, or store its diagram under the name q`},
		"missing below":      {calls("a"), map[string]string{"a": calls("q")}, `runs the diagram "a", which cannot run: line 5: element "a.t": the call activity runs the process "q"`},
		"broken":             {calls("a"), map[string]string{"a": "<no"}, "not well-formed XML"},
		"entities":           {calls("a"), map[string]string{"a": `<!DOCTYPE x [<!ENTITY y "z">]><definitions/>`}, "DOCTYPE"},
		"itself":             {calls("a"), map[string]string{"a": calls("b"), "b": calls("a")}, "it calls itself: a, b, a"},
		"deep":               {calls("a0"), chain, "more than 20 diagrams call each other"},
		"several processes":  {calls("a"), map[string]string{"a": strings.Replace(whole(""), "</definitions>", `<process id="z" isExecutable="true"><startEvent id="zs"/></process></definitions>`, 1)}, "2 processes that could run"},
		"not base64":         {raw("***"), nil, "not base64"},
		"the id of another":  {strings.Replace(calls("a"), "</process>", `<userTask id="a.s"/></process>`, 1), map[string]string{"a": whole("")}, `element "a.s": the diagram "a", which is called, has an element with this id`},
		"embedded in itself": {raw(base64.StdEncoding.EncodeToString([]byte(raw("eA==")))), nil, "it calls itself: q, q"},
		"another extension":  {strings.Replace(raw(""), "tapedeck:diagram", "tapedeck:file", 2), nil, "tapedeck:file is no extension element of definitions"},
	} {
		_, err := bpmn.Read(strings.NewReader(embed(t, c.file, c.files)), bpmn.Options{})
		if err == nil || !strings.Contains(problems(err), c.want) {
			t.Errorf("%s: want %q in %v", name, c.want, problems(err))
		}
	}
	d, err := bpmn.Read(strings.NewReader(calls("q")), bpmn.Options{Outside: true})
	if err != nil || !strings.Contains(strings.Join(warnings(d), "\n"), `t: the call activity runs the diagram "q", which must be stored when a run begins`) {
		t.Error(err, d)
	}
}
