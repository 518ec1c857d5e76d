package view

import (
	"strings"
	"unicode"
)

// maxLabel is the most runes of a label.
const maxLabel = 80

// label makes one short line of a text, for people: what follows 80 runes is cut
// off, spaces and ends of lines become one space, and what would do something to
// a terminal or to the direction of a line goes.
func label(text string) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range text {
		if unicode.IsSpace(r) {
			space = n > 0
			continue
		}
		if !shown(r) {
			continue
		}
		if space {
			if n+1 >= maxLabel {
				break // the rest would be a space
			}
			b.WriteByte(' ')
			n++
		}
		space = false
		b.WriteRune(r)
		if n++; n >= maxLabel {
			break
		}
	}
	return b.String()
}

const zeroWidthJoiner = '\u200d' // without it some emoji fall apart

func shown(r rune) bool {
	return !unicode.IsControl(r) && (!unicode.Is(unicode.Cf, r) || r == zeroWidthJoiner)
}
