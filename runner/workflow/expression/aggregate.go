package expression

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"

	"github.com/tapedeck/tapedeck/internal/decimal"
	"github.com/tapedeck/tapedeck/internal/decimal/calc"
)

// rounding returns a function of one number. Whole numbers stay as they are.
func rounding(f func(decimal.Decimal) decimal.Decimal) func(a []any) (any, error) {
	return func(a []any) (any, error) {
		if len(a) != 1 {
			return wrong("it takes one number, not %d", len(a))
		}
		d, ok, err := operand(a[0])
		if err != nil {
			return nil, err
		}
		if !ok {
			return wrong("it takes a number, not %s", describe(a[0]))
		}
		return number(f(d)), nil
	}
}

// intOf is the function int: a number without the digits behind its point, also of a text
// with a whole number.
func intOf(a []any) (any, error) {
	if len(a) == 1 && isString(a[0]) {
		d, err := decimal.Parse(a[0].(string))
		if err != nil || !d.Whole() || strings.ContainsAny(a[0].(string), ".eE") {
			return wrong("%s is no whole number to compute with", describe(a[0]))
		}
		return number(d), nil
	}
	return rounding(calc.Trunc)(a)
}

// floatOf is the function float, and number of FEEL: the number of a text. A number stays
// what it is.
func floatOf(a []any) (any, error) {
	if len(a) == 1 && isString(a[0]) {
		d, err := decimal.Parse(a[0].(string))
		if err != nil {
			return wrong("%s is no number to compute with", describe(a[0]))
		}
		return number(d), nil
	}
	return rounding(func(d decimal.Decimal) decimal.Decimal { return d })(a)
}

// numbers returns the numbers of values and of the lists in them.
func (b *budget) numbers(values []any, out []any) ([]any, error) {
	if err := b.spend(4 * len(values)); err != nil {
		return nil, err
	}
	for _, v := range values {
		if l, ok := list(v); ok {
			var err error
			if out, err = b.numbers(l, out); err != nil {
				return nil, err
			}
			continue
		}
		if _, ok, err := operand(v); err != nil {
			return nil, err
		} else if !ok {
			_, err := wrong("it takes numbers, or lists of them, not %s", describe(v))
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// extreme returns min and max: the first number in the order that wanted names.
func extreme(op string, wanted int) function {
	return func(b *budget, a []any) (any, error) {
		if len(a) == 1 && a[0] == nil {
			return nil, nil //nolint:nilnil // null has no smallest number, as an empty list
		}
		l, err := b.numbers(a, nil)
		if err != nil || len(l) == 0 {
			return nil, err
		}
		best := l[0]
		for _, v := range l[1:] {
			order, err := b.compare(op, v, best)
			if err != nil {
				return nil, err
			}
			if order == wanted {
				best = v
			}
		}
		return best, nil
	}
}

func sum(b *budget, a []any) (any, error) {
	if len(a) != 1 {
		return wrong("sum takes a list")
	}
	l, ok := list(a[0])
	if !ok {
		return wrong("sum takes a list, not %s", describe(a[0]))
	}
	if err := b.spend(callTicks * len(l)); err != nil {
		return nil, err
	}
	var total any = 0
	for _, v := range l {
		var err error
		if total, err = b.add(v, total); err != nil {
			return nil, err
		}
	}
	return total, nil
}

func mean(b *budget, a []any) (any, error) {
	l, err := b.numbers(a, nil)
	if err != nil || len(l) == 0 {
		return 0, err
	}
	total, err := sum(b, []any{l})
	if err != nil {
		return nil, err
	}
	return divide(total, len(l))
}

func median(b *budget, a []any) (any, error) {
	l, err := b.numbers(a, nil)
	if err != nil || len(l) == 0 {
		return 0, err
	}
	if err := b.sortBy(l, l, false); err != nil {
		return nil, err
	}
	n := len(l) / 2
	if len(l)%2 == 1 {
		return l[n], nil
	}
	total, err := b.add(l[n-1], l[n])
	if err != nil {
		return nil, err
	}
	return divide(total, 2)
}

// sortBy sorts values by their keys, which may be the values themselves. Those with the
// same key stay in their order.
func (b *budget) sortBy(values, keys []any, down bool) (err error) {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		if err != nil {
			return 0
		}
		var n int
		n, err = b.compare("sort", keys[i], keys[j])
		if down {
			return -n
		}
		return n
	})
	sorted := make([]any, len(values))
	for i, j := range order {
		sorted[i] = values[j]
	}
	copy(values, sorted)
	return err
}

// direction reads the order of sort and sortBy.
func direction(a []any) (down bool, err error) {
	if len(a) == 0 {
		return false, nil
	}
	if a[0] != "asc" && a[0] != "desc" {
		_, err = wrong(`the order is "asc" or "desc", not %s`, describe(a[0]))
	}
	return a[0] == "desc", err
}

func sortList(b *budget, a []any) (any, error) {
	if len(a) == 0 || len(a) > 2 {
		return wrong("it takes a list and perhaps an order")
	}
	l, ok := list(a[0])
	if !ok {
		return wrong("it takes a list, not %s", describe(a[0]))
	}
	down, err := direction(a[1:])
	if err != nil {
		return nil, err
	}
	l = slices.Clone(l)
	return l, b.sortBy(l, l, down)
}

// sortPairs is sortBy: it gets pairs of a value and its key.
func sortPairs(b *budget, a []any) (any, error) {
	pairs, ok := list(a[0])
	if !ok {
		return wrong("sortBy takes a list, not %s", describe(a[0]))
	}
	down, err := direction(a[1:])
	if err != nil {
		return nil, err
	}
	values, keys := make([]any, len(pairs)), make([]any, len(pairs))
	for i, p := range pairs {
		pair, _ := p.([]any) // pairsOf has made them
		values[i], keys[i] = pair[0], pair[1]
	}
	return values, b.sortBy(values, keys, down)
}

// pairsOf returns the map that makes the pairs of sortPairs from the arguments of sortBy.
func pairsOf(arguments []ast.Node) ast.Node {
	predicate, ok := arguments[1].(*ast.PredicateNode)
	if !ok {
		return arguments[0]
	}
	pair := &ast.ArrayNode{Nodes: []ast.Node{&ast.PointerNode{}, predicate.Node}}
	return &ast.BuiltinNode{Name: "map", Arguments: []ast.Node{arguments[0], &ast.PredicateNode{Node: pair}}}
}

// key refuses what cannot be the key of groupBy. A farNumber is compared there.
func key(v any) (any, error) {
	if f, ok := v.(farNumber); ok {
		return nil, far(f)
	}
	return v, nil
}

func typeOf(a []any) (any, error) {
	return one(a, func(v any) any {
		switch v.(type) {
		case decimalNumber, farNumber:
			return "float"
		}
		return builtin.Type(v)
	})
}

func toJSON(a []any) (any, error) {
	if len(a) != 1 {
		return wrong("it takes one value, not %d", len(a))
	}
	v, err := export(a[0])
	if err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(v, "", "  ")
	return string(b), err
}

func fromJSON(a []any) (any, error) {
	if len(a) != 1 || !isString(a[0]) {
		return wrong("it takes a text")
	}
	v, err := Decode([]byte(a[0].(string)))
	if err != nil {
		return wrong("%s is not JSON", quote(a[0].(string)))
	}
	return normalize(v), nil
}

// keyText returns the key of an object as JSON has it.
func keyText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case decimalNumber:
		return v.d.String()
	}
	return fmt.Sprint(v)
}
