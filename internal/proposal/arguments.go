package proposal

import (
	"encoding/json"
	"strings"
)

// The names of the arguments of agents' tools.
var (
	commandNames = []string{"command", "cmd"}
	folderNames  = []string{"cwd", "workdir"}
	noteNames    = []string{"description", "justification"}
	pathNames    = []string{"file_path", "filePath", "path", "notebook_path", "absolute_path", "filepath", "file"}
	wholeNames   = []string{"content", "file_text"}
	beforeNames  = []string{"old_string", "oldString", "oldText", "old_str", "old"}
	afterNames   = []string{"new_string", "newString", "newText", "new_str", "new_source", "new"}
	patchNames   = []string{"patch", "patchText", "diff"}
)

// FromArguments returns the action of a tool, as far as the names of its arguments are
// known. Other arguments stay in [Draft.Arguments].
func FromArguments(tool string, arguments json.RawMessage) Draft {
	d := Draft{Tool: tool}
	m := members{}
	if json.Unmarshal(arguments, &m) != nil || m == nil {
		if len(arguments) > 0 && string(arguments) != "null" {
			d.Arguments = arguments
		}
		return d
	}
	if c, ok := m.takeCommand(); ok {
		d.Command = c
		d.Folder, _ = m.take(folderNames)
	}
	if change, ok := m.takeChange(); ok {
		d.Changes = []Change{change}
	}
	d.Note, _ = m.take(noteNames)
	if len(m) > 0 {
		if raw, err := json.Marshal(m); err == nil {
			d.Arguments = raw
		}
	}
	return d
}

// members are the members of an object in the arguments. A member that the draft shows
// elsewhere is removed.
type members map[string]json.RawMessage

// take returns the first named member that is a string, and removes it.
func (m members) take(names []string) (string, bool) {
	for _, name := range names {
		if s, ok := m.text(name); ok {
			delete(m, name)
			return s, true
		}
	}
	return "", false
}

// text returns a member that is a string.
func (m members) text(name string) (string, bool) {
	var s *string
	raw, ok := m[name]
	if !ok || json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// has reports whether one of the named members is a string.
func (m members) has(names []string) bool {
	for _, name := range names {
		if _, ok := m.text(name); ok {
			return true
		}
	}
	return false
}

// takeCommand returns a command line, which may be a list of words, and removes it.
func (m members) takeCommand() (string, bool) {
	if s, ok := m.take(commandNames); ok {
		return s, s != ""
	}
	for _, name := range commandNames {
		var list []string
		if json.Unmarshal(m[name], &list) == nil && len(list) > 0 {
			delete(m, name)
			return CommandLine(list), true
		}
	}
	return "", false
}

// CommandLine returns the words of a command as people type them into a shell.
func CommandLine(list []string) string {
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

// quote quotes a word that a shell would not read as one word.
func quote(word string) string {
	plain := func(r rune) bool {
		return r == '_' || r == '-' || r == '/' || r == '.' || r == '=' || r == ':' || r == ',' || r == '@' || r == '+' ||
			'0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// takeChange returns the change of a file that the arguments describe, and removes it.
func (m members) takeChange() (Change, bool) {
	if !m.has(pathNames) {
		patch, ok := m.take(patchNames)
		return Change{Path: "patch", Diff: patch}, ok && patch != ""
	}
	switch {
	case m.has(wholeNames):
		c := Change{Unknown: true}
		c.Path, _ = m.take(pathNames)
		c.After, _ = m.take(wholeNames)
		return c, true
	case m.has(afterNames):
		c := Change{}
		c.Path, _ = m.take(pathNames)
		c.Before, _ = m.take(beforeNames)
		c.After, _ = m.take(afterNames)
		return c, true
	case m["edits"] != nil:
		return m.takeEdits()
	case m.has(patchNames):
		c := Change{}
		c.Path, _ = m.take(pathNames)
		c.Diff, _ = m.take(patchNames)
		return c, true
	}
	return Change{}, false // the tool only reads, or its arguments have unknown names
}

// takeEdits returns several changes of one file, if the form of all of them is known.
func (m members) takeEdits() (Change, bool) {
	var list []members
	if json.Unmarshal(m["edits"], &list) != nil || len(list) == 0 {
		return Change{}, false
	}
	var diff strings.Builder
	for _, e := range list {
		before, had := e.take(beforeNames)
		after, ok := e.take(afterNames)
		if !ok || !had || len(e) > 0 {
			return Change{}, false // Draft.Arguments then shows the edits as they are
		}
		c := Change{Before: before, After: after}
		diff.WriteString(c.diff())
	}
	delete(m, "edits")
	c := Change{Diff: diff.String()}
	c.Path, _ = m.take(pathNames)
	return c, true
}
