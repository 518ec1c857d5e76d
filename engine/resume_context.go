package engine

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner"
	"github.com/tapedeck/tapedeck/view"
)

// stopPhrases has the phrases for how a run stopped.
var stopPhrases = map[tapedeck.Status][2]string{
	tapedeck.StatusCancelled:   {"was cancelled by user", "cancellation"},
	tapedeck.StatusInterrupted: {"was interrupted", "interruption"},
	tapedeck.StatusFailed:      {"failed", "failure"},
}

// addResumeContext adds the context that the agent gets about the run before: how it
// stopped, the state of its plan, and the events that the agent may not know.
func (e *Engine) addResumeContext(ctx context.Context, s *tapedeck.Session, agent *Agent, f *predecessor) error {
	if f.stopped == nil {
		return nil
	}
	var u unheard
	if f.link != nil && !isExact(agent) { // other agents get the whole log, or their own conversation has it
		var err error
		if u, err = e.unheard(ctx, s, f.stopped); err != nil {
			return err
		}
	}
	if (f.failed || f.quiet) && u.empty() {
		return nil
	}
	plan, err := e.planAt(ctx, s.ID, f)
	if err != nil {
		return err
	}
	phrases := stopPhrases[f.status]
	var b strings.Builder
	fmt.Fprintf(&b, "[RESUME CONTEXT]\nPrevious execution %s.\n", phrases[0])
	if plan != nil && len(plan.Entries) > 0 {
		fmt.Fprintf(&b, "\nTodo state at %s:\n", phrases[1])
		writePlan(&b, plan.Entries)
	}
	f.unheard = u.String()
	b.WriteString(f.unheard + "[END RESUME CONTEXT]")
	f.resumes, f.context, f.lost = f.stopped.Invocation, b.String(), u.lost
	return nil
}

func isExact(a *Agent) bool {
	c, ok := a.Runner.(runner.Capable)
	return ok && c.Capabilities().Exact
}

// planAt returns the plan as it was when the run stopped.
func (e *Engine) planAt(ctx context.Context, session string, f *predecessor) (*view.Plan, error) {
	if f.plan == nil || f.stopped.EndOffset == nil || f.plan.Offset <= *f.stopped.EndOffset {
		return f.plan, nil
	}
	then, err := e.views.Snapshot(ctx, session, view.Query{At: new(*f.stopped.EndOffset + 1), Thread: f.stopped.Thread, Limit: 1})
	return then.Plan, err
}

// Bounds of the plan in a resume context.
const (
	maxEntries = 200
	maxEntry   = 500 // letters
)

func writePlan(b *strings.Builder, entries []view.PlanEntry) {
	inProgress := false
	for i, p := range entries {
		if p.Status == view.PlanInterrupted { // the agent's word for it is in_progress
			p.Status = "in_progress"
		}
		inProgress = inProgress || p.Status == "in_progress"
		if i < maxEntries {
			fmt.Fprintf(b, "  %s %s [%s]\n", markOf(p.Status), oneLine(p.Content), oneLine(statusOf(p.Status)))
		}
	}
	if n := len(entries) - maxEntries; n > 0 {
		fmt.Fprintf(b, "  … and %d more\n", n)
	}
	if inProgress {
		b.WriteString("\nNote: Task(s) marked in_progress were interrupted and may be incomplete.\n")
	}
}

func statusOf(status string) string {
	if status == "" {
		return "pending"
	}
	return status
}

func markOf(status string) string {
	switch status {
	case "completed":
		return "✓"
	case "in_progress":
		return "→"
	case "cancelled", "failed":
		return "✗"
	}
	return "○"
}

// oneLine makes a single line of a text, so that no step of a plan can end the resume
// context.
func oneLine(text string) string {
	text = flat(text)
	if r := []rune(text); len(r) > maxEntry {
		text = string(r[:maxEntry-1]) + "…"
	}
	return text
}

func flat(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(text), " ")
}
