package expression

import (
	"regexp/syntax"
	"strings"
	"unicode"
)

// feelFunctions are the functions of FEEL that have another name here. Names of several
// words are possible only there.
var feelFunctions = map[string]string{
	"string length": "len", "upper case": "upper", "lower case": "lower",
	"string join": "join_feel", "starts with": "starts_with", "ends with": "ends_with",
	"list contains": "list_contains", "is defined": "is_defined", "get or else": "get_or_else",
	"distinct values": "uniq", "get value": "get", "contains": "string_contains",
	"substring": "substring", "count": "count_feel", "number": "float", "ceiling": "ceil", "concatenate": "concat",
	"replace": "replace_pattern", "split": "split_pattern", "matches": "matches_feel", "is empty": "is_empty",
	"sum": "sum_feel", "mean": "mean_feel", "median": "median_feel", "string": "string_feel",
}

// feelTimes are functions of FEEL that are refused. Their values have no form in JSON or
// change with the clock, and a decision must be the same when it is made again.
var feelTimes = map[string]bool{
	"date and time": true, "date": true, "time": true, "duration": true, "now": true, "today": true,
	"years and months duration": true, "day of week": true, "day of year": true, "month of year": true, "week of year": true, "last day of month": true,
}

// feelWords are words that begin or join constructs of FEEL that are not supported.
var feelWords = map[string]string{
	"for": "use map(list, # + 1)", "some": "use any(list, # > 1)", "every": "use all(list, # > 1)",
	"between": "use a >= 1 and a <= 9", "instance": "use type(a) == \"string\"", "satisfies": "use any(list, # > 1) or all(list, # > 1)", "return": "use map(list, # + 1)",
}

func feelWord(name string) string {
	for word := range strings.FieldsSeq(name) {
		if feelWords[word] != "" {
			return word
		}
	}
	return ""
}

// negative translates a minus of FEEL with its operand: it binds more than a power there.
func (t *translator) negative(depth int) (string, error) {
	if depth > maxDepth {
		return "", t.refuse("it has more than %d levels", maxDepth)
	}
	var operand strings.Builder
	operand.WriteString("(-")
	for t.i++; t.i < len(t.tokens); {
		text, err := t.one(depth + 1)
		if err != nil {
			return "", err
		}
		operand.WriteString(text)
		if !t.continues() {
			break
		}
	}
	return operand.String() + ")", nil
}

// enter notes the key before the token. In FEEL an entry of a context is a variable of those
// after it; one that has the value of the variable of its name changes nothing.
func (t *translator) enter(name string) {
	if t.lang != feel {
		return
	}
	if t.entry != "" && len(t.entries) < maxNodes { // with more it is refused anyway
		t.entries = append(t.entries, t.entry)
	}
	t.entry = name
	end := t.i + 1
	for end < len(t.tokens) && t.tokens[end].kind == wordToken {
		end++
	}
	if end < len(t.tokens) && (t.tokens[end].is(",") || t.tokens[end].is("}")) && joined(t.tokens[t.i+1:end]) == name {
		t.entry = ""
	}
}

// joined returns words as one name.
func joined(words []token) string {
	var out []string
	for _, w := range words {
		out = append(out, w.text)
	}
	return strings.Join(out, " ")
}

// continues reports whether the value before the token goes on: with a member, or brackets.
func (t *translator) continues() bool {
	if t.i >= len(t.tokens) {
		return false
	}
	tok := t.tokens[t.i]
	return t.member() || tok.is(".") || tok.is("?.") || tok.is("(") || tok.is("[")
}

// elements returns the values that a function of FEEL gets as one list or one by one. A
// value that is no list is a list of one there.
func elements(a []any) []any {
	if len(a) == 1 {
		if l, ok := list(a[0]); ok {
			return l
		}
	}
	return a
}

// ofNumbers returns f as FEEL has it: it takes numbers or one list of them, and of nothing
// the result is null.
func ofNumbers(f function) function {
	return func(b *budget, a []any) (any, error) {
		values := elements(a)
		for _, v := range values {
			if !isNumber(v) {
				return wrong("it takes numbers, or one list of them, not %s", describe(v))
			}
		}
		if len(values) == 0 {
			return nil, nil //nolint:nilnil // null is a value
		}
		return f(b, []any{values})
	}
}

func countFeel(a []any) (any, error) {
	if len(a) != 1 || a[0] == nil {
		return wrong("it takes a list")
	}
	return len(elements(a)), nil
}

// joinFeel joins the texts of a list, without those that are null.
func joinFeel(a []any) (any, error) {
	if len(a) == 0 || len(a) > 2 || a[0] == nil {
		return wrong("it takes a list of texts and perhaps a text between them")
	}
	var texts []any
	for _, v := range elements(a[:1]) {
		if v != nil && !isString(v) {
			return wrong("it takes texts, not %s", describe(v))
		}
		if v != nil {
			texts = append(texts, v)
		}
	}
	if len(a) == 2 && a[1] == nil {
		a = a[:1]
	}
	return joinTexts(append([]any{texts}, a[1:]...))
}

func stringFeel(v any) any {
	if v == nil {
		return nil
	}
	return text(v)
}

// matchesFeel is the function matches of FEEL.
func matchesFeel(b *budget, a []any) (any, error) {
	if len(a) > 0 && a[0] == nil {
		return nil, nil //nolint:nilnil // null is a value
	}
	return match(b, a, feel)
}

// parsePattern reads a regular expression of Go. In FEEL a class has no other one in it, a
// backslash with a digit is no character, and a dot is no carriage return.
func parsePattern(expression string, lang dialect) (*syntax.Regexp, error) {
	if lang == feel {
		if err := onlyInFeel(expression); err != nil {
			return nil, err
		}
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		_, err := wrong("%s is not a regular expression", quote(expression))
		return nil, err
	}
	if lang == feel {
		dots(parsed)
	}
	return parsed, nil
}

// onlyInFeel refuses what Go reads in another way than FEEL.
func onlyInFeel(expression string) error {
	class := false
	for i := 0; i < len(expression); i++ {
		switch c := expression[i]; {
		case c == '\\':
			i++
			if i < len(expression) && expression[i] >= '0' && expression[i] <= '9' {
				_, err := wrong(`the pattern %s has a back-reference (\%c), which is not supported`, quote(expression), expression[i])
				return err
			}
		case c == '[' && class:
			_, err := wrong(`the pattern %s has a "[" in a class: subtraction of classes is not supported, and the character is written "\["`, quote(expression))
			return err
		case c == '[':
			class = true
			i += len(expression[i+1:]) - len(strings.TrimPrefix(expression[i+1:], "^"))
		case c == ']':
			class = false
		}
	}
	return nil
}

// dots makes each dot of a pattern one that is no carriage return.
func dots(r *syntax.Regexp) {
	if r.Op == syntax.OpAnyCharNotNL {
		r.Op, r.Rune = syntax.OpCharClass, []rune{0, '\n' - 1, '\n' + 1, '\r' - 1, '\r' + 1, unicode.MaxRune}
	}
	for _, sub := range r.Sub {
		dots(sub)
	}
}
