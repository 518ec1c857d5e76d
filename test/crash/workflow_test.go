package crash

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/testserver"
	"github.com/tapedeck/tapedeck/view"
)

var workflowKills = flag.Int("workflow-kills", 10, "how often a server is killed while the workflow of the demo runs")

// lastEvent is about the number of events of that workflow until it waits for the user.
const lastEvent = 140

// TestKillWorkflow kills the server at a random event of the workflow of the demo. After
// the restart the workflow ends with the same variables, and every element has happened
// once, in one thread.
func TestKillWorkflow(t *testing.T) {
	diagram, err := os.ReadFile("../../cmd/tapedeck/demo_triage.bpmn")
	if err != nil {
		t.Fatal(err)
	}
	rounds := *workflowKills
	if testing.Short() {
		rounds = min(rounds, 3)
	}
	data, seed := t.TempDir(), rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		at := int64(random.IntN(lastEvent))
		t.Logf("round %d: killed after event %d (seed %d)", round, at, seed)
		s, c := serverOf(t, data, "--demo")
		started, err := c.RunWorkflow(t.Context(), api.RunWorkflow{BPMN: string(diagram), Variables: map[string]json.RawMessage{"cve": json.RawMessage(`"CVE-7"`)}})
		if err != nil {
			t.Fatal(err)
		}
		awaitEvent(t, c, &started, started.Offset+at)
		s.Kill()
		s, c = serverOf(t, data, "--demo")
		settle(t, c, &started)
		checkTriage(t, c, started.Session)
		s.Kill()
		if t.Failed() {
			return
		}
	}
}

func serverOf(t *testing.T, data string, args ...string) (*testserver.Server, *client.Client) {
	t.Helper()
	s := testserver.Start(t, data, args...)
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// awaitEvent waits for an event of a session, or until its workflow waits for the user.
func awaitEvent(t *testing.T, c *client.Client, run *api.Started, at int64) {
	t.Helper()
	await(t, c, run, func(ev *tapedeck.Event) bool { return ev.Offset >= at || ev.Type == tapedeck.PermissionRequested })
}

// await waits for an event of a session.
func await(t *testing.T, c *client.Client, run *api.Started, is func(*tapedeck.Event) bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for rec, err := range c.Follow(ctx, run.Session, client.FollowOptions{PageOptions: client.PageOptions{From: run.Offset}}) {
		if err != nil {
			t.Fatal(err)
		}
		ev, err := rec.Event()
		if err != nil {
			t.Fatal(err)
		}
		if is(&ev) {
			return
		}
	}
}

// settle answers the question of the workflow, and waits for its end.
func settle(t *testing.T, c *client.Client, run *api.Started) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	o := client.FollowOptions{Until: true}
	o.From, o.Invocation = run.Offset, run.Invocation
	for rec, err := range c.Follow(ctx, run.Session, o) {
		if err != nil {
			t.Fatal(err)
		}
		ev, err := rec.Event()
		if err != nil {
			t.Fatal(err)
		}
		if ev.Type != tapedeck.PermissionRequested {
			continue
		}
		var q tapedeck.Question
		if err := json.Unmarshal(ev.Data, &q); err != nil {
			t.Fatal(err)
		}
		_, err = c.Answer(ctx, api.Answer{Session: run.Session, Permission: q.ID, Option: q.Options[0].ID, Input: tapedeck.Members{"decision": json.RawMessage(`"wait"`)}})
		if err != nil && tapedeck.KindOf(err) != tapedeck.Conflict {
			t.Fatal(err)
		}
	}
	if ctx.Err() != nil {
		t.Fatal("the workflow did not end")
	}
}

// checkTriage checks the workflow of a session after its end.
func checkTriage(t *testing.T, c *client.Client, session string) {
	t.Helper()
	now, err := c.SessionWorkflow(t.Context(), session, "", -1)
	if err == nil && now.Workflow == nil {
		err = errors.New("there is none")
	}
	if err != nil {
		t.Fatal(err)
	}
	w := now.Workflow
	delete(w.Variables, "task")
	got := map[string]string{}
	for name, value := range w.Variables {
		got[name] = string(value)
	}
	want := map[string]string{
		"cve": `"CVE-7"`, "decision": `"wait"`, "facts": `"A crafted length field overflows a buffer in the parser. The score is 8.1."`,
		"impact": `{"severity":8,"systems":["gateway","billing"]}`, "remedy": `"Version 4.2.1 has the patch; a restart is enough."`,
	}
	if d := cmp.Diff(want, got); d != "" || w.Outcome != view.WorkflowCompleted {
		t.Errorf("the workflow is %s; its variables (-want +got)\n%s", w.Outcome, d)
	}
	var elements []string
	for _, e := range w.Elements {
		elements = append(elements, fmt.Sprintf("%s %d %d %s", e.Element, e.Entered, e.Left, e.Thread))
	}
	slices.Sort(elements)
	wanted := []string{
		"Collect 1 1 thread_Collect", "Decide 1 1 ", "Impact 1 1 thread_Impact", "Join 1 1 ", "Remedy 1 1 thread_Remedy",
		"Reported 1 1 ", "Settled 1 1 ", "Severe 1 1 ", "Split 1 1 ",
	}
	if d := cmp.Diff(wanted, elements); d != "" {
		t.Errorf("the elements (-want +got)\n%s", d)
	}
	threads, err := c.Threads(t.Context(), session, -1)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, th := range threads.Threads {
		if names = append(names, th.Name); th.Status != tapedeck.StatusComplete {
			t.Errorf("the thread %s is %s", th.Name, th.Status)
		}
	}
	slices.Sort(names)
	if d := cmp.Diff([]string{"main", "thread_Collect", "thread_Impact", "thread_Remedy"}, names); d != "" {
		t.Errorf("the threads (-want +got)\n%s", d)
	}
}

// echo is an agent that answers with its prompt if the file go is in its folder. Otherwise it
// says one word and works on.
const echo = `[[agent]]
name = "echo"
kind = "process"
command = "sh"
args = ["-c", """say() { printf '{"kind":"say","text":"%%s"}\\n' "$1"; }; if [ -e go ]; then say "$1"; else say half; sleep 1000; fi""", "sh", "{task}"]
dialect = "lines"
cwd = %q
[agent.mapping]
type = "/kind"
[agent.mapping.lines]
say = { as = "text", text = "/text" }
`

// weigh has a task of the agent, and beside it a message that changes what its prompt has.
const weigh = `<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:t="https://tapedeck.dev/bpmn" targetNamespace="t">
<message id="m" name="more"/><process id="P" isExecutable="true"><startEvent id="S"/><parallelGateway id="F"/><endEvent id="E"/>
<serviceTask id="T" t:agent="echo" t:prompt="Weigh {{ x }}" t:output="answer"/><receiveTask id="R" messageRef="m"/>
<sequenceFlow id="f1" sourceRef="S" targetRef="F"/><sequenceFlow id="f2" sourceRef="F" targetRef="T"/><sequenceFlow id="f3" sourceRef="F" targetRef="R"/>
<sequenceFlow id="f4" sourceRef="T" targetRef="E"/><sequenceFlow id="f5" sourceRef="R" targetRef="E"/></process></definitions>`

// TestKillAnAgentOfAWorkflow: an agent that a crash has stopped is asked again with exactly
// the prompt that its thread shows, and the thread shows it once.
func TestKillAnAgentOfAWorkflow(t *testing.T) {
	data, folder, config := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "agents.toml")
	if err := os.WriteFile(config, []byte(fmt.Sprintf(echo, folder)), 0o600); err != nil {
		t.Fatal(err)
	}
	s, c := serverOf(t, data, "--config", config)
	started, err := c.RunWorkflow(t.Context(), api.RunWorkflow{BPMN: weigh, Variables: map[string]json.RawMessage{"x": json.RawMessage("1")}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, c, &started, func(ev *tapedeck.Event) bool { return ev.Type == tapedeck.TextMessageContent })
	if _, err := c.SendMessage(t.Context(), api.SendMessage{Session: started.Session, Name: "more", Variables: tapedeck.Members{"x": json.RawMessage("2")}}); err != nil {
		t.Fatal(err)
	}
	await(t, c, &started, func(ev *tapedeck.Event) bool {
		return ev.Type == tapedeck.WorkflowLeft && strings.Contains(string(ev.Data), `"element":"R"`)
	})
	s.Kill()
	if err := os.WriteFile(filepath.Join(folder, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, c = serverOf(t, data, "--config", config)
	settle(t, c, &started)
	now, err := c.SessionWorkflow(t.Context(), started.Session, "", -1)
	if err != nil || now.Workflow == nil || now.Workflow.Outcome != view.WorkflowCompleted {
		t.Fatalf("%+v, %v", now.Workflow, err)
	}
	if got := string(now.Workflow.Variables["answer"]); got != `"Weigh 1"` || string(now.Workflow.Variables["x"]) != "2" {
		t.Errorf("the answer is %s", got)
	}
	shown, err := c.Snapshot(t.Context(), started.Session, view.Query{Thread: "thread_T"})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, m := range shown.Messages {
		said = append(said, m.Role+": "+m.Text)
	}
	if d := cmp.Diff([]string{"user: Weigh 1", "assistant: half", "assistant: Weigh 1"}, said); d != "" {
		t.Errorf("the thread (-want +got)\n%s", d)
	}
}
