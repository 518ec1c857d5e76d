package transcript

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

// Users decide by what they see of a question. So no part of it is cut to fit the
// terminal, parts that the log has cut are mentioned, and no character is hidden.

// A QuestionLine is a line of a question. Its text has no hidden characters.
type QuestionLine struct {
	Style terminal.Style
	Text  string
}

// QuestionLines returns the whole question: the message, the action, what its form shows,
// and the options.
func QuestionLines(q *tapedeck.Question) (lines []QuestionLine) {
	add := func(s terminal.Style, indent, text string) {
		for line := range strings.Lines(terminal.Visible(text)) {
			lines = append(lines, QuestionLine{s, indent + strings.TrimSuffix(line, "\n")})
		}
	}
	message, action := q.Message, q.Action
	if message == "" {
		message = "may the agent continue?"
	}
	add(terminal.Yellow, "", message)
	if action != nil {
		lines = append(lines, ActionLines(message, action)...)
	}
	for i := range q.Form {
		if f := &q.Form[i]; f.ReadOnly {
			add(terminal.Dim, "", shownField(f))
		}
	}
	if len(q.Options) == 1 && action == nil && len(q.Form) > 0 {
		return lines // filling in the form is the only answer
	}
	for i, o := range q.Options {
		lines = append(lines, QuestionLine{"", fmt.Sprintf("%d %s", i+1, OptionText(&o))})
	}
	return lines
}

// shownField returns the label and the value of a field that nobody fills in. A text is
// shown as it is, any other value as JSON.
func shownField(f *tapedeck.FormField) string {
	label, value := f.Label, string(f.Default)
	if label == "" {
		label = f.ID
	}
	var text string
	if json.Unmarshal(f.Default, &text) == nil {
		value = text
	}
	value = strings.TrimRight(value, "\n")
	if strings.Contains(value, "\n") {
		value = "\n  " + strings.ReplaceAll(value, "\n", "\n  ")
	}
	return terminal.VisibleLine(label) + ": " + value
}

// effects has the effect of an option by its kind. The name of an option may be
// misleading.
var effects = map[string]string{
	"allow_once": "allows once", "allow_always": "allows always",
	"reject_once": "rejects once", "reject_always": "rejects always",
}

// OptionText returns the name of an option, its effect and what it covers, on one
// line.
func OptionText(o *tapedeck.PermissionOption) string {
	text := terminal.VisibleLine(o.Name)
	if text == "" {
		text = terminal.VisibleLine(o.ID)
	}
	if does := effects[o.Kind]; does != "" {
		text += " (" + does + ")"
	}
	if !strings.Contains(o.Name, o.Covers) {
		text += ": " + terminal.VisibleLine(o.Covers)
	}
	return text
}

// ActionLines returns the action that the agent wants to perform.
func ActionLines(message string, a *tapedeck.PermissionAction) (lines []QuestionLine) {
	add := func(s terminal.Style, first, rest, text string) {
		for line := range strings.Lines(terminal.Visible(text)) {
			lines = append(lines, QuestionLine{s, first + strings.TrimSuffix(line, "\n")})
			first = rest
		}
	}
	if a.Command != "" && a.Command != message {
		add("", "$ ", "  ", a.Command)
	}
	if a.Folder != "" {
		add(terminal.Dim, "in ", "  ", a.Folder)
	}
	for _, c := range a.Changes {
		add("", "changes ", "  ", c.Path)
		for line := range strings.Lines(c.Diff) {
			add(diffStyles[line[0]], "  ", "  ", line)
		}
	}
	for _, l := range a.Locations {
		if l.Line == nil {
			add(terminal.Dim, "file ", "  ", l.Path)
		} else {
			add(terminal.Dim, "file ", "  ", fmt.Sprintf("%s:%d", l.Path, *l.Line))
		}
	}
	if a.Arguments != "" {
		add("", "arguments ", "  ", a.Arguments)
	}
	if a.Note != "" && a.Note != message {
		add(terminal.Dim, "the agent says: ", "  ", a.Note)
	}
	if a.Cut != nil {
		add(terminal.Red, "", "", fmt.Sprintf("%d bytes of this are not shown", *a.Cut))
	}
	if a.More != nil {
		add(terminal.Red, "", "", fmt.Sprintf("%s more, not shown", terminal.Count(int(*a.More), "file")))
	}
	return lines
}

var diffStyles = map[byte]terminal.Style{'-': terminal.Red, '+': terminal.Green, '@': terminal.Dim}

// question prints a question of the agent.
func (t *Transcript) question(e *tapedeck.Event) error {
	var q tapedeck.Question
	if json.Unmarshal(e.Data, &q) != nil {
		return nil //nolint:nilerr // as in Print
	}
	mark := t.pen.Paint(terminal.Yellow, "?")
	for _, l := range QuestionLines(&q) {
		text := l.Text
		if l.Style != "" {
			text = t.pen.Paint(l.Style, text)
		}
		if err := t.Line("  %s %s", mark, text); err != nil {
			return err
		}
		mark = " "
	}
	return nil
}

// answered prints the answer to a question.
func (t *Transcript) answered(e *tapedeck.Event) error {
	var a tapedeck.Choice
	if json.Unmarshal(e.Data, &a) != nil {
		return nil //nolint:nilerr // as in Print
	}
	if a.Option == "" {
		return t.Line("    %s", t.pen.Paint(terminal.Dim, "nobody answered"))
	}
	return t.Line("    %s", t.pen.Paint(terminal.Dim, "→ "+terminal.Brief(terminal.Visible(a.Option), t.rest(""))))
}
