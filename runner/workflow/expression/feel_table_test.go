package expression_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

var update = flag.Bool("update", false, "write the table of docs/workflows.md")

// ofFEEL has expressions with numbers and null, and their values in FEEL (DMN 1.5, 10.3), as
// JSON. v is a variable that is null.
var ofFEEL = [][2]string{
	{`0.1 + 0.2`, `0.3`},
	{`0.1 * 3`, `0.3`},
	{`1 / 3`, `0.3333333333333333333333333333333333`},
	{`-7 / 2`, `-3.5`},
	{`2 ** 10`, `1024`},
	{`2 ** 0.5`, `1.414213562373095048801688724209698`},
	{`9007199254740992 + 1`, `9007199254740993`},
	{`1 = 1.0`, `true`},
	{`[1, 2] = [1, 2.0]`, `true`},
	{`{a: 1} = {a: 1.0}`, `true`},
	{`list contains([1], 1.0)`, `true`},
	{`99999999999999999999999999999999999 + 1`, `100000000000000000000000000000000000`},
	{`1 / 0`, `null`},
	{`floor(-1.5)`, `-2`},
	{`ceiling(1.5)`, `2`},
	{`abs(-3)`, `3`},
	{`decimal(1 / 3, 2)`, `0.33`},
	{`modulo(-12, 5)`, `3`},
	{`sqrt(16)`, `4`},
	{`number("1.5")`, `1.5`},
	{`number("x")`, `null`},
	{`string(1.5)`, `"1.5"`},
	{`sum([1, 2, 3.5])`, `6.5`},
	{`sum([])`, `null`},
	{`min(1, 2)`, `1`},
	{`max([])`, `null`},
	{`mean([1, 2])`, `1.5`},
	{`median([1, 2, 3])`, `2`},
	{`count([])`, `0`},
	{`5 between 1 and 10`, `true`},
	{`null = null`, `true`},
	{`v = null`, `true`},
	{`missing = null`, `true`},
	{`v = 0`, `false`},
	{`v != 0`, `true`},
	{`{a: 1}.b`, `null`},
	{`get or else(v, 1)`, `1`},
	{`v + 1`, `null`},
	{`"a" + 1`, `null`},
	{`v < 1`, `null`},
	{`-v`, `null`},
	{`"1" = 1`, `null`},
	{`true = 1`, `null`},
	{`if v then 1 else 2`, `2`},
	{`not(v)`, `null`},
	{`true and v`, `null`},
	{`false and v`, `false`},
	{`true or v`, `true`},
	{`false or v`, `null`},
	{`count(v)`, `null`},
	{`sum(v)`, `null`},
	{`string length(v)`, `null`},
	{`contains(v, "a")`, `null`},
}

// TestTableOfFEEL: an expression with numbers or null has the value that it has in FEEL, or it
// is an error. docs/workflows.md has what this test finds.
func TestTableOfFEEL(t *testing.T) {
	var b strings.Builder
	b.WriteString("| expression | in FEEL | here |\n|---|---|---|\n")
	for _, row := range ofFEEL {
		here, err := valueOf(row[0])
		switch {
		case err != nil:
			here = err.Error()
			for _, form := range []string{" fails: ", " cannot be read: "} {
				if _, reason, ok := strings.Cut(here, form); ok {
					here = reason
				}
			}
			here = "an error: " + here
		case here != row[1]:
			t.Errorf("%s is %s, and %s in FEEL", row[0], here, row[1])
		default:
			here = "the same"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", row[0], row[1], here)
	}
	const document, begin, end = "../../../docs/workflows.md", "<!-- feel -->\n", "<!-- /feel -->"
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	table, after, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatal("the page has no place for the table")
	case *update:
		if err := os.WriteFile(document, []byte(before+begin+b.String()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	case table != b.String():
		t.Errorf("the table is not that of the page; write it with -update:\n%s", b.String())
	}
}

// valueOf returns the value of an expression, as JSON.
func valueOf(text string) (string, error) {
	v, err := expression.ParseValue("= " + text)
	if err != nil {
		return "", err
	}
	value, err := v.Eval(context.Background(), map[string]any{"v": nil})
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(value)
	return string(b), err
}
