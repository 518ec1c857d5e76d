package indexer

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// read returns JSON as people read it: without the escapes in its texts. Otherwise the n of
// a line break would be a letter of the first word of the next line, and a letter that is
// written with its number would not be found. Only what is between quotes has escapes, so
// the name of a tool before the JSON stays as it is; JSON that is cut off is read as far as
// it goes.
func read(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	inside := false
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"':
			inside = !inside
		case c == '\\' && inside && i+1 < len(text):
			r, n := escape(text[i:])
			b.WriteRune(r)
			i += n
			continue
		}
		b.WriteByte(c)
		i++
	}
	return b.String()
}

var escapes = map[byte]rune{'n': '\n', 'r': '\r', 't': '\t', 'b': ' ', 'f': ' '}

// escape returns the character of the escape with which a text of JSON begins, and the
// bytes that it takes.
func escape(text string) (rune, int) {
	if text[1] != 'u' {
		if r, ok := escapes[text[1]]; ok {
			return r, 2
		}
		r, n := utf8.DecodeRuneInString(text[1:])
		return r, 1 + n
	}
	unit := func(text string) rune {
		if len(text) < 6 || text[:2] != `\u` {
			return -1
		}
		n, err := strconv.ParseUint(text[2:6], 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	const length = len(`\u0000`)
	r := unit(text)
	switch {
	case r < 0:
		return 'u', 2
	case utf16.IsSurrogate(r):
		if whole := utf16.DecodeRune(r, unit(text[length:])); whole != utf8.RuneError {
			return whole, 2 * length
		}
	}
	return r, length // a lone half is written as U+FFFD
}
