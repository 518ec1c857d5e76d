package narrate

import (
	"strings"

	"github.com/tapedeck/tapedeck/internal/secret"
)

// maxBrief is how many characters of an agent's text an error sentence may quote.
const maxBrief = 300

// Brief returns the beginning of an agent's text as one line that is safe for a terminal,
// without the secrets that another server knows. A program of this machine knows none: nil.
func Brief(s string, w *secret.Words) string { return w.Line(s, maxBrief) }

// LastLine returns the last line of a program's standard error, where most programs
// give the reason of a failure.
func LastLine(stderr string) string {
	stderr = strings.TrimSpace(stderr)
	return Brief(stderr[strings.LastIndexByte(stderr, '\n')+1:], nil)
}
