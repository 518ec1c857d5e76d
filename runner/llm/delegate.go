package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

// delegate is the tool with which a model starts another agent.
func (s *run) delegate() tool.Tool {
	var names []string
	var about strings.Builder
	about.WriteString("Starts another agent, waits for its end, and returns what it said last. It knows nothing of this conversation: tell it all that it needs. The agents:")
	for _, a := range s.in.Delegates {
		names = append(names, a.Name)
		fmt.Fprintf(&about, "\n- %s: %s", a.Name, a.Description)
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "required": []string{"agent", "task"}, "additionalProperties": false,
		"properties": map[string]any{
			"agent": map[string]any{"type": "string", "enum": names},
			"task":  map[string]any{"type": "string", "description": "what it is to do"},
		},
	})
	if err != nil {
		panic(err) // only strings are put in
	}
	type args struct {
		Agent string `json:"agent"`
		Task  string `json:"task"`
	}
	return tool.Tool{
		Name: "start_agent", Description: about.String(), Parameters: schema,
		Run: func(ctx context.Context, c tool.Call) tool.Result {
			var d args
			if err := json.Unmarshal(c.Arguments, &d); err != nil {
				return tool.Failed("The arguments cannot be read: %v", err)
			}
			return answerOf(s.in.Delegate(ctx, tapedeck.Delegation{Agent: d.Agent, Task: d.Task, ToolCallID: c.ID}))
		},
		Scope: func(arguments json.RawMessage) (key, covers string) {
			var d args
			if json.Unmarshal(arguments, &d) != nil {
				return string(arguments), "exactly these arguments"
			}
			return d.Agent, "every task for the agent " + d.Agent
		},
	}
}

// answerOf returns what a model is told of an agent that it has started.
func answerOf(d tapedeck.Delegated, err error) tool.Result {
	switch {
	case err != nil:
		return tool.Failed("The agent could not be started: %v", err)
	case d.Status != tapedeck.StatusComplete:
		return tool.Failed("The agent did not come to its end (%s). It said last: %s", d.Status, d.Text)
	case d.Text == "":
		return tool.Result{Text: "The agent has come to its end and said nothing."}
	}
	return tool.Result{Text: d.Text}
}
