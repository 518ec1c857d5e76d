package bpmn_test

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

func read(t *testing.T, name string) *bpmn.Definitions {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	d, err := bpmn.Read(bytes.NewReader(data), bpmn.Options{})
	if err != nil {
		t.Fatal(problems(err))
	}
	return d
}

// problems returns all of an error.
func problems(err error) string {
	var e *bpmn.Error
	if !errors.As(err, &e) {
		return "not an *Error: " + err.Error()
	}
	var out []string
	for _, p := range e.Problems {
		out = append(out, p.String()+" | "+p.Hint)
	}
	return strings.Join(out, "\n")
}

func warnings(d *bpmn.Definitions) []string {
	var out []string
	for _, w := range d.Warnings {
		out = append(out, w.Element+": "+w.Message)
	}
	return out
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// field returns a field in one line.
func field(t *testing.T, f *bpmn.Field) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(f.ID + " " + string(f.Type) + " " + f.Label)
	if f.Required {
		b.WriteString(" required")
	}
	if f.ReadOnly {
		b.WriteString(" readonly")
	}
	for _, o := range f.Options {
		b.WriteString(" " + o.Value + "=" + o.Label)
	}
	if f.Default != nil {
		b.WriteString(" default=" + f.Default.Text)
	}
	number := func(name string, v *float64) {
		if v != nil {
			b.WriteString(" " + name + "=" + cmpText(*v))
		}
	}
	length := func(name string, v *int) {
		if v != nil {
			b.WriteString(" " + name + "=" + cmpText(float64(*v)))
		}
	}
	number("min", f.Min)
	number("max", f.Max)
	length("minLength", f.MinLength)
	length("maxLength", f.MaxLength)
	return b.String()
}

func cmpText(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func fields(t *testing.T, n *bpmn.Node) []string {
	t.Helper()
	var out []string
	if n.Form != nil {
		for i := range n.Form.Fields {
			out = append(out, field(t, &n.Form.Fields[i]))
		}
	}
	return out
}

func TestReadOwn(t *testing.T) {
	d := read(t, "tapedeck.bpmn")
	same(t, "warnings", warnings(d), []string(nil))
	same(t, "exporter", d.Exporter, "bpmn-js 18.3")
	same(t, "main", d.Main.ID+"/"+d.Main.Name+"/"+d.Main.Start.ID, "review/Review of a text/start")
	same(t, "form", fields(t, d.Node("start")), []string{
		"topic string What is it about? required minLength=3 maxLength=80", "words integer words default=200 min=10 max=1000", "tone enum tone plain=Plain formal=formal default=plain",
	})
	draft := d.Node("draft")
	same(t, "lane", draft.Lane, "Desk")
	same(t, "agent", draft.Agent.Agent+" "+draft.Agent.Output+" "+string(draft.Agent.ResultAs), "writer draft text")
	prompt, err := draft.Agent.Prompt.Render(t.Context(), map[string]any{"words": 200.0, "topic": "tea"})
	same(t, "prompt", prompt, "Write 200 words about tea.")
	if err != nil || len(draft.Boundary) != 2 {
		t.Error(err, draft.Boundary)
	}
	late, failed := d.Node("late"), d.Node("failed")
	same(t, "boundary", late.Interrupting, false)
	same(t, "boundary", failed.Interrupting, true)
	same(t, "code", failed.Event.Code+" "+failed.Event.CodeName, "agent Agent failed")
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	s, err := late.Event.Timer.Schedule(t.Context(), nil, now)
	if err != nil || s.First != now.Add(15*time.Minute) || s.Repeat != 1 {
		t.Error(s, err)
	}
	judge := d.Node("judge")
	same(t, "judge", string(judge.Kind)+" "+judge.Agent.Agent+" "+string(judge.Agent.ResultAs), "task judge json")
	many := d.Node("translate").Loop
	same(t, "loop", string(many.Kind)+" "+many.Element+" "+many.OutputCollection+" "+many.Collection.Text+" "+many.OutputElement.Text+" "+many.Condition.String(), `sequential language translations ["de", "fr"] text len(translations) > 9`)
	good := d.Node("good")
	same(t, "default", good.Default.ID+" "+good.Default.To.ID, "to_end end")
	wait := d.Node("wait")
	name, _ := wait.Event.Name.Render(t.Context(), map[string]any{"ticket": 7})
	key, _ := wait.Event.Correlation.Render(t.Context(), map[string]any{"ticket": 7})
	same(t, "message", name+" "+key, "reply 7 7")
	set, _, err := d.Node("count").Script.Lines.Run(t.Context(), map[string]any{"words": 4})
	same(t, "script", set, map[string]any{"rounds": 1, "words": 8})
	if err != nil {
		t.Error(err)
	}
	listen := d.Main.EventSubProcesses[0]
	same(t, "event sub-process", listen.Scope.Start.ID+" "+string(listen.Scope.Start.Event.Kind), "stopped signal")
	same(t, "interrupting", listen.Scope.Start.Interrupting, false)
	same(t, "terminate", d.Node("listened").Event.Kind, bpmn.TerminateEvent)
	same(t, "parent", d.Node("listened").Parent.ID, listen.ID)
}

func TestResult(t *testing.T) {
	judge := read(t, "tapedeck.bpmn").Node("judge").Agent
	for text, want := range map[string]string{
		`{"score": 3}`: "", "Here it is:\n```json\n{\"score\": 5}\n```\nBye": "", `{"score": 9}`: "does not fit its schema", `{}`: "does not fit its schema",
		`{"score": 3, "id": 1e7000}`: "cannot be compared with its schema", `{"score": 5.000000000000000000000000000000000001}`: "cannot be compared with its schema", `{"score": 1e400}`: "too large", `{"score": 3.5}`: "does not fit its schema", `{"score": 3.0}`: "", `{"score": 3, "id": [9007199254740993, 0.1]}`: "",
		`{"score": 3} {"score": 4}`: "is not JSON", `three`: "is not JSON", "```{\"score\": 1}``` or ```{\"score\": 2}```": "is not JSON", strings.Repeat("x", 2<<20): "at most 1048576",
	} {
		v, err := judge.Result(text)
		if want == "" && (err != nil || v.(map[string]any)["score"] == nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.40q is %v, %v, want the error %q", text, v, err, want)
		}
	}
}

func TestReadCamunda8(t *testing.T) {
	d := read(t, "camunda8.bpmn")
	same(t, "main", d.Main.ID, "triage")
	same(t, "warnings", warnings(d), []string{
		`Activity_1: the header or property "priority" is not read`, "Activity_2: retries is not read: nothing is tried again by itself", `Activity_3: the part "file" (filepicker) of the form is not shown`,
	})
	look := d.Node("Activity_1")
	same(t, "agent", look.Agent.Agent+" "+look.Agent.Output+" "+string(look.Agent.ResultAs), "researcher  json")
	vars := map[string]any{"cve": map[string]any{"id": "CVE-1"}, "result": map[string]any{"severity": "high"}}
	prompt, _ := look.Agent.Prompt.Render(t.Context(), vars)
	same(t, "prompt", prompt, "Look up CVE-1")
	out, _ := look.Outputs[0].Source.Eval(t.Context(), vars)
	same(t, "output", look.Outputs[0].Target+" "+out.(string)+" "+look.Inputs[0].Target, "severity high id")
	search := d.Node("Activity_2")
	same(t, "type", search.Agent.Type+"/"+search.Agent.Agent+"/"+search.Agent.Prompt.Text, "search//Search the code for uses of the package.")
	same(t, "loop", string(search.Loop.Kind)+" "+search.Loop.Element, "parallel package")
	decide := d.Node("Activity_3")
	same(t, "form", fields(t, decide), []string{
		"reason string Reason required maxLength=200", "score integer Score default=5 min=0 max=10", "urgent boolean Urgent", "verdict enum verdict fix=Fix it ignore=Ignore it", "due date Due",
	})
	same(t, "assignee", decide.Assignee+" "+decide.CandidateGroups, "ada security")
	weigh := d.Node("Activity_4").Script
	_, v, _ := weigh.Lines.Run(t.Context(), map[string]any{"score": 9})
	same(t, "script", weigh.Result+" "+v.(string), "weight high")
	call := d.Node("Activity_5")
	same(t, "call", []any{call.Called.ID, call.CalledIn == d, call.PassIn, call.PassOut}, []any{"report", true, true, false})

	agents := map[string]string{"search": "scout"}
	same(t, "agents", look.AgentFor(agents)+" "+search.AgentFor(agents)+" "+search.AgentFor(map[string]string{"Activity_2": "x", "search": "y"})+" "+search.AgentFor(map[string]string{"*": "z"}), "researcher scout x z")
	if err := d.CheckAgents(agents, func(string) error { return nil }); err != nil {
		t.Error(err)
	}
	err := d.CheckAgents(map[string]string{"serch": "scout"}, func(name string) error { return tapedeck.Errorf(tapedeck.NotFound, "there is no agent %s", name) })
	if err == nil || !strings.Contains(problems(err), `element "Activity_1" (Look it up): there is no agent researcher`) || !strings.Contains(problems(err), `no agent works on tasks of the type "search"`) || !strings.Contains(problems(err), `given for "serch"`) {
		t.Error(err)
	}
}

func TestReadCamunda7(t *testing.T) {
	d := read(t, "camunda7.bpmn")
	same(t, "main", d.Main.ID, "invoice")
	same(t, "warnings", warnings(d), []string{
		"start: initiator is not read", "check: the listener (end) is not run", `approve: the form "embedded:app:forms/approve.html" is not read`,
	})
	same(t, "form", fields(t, d.Node("start")), []string{"amount integer Amount required default=10 min=1", "kind enum Kind a=Goods b=Services"})
	check := d.Node("check")
	vars := map[string]any{"amount": 200, "kind": "b"}
	prompt, _ := check.Agent.Prompt.Render(t.Context(), vars)
	same(t, "agent", check.Agent.Agent+": "+prompt+" "+string(check.Agent.ResultAs), "checker: Check 200 of b json")
	refused := d.Node("refused").Event
	same(t, "error", refused.Code+"/"+refused.CodeVariable+"/"+refused.MessageVariable, "/code/why")
	for _, f := range d.Node("large").Out {
		if f.ID == "yes" {
			ok, err := f.Condition.Bool(t.Context(), vars)
			if !ok || err != nil {
				t.Error(ok, err)
			}
		}
	}
	sum := d.Node("sum").Script
	_, v, _ := sum.Lines.Run(t.Context(), vars)
	same(t, "expression", []any{sum.Result, v}, []any{"total", 400})
	pay := d.Node("pay")
	same(t, "call", []any{pay.Called.ID, pay.PassIn, pay.PassOut, pay.Inputs[0].Target, pay.Loop.Element}, []any{"payment", false, true, "price", "part"})
}

func TestReadOthers(t *testing.T) {
	d := read(t, "flowable.bpmn")
	same(t, "form", fields(t, d.Node("start")), []string{"days integer Days required", "reason string Reason default=holiday", "half boolean half readonly"})
	same(t, "agent", d.Node("ask").Agent.Agent+" "+d.Node("ask").Agent.Prompt.Text, "hr Ask")
	same(t, "loop", string(d.Node("many").Loop.Kind)+" "+d.Node("many").Loop.Collection.Text, "parallel signers")

	d = read(t, "signavio.bpmn")
	same(t, "names", d.Main.Name+", "+d.Node("sid-b").Name+", "+d.Node("sid-b").Lane, "Bäckerei, Brötchen backen, Küche")
	same(t, "warnings", warnings(d), []string{"sid-1: the process is not marked as executable; it runs, because it is the only one"})
}
