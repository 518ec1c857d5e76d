package narrate

import "strings"

// maxBrief is how many bytes of an agent's text an error sentence may quote.
const maxBrief = 300

// Brief returns the beginning of an agent's text as one line. Spaces replace control
// characters, so the line is safe for a terminal.
func Brief(s string) string {
	if len(s) > maxBrief {
		s = s[:maxBrief] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// LastLine returns the last line of a program's standard error, where most programs
// give the reason of a failure.
func LastLine(stderr string) string {
	stderr = strings.TrimSpace(stderr)
	return Brief(stderr[strings.LastIndexByte(stderr, '\n')+1:])
}
