package expression

import (
	"encoding/json"
	"math"
	"time"

	"github.com/expr-lang/expr/ast"

	"github.com/tapedeck/tapedeck"
)

// These names are in the environment of every evaluation. A name of the user cannot be
// one of them: the collector refuses them.
const (
	guardName = "__guard"
	addName   = "__add"
	textName  = "__text"
)

// These bound an evaluation. maxWork is for elements of predicates that are evaluated,
// plus the nodes of the values that are measured. The time is for operators whose cost
// is not counted, such as == with long lists, inside of a predicate.
const (
	maxWork = 1_000_000
	maxTime = 2 * time.Second
)

// guards puts a guard around everything that makes a new value or repeats, and replaces
// the operator + with our own, because a few lines with + can double a text until the
// memory is full.
type guards struct{}

// Visit implements ast.Visitor.
func (guards) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		switch n.Operator {
		case "+":
			ast.Patch(node, call(addName, n.Left, n.Right))
		case "..":
			ast.Patch(node, call(guardName, n))
		case "matches":
			ast.Patch(node, call("matches_pattern", n.Left, n.Right))
		}
	case *ast.PredicateNode:
		n.Node = call(guardName, n.Node)
	case *ast.VariableDeclaratorNode:
		n.Value = call(guardName, n.Value)
	case *ast.BuiltinNode:
		for i := range min(textArguments[n.Name], len(n.Arguments)) {
			n.Arguments[i] = call(textName, &ast.StringNode{Value: n.Name}, n.Arguments[i])
		}
		ast.Patch(node, call(guardName, *node))
	case *ast.ArrayNode, *ast.MapNode, *ast.SliceNode:
		ast.Patch(node, call(guardName, *node))
	case *ast.CallNode:
		if id, ok := n.Callee.(*ast.IdentifierNode); ok && !ownNames[id.Value] {
			ast.Patch(node, call(guardName, n))
		}
	}
}

var ownNames = map[string]bool{guardName: true, addName: true, textName: true}

// textArguments says how many of the first arguments of a function of expr-lang are texts.
// Given another value, the function fails with the names of Go's types.
var textArguments = map[string]int{
	"upper": 1, "lower": 1, "trim": 2, "trimPrefix": 2, "trimSuffix": 2, "split": 2, "splitAfter": 2, "indexOf": 2,
	"lastIndexOf": 2, "hasPrefix": 2, "hasSuffix": 2, "fromJSON": 1, "toBase64": 1, "fromBase64": 1,
}

// needText returns v if it is a text, else an error with the name of the function.
func needText(name string, v any) (any, error) {
	if !isString(v) {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "%s needs a text, not %s", name, describe(v))
	}
	return v, nil
}

func call(name string, args ...ast.Node) ast.Node {
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: args}
}

// A budget is what one evaluation may use.
type budget struct {
	work  int
	start time.Time
}

var (
	errWork = tapedeck.Errorf(tapedeck.Invalid, "it takes too many steps")
	errSize = tapedeck.Errorf(tapedeck.Invalid, "it makes a value of more than 1 MiB")
)

// guard returns v, or an error if v is too large or the budget is used up.
func (b *budget) guard(v any) (any, error) {
	b.work++
	size := MaxSize
	if !b.measure(v, &size, 0) {
		return nil, errSize
	}
	if b.work > maxWork || time.Since(b.start) > maxTime {
		return nil, errWork
	}
	return v, nil
}

// measure subtracts the size of v and reports whether something is left. It stops as
// soon as nothing is left, so values that contain themselves many times cost no more.
func (b *budget) measure(v any, left *int, depth int) bool {
	*left -= 8
	b.work++
	if *left < 0 || depth > 200 {
		return false
	}
	switch v := v.(type) {
	case string:
		*left -= len(v)
	case []any:
		for _, e := range v {
			if !b.measure(e, left, depth+1) {
				return false
			}
		}
	case map[string]any:
		for k, e := range v {
			*left -= len(k)
			if !b.measure(e, left, depth+1) {
				return false
			}
		}
	case []int:
		*left -= 8 * len(v)
		b.work += len(v)
	case []string:
		for _, e := range v {
			*left -= len(e) + 8
		}
	}
	return *left >= 0
}

// add is the operator +: it adds numbers, and joins texts or lists.
func (b *budget) add(x, y any) (any, error) {
	switch x := x.(type) {
	case string:
		if y, ok := y.(string); ok {
			if len(x)+len(y) > MaxSize {
				return nil, errSize
			}
			return x + y, nil
		}
	case int:
		switch y := y.(type) {
		case int:
			if sum := x + y; (sum > x) == (y > 0) {
				return sum, nil
			}
			return float64(x) + float64(y), nil
		case float64:
			return float64(x) + y, nil
		}
	case float64:
		switch y := y.(type) {
		case int:
			return x + float64(y), nil
		case float64:
			return x + y, nil
		}
	}
	e := tapedeck.Errorf(tapedeck.Invalid, "+ cannot add %s and %s", describe(x), describe(y))
	if isString(x) || isString(y) {
		e = e.WithHint("string(x) makes a text of any value")
	}
	return nil, e
}

func isString(v any) bool { _, ok := v.(string); return ok }

// normalize returns a value of JSON with int for every whole number, because indexes,
// ranges and % need int, and JSON does not tell 3 from 3.0.
func normalize(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int(v)
		}
	case float32:
		return normalize(float64(v))
	case int64:
		return int(v)
	case int32:
		return int(v)
	case json.Number:
		if f, err := v.Float64(); err == nil {
			return normalize(f)
		}
		return v.String()
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normalize(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = normalize(v[k])
		}
		return out
	case []string:
		out := make([]any, len(v))
		for i := range v {
			out[i] = v[i]
		}
		return out
	}
	return v
}

// export returns a result as JSON has it. What has no form in JSON is an error.
func export(v any) (any, error) {
	size := MaxSize
	if !(&budget{}).measure(v, &size, 0) {
		return nil, errSize
	}
	return exported(v)
}

func exported(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string, int:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the result is no number: it divides by zero, or is too large")
		}
		return normalize(v), nil
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = exported(v[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			var err error
			if out[k], err = exported(v[k]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return reflected(v)
}

// describe names the type of a value.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool, int, float64:
		return text(v)
	case string:
		return "the text " + quote(v)
	case []any, []int, []string:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a value of another type"
}
