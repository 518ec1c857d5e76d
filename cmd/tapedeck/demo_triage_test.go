package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/engine/workflow"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

// TestDemoDiagram: the diagram of the demo can run, has a place for everything, and its
// tasks go to the agent of the demo and read files that exist.
func TestDemoDiagram(t *testing.T) {
	d, err := bpmn.Read(strings.NewReader(triageDiagram), bpmn.Options{})
	if err != nil || len(d.Warnings) > 0 {
		t.Fatalf("%v, %v", err, d.Warnings)
	}
	tasks := 0
	for _, n := range d.Main.Nodes {
		if !strings.Contains(triageDiagram, `bpmnElement="`+n.ID+`"`) {
			t.Errorf("%s has no place in the picture", n.ID)
		}
		if n.Agent == nil {
			continue
		}
		tasks++
		if n.Agent.Agent != demoTriage {
			t.Errorf("%s goes to %q", n.ID, n.Agent.Agent)
		}
		prompt, err := n.Agent.Prompt.Render(t.Context(), map[string]any{"cve": "CVE-1"})
		_, rest, _ := strings.Cut(prompt, `"path":"`)
		file, _, _ := strings.Cut(rest, `"`)
		if err != nil || triageFiles[file] == "" || !strings.Contains(prompt, "CVE-1") {
			t.Errorf("%s reads %q: %v", n.ID, file, err)
		}
	}
	for _, f := range d.Main.Flows {
		if !strings.Contains(triageDiagram, `bpmnElement="`+f.ID+`"`) {
			t.Errorf("%s has no place in the picture", f.ID)
		}
	}
	if tasks != 3 {
		t.Errorf("%d tasks are for agents", tasks)
	}
}

// TestDemoWorkflow: the demo stores its diagram and runs it once, up to the decision of a
// person, and does nothing at the next start.
func TestDemoWorkflow(t *testing.T) {
	a, err := openApp(t.Context(), appOptions{dir: t.TempDir(), demo: true})
	if err != nil {
		t.Fatal(err)
	}
	h, err := hold(a)
	if err != nil {
		t.Fatal(errors.Join(err, a.close()))
	}
	defer func() {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := demoWorkflow(t.Context(), a, h.url); err != nil {
		t.Fatal(err)
	}
	for e, err := range a.Follow(t.Context(), demoTriage, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == tapedeck.PermissionRequested {
			break
		}
	}
	s, err := a.Session(demoTriage).Info(t.Context())
	if err != nil || s.Agent != workflow.DefaultAgent || s.Labels[demoLabel] != "true" {
		t.Errorf("the session is %+v, %v", s, err)
	}
	head := s.Head
	if err := demoWorkflow(t.Context(), a, h.url); err != nil {
		t.Fatal(err)
	}
	if s, err = a.Session(demoTriage).Info(t.Context()); err != nil || s.Head != head {
		t.Errorf("a second start appended events: the head was %d and is %d, %v", head, s.Head, err)
	}
	c, err := client.New(h.url)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := c.Workflow(t.Context(), demoTriage, ""); err != nil || d.BPMN != triageDiagram {
		t.Errorf("the stored diagram is %q, %v", d.Title, err)
	}
}
