package expression_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

// TestCharacters has every way to count in a text: all count characters, which are code points.
func TestCharacters(t *testing.T) {
	v := map[string]any{"t": "\u00e9b\U0001f600", "n": nil, "list": []any{1, 2}, "o": map[string]any{"\u00e9": 1}}
	for source, want := range map[string]string{
		`len(t)`: `3`, `t[0]`: `"é"`, `t[1]`: `"b"`, `t[-1]`: `"😀"`, `t?.[2]`: `"😀"`, `n?.[0].x`: `null`, `t[len(t) - 1]`: `"😀"`, `"éb"[1]`: `"b"`,
		`t[0:1]`: `"é"`, `t[1:]`: `"b😀"`, `t[:2]`: `"éb"`, `t[:]`: `"éb😀"`, `t[-1:]`: `"😀"`, `t[:-1]`: `"éb"`, `t[2:1]`: `""`, `t[7:9]`: `""`, `t[-9:1]`: `"é"`, `"éb"[1:2]`: `"b"`,
		`indexOf(t, "b")`: `1`, `indexOf(t, "😀")`: `2`, `indexOf(t, "x")`: `-1`, `lastIndexOf(t, "é")`: `0`, `lastIndexOf(t + t, "é")`: `3`, `t[indexOf(t, "b"):]`: `"b😀"`,
		`first(t)`: `"é"`, `last(t)`: `"😀"`, `get(t, 1)`: `"b"`, `get(t, 9)`: `null`, `first("")`: `null`, `split(t, "")`: `["é","b","😀"]`, `= substring(t, 2, 1)`: `"b"`, `= string length(t)`: `3`,
		`fromBase64(toBase64(t))`: `"éb😀"`, `list[-1]`: `2`, `list[:1]`: `[1]`, `o["é"]`: `1`, `o[t[0]]`: `1`, `first(list)`: `1`, `get(o, "é")`: `1`,
		`{9007199254740993000000: 1}`: `{"9007199254740993000000":1}`, `{1e400: 1}`: `{"1e400":1}`,
		`t[3]`: "! index out of range: 3", `t[0.5]`: "! a whole number is needed", `t["a"]`: "! a whole number is needed", `list["a":1]`: "! a whole number is needed", `o[0:1]`: "! only lists and texts can be sliced, not an object", `n[0:1]`: "! not null",
		`map(t, #)`: "! map takes a list, not the text", `all(t, true)`: "! all takes a list", `count(t, true)`: "! count takes a list", `count(t)`: "! count takes a list", `sum(t, 1)`: "! sum takes a list", `take(t, 1)`: "! take takes a list", `reverse(t)`: "! reverse takes a list",
		`sortBy(t, #)`: "! sortBy takes a list", `reduce(t, #acc + #)`: "! reduce takes a list", `filter(3.5 + list[0], true)`: "! filter takes a list, not 4.5", `fromBase64("/w==")`: "! is not the Base64 of a text", `indexOf(t)`: "! two texts",
	} {
		got := ""
		out, err := must(t, source).Eval(t.Context(), v)
		if b, _ := json.Marshal(out); err == nil {
			got = string(b)
		} else {
			got = "! " + err.Error()
		}
		part, fails := strings.CutPrefix(want, "! ")
		if fails != (err != nil) || fails && (!strings.Contains(got, part) || tapedeck.KindOf(err) != tapedeck.Invalid) || !fails && got != want {
			t.Errorf("%s is %s, want %s", source, got, want)
		}
	}
}

// TestSlices: parts of a text are texts, and together they are the text; the bounds mean what
// they mean for the list of its characters.
func TestSlices(t *testing.T) {
	parts := []string{"a", "\u00e9", "e\u0301", "\U0001f600", "\U0001f469\u200d\U0001f680", "\u65e5", "\x00", "\u0600"}
	slices, index := must(t, `[t[:a] + t[a:], t[a:b], join(split(t, "")[a:b]), t[:a], len(t[:a]) + len(t[a:]), len(t)]`), must(t, `[t[a], split(t, "")[a], indexOf(t, t[a:])]`)
	for range 2000 {
		text := ""
		for range rand.IntN(8) {
			text += parts[rand.IntN(len(parts))]
		}
		n := utf8.RuneCountInString(text)
		v := map[string]any{"t": text, "a": rand.IntN(2*n+5) - n - 2, "b": rand.IntN(2*n+5) - n - 2}
		out, err := slices.Eval(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		got := out.([]any)
		if got[0] != text || got[1] != got[2] || !utf8.ValidString(got[1].(string)) || !utf8.ValidString(got[3].(string)) || got[4] != n || got[5] != n {
			t.Fatalf("%q: %q with %d characters", v, got, n)
		}
		out, err = index.Eval(t.Context(), v)
		if inside := v["a"].(int) >= -n && v["a"].(int) < n; inside != (err == nil) {
			t.Fatalf("%q: %v", v, err)
		} else if got, ok := out.([]any); inside && (!ok || got[0] != got[1] || got[2].(int) < 0) {
			t.Fatalf("%q: %q", v, got)
		}
	}
}
