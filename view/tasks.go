package view

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// A Task is a request to an agent and its outcome: a run together with the
// user's message that began it.
type Task struct {
	Invocation string          `json:"invocation"`
	Thread     string          `json:"thread"`
	Instance   string          `json:"instance,omitempty"`
	Agent      string          `json:"agent,omitempty"`
	Text       string          `json:"task"`            // the user's text; "" if there is none. A run that continues another one has its text
	Actor      string          `json:"actor,omitempty"` // the user
	Status     tapedeck.Status `json:"status"`
	Resumable  *bool           `json:"resumable,omitempty"` // see [Run]
	Error      *RunError       `json:"error,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Interrupts json.RawMessage `json:"interrupts,omitempty"`
	Usage      json.RawMessage `json:"usage,omitempty"`
	Messages   int             `json:"messages"`   // number of messages without reasoning
	Calls      int             `json:"tool_calls"` // number of tool calls
	First      int64           `json:"first"`      // offset of the user's message; without one, of the run
	Offset     int64           `json:"offset"`     // the offset of the event that began the run
	EndOffset  *int64          `json:"end_offset,omitempty"`
	StartedAt  Time            `json:"started_at"`
	EndedAt    *Time           `json:"ended_at,omitempty"`
	DurationMS *int64          `json:"duration_ms,omitempty"`
}

// Tasks returns the tasks in a snapshot, in the order in which their runs
// began. Tasks of sub-agents are left out, unless the snapshot is of their
// thread.
func Tasks(s Snapshot) []Task {
	runs := Items{Runs: s.Runs}.RunsOf(s.Selected).Runs
	tasks := make([]Task, 0, len(runs))
	places := map[string]int{} // by invocation
	for i := range runs {
		r := &runs[i]
		t := Task{
			Invocation: r.Invocation, Thread: r.Thread, Instance: r.Instance, Agent: r.Agent, Status: r.Status,
			Resumable: r.Resumable, Error: r.Error, Result: r.Result, Interrupts: r.Interrupts, Usage: r.Usage,
			Text: r.Tally.Text, Actor: r.Tally.Actor, Messages: r.Tally.Messages, Calls: r.Tally.Calls,
			First: r.Offset, Offset: r.Offset, EndOffset: r.EndOffset, StartedAt: r.StartedAt, EndedAt: r.EndedAt, DurationMS: r.DurationMS,
		}
		if r.Tally.Asked {
			t.First = min(t.First, r.Tally.First)
		}
		if before, ok := places[r.Parent]; ok && !r.Sub {
			tasks[before].answered()
			if t.Text == "" {
				t.Text = tasks[before].Text
			}
		}
		if last := len(tasks) - 1; r.Sub && t.Text == "" && last >= 0 && tasks[last].Thread == t.Thread { // its agent is asked again
			t.Text, t.Actor = tasks[last].Text, tasks[last].Actor
		}
		places[r.Invocation] = len(tasks)
		tasks = append(tasks, t)
	}
	return tasks
}

// answered notes that a later run of its agent has the answers that a task waited for.
func (t *Task) answered() {
	if t.Interrupts != nil {
		t.Status, t.Interrupts = tapedeck.StatusComplete, nil
	}
}
