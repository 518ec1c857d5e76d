package workflow

import (
	"encoding/json"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/runnertest"
)

// TestRunner: in a host without a log a workflow begins a process, has no agents and
// asks nobody.
func TestRunner(t *testing.T) {
	task := func(xml string) tapedeck.Invocation {
		raw, _ := json.Marshal(Config{BPMN: xml})
		return tapedeck.Invocation{Config: raw, Task: "go"}
	}
	runnertest.Run(t, func(testing.TB) runnertest.Harness {
		fail := task(diagramOf(startEnd+script("T", "y = x + 1"), "S>T", "T>E"))
		return runnertest.Harness{
			Runner: New(Options{}),
			Talk:   task(diagramOf(startEnd+script("T", "x = 1"), "S>T", "T>E")),
			Endless: task(diagramOf(startEnd+gateway("exclusive", "M")+timer("intermediateCatchEvent", `id="W"`, "PT1S")+gateway("exclusive", "G", `default="G_M"`),
				"S>M", "M>W", "W>G", "G>M", "G>E:false")),
			Fail: &fail, Bubble: true, Wordless: true,
		}
	})
}

func TestAvailable(t *testing.T) {
	if err := New(Options{XML: []byte(diagramOf(startEnd, "S>E"))}).Available(); err != nil {
		t.Error(err)
	}
	if err := New(Options{XML: []byte("<no")}).Available(); err == nil {
		t.Error("a broken diagram is available")
	}
}
