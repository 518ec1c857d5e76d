package narrate

import "strings"

// maxBrief is how many bytes of what an agent says are in a sentence of ours.
const maxBrief = 300

// Brief returns the beginning of a text of an agent, as one line that does
// nothing to a terminal.
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

// LastLine returns the last line of what a program complained about, where most
// say what is the matter.
func LastLine(stderr string) string {
	stderr = strings.TrimSpace(stderr)
	return Brief(stderr[strings.LastIndexByte(stderr, '\n')+1:])
}
