package postgres

import (
	"strings"
	"unicode/utf8"
)

// PostgreSQL's type text holds neither U+0000 nor bytes that are not UTF-8, and titles,
// ids of producers and others may have both. escape is also U+001A itself, so that the
// inverse is exact.
const escape = '\x1a'

const hexDigits = "0123456789abcdef"

// stored returns a text as its column has it.
func stored(s string) string {
	if utf8.ValidString(s) && !strings.ContainsAny(s, "\x00\x1a") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == 0 || r == escape || r == utf8.RuneError && size == 1 {
			b.WriteByte(escape)
			b.WriteByte(hexDigits[s[i]>>4])
			b.WriteByte(hexDigits[s[i]&15])
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// original is the inverse of stored.
func original(s string) string {
	if strings.IndexByte(s, escape) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == escape && i+2 < len(s) {
			high, low := strings.IndexByte(hexDigits, s[i+1]), strings.IndexByte(hexDigits, s[i+2])
			if high >= 0 && low >= 0 {
				b.WriteByte(byte(high<<4 | low))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
