package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine/workflow"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
	"github.com/tapedeck/tapedeck/store/memory"
)

// agents is an engine with two agents.
type agents struct{}

func (agents) Agents() []tapedeck.Agent { return []tapedeck.Agent{{Name: "coder"}, {Name: "critic"}} }

func (agents) Start(context.Context, api.Task) (api.Started, error) {
	return api.Started{}, errors.New("nothing can be started here")
}

// A starter is an engine that keeps the tasks that it should start.
type starter struct {
	agents
	tasks *[]api.Task
}

func (s *starter) Start(_ context.Context, t api.Task) (api.Started, error) {
	*s.tasks = append(*s.tasks, t)
	return api.Started{Session: "s"}, nil
}

func newLibrary() *workflow.Library {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	return workflow.New(workflow.Options{Store: memory.New(memory.Options{}).Workflows(), Engine: agents{}, Now: func() time.Time { return at }})
}

// diagram returns a process with one task for each pair of an id and the attributes of the
// tag, one after the other.
func diagram(name string, tasks ...[2]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:tapedeck="https://tapedeck.dev/bpmn" xmlns:camunda="http://camunda.org/schema/1.0/bpmn" targetNamespace="t">
<process id="P" name=%q isExecutable="true">
<startEvent id="Start"/>
`, name)
	last := "Start"
	for _, t := range tasks {
		fmt.Fprintf(&b, "<sequenceFlow id=\"to%s\" sourceRef=%q targetRef=%q/>\n<serviceTask id=%q %s/>\n", t[0], last, t[0], t[0], t[1])
		last = t[0]
	}
	fmt.Fprintf(&b, "<sequenceFlow id=\"toEnd\" sourceRef=%q targetRef=\"End\"/>\n<endEvent id=\"End\"/>\n</process>\n</definitions>\n", last)
	return b.String()
}

func put(t *testing.T, l *workflow.Library, name, bpmn string) api.Diagram {
	t.Helper()
	d, err := l.Put(t.Context(), api.NewWorkflow{Name: name, BPMN: bpmn})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// wants compares an error with its kind and a part of its message or hint.
func wants(t *testing.T, what string, err error, kind tapedeck.Kind, text string) {
	t.Helper()
	var e *tapedeck.Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Message+"; "+e.Hint, text) {
		t.Errorf("%s: %v (%+v), want %s with %q", what, err, e, kind, text)
	}
}

func TestPutAndGet(t *testing.T) {
	l := newLibrary()
	one := diagram("Triage", [2]string{"Look", `tapedeck:agent="coder"`}, [2]string{"Judge", `name="Judge it" camunda:type="external" camunda:topic="verdict"`})
	first := put(t, l, "triage", one)
	want := []api.DiagramTask{{Element: "Look", Agent: "coder", Line: 6}, {Element: "Judge", Name: "Judge it", Type: "verdict", Line: 8}}
	if d := cmp.Diff(want, first.Tasks); d != "" || first.Title != "Triage" || first.Process != "P" || first.BPMN != "" {
		t.Errorf("got %+v\n%s", first, d)
	}
	if len(first.Unmet) != 1 || first.Unmet[0].Element != "Judge" || first.Unmet[0].Line != 8 || !strings.Contains(first.Unmet[0].Hint, "coder, critic") {
		t.Errorf("unmet: %+v", first.Unmet)
	}
	second := put(t, l, "triage", diagram("Triage 2"))
	if again := put(t, l, "triage", diagram("Triage 2")); len(again.Versions) != 2 {
		t.Errorf("the same diagram again made %+v", again.Versions)
	}
	for version, text := range map[string]string{"": second.Digest, first.Digest: first.Digest, strings.TrimPrefix(first.Digest, "sha256:"): first.Digest} {
		got, err := l.Get(t.Context(), "triage", version)
		if err != nil || got.Digest != text || len(got.Versions) != 2 || got.Versions[0].Digest != second.Digest || got.Name != "triage" {
			t.Errorf("version %q: %+v, %v", version, got, err)
		}
		if (got.BPMN == one) != (text == first.Digest) {
			t.Errorf("version %q has another diagram", version)
		}
	}
	put(t, l, "a", one)
	list, err := l.List(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[1].Title != "Triage 2" || list[1].Size == 0 {
		t.Errorf("got %+v, %v", list, err)
	}
	if err := l.Delete(t.Context(), "triage"); err != nil {
		t.Fatal(err)
	}
	_, err = l.Get(t.Context(), "triage", first.Digest)
	wants(t, "after the delete", err, tapedeck.NotFound, "the workflows are a")
}

// TestByteOrderMark: a diagram with a mark is stored, checked and run as the one without.
func TestByteOrderMark(t *testing.T) {
	plain := diagram("Plain")
	var tasks []api.Task
	l := newLibrary()
	l.Engine = &starter{tasks: &tasks}
	want := put(t, l, "plain", plain)
	got := put(t, l, "marked", "\ufeff"+plain)
	stored, err := l.Get(t.Context(), "marked", "")
	if err != nil || got.Digest != want.Digest || stored.BPMN != plain {
		t.Errorf("it is stored as %.40q, %v", stored.BPMN, err)
	}
	if checked, err := l.Check(t.Context(), api.CheckWorkflow{BPMN: "\ufeff" + plain}); err != nil || checked.Digest != want.Digest {
		t.Errorf("its digest is %s, %v", checked.Digest, err)
	}
	if _, err := l.Run(t.Context(), api.RunWorkflow{BPMN: "\ufeff" + plain}); err != nil || strings.Contains(string(tasks[0].Config), "\ufeff") {
		t.Error(err, tasks)
	}
}

func TestUnknownNames(t *testing.T) {
	l := newLibrary()
	wants(t, "empty", l.Delete(t.Context(), "x"), tapedeck.NotFound, "no workflow is stored yet")
	d := put(t, l, "a", diagram("A"))
	wants(t, "a name", l.Delete(t.Context(), "x"), tapedeck.NotFound, "the workflows are a")
	_, err := l.Get(t.Context(), "a", "sha256:0")
	wants(t, "a version", err, tapedeck.NotFound, "the versions are "+d.Digest)
	_, err = l.Check(t.Context(), api.CheckWorkflow{Name: "x", Version: "0"})
	wants(t, "a version of nothing", err, tapedeck.NotFound, "the workflows are a")
}

func TestPutRefuses(t *testing.T) {
	l := newLibrary()
	for what, c := range map[string]struct {
		name, bpmn string
		kind       tapedeck.Kind
		text       string
	}{
		"no name":        {"", diagram("A"), tapedeck.Invalid, "1 to 128 letters"},
		"a path":         {"../a", diagram("A"), tapedeck.Invalid, "1 to 128 letters"},
		"a long name":    {strings.Repeat("a", 129), diagram("A"), tapedeck.Invalid, "1 to 128 letters"},
		"a path of ours": {"run", diagram("A"), tapedeck.Invalid, "which the HTTP API uses"},
		"nothing":        {"a", " \n", tapedeck.Invalid, "the diagram is empty"},
		"JSON":           {"a", "\n{\"bpmn\":1}", tapedeck.Invalid, "this is JSON, not a diagram"},
		"too large":      {"a", strings.Repeat("x", api.MaxDiagram+1), tapedeck.TooLarge, "larger than 8 MiB"},
		"no XML":         {"a", "hello", tapedeck.Invalid, "line 1"},
	} {
		_, err := l.Put(t.Context(), api.NewWorkflow{Name: c.name, BPMN: c.bpmn})
		wants(t, what, err, c.kind, c.text)
	}
	if list, err := l.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("stored %+v, %v", list, err)
	}
}

// TestProblems: the error of a bad diagram has every place.
func TestProblems(t *testing.T) {
	bad := strings.Replace(diagram("A", [2]string{"T", `tapedeck:agnet="coder"`}), `targetRef="End"`, `targetRef="Nowhere"`, 1)
	_, err := newLibrary().Check(t.Context(), api.CheckWorkflow{BPMN: bad})
	var e *tapedeck.Error
	if !errors.As(err, &e) || e.Kind != tapedeck.Invalid || len(e.Problems) < 2 || e.Hint == "" {
		t.Fatalf("got %+v", err)
	}
	for _, p := range e.Problems {
		if p.Line == 0 || p.Message == "" {
			t.Errorf("a problem without a place: %+v", p)
		}
	}
}

// TestWanted: a check says which variables a run has to give.
func TestWanted(t *testing.T) {
	d, err := newLibrary().Check(t.Context(), api.CheckWorkflow{BPMN: diagram("A", [2]string{"T", `tapedeck:agent="coder" tapedeck:prompt="{{ task }} {{ topic }}"`})})
	if diff := cmp.Diff([]api.DiagramVariable{{Name: "topic", Element: "T", Line: 6}}, d.Wanted); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestCheck(t *testing.T) {
	l := newLibrary()
	put(t, l, "stored", diagram("A", [2]string{"T", `tapedeck:agent="nobody"`}, [2]string{"U", `camunda:type="external" camunda:topic="verdict"`}))
	check := func(agents map[string]string) api.Diagram {
		t.Helper()
		d, err := l.Check(t.Context(), api.CheckWorkflow{Name: "stored", Agents: agents})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := check(nil); len(d.Unmet) != 2 || !strings.Contains(d.Unmet[0].Message, `no agent "nobody"`) || d.Name != "stored" {
		t.Errorf("got %+v", d)
	}
	if d := check(map[string]string{"T": "coder", "verdict": "critic"}); d.Unmet != nil || d.Tasks[0].Agent != "coder" || d.Tasks[1].Agent != "critic" {
		t.Errorf("got %+v", d)
	}
	if d := check(map[string]string{"*": "coder"}); len(d.Unmet) != 1 || d.Tasks[0].Agent != "nobody" || d.Tasks[1].Agent != "coder" {
		t.Errorf("got %+v", d)
	}
	for what, c := range map[string]struct {
		in   api.CheckWorkflow
		text string
	}{
		"both":                {api.CheckWorkflow{Name: "stored", BPMN: diagram("A")}, "give bpmn or name, not both"},
		"neither":             {api.CheckWorkflow{}, "no diagram"},
		"a version of a file": {api.CheckWorkflow{BPMN: diagram("A"), Version: "x"}, "only a stored workflow has versions"},
		"an unknown element":  {api.CheckWorkflow{Name: "stored", Agents: map[string]string{"X": "coder"}}, "there are: *, T, U, verdict"},
		"no task of an agent": {api.CheckWorkflow{BPMN: diagram("A"), Agents: map[string]string{"X": "coder"}}, "no task of it goes to an agent"},
	} {
		_, err := l.Check(t.Context(), c.in)
		wants(t, what, err, tapedeck.Invalid, c.text)
	}
}

// TestTooManyNames: the limit counts names, so a new version is always accepted.
func TestTooManyNames(t *testing.T) {
	l := newLibrary()
	for i := range workflow.MaxNames {
		put(t, l, fmt.Sprint("w", i), diagram("A"))
	}
	_, err := l.Put(t.Context(), api.NewWorkflow{Name: "more", BPMN: diagram("A")})
	wants(t, "one more", err, tapedeck.TooLarge, "delete one")
	put(t, l, "w7", diagram("B"))
}

// TestRun: the runner gets the diagram, the variables with their defaults, and the agents.
func TestRun(t *testing.T) {
	bpmn := strings.Replace(diagram("Review", [2]string{"T", `tapedeck:agent="coder"`}), `<startEvent id="Start"/>`, `<startEvent id="Start"><extensionElements><tapedeck:form>
<tapedeck:field id="topic" required="true" minLength="3"/>
<tapedeck:field id="words" type="integer" default="200" max="1000"/>
<tapedeck:field id="plain" type="boolean" default="true"/>
</tapedeck:form></extensionElements></startEvent>`, 1)
	var got []api.Task
	l := workflow.New(workflow.Options{Store: memory.New(memory.Options{}).Workflows(), Engine: &starter{tasks: &got}})
	fields := put(t, l, "review", bpmn).Fields
	if len(fields) != 3 || string(fields[1].Default) != "200" || string(fields[2].Default) != "true" || fields[0].Label != "topic" {
		t.Errorf("the fields are %+v", fields)
	}
	variables := func(pairs ...string) map[string]json.RawMessage {
		out := map[string]json.RawMessage{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = json.RawMessage(pairs[i+1])
		}
		return out
	}
	for what, c := range map[string]struct {
		in   api.RunWorkflow
		text string
	}{
		"a missing variable": {api.RunWorkflow{Name: "review"}, `the variable "topic" is missing`},
		"a short one":        {api.RunWorkflow{Name: "review", Variables: variables("topic", `"a"`)}, "at least 3 characters"},
		"two":                {api.RunWorkflow{Name: "review", Variables: variables("words", "5000")}, "(and 1 more)"},
		"no agent":           {api.RunWorkflow{Name: "review", Agents: map[string]string{"T": "nobody"}, Variables: variables("topic", `"moon"`)}, `there is no agent "nobody"`},
		"a workflow":         {api.RunWorkflow{Name: "review", Agents: map[string]string{"T": "workflow"}, Variables: variables("topic", `"moon"`)}, `there is no agent "workflow"`},
		"no diagram":         {api.RunWorkflow{}, "no diagram"},
		"a bad diagram":      {api.RunWorkflow{BPMN: "<x/>"}, "line 1"},
	} {
		_, err := l.Run(t.Context(), c.in)
		wants(t, what, err, tapedeck.Invalid, c.text)
	}
	if got != nil {
		t.Fatalf("something was started: %+v", got)
	}
	in := api.RunWorkflow{Name: "review", Variables: variables("topic", `"moon"`, "more", `[1]`), Agents: map[string]string{"T": "critic"}, Actor: "user:ada"}
	if _, err := l.Run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	in.Session, in.Thread, in.Title = "s", "side", "Mine"
	if _, err := l.Run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	var config struct {
		BPMN      string
		Variables map[string]any
		Agents    map[string]string
	}
	if err := json.Unmarshal(got[0].Config, &config); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"topic": "moon", "more": []any{1.0}, "words": 200.0, "plain": true}
	if d := cmp.Diff(want, config.Variables); d != "" || config.BPMN != bpmn || config.Agents["T"] != "critic" {
		t.Errorf("the runner gets %+v\n%s", config, d)
	}
	for i, want := range []api.Task{
		{Agent: "workflow", Text: "Run the workflow Review", Title: "Review", Actor: "user:ada"},
		{Agent: "workflow", Text: "Run the workflow Mine", Session: "s", Thread: "side", Actor: "user:ada"},
	} {
		got[i].Config = nil
		if d := cmp.Diff(want, got[i]); d != "" {
			t.Errorf("task %d (-want +got)\n%s", i, d)
		}
	}
}

// TestSeveralProcesses: a diagram with several processes is kept, and a run names one.
func TestSeveralProcesses(t *testing.T) {
	var got []api.Task
	l := workflow.New(workflow.Options{Store: memory.New(memory.Options{}).Workflows(), Engine: &starter{tasks: &got}})
	one := diagram("Cook", [2]string{"T", `tapedeck:agent="coder"`})
	other := strings.NewReplacer(`id="P"`, `id="Q"`, `"Start"`, `"Start2"`, `"End"`, `"End2"`, `"T"`, `"U"`, `"toT"`, `"toU"`, `"toEnd"`, `"toEnd2"`, "Cook", "Eat").Replace(one)
	_, inside, _ := strings.Cut(other, "targetNamespace=\"t\">\n")
	inside, _, _ = strings.Cut(inside, "</definitions>")
	both := strings.Replace(one, "</definitions>", inside+"</definitions>", 1)
	broken := strings.Replace(both, `targetRef="End2"`, `targetRef="Nowhere"`, 1)

	want := []api.DiagramProcess{{ID: "P", Name: "Cook"}, {ID: "Q", Name: "Eat"}}
	put(t, l, "meal", both)
	d, err := l.Get(t.Context(), "meal", "")
	if diff := cmp.Diff(want, d.Processes); err != nil || diff != "" || d.Process != "" || len(d.Tasks) != 0 || d.Unmet != nil || d.BPMN != both {
		t.Errorf("got %+v, %v\n%s", d, err, diff)
	}
	if d := put(t, l, "half", broken); d.Process != "" || len(d.Processes) != 1 {
		t.Errorf("with one process that can run: %+v", d)
	}
	_, err = l.Put(t.Context(), api.NewWorkflow{Name: "none", BPMN: strings.Replace(broken, `targetRef="End"`, `targetRef="Nowhere"`, 1)})
	wants(t, "none that can run", err, tapedeck.Invalid, "Nowhere")
	_, err = l.Check(t.Context(), api.CheckWorkflow{Name: "meal"})
	wants(t, "a check without a process", err, tapedeck.Invalid, "the processes are P, Q")
	_, err = l.Run(t.Context(), api.RunWorkflow{Name: "meal", Process: "R"})
	wants(t, "an unknown process", err, tapedeck.Invalid, `no process "R"`)
	if d, err := l.Check(t.Context(), api.CheckWorkflow{Name: "meal", Process: "Q"}); err != nil || d.Process != "Q" || d.Tasks[0].Element != "U" {
		t.Errorf("got %+v, %v", d, err)
	}
	if _, err := l.Run(t.Context(), api.RunWorkflow{BPMN: both, Process: "Q"}); err != nil {
		t.Fatal(err)
	}
	var config struct{ Process string }
	if err := json.Unmarshal(got[0].Config, &config); err != nil || config.Process != "Q" || got[0].Title != "Eat" {
		t.Errorf("the runner gets %+v, %v, with the title %q", config, err, got[0].Title)
	}
}

// TestStoredDiagramsAreCalled: a run gets the stored diagrams that it calls, as they are
// when it begins. What is stored stays as it was given.
func TestStoredDiagramsAreCalled(t *testing.T) {
	var got []api.Task
	l := workflow.New(workflow.Options{Store: memory.New(memory.Options{}).Workflows(), Engine: &starter{tasks: &got}})
	main := strings.Replace(diagram("Order", [2]string{"T", ""}), `<serviceTask id="T"`, `<callActivity id="T" calledElement="ship"`, 1)
	_, err := l.Put(t.Context(), api.NewWorkflow{Name: "order", BPMN: main})
	wants(t, "a call of nothing", err, tapedeck.Invalid, `runs the process "ship", which the file does not have`)
	put(t, l, "ship", diagram("Ship", [2]string{"U", `tapedeck:agent="coder"`}))
	about := put(t, l, "order", main)
	if len(about.Tasks) != 1 || about.Tasks[0].Element != "ship.U" || about.Tasks[0].Agent != "coder" {
		t.Errorf("the tasks are %+v", about.Tasks)
	}
	if d, err := l.Get(t.Context(), "order", about.Digest); err != nil || d.BPMN != main || d.Digest != about.Digest {
		t.Errorf("%v; stored is %s", err, d.BPMN)
	}
	if _, err := l.Run(t.Context(), api.RunWorkflow{Name: "order", Agents: map[string]string{"ship.U": "critic"}}); err != nil {
		t.Fatal(err)
	}
	put(t, l, "ship", diagram("Ship", [2]string{"V", `tapedeck:agent="coder"`}))
	if _, err := l.Run(t.Context(), api.RunWorkflow{BPMN: main}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"ship.U", "ship.V"} {
		var config struct{ BPMN string }
		if err := json.Unmarshal(got[i].Config, &config); err != nil {
			t.Fatal(err)
		}
		d, err := bpmn.Read(strings.NewReader(config.BPMN), bpmn.Options{})
		if err != nil || d.Node(want) == nil {
			t.Errorf("run %d has no %s: %v", i, want, err)
		}
	}
}

// TestVersionByItsBeginning: what a list shows of a digest is enough, if only one version
// begins like that.
func TestVersionByItsBeginning(t *testing.T) {
	l := newLibrary()
	count := map[string]int{}
	var digests []string
	for i := range 17 { // two of them begin with the same character
		d := put(t, l, "w", diagram(fmt.Sprint("Version ", i), [2]string{"A", `tapedeck:agent="coder"`}))
		digests = append(digests, d.Digest)
		count[strings.TrimPrefix(d.Digest, "sha256:")[:1]]++
	}
	for _, digest := range digests {
		hex := strings.TrimPrefix(digest, "sha256:")
		for _, version := range []string{digest, hex, hex[:12], digest[:19], digest[:70]} {
			if d, err := l.Get(t.Context(), "w", version); err != nil || d.Digest != digest {
				t.Errorf("%s: %s, %v, want %s", version, d.Digest, err, digest)
			}
		}
		_, err := l.Get(t.Context(), "w", hex[:1])
		if several := count[hex[:1]] > 1; several {
			wants(t, hex[:1], err, tapedeck.Invalid, "versions of w begin with sha256:"+hex[:1])
		} else if err != nil {
			t.Errorf("%s: %v", hex[:1], err)
		}
	}
	for _, version := range []string{"xyz", "sha256:", "sha256:" + strings.Repeat("0", 63), strings.Repeat("0", 64)} {
		_, err := l.Get(t.Context(), "w", version)
		wants(t, version, err, tapedeck.NotFound, "the versions are sha256:")
	}
	_, err := l.Get(t.Context(), "none", "abc")
	wants(t, "a name that is not there", err, tapedeck.NotFound, "the workflows are w")
}
