package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

// delegate returns the tool that starts another agent.
func (s *run) delegate() tool.Tool {
	var names []string
	var about strings.Builder
	about.WriteString("Starts another agent, waits for its end, and returns its last message. That agent does not see this conversation, so the task must say everything that it needs. The agents:")
	for _, a := range s.in.Delegates {
		names = append(names, a.Name)
		fmt.Fprintf(&about, "\n- %s: %s", a.Name, a.Description)
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "required": []string{"agent", "task"}, "additionalProperties": false,
		"properties": map[string]any{
			"agent": map[string]any{"type": "string", "enum": names},
			"task":  map[string]any{"type": "string", "description": "the task for the agent"},
		},
	})
	if err != nil {
		panic(err) // never happens: the schema has only strings
	}
	type args struct {
		Agent string `json:"agent"`
		Task  string `json:"task"`
	}
	return tool.Tool{
		Name: "start_agent", Description: about.String(), Parameters: schema, Check: tool.Checker[args](schema),
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

// answerOf returns the result of an agent that the model has started.
func answerOf(d tapedeck.Delegated, err error) tool.Result {
	switch {
	case err != nil:
		return tool.Failed("The agent could not be started: %v", err)
	case d.Status != tapedeck.StatusComplete:
		return tool.Failed("The agent did not finish (%s). Its last message: %s", d.Status, d.Text)
	case d.Text == "":
		return tool.Result{Text: "The agent has finished without a message."}
	}
	return tool.Result{Text: d.Text}
}
