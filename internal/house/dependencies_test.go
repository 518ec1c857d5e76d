package house

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// required matches a module that a go.mod requires directly.
var required = regexp.MustCompile(`(?m)^(?:require |\t)(\S+\.\S+) v\S+$`)

// TestEveryDependencyHasALine: docs/design/dependencies.md says why there is each module that we
// require.
func TestEveryDependencyHasALine(t *testing.T) {
	page := read(t, "../../docs/design/dependencies.md")
	for _, file := range []string{"../../go.mod", "../../adk/go.mod"} {
		all := required.FindAllStringSubmatch(read(t, file), -1)
		if len(all) == 0 {
			t.Errorf("%s requires nothing", file)
		}
		for _, m := range all {
			// "otel/trace" stands for what begins as a module that is named whole.
			parts := strings.Split(m[1], "/")
			short := strings.Join(parts[max(0, len(parts)-2):], "/")
			if m[1] != module && !strings.Contains(page, "`"+m[1]+"`") && !strings.Contains(page, "`"+short+"`") && !strings.Contains(page, "`"+parts[len(parts)-1]+"`") {
				t.Errorf("%s requires %s, which has no line in docs/design/dependencies.md: why it, what else was weighed", strings.TrimPrefix(file, "../../"), m[1])
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
