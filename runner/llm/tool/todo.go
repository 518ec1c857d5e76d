package tool

import (
	"context"
	"fmt"

	"github.com/tapedeck/tapedeck/payload"
)

// Bounds of a plan.
const (
	maxEntries = 500
	maxEntry   = 2000 // bytes
)

// Todo returns the tool todo_write, with which a model keeps its plan.
func Todo() Tool {
	type args struct {
		Todos []struct {
			Content  string `json:"content"`
			Status   string `json:"status"`
			Priority string `json:"priority"`
		} `json:"todos"`
	}
	return readOnly(build("todo_write",
		"Write down the steps of the work, so that you and the user see where you are. Give the whole list each time: it replaces the one before. "+
			"Use it for work of several steps, and keep one step in progress.",
		`{"todos":{"type":"array","items":{"type":"object","properties":{
			"content":{"type":"string","description":"what is to do"},
			"status":{"type":"string","enum":["pending","in_progress","completed"]},
			"priority":{"type":"string","enum":["high","medium","low"]}},
			"required":["content","status"]}}}`, []string{"todos"},
		func(_ context.Context, _ Call, a args) Result {
			if len(a.Todos) > maxEntries {
				return Failed("The list has %d entries; at most %d are kept.", len(a.Todos), maxEntries)
			}
			plan := make([]payload.PlanEntry, 0, len(a.Todos))
			open := 0
			for i, t := range a.Todos {
				switch t.Status {
				case "pending", "in_progress":
					open++
				case "completed":
				default:
					return Failed("The status of entry %d is %q; it can be pending, in_progress or completed.", i+1, t.Status)
				}
				if len(t.Content) > maxEntry {
					return Failed("Entry %d has %d bytes; at most %d are kept.", i+1, len(t.Content), maxEntry)
				}
				plan = append(plan, payload.PlanEntry{Content: t.Content, Status: t.Status, Priority: t.Priority})
			}
			return Result{Text: fmt.Sprintf("The list is kept: %d to do, %d done.", open, len(plan)-open), Plan: plan}
		}))
}
