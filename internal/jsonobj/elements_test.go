package jsonobj

import (
	"slices"
	"testing"
)

func TestElements(t *testing.T) {
	for text, want := range map[string][]string{
		`[]`: nil, ` [ ] `: nil, `[1]`: {"1"}, ` [ "a,]" , {"b":[1,2]} ,null] `: {`"a,]"`, `{"b":[1,2]}`, "null"},
	} {
		var got []string
		a := ReadArray([]byte(text))
		for v, ok := a.Next(); ok; v, ok = a.Next() {
			got = append(got, string(v))
		}
		if a.Bad || !slices.Equal(got, want) {
			t.Errorf("%s: %q, bad %t; want %q", text, got, a.Bad, want)
		}
	}
	for _, text := range []string{``, `{}`, `[`, `[1`, `[1,`, `[1 2]`, `[,]`, `["a]`, `[1]2`, `[1,]`, `[{]`} {
		a := ReadArray([]byte(text))
		for _, ok := a.Next(); ok; _, ok = a.Next() {
		}
		if !a.Bad && text != `[{]` { // brackets are only counted
			t.Errorf("%s is not malformed", text)
		}
	}
}
