package view

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestLineDiff(t *testing.T) {
	for _, c := range []struct {
		before, after  string
		added, removed int64
	}{
		{"", "", 0, 0},
		{"", "a", 1, 0},
		{"a\n", "", 0, 1},
		{"a", "a\n", 0, 0},
		{"a\r\nb", "a\nb", 0, 0},
		{"\n", "", 0, 1},
		{"a\nb\nc", "a\nx\nc", 1, 1},
		{"a\nb\nc\nd", "c\nd\na\nb", 2, 2},
		{"a\nb", "a\nb\nb", 1, 0},
		{strings.Repeat("x\n", 3000), strings.Repeat("y\nx\n", 3000), 5999, 2999}, // too large to compare, except at the end
		{strings.Repeat("a\nb\n", 1000) + "end", strings.Repeat("b\na\n", 1000) + "END", 2001, 2001},
	} {
		added, removed := lineDiff(c.before, c.after, new(maxDiff))
		if added != c.added || removed != c.removed {
			t.Errorf("%.40q to %.40q: %d added, %d removed", c.before, c.after, added, removed)
		}
	}
}

// TestLineDiffIsSane compares the counts with bounds from the number of equal
// lines.
func TestLineDiffIsSane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", ""}), 0, 12)
		a, b := lines.Draw(t, "before"), lines.Draw(t, "after")
		before, after := strings.Join(a, "\n"), strings.Join(b, "\n")
		added, removed := lineDiff(before, after, new(maxDiff))
		if added-removed != countLines(after)-countLines(before) || added > countLines(after) || removed > countLines(before) || added < 0 || removed < 0 {
			t.Fatalf("%d added, %d removed", added, removed)
		}
		back, forth := lineDiff(after, before, new(maxDiff))
		if back != removed || forth != added {
			t.Fatalf("there %d and %d, and back %d and %d", added, removed, back, forth)
		}
	})
}

func TestLabel(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"two \n\twords":                "two words",
		"\x1b[31mred\x1b[0m":           "[31mred[0m",
		"left\u202eright\u200b":        "leftright",
		"👩\u200d🚀":                     "👩\u200d🚀",
		strings.Repeat("é", 100):       strings.Repeat("é", 80),
		strings.Repeat("x", 79) + " y": strings.Repeat("x", 79),
		"a\xffb":                       "a\uFFFDb",
	} {
		if got := label(text); got != want || utf8.RuneCountInString(got) > maxLabel {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// FuzzEdits reads any arguments, because a model writes them.
func FuzzEdits(f *testing.F) {
	for _, s := range []string{
		`{"file_path":"a","content":"x\n"}`, `{"path":"a","edits":[{"old_str":"x","new_str":"y"},7,null]}`, `{"path":"a","edits":{}}`,
		"*** Begin Patch\n*** Update File: a\n+x\n-y\n", `{"input":"*** Add File: \n+"}`, `{"newText":null,"path":"x"}`, `[`, `null`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, args string) {
		for _, tool := range []string{"Write", "apply_patch", "mcp__x__edit", "other"} {
			for _, e := range editsOf(isEditor(tool), []byte(args)) {
				if e.Added < 0 || e.Removed < 0 || e.Added+e.Removed > int64(len(args))*2+2 {
					t.Errorf("%s %q: %+v", tool, args, e)
				}
			}
		}
	})
}
