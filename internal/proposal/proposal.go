// Package proposal describes the action that an agent proposes: the command, the
// changes and the files that people see before they allow it.
//
// All input comes from an agent, and an agent may try to hide its action. So nothing is
// dropped without a trace: a text that is too long keeps its beginning and its end, and
// says how many bytes are left out between them.
package proposal

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

// Bounds of an action, in bytes unless they say otherwise.
const (
	maxCommand   = 16 << 10
	maxChanges   = 24 << 10 // of all diffs together
	maxArguments = 12 << 10
	maxNote      = 4 << 10
	maxName      = 1 << 10
	maxFiles     = 50 // entries of each list
)

// A Draft is an action whose texts may have any length.
type Draft struct {
	Tool      string
	Command   string
	Folder    string
	Changes   []Change
	Locations []tapedeck.PermissionLocation
	Arguments json.RawMessage // the arguments that no other member shows; nil for none
	Note      string
}

// A Change is the change of one file. If Diff is not empty, it is used instead of Before
// and After.
type Change struct {
	Path          string
	Diff          string
	Before, After string
	Line          int  // the line of the file at which Before begins, from 1; 0 if the place is not known, see [Draft.Locate]
	Unknown       bool // the present content is not known: After is the whole new content
}

// Action returns the action within its bounds. It is nil if the draft has nothing but
// the name of a tool and a folder.
func (d *Draft) Action() *tapedeck.PermissionAction {
	var c cutter
	a := &tapedeck.PermissionAction{
		Tool: c.text(d.Tool, maxName), Command: c.text(d.Command, maxCommand), Folder: c.text(d.Folder, maxName),
		Arguments: c.text(indented(d.Arguments), maxArguments), Note: c.text(strings.TrimSpace(d.Note), maxNote),
	}
	left := maxChanges
	for i := range d.Changes[:min(len(d.Changes), maxFiles)] {
		change := &d.Changes[i]
		diff := c.text(change.diff(), max(left, minDiff))
		left -= len(diff)
		a.Changes = append(a.Changes, tapedeck.PermissionChange{Path: c.text(change.Path, maxName), Diff: diff})
	}
	for _, l := range d.Locations[:min(len(d.Locations), maxFiles)] {
		a.Locations = append(a.Locations, tapedeck.PermissionLocation{Path: c.text(l.Path, maxName), Line: l.Line})
	}
	a.Cut, a.More = orNil(c.cut), orNil(max(0, len(d.Changes)-maxFiles)+max(0, len(d.Locations)-maxFiles))
	if a.Command == "" && a.Changes == nil && a.Locations == nil && a.Arguments == "" && a.Note == "" {
		return nil
	}
	return a
}

// minDiff is how many bytes each diff may have, however long the diffs before it are.
const minDiff = 200

// orNil returns a pointer to n, nil for 0.
func orNil(n int) *int64 {
	if n == 0 {
		return nil
	}
	return new(int64(n))
}

// Text returns a text of at most limit bytes and a note, cut as the texts of an action
// are.
func Text(s string, limit int) string {
	var c cutter
	return c.text(s, limit)
}

// A cutter cuts texts and counts the bytes that it leaves out.
type cutter struct{ cut int }

// text returns s if it has at most limit bytes. Otherwise it keeps the beginning and the
// end: the end of a command can do harm that the beginning does not show. A quarter of
// the kept bytes is the end.
func (c *cutter) text(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	head, tail := limit*3/4, len(s)-limit/4
	for !utf8.RuneStart(s[head]) {
		head--
	}
	for !utf8.RuneStart(s[tail]) {
		tail++
	}
	c.cut += tail - head
	return fmt.Sprintf("%s\n[… %d bytes are left out here …]\n%s", s[:head], tail-head, s[tail:])
}

// indented returns JSON with indentation. Numbers and escapes stay unchanged.
func indented(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if enc.Encode(raw) != nil {
		return string(raw)
	}
	return strings.TrimSpace(b.String())
}
