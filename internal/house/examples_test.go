package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown matches a block of a page that names the file it shows, such as "```ts route.ts",
// relative to the page. A diff shows how a file begins, and is the file with its changes.
var shown = regexp.MustCompile("(?ms)^```(\\w+) (\\S+)\n(.*?)^```$")

// TestExamplesAreTheTestedFiles compares the programs that the pages show with the files that
// `make packages` and `make python` run, and looks that the README shows each example.
func TestExamplesAreTheTestedFiles(t *testing.T) {
	pages, err := filepath.Glob("../../examples/*/README.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d examples, %v", len(pages), err)
	}
	inReadme := compareShown(t, "../../README.md")
	for _, page := range pages {
		folder := filepath.Dir(page)
		if !inReadme[folder] {
			t.Errorf("README.md shows no file of %s", folder)
		}
		compareShown(t, page)
	}
}

// compareShown compares the blocks of a page, and returns the folders of the files they show.
func compareShown(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]bool{}
	for _, block := range shown.FindAllStringSubmatch(string(text), -1) {
		file := filepath.Join(filepath.Dir(page), block[2])
		folders[filepath.Dir(file)] = true
		want, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%s: %v", page, err)
			continue
		}
		got := block[3]
		if block[1] == "diff" {
			got = changed(got)
		}
		if got != string(want) {
			t.Errorf("%s does not show %s as it is", page, file)
		}
	}
	return folders
}

// changed returns what a diff leaves.
func changed(diff string) string {
	var out strings.Builder
	for line := range strings.Lines(diff) {
		if !strings.HasPrefix(line, "-") {
			out.WriteString(line[1:])
		}
	}
	return out.String()
}
