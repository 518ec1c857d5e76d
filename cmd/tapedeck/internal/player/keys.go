package player

import (
	"bytes"
	"unicode/utf8"
)

// A key is a pressed key: a character, or one of the constants below.
type key rune

const (
	keyCtrlC key = 3
	keyNone  key = -iota
	keyLeft
	keyRight
	keyHome
	keyEnd
)

// sequences are the escape sequences that terminals send for other keys, without the
// escape character.
var sequences = map[string]key{
	"[D": keyLeft, "OD": keyLeft, "[C": keyRight, "OC": keyRight,
	"[H": keyHome, "OH": keyHome, "[1~": keyHome, "[7~": keyHome,
	"[F": keyEnd, "OF": keyEnd, "[4~": keyEnd, "[8~": keyEnd,
}

// nextKey reads the first key from the bytes that a terminal sent, and returns its
// length; 0 if bytes are missing.
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

// sequenceLen returns the length of the escape sequence at the beginning of b, which
// begins after the escape character; -1 if bytes are missing. The escape key alone has
// length 0.
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
		if len(b) > 32 { // no key sends a sequence this long
			return len(b)
		}
		return -1
	}
	return end + 2
}
