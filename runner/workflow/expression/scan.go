package expression

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

type tokenKind int

const (
	operatorToken tokenKind = iota // with brackets
	wordToken
	numberToken
	stringToken
)

type token struct {
	text string
	kind tokenKind
}

func (t token) is(text string) bool     { return t.kind == operatorToken && t.text == text }
func (t token) isWord(text string) bool { return t.kind == wordToken && t.text == text }
func (t token) opens() bool             { return t.is("(") || t.is("[") || t.is("{") }
func (t token) closes() bool            { return t.is(")") || t.is("]") || t.is("}") }

// twoRunes are the operators of two runes; all others have one.
var twoRunes = []string{"==", "!=", "<=", ">=", "&&", "||", "**", "..", "?.", "??", "::"}

// scan returns the tokens of an expression, without comments.
func scan(source string) ([]token, error) {
	var out []token
	for i := 0; i < len(source); {
		r, size := utf8.DecodeRuneInString(source[i:])
		rest := source[i:]
		switch {
		case r == utf8.RuneError && size <= 1:
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the expression is not valid UTF-8")
		case unicode.IsSpace(r):
			i += size
		case strings.HasPrefix(rest, "//"):
			i += len(firstLine(rest))
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return nil, tapedeck.Errorf(tapedeck.Invalid, "the expression %s has a comment without its end", quote(source))
			}
			i += end + 4
		default:
			n, kind := next(rest, r, size)
			if n == 0 {
				return nil, tapedeck.Errorf(tapedeck.Invalid, "the expression %s has a text without its closing quotation mark", quote(source))
			}
			out = append(out, token{rest[:n], kind})
			i += n
		}
	}
	return out, nil
}

// next returns the length and the kind of the first token, 0 for a string without end.
func next(s string, r rune, size int) (int, tokenKind) {
	switch {
	case r == '"' || r == '\'' || r == '`':
		return stringEnd(s), stringToken
	case r >= '0' && r <= '9':
		return numberEnd(s), numberToken
	case wordRune(r), r == '#' && len(s) > 1 && wordRune(rune(s[1])):
		for i, r := range s {
			if inWord := wordRune(r) || i > 0 && unicode.IsDigit(r) || i == 0 && r == '#'; !inWord {
				return i, wordToken
			}
		}
		return len(s), wordToken
	}
	for _, op := range twoRunes {
		if strings.HasPrefix(s, op) {
			return len(op), operatorToken
		}
	}
	return size, operatorToken
}

func wordRune(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }

// stringEnd returns the length of the string literal at the start of s, 0 if it does
// not end. A string in backquotes has no escapes.
func stringEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && s[0] != '`':
			i++
		case s[i] == s[0]:
			return i + 1
		}
	}
	return 0
}

func numberEnd(s string) int {
	for i := range len(s) {
		c := s[i]
		digit := c >= '0' && c <= '9'
		switch {
		case digit || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		case c == '.' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9':
		case (c == '-' || c == '+') && (s[i-1] == 'e' || s[i-1] == 'E') && !strings.HasPrefix(s, "0x"):
		default:
			return i
		}
	}
	return len(s)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
