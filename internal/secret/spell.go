package secret

import (
	"encoding/base64"
	"html"
	"strconv"
	"strings"
)

// A unit is a byte of a text, and where the text has it: an escape is one byte, or one
// character, and several bytes of the text.
type unit struct {
	b        byte // in lower case
	from, to int
}

// maxLevels is how often a text is decoded: percent-encoded twice, inside JSON inside HTML, is 4.
const maxLevels = 8

// levels calls see with a text, then with its escapes decoded, until there are no more.
func levels(text string, see func([]unit)) {
	units := make([]unit, len(text))
	for i := range len(text) {
		units[i] = unit{lower(text[i]), i, i + 1}
	}
	for range maxLevels {
		see(units)
		decoded := decode(units)
		if len(decoded) == len(units) { // an escape is longer than what it stands for
			return
		}
		units = decoded
	}
}

// decode replaces the escapes of URLs, JSON and HTML by what they stand for.
func decode(units []unit) []unit {
	out := make([]unit, 0, len(units))
	for i := 0; i < len(units); {
		text, n := escape(units[i:])
		for j := range len(text) {
			out = append(out, unit{lower(text[j]), units[i].from, units[i+n-1].to})
		}
		i += n
	}
	return out
}

// maxEscape is the length of the longest escape.
const maxEscape = 10

// escape returns what the beginning of a text stands for, and how long it is.
func escape(units []unit) (string, int) {
	var buffer [maxEscape]byte
	n := min(len(units), maxEscape)
	for i := range n {
		buffer[i] = units[i].b
	}
	s := string(buffer[:n])
	switch {
	case n == 1:
	case s[0] == '%' && n >= 3:
		if b, err := strconv.ParseUint(s[1:3], 16, 8); err == nil {
			return string([]byte{byte(b)}), 3
		}
	case s[0] == '\\' && s[1] == 'u' && n >= 6:
		if r, err := strconv.ParseUint(s[2:6], 16, 32); err == nil {
			return string(rune(r)), 6
		}
	case s[0] == '\\' && strings.IndexByte(`"'/\`, s[1]) >= 0:
		return s[1:2], 2
	case s[0] == '&':
		end := strings.IndexByte(s, ';') + 1
		if text := html.UnescapeString(s[:end]); len(text) < end {
			return text, end
		}
	}
	return s[:1], 1
}

// inBase64 returns how a word can look inside a text in base64: that depends on how many
// bytes are before it.
func inBase64(word string) (spellings []string) {
	for before := range 3 {
		b := append(make([]byte, before), word...)
		begin := (before*8 + 5) / 6 // what is before has a part of the character before this one
		spellings = append(spellings, base64.RawStdEncoding.EncodeToString(b)[begin:], base64.RawURLEncoding.EncodeToString(b)[begin:])
	}
	return spellings
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		b += 'a' - 'A'
	}
	return b
}
