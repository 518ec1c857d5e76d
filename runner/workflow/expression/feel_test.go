package expression_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

// TestFEEL: an expression means what FEEL says, or is refused by name: when it is compiled
// if its text shows it, else when it is evaluated.
func TestFEEL(t *testing.T) {
	for source, want := range map[string]string{
		// Powers.
		`= -3 ** 2`: `9`, `= -(3 ** 2)`: `-9`, `= 2 ** -1`: `0.5`, `= 0 - 3 ** 2`: `-9`, `= price - 3 ** 2`: `3`, `= -price ** 2`: `144`, `= -order.total`: `-20.5`, `= - -3 ** 2`: `9`, `= -My Order.total ** 2`: `49`, `= -count(tags) ** 2`: `4`, `= -order["total"]`: `-20.5`,
		`= [-1, 2 - 1, -1 - -1, (-1) ** 2]`: `[-1,1,0,1]`, `= if -1 < 0 then -2 ** 2 else -1`: `4`, `= {a: -2 ** 2}.a`: `4`, `= o.in - 3`: `4`, `-3 ** 2`: `-9`, `3 ** 2 ** 2`: `81`,
		`= 3 ** 4 ** 5`: `refused: power of a power`, `= (3 ** 4) ** 5`: `3486784401`, `= 2 ** (1 ** 5)`: `2`, `= 2 ** 2 * 3 ** 2`: `36`, `= 2 ** 1 > 1 and 2 ** 1 < 3`: `true`, `= 2 ** order.lines ** 2`: `refused: power of a power`, `= 2 ** -1 ** 2`: `refused: power of a power`,
		// Contexts.
		`= {foo bar: "foo"}`: `{"foo bar":"foo"}`, `{foo bar: "foo"}`: `{"foo bar":"foo"}`, `= {a: 1, list count: list count}`: `{"a":1,"list count":4}`, `= {count: count, null: 1, if: 2, not a: 3, date and time: 4, 1: 5}`: `{"1":5,"count":3,"date and time":4,"if":2,"not a":3,"null":1}`, `{null: 1}`: `{"null":1}`, `map(tags, { {my tag: #} })`: `[{"my tag":"x"},{"my tag":"y"}]`,
		`= {__variable_a: 1}`: `{"__variable_a":1}`, `= {foo bar: {foo bar: 1}}`: `{"foo bar":{"foo bar":1}}`, `= {a: 1, a: 2}`: `refused: the key "a" is twice`, `{"a": 1, b: 2, a: 3}`: `refused: the key "a" is twice`, `= {a b: 1, "a b": 2}`: `refused: the key "a b" is twice`,
		`= {price: 1, b: price + 1}`: `refused: "price" is the entry`, `= {"price": 1, b: [{c: -price.x}]}`: `refused: "price" is the entry`, `= {list count: 1, b: list count}`: `refused: "list count" is the entry`, `= {a: {price: 1}, b: price, c: {d: price}}`: `{"a":{"price":1},"b":12,"c":{"d":12}}`, `= {price: price, b: {price: price + 1}}`: `{"b":{"price":13},"price":12}`, `= {price: price + 1, b: order.price, c: {price: 2}}`: `{"b":null,"c":{"price":2},"price":13}`, `[{price: 1, b: price}]`: `[{"b":12,"price":1}]`, `= [{price: 1}, price]`: `[{"price":1},12]`, `= {price: price * 2, b: {price: price}}`: `refused: "price" is the entry`,
		// Functions.
		`= string join(["a", null, "c"], "X")`: `"aXc"`, `= string join([null])`: `""`, `= string join([])`: `""`, `= string join(["a", "b"], null)`: `"ab"`, `= string join("a", "X")`: `"a"`, `= string join([1, 2], "X")`: `fails: texts, not 1`, `= string join(nothing)`: `fails: a list of texts`, `join(["a", null, "c"], "X")`: `"aXXc"`,
		`= median()`: `null`, `= mean()`: `null`, `= sum()`: `null`, `= median([])`: `null`, `= mean([])`: `null`, `= sum(1, 2.5)`: `3.5`, `= sum(2)`: `2`, `= mean([[]])`: `fails: not a list`, `= median(nothing)`: `fails: not null`, `= median([1, null])`: `fails: not null`, `= median(8, 2, 5, 7)`: `6`, `mean()`: `0`,
		`= string(nothing)`: `null`, `= string(1.5)`: `"1.5"`, `string(nothing)`: `""`, `= count("abc")`: `1`, `= count(order)`: `1`, `= count([])`: `0`, `= count(tags)`: `2`, `= count(nothing)`: `fails: a list`,
		`= matches(nothing, "p")`: `null`, `= matches(null, "p")`: `null`, `nothing matches "p"`: `false`,
		// Equality of what has no equality.
		`= [] = 0`: `refused: cannot have a list and 0`, `= {} = []`: `refused: cannot have an object and a list`, `= "a" != [1]`: `refused: cannot have "a" and a list`, `= [] = null`: `false`, `= [1] = [1.0]`: `true`, `= {a: 1} = {a: 1}`: `true`, `= tags = [1 in [1]]`: `false`, `[] == 0`: `false`,
		// Patterns.
		`= matches("x", "[A-Z-[OI]]", "i")`: `refused: subtraction of classes`, `= replace("x", "[a-z&&[^b]]", "")`: `refused: subtraction of classes`, `= split("x", name + "[[]")`: `fails: subtraction of classes`, `= matches("[", "[\[a]")`: `true`, `= matches("a", "[^b]") and matches("]", "]")`: `true`,
		`= matches("aa", "(a)\1")`: `refused: back-reference`, `= matches("abcd", "1[asd\0]")`: `refused: back-reference`, `= split("a", "(")`: `refused: not a regular expression`, `name matches "("`: `refused: not a regular expression`, `= matches("a\rb", "a.b")`: `false`, `= matches("a\rb", "a.b", "s")`: `true`, `= matches("axb", "^a.b$")`: `true`,
	} {
		got := ""
		p, err := expression.Compile(source)
		if err != nil {
			got = "refused: " + err.Error()
		} else if v, err := p.Eval(t.Context(), feelVars(t)); err != nil {
			got = "fails: " + err.Error()
		} else {
			b, _ := json.Marshal(v)
			got = string(b)
		}
		kind, part, isError := strings.Cut(want, ": ")
		if isError && (kind == "refused" || kind == "fails") {
			if !strings.HasPrefix(got, kind) || !strings.Contains(got, part) || tapedeck.KindOf(err) != tapedeck.Invalid && err != nil || strings.Contains(got, "__") {
				t.Errorf("%s: %s, want %s", source, got, want)
			}
		} else if got != want {
			t.Errorf("%s is %s, want %s", source, got, want)
		}
	}
}

func feelVars(t *testing.T) map[string]any {
	v := vars(t)
	v["o"] = map[string]any{"in": 7}
	return v
}
