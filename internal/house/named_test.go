package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// checkNamed checks that everything exists that the last column of the tables of a page
// in docs names: a file, or a test in a package or file. There must be at least the
// minimum of names.
func checkNamed(t *testing.T, note string, minimum int) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("../../docs", note))
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
	if named < minimum {
		t.Errorf("only %d tests and files were found in the tables of %s", named, note)
	}
}

// hasTest reports whether a package, or a file of the screen, has a test.
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

// TestSourcesAreShown checks the table of the source documents' requirements.
func TestSourcesAreShown(t *testing.T) { checkNamed(t, "design/0007-what-the-sources-ask.md", 80) }

// TestPromisesAreChecked checks the tables of the promises, and that they mark with "(full)"
// the tests that the gate leaves out, because they skip with -short.
func TestPromisesAreChecked(t *testing.T) {
	const note = "design/0013-promises.md"
	checkNamed(t, note, 60)
	doc, err := os.ReadFile(filepath.Join("../../docs", note))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`([a-z0-9_./]+) (Test\\w+)`( \\(full\\))?").FindAllStringSubmatch(string(doc), -1) {
		if marked, full := m[3] != "", onlyInFull(t, m[1], m[2]); marked != full {
			t.Errorf("%s %s: marked %v, is only in make full: %v", m[1], m[2], marked, full)
		}
	}
}

var skipsIfShort = regexp.MustCompile(`^.*\n\tif testing\.Short\(\) \{\n\t\tt\.Skip`)

// onlyInFull reports whether a test of a package skips with -short.
func onlyInFull(t *testing.T, where, test string) bool {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join("../..", where, "*_test.go"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, body, ok := strings.Cut(string(b), "\nfunc "+test+"(t *testing.T)"); ok {
			return skipsIfShort.MatchString(body)
		}
	}
	return false
}

// TestReliabilityIsTested checks the tables of the faults and of the attacks.
func TestReliabilityIsTested(t *testing.T) {
	checkNamed(t, "reliability.md", 30)
	checkNamed(t, "threat-model.md", 30)
}
