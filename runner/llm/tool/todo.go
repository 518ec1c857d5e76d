package tool

import (
	"context"
	"fmt"

	"github.com/tapedeck/tapedeck/payload"
)

// Limits of a plan.
const (
	maxEntries = 500
	maxEntry   = 2000 // bytes
)

// Todo returns the tool todo_write, which sets the plan of the agent.
func Todo() Tool {
	type args struct {
		Todos []struct {
			Content  string `json:"content"`
			Active   string `json:"activeForm"` // how the step is called while it is done; only the call has it
			Status   string `json:"status"`
			Priority string `json:"priority"`
		} `json:"todos"`
	}
	return readOnly(build("todo_write",
		"Record the steps of the work, so that you and the user see the progress. Each call sets the whole list and replaces the earlier one. "+
			"Use it for work of several steps, and keep one step in progress.",
		`{"todos":{"type":"array","items":{"type":"object","properties":{
			"content":{"type":"string","description":"the step"},
			"activeForm":{"type":"string","description":"the step while it is done, such as: Reading the file"},
			"status":{"type":"string","enum":["pending","in_progress","completed","cancelled"]},
			"priority":{"type":"string","enum":["high","medium","low"]}},
			"required":["content","status"]}}}`, []string{"todos"},
		func(_ context.Context, _ Call, a args) Result {
			if len(a.Todos) > maxEntries {
				return Failed("The list has %d entries; the limit is %d.", len(a.Todos), maxEntries)
			}
			plan := make([]payload.PlanEntry, 0, len(a.Todos))
			open, done := 0, 0
			for i, t := range a.Todos {
				switch t.Status {
				case "pending", "in_progress":
					open++
				case "completed":
					done++
				case "cancelled":
				default:
					return Failed("The status of entry %d is %q; it must be pending, in_progress, completed or cancelled.", i+1, t.Status)
				}
				if len(t.Content) > maxEntry {
					return Failed("Entry %d has %d bytes; the limit is %d.", i+1, len(t.Content), maxEntry)
				}
				plan = append(plan, payload.PlanEntry{Content: t.Content, Status: t.Status, Priority: t.Priority})
			}
			return Result{Text: fmt.Sprintf("The list is stored: %d to do, %d done.", open, done), Plan: plan}
		}))
}
