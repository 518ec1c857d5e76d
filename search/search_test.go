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
		{`login bug`, []Term{{Words: "login"}, {Words: "bug"}}},
		{`"login  bug" fix*`, []Term{{Words: "login  bug"}, {Words: "fix", Prefix: true}}},
		{`fix -"not this" -that -th*`, []Term{{Words: "fix"}, {Words: "not this", Not: true}, {Words: "that", Not: true}, {Words: "th", Prefix: true, Not: true}}},
		{`"open end`, []Term{{Words: "open end"}}},
		{`a"b"c`, []Term{{Words: "a"}, {Words: "b"}, {Words: "c"}}},
		{`"one two"* x`, []Term{{Words: "one two", Prefix: true}, {Words: "x"}}},
		{`* - -- "" "*" x`, []Term{{Words: "x"}}},
		{`AND NEAR(a) body:x ^y {z}`, []Term{{Words: "AND"}, {Words: "NEAR(a)"}, {Words: "body:x"}, {Words: "^y"}, {Words: "{z}"}}},
		{"\xffx\x00y", []Term{{Words: "x\x00y"}}},
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

func FuzzParseSearch(f *testing.F) {
	f.Add(`a "b c" -d* "`)
	f.Fuzz(func(t *testing.T, text string) {
		terms, err := Parse(text)
		if err == nil && len(terms) == 0 {
			t.Errorf("%q has no terms and no error", text)
		}
	})
}
