package transcript

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

// People decide by what they see of a question. So nothing of it is cut here to
// fit the terminal, what the log has cut says so itself, and no character of it is
// hidden.

// A QuestionLine is one of a question. Nothing in its text is hidden.
type QuestionLine struct {
	Style terminal.Style
	Text  string
}

// QuestionLines returns all that is to be allowed, and the options.
func QuestionLines(q *tapedeck.Question) (lines []QuestionLine) {
	add := func(s terminal.Style, indent, text string) {
		for line := range strings.Lines(terminal.Visible(text)) {
			lines = append(lines, QuestionLine{s, indent + strings.TrimSuffix(line, "\n")})
		}
	}
	message, action := q.Message, q.Action
	if message == "" {
		message = "may the agent go on?"
	}
	add(terminal.Yellow, "", message)
	if action != nil {
		lines = append(lines, ActionLines(message, action)...)
	}
	for i, o := range q.Options {
		lines = append(lines, QuestionLine{"", fmt.Sprintf("%d %s", i+1, OptionText(&o))})
	}
	return lines
}

// effects says what an option does, by its kind. Its name may say anything.
var effects = map[string]string{
	"allow_once": "allows once", "allow_always": "allows always",
	"reject_once": "rejects once", "reject_always": "rejects always",
}

// OptionText returns the name of an option, what it does and what it covers, on
// one line.
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

// ActionLines returns what the agent wants to do.
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

// question prints what the agent asks.
func (t *Transcript) question(e *tapedeck.Event) error {
	var q tapedeck.Question
	if json.Unmarshal(e.Data, &q) != nil {
		return nil //nolint:nilerr // as in print
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

// answered prints the answer.
func (t *Transcript) answered(e *tapedeck.Event) error {
	var a tapedeck.Choice
	if json.Unmarshal(e.Data, &a) != nil {
		return nil //nolint:nilerr // as in print
	}
	if a.Option == "" {
		return t.Line("    %s", t.pen.Paint(terminal.Dim, "nobody answered"))
	}
	return t.Line("    %s", t.pen.Paint(terminal.Dim, "→ "+terminal.Brief(terminal.Visible(a.Option), t.rest(""))))
}
