package jsonobj

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A Piece is a piece of a text, such as the delta of an event. It is UTF-8, except that
// it keeps one half of a surrogate pair, as three bytes: a program that cuts text by
// UTF-16 units divides a character between two pieces, and encoding/json would make
// U+FFFD of each half. Pieces can be appended to each other as they are; the text that
// they make is [Piece.Whole].
type Piece string

// A half of a surrogate pair is 0xed, a byte that says which half it is, and another one.
const halfLen = 3

// Whole returns the text that p makes: halves that have met become their character, and
// a half that is alone becomes U+FFFD.
func (p Piece) Whole() string { return Whole(string(p)) }

// Whole is [Piece.Whole] for pieces that were joined to a string.
func Whole(s string) string { return resolve(s, true, nil) }

// WholeAt is [Whole]. It also returns the offsets, in the whole text, of the characters that
// came in two halves. Each is two bytes shorter than its halves.
func WholeAt(s string) (whole string, met []int) {
	whole = resolve(s, true, &met)
	return whole, met
}

// UnmarshalJSON decodes a JSON string, and leaves p unchanged for null.
func (p *Piece) UnmarshalJSON(b []byte) error {
	if IsNull(b) {
		return nil
	}
	s, ok := unquote(b)
	if !ok {
		var as string
		if err := json.Unmarshal(b, &as); err != nil {
			return err
		}
		return errors.New("the string cannot be read") // never happens, see FuzzPiece
	}
	*p = Piece(s)
	return nil
}

// PieceOf returns the piece of the JSON string raw, "" if raw is not a string.
func PieceOf(raw []byte) Piece {
	s, _ := unquote(raw)
	return Piece(s)
}

// Encodable returns p for encoding/json, which needs four times as long for a piece as for a
// string: p is a string unless it has a half.
func (p Piece) Encodable() any {
	if utf8.ValidString(string(p)) {
		return string(p)
	}
	return p
}

// MarshalJSON encodes p as encoding/json encodes a string, but a half that is alone as
// the escape that it came as. Whether <, > and & are escaped is for the caller's encoder.
func (p Piece) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, len(p)+2), '"')
	s := resolve(string(p), false, nil)
	plain := 0 // start of the part that is not appended yet
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				var escape string
				if escape, n = escapeOf(s[i:]); n > 0 {
					b, plain = append(append(b, s[plain:i]...), escape...), i+n
				}
			case r == '\u2028' || r == '\u2029': // they would end a line of JavaScript
				b, plain = strconv.AppendInt(append(append(b, s[plain:i]...), `\u`...), int64(r), 16), i+n
			}
			i += n
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			b = append(b, s[plain:i]...)
			switch plain = i + 1; c {
			case '\b':
				b = append(b, `\b`...)
			case '\f':
				b = append(b, `\f`...)
			default:
				b = appendEscape(b, c)
			}
		}
		i++
	}
	return append(append(b, s[plain:]...), '"'), nil
}

// AppendPiece appends p as [AppendJSON] appends a string, but a half that is alone as an
// escape.
func AppendPiece(b []byte, p Piece) []byte {
	s := resolve(string(p), false, nil)
	i := indexHalf(s)
	if i < 0 {
		return AppendJSON(b, s)
	}
	b = append(b, '"')
	for ; i >= 0; i = indexHalf(s) {
		b = appendInside(b, s[:i])
		escape, n := escapeOf(s[i:])
		b, s = append(b, escape...), s[i+n:]
	}
	return append(appendInside(b, s), '"')
}

// appendInside appends what [AppendJSON] puts between the quotes.
func appendInside(b []byte, s string) []byte {
	from := len(b)
	b = AppendJSON(b, s)
	copy(b[from:], b[from+1:len(b)-1])
	return b[:len(b)-2]
}

// escapeOf returns the escape of the invalid UTF-8 that s begins with, and the length of
// what it stands for: half of a surrogate pair, or one byte.
func escapeOf(s string) (string, int) {
	if r := halfAt(s); r != 0 {
		return `\u` + strconv.FormatInt(int64(r), 16), halfLen
	}
	return `\ufffd`, 1
}

// halfAt returns the half of a surrogate pair that s begins with, 0 if there is none.
func halfAt(s string) rune {
	if len(s) < halfLen || s[0] != 0xed || s[1] < 0xa0 || s[1] > 0xbf || s[2]&0xc0 != 0x80 {
		return 0
	}
	return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f)
}

func appendHalf(b []byte, r rune) []byte {
	return append(b, 0xed, 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}

// indexHalf returns where the first half in s is, -1 if there is none.
func indexHalf(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], 0xed)
		if i < 0 {
			return -1
		}
		if from += i; halfAt(s[from:]) != 0 {
			return from
		}
		from++
	}
}

// resolve joins halves that have met. With alone, it makes U+FFFD of those that have not.
// It appends to met where halves have met. Nearly all texts have no halves, and are returned
// as they are.
func resolve(s string, alone bool, met *[]int) string {
	i := indexHalf(s)
	if i < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for ; i >= 0; i = indexHalf(s) {
		b = append(b, s[:i]...)
		n := halfLen
		if r := utf16.DecodeRune(halfAt(s[i:]), halfAt(s[i+halfLen:])); r != utf8.RuneError {
			if met != nil {
				*met = append(*met, len(b))
			}
			b, n = utf8.AppendRune(b, r), 2*halfLen
		} else if alone {
			b = utf8.AppendRune(b, utf8.RuneError)
		} else {
			b = append(b, s[i:i+n]...)
		}
		s = s[i+n:]
	}
	return string(append(b, s...))
}

// EndsCharacter reports whether p begins with the second half of a character.
func (p Piece) EndsCharacter() bool {
	r := halfAt(string(p))
	return r != 0 && !isHigh(r)
}

// isHigh reports whether r is the first half of a pair.
func isHigh(r rune) bool { return 0xd800 <= r && r < 0xdc00 }

// Units returns p with each character that has two halves as these halves, so that a text
// can be compared with the beginning of itself that ends in the middle of a character.
func (p Piece) Units() string {
	i := strings.IndexFunc(string(p), hasHalves)
	if i < 0 {
		return string(p)
	}
	b := make([]byte, 0, len(p)+len(p)/2)
	s := string(p)
	for ; i >= 0; i = strings.IndexFunc(s, hasHalves) {
		r, n := utf8.DecodeRuneInString(s[i:])
		high, low := utf16.EncodeRune(r)
		b = appendHalf(appendHalf(append(b, s[:i]...), high), low)
		s = s[i+n:]
	}
	return string(append(b, s...))
}

func hasHalves(r rune) bool { return r > 0xffff }

// Halves holds a half at the end of a piece back until the next piece of the same text,
// for readers that cannot take a text back once they have shown it.
type Halves struct {
	Held Piece `json:"held,omitempty"` // the half
}

// Next returns the text of the next piece.
func (h *Halves) Next(p Piece) string {
	if h.Held != "" {
		p, h.Held = h.Held+p, ""
	}
	if n := len(p) - halfLen; n >= 0 && isHigh(halfAt(string(p[n:]))) {
		p, h.Held = p[:n], p[n:]
	}
	return p.Whole()
}

// End returns what is left when the text ends: U+FFFD for a half, otherwise "".
func (h *Halves) End() string {
	s := h.Held.Whole()
	h.Held = ""
	return s
}

// unquote decodes a JSON string. It reports false if raw is none.
func unquote(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	in := raw[1 : len(raw)-1]
	n, ok := plainLen(in)
	if !ok {
		return "", false
	}
	if n == len(in) {
		return string(in), true
	}
	b := make([]byte, n, len(in)+2*utf8.UTFMax)
	copy(b, in)
	for i := n; i < len(in); {
		c := in[i]
		switch {
		case c < ' ' || c == '"':
			return "", false
		case c == '\\':
			var size int
			if b, size = appendUnescaped(b, in[i:]); size == 0 {
				return "", false
			}
			i += size
		case c < utf8.RuneSelf:
			end := i + 1
			for end < len(in) && isPlainASCII[in[end]] {
				end++
			}
			b = append(b, in[i:end]...)
			i = end
		default:
			r, size := utf8.DecodeRune(in[i:])
			b = utf8.AppendRune(b, r)
			i += size
		}
	}
	return string(b), true
}

// isPlainASCII has the bytes that stand for themselves in a JSON string.
var isPlainASCII = func() (list [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		list[c] = c != '"' && c != '\\'
	}
	return list
}()

// plainLen returns how much of the inside of a JSON string stands for itself. It reports
// false if it meets a character that must be escaped.
func plainLen(in []byte) (n int, ok bool) {
	for n < len(in) && isPlainASCII[in[n]] {
		n++
	}
	if n == len(in) || in[n] == '\\' {
		return n, true
	}
	ascii := n
	for ; n < len(in) && in[n] != '\\'; n++ {
		if in[n] < ' ' || in[n] == '"' {
			return n, false
		}
	}
	if !utf8.Valid(in[ascii:n]) {
		return ascii, true
	}
	return n, true
}

// appendUnescaped appends what the escape stands for that in begins with, and returns the
// length of the escape, 0 if it is none. A pair of halves is one escape.
func appendUnescaped(b, in []byte) ([]byte, int) {
	if len(in) < 2 {
		return b, 0
	}
	if in[1] != 'u' {
		i := strings.IndexByte(`"\/bfnrt`, in[1])
		if i < 0 {
			return b, 0
		}
		return append(b, "\"\\/\b\f\n\r\t"[i]), 2
	}
	r := hex4(in)
	switch {
	case r < 0:
		return b, 0
	case !utf16.IsSurrogate(r):
		return utf8.AppendRune(b, r), 6
	}
	if whole := utf16.DecodeRune(r, hex4(in[6:])); whole != utf8.RuneError {
		return utf8.AppendRune(b, whole), 12
	}
	return appendHalf(b, r), 6
}

// hex4 returns the number of the \u escape that in begins with, -1 if it begins with none.
func hex4(in []byte) rune {
	if len(in) < 6 || in[0] != '\\' || in[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range in[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
