package expression

import (
	"encoding/base64"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/vm/runtime"
)

// A text has characters, which are code points of Unicode: len, indexes, slices and all
// functions count these. Some of expr-lang count bytes, and cut a character in two.

// characters returns the characters of a text, to count and to take from; another value
// stays what it is.
func characters(v any) any {
	if s, ok := v.(string); ok {
		return strings.Split(s, "")
	}
	return v
}

// slice returns a part of a text or a list, as expr-lang does for lists: places from the end
// are negative, and what is outside is left out.
func slice(v, from, to any) (any, error) {
	s, ok := v.(string)
	if !ok {
		if _, ok := lengthOf(v); !ok {
			return wrong("only lists and texts can be sliced, not %s", describe(v))
		}
		return runtime.Slice(v, from, to), nil
	}
	n := utf8.RuneCountInString(s)
	place := func(i int) int {
		if i < 0 {
			i += n
		}
		return min(max(i, 0), n)
	}
	first, last := place(runtime.ToInt(from)), place(runtime.ToInt(to))
	if last <= first {
		return "", nil
	}
	s = s[byteOf(s, first):]
	return s[:byteOf(s, last-first)], nil
}

// sliceEnd is the end of a slice that names none.
const sliceEnd = math.MaxInt

// byteOf returns where the character with a number begins in a text.
func byteOf(s string, number int) int {
	for i := range s {
		if number == 0 {
			return i
		}
		number--
	}
	return len(s)
}

// position returns the number of the character at which find finds one text in another, -1 if
// it does not.
func position(name string, a []any, find func(s, part string) int) (any, error) {
	if len(a) != 2 {
		return wrong("it takes two texts: in which, and what")
	}
	for _, v := range a {
		if _, err := needText(name, v); err != nil {
			return nil, err
		}
	}
	s := a[0].(string)
	at := find(s, a[1].(string))
	if at > 0 {
		at = utf8.RuneCountInString(s[:at])
	}
	return at, nil
}

// fromBase64 refuses bytes that are no text.
func fromBase64(a []any) (any, error) {
	if len(a) != 1 || !isString(a[0]) {
		return wrong("it takes a text")
	}
	b, err := base64.StdEncoding.DecodeString(a[0].(string))
	if err != nil || !utf8.Valid(b) {
		return wrong("%s is not the Base64 of a text", quote(a[0].(string)))
	}
	return string(b), nil
}

// substring counts characters from 1, as FEEL does, and from the end if start is
// negative.
func substring(a []any) (any, error) {
	if len(a) < 2 || len(a) > 3 || !isString(a[0]) {
		return wrong("it takes a text, a start from 1 and perhaps a length")
	}
	runes := []rune(a[0].(string))
	start, ok := a[1].(int)
	if !ok || start == 0 {
		return wrong("the start is a whole number, from 1 or from -1")
	}
	if start < 0 {
		start = max(len(runes)+start+1, 1)
	}
	length := len(runes)
	if len(a) == 3 {
		if length, ok = a[2].(int); !ok || length < 0 {
			return wrong("the length is a whole number from 0")
		}
	}
	from := min(start-1, len(runes))
	return string(runes[from : from+min(length, len(runes)-from)]), nil
}

// trimText is trim with the characters to cut off.
func trimText(b *budget, a []any) (any, error) {
	for _, v := range a {
		if _, err := needText("trim", v); err != nil {
			return nil, err
		}
	}
	text, cut := a[0].(string), a[1].(string)
	// Each character of the text is looked for in the others.
	if err := b.spend(textTicks(text) * (1 + textTicks(cut))); err != nil {
		return nil, err
	}
	return strings.Trim(text, cut), nil
}

// needText returns v if it is a text, else an error with the name of the function.
func needText(name string, v any) (any, error) {
	if !isString(v) {
		return wrong("%s needs a text, not %s", name, describe(v))
	}
	return v, nil
}

// needList refuses what is neither a list nor null, so that no function takes the bytes of a
// text one by one.
func needList(name string, v any) (any, error) {
	if _, ok := lengthOf(v); !ok && v != nil {
		return wrong("%s takes a list, not %s", name, describe(v))
	}
	return v, nil
}
