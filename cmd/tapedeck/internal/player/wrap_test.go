package player

import (
	"slices"
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  []string
	}{
		{"", 4, nil},
		{"abcdef", 4, []string{"abcd", "ef"}},
		{"abcd", 4, []string{"abcd"}},
		{"a\n\nb", 4, []string{"a", "", "b"}},
		{"a\tb", 20, []string{"a       b"}},
		{"日本語", 5, []string{"日本", "語"}},
		{"e\u0301e\u0301e", 2, []string{"e\u0301e\u0301", "e"}},
		{"\x1b[1mabcdef\x1b[0mg", 4, []string{"\x1b[1mabcd\x1b[0m", "\x1b[1mef\x1b[0mg"}},
		{"日", 1, []string{"日"}}, // it does not fit into one column
	} {
		if got := wrap(c.in, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d: %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func TestLastRows(t *testing.T) {
	text := "one\ntwo\n" + strings.Repeat("x", 25) + "\nend"
	for n, want := range map[int][]string{
		1: {"end"},
		3: {strings.Repeat("x", 10), "xxxxx", "end"},
		9: {"one", "two", strings.Repeat("x", 10), strings.Repeat("x", 10), "xxxxx", "end"},
	} {
		if got := lastRows(text, 10, n); !slices.Equal(got, want) {
			t.Errorf("%d rows: %q, want %q", n, got, want)
		}
		if got := lastRows(text+"\n", 10, n); !slices.Equal(got, want) {
			t.Errorf("%d rows after a line end: %q, want %q", n, got, want)
		}
	}
}

func TestKeys(t *testing.T) {
	for in, want := range map[string][]key{
		"q":              {'q'},
		"q \x03":         {'q', ' ', keyCtrlC},
		"\x1b[D\x1b[C":   {keyLeft, keyRight},
		"\x1bOH\x1b[F":   {keyHome, keyEnd},
		"\x1b[1~\x1b[4~": {keyHome, keyEnd},
		"\x1b[1;5Aq":     {keyNone, 'q'}, // a key without an action
		"\x1bq":          {keyNone, 'q'},
		"ä":              {'ä'},
		"\xff" + "q":     {'\uFFFD', 'q'},
	} {
		if got := readKeys([]byte(in)); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
		for cut := range len(in) { // the bytes arrive in two parts
			var got []key
			rest := []byte(in[:cut])
			for k, n := nextKey(rest); n > 0; k, n = nextKey(rest) {
				got, rest = append(got, k), rest[n:]
			}
			if got = append(got, readKeys(append(rest, in[cut:]...))...); !slices.Equal(got, want) {
				t.Errorf("%q cut at %d: %v, want %v", in, cut, got, want)
			}
		}
	}
	if _, n := nextKey([]byte("\x1b[" + strings.Repeat("1;", 40))); n == 0 {
		t.Error("a sequence without an end blocks all later keys")
	}
}

func readKeys(b []byte) (keys []key) {
	for k, n := nextKey(b); n > 0; k, n = nextKey(b) {
		keys, b = append(keys, k), b[n:]
	}
	return keys
}
