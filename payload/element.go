package payload

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// elementPrefix begins the thread of each element of a workflow.
const elementPrefix = "thread_"

// ElementThread returns the name of the thread of an element of a workflow: "thread_" and the
// id of the element. A byte of the id that no thread may have is written as @ and two
// hexadecimal digits. The error, [tapedeck.Invalid], is that of an id that is empty or too long.
func ElementThread(element string) (string, error) {
	if element == "" {
		return "", tapedeck.Errorf(tapedeck.Invalid, "the id of the element is empty")
	}
	var b strings.Builder
	b.WriteString(elementPrefix)
	for _, c := range []byte(element) {
		if c == '@' || tapedeck.CheckID("", "x"+string(rune(c))) != nil {
			fmt.Fprintf(&b, "@%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String(), tapedeck.CheckID("the thread of the element", b.String())
}

// ElementOf returns the id of the element that a thread belongs to by its name. It reports
// false for a thread of no element.
func ElementOf(thread string) (element string, ok bool) {
	name, ok := strings.CutPrefix(thread, elementPrefix)
	if !ok || name == "" {
		return "", false
	}
	parts := strings.Split(name, "@")
	for i, part := range parts[1:] {
		if len(part) < 2 {
			return name, true // nobody has escaped it
		}
		c, err := hex.DecodeString(part[:2])
		if err != nil {
			return name, true
		}
		parts[i+1] = string(c) + part[2:]
	}
	return strings.Join(parts, ""), true
}
