package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// Run starts a workflow. Nothing is started if something is wrong with the request: the
// error has all problems of the diagram and of the agents of its tasks.
func (l *Library) Run(ctx context.Context, r api.RunWorkflow) (api.Started, error) {
	t, err := l.Prepare(ctx, r)
	if err != nil {
		return api.Started{}, err
	}
	return l.Engine.Start(ctx, t)
}

// Prepare returns the task that starts a workflow; see [Library.Run].
func (l *Library) Prepare(ctx context.Context, r api.RunWorkflow) (api.Task, error) {
	d, text, err := l.source(ctx, source{r.BPMN, r.Name, r.Version, r.Process})
	if err == nil {
		err = checkAgents(d, r.Agents)
	}
	if err != nil {
		return api.Task{}, err
	}
	about := l.describe(d, r.Agents)
	if len(about.Unmet) > 0 {
		return api.Task{}, placesError(about.Unmet)
	}
	variables, err := startVariables(d.Main, r.Variables)
	if err != nil {
		return api.Task{}, err
	}
	config, err := json.Marshal(config{BPMN: text, Process: r.Process, Variables: variables, Agents: r.Agents})
	if err != nil {
		return api.Task{}, tapedeck.Errorf(tapedeck.Invalid, "a variable is not valid JSON").Because(err)
	}
	title := cmp.Or(r.Title, about.Title, r.Name, about.Process)
	t := api.Task{Session: r.Session, Thread: r.Thread, Agent: l.Agent, Actor: r.Actor, Text: "Run the workflow " + title, Config: config}
	if r.Session == "" {
		t.Title = title
	}
	return t, nil
}

// placesError returns the error of a run that lacks something in these places.
func placesError(list []tapedeck.Problem) error {
	p := &list[0]
	more := ""
	if n := len(list) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return &tapedeck.Error{
		Kind: tapedeck.Invalid, Message: fmt.Sprintf("line %d: element %q: %s%s", p.Line, p.Element, p.Message, more),
		Hint: p.Hint, Problems: list,
	}
}

// config is what the workflow runner gets.
type config struct {
	BPMN      string                     `json:"bpmn"`
	Process   string                     `json:"process,omitempty"`
	Variables map[string]json.RawMessage `json:"variables,omitempty"`
	Agents    map[string]string          `json:"agents,omitempty"`
}
