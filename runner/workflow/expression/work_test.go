package expression_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

// hostile are expressions whose work is not in the number of their elements but in what is done
// with each of them. Without a count of that work they take minutes.
var hostile = []string{
	`all(big, all(big, true))`, `all(big, 1 not in big)`, `all(big, big == same)`, `all(big, 1 in [big, same] or true)`, `all(big, count(trues) > 0)`, `all(big, len(flatten(nested)) == 0)`,
	`all(big, long contains "xxxxxxxxxy" or true)`, `all(big, not (long startsWith other))`, `all(big, len(long) > 0)`, `all(big, long != other)`, `all(big, long < other)`, `all(big, indexOf(long, "y") < 0)`, `all(big, lastIndexOf(long, "y") < 0)`,
	`all(big, upper(long) != "")`, `all(big, trim(long, "x") == "")`, `trim(umlauts, cut) == ""`, `all(big, hasPrefix(long, other) or true)`, `all(big, string(big) != "")`, `all(big, join(big, "") == "")`, `all(big, toJSON(small) != "")`,
	`all(big, fromJSON(json) != null)`, `all(big, len(uniq(small)) > 0)`, `all(big, len(sort(numbers)) > 0)`, `all(big, len(sortBy(numbers, -#)) > 0)`, `all(big, median(numbers) > 0)`, `all(big, max(numbers) > 0)`, `all(big, sum(numbers) > 0)`, `all(big, mean(numbers) > 0)`, `all(big, len(concat(big, big)) > 0)`,
	`all(big, len(append(big, 1)) > 0)`, `all(big, is_empty(1..5000) or true)`, `all(big, object == object)`, `all(big, "a" in object or true)`, `all(big, 1 in toPairs(object) or true)`, `all(big, object[long] == null)`, `all(big, len(keys(object)) > 0)`, `all(big, len(fromPairs(toPairs(object))) > 0)`,
	`all(big, 1.1 ** 0.3 > 0)`, `all(big, 1.000001 ** 1000000000 > 0)`, `all(big, 1.1 ** 3 > 0)`, `all(big, long matches "x*y" or true)`, `all(big, long matches "(x|xx)*y" or true)`, `= all(big, len(replace(long, "x", "y")) > 0)`, `= all(big, len(split(long, "y")) > 0)`, `= all(big, len(replace("x", "` + strings.Repeat("(a|b)", 2000) + `", "y")) > 0)`,
	`all(big, replace(long, "x", "y") != "")`, `all(big, substring(long, 2) != "")`, `all(big, string_contains(long, other) or true)`, `all(big, long + "" != "")`, `all(big, len(long[1:]) > 0)`, `all(big, len(groupBy(small, long)) > 0)`, `all(big, len(reverse(small)) > 0)`, `all(big, len(split(long, "y")) > 0)`,
	`all(big, ` + strings.Repeat(`1 / 3 + `, 150) + `1 > 0)`, `all(big, ` + strings.Repeat(`ok and `, 900) + `ok)`, `all(big, [1, 2, 3] != null)`, `reduce(big, concat(#acc, [1]), [])`, `all(big, (1..500) == (1..500))`,
}

func hostileVariables() map[string]any {
	v := map[string]any{
		"ok":  true,
		"big": make([]any, 2_000), "same": make([]any, 2_000), "trues": make([]any, 2_000), "nested": make([]any, 2_000), "small": make([]any, 1000), "numbers": make([]any, 2_000), "object": map[string]any{},
		"long": strings.Repeat("x", 50_000), "other": strings.Repeat("x", 49_999) + "y", "umlauts": strings.Repeat("ä", 25_000), "cut": strings.Repeat("ö", 25_000) + "ä", "json": `[` + strings.Repeat(" ", 50_000) + `]`,
	}
	for name, value := range map[string]any{"trues": true, "nested": []any{}} {
		for i := range v[name].([]any) {
			v[name].([]any)[i] = value
		}
	}
	for i := range v["numbers"].([]any) {
		v["numbers"].([]any)[i] = 7919 * i % 10_000
	}
	for i := range 10_000 {
		v["object"].(map[string]any)[strings.Repeat("k", i%20)+string(rune('a'+i%26))+string(rune(0x4e00+i))] = i
	}
	return v
}

// TestKept: the elements of a list are counted while it is made, not only when it is complete. Its
// elements can be a thousand times as large as the list may be.
func TestKept(t *testing.T) {
	v := hostileVariables()
	v["longer"] = strings.Repeat("x", 200_000)
	many := strings.Repeat("longer + \"x\", ", 320) + "1"
	for _, source := range []string{
		`len(map(big, long + "x")) > 0`, `len(groupBy(numbers, long + string(#))) > 0`, `sum(big, len(long)) > 0 and len(sortBy(numbers, long + string(#))) > 0`,
		`len(map(big, len(map(1..2, long + "x")))) > 0`, `len([` + many + `]) > 0`, `len({"a": [` + many + `]}) > 0`, `len(map(big, split(long, "x"))) > 0`,
	} {
		_, err := must(t, source).Eval(t.Context(), v)
		if err == nil || !strings.Contains(err.Error(), "it makes lists of more than 32 MiB together") {
			t.Errorf("%.60s: %v", source, err)
		}
	}
	if out, err := must(t, `len(map(1..10000, "a text of " + string(#))) + len(map(1..10000, [#, [# + 1]]))`).Eval(t.Context(), v); out != 20_000 || err != nil {
		t.Error(out, err)
	}
}

// A stopping is a context that is cancelled when it has been looked at a few times.
type stopping struct {
	context.Context
	left int
}

func (s *stopping) Err() error {
	if s.left--; s.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestStopped: an evaluation ends soon after its context, whatever it is busy with.
func TestStopped(t *testing.T) {
	defer expression.SetMaxSteps(60_000)()
	v := hostileVariables()
	for _, source := range hostile {
		p := must(t, source)
		for _, looks := range []int{0, 1} {
			ctx := &stopping{t.Context(), looks}
			if _, err := p.Eval(ctx, v); !errors.Is(err, context.Canceled) {
				t.Errorf("%.60s, stopped at look %d: %v", source, looks, err)
			}
		}
	}
	if _, err := must(t, `all(big, all(big, true))`).Bool(&stopping{t.Context(), 3}, v); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestHostile: the steps count all work, so they end what would be long. With as few steps as
// here, the elements of the list are not too many.
func TestHostile(t *testing.T) {
	defer expression.SetMaxSteps(6_000)()
	v := hostileVariables()
	if out, err := must(t, `all(big, 1 < 2 and ok and not (# == 1))`).Eval(t.Context(), v); out != true || err != nil {
		t.Error(out, err)
	}
	for _, source := range hostile {
		_, err := must(t, source).Eval(t.Context(), v)
		if err == nil || !strings.Contains(err.Error(), "it takes too many steps") {
			t.Errorf("%.60s: %v", source, err)
		}
	}
}
