package engine

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// continueText is what the user says who resumes a run without a word.
const continueText = "Continue where you left off."

// Resume starts a run that goes on where the newest one of a thread was cut
// short, with the same agent. That must have been cancelled after the agent had
// begun, or interrupted, or have failed; else it is a [tapedeck.Conflict], and
// [tapedeck.Invalid] if it was cancelled before that.
func (e *Engine) Resume(ctx context.Context, r tapedeck.Resume) (tapedeck.Started, error) {
	if r.Text == "" {
		r.Text = continueText
	}
	t := tapedeck.Task{Session: r.Session, Thread: r.Thread, Text: r.Text, Config: r.Config, Actor: r.Actor}
	if err := checkTask(&t); err != nil {
		return tapedeck.Started{}, err
	}
	if err := ctx.Err(); err != nil {
		return tapedeck.Started{}, err
	}
	return e.start(context.WithoutCancel(ctx), t, true)
}

// A following is what a run has to do with the one before it on its thread.
type following struct {
	resumes string // its invocation, if it was cut short
	context string // what the agent is told of it
	agent   string // which it was

	told   *view.Link     // the newest conversation of a runner's own in the thread; nil for none
	link   *tapedeck.Link // if the run can go on with it
	prompt *string        // the system text of its model, if the log does not have it yet
	folder string         // where it works
}

// follow finds out what a run that is to begin on a thread follows. resume says
// that it is to go on with that.
func (e *Engine) follow(ctx context.Context, s *tapedeck.Session, thread string, resume bool) (following, error) {
	if err := free(s, thread); err != nil {
		return following{}, err
	}
	if !s.Status.Begun() && s.Parent == "" && !resume {
		return following{}, nil // there is nothing to look for
	}
	now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: s.Head, Thread: thread, Limit: 1})
	if err != nil {
		return following{}, err
	}
	var told *view.Link
	if len(now.Threads) > 0 {
		told = now.Threads[0].Link
	}
	if len(now.Runs) == 0 {
		return following{}, nothingToResume(resume, "nothing has run on thread %s", thread)
	}
	run := &now.Runs[len(now.Runs)-1]
	f := following{resumes: run.Invocation, agent: run.Agent, told: told}
	switch st := standingOf(run); {
	case st.resumable != nil && !*st.resumable:
		return f, tapedeck.Errorf(tapedeck.Invalid, "%s was cancelled before the agent had begun, so there is nothing to go on from", run.Invocation).
			WithHint("start a new session, or rewind to before %s", run.Invocation)
	case st.status == tapedeck.StatusComplete:
		return following{told: told}, nothingToResume(resume, "%s has come to its end", run.Invocation)
	case st.status == tapedeck.StatusFailed && !resume:
		return following{told: told}, nil
	case run.Interrupts == nil: // else the agent has asked something, and knows why it stopped
		f.context, err = e.resumeContext(ctx, s.ID, &now, run, st.status)
	}
	return f, err
}

// nothingToResume is no error for a task, which need not resume anything.
func nothingToResume(resume bool, format string, arg string) error {
	if !resume {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Conflict, format+", so there is nothing to resume", arg).WithHint("give the thread a task")
}

// cuts are the words for how a run was cut short.
var cuts = map[tapedeck.Status][2]string{
	tapedeck.StatusCancelled:   {"was cancelled by user", "cancellation"},
	tapedeck.StatusInterrupted: {"was interrupted", "interruption"},
	tapedeck.StatusFailed:      {"failed", "failure"},
}

// resumeContext tells an agent how its run was cut short, and what of its plan
// was done when it was.
func (e *Engine) resumeContext(ctx context.Context, session string, now *view.Snapshot, run *view.Run, status tapedeck.Status) (string, error) {
	plan := now.Plan
	if plan != nil && run.EndOffset != nil && plan.Offset > *run.EndOffset { // somebody has changed it since
		then, err := e.views.Snapshot(ctx, session, view.Query{At: *run.EndOffset + 1, Thread: run.Thread, Limit: 1})
		if err != nil {
			return "", err
		}
		plan = then.Plan
	}
	words := cuts[status]
	var b strings.Builder
	fmt.Fprintf(&b, "[RESUME CONTEXT]\nPrevious execution %s.\n", words[0])
	if plan != nil && len(plan.Entries) > 0 {
		fmt.Fprintf(&b, "\nTodo state at %s:\n", words[1])
		writePlan(&b, plan.Entries)
	}
	b.WriteString("[END RESUME CONTEXT]")
	return b.String(), nil
}

// Bounds of the plan in a resume context.
const (
	maxEntries = 200
	maxEntry   = 500 // letters
)

func writePlan(b *strings.Builder, entries []view.PlanEntry) {
	inProgress := false
	for i, p := range entries {
		if p.Status == view.PlanInterrupted { // as the agent has called it
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

// oneLine makes a text fit into a line, so that no step of a plan can end the
// block that it stands in.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxEntry {
		text = string(r[:maxEntry-1]) + "…"
	}
	return text
}
