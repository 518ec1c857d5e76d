package expression_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

// numbers are variables that a float64 would change.
const numbers = `{
	"id": 9007199254740993, "other": 9007199254740992, "float": 9007199254740993.0, "exp": 9007199254740993e0,
	"most": 9223372036854775807, "least": -9223372036854775808, "above": 9223372036854775808, "wide": 12345678901234567890123456789012345,
	"digits": 1234567890123456789012345678901234, "tenth": 0.1, "fifth": 0.20, "price": 12.50, "huge": 1e400, "far": 1e7000, "long": 0.12345678901234567890123456789012345678901,
	"farther": 1e1000000000, "small": 1e-400, "ids": [9007199254740992, 9007199254740993, 0.1], "orders": [{"id": 9007199254740992, "n": 1.5}, {"id": 9007199254740993, "n": 0.1}, {"id": 9007199254740993.0, "n": 0.2}], "äöü": 0.3, "list": [3, 0.3, 9007199254740993, 0.1, 9007199254740992]
}`

func exact(t testing.TB, text string) map[string]any {
	t.Helper()
	v, err := expression.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

func TestNumbers(t *testing.T) {
	for source, want := range map[string]string{
		// What is only passed on.
		`= id`: `9007199254740993`, `float`: `9007199254740993`, `exp`: `9007199254740993`, `ids`: `[9007199254740992,9007199254740993,0.1]`, `price`: `12.5`, `huge`: `1e+400`, `far`: `1e7000`, `farther`: `1e1000000000`, `long`: `0.12345678901234567890123456789012345678901`,
		`wide`: `12345678901234567890123456789012345`, `[far, {"a": long}]`: `[1e7000,{"a":0.12345678901234567890123456789012345678901}]`, `far ?? 1`: `1e7000`, `get_or_else(far, 1)`: `1e7000`, `far == null`: `false`, `far != null ? far : 1`: `1e7000`, `far == "x"`: `false`, `string(far)`: `"1e7000"`, `type(far)`: `"float"`, `let x = far; x`: `1e7000`, `last(filter([1, far], true))`: `1e7000`, `is_empty(far)`: `false`,
		// Literals.
		`9007199254740993`: `9007199254740993`, `-9223372036854775808`: `-9223372036854775808`, `9223372036854775808`: `9223372036854775808`, `12345678901234567890123`: `12345678901234567890123`, `1_000.50`: `1000.5`, `0x10`: `16`, `1e3`: `1000`, `1.5e-7`: `1.5e-7`, `0.1`: `0.1`, `12.0`: `12`, `-0.5`: `-0.5`, `+0.5`: `0.5`, `1e300`: `1e+300`, `"ä" + string(0.1)`: `"ä0.1"`, `äöü = 0.3`: `true`, `5e-400`: `5e-400`, `1e309`: `1e+309`, `1_0e400`: `1e+401`, `-1.5E+400`: `-1.5e+400`, `1e400 = huge`: `true`, `[1e400, 2]`: `[1e+400,2]`, `{"a": 1e400}.a / 1e399 + 1`: `11`, `2 < 1e6144`: `true`, `= if huge >= 1e400 then 1e400 else 0`: `1e+400`, `" 1e400"`: `" 1e400"`, `1` + strings.Repeat("0", 400): `1e+400`, `0.000001e400`: `1e+394`, `max(1e400, 1)`: `1e+400`, `1234567890123456789012345678901234`: `1234567890123456789012345678901234`,
		// Equality.
		`= id = other`: `false`, `= id = 9007199254740993`: `true`, `id == float && float == exp`: `true`, `id != other`: `true`, `id != float`: `false`, `= 0.1 + 0.2 = 0.3`: `true`, `= tenth + fifth = äöü`: `true`, `above == 9223372036854775808`: `true`, `above == most`: `false`, `1.0 == 1`: `true`, `0.10 == tenth`: `true`, `id == "9007199254740993"`: `false`, `id == null`: `false`, `null == tenth`: `false`, `[id] == [other]`: `false`, `[id, 0.1] == [float, tenth]`: `true`, `{"a": id} == {"a": other}`: `false`, `{"a": 1.50} == {"a": 1.5}`: `true`, `{"a": 1} == {"b": 1}`: `false`, `1..3 == [1, 2, 3.0]`: `true`, `[] == 1..0`: `true`, `[1] == 1`: `false`, `"1" == [1]`: `false`, `nothing == null`: `true`, `[null] == [null]`: `true`, `true == (1 == 1)`: `true`, `digits == digits + 1`: `false`,
		// Order.
		`id > other`: `true`, `other < id`: `true`, `id <= other`: `false`, `id >= float`: `true`, `above > most`: `true`, `most < above`: `true`, `least < -9223372036854775807`: `true`, `tenth < fifth`: `true`, `tenth >= 0.1`: `true`, `small > 0`: `true`, `huge > above`: `true`, `-huge < least`: `true`, `id + 0.5 > id`: `true`, `"a" < "b"`: `true`, `id between`: ``, `= id >= 9007199254740993 and id <= 9007199254740993`: `true`,
		// Membership.
		`id in ids`: `true`, `id in [other]`: `false`, `id not in [other, 1]`: `true`, `float in ids`: `true`, `tenth in ids`: `true`, `0.10 in [0.1]`: `true`, `id in 1..3`: `false`, `2 in 1..3`: `true`, `2.5 in 1..3`: `false`, `"id" in {"id": 1}`: `true`, `null in [1, null]`: `true`, `[1] in [[1.0]]`: `true`, `1 in unknown_list ?? []`: `false`, `= list contains(ids, 9007199254740993)`: `true`, `= list contains([other], id)`: `false`, `= list contains([0.10], tenth)`: `true`, `= distinct values([id, other, float, 0.1, 0.10])`: `[9007199254740993,9007199254740992,0.1]`, `1 in null`: `false`,
		// Arithmetic.
		`id + 1`: `9007199254740994`, `id - other`: `1`, `id * 3`: `27021597764222979`, `id / 3`: `3002399751580331`, `id % 10`: `3`, `most + 1`: `9223372036854775808`, `least - 1`: `-9223372036854775809`, `most * 2`: `18446744073709551614`, `least * -1`: `9223372036854775808`, `-1 * least`: `9223372036854775808`, `least / -1`: `9223372036854775808`, `-least`: `9223372036854775808`, `-above`: `-9223372036854775808`, `least % -1`: `0`, `most * 0`: `0`, `4611686018427387904 * -2`: `-9223372036854775808`, `3037000500 * 3037000500`: `9223372037000250000`,
		`above - 1`: `9223372036854775807`, `type(above - 1)`: `"int"`, `1 / 3`: `0.3333333333333333333333333333333333`, `6 / 3`: `2`, `type(6 / 3)`: `"int"`, `-6 / 3`: `-2`, `6 / -3`: `-2`, `1 / 8`: `0.125`, `0.3 - 0.1`: `0.2`, `1.1 * 1.1`: `1.21`, `tenth * 3`: `0.3`, `price * 2`: `25`, `5.5 % 2`: `1.5`, `-7 % 5`: `-2`, `7 % -5`: `2`, `2 ** 10`: `1024`, `2 ^ 3`: `8`, `2 ** 64`: `18446744073709551616`, `2 ** -1`: `0.5`, `4 ** 0.5`: `2`, `1.1 ** 2`: `1.21`, `-tenth`: `-0.1`, `+tenth`: `0.1`, `-(1 - 1)`: `0`, `0.1 + 0.2`: `0.3`, `digits + 1`: `1234567890123456789012345678901235`, `digits * 10`: `1.234567890123456789012345678901234e+34`, `huge / huge`: `1`, `huge * small`: `1`, `1 - 0.9`: `0.1`, `(0.1 + 0.7) * 10`: `8`,
		`"a" + "b"`: `"ab"`, `1..3`: `[1,2,3]`, `3..1`: `[]`, `ids[6 / 3]`: `0.1`, `ids[0.5 * 2]`: `9007199254740993`, `(most - 1)..most`: `[9223372036854775806,9223372036854775807]`,
		// Functions.
		`abs(-id)`: `9007199254740993`, `abs(least)`: `9223372036854775808`, `abs(-0.1)`: `0.1`, `ceil(0.1)`: `1`, `floor(-0.1)`: `-1`, `ceil(id)`: `9007199254740993`, `round(2.5)`: `3`, `round(-2.5)`: `-3`, `round(id)`: `9007199254740993`, `round(9007199254740993.5)`: `9007199254740994`, `= round(1.005 * 100) / 100`: `1.01`, `int(2.9)`: `2`, `int(-2.9)`: `-2`, `int("9007199254740993")`: `9007199254740993`, `int(id)`: `9007199254740993`, `int("12345678901234567890")`: `12345678901234567890`, `float("0.10")`: `0.1`, `float(id)`: `9007199254740993`, `= number("9007199254740993")`: `9007199254740993`, `= number("12.50")`: `12.5`, `= number("1e400")`: `1e+400`, `= ceiling(0.1)`: `1`, `price | round()`: `13`,
		`min(id, other)`: `9007199254740992`, `max(ids)`: `9007199254740993`, `max(0.1, fifth, [0.15, [0.3]])`: `0.3`, `min([])`: `null`, `max(nothing ?? null)`: `null`, `min(1, 0.5)`: `0.5`, `max(above, most)`: `9223372036854775808`, `mean(0.1, 0.2)`: `0.15`, `mean([1, 2])`: `1.5`, `mean([])`: `0`, `mean(id, id)`: `9007199254740993`, `median([3, 0.1, 0.2])`: `0.2`, `median([id, other])`: `9007199254740992.5`, `median([])`: `0`, `sum(ids)`: `18014398509481985.1`, `sum([0.1, 0.2])`: `0.3`, `sum(orders, .n)`: `1.8`, `sum([])`: `0`, `sum(1..4)`: `10`, `sum([most, 1])`: `9223372036854775808`, `orders | map(.n) | sum()`: `1.8`, `orders | sum(.id)`: `27021597764222978`, `sum(orders, sum([.n, 1]))`: `4.8`,
		`sort(list)`: `[0.1,0.3,3,9007199254740992,9007199254740993]`, `sort(list, "desc")`: `[9007199254740993,9007199254740992,3,0.3,0.1]`, `sort(["b", "a"])`: `["a","b"]`, `sort(3..1)`: `[]`, `list`: `[3,0.3,9007199254740993,0.1,9007199254740992]`, `map(sortBy(orders, .n), .n)`: `[0.1,0.2,1.5]`, `map(sortBy(orders, .id, "desc"), .n)`: `[0.1,0.2,1.5]`, `sortBy(ids, -#)`: `[9007199254740993,9007199254740992,0.1]`, `orders | sortBy(#.n) | map(#.n)`: `[0.1,0.2,1.5]`, `sortBy([2, 1], sum(sortBy([1, #], #)))`: `[1,2]`, `sortBy([], #)`: `[]`, `map(sortBy(list, # in ids ? 1.5 : 0.5), #index)`: `[0,1,2,3,4]`,
		`count(ids, # == id)`: `1`, `filter(ids, # > other)`: `[9007199254740993]`, `find(orders, .id == 9007199254740993).n`: `0.1`, `findIndex(ids, # == id)`: `1`, `findLastIndex(ids, # >= other)`: `1`, `all(ids, # > 0)`: `true`, `any(ids, # == 9007199254740994)`: `false`, `none(ids, # == 0.2)`: `true`, `one(ids, # == id)`: `true`, `map(ids, # + 1)`: `[9007199254740993,9007199254740994,1.1]`, `reduce(ids, #acc + #, 0.5)`: `18014398509481985.6`, `reduce(ids, #acc + #)`: `18014398509481985.1`, `keys(groupBy(orders, .id)) | len()`: `2`, `groupBy(orders, .n)`: `{"0.1":[{"id":9007199254740993,"n":0.1}],"0.2":[{"id":9007199254740993,"n":0.2}],"1.5":[{"id":9007199254740992,"n":1.5}]}`, `groupBy([0.10, 0.1], #)[0.1]`: `[0.1,0.1]`, `len(groupBy([1, 1.0, id, float], #))`: `2`,
		`string(1.5)`: `"1.5"`, `string(id)`: `"9007199254740993"`, `string(0.0000001)`: `"0.0000001"`, `string(1e21)`: `"1000000000000000000000"`, `string(12.50)`: `"12.5"`, `string([id, 0.10])`: `"[9007199254740993,0.1]"`, `join([0.1, id], "-")`: `"0.1-9007199254740993"`, `toJSON({"a": id, "b": 0.10})`: "\"{\\n  \\\"a\\\": 9007199254740993,\\n  \\\"b\\\": 0.1\\n}\"", `fromJSON("{\"a\": 9007199254740993}").a`: `9007199254740993`, `fromJSON("[0.10, 1e400, 1.0]")`: `[0.1,1e+400,1]`, `type(id)`: `"int"`, `type(0.5)`: `"float"`, `type("x")`: `"string"`, `type(null)`: `"nil"`, `type(ids)`: `"array"`, `type({})`: `"map"`, `type(true)`: `"bool"`,
		`take(ids, 1)`: `[9007199254740992]`, `get(ids, 1)`: `9007199254740993`, `first(ids)`: `9007199254740992`, `last(ids)`: `0.1`, `reverse(ids)`: `[0.1,9007199254740993,9007199254740992]`, `flatten([[0.1], [id]])`: `[0.1,9007199254740993]`, `concat([0.1], [id])`: `[0.1,9007199254740993]`, `append([0.1], id)`: `[0.1,9007199254740993]`, `fromPairs([["a", 0.1], [0.5, 1]])`: `{"0.5":1,"a":0.1}`, `fromPairs(toPairs({"a": 0.1}))`: `{"a":0.1}`, `toPairs({"a": 0.1})`: `[["a",0.1]]`, `toPairs({"a": 0.1}) == [["a", 0.10]]`: `true`, `groupBy([1], #) == groupBy([1.0], #)`: `true`, `values({"a": 0.1})`: `[0.1]`, `ids[1:]`: `[9007199254740993,0.1]`, `ids[-1]`: `0.1`, `uniq([1, 1.0, 0.5, 0.50])`: `[1,0.5]`, `bitand(id, 3)`: `1`, `bitor(4, 1)`: `5`, `bitxor(6, 3)`: `5`, `bitnand(7, 2)`: `5`, `bitshl(1, 3)`: `8`, `bitshr(8, 2)`: `2`, `bitushr(8, 2)`: `2`, `bitnot(0)`: `-1`, `split("a,b,c", ",", 4 / 2)`: `["a","b,c"]`, `substring("abcd", 4 / 2)`: `"bcd"`, `len(ids)`: `3`, `is_defined(tenth)`: `true`, `tenth > 0 ? 0.5 : 1`: `0.5`, `not (tenth > 1)`: `true`, `get_or_else(nothing ?? null, 0.5)`: `0.5`, `if tenth > 0 { 1.5 } else { 2 }`: ``,
	} {
		p, err := expression.Compile(source)
		var got any
		if err == nil {
			got, err = p.Eval(t.Context(), exact(t, numbers))
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
		if b, _ := json.Marshal(got); string(b) != want {
			t.Errorf("%s is %s, want %s", source, b, want)
		}
		if hasFloat(got) {
			t.Errorf("%s has a float64: %#v", source, got)
		}
	}
}

func hasFloat(v any) bool {
	switch v := v.(type) {
	case float64, float32:
		return true
	case []any:
		for _, e := range v {
			if hasFloat(e) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if hasFloat(e) {
				return true
			}
		}
	}
	return false
}

// TestBits: the functions of bits are exact, or fail.
func TestBits(t *testing.T) {
	for source, want := range map[string]string{
		`bitand(id, 3)`: "1", `bitor(4, 1)`: "5", `bitxor(6, 3)`: "5", `bitnand(7, 2)`: "5", `bitnot(0)`: "-1", `bitand(-1, 255)`: "255", `bitand(2.0, 3)`: "2", `bitnot(most)`: "-9223372036854775808",
		`bitshl(1, 3)`: "8", `bitshl(1, 62)`: "4611686018427387904", `bitshl(-1, 63)`: "-9223372036854775808", `bitshl(0, 1000)`: "0", `bitshr(8, 2)`: "2", `bitshr(-8, 1)`: "-4", `bitshr(-1, 100)`: "-1", `bitushr(8, 2)`: "2", `bitushr(-1, 1)`: "9223372036854775807", `bitushr(-1, 64)`: "0",
		`bitshl(1, 63)`: "! 1 shifted by 63 bits does not fit in 64 bits", `bitshl(1, 64)`: "! does not fit", `bitshl(most, 1)`: "! does not fit", `bitshl(3, 62)`: "! does not fit", `bitshl(-3, 62)`: "! does not fit", `bitshl(1, -1)`: "! bits from 0, not -1", `bitshr(1, -1)`: "! bits from 0", `bitushr(1, -1)`: "! bits from 0",
		`bitand(1, 0.5)`: "! it takes whole numbers of 64 bits, not 0.5", `bitor(above, 1)`: "! not 9223372036854775808", `bitxor(1, above)`: "! 64 bits", `bitnand(1.5, 1)`: "! 64 bits", `bitnot(0.5)`: "! 64 bits", `bitnot(above)`: "! 64 bits", `bitshl(0.5, 1)`: "! 64 bits", `bitshl(1, 0.5)`: "! 64 bits", `bitshr(above, 1)`: "! 64 bits", `bitushr(above, 1)`: "! 64 bits", `bitand(far, 1)`: "! the number 1e7000", `bitand("1", 1)`: "! the text", `bitand(1)`: "! two whole numbers", `bitnot()`: "! one whole number",
	} {
		out, err := must(t, source).Eval(t.Context(), exact(t, numbers))
		got := fmt.Sprint(out)
		if err != nil {
			got = "! " + err.Error()
		}
		if part, fails := strings.CutPrefix(want, "! "); got != want && (!fails || err == nil || !strings.Contains(got, part)) {
			t.Errorf("%s is %s, want %s", source, got, want)
		}
	}
}

// TestNumbersFail has what no number can be. None of it costs anything.
func TestNumbersFail(t *testing.T) {
	for source, want := range map[string]string{
		`far + 1`: "the number 1e7000 is too long, too large or too small", `1 - far`: "the number 1e7000", `far == far`: "the number 1e7000", `far > 1`: "the number 1e7000", `-far`: "the number 1e7000", `far in ids`: "the number 1e7000", `1 in [far]`: "the number 1e7000", `abs(far)`: "the number 1e7000", `max(1, far)`: "the number 1e7000", `sum([far])`: "the number 1e7000", `sort([far, 1])`: "the number 1e7000", `sortBy([far, 1], #)`: "the number 1e7000", `groupBy([far], #)`: "the number 1e7000", `uniq([far, far])`: "the number 1e7000", `list_contains([far], 1)`: "the number 1e7000", `mean(far)`: "the number 1e7000", `median([far, 1])`: "the number 1e7000", `[far] == [1]`: "the number 1e7000", `int(far)`: "the number 1e7000", `long + 1`: "34 digits", `wide * 2`: "34 digits", `wide == 1`: "34 digits",
		`farther * 2`: "1e1000000000", `million + 1`: "…", `million == million`: "34 digits", `ids[far]`: "a whole number is needed", `substring("abc", far)`: "whole number", `1..far`: "two whole numbers",
		`2 ** 1e9`: "too large or too small", `1.5 ** 1e9`: "too large", `2 ** 1e10`: "an exponent is at most", `huge ** huge`: "an exponent is at most", `huge ** 1e9`: "too large", `(-8) ** 0.5`: "a root of a negative number", `1e300 ** 1e300`: "exponent is at most", `reduce(1..100, #acc * #acc, 1e100)`: "too large", `huge * huge * huge * huge * huge * huge * huge * huge * huge * huge * huge * huge * huge * huge * huge * huge`: "too large", `small ** 100`: "too large or too small",
		`1 / 0`: "divides by zero", `0 / 0`: "divides by zero", `tenth / 0`: "divides by zero", `1 % 0`: "divides by zero", `tenth % 0.0`: "divides by zero", `0 ** -1`: "divides by zero", `1 / (id - id)`: "divides by zero",
		`ids[0.5]`: "a whole number is needed", `ids[:0.5]`: "a whole number is needed", `1..2.5`: ".. needs two whole numbers, not 1 and 2.5", `0..9223372036854775807`: "more than 1000000 numbers", `least..most`: "more than 1000000 numbers", `take(ids, 1.5)`: "take needs a whole number, not 1.5", `get(ids, 0.5)`: "get needs a whole number, not 0.5", `bitand(1, 0.5)`: "number", `split("a", "a", 0.5)`: "a whole number is needed", `substring("abc", 1.5)`: "whole number",
		`tenth.d`: "fails", `tenth.String`: "fails", `tenth.hi`: "fails", `len(tenth)`: "number", `tenth contains "a"`: "text", `upper(tenth)`: "upper needs a text, not 0.1", `tenth ? 1 : 2`: "wrong type", `tenth[0]`: "fails", `filter(ids, #)`: "wrong type", `map(tenth, #)`: "fails", `keys(tenth)`: "fails", `name_text + tenth`: "+ cannot add the text", `name_text - tenth`: "- needs two numbers, not the text", `name_text > tenth`: "> cannot compare the text", `tenth < null ?? 1`: "", `sort([1, "a"])`: "sort cannot compare", `sort([1, 2], "up")`: `the order is "asc" or "desc", not the text "up"`, `sort(tenth)`: "takes a list", `sortBy(orders, .n, "up")`: "the order is", `sum(["a"])`: "+ cannot add", `sum(tenth)`: "takes a list", `mean("a", 1)`: "takes numbers", `max("a")`: "takes numbers", `round(name_text)`: "takes a number, not the text", `int("1.5")`: "no whole number", `int("x")`: "no whole number", `float("x")`: "no number", `float("NaN")`: "no number", `float("0x10")`: "no number", `= number("1e7000")`: "no number", `-name_text`: "- needs a number, not the text", `+name_text`: "+ needs a number, not the text", `1 in tenth`: "in needs a list or an object, not 0.1", `1 in {"1": 1}`: "the key of an object is a text, not 1", `fromJSON("{")`: "is not JSON", `fromJSON("1 2")`: "is not JSON", `fromJSON(1)`: "takes a text", `round(1, 2)`: "takes one number, not 2", `type()`: "takes one value",
		// What is refused before it runs.
		`"a" - 1`: "cannot be read", `1 * true`: "cannot be read", `null / 1`: "cannot be read", `name_text < null`: "cannot be read", `"a" < 1`: "cannot be read", `"a" == 1`: "cannot be read", `0.5 != "a"`: "cannot be read", `-"a"`: "cannot be read", `1 in "abc"`: "cannot be read", `1 in 2.5`: "cannot be read", `"a"..2`: "cannot be read",
		`12345678901234567890123456789012345 + 1`: "cannot be computed with", `0.12345678901234567890123456789012345`: "34 digits", `1e7000`: "the number 1e7000 cannot be computed with", `1e-7000`: "cannot be computed with", `1e6145`: "exponent from -6143 to 6144", strings.Repeat("9", 5000): "34 digits", strings.Repeat("9", 35) + "e400": "34 digits", `"a" - 1e400`: "cannot have", `"a" == 1e400`: "cannot have", `1 2.5`: "cannot be read",
	} {
		if want == "" {
			continue
		}
		v := exact(t, numbers)
		v["million"], v["name_text"] = json.Number(strings.Repeat("7", 1_000_000)), "text"
		p, err := expression.Compile(source)
		var out any
		if err == nil {
			out, err = p.Eval(t.Context(), v)
		}
		if err == nil {
			t.Errorf("%s is %.60s", source, fmt.Sprint(out))
		} else if !strings.Contains(err.Error(), want) || tapedeck.KindOf(err) != tapedeck.Invalid || strings.Contains(err.Error(), "__") || strings.Contains(err.Error(), "expression.") || strings.Contains(err.Error(), "\n") || len(err.Error()) > 700 {
			t.Errorf("%.60s: error %q, want a part %q", source, err, want)
		}
	}
}

// TestManyNumbers: the bounds of size and time hold for decimals, too.
func TestManyNumbers(t *testing.T) {
	double := "let a0 = groupBy([0.1], 1); "
	for i := range 60 {
		double += fmt.Sprintf("let a%d = groupBy([a%d, a%d], 1); ", i+1, i, i)
	}
	synctest.Test(t, func(t *testing.T) { // its clock stands still while the evaluation runs: the time does not count
		begin := time.Now()
		for source, want := range map[string]string{
			double + "a60 == a60": "more than 1 MiB", double + "a60": "more than 1 MiB",
			`map(1..100000, # + 0.1)`: "more than 1 MiB", `all(map(1..9000, # + 0.1), all(1..9000, # > 0.5))`: "too many steps", `let a = [0.1, 0.2]; let b = [a,a,a,a,a,a,a,a,a,a]; let c = [b,b,b,b,b,b,b,b,b,b]; let d = [c,c,c,c,c,c,c,c,c,c]; let e = [d,d,d,d,d,d,d,d,d,d]; let f = [e,e]; f`: "more than 1 MiB",
		} {
			out, err := must(t, source).Eval(t.Context(), nil)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %.60s, %v", source, fmt.Sprint(out), err)
			}
		}
		if time.Since(begin) != 0 {
			t.Error("the clock has moved")
		}
	})
}

func TestNumbersOfCallers(t *testing.T) {
	v := map[string]any{"a": 0.1, "b": float64(1 << 60), "c": int64(7), "d": json.Number("1.50"), "e": float32(0.5), "f": []any{0.2}}
	for source, want := range map[string]string{`a + f[0]`: "0.3", `b`: "1152921504606847000", `b + 1`: "1152921504606847001", `c`: "7", `d`: "1.5", `e`: "0.5", `{{ d }} {{ a + f[0] }}`: `"1.5 0.3"`} {
		p, err := expression.ParseExpression(source)
		if strings.Contains(source, "{{") {
			p, err = expression.ParseValue(source)
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Eval(t.Context(), v)
		if b, _ := json.Marshal(out); err != nil || string(b) != want {
			t.Errorf("%s is %s, %v", source, b, err)
		}
	}
	if !reflect.DeepEqual(v["f"], []any{0.2}) {
		t.Error("the variables have changed")
	}
	for text, want := range map[string]string{"9007199254740993": "9007199254740993", "12.50": "12.5", "3.0": "3", "1e7000": "", "x": "", "": ""} {
		got, err := expression.ParseNumber(text)
		if (err != nil) != (want == "") || err == nil && fmt.Sprint(got) != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "{", "1 2", "nul", `{"a":}`} {
		if v, err := expression.Decode([]byte(bad)); err == nil {
			t.Errorf("%q is %v", bad, v)
		}
	}
}

// TestCompileAtOnce: compilations share what they have in common. The race detector looks.
func TestCompileAtOnce(t *testing.T) {
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for _, source := range []string{`sum([0.1, 0.2]) == 0.3`, `now()`, `round(1.5) ** 2 > 3`, `sort([2, 1.5])[0] in [1.5]`} {
				if p, err := expression.Compile(source); err == nil {
					if v, err := p.Eval(t.Context(), nil); v != true || err != nil {
						t.Errorf("%s is %v, %v", source, v, err)
					}
				} else if source != `now()` {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkNumbers(b *testing.B) {
	v := exact(b, numbers)
	for _, source := range []string{`id > 10 and id != 7`, `id + 1 - 2`, `price * 3 + 0.5`, `price > 10`, `sum(map(orders, .n))`, `filter(1..1000, # % 7 == 0)`, `reduce(1..1000, #acc + # * 2, 0)`, `1 / 3`} {
		p, err := expression.Compile(source)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("compile "+source, func(b *testing.B) {
			for b.Loop() {
				if _, err := expression.Compile(source); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(source, func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Eval(b.Context(), v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
