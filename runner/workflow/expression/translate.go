package expression

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

// A dialect is the language that the writer of an expression thinks of.
type dialect int

const (
	plain dialect = iota // expr-lang
	feel                 // "= a": Camunda 8
	juel                 // "${a}": Camunda 7, Flowable
)

// dialectOf returns the expression without its marks, and its language.
func dialectOf(text string) (string, dialect) {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "="); ok && !strings.HasPrefix(rest, "=") {
		return rest, feel
	}
	if inner, ok := wholeJUEL(text); ok {
		return inner, juel
	}
	return text, plain
}

var juelOperators = map[string]string{"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "div": "/", "mod": "%", "empty": "is_empty"}

// wordOperators stand between or before values, so a name may follow them.
var wordOperators = map[string]bool{
	"and": true, "or": true, "not": true, "in": true, "let": true, "contains": true, "matches": true,
	"startsWith": true, "endsWith": true, "if": true, "then": true, "else": true,
}

// translate returns the expression in the language of expr-lang, and the numbers that have a
// point only there.
func translate(source string, lang dialect) (out string, widened []string, err error) {
	tokens, err := scan(source)
	if err != nil {
		return "", nil, err
	}
	t := &translator{source: source, tokens: tokens, lang: lang}
	out, err = t.group(0, false)
	if err != nil {
		return "", nil, err
	}
	if t.i < len(t.tokens) {
		return "", nil, t.refuse("%q has no beginning", t.tokens[t.i].text)
	}
	return out, t.widened, nil
}

type translator struct {
	source  string
	tokens  []token
	i       int
	lang    dialect
	widened []string // whole numbers to which number has added wholePoint
	entries []string // of the open contexts of FEEL: the keys that have their values already
	entry   string   // the key that gets its value now
}

// wholePoint makes of a whole number one that expr-lang reads as a float64.
const wholePoint = ".0"

// asWritten returns a text of expr-lang without the points that its author did not write.
func asWritten(text string, widened []string) string {
	for _, n := range widened {
		text = strings.ReplaceAll(text, n+wholePoint, n)
	}
	return text
}

const maxDepth = 100 // of brackets and of if

func (t *translator) refuse(format string, args ...any) *tapedeck.Error {
	e := tapedeck.Errorf(tapedeck.Invalid, format, args...)
	e.Message = "the expression " + quote(t.source) + " cannot be read: " + e.Message
	return e
}

// group translates up to a closing bracket, then or else. A branch of an if ends at a
// comma, too.
func (t *translator) group(depth int, branch bool) (string, error) {
	if depth > maxDepth {
		return "", t.refuse("it has more than %d levels", maxDepth)
	}
	var b strings.Builder
	power := false
	for t.i < len(t.tokens) {
		tok := t.tokens[t.i]
		if tok.closes() || !t.member() && (tok.isWord("then") || tok.isWord("else")) || branch && (tok.is(",") || tok.is(";")) {
			break
		}
		switch {
		case (tok.is("**") || tok.is("^")) && power && t.lang == feel:
			return "", t.refuse("it has a power of a power").WithHint("write (a ** b) ** c, as FEEL reads it, or a ** (b ** c)")
		case tok.kind == operatorToken && t.afterValue() && !t.continues(), wordOperators[tok.text] && !t.member():
			power = tok.is("**") || tok.is("^")
		}
		text, err := t.one(depth)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
		b.WriteByte(' ')
	}
	return strings.TrimSuffix(b.String(), " "), nil
}

// lineBreaks in texts are allowed here, but not in expr-lang.
var lineBreaks = strings.NewReplacer("\n", "\\n", "\r", "\\r")

// one translates one token, or what belongs together with it.
func (t *translator) one(depth int) (string, error) {
	tok := t.tokens[t.i]
	switch {
	case tok.kind != stringToken && t.key():
		return t.takeKey(), nil
	case tok.kind == wordToken && !t.member():
		return t.word(depth)
	case tok.is("-") && t.lang == feel && !t.afterValue():
		return t.negative(depth)
	case tok.opens():
		return t.bracket(depth)
	case tok.kind == stringToken && tok.text[0] != '`':
		isKey := t.key()
		if t.i++; isKey {
			t.enter(tok.text[1 : len(tok.text)-1])
		}
		return lineBreaks.Replace(joinHalves(t.escapes(tok.text))), nil
	case tok.kind == numberToken:
		t.i++
		return t.number(tok.text)
	case tok.is("@"):
		return "", t.refuse("dates and times (@\"…\") are not supported: they are no values of JSON").WithHint("pass the time as text in a variable, or use a timer event")
	case tok.is("="):
		t.i++
		if t.i >= 3 && t.tokens[t.i-3].isWord("let") {
			return "=", nil
		}
		return "==", nil
	case tok.is("..") && t.lang == feel:
		return "", t.refuse("ranges of FEEL are not supported").WithHint("write x >= 1 and x <= 5")
	}
	t.i++
	return tok.text, nil
}

// number returns a number so that expr-lang can read it. It reads whole numbers beyond an
// int64 only with a point, and then as float64; see guards.literal. It reads no number that is
// beyond a float64.
func (t *translator) number(text string) (string, error) {
	plain := strings.ReplaceAll(text, "_", "")
	if strings.Trim(plain, "0123456789") == "" {
		if _, err := strconv.ParseInt(plain, 10, 64); err != nil {
			t.widened = append(t.widened, text, plain)
			text += wholePoint
		}
	}
	if f, err := strconv.ParseFloat(text, 64); err != nil && math.IsInf(f, 0) {
		return literalName + `("` + plain + `")`, nil
	}
	return text, nil
}

// escapes doubles the backslashes of a text of FEEL that begin no escape there: "\d" is a
// backslash and a d, as patterns need it.
func (t *translator) escapes(text string) string {
	if t.lang != feel || !strings.Contains(text, "\\") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		b.WriteByte(text[i])
		if text[i] != '\\' {
			continue
		}
		i++ // a text does not end with a backslash: its quotation mark would belong to it
		if !strings.ContainsRune(`nrt"'\uU`, rune(text[i])) {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// joinHalves writes a character whose two halves are written with numbers, as in JSON, as
// it is: expr-lang would read two halves.
func joinHalves(text string) string {
	if !strings.Contains(text, `\u`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		if whole := utf16.DecodeRune(half(text[i:]), half(text[min(i+6, len(text)):])); whole != utf8.RuneError {
			b.WriteRune(whole)
			i += 11
			continue
		}
		b.WriteString(text[i : i+2])
		i++
	}
	return b.String()
}

// half returns the number of the escape \u0000 with which a text begins, -1 if it begins
// with none.
func half(text string) rune {
	if len(text) < 6 || text[:2] != `\u` {
		return -1
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// bracket translates brackets with what they contain.
func (t *translator) bracket(depth int) (string, error) {
	open := t.tokens[t.i]
	if open.is("[") && t.lang == feel && t.afterValue() {
		if t.i+2 >= len(t.tokens) || t.tokens[t.i+1].kind != stringToken || !t.tokens[t.i+2].is("]") {
			return "", t.refuse("filters and indexes of FEEL are not supported, because FEEL counts from 1").
				WithHint("use first(list), last(list) or filter(list, .price > 3); or write the expression without \"=\", where list[0] is the first element")
		}
	}
	t.i++
	entries, entry := t.entries, t.entry
	if open.is("{") {
		t.entry = ""
	}
	inner, err := t.group(depth+1, false)
	if err != nil {
		return "", err
	}
	t.entries, t.entry = entries, entry
	end := map[string]string{"(": ")", "[": "]", "{": "}"}[open.text]
	if t.i >= len(t.tokens) || !t.tokens[t.i].is(end) {
		return "", t.refuse("%q is not followed by %q", open.text, end)
	}
	t.i++
	return open.text + inner + end, nil
}

// word translates a name or a word operator.
func (t *translator) word(depth int) (string, error) {
	tok := t.tokens[t.i]
	switch {
	case tok.text == "if":
		return t.condition(depth)
	case tok.text == "null":
		t.i++
		return "nil", nil
	case wordOperators[tok.text] && !t.namesFunction():
		t.i++
		return tok.text, nil
	case t.lang == juel && juelOperators[tok.text] != "" && !t.call(t.i+1):
		return t.juelOperator(), nil
	}
	last := t.i
	for last+1 < len(t.tokens) && t.tokens[last+1].kind == wordToken && !t.joins(last+1) {
		last++
	}
	name := t.tokens[t.i].text
	if strings.HasPrefix(name, "__") || name == "$env" {
		return "", t.refuse("the name %s is reserved", name)
	}
	for _, next := range t.tokens[t.i+1 : last+1] {
		name += " " + next.text
	}
	called := t.call(last + 1)
	switch {
	case called && t.lang == feel && feelTimes[name]:
		return "", t.refuse("the function %s of FEEL is not supported: dates and times are no values of JSON", name).WithHint("pass the time as text in a variable, or use a timer event")
	case called && t.lang != juel && (t.lang == feel || last > t.i || name == "contains") && feelFunctions[name] != "":
		t.i = last + 1
		return feelFunctions[name], nil
	case last > t.i && feelWord(name) != "":
		word := feelWord(name)
		return "", t.refuse("%q of FEEL is not supported", word).WithHint("%s", feelWords[word])
	case last > t.i && called:
		return "", unknownFunction(name)
	case last > t.i && t.lang == juel:
		return "", t.refuse("%q is no name: a name of JUEL has no spaces", name)
	case !called && slices.Contains(t.entries, name):
		return "", t.refuse("%q is the entry of its context there, as FEEL reads it, which is not supported", name).WithHint("give the entry another name, or write its value again")
	case !called:
		name = environmentName(name)
	}
	t.i = last + 1
	return name, nil
}

// namesFunction reports whether the token, which may be an operator, is the name of a
// function that is called.
func (t *translator) namesFunction() bool {
	tok := t.tokens[t.i]
	return (tok.text == "contains" || tok.text == "matches" && t.lang == feel) && t.call(t.i+1) && !t.afterValue()
}

// variablePrefix marks a variable that has the name of a function, or spaces in its
// name, as FEEL allows. expr-lang would take the one for the function, and the other for
// two names.
const variablePrefix = "__variable_"

// spaceInName stands for a space; it is a letter, which no keyboard has.
const spaceInName = "\u02d1"

// environmentName returns the name that the compiled expression has for a variable.
func environmentName(name string) string {
	if builtins[name] || strings.Contains(name, " ") {
		return variablePrefix + strings.ReplaceAll(name, " ", spaceInName)
	}
	return name
}

// variableName returns the variable of a name in a compiled expression.
func variableName(name string) string {
	if rest, ok := strings.CutPrefix(name, variablePrefix); ok {
		return strings.ReplaceAll(rest, spaceInName, " ")
	}
	return name
}

// key reports whether a key of an object begins at the token: a number, a text or words.
func (t *translator) key() bool {
	tok := t.tokens[t.i]
	if t.i == 0 || !t.tokens[t.i-1].is("{") && !t.tokens[t.i-1].is(",") || tok.kind == operatorToken || tok.text[0] == '#' {
		return false
	}
	end := t.keyEnd()
	return end < len(t.tokens) && t.tokens[end].is(":")
}

// keyEnd returns the place behind the key at the token.
func (t *translator) keyEnd() int {
	end := t.i + 1
	for t.tokens[t.i].kind == wordToken && end < len(t.tokens) && t.tokens[end].kind == wordToken {
		end++
	}
	return end
}

// takeKey returns a key as a text: it is data, whatever its words mean elsewhere.
func (t *translator) takeKey() string {
	end := t.keyEnd()
	name := joined(t.tokens[t.i:end])
	t.i = end
	t.enter(name)
	return strconv.Quote(name)
}

// joins reports whether the word at i is an operator, so that it ends a name.
func (t *translator) joins(i int) bool {
	text := t.tokens[i].text
	if text == "contains" && t.lang == feel && i > 0 && t.tokens[i-1].isWord("list") {
		return false // list contains(…)
	}
	// "date and time", "get or else" and "years and months duration" are names.
	if (text == "and" || text == "or") && t.lang == feel && i > 0 && i+1 < len(t.tokens) {
		name := t.tokens[i-1].text + " " + text + " " + t.tokens[i+1].text
		if name == "date and time" || name == "get or else" || name == "years and months" {
			return false
		}
	}
	if text == "else" && t.lang == feel && i > 1 && t.tokens[i-1].isWord("or") && t.tokens[i-2].isWord("get") {
		return false
	}
	return wordOperators[text] || t.lang == juel && juelOperators[text] != ""
}

// condition translates if a then b else c.
func (t *translator) condition(depth int) (string, error) {
	t.i++
	var parts [3]string
	for i, end := range []string{"then", "else", ""} {
		text, err := t.group(depth+1, i == 2)
		if err != nil {
			return "", err
		}
		if text == "" || end != "" && (t.i >= len(t.tokens) || !t.tokens[t.i].isWord(end)) {
			return "", t.refuse("an if is not complete").WithHint("write if a > 1 then \"x\" else \"y\"")
		}
		if end != "" {
			t.i++
		}
		parts[i] = text
	}
	return "((" + parts[0] + ") ? (" + parts[1] + ") : (" + parts[2] + "))", nil
}

func (t *translator) juelOperator() string {
	op := juelOperators[t.tokens[t.i].text]
	t.i++
	if op != "is_empty" {
		return op
	}
	var path strings.Builder
	for t.i < len(t.tokens) && (t.tokens[t.i].kind == wordToken && !wordOperators[t.tokens[t.i].text] || t.tokens[t.i].is(".")) {
		path.WriteString(t.tokens[t.i].text)
		t.i++
	}
	return "is_empty(" + path.String() + ")"
}

// member reports whether the token is the name of a member: it follows a dot.
func (t *translator) member() bool {
	return t.i > 0 && (t.tokens[t.i-1].is(".") || t.tokens[t.i-1].is("?."))
}

// call reports whether the token at i opens the arguments of a call.
func (t *translator) call(i int) bool { return i < len(t.tokens) && t.tokens[i].is("(") }

// afterValue reports whether a value ends before the token.
func (t *translator) afterValue() bool {
	if t.i == 0 {
		return false
	}
	prev := t.tokens[t.i-1]
	if prev.kind == wordToken {
		member := t.i > 1 && (t.tokens[t.i-2].is(".") || t.tokens[t.i-2].is("?."))
		return member || !wordOperators[prev.text]
	}
	return prev.kind != operatorToken || prev.closes()
}
