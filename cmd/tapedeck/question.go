package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// People decide by what they see of a question. So nothing of it is cut here to
// fit the terminal, what the log has cut says so itself, and no character of it is
// hidden.

// A questionLine is one of a question. Nothing in its text is hidden.
type questionLine struct {
	style style
	text  string
}

// questionLines returns all that is to be allowed, and the options.
func questionLines(q *tapedeck.Question) (lines []questionLine) {
	add := func(s style, indent, text string) {
		for line := range strings.Lines(visible(text)) {
			lines = append(lines, questionLine{s, indent + strings.TrimSuffix(line, "\n")})
		}
	}
	message, action := q.Message, q.Action
	if message == "" {
		message = "may the agent go on?"
	}
	add(yellow, "", message)
	if action != nil {
		lines = append(lines, actionLines(message, action)...)
	}
	for i, o := range q.Options {
		lines = append(lines, questionLine{"", fmt.Sprintf("%d %s", i+1, optionText(&o))})
	}
	return lines
}

// effects says what an option does, by its kind. Its name may say anything.
var effects = map[string]string{
	"allow_once": "allows once", "allow_always": "allows always",
	"reject_once": "rejects once", "reject_always": "rejects always",
}

// optionText returns the name of an option, what it does and what it covers, on
// one line.
func optionText(o *tapedeck.PermissionOption) string {
	text := visibleLine(o.Name)
	if text == "" {
		text = visibleLine(o.ID)
	}
	if does := effects[o.Kind]; does != "" {
		text += " (" + does + ")"
	}
	if !strings.Contains(o.Name, o.Covers) {
		text += ": " + visibleLine(o.Covers)
	}
	return text
}

// actionLines returns what the agent wants to do.
func actionLines(message string, a *tapedeck.PermissionAction) (lines []questionLine) {
	add := func(s style, first, rest, text string) {
		for line := range strings.Lines(visible(text)) {
			lines = append(lines, questionLine{s, first + strings.TrimSuffix(line, "\n")})
			first = rest
		}
	}
	if a.Command != "" && a.Command != message {
		add("", "$ ", "  ", a.Command)
	}
	if a.Folder != "" {
		add(dim, "in ", "  ", a.Folder)
	}
	for _, c := range a.Changes {
		add("", "changes ", "  ", c.Path)
		for line := range strings.Lines(c.Diff) {
			add(diffStyles[line[0]], "  ", "  ", line)
		}
	}
	for _, l := range a.Locations {
		if l.Line == nil {
			add(dim, "file ", "  ", l.Path)
		} else {
			add(dim, "file ", "  ", fmt.Sprintf("%s:%d", l.Path, *l.Line))
		}
	}
	if a.Arguments != "" {
		add("", "arguments ", "  ", a.Arguments)
	}
	if a.Note != "" && a.Note != message {
		add(dim, "the agent says: ", "  ", a.Note)
	}
	if a.Cut != nil {
		add(red, "", "", fmt.Sprintf("%d bytes of this are not shown", *a.Cut))
	}
	if a.More != nil {
		add(red, "", "", fmt.Sprintf("%s more, not shown", count(int(*a.More), "file")))
	}
	return lines
}

var diffStyles = map[byte]style{'-': red, '+': green, '@': dim}

// question prints what the agent asks.
func (t *transcript) question(e *tapedeck.Event) error {
	var q tapedeck.Question
	if json.Unmarshal(e.Data, &q) != nil {
		return nil //nolint:nilerr // as in print
	}
	mark := t.paint(yellow, "?")
	for _, l := range questionLines(&q) {
		text := l.text
		if l.style != "" {
			text = t.paint(l.style, text)
		}
		if err := t.line("  %s %s", mark, text); err != nil {
			return err
		}
		mark = " "
	}
	return nil
}
