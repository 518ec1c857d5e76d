package expression

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/decimal"
	"github.com/tapedeck/tapedeck/internal/decimal/calc"
)

// disabled are functions of expr-lang that no expression has: those of the clock,
// because a decision has to be the same when it is made again, and those whose result
// can be much larger than their arguments, or that take much longer than them; ours have
// bounds.
var disabled = []string{"now", "date", "duration", "timezone", "repeat", "replace", "join", "concat", "string", "uniq",
	"abs", "ceil", "floor", "round", "int", "float", "min", "max", "mean", "median", "sort", "type", "toJSON", "fromJSON", // ours know decimals
	"indexOf", "lastIndexOf", "fromBase64", // ours know characters
	"bitand", "bitor", "bitxor", "bitnand", "bitnot", "bitshl", "bitshr", "bitushr", // ours lose no bits
}

// lenient functions accept a variable that does not exist.
var lenient = map[string]bool{"is_defined": true, "get_or_else": true, "is_empty": true}

// A function gets values of JSON, and what the evaluation may still use.
type function func(b *budget, args []any) (any, error)

// costing returns a function whose steps depend on its arguments only: some ticks for 16 bytes
// of each text, and for each element of a list.
func costing(text, element int, f func(args []any) (any, error)) function {
	return func(b *budget, args []any) (any, error) {
		n := 0
		for _, v := range args {
			n += text * textTicks(v)
			if l, ok := lengthOf(v); ok {
				n += element * l
			}
		}
		if err := b.spend(n); err != nil {
			return nil, err
		}
		return f(args)
	}
}

// walking returns a function that looks at every value in its arguments.
func walking(f func(args []any) (any, error)) function {
	return func(b *budget, args []any) (any, error) {
		if err := b.walk(args); err != nil {
			return nil, err
		}
		return f(args)
	}
}

// cheap returns a function whose steps do not depend on its arguments.
func cheap(f func(args []any) (any, error)) function { return costing(0, 0, f) }

// functions are ours.
var functions = map[string]function{
	"join":            walking(joinTexts),
	"replace":         costing(12, 0, replaceText),
	"concat":          costing(0, 1, concatLists),
	"string":          walking(func(a []any) (any, error) { return one(a, func(v any) any { return text(v) }) }),
	"is_defined":      cheap(func(a []any) (any, error) { return one(a, func(v any) any { return v != nil }) }),
	"is_empty":        costing(0, 1, func(a []any) (any, error) { return one(a, isEmpty) }),
	"get_or_else":     cheap(getOrElse),
	"substring":       costing(8, 0, substring),
	"indexOf":         costing(2, 0, func(a []any) (any, error) { return position("indexOf", a, strings.Index) }),
	"lastIndexOf":     costing(2, 0, func(a []any) (any, error) { return position("lastIndexOf", a, strings.LastIndex) }),
	"fromBase64":      costing(2, 0, fromBase64),
	"starts_with":     costing(1, 0, func(a []any) (any, error) { return texts(a, strings.HasPrefix) }),
	"ends_with":       costing(1, 0, func(a []any) (any, error) { return texts(a, strings.HasSuffix) }),
	"string_contains": costing(1, 0, func(a []any) (any, error) { return texts(a, strings.Contains) }),
	"list_contains":   listContains,
	"append":          costing(0, 1, appendTo),
	"uniq":            walking(unique),
	"matches_pattern": matchesPattern,
	"replace_pattern": replacePattern,
	"split_pattern":   splitPattern,
	"abs":             cheap(rounding(decimal.Decimal.Abs)),
	"ceil":            cheap(rounding(calc.Ceil)),
	"floor":           cheap(rounding(calc.Floor)),
	"round":           cheap(rounding(calc.Round)),
	"int":             costing(4, 0, intOf),
	"float":           costing(4, 0, floatOf),
	"min":             extreme("min", -1),
	"max":             extreme("max", 1),
	"mean":            mean,
	"sum_feel":        ofNumbers(sum),
	"mean_feel":       ofNumbers(mean),
	"median_feel":     ofNumbers(median),
	"count_feel":      costing(0, 1, countFeel),
	"join_feel":       walking(joinFeel),
	"string_feel":     walking(func(a []any) (any, error) { return one(a, stringFeel) }),
	"matches_feel":    matchesFeel,
	"median":          median,
	"sort":            sortList,
	"type":            cheap(typeOf),
	"bitand":          bitwise(func(x, y int) (any, error) { return x & y, nil }),
	"bitor":           bitwise(func(x, y int) (any, error) { return x | y, nil }),
	"bitxor":          bitwise(func(x, y int) (any, error) { return x ^ y, nil }),
	"bitnand":         bitwise(func(x, y int) (any, error) { return x &^ y, nil }),
	"bitnot":          cheap(bitNot),
	"bitshl":          shift(shiftLeft),
	"bitshr":          shift(func(x int, y uint) (any, error) { return x >> y, nil }),
	"bitushr":         shift(func(x int, y uint) (any, error) { return int(uint(x) >> y), nil }), //nolint:gosec // the bits stay as they are
	"toJSON":          walking(toJSON),
	"fromJSON":        costing(16, 0, fromJSON),
}

// ownFunctions are those that stand for operators, or for a function with a predicate. Users
// cannot call them.
var ownFunctions = map[string]function{
	operators["+"]:  bounded((*budget).add),
	operators["-"]:  two(subtract),
	operators["*"]:  two(multiply),
	operators["/"]:  two(divide),
	operators["%"]:  two(remainder),
	operators["**"]: bounded((*budget).power),
	operators[".."]: two(numbersFrom),
	operators["<"]:  bounded(ordered("<", func(n int) bool { return n < 0 })),
	operators["<="]: bounded(ordered("<=", func(n int) bool { return n <= 0 })),
	operators[">"]:  bounded(ordered(">", func(n int) bool { return n > 0 })),
	operators[">="]: bounded(ordered(">=", func(n int) bool { return n >= 0 })),
	operators["in"]: bounded((*budget).in),
	equalName:       bounded((*budget).equal),
	"__negate":      func(_ *budget, a []any) (any, error) { return negate(a[0]) },
	"__plus":        func(_ *budget, a []any) (any, error) { return plus(a[0]) },
	sumName:         sum,
	pairsName:       sortPairs,
	keyName:         costing(1, 0, func(a []any) (any, error) { return key(a[0]) }),
	charactersName:  costing(10, 0, func(a []any) (any, error) { return characters(a[0]), nil }),
	sliceName:       costing(4, 0, func(a []any) (any, error) { return slice(a[0], a[1], a[2]) }),
	listName:        cheap(func(a []any) (any, error) { return needList(a[0].(string), a[1]) }),
	textName:        costing(12, 0, func(a []any) (any, error) { return needText(a[0].(string), a[1]) }),
	wholeName:       cheap(func(a []any) (any, error) { return whole(a[0].(string), a[1]) }),
	lookedAt:        costing(1, 1, func(a []any) (any, error) { return a[0], nil }),
	lengthName:      costing(1, 0, func(a []any) (any, error) { return a[0], nil }),
	guardName:       func(b *budget, a []any) (any, error) { return b.guard(a[0], a[1].(int)) },
	keepName:        func(b *budget, a []any) (any, error) { return b.keep(a[0], a[1].(int)) },
	trimName:        trimText,
}

func two(f func(x, y any) (any, error)) function {
	return bounded(func(_ *budget, x, y any) (any, error) { return f(x, y) })
}

func bounded[T any](f func(b *budget, x, y any) (T, error)) function {
	return func(b *budget, a []any) (any, error) {
		out, err := f(b, a[0], a[1])
		if _, ok := any(out).(decimalNumber); ok && err == nil {
			err = b.spend(decimalTicks)
		}
		return out, err
	}
}

func ordered(op string, is func(n int) bool) func(b *budget, x, y any) (bool, error) {
	return func(b *budget, x, y any) (bool, error) {
		n, err := b.compare(op, x, y)
		return err == nil && is(n), err
	}
}

// call calls a function with arguments of which the last one is the budget; see own.
func (f function) call(args []any) (any, error) {
	last := len(args) - 1
	b := args[last].(*budget) // guards has put it there
	if err := b.spend(callTicks); err != nil {
		return nil, err
	}
	return f(b, args[:last])
}

// configured has our functions, and is without those that are disabled. It is made once,
// because most of the time of a short expression's compilation would go into it.
var configured = func() *conf.Config {
	c := &conf.Config{Functions: conf.FunctionsTable{}, Disabled: map[string]bool{}}
	for _, name := range disabled {
		expr.DisableBuiltin(name)(c)
	}
	for name, f := range functions {
		expr.Function(name, func(args ...any) (any, error) {
			v, err := f.call(args)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return v, nil
		})(c)
	}
	for name, f := range ownFunctions {
		expr.Function(name, func(args ...any) (any, error) { return f.call(args) })(c)
	}
	return c
}()

// withFunctions is the option of expr-lang with our functions. Only other options would write
// to these maps, so all compilations share them.
func withFunctions(c *conf.Config) {
	c.Functions, c.Disabled = configured.Functions, configured.Disabled
}

// builtins are the names of all functions of expr-lang.
var builtins = func() map[string]bool {
	names := map[string]bool{}
	for _, f := range builtin.Builtins {
		names[f.Name] = true
	}
	for name := range functions {
		names[name] = true
	}
	return names
}()

// functionHint says where the functions are listed: there are too many for an error.
const functionHint = "the functions are those of https://expr-lang.org/docs/language-definition and those in docs/workflows.md, section Expressions"

// instead says what to write for a function of FEEL that no expression has.
var instead = map[string]string{
	"modulo":           "write a % b; the result has the sign of a",
	"decimal":          "write round(x * 100) / 100 for two decimal places",
	"union":            "write uniq(concat(a, b))",
	"extract":          "use replace or split",
	"product":          "write reduce(list, #acc * #)",
	"index of":         "write findIndex(list, # == value), which counts from 0",
	"substring before": "write split(text, mark), then first(list)",
	"substring after":  "write split(text, mark), then last(list)",
	"put":              "write the object with all its members",
	"now":              "pass the time as text in a variable, or use a timer event",
}

func unknownFunction(name string) *tapedeck.Error {
	hint := instead[name]
	if hint == "" {
		hint = functionHint
	}
	return tapedeck.Errorf(tapedeck.Invalid, "there is no function %s", name).WithHint("%s", hint)
}

func wrong(format string, args ...any) (any, error) {
	return nil, tapedeck.Errorf(tapedeck.Invalid, format, args...)
}

func one(a []any, f func(any) any) (any, error) {
	if len(a) != 1 {
		return wrong("it takes one value, not %d", len(a))
	}
	return f(a[0]), nil
}

func texts(a []any, f func(a, b string) bool) (any, error) {
	if len(a) != 2 || !isString(a[0]) || !isString(a[1]) {
		return wrong("it takes two texts")
	}
	return f(a[0].(string), a[1].(string)), nil
}

func isEmpty(v any) any {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	}
	l, ok := list(v)
	return ok && len(l) == 0
}

func getOrElse(a []any) (any, error) {
	if len(a) != 2 {
		return wrong("it takes a value and what to use instead of null")
	}
	if a[0] != nil {
		return a[0], nil
	}
	return a[1], nil
}

func listContains(b *budget, a []any) (any, error) {
	if len(a) == 2 {
		if l, ok := list(a[0]); ok {
			return b.in(a[1], l)
		}
	}
	return wrong("it takes a list and a value")
}

func appendTo(a []any) (any, error) {
	if len(a) > 0 {
		if l, ok := list(a[0]); ok {
			return append(slices.Clone(l), a[1:]...), nil
		}
	}
	return wrong("it takes a list and values")
}

// unique returns the elements of a list without those that are equal to one before.
func unique(a []any) (any, error) {
	if len(a) != 1 {
		return wrong("it takes a list")
	}
	l, ok := list(a[0])
	if !ok {
		return wrong("it takes a list, not %s", describe(a[0]))
	}
	out, seen := []any{}, map[string]bool{}
	for _, v := range l {
		if _, err := key(v); err != nil {
			return nil, err
		}
		e, err := exported(v) // the same number is the same text there
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		if !seen[string(text)] {
			seen[string(text)] = true
			out = append(out, v)
		}
	}
	return out, nil
}

func concatLists(a []any) (any, error) {
	var out []any
	for _, v := range a {
		l, ok := list(v)
		if !ok {
			return wrong("it takes lists, not %s", describe(v))
		}
		if len(out)+len(l) > MaxSize/8 {
			return nil, errSize
		}
		out = append(out, l...)
	}
	return out, nil
}

func joinTexts(a []any) (any, error) {
	if len(a) == 0 || len(a) > 2 {
		return wrong("it takes a list and perhaps a text between its elements")
	}
	l, ok := list(a[0])
	separator := ""
	if len(a) == 2 && ok {
		separator, ok = a[1].(string)
	}
	if !ok {
		return wrong("it takes a list and perhaps a text between its elements")
	}
	var b strings.Builder
	for i, v := range l {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(text(v))
		if b.Len() > MaxSize {
			return nil, errSize
		}
	}
	return b.String(), nil
}

func replaceText(a []any) (any, error) {
	if len(a) != 3 || !isString(a[0]) || !isString(a[1]) || !isString(a[2]) {
		return wrong("it takes three texts: in which, what, by what")
	}
	s, old, by := a[0].(string), a[1].(string), a[2].(string)
	n := strings.Count(s, old)
	if n > 0 && len(by) > (2*MaxSize)/n {
		return nil, errSize
	}
	return strings.ReplaceAll(s, old, by), nil
}
