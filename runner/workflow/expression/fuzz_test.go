package expression_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

// FuzzCompile checks that no text makes the compiler or an evaluation panic, that every
// error has a kind for users, and that a result is a value of JSON with a bounded size.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{`price > 10 and name = "x"`, `= if a then b else c`, `${empty x}`, `map(tags, # + "x")`, `let a = tags; [a, a]`, `{"a": [1, 2.5]}`, `My Order.total`, `{{ name }} x`, "a = 1\nb = a", `x?.y ?? 1`, `= string join(tags, ",")`, `reduce(1..9, #acc + #)`, `groupBy(order.lines, .n)`, `toPairs(order)`,
		`id == other or 0.1 + 0.2 = 0.3`, `id * id ** 2 % 7 - 1e300 / 3`, `9223372036854775807 + 1 - -9223372036854775808`, `far + 1`, `-least`, `digits ** 1e9`, `sortBy(orders, .id, "desc")`, `median(ids) + mean(0.1, ids)`, `round(price * 100) / 100`, `groupBy(ids, # % 0.1)`, `id in 1..9`, `toJSON(fromJSON("[1e400, 0.10]"))`, `{{ tenth }} {{ far }}`, `12345678901234567890123456789012345`, `list[0.5]`, `min(above, int("9007199254740993"), float("1e-9"))`, `id not in [far]`} {
		f.Add(s)
	}
	variables0 := exact(f, variables)
	maps.Copy(variables0, exact(f, numbers))
	f.Fuzz(func(t *testing.T, source string) {
		check := func(v any, err error) {
			if err != nil {
				if tapedeck.KindOf(err) == tapedeck.Internal {
					t.Errorf("%q: the error has no kind: %v", source, err)
				}
				return
			}
			if b, err := json.Marshal(v); err != nil || len(b) > 8*expression.MaxSize || hasFloat(v) {
				t.Errorf("%q: %d bytes of JSON, %v", source, len(b), err)
			}
		}
		if p, err := expression.Compile(source); err != nil {
			check(nil, err)
		} else {
			check(p.Eval(t.Context(), variables0))
		}
		for _, parse := range []func(string) (*expression.Value, error){expression.ParseValue, expression.ParseJUEL} {
			if v, err := parse(source); err != nil {
				check(nil, err)
			} else {
				check(v.Eval(t.Context(), variables0))
			}
		}
		if s, err := expression.CompileScript(source); err != nil {
			check(nil, err)
		} else {
			_, v, err := s.Run(t.Context(), variables0)
			check(v, err)
		}
	})
}
