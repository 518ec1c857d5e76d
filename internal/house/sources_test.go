package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table of what the source documents ask names tests and files. All of them
// are there.
func TestSourcesAreShown(t *testing.T) {
	doc, err := os.ReadFile("../../docs/design/0007-what-the-sources-ask.md")
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
			if pkg, test, ok := strings.Cut(m[1], " "); ok {
				if !hasTest(t, pkg, test) {
					t.Errorf("package %s has no %s", pkg, test)
				}
			} else if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Errorf("there is no file %s", m[1])
			}
		}
	}
	if named < 80 {
		t.Errorf("only %d tests and files were found in the table", named)
	}
}

func hasTest(t *testing.T, pkg, test string) bool {
	files, _ := filepath.Glob(filepath.Join("../..", pkg, "*_test.go"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "\nfunc "+test+"(t *testing.T)") {
			return true
		}
	}
	return false
}
