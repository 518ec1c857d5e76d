package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/tapedeck/tapedeck"

type pkg struct {
	ImportPath string
	Doc        string
	Imports    []string
	Standard   bool
}

// rules lists the packages of this module that a package may import. The longest
// prefix counts. "." is the root package. An entry includes the packages below
// it, unless it begins with "=". "*" means all. A package without a rule may
// import the root only.
var rules = map[string][]string{
	".":                  {"internal/jsonobj"},
	"internal":           {".", "payload", "internal"},
	"internal/jsonobj":   {},
	"internal/decktest":  {".", "deck", "internal"},
	"internal/aguiwire":  {".", "payload", "view", "internal"},
	"internal/apischema": {".", "api", "payload", "search", "view", "internal", "protocol/rest"},
	"docs":               {},
	"payload":            {".", "internal/jsonobj"},
	"order":              {".", "payload", "internal/jsonobj"},
	"api":                {".", "payload", "view"},
	"search":             {"."},
	"search/indexer":     {".", "payload", "search", "view"},
	"store":              {".", "payload", "search", "=store", "internal"},
	"view":               {".", "payload", "internal/jsonobj"},
	"view/viewtest":      {".", "payload", "=store", "view"},
	"hub":                {"."},
	"projection":         {".", "view", "internal/lru"},
	"presence":           {".", "api", "payload"},
	"metrics":            {".", "api", "=store", "internal"},
	"telemetry":          {".", "payload"},
	"audit":              {".", "api", "internal/ownfile", "internal/secret"},
	"retention":          {"."},
	"access":             {".", "access", "api", "payload", "search", "view", "internal"},
	"engine":             {".", "api", "payload", "order", "=store", "view", "projection", "presence", "engine", "=runner", "internal/decimal", "internal/jsonobj", "internal/lru", "internal/past", "internal/proposal", "internal/sse", "internal/wallclock"},
	"engine/workflow":    {".", "api", "payload", "=store", "view", "=engine", "runner/workflow"},
	"protocol":           {".", "=access", "api", "docs", "payload", "search", "view", "internal"},
	"runner":             {".", "payload", "=runner", "view", "internal"},
	"runner/agui":        {".", "payload", "order", "=runner", "view", "internal"},
	"runner/runnertest":  {".", "payload", "order", "=runner"},
	"server":             {".", "internal"},
	"cluster":            {".", "internal"},
	"client":             {".", "api", "payload", "search", "view", "internal"},
	"deck":               {"*"},
	"cmd":                {"*"},
	"bench":              {"*"},
	"test":               {"*"},

	"cmd/tapedeck/internal/terminal":    {},
	"cmd/tapedeck/internal/transcript":  {".", "payload", "=cmd/tapedeck/internal/terminal"},
	"cmd/tapedeck/internal/player":      {".", "payload", "view", "=cmd/tapedeck/internal/terminal", "=cmd/tapedeck/internal/transcript"},
	"cmd/tapedeck/internal/agentconfig": {".", "deck", "runner", "internal"},
}

func TestImportsPointInward(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if name == "" {
			name = "."
		}
		allowed := allowedFor(name)
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module) {
				if (name == "." || name == "internal/jsonobj") && strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") {
					t.Errorf("the root package imports %s; it may import the standard library only, so that every package can import it", imp)
				}
				continue
			}
			other := strings.TrimPrefix(strings.TrimPrefix(imp, module), "/")
			if other == "" {
				other = "."
			}
			if !within(allowed, other) && !within([]string{implementation(name)}, other) {
				t.Errorf("%s imports %s; it may import only %v: everything points inward", name, other, allowed)
			}
			if strings.HasPrefix(other, "cmd/") && !strings.HasPrefix(name, "cmd/") {
				t.Errorf("%s imports %s; nothing imports a command", name, other)
			}
		}
	}
}

// implementation returns the folder of a store, protocol or runner that a package
// belongs to: packages in it may import each other, but siblings never do.
func implementation(name string) string {
	parts := strings.Split(name, "/")
	if len(parts) >= 2 && (parts[0] == "store" || parts[0] == "protocol" || parts[0] == "runner") {
		return parts[0] + "/" + parts[1]
	}
	return name
}

func allowedFor(name string) []string {
	for r := name; ; r = r[:strings.LastIndex(r, "/")] {
		if a, ok := rules[r]; ok {
			return a
		}
		if !strings.Contains(r, "/") {
			return []string{"."}
		}
	}
}

func within(names []string, other string) bool {
	for _, r := range names {
		if r == "*" || r == other || r == "="+other || r != "." && strings.HasPrefix(other, r+"/") {
			return true
		}
	}
	return false
}

func TestEveryPackageHasAComment(t *testing.T) {
	for _, p := range list(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// TestLibcIsTheOneOfSQLite checks that the C library in Go has the version with
// which the SQLite in Go was generated. Another one may fail in ways that no test
// sees.
func TestLibcIsTheOneOfSQLite(t *testing.T) {
	out, err := exec.Command("go", "mod", "graph").Output()
	if err != nil {
		t.Fatal(err)
	}
	version := func(prefix string) string {
		for line := range strings.Lines(string(out)) {
			from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
			if v, ok := strings.CutPrefix(to, "modernc.org/libc@"); ok && strings.HasPrefix(from, prefix) {
				return v
			}
		}
		return ""
	}
	sqlite, err := exec.Command("go", "list", "-m", "-f", "{{.Path}}@{{.Version}}", "modernc.org/sqlite").Output()
	if err != nil {
		t.Fatal(err)
	}
	ours, its := version(module), version(strings.TrimSpace(string(sqlite)))
	if ours == "" || ours != its {
		t.Errorf("go.mod has modernc.org/libc %s, %s wants %s", ours, strings.TrimSpace(string(sqlite)), its)
	}
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,Standard", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var pkgs []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) < 5 {
		t.Fatalf("go list found only %d packages", len(pkgs))
	}
	return pkgs
}
