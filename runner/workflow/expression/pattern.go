package expression

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// maxMatch bounds the length of a text times the length of the program of a pattern.
const maxMatch = 100_000_000

// pattern compiles a regular expression of Go for a text. The flags are those of FEEL.
func (b *budget) pattern(text, expression, flags string, lang dialect) (*regexp.Regexp, error) {
	if flags != "" {
		if strings.Trim(flags, "ims") != "" {
			_, err := wrong("the flags %s are not supported, only i, m and s", quote(flags))
			return nil, err
		}
		expression = "(?" + flags + ")" + expression
	}
	if err := b.spend(24 * len(expression)); err != nil {
		return nil, err
	}
	parsed, err := parsePattern(expression, lang)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst)*len(text) > maxMatch {
		_, err := wrong("the text or the pattern is too long")
		return nil, err
	}
	if err := b.spend(len(program.Inst) * (32 + len(text)/3)); err != nil {
		return nil, err
	}
	return regexp.Compile(parsed.String())
}

// allTexts returns the arguments as texts. The last ones may be absent.
func allTexts(a []any, least, most int) ([]string, bool) {
	if len(a) < least || len(a) > most {
		return nil, false
	}
	out := make([]string, most)
	for i, v := range a {
		if !isString(v) {
			return nil, false
		}
		out[i] = v.(string)
	}
	return out, true
}

// matchesPattern is the operator matches.
func matchesPattern(b *budget, a []any) (any, error) {
	if len(a) > 0 && a[0] == nil {
		return false, nil
	}
	return match(b, a, plain)
}

func match(b *budget, a []any, lang dialect) (any, error) {
	t, ok := allTexts(a, 2, 3)
	if !ok {
		return wrong("it takes a text and a pattern")
	}
	r, err := b.pattern(t[0], t[1], t[2], lang)
	if err != nil {
		return nil, err
	}
	return r.MatchString(t[0]), nil
}

// replacePattern is the function replace of FEEL.
func replacePattern(b *budget, a []any) (any, error) {
	t, ok := allTexts(a, 3, 4)
	if !ok {
		return wrong("it takes a text, a pattern, what to write instead, and perhaps flags")
	}
	r, err := b.pattern(t[0], t[1], t[3], feel)
	if err != nil {
		return nil, err
	}
	if err := b.spend(8 * len(t[0])); err != nil { // an empty pattern is found at each character
		return nil, err
	}
	by, groups := replacement(t[2])
	matches := 0
	r.ReplaceAllStringFunc(t[0], func(string) string { matches++; return "" })
	// A group is a part of its match, so each $1 adds at most the whole text.
	if len(t[0])*(1+groups)+matches*len(by) > 8*MaxSize {
		return nil, errSize
	}
	return r.ReplaceAllString(t[0], by), nil
}

// replacement returns a replacement of FEEL in the form of Go, and how many groups it
// names. In Go, $1x is a group with the name 1x.
func replacement(text string) (by string, groups int) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		digits := 0
		for i+1+digits < len(text) && text[i+1+digits] >= '0' && text[i+1+digits] <= '9' {
			digits++
		}
		switch {
		case c == '\\' && i+1 < len(text) && (text[i+1] == '$' || text[i+1] == '\\'):
			i++
			b.WriteString(strings.ReplaceAll(text[i:i+1], "$", "$$"))
		case c == '$' && digits > 0:
			groups++
			b.WriteString("${" + text[i+1:i+1+digits] + "}")
			i += digits
		case c == '$':
			b.WriteString("$$")
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), groups
}

// splitPattern is the function split of FEEL.
func splitPattern(b *budget, a []any) (any, error) {
	t, ok := allTexts(a, 2, 2)
	if !ok {
		return wrong("it takes a text and a pattern")
	}
	r, err := b.pattern(t[0], t[1], "", feel)
	if err != nil {
		return nil, err
	}
	if err := b.spend(4 * len(t[0])); err != nil {
		return nil, err
	}
	out := []any{}
	for _, part := range r.Split(t[0], MaxSize/8+1) {
		out = append(out, part)
	}
	return out, nil
}
