package exchange

import (
	"strings"

	"github.com/tapedeck/tapedeck/api"
)

// maxKeyLen is the longest name of a member that is looked for in a text.
const maxKeyLen = 128

// keySpans finds members of JSON in a text, because the arguments and results of
// tools are often strings that contain JSON. It finds members also if the rest is
// not JSON, or is cut off.
func (r *Redactor) keySpans(s string) []span {
	if len(r.keys) == 0 {
		return nil
	}
	var out []span
	for i := 0; ; {
		q := strings.IndexByte(s[i:], '"')
		if q < 0 {
			return out
		}
		q += i
		i = q + 1
		level := slashes(s, q)
		end := closing(s[:min(len(s), q+1+maxKeyLen)], q+1, level)
		if end < 0 {
			continue
		}
		name := s[q+1 : end-level]
		value := skipBlank(s, end+1)
		if value >= len(s) || s[value] != ':' {
			continue
		}
		one := r.key(name)
		if one == nil {
			i = value
			continue
		}
		value = skipBlank(s, value+1)
		if to, put := member(s, value, level); to > value {
			out = append(out, span{value, to, q - level, put, []*rule{one}})
			i = to
		}
	}
}

// slashes counts the backslashes before i. In a JSON string that contains JSON,
// each quote has one.
func slashes(s string, i int) (n int) {
	for i--; i >= 0 && s[i] == '\\'; i-- {
		n++
	}
	return n
}

// closing returns the position of the quote that ends a string, which began before
// from with a quote after this many backslashes. It returns -1 if the string does
// not end.
func closing(s string, from, level int) int {
	run := 0
	for i := from; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			run++
			continue
		case s[i] == '"' && (level == 0 && run%2 == 0 || level > 0 && run == level):
			return i
		}
		run = 0
	}
	return -1
}

func skipBlank(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// member returns where the value at from ends, and its replacement. Null and empty
// strings stay.
func member(s string, from, level int) (to int, put string) {
	quote := strings.Repeat(`\`, level) + `"`
	put = quote + api.Redacted + quote
	switch rest := s[from:]; {
	case rest == "" || strings.HasPrefix(rest, "null") || strings.HasPrefix(rest, quote+quote):
		return from, ""
	case strings.HasPrefix(rest, quote):
		if end := closing(s, from+len(quote), level); end >= 0 {
			return end + 1, put
		}
		return len(s), quote + api.Redacted // the value is cut off
	case rest[0] == '{' || rest[0] == '[':
		return bracket(s, from, level), put
	}
	end := strings.IndexAny(s[from:], ",}] \t\r\n")
	if end < 0 {
		return len(s), put
	}
	return from + end, put
}

// bracket returns where the object or array at from ends.
func bracket(s string, from, level int) int {
	depth := 0
	for i := from; i < len(s); i++ {
		switch s[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			end := closing(s, i+1, level)
			if end < 0 {
				return len(s)
			}
			i = end
		}
	}
	return len(s)
}
