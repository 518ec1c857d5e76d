package search

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

func TestParseSearch(t *testing.T) {
	for _, c := range []struct {
		text string
		want []Term
	}{
		{`login bug`, []Term{of("login"), of("bug")}},
		{`"login  Bug" fix*`, []Term{of("login", "bug"), starts("fix")}},
		{`fix -"not this" -that -th*`, []Term{of("fix"), no(of("not", "this")), no(of("that")), no(starts("th"))}},
		{`"open end`, []Term{of("open", "end")}},
		{`a"b"c`, []Term{of("a"), of("b"), of("c")}},
		{`"one two"* x`, []Term{starts("one", "two"), of("x")}},
		{`* - -- "" "*" x`, []Term{of("x")}},
		{`AND NEAR(a) body:x ^y {z}`, []Term{of("and"), of("near", "a"), of("body", "x"), of("y"), of("z")}},
		{"\xffx\x00y", []Term{of("x", "y")}},
		{`自行车 -火 使用Tapedeck服务*`, []Term{of("自行", "行车"), no(starts("火")), of("使用", "用", "tapedeck", "服务")}},
		{"\u0301\u3099 ½x", []Term{of("12x")}},
		{"  \t ", nil},
		{"-only -not", nil},
		{strings.Repeat("x", 1025), nil},
		{strings.Repeat("x ", 33), nil},
	} {
		got, err := Parse(c.text)
		if (err != nil) != (c.want == nil) || err != nil && tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("%q: %v", c.text, err)
		} else if d := cmp.Diff(c.want, got); err == nil && d != "" {
			t.Errorf("%q: %s", c.text, d)
		}
	}
}

func of(words ...string) Term     { return Term{Words: words} }
func starts(words ...string) Term { return Term{Words: words, Prefix: true} }

func no(t Term) Term {
	t.Not = true
	return t
}

func FuzzParseSearch(f *testing.F) {
	f.Add(`a "b c" -d* "`)
	f.Fuzz(func(t *testing.T, text string) {
		terms, err := Parse(text)
		if err == nil && len(terms) == 0 {
			t.Errorf("%q has no terms and no error", text)
		}
	})
}
