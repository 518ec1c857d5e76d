package bpmn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// A Problem is one thing that is wrong with a file, or that a run does not do.
type Problem struct {
	Line    int    `json:"line"`              // in the file, from 1
	Element string `json:"element,omitempty"` // the id of the element; may be empty
	Name    string `json:"name,omitempty"`    // the name of the element; may be empty
	Message string `json:"message"`           // one sentence without a full stop
	Hint    string `json:"hint,omitempty"`    // what to do about it; may be empty

	in       *Process // nil: of the whole file
	variable string   // that does not exist; "" for other problems
}

// String returns the problem without its hint: line 12: element "A" (Name): message.
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "line %d: ", p.Line)
	if p.Element != "" {
		fmt.Fprintf(&b, "element %q", p.Element)
		if p.Name != "" {
			fmt.Fprintf(&b, " (%s)", p.Name)
		}
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

const (
	maxProblems = 50
	maxWarnings = 200
)

// An Error says why a file cannot run. It unwraps to a [*tapedeck.Error] with the first
// problem and its hint, of kind [tapedeck.Invalid], or [tapedeck.TooLarge] for a file
// that is too large.
type Error struct {
	Problems []Problem // at least one and at most 50, in the order of the lines
	More     int       // how many more there are

	// Processes has the ids of the processes that could run, if the file has several and
	// [Options] names none. Otherwise it is nil.
	Processes []string

	kind tapedeck.Kind
}

// Error implements error. It has the first problem and the number of the others.
func (e *Error) Error() string {
	text := e.Problems[0].String()
	if n := len(e.Problems) - 1 + e.More; n > 0 {
		return fmt.Sprintf("%s (and %d more)", text, n)
	}
	return text
}

// Unwrap returns the first problem as a [*tapedeck.Error] that has all of them.
func (e *Error) Unwrap() error {
	kind := e.kind
	if kind == "" {
		kind = tapedeck.Invalid
	}
	out := &tapedeck.Error{Kind: kind, Message: e.Error(), Hint: e.Problems[0].Hint}
	for _, p := range e.Problems {
		out.Problems = append(out.Problems, tapedeck.Problem{Line: p.Line, Element: p.Element, Name: p.Name, Message: p.Message, Hint: p.Hint})
	}
	return out
}

// errorOf returns the problems as an error, nil if there are none.
func errorOf(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	sortProblems(problems)
	e := &Error{Problems: problems}
	if n := len(problems) - maxProblems; n > 0 {
		e.Problems, e.More = problems[:maxProblems], n
	}
	return e
}

func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
}
