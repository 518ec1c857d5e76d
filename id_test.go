package tapedeck

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

func TestNewID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		for range 100 {
			ids = append(ids, NewID("ses_"))
			time.Sleep(time.Millisecond) // the clock of the test's bubble
		}
		if !slices.IsSorted(ids) {
			t.Error("ids of later milliseconds do not sort after earlier ones")
		}
		for _, id := range ids {
			if len(id) != 30 || CheckID("id", id) != nil || strings.ContainsAny(id[4:], "ILOU") {
				t.Errorf("NewID gave %q", id)
			}
		}
		if a, b := NewID(""), NewID(""); a == b || a[:10] != b[:10] {
			t.Errorf("%s and %s are of one millisecond", a, b)
		}
	})
}

func TestCheckID(t *testing.T) {
	for _, id := range []string{
		"a", "A", "0", "_", "main", "thread_Task-1.2:3@x", "RUN_STARTED", "message.added", strings.Repeat("x", maxIDLen),
	} {
		if err := CheckID("the id", id); err != nil {
			t.Errorf("%q is refused: %v", id, err)
		}
	}
	for name, id := range map[string]string{
		"empty": "", "dot": ".", "dots": "..", "path": "../etc/passwd", "slash": "a/b", "backslash": `a\b`, "space": "a b",
		"dash first": "-a", "dot first": ".a", "colon first": ":a", "nul": "a\x00", "line end": "a\nb", "quote": `a"b`, "percent": "a%2e",
		"letter beyond ASCII": "é", "not UTF-8": "a\xff", "too long": strings.Repeat("x", maxIDLen+1), "4 KB": strings.Repeat("x", 4096),
	} {
		err := CheckID("the id", id)
		if KindOf(err) != Invalid {
			t.Errorf("%s: got %v", name, err)
		} else if len(err.Error()) > 4*maxIDLen || !utf8.ValidString(err.Error()) {
			t.Errorf("%s: the error is unfit to show: %q", name, err)
		}
	}
}

func TestCheckPath(t *testing.T) {
	for _, p := range []string{"a", "a/b/c", "a b", "é/界", "...", "a.b", ".hidden", strings.Repeat("x", maxPathLen)} {
		if err := CheckPath(p); err != nil {
			t.Errorf("%q is refused: %v", p, err)
		}
	}
	for _, p := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", `a\b`, "a\x00b", "a\nb", "a\u0085b", "a\xff", strings.Repeat("x", maxPathLen+1),
	} {
		if err := CheckPath(p); KindOf(err) != Invalid {
			t.Errorf("%q: got %v", p, err)
		}
	}
}

func TestCheckName(t *testing.T) {
	for _, s := range []string{"", "Ada's session", "user:ada", "界", strings.Repeat("x", maxNameLen)} {
		if err := CheckName("the title", s); err != nil {
			t.Errorf("%q is refused: %v", s, err)
		}
	}
	for _, s := range []string{"a\nb", "\x1b[31m", "\x00", "\u009b", "a\xff", strings.Repeat("x", maxNameLen+1)} {
		if err := CheckName("the title", s); KindOf(err) != Invalid {
			t.Errorf("%q: got %v", s, err)
		}
	}
}

func FuzzCheckID(f *testing.F) {
	for _, s := range []string{"a", "..", "a/b", "é", "\x00", "-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if err := CheckID("the id", s); err != nil {
			if KindOf(err) != Invalid {
				t.Fatal(err)
			}
			return
		}
		if s == "" || len(s) > maxIDLen || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:@") != "" {
			t.Fatalf("%q passes", s)
		}
		if CheckPath(s) != nil || CheckName("it", s) != nil {
			t.Fatalf("%q is an id, but no path or no name", s)
		}
	})
}

func FuzzCheckPath(f *testing.F) {
	for _, s := range []string{"a/b", "../a", "a//b", `a\..\b`, "é", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if CheckPath(s) != nil {
			return
		}
		for seg := range strings.SplitSeq(s, "/") {
			if seg == "" || seg == "." || seg == ".." || strings.ContainsAny(seg, "\\\x00\n") {
				t.Fatalf("%q passes", s)
			}
		}
	})
}
