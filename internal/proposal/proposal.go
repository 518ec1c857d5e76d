// Package proposal describes to people what an agent wants to do, so that they
// see the command, the change and the files before they allow it.
//
// Everything that it is given comes from an agent, and an agent may want to hide
// what it does. So nothing is dropped without a trace: a text that is too long
// keeps its beginning and its end, and says how much is missing between them.
package proposal

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

// Bounds of an action, in bytes where nothing else is said.
const (
	maxCommand   = 16 << 10
	maxChanges   = 24 << 10 // all diffs together
	maxArguments = 12 << 10
	maxNote      = 4 << 10
	maxName      = 1 << 10
	maxFiles     = 50 // entries of each list
)

// A Draft is an action whose texts may still be of any length.
type Draft struct {
	Tool      string
	Command   string
	Folder    string
	Changes   []Change
	Locations []tapedeck.PermissionLocation
	Arguments json.RawMessage // those that nothing else shows; nil for none
	Note      string
}

// A Change is what would happen to one file. Diff counts if it is not empty.
type Change struct {
	Path          string
	Diff          string
	Before, After string
	Unknown       bool // nobody knows what the file has now: After is all that it will have
}

// Action returns the action within its bounds; nil if the draft says nothing that
// a question does not say anyway.
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
	a.Cut, a.More = some(c.cut), some(max(0, len(d.Changes)-maxFiles)+max(0, len(d.Locations)-maxFiles))
	if a.Command == "" && a.Changes == nil && a.Locations == nil && a.Arguments == "" && a.Note == "" {
		return nil
	}
	return a
}

// minDiff is the room that each diff has, whatever the diffs before it took.
const minDiff = 200

func some(n int) *int64 {
	if n == 0 {
		return nil
	}
	return new(int64(n))
}

// Text returns a text within a bound, cut as the texts of an action are.
func Text(s string, most int) string {
	var c cutter
	return c.text(s, most)
}

// A cutter cuts texts and counts what it leaves out.
type cutter struct{ cut int }

// text returns s if it fits. If not, a quarter of what is kept is the end: the
// end of a command is where it does harm that its beginning does not announce.
func (c *cutter) text(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	head, tail := most*3/4, len(s)-most/4
	for !utf8.RuneStart(s[head]) {
		head--
	}
	for !utf8.RuneStart(s[tail]) {
		tail++
	}
	c.cut += tail - head
	return fmt.Sprintf("%s\n[… %d bytes are left out here …]\n%s", s[:head], tail-head, s[tail:])
}

// indented returns JSON as people read it. Numbers and escapes stay as they are.
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
