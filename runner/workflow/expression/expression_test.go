package expression_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

// variables are those of every test, as JSON has them.
const variables = `{
	"price": 12, "ratio": 0.5, "count": 3, "name": "Ada", "ok": true, "nothing": null, "empty_text": "",
	"order": {"total": 20.5, "lines": [{"sku": "a", "n": 2}, {"sku": "b", "n": 5}]},
	"My Order": {"total": 7}, "list count": 4,
	"tags": ["x", "y"], "deep": {"a": {"b": null}}
}`

func vars(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(variables), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEval(t *testing.T) {
	for source, want := range map[string]string{
		// Plain.
		`price > 10`: `true`, `price == 12.0`: `true`, `price = 12`: `true`, `price % 5`: `2`, `price / 8`: `1.5`,
		`name + "!"`: `"Ada!"`, `1 + 2 * 3`: `7`, `not (price > 10)`: `false`, `!ok || price < 3`: `false`, `ok && price >= 12`: `true`,
		`order.lines[1].sku`: `"b"`, `order["total"]`: `20.5`, `map(order.lines, .n)`: `[2,5]`, `sum(map(order.lines, #.n))`: `7`,
		`filter(order.lines, .n > 2)`: `[{"n":5,"sku":"b"}]`, `{"a": price, "b": [1, name]}`: `{"a":12,"b":[1,"Ada"]}`, `1..3`: `[1,2,3]`,
		`price > 10 ? "big" : "small"`: `"big"`, `name in ["Ada", "Bob"]`: `true`, `name contains "d"`: `true`, `name matches "^A"`: `true`, `uniq([1, 1.0, 2, "1"])`: `[1,2,"1"]`, `nothing matches "x"`: `false`,
		`let a = price; a + a`: `24`, `len(tags)`: `2`, `join(tags, ", ")`: `"x, y"`, `reduce(1..4, #acc + #, 0)`: `10`, `tags[price - 11]`: `"y"`,
		`"a = b"`: `"a = b"`, `'it''s' == 'x'`: ``, `string(price) + ratio`: ``, `price ?? 1`: `12`, `nil`: `null`, `null`: `null`, `tags[-1]`: `"y"`,
		`price == null`: `false`, `unknown == null`: `true`, `unknown != null && unknown > 3`: `false`, `unknown ?? 7`: `7`, `deep.a.b == null`: `true`, `unknown?.x == null`: `true`,
		`price // a comment`: `12`, `"10" == string(10)`: `true`, `9007199254740993 + 0`: `9007199254740993`, `ratio + ratio`: `1`, `upper(name)`: `"ADA"`,
		`order.lines | map(.n) | sum()`: `7`, `count > 2`: `true`, `{count: count, "len": len(tags)}.count`: `3`, `ok ? count : 1`: `3`,
		`let len = 2; len + count`: `5`,
		// FEEL.
		`= price = 12`: `true`, `=price >= 0`: `true`, `= price != 12 or name = "Ada"`: `true`, `= not(ok)`: `false`, `= if price > 10 then "big" else "small"`: `"big"`,
		`= if price < 1 then 1 else if price < 20 then 2 else 3`: `2`, `= [if ok then 1 else 2, 3]`: `[1,3]`, `= string length(name)`: `3`, `= upper case(name)`: `"ADA"`,
		`= contains(name, "da")`: `true`, `= list contains(tags, "y")`: `true`, `= string join(tags, "-")`: `"x-y"`, `= is defined(unknown)`: `false`, `= get or else(unknown, 1)`: `1`,
		`= {a: price, b: "x"}`: `{"a":12,"b":"x"}`, `= count(tags)`: `2`, `= count + 1`: `4`, `= substring(name, 2)`: `"da"`, `= substring(name, -2, 1)`: `"d"`, `= starts with(name, "A") and ends with(name, "a")`: `true`,
		`= "Hi " + name`: `"Hi Ada"`, `= null`: `null`, `= nothing = null`: `true`, `= order.total`: `20.5`, `= order["total"]`: `20.5`, `= number("12")`: `12`, `= append(tags, "z")`: `["x","y","z"]`,
		`= concatenate(tags, [1])`: `["x","y",1]`, `= 2 ** 3`: `8`, `= -price`: `-12`, `= price - count`: `9`, `=unknown`: ``,
		`= My Order.total > 3 and list count = 4`: `true`, `My Order.total`: `7`, `= Other Order = null`: `true`,
		`= replace("a.b.c", "[.]", "-")`: `"a-b-c"`, `= replace("0123456789", "(\d{3})(\d{3})(\d{4})", "($1) $2-$3")`: `"(012) 345-6789"`, `= replace("abc", "B", "$0$0", "i")`: `"abbc"`,
		`= replace("ab", "(a)", "$1x\\$")`: `"ax$b"`, `= replace("ab", "b", "$")`: `"a$"`, `= split("a, b;c", "[,;]\s*")`: `["a","b","c"]`, `= split("a.b", "\.")`: `["a","b"]`, `= matches("foobar", "^fo*b") and matches(name, "ADA", "i")`: `true`,
		`= name matches "^A"`: `true`, `replace("a.b", ".", "-")`: `"a-b"`, `split("a.b", ".")`: `["a","b"]`, `= "a\tb\u0041\n"`: `"a\tbA\n"`, `= is empty([])`: `true`, `upper(split("a b", " ")[0])`: `"A"`,
		// JUEL.
		`${price > 10}`: `true`, `#{price eq 12 and ok}`: `true`, `${price gt 10 && name ne "Bob"}`: `true`, `${empty nothing}`: `true`, `${not empty tags}`: `true`, `${ empty unknown || false}`: `true`,
		`${order.lines[0].sku}`: `"a"`, `${ok ? 'a' : 'b'}`: `"a"`, `${price mod 5}`: `2`,
	} {
		p, err := expression.Compile(source)
		var got any
		if err == nil {
			got, err = p.Eval(t.Context(), vars(t))
		}
		if want == "" {
			if err == nil {
				t.Errorf("%s is %v, want an error", source, got)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		b, _ := json.Marshal(got)
		if string(b) != want {
			t.Errorf("%s is %s, want %s", source, b, want)
		}
	}
}

// TestRefused has what is refused when it is compiled, with a part of the sentence.
func TestRefused(t *testing.T) {
	for source, want := range map[string]string{
		``: "is empty", ` = `: "is empty", `price >`: "cannot be read", `(price`: `"(" is not followed by ")"`, `price)`: "has no beginning",
		`${Vacation Approval = "Approved"}`: "a name of JUEL has no spaces", `"open`: "closing quotation mark", `'open`: "closing quotation mark",
		`= now() > x`: "now of FEEL is not supported", `= date and time("2026-01-01T00:00:00Z")`: "date and time of FEEL", `= duration("PT1S")`: "duration of FEEL", `now()`: "there is no function now",
		`= tags[1]`: "FEEL counts from 1", `= tags[item > 1]`: "FEEL counts from 1", `= price in [1..5]`: "ranges of FEEL", `= for x in tags return x`: `"for" of FEEL`, `= some x in tags satisfies x = 1`: `"some" of FEEL`,
		`= every x in tags satisfies x`: `"every" of FEEL`, `= x between 1 and 2`: "FEEL", `= if price then 1`: "an if is not complete", `= x instance of number`: "FEEL",
		`${execution.getVariable("x")}`: "values have no methods", `${name.equals("x")}`: "values have no methods", `foo(1)`: "there is no function foo", `= foo bar(1)`: "no function", `a b c ? x y`: "cannot be read",
		`= @"2026-01-01"`: "dates and times (@", `= modulo(7, 2)`: "no function modulo", `= index of(tags, "x")`: "no function index of",
		`$env`: "reserved", `__guard(1)`: "reserved", `repeat("x", 9)`: "there is no function repeat", `b"x"`: "cannot be read", `/* open`: "comment without its end", `a ? b`: "cannot be read", "\xff": "UTF-8",
		`1 2`: "cannot be read", `= iban: "DE456"`: "cannot be read", `then`: "no beginning", strings.Repeat("(", 200) + "1": "levels", strings.Repeat("1+", 3000) + "1": "nodes", strings.Repeat(" ", 70000) + "1": "",
		strings.Repeat("a", 70000): "at most 65536",
		`x 9007199254740993000000`: `unexpected token Number("9007199254740993000000")`, `x 9_007199254740993000000`: `Number("9_007199254740993000000")`, `12345678901234567890123456789012345 + 1`: "the number 12345678901234567890123456789012345 cannot be", `"a" - 9007199254740993000000`: `- cannot have "a" and 9007199254740993000000`, `-9007199254740993000000 - "a"`: `- cannot have -9007199254740993000000 and "a"`, `1.50 < true`: "< cannot have 1.5 and true",
		`null < 3`: "< cannot have null and 3", `(name + 1) - "x"`: `- cannot have a value and "x"`, `count - "x"`: `- cannot have count and "x"`, `x 1e400`: "unexpected token Number", `1 x y`: `unexpected token Identifier("x y")`, `- "a"`: `- needs a number, not "a"`,
	} {
		p, err := expression.Compile(source)
		if want == "" {
			if err != nil {
				t.Errorf("%.40s: %v", source, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%.60s is accepted as %s", source, p)
		} else if !strings.Contains(err.Error(), want) || tapedeck.KindOf(err) != tapedeck.Invalid || len(err.Error()) > 600 || strings.Contains(err.Error(), "__") && !strings.Contains(source, "__") {
			t.Errorf("%.60s: %s error %q, want a part %q", source, tapedeck.KindOf(err), err, want)
		}
	}
}

// TestFails has what fails when it is evaluated, with a part of the sentence.
func TestFails(t *testing.T) {
	big := strings.Repeat("let a = x; ", 1)
	for source, want := range map[string]string{
		`unknown > 1`: "uses the variable \"unknown\", which does not exist", `name + 1`: `+ cannot add the text "Ada" and 1`, `name > 1`: "fails", `price / 0`: "divides by zero", `nothing.a`: "fails",
		`reduce(1..100, #acc + #acc, "x")`: "more than 1 MiB", `all(1..5000, all(1..5000, true))`: "fails", `all(big, all(big, true))`: "too many steps", `split(join(map(1..9999, "x"), "y") + join(map(1..90000, "xxxxx")), "")`: "more than 1 MiB",
		`let a = [1,1]; let b = [a,a,a,a,a,a,a,a,a,a]; let c = [b,b,b,b,b,b,b,b,b,b]; let d = [c,c,c,c,c,c,c,c,c,c]; let e = [d,d,d,d,d,d,d,d,d,d]; let f = [e,e,e,e,e,e,e,e,e,e]; f`: "more than 1 MiB",
		`join(map(1..100000, "x"), "long text between the elements")`: "more than 1 MiB", `1..1000000000`: "fails", `order.lines[7]`: "fails", `replace(join(map(1..1000, "x")), "x", join(map(1..5000, "yy")))`: "more than 1 MiB",
		`uniq(1..200000)`: "more than 1 MiB", `all(1..100000, (1..50000) == (1..50000))`: "fails", `all(1..100000, # not in big)`: "steps", `join(map(1..60000, "xxxxxxxx")) matches "(a{0,900}){0,1}"`: "too long", `name matches "(" + name`: "not a regular",
		`tags.x.y`: "fails", `substring(name, 0)`: "from 1", `join(price)`: "takes a list", `concat(map(1..60000, 1), map(1..60000, 1), map(1..60000, 1))`: "more than 1 MiB", big + `a`: "variable \"x\"",
		`indexOf([1, 2], 2)`: "indexOf needs a text, not a list", `upper(price)`: "upper needs a text, not 12", `split(name, nothing)`: "split needs a text, not null", `trim(name, tags)`: "trim needs a text", `price startsWith name`: "a text is needed",
		`= replace(name, "(" + name, "x")`: "not a regular expression", `= replace(name, "a", "b", "x")`: "the flags \"x\" are not supported", `= replace(name, "a")`: "it takes a text, a pattern", `= split(name, 1)`: "it takes a text and a pattern", `= matches(price, "1")`: "it takes a text",
		`= replace(long, "", long)`: "more than 1 MiB", `= replace(long, "x", "yyy")`: "more than 1 MiB", `= replace(long, "(x*)", "$1$1$1$1")`: "more than 1 MiB", `= replace(long, "(x*)", "$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1")`: "more than 1 MiB",
		`= split(long, "")`: "more than 1 MiB", `= replace(long, "(a{0,900}){0,1}", "")`: "too long",
	} {
		p, err := expression.Compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		v := vars(t)
		v["big"], v["long"] = make([]any, 50_000), strings.Repeat("x", 500_000)
		restore := func() {}
		if strings.Contains(want, "steps") || want == "fails" { // such as would take all steps, which are many
			restore = expression.SetMaxSteps(60_000)
		}
		out, err := p.Eval(t.Context(), v)
		restore()
		if err == nil {
			t.Errorf("%s is %.60v", source, out)
		} else if !strings.Contains(err.Error(), want) || tapedeck.KindOf(err) != tapedeck.Invalid || strings.Contains(err.Error(), "__") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %q, want a part %q", source, err, want)
		}
	}
	if _, err := must(t, `name`).Bool(t.Context(), vars(t)); err == nil || err.Error() != `the condition "name" is the text "Ada", not true or false` {
		t.Error(err)
	}
}

// TestUnknownFunction says what to write instead, and never lists all functions.
func TestUnknownFunction(t *testing.T) {
	for source, want := range map[string]string{
		`= modulo(7, 2)`: "a % b", `union(tags, tags)`: "uniq(concat(a, b))", `= decimal(1.234, 2)`: "round(", `= index of(tags, "x")`: "findIndex",
		`foo(1)`: "docs/workflows.md", `= foo bar(1)`: "docs/workflows.md", `name.length()`: "docs/workflows.md",
	} {
		_, err := expression.Compile(source)
		var e *tapedeck.Error
		if !errors.As(err, &e) || !strings.Contains(e.Hint, want) || len(e.Hint) > 200 {
			t.Errorf("%s: %v, want a hint with %q", source, e, want)
		}
	}
}

func must(t *testing.T, source string) *expression.Program {
	t.Helper()
	p, err := expression.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestVariables(t *testing.T) {
	for source, want := range map[string][]string{
		`price > 1 and name = "x"`: {"name", "price"}, `order.lines[i].sku + f(1)`: nil, `len(tags) + let a = b; a`: nil, `string(c)`: {"c"}, `let z = q; z + z`: {"q", "z"}, `filter(l, .x > y)`: {"l", "y"}, `x != null`: {"x"}, `1`: nil,
	} {
		p, err := expression.Compile(source)
		if err != nil {
			if want != nil {
				t.Errorf("%s: %v", source, err)
			}
			continue
		}
		if got := p.Variables(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s uses %v, want %v", source, got, want)
		}
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct{ form, source, want string }{
		{"8", `= "\ud83c\udf89\\\ud83c"`, `"🎉\\�"`}, {"8", `= sum([])`, `null`}, {"8", `= mean([])`, `null`}, {"8", `= median([])`, `null`}, {"8", `= sum([1, 2])`, `3`}, {"8", `= mean(1, 2)`, `1.5`},
		{"8", `plain text`, `"plain text"`}, {"8", `= price + 1`, `13`}, {"8", `Hi {{ name }}!`, `"Hi Ada!"`}, {"8", `{{ name }}`, `"Ada"`}, {"8", `{{ order.lines }}`, `"[{\"n\":2,\"sku\":\"a\"},{\"n\":5,\"sku\":\"b\"}]"`},
		{"8", `{{ {"a": {"b": 1}} }} {{ "}}" }}`, `"{\"a\":{\"b\":1}} }}"`}, {"8", `{{ "{{" }} is open`, `"{{ is open"`}, {"8", `cost: ${HOME} {{ price }}`, `"cost: ${HOME} 12"`}, {"8", `{{ nothing }}`, `""`}, {"8", `{{ open`, ``},
		{"8", `{{ unknown }}`, ``}, {"8", ``, `""`}, {"8", `=`, `"="`}, {"8", `{{ 1.5 }}{{ true }}`, `"1.5true"`}, {"8", `== heading`, `"== heading"`}, {"8", `{{}}`, ``},
		{"7", `plain {{ name }}`, `"plain {{ name }}"`}, {"7", `${price + 1}`, `13`}, {"7", `Hi ${name}!`, `"Hi Ada!"`}, {"7", `${name}${price}`, `"Ada12"`}, {"7", `= 3`, `"= 3"`}, {"7", `a ${empty nothing}`, `"a true"`},
	} {
		parse := expression.ParseValue
		if c.form == "7" {
			parse = expression.ParseJUEL
		}
		v, err := parse(c.source)
		var got any
		if err == nil {
			got, err = v.Eval(t.Context(), vars(t))
		}
		if (err != nil) != (c.want == "") {
			t.Errorf("%s: %v, %v", c.source, got, err)
		}
		if b, _ := json.Marshal(got); c.want != "" && string(b) != c.want {
			t.Errorf("%s is %s, want %s", c.source, b, c.want)
		}
	}
	large, _ := expression.ParseValue("{{ name }}{{ name }}")
	if _, err := large.Eval(t.Context(), map[string]any{"name": strings.Repeat("x", 600_000)}); err == nil || !strings.Contains(err.Error(), "1 MiB") {
		t.Error(err)
	}
}

func TestScript(t *testing.T) {
	for source, want := range map[string]string{
		"a = price + 1\nb = a * 2":           `{"a":13,"b":26} null`,
		"a = 1; b = [a,\n 2]\n# comment\n b": `{"a":1,"b":[1,2]} [1,2]`,
		"= price":                            `{} 12`,
		"${price}":                           `{} 12`,
		"x = price == 12 // yes":             `{"x":true} null`,
		"x = \"a;\nb\" // no":                `{"x":"a;\nb"} null`,
		"price":                              `{} 12`,
		"count = count + 1":                  `{"count":4} null`,
		"a = if ok then 1 else 2":            `{"a":1} null`,
	} {
		s, err := expression.CompileScript(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		assigned, value, err := s.Run(t.Context(), vars(t))
		a, _ := json.Marshal(assigned)
		v, _ := json.Marshal(value)
		if got := string(a) + " " + string(v); err != nil || got != want {
			t.Errorf("%s is %s %v, want %s", source, got, err, want)
		}
	}
	for source, want := range map[string]string{
		"":                 "the script is empty",
		"price\nb = 1":     "line 1 of the script assigns no variable",
		"a = 1\n\nb = (1":  "line 3 of the script",
		"a = 1\nb = 'x":    "line 2 of the script has a text without",
		"var x = 1;":       "spaces",
		"x.y = 1":          "",
		"a = 1\nb = a + c": "line 2 of the script: the expression \"a + c\" uses the variable \"c\"",
		"a b = 1":          "spaces",
	} {
		s, err := expression.CompileScript(source)
		if err == nil {
			_, _, err = s.Run(t.Context(), vars(t))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want a part %q", source, err, want)
		}
	}
}
