package subscription

import (
	"strings"
	"testing"
)

func TestGlobs(t *testing.T) {
	for pattern, paths := range map[string]string{
		"events/*":       "events/a events/b.c !events !events/a/b !other/a",
		"**":             "a a/b a/b/c",
		"*":              "a !a/b",
		"a/**":           "a a/b a/b/c !b !ab",
		"**/c":           "c a/c a/b/c !a/c/d",
		"a/**/d":         "a/d a/b/d a/b/c/d !a !d !a/d/e",
		"**/b/**":        "b a/b b/c a/b/c !a",
		"a*c/x":          "ac/x abc/x aXXc/x !a/x !abd/x",
		"*/*":            "a/b !a !a/b/c",
		"a/**/b/**/c":    "a/b/c a/x/b/y/z/c a/b/b/c !a/c",
		"exact":          "exact !exactly !Exact",
		"sessions/*":     "sessions/ses_1 !sessions !sessions/a/views/agui",
		"a.b":            "a.b !axb",
		"[a-z]":          "[a-z] !b",
		"":               "!a",
		"a/**/**/**/b/*": "a/b/c !a/b",
	} {
		for p := range strings.FieldsSeq(paths) {
			path, no := strings.CutPrefix(p, "!")
			if parseGlob(pattern).match(path) == no {
				t.Errorf("%q and %q: %t", pattern, path, no)
			}
		}
	}
}

// TestHostileGlobs: with recursion for each wildcard these would take years.
func TestHostileGlobs(t *testing.T) {
	for _, p := range []string{strings.Repeat("*a", 250) + "b", strings.Repeat("**/a/", 80) + "b", strings.Repeat("**/*a*/", 60) + "c"} {
		if err := checkPattern(p); err != nil {
			t.Fatal(err)
		}
		if g := parseGlob(p); g.match(strings.Repeat("a", 500)) || g.match(strings.Repeat("a/", 250)+"a") {
			t.Errorf("%.20s matches", p)
		}
	}
}
