package agentconfig

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/deck"
)

// flow is a diagram whose start asks for a number, and whose task goes to an agent.
const flow = `<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:tapedeck="https://tapedeck.dev/bpmn" targetNamespace="t">
<process id="P" isExecutable="true">
<startEvent id="S"><extensionElements><tapedeck:form><tapedeck:field id="count" type="integer" required="true"/></tapedeck:form></extensionElements></startEvent>
<serviceTask id="T" tapedeck:agent="%s" tapedeck:prompt="{{ count + 1 }} {{ unit }}"/>
<endEvent id="E"/>
<sequenceFlow id="F1" sourceRef="S" targetRef="T"/>
<sequenceFlow id="F2" sourceRef="T" targetRef="E"/>
</process>
</definitions>`

// configured opens a deck with the agents of a configuration, beside which the file
// flow.bpmn is.
func configured(t *testing.T, text string) (*deck.Deck, *client.Client) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "flow.bpmn"), fmt.Appendf(nil, flow, "hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parse(filepath.Join(dir, FileName), []byte("[[agent]]\nname = \"hello\"\nkind = \"script\"\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	agents, err := c.Build(someFolder)
	if err != nil {
		t.Fatal(err)
	}
	d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true, Agents: agents})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	s := httptest.NewServer(d.Handler())
	t.Cleanup(s.Close)
	conn, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return d, conn
}

const workflowAgent = "[[agent]]\nname = \"flow\"\nkind = \"workflow\"\n"

// ended runs a task and waits for the end of its run.
func ended(t *testing.T, c *client.Client, text string) *api.SessionWorkflow {
	t.Helper()
	started, err := c.Run(t.Context(), api.Task{Agent: "flow", Text: text})
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range c.Follow(t.Context(), started.Session, client.FollowOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := rec.Event()
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == tapedeck.RunError || e.Type == tapedeck.RunFinished && e.Invocation == started.Invocation {
			break
		}
	}
	w, err := c.SessionWorkflow(t.Context(), started.Session, "", -1)
	if err != nil || w.Workflow == nil {
		t.Fatal(w, err)
	}
	return &w
}

// TestWorkflowAgent: a task of an agent that is a diagram starts it, with the text of the
// task and the variables of the configuration.
func TestWorkflowAgent(t *testing.T) {
	_, c := configured(t, workflowAgent+"file = \"flow.bpmn\"\ntask_variable = \"count\"\nvariables = { unit = \"moons\", list = [1, { a = true }] }\n")
	w := ended(t, c, "41")
	if v := w.Workflow.Variables; string(v["count"]) != "41" || string(v["unit"]) != `"moons"` || string(v["list"]) != `[1,{"a":true}]` || w.Workflow.Outcome != "completed" {
		t.Errorf("got %s, %s", w.Workflow.Outcome, v)
	}
	if _, err := c.Run(t.Context(), api.Task{Agent: "flow", Text: "many"}); err == nil || !strings.Contains(err.Error(), `the task "many" of the field count is not a whole number`) {
		t.Errorf("a text that does not fit: %v", err)
	}
}

// TestStoredWorkflowAgent: an agent can be a stored diagram. It runs the newest version.
func TestStoredWorkflowAgent(t *testing.T) {
	d, c := configured(t, workflowAgent+"workflow = \"counting\"\ntask_variable = \"count\"\nvariables = { unit = \"moons\" }\nagents = { T = \"hello\" }\n")
	if got := d.Agents()[1].Unavailable; !strings.Contains(got, "counting") {
		t.Errorf("before it is stored, it %q", got)
	}
	for _, agent := range []string{"nobody", "other"} { // the agent of the configuration counts
		if _, err := c.PutWorkflow(t.Context(), api.NewWorkflow{Name: "counting", BPMN: fmt.Sprintf(flow, agent)}); err != nil {
			t.Fatal(err)
		}
		if got := d.Agents()[1].Unavailable; got != "" {
			t.Fatalf("it cannot run: %s", got)
		}
		if w := ended(t, c, "1"); w.Workflow.Outcome != "completed" || !strings.Contains(w.Workflow.XML, agent) {
			t.Errorf("got %s of %s", w.Workflow.Outcome, w.Workflow.XML)
		}
	}
}

// TestWorkflowAgentThatCannotRun: the list of agents says why.
func TestWorkflowAgentThatCannotRun(t *testing.T) {
	for settings, want := range map[string]string{
		`file = "none.bpmn"`: "there is no file ",
		`file = "flow.bpmn"`: "the variable count is missing",
		"file = \"flow.bpmn\"\nprocess = \"Q\"\nvariables = { count = 1 }":               `no process "Q"`,
		"file = \"flow.bpmn\"\nvariables = { count = 1 }\nagents = { T = \"nobody\" }":   `line 5: element "T": there is no agent "nobody"; the agents are hello`,
		"file = \"flow.bpmn\"\nvariables = { count = 1 }\nagents = { Typo = \"hello\" }": "neither the id nor the type",
		"file = \"flow.bpmn\"\nvariables = { count = 1 }\nstarts = [\"flow\"]":           `there is no agent "hello"`,
	} {
		d, c := configured(t, workflowAgent+settings+"\n")
		if got := d.Agents()[1].Unavailable; !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", settings, got, want)
		}
		if _, err := c.Run(t.Context(), api.Task{Agent: "flow", Text: "5"}); err == nil {
			t.Errorf("%s: it began", settings)
		}
	}
}
