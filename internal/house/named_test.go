package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// checkNamed looks for everything that is named in the last column of the tables
// of a design note: a file, or a package or file and a test in it. It wants at
// least so many of them.
func checkNamed(t *testing.T, note string, least int) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("../../docs/design", note))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[len(cells)-2], -1) {
			named++
			if where, test, ok := strings.Cut(m[1], " "); !ok {
				if _, err := os.Stat(filepath.Join("../..", where)); err != nil {
					t.Errorf("there is no file %s", where)
				}
			} else if !hasTest(t, where, test) {
				t.Errorf("%s has no test %q", where, test)
			}
		}
	}
	if named < least {
		t.Errorf("only %d tests and files were found in the tables of %s", named, note)
	}
}

// hasTest looks in a package, or in a file of the screen.
func hasTest(t *testing.T, where, test string) bool {
	t.Helper()
	pattern, want := filepath.Join(where, "*_test.go"), "\nfunc "+test+"(t *testing.T)"
	if strings.HasSuffix(where, ".ts") || strings.HasSuffix(where, ".tsx") {
		pattern, want = where, `"`+test+`"`
	}
	files, _ := filepath.Glob(filepath.Join("../..", pattern))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), want) {
			return true
		}
	}
	return false
}

// The table of what the source documents ask names tests and files. All of them
// are there.
func TestSourcesAreShown(t *testing.T) { checkNamed(t, "0007-what-the-sources-ask.md", 80) }

// So does the one of what we promise.
func TestPromisesAreChecked(t *testing.T) { checkNamed(t, "0013-promises.md", 60) }
