package view

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// A Task is what somebody has asked an agent to do, and what became of it: a run,
// together with the user's message that began it.
type Task struct {
	Invocation string          `json:"invocation"`
	Thread     string          `json:"thread"`
	Instance   string          `json:"instance,omitempty"`
	Agent      string          `json:"agent,omitempty"`
	Text       string          `json:"task"`            // what the user said; "" if nobody did
	Actor      string          `json:"actor,omitempty"` // who
	Status     tapedeck.Status `json:"status"`
	Resumable  *bool           `json:"resumable,omitempty"` // see [Run]
	Error      *RunError       `json:"error,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Interrupts json.RawMessage `json:"interrupts,omitempty"`
	Usage      json.RawMessage `json:"usage,omitempty"`
	Messages   int             `json:"messages"`   // how many it has, reasoning left out
	Calls      int             `json:"tool_calls"` // how many
	First      int64           `json:"first"`      // the offset of the user's message, else of the run
	Offset     int64           `json:"offset"`     // of the event that began the run
	EndOffset  *int64          `json:"end_offset,omitempty"`
	StartedAt  Time            `json:"started_at"`
	EndedAt    *Time           `json:"ended_at,omitempty"`
	DurationMS *int64          `json:"duration_ms,omitempty"`
}

// Tasks returns the tasks in a snapshot, in the order in which their runs began.
// What sub-agents were asked is left out, unless the snapshot is of their thread.
func Tasks(s Snapshot) []Task {
	tasks := make([]Task, 0, len(s.Runs))
	newest := map[string]int{} // by invocation: a run whose end was lost is followed by another of its id
	for i := range s.Runs {
		r := &s.Runs[i]
		if s.Selected == "" && tapedeck.IsSubThread(r.Thread) {
			continue
		}
		tasks = append(tasks, Task{
			Invocation: r.Invocation, Thread: r.Thread, Instance: r.Instance, Agent: r.Agent, Status: r.Status,
			Resumable: r.Resumable, Error: r.Error, Result: r.Result, Interrupts: r.Interrupts, Usage: r.Usage,
			First: r.Offset, Offset: r.Offset, EndOffset: r.EndOffset, StartedAt: r.StartedAt, EndedAt: r.EndedAt, DurationMS: r.DurationMS,
		})
		newest[r.Invocation] = len(tasks) - 1
	}
	for i := range s.Messages {
		m := &s.Messages[i]
		n, ok := newest[m.Invocation]
		if !ok || m.Invocation == "" || m.Role == reasoning {
			continue
		}
		t := &tasks[n]
		t.Messages++
		if m.Role == tapedeck.RoleUser && t.Text == "" {
			t.Text, t.Actor, t.First = m.Text, m.Actor, min(t.First, m.Offset)
		}
	}
	for i := range s.Calls {
		if n, ok := newest[s.Calls[i].Invocation]; ok {
			tasks[n].Calls++
		}
	}
	return tasks
}
