package view

import (
	"strings"
	"unicode"
)

// maxLabel is the largest number of runes in a label.
const maxLabel = 80

// label makes one short line of a text, for people. It keeps 80 runes, turns
// each run of spaces and line ends into one space, and removes control
// characters and those that change the direction of text.
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
				break // only the space would fit
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

const zeroWidthJoiner = '\u200d' // some emoji need it

func shown(r rune) bool {
	return !unicode.IsControl(r) && (!unicode.Is(unicode.Cf, r) || r == zeroWidthJoiner)
}
