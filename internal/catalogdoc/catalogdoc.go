// Package catalogdoc reads docs/events.md, so that tests can compare it with
// the code.
package catalogdoc

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// A Type is an event type as the document describes it.
type Type struct {
	Channel  string
	Members  [][2]string // name, with "?" if it is optional, and shape
	Example  string
	Subagent bool // it may belong to a sub-agent
}

var (
	docHeading = regexp.MustCompile("^### `(.+)`$")
	docChannel = regexp.MustCompile("^## Channel `(.+)`$")
	docMember  = regexp.MustCompile("^\\| `(.+?)` \\| (.+?) \\|")
)

// Read reads the catalogue in docs/events.md. It returns the types and their
// order in the document. The type "" has the members of messages.
func Read(t testing.TB, file string) (order []string, types map[string]*Type) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	types = map[string]*Type{}
	channel := ""
	var doc *Type
	for l := range strings.Lines(string(text)) {
		l = strings.TrimRight(l, "\n")
		if m := docChannel.FindStringSubmatch(l); m != nil {
			channel = m[1]
		} else if m := docHeading.FindStringSubmatch(l); m != nil {
			doc = &Type{Channel: channel}
			order, types[m[1]] = append(order, m[1]), doc
		} else if l == "## Messages" {
			doc = &Type{}
			types[""] = doc
		} else if l == "| role | content | must also have |" {
			return order, types // the rest of the document is not compared
		} else if doc != nil {
			doc.read(l)
		}
	}
	t.Fatal("the document ends early")
	return nil, nil
}

func (d *Type) read(l string) {
	if m := docMember.FindStringSubmatch(l); m != nil {
		d.Members = append(d.Members, [2]string{m[1], m[2]})
	}
	if strings.HasPrefix(l, "{") {
		d.Example = l
	}
	d.Subagent = d.Subagent || strings.HasSuffix(l, "May be a sub-agent's.")
}
