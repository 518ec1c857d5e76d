package expression

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/decimal"
	"github.com/tapedeck/tapedeck/internal/decimal/calc"
)

// The numbers of an evaluation are int, decimalNumber and farNumber. A whole number that fits
// in an int is always an int, because indexes and ranges need one; so two values are the
// same number exactly if they are equal with ==. There is no float64: it would change whole
// numbers above 2^53, and an identifier would become that of something else.

// A decimalNumber has no exported field or method, because expr-lang would let expressions
// use them.
type decimalNumber struct{ d decimal.Decimal }

// A farNumber is beyond the bounds of decimals. It can be passed on, with the digits that it
// came with, but not computed with: then it would have to change.
type farNumber struct{ text string }

// Decode decodes a value of JSON. Its numbers are json.Number, with the digits that they
// have there.
func Decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "there is more than one value")
	}
	return v, nil
}

// ParseNumber returns the number that a text is, as [Program.Eval] returns numbers.
func ParseNumber(text string) (any, error) {
	d, err := decimal.Parse(text)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "%.40q is no number: %s", text, err)
	}
	return exported(number(d))
}

// number returns d as evaluations have it.
func number(d decimal.Decimal) any {
	if n, ok := d.Int(); ok {
		return n
	}
	return decimalNumber{d}
}

// numberOf returns the number of a json.Number.
func numberOf(text string) any {
	if len(text) < 19 {
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
	}
	d, err := decimal.Parse(text)
	if err != nil {
		return farNumber{text}
	}
	return number(d)
}

// floatNumber returns the number of a float64, which a caller in Go may give as a variable.
// JSON is decoded without them.
func floatNumber(f float64) any {
	d, err := decimal.FromFloat(f)
	if err != nil {
		return farNumber{strconv.FormatFloat(f, 'g', -1, 64)}
	}
	return number(d)
}

func isNumber(v any) bool {
	switch v.(type) {
	case int, decimalNumber, farNumber:
		return true
	}
	return false
}

// operand returns a number to compute with. The error is nil also if v is no number at all;
// then ok is false.
func operand(v any) (d decimal.Decimal, ok bool, err error) {
	switch v := v.(type) {
	case int:
		return decimal.FromInt(v), true, nil
	case decimalNumber:
		return v.d, true, nil
	case farNumber:
		return d, false, far(v)
	}
	return d, false, nil
}

func far(v farNumber) error {
	return tapedeck.Errorf(tapedeck.Invalid, "the number %s is too long, too large or too small: %s", shorten(v.text, 50), decimal.Bounds).
		WithHint("pass it on as it is, or make it a text before it comes here")
}

// operands returns two numbers to compute with.
func operands(op string, x, y any) (a, b decimal.Decimal, err error) {
	a, ok1, err1 := operand(x)
	b, ok2, err2 := operand(y)
	if err := errors.Join(err1, err2); err != nil {
		if err1 != nil {
			return a, b, err1
		}
		return a, b, err2
	}
	if !ok1 || !ok2 {
		return a, b, tapedeck.Errorf(tapedeck.Invalid, "%s needs two numbers, not %s and %s", op, describe(x), describe(y))
	}
	return a, b, nil
}

type operation func(a, b decimal.Decimal) (decimal.Decimal, error)

func calculate(op string, x, y any, f operation) (any, error) {
	a, b, err := operands(op, x, y)
	if err != nil {
		return nil, err
	}
	r, err := f(a, b)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "%s", err)
	}
	return number(r), nil
}

// add is the operator +: it adds numbers, and joins texts. It has a bound, because a few
// lines with + can double a text until the memory is full.
func (b *budget) add(x, y any) (any, error) {
	switch x := x.(type) {
	case int:
		if y, ok := y.(int); ok {
			if sum := x + y; (sum > x) == (y > 0) {
				return sum, nil
			}
		}
	case string:
		if y, ok := y.(string); ok {
			if len(x)+len(y) > MaxSize {
				return nil, errSize
			}
			return x + y, b.spend((len(x) + len(y)) / bytesOfTick)
		}
	}
	if isNumber(x) && isNumber(y) {
		return calculate("+", x, y, calc.Add)
	}
	e := tapedeck.Errorf(tapedeck.Invalid, "+ cannot add %s and %s", describe(x), describe(y))
	if isString(x) || isString(y) {
		e = e.WithHint("string(x) makes a text of any value")
	}
	return nil, e
}

func subtract(x, y any) (any, error) {
	if a, ok := x.(int); ok {
		if b, ok := y.(int); ok {
			if d := a - b; (d < a) == (b > 0) {
				return d, nil
			}
		}
	}
	return calculate("-", x, y, calc.Sub)
}

func multiply(x, y any) (any, error) {
	if a, ok := x.(int); ok {
		if b, ok := y.(int); ok {
			if p, ok := product(a, b); ok {
				return p, nil
			}
		}
	}
	return calculate("*", x, y, calc.Mul)
}

// product returns a * b, false if it does not fit.
func product(a, b int) (int, bool) {
	p := a * b
	return p, b == 0 || p/b == a && (b != -1 || a != math.MinInt)
}

func divide(x, y any) (any, error) {
	if a, ok := x.(int); ok {
		if b, ok := y.(int); ok && b > 0 && a%b == 0 {
			return a / b, nil
		}
	}
	return calculate("/", x, y, calc.Div)
}

// remainder is the operator %. The result has the sign of x.
func remainder(x, y any) (any, error) {
	if a, ok := x.(int); ok {
		if b, ok := y.(int); ok && b != 0 {
			return a % b, nil
		}
	}
	return calculate("%", x, y, calc.Rem)
}

// power is the operator **. A power with a fraction takes up to 8 ms, and one of a large
// number half of one.
func (b *budget) power(x, y any) (any, error) {
	cost := 300_000
	if n, ok := y.(int); ok && n >= -64 && n <= 64 {
		cost = 500
	} else if ok {
		cost = 30_000
	}
	if err := b.spend(cost); err != nil {
		return nil, err
	}
	return calculate("**", x, y, calc.Pow)
}

func negate(x any) (any, error) {
	d, ok, err := operand(x)
	if err != nil {
		return nil, err
	}
	if !ok {
		return wrong("- needs a number, not %s", describe(x))
	}
	return number(d.Neg()), nil
}

func plus(x any) (any, error) {
	if !isNumber(x) {
		return wrong("+ needs a number, not %s", describe(x))
	}
	return x, nil
}

// maxRange is the length of the longest list that the operator .. makes.
const maxRange = 1_000_000

func numbersFrom(x, y any) (any, error) {
	first, ok1 := x.(int)
	last, ok2 := y.(int)
	if !ok1 || !ok2 {
		return wrong(".. needs two whole numbers, not %s and %s", describe(x), describe(y))
	}
	if last < first {
		return []int{}, nil
	}
	if uint(last)-uint(first) >= maxRange { //nolint:gosec // the difference wraps around to the right one
		return wrong("the list %d..%d would have more than %d numbers", first, last, maxRange)
	}
	out := make([]int, last-first+1)
	for i := range out {
		out[i] = first + i
	}
	return out, nil
}

// equal is the operator ==. Numbers are equal if they are the same number; lists, if their
// elements are.
func (b *budget) equal(x, y any) (bool, error) {
	if err := b.spend(1); err != nil {
		return false, err
	}
	switch a := x.(type) {
	case int:
		if b, ok := y.(int); ok {
			return a == b, nil
		}
	case string:
		t, ok := y.(string)
		if !ok || len(a) != len(t) {
			return false, nil
		}
		return a == t, b.spend(len(a) / bytesOfTick)
	case bool:
		b, ok := y.(bool)
		return ok && a == b, nil
	case nil:
		return reflectNil(y), nil
	}
	if y == nil {
		return reflectNil(x), nil
	}
	if isNumber(x) && isNumber(y) {
		for _, v := range []any{x, y} {
			if v, ok := v.(farNumber); ok {
				return false, far(v)
			}
		}
		return x == y, nil
	}
	return b.equalParts(x, y)
}

// equalParts compares lists and objects.
func (b *budget) equalParts(x, y any) (bool, error) {
	if err := b.spend(converting(x) + converting(y)); err != nil {
		return false, err
	}
	if a, ok := x.([]int); ok {
		if b, ok := y.([]int); ok {
			return slices.Equal(a, b) || len(a) == 0 && len(b) == 0, nil
		}
	}
	if a, ok := list(x); ok {
		l, ok := list(y)
		if !ok || len(a) != len(l) {
			return false, nil
		}
		for i := range a {
			if same, err := b.equal(a[i], l[i]); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	m, ok1 := object(x)
	o, ok2 := object(y)
	if !ok1 || !ok2 || len(m) != len(o) {
		return false, nil
	}
	for k, v := range m {
		w, has := o[k]
		if !has {
			return false, nil
		}
		if same, err := b.equal(v, w); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// object returns an object by its keys. Those that groupBy and fromPairs make may have keys
// that are no texts.
func object(v any) (map[any]any, bool) {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Map {
		return nil, false
	}
	out := make(map[any]any, r.Len())
	for k, e := range r.Seq2() {
		out[k.Interface()] = e.Interface()
	}
	return out, true
}

func reflectNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return (r.Kind() == reflect.Slice || r.Kind() == reflect.Map) && r.IsNil()
}

// compare returns the order of two numbers or two texts.
func (b *budget) compare(op string, x, y any) (int, error) {
	if err := b.spend(2); err != nil {
		return 0, err
	}
	switch a := x.(type) {
	case int:
		if b, ok := y.(int); ok {
			return cmp.Compare(a, b), nil
		}
	case string:
		if t, ok := y.(string); ok {
			return cmp.Compare(a, t), b.spend(min(len(a), len(t)) / bytesOfTick)
		}
	}
	if !isNumber(x) || !isNumber(y) {
		return 0, tapedeck.Errorf(tapedeck.Invalid, "%s cannot compare %s and %s", op, describe(x), describe(y))
	}
	d, e, err := operands(op, x, y)
	return d.Cmp(e), err
}

// in is the operator in: whether a list has an element, or an object a key.
func (b *budget) in(x, y any) (bool, error) {
	if err := b.spend(converting(y) + textTicks(x)); err != nil {
		return false, err
	}
	if y == nil {
		return false, nil
	}
	switch l := y.(type) {
	case []int: // such as 1..100000
		if n, ok := x.(int); ok {
			for _, v := range l {
				if v == n {
					return true, nil
				}
			}
			return false, nil
		}
	case map[string]any:
		key, ok := x.(string)
		if !ok {
			return false, tapedeck.Errorf(tapedeck.Invalid, "the key of an object is a text, not %s", describe(x))
		}
		_, has := l[key]
		return has, nil
	}
	if l, ok := list(y); ok {
		for _, v := range l {
			if same, err := b.equal(v, x); same || err != nil {
				return same, err
			}
		}
		return false, nil
	}
	if m, ok := object(y); ok && (x == nil || reflect.TypeOf(x).Comparable()) {
		_, has := m[x]
		return has, nil
	}
	return false, tapedeck.Errorf(tapedeck.Invalid, "in needs a list or an object, not %s", describe(y))
}

// whole refuses numbers that are not whole, for functions of expr-lang that would say so
// with the names of Go's types, or not at all.
func whole(name string, v any) (any, error) {
	if _, ok := v.(int); !ok && isNumber(v) {
		return wrong("%s needs a whole number, not %s", name, describe(v))
	}
	return v, nil
}
