package player

import (
	"bytes"
	"unicode/utf8"
)

// A key is what was pressed: a character, or one of those below.
type key rune

const (
	keyCtrlC key = 3
	keyNone  key = -iota
	keyLeft
	keyRight
	keyHome
	keyEnd
)

// sequences are what terminals send for keys that are no characters.
var sequences = map[string]key{
	"[D": keyLeft, "OD": keyLeft, "[C": keyRight, "OC": keyRight,
	"[H": keyHome, "OH": keyHome, "[1~": keyHome, "[7~": keyHome,
	"[F": keyEnd, "OF": keyEnd, "[4~": keyEnd, "[8~": keyEnd,
}

// nextKey reads the first key of what a terminal sent and returns how many
// bytes it took; 0 if it is not there whole yet.
func nextKey(b []byte) (key, int) {
	if len(b) == 0 {
		return keyNone, 0
	}
	if b[0] != 0x1b {
		if !utf8.FullRune(b) {
			return keyNone, 0
		}
		r, n := utf8.DecodeRune(b)
		return key(r), n
	}
	n := sequenceLen(b[1:])
	if n < 0 {
		return keyNone, 0
	}
	if k, ok := sequences[string(b[1:1+n])]; ok {
		return k, 1 + n
	}
	return keyNone, 1 + n
}

// sequenceLen returns the length of the escape sequence that b is the rest of,
// -1 if it is not there whole. The escape key alone is one of length 0.
func sequenceLen(b []byte) int {
	switch {
	case len(b) == 0:
		return -1
	case b[0] == 'O' && len(b) == 1:
		return -1
	case b[0] == 'O':
		return 2
	case b[0] != '[':
		return 0
	}
	end := bytes.IndexFunc(b[1:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
	if end < 0 {
		if len(b) > 32 { // no key is so long
			return len(b)
		}
		return -1
	}
	return end + 2
}
