package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/engine/workflow"
	"github.com/tapedeck/tapedeck/internal/testmodel"
	"github.com/tapedeck/tapedeck/runner/llm"
)

// demoTriage is the session in which the workflow of the demo runs, the name under which
// its diagram is stored, and the name of the agent of its tasks.
const demoTriage = "demo_triage"

// triageDiagram is the workflow of the demo. What stands in brackets in its prompts is for
// the scripted model.
//
//go:embed demo_triage.bpmn
var triageDiagram string

// triageFiles are in the folder of every session of the agent at the beginning.
var triageFiles = map[string]string{
	"report.md":    "# CVE-2026-1337\n\nA crafted length field overflows a buffer in the parser of version 4.2.0. Score: 8.1.\n",
	"inventory.md": "# Inventory\n\n- gateway: parser 4.2.0, reachable from outside\n- billing: parser 4.2.0, inside\n- archive: parser 4.1.7\n",
	"changelog.md": "# Changelog\n\n## 4.2.1\n- The parser checks the length field.\n",
}

// triagePace is the pause of the scripted model before each word, so that people can watch.
const triagePace = 60 * time.Millisecond

// triage returns the agent of the workflow of the demo: it has real tools, which work on
// files, and a scripted model.
func triage(f *folders) deck.Agent {
	r := llm.New(llm.Options{
		Name: "demo", BaseURL: "http://model.invalid/v1", Model: "scripted",
		HTTPClient: &http.Client{Transport: testmodel.Transport(testmodel.New(testmodel.Options{Pace: triagePace}))},
	})
	return deck.Agent{
		Name: demoTriage, Kind: "llm",
		Description: "does the tasks of the workflow of the demo, with real tools on files; its model does what the task says in brackets",
		Runner:      r,
		Folder: func(session, _ string) (string, error) {
			path, err := f.session(session)
			if err != nil {
				return "", err
			}
			return path, writeFiles(path, triageFiles)
		},
	}
}

// demoWorkflow stores the diagram of the demo at the server at url, and runs it once. Its
// decision is left to the user.
func demoWorkflow(ctx context.Context, a *app, url string) error {
	s, err := a.Session(demoTriage).Info(ctx)
	if err == nil && s.Head > 1 {
		return nil // of an earlier start
	}
	if tapedeck.KindOf(err) == tapedeck.NotFound {
		_, err = a.Create(ctx, api.NewSession{
			ID: demoTriage, Title: "A workflow with agents and a decision", Agent: workflow.DefaultAgent,
			Labels: map[string]string{demoLabel: "true"}, Actor: "demo",
		})
	}
	if err != nil {
		return err
	}
	c, err := client.New(url)
	if err != nil {
		return err
	}
	if _, err := c.PutWorkflow(ctx, api.NewWorkflow{Name: demoTriage, BPMN: triageDiagram}); err != nil {
		return err
	}
	_, err = c.RunWorkflow(ctx, api.RunWorkflow{
		Name: demoTriage, Session: demoTriage, Actor: "demo",
		Variables: map[string]json.RawMessage{"cve": json.RawMessage(`"CVE-2026-1337"`)},
	})
	return err
}
