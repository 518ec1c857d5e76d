package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/view"
)

func newWorkflowShow(e *env) *cobra.Command {
	var at int64
	var thread string
	c := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show where the workflow of a session is",
		Long: `Show prints the state of the workflow of a session: its elements in the order in which
they were entered, what they wait for, and the variables. With --at it is the state
before the event at that offset.`,
		Example: `  tapedeck workflow show ses_01J…
  tapedeck workflow show ses_01J… --at 41 --json`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkAt(c, at); err != nil {
				return err
			}
			return e.reading(c.Context(), func(conn *connection) error {
				s, err := conn.SessionWorkflow(c.Context(), args[0], thread, at)
				switch {
				case err != nil:
					return err
				case e.json:
					return e.printJSON(s)
				case s.Workflow == nil:
					return tapedeck.Errorf(tapedeck.NotFound, "session %s has no workflow", args[0]).WithHint("look at its events with: tapedeck tail %s", args[0])
				}
				return e.printWorkflow(args[0], s.Workflow)
			})
		},
	}
	c.Flags().Int64Var(&at, "at", -1, "show it as it was before the event at this offset (default: now)")
	c.Flags().StringVar(&thread, "thread", "", "thread of the workflow (default: the main one if that has a workflow, otherwise the first that has one)")
	return c
}

func (e *env) printWorkflow(session string, w *view.Workflow) error {
	pen := e.pen()
	status := string(w.Status)
	if w.Outcome != "" && w.Outcome != status && w.Outcome != view.WorkflowCompleted {
		status += " (" + w.Outcome + ")"
	}
	err := pen.Printf("%s  %s · %s\n", pen.Paint(terminal.Bold, terminal.VisibleLine(nameOr(w.Name, w.Process))), session, status)
	if err == nil && w.Message != "" {
		err = pen.Printf("  %s\n", pen.Paint(terminal.Red, terminal.VisibleLine(strings.TrimSpace(w.Element+": "+w.Message))))
	}
	if err == nil && w.Earlier > 0 {
		err = pen.Printf("  … %s before\n", terminal.Count(w.Earlier, "element"))
	}
	depth := map[string]int{}
	for i := range w.Activations {
		a := &w.Activations[i]
		depth[a.ID] = depth[a.Scope] + 1
		if err == nil {
			err = pen.Printf("%s%s\n", strings.Repeat("  ", depth[a.ID]), activationLine(pen, a, pen.Width-2*depth[a.ID]))
		}
	}
	for i := range w.Waits {
		if err == nil {
			err = pen.Printf("  %s\n", pen.Paint(terminal.Yellow, waitText(&w.Waits[i], "")))
		}
	}
	for i := range w.Messages {
		if err == nil {
			err = pen.Printf("  %s\n", pen.Paint(terminal.Dim, "the message "+terminal.VisibleLine(w.Messages[i].Name)+" has no receiver yet"))
		}
	}
	if err == nil && len(w.Variables) > 0 {
		err = pen.Printf("variables\n")
	}
	for _, name := range slices.Sorted(maps.Keys(w.Variables)) {
		if err == nil {
			err = pen.Printf("  %s = %s\n", terminal.VisibleLine(name), valueText(w.Variables[name], pen.Width-len(name)-5))
		}
	}
	return err
}

func nameOr(name, id string) string {
	if name != "" {
		return name
	}
	return id
}

// valueText returns the JSON of a variable on a line of at most n characters.
func valueText(v json.RawMessage, n int) string {
	return terminal.Brief(terminal.VisibleLine(string(v)), max(20, n))
}

// marks show the status of an activation.
var marks = map[string]struct {
	sign  string
	style terminal.Style
}{
	view.ActivationActive: {"●", terminal.Cyan}, view.ActivationWaiting: {"◌", terminal.Yellow}, view.ActivationCompleted: {"✓", terminal.Green},
	view.ActivationFailed: {"✗", terminal.Red}, view.ActivationInterrupted: {"⊘", terminal.Dim}, view.ActivationCancelled: {"⊘", terminal.Dim},
}

// activationLine describes an activation on a line of at most width characters.
func activationLine(pen terminal.Pen, a *view.WorkflowActivation, width int) string {
	m := marks[a.Status]
	title := terminal.VisibleLine(nameOr(a.Name, a.Element))
	if a.Index != nil {
		title += fmt.Sprintf(" #%d", *a.Index+1)
	}
	if a.Count != nil {
		title += fmt.Sprintf(" ×%d", *a.Count)
	}
	title = terminal.Brief(title, max(20, width/2))
	var more []string
	if a.Name != "" {
		more = append(more, a.Element)
	}
	more = append(more, words(a.Type))
	if a.Thread != "" {
		more = append(more, a.Thread)
	}
	if a.Message != "" {
		more = append(more, a.Message)
	}
	for i := range a.Waits {
		more = append(more, waitText(&a.Waits[i], a.Element))
	}
	text := terminal.Brief(terminal.VisibleLine(strings.Join(slices.DeleteFunc(more, func(s string) bool { return s == "" }), ", ")), max(20, width-len([]rune(title))-4))
	return pen.Paint(m.style, m.sign) + " " + title + "  " + pen.Paint(terminal.Dim, text)
}

// words returns the name of a type of elements in BPMN as words: userTask is a user task.
func words(typ string) string {
	var b strings.Builder
	for _, r := range typ {
		if unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.TrimSpace(b.String())
}

// waitText says what an element waits for; of is the element of the line.
func waitText(w *view.WorkflowWait, of string) string {
	text := "waits for "
	if w.Element != of {
		text = w.Element + " waits for "
	}
	switch w.For {
	case "timer":
		text += w.Due
	case "message":
		text += "the message " + w.Message
		if w.Correlation != "" {
			text += " (" + w.Correlation + ")"
		}
	case "signal":
		text += "the signal " + w.Signal
	case "agent":
		text += nameOr(w.Agent, "its agent")
	case "user":
		text += "an answer to " + w.Permission
	default:
		text += w.For
	}
	return terminal.VisibleLine(text)
}
