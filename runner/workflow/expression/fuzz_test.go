package expression_test

import (
	"encoding/json"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

// FuzzCompile checks that no text makes the compiler or an evaluation panic, that every
// error has a kind for users, and that a result is a value of JSON with a bounded size.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{`price > 10 and name = "x"`, `= if a then b else c`, `${empty x}`, `map(tags, # + "x")`, `let a = tags; [a, a]`, `{"a": [1, 2.5]}`, `My Order.total`, `{{ name }} x`, "a = 1\nb = a", `x?.y ?? 1`, `= string join(tags, ",")`, `reduce(1..9, #acc + #)`, `groupBy(order.lines, .n)`, `toPairs(order)`} {
		f.Add(s)
	}
	var variables0 map[string]any
	if err := json.Unmarshal([]byte(variables), &variables0); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source string) {
		check := func(v any, err error) {
			if err != nil {
				if tapedeck.KindOf(err) == tapedeck.Internal {
					t.Errorf("%q: the error has no kind: %v", source, err)
				}
				return
			}
			if b, err := json.Marshal(v); err != nil || len(b) > 8*expression.MaxSize {
				t.Errorf("%q: %d bytes of JSON, %v", source, len(b), err)
			}
		}
		if p, err := expression.Compile(source); err != nil {
			check(nil, err)
		} else {
			check(p.Eval(variables0))
		}
		for _, parse := range []func(string) (*expression.Value, error){expression.ParseValue, expression.ParseJUEL} {
			if v, err := parse(source); err != nil {
				check(nil, err)
			} else {
				check(v.Eval(variables0))
			}
		}
		if s, err := expression.CompileScript(source); err != nil {
			check(nil, err)
		} else {
			_, v, err := s.Run(variables0)
			check(v, err)
		}
	})
}
