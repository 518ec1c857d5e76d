package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/transcript"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// An elementTree prints the events of a workflow as a tree that grows downwards: a line when work
// begins and a line when it ends, indented by the sub-processes and loops around it.
type elementTree struct {
	pen  terminal.Pen
	open map[string]*branch // activations

	threads map[string]string // activations by the threads of their agents
}

// A branch is an activation.
type branch struct {
	title  string
	depth  int
	since  time.Time
	quiet  bool              // an event or a gateway: it has no line of its own when it begins
	thread string            // of its agent
	heard  map[string]string // the ends of messages that its agent is writing, by id
}

func newElementTree(pen terminal.Pen) *elementTree {
	return &elementTree{pen: pen, open: map[string]*branch{}, threads: map[string]string{}}
}

// print prints an event of a workflow. It reports false for another event.
func (t *elementTree) print(e *tapedeck.Event) (bool, error) {
	p, err := payload.Decode(*e)
	if err != nil {
		return false, nil //nolint:nilerr // the log has checked it; a later version may have other members
	}
	switch d := p.(type) {
	case payload.WorkflowStarted:
		return true, t.started(&d)
	case payload.WorkflowEntered:
		return true, t.entered(e, &d)
	case payload.WorkflowWaiting:
		return true, t.waiting(&d)
	case payload.WorkflowCaught:
		return true, t.caught(&d)
	case payload.WorkflowLeft:
		return true, t.left(e, &d)
	case payload.WorkflowFailed:
		return true, t.line(t.depth(d.Activation), terminal.Red, "✗", t.title(d.Activation, &d.WorkflowElement), d.Message)
	case payload.WorkflowVariables:
		return true, t.line(t.depth(d.Scope), terminal.Dim, "=", "variables", t.values(d.Variables))
	case payload.WorkflowMessage:
		return true, t.line(0, terminal.Cyan, "✉", d.Name, strings.TrimSpace(d.Correlation+" "+t.values(d.Variables)))
	case payload.WorkflowEnded:
		return true, t.ended(&d)
	}
	return false, nil
}

// line prints a line: a sign, a title, and more about it as far as it fits.
func (t *elementTree) line(depth int, style terminal.Style, sign, title, more string) error {
	indent := strings.Repeat("  ", min(depth, 10))
	title = terminal.Brief(terminal.VisibleLine(title), max(20, t.pen.Width/2))
	rest := t.pen.Width - len(indent) - len([]rune(title)) - 4
	if more = terminal.VisibleLine(more); more != "" && rest >= 10 {
		title += "  " + t.pen.Paint(terminal.Dim, terminal.Brief(more, rest))
	}
	return t.pen.Printf("%s%s %s\n", indent, t.pen.Paint(style, sign), title)
}

func (t *elementTree) started(d *payload.WorkflowStarted) error {
	what, about := nameOr(d.Name, d.Process), ""
	if d.Resumes != "" {
		about = "continues"
	}
	if len(d.Variables) > 0 {
		about = strings.TrimSpace(about + " " + t.values(d.Variables))
	}
	return t.line(0, terminal.Bold, "▶", what, about)
}

func (t *elementTree) depth(activation string) int {
	if b := t.open[activation]; b != nil {
		return b.depth
	}
	return 1
}

func (t *elementTree) title(activation string, el *payload.WorkflowElement) string {
	if b := t.open[activation]; b != nil {
		return b.title
	}
	return nameOr(el.Name, el.Element)
}

func (t *elementTree) entered(e *tapedeck.Event, d *payload.WorkflowEntered) error {
	b := &branch{title: nameOr(d.Name, d.Element), depth: 1, since: e.Time}
	if d.Index != nil {
		b.title += fmt.Sprintf(" #%d", *d.Index+1)
	}
	if around := t.open[d.Scope]; around != nil {
		b.depth = around.depth + 1
	}
	b.quiet = strings.HasSuffix(d.ElementType, "Event") || strings.HasSuffix(d.ElementType, "Gateway")
	t.open[d.Activation] = b
	if b.thread = d.Thread; b.thread != "" {
		t.threads[b.thread] = d.Activation
	}
	if b.quiet {
		return nil
	}
	more := words(d.ElementType)
	if d.Thread != "" {
		more += ", " + d.Thread
	}
	return t.line(b.depth, terminal.Cyan, "●", b.title, more)
}

func (t *elementTree) waiting(d *payload.WorkflowWaiting) error {
	if d.For == "agent" { // the line of the element has said it
		return nil
	}
	wait := view.WorkflowWait{Element: d.Element, For: d.For, Due: d.Due, Message: d.Message, Correlation: d.Correlation, Signal: d.Signal, Permission: d.Permission}
	return t.line(t.depth(d.Activation), terminal.Yellow, "◌", nameOr(d.Name, d.Element), waitText(&wait, d.Element))
}

func (t *elementTree) caught(d *payload.WorkflowCaught) error {
	more := d.By
	if d.Code != "" {
		more += " " + d.Code
	}
	if d.Message != "" {
		more += ": " + d.Message
	}
	return t.line(t.depth(d.Activation), terminal.Yellow, "!", nameOr(d.Name, d.Element), more)
}

func (t *elementTree) left(e *tapedeck.Event, d *payload.WorkflowLeft) error {
	b := t.open[d.Activation]
	title, depth, more := t.title(d.Activation, &d.WorkflowElement), t.depth(d.Activation), strings.TrimSpace(d.Note+" "+t.values(d.Variables))
	delete(t.open, d.Activation)
	if b != nil {
		delete(t.threads, b.thread)
	}
	if b != nil && !b.quiet {
		more = strings.TrimSpace(elapsed(e.Time.Sub(b.since)) + " " + more)
	}
	style := terminal.Green
	if b != nil && b.quiet {
		style = terminal.Dim
	}
	return t.line(depth, style, "✓", title, more)
}

// elapsed returns a duration of work in a few characters.
func elapsed(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", max(0, d).Seconds())
	}
	return d.Round(time.Second).String()
}

func (t *elementTree) ended(d *payload.WorkflowEnded) error {
	switch d.Outcome {
	case "", "completed":
		return t.line(0, terminal.Green, "■", "completed", "")
	case "terminated":
		return t.line(0, terminal.Green, "■", "terminated", d.Element)
	}
	more := d.Message
	if d.Element != "" {
		more = d.Element + ": " + more
	}
	return t.line(0, terminal.Red, "■", d.Outcome, more)
}

// values returns variables on one line.
func (t *elementTree) values(of tapedeck.Members) string {
	parts := make([]string, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, name+" = "+terminal.Brief(string(of[name]), 60))
	}
	return strings.Join(parts, ", ")
}

// question shows a question of a user task.
func (t *elementTree) question(e *tapedeck.Event) error {
	var q tapedeck.Question
	if !e.Unpack(&q) { // the log has questions of other versions, too
		return nil
	}
	mark := "?"
	for _, l := range transcript.QuestionLines(&q) {
		if err := t.pen.Printf("  %s %s\n", mark, l.Text); err != nil {
			return err
		}
		mark = " "
	}
	return nil
}
