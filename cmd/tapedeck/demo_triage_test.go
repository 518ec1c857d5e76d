package main

import (
	"strings"
	"testing"

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
		prompt, err := n.Agent.Prompt.Render(map[string]any{"cve": "CVE-1"})
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
