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

// rules say which of our packages a package may import. The longest prefix counts.
// "." is the root package. An entry includes the packages below it, unless it
// begins with "=". A package without a rule may import the root only.
var rules = map[string][]string{
	".":                  {"internal/jsonobj"},
	"internal":           {".", "payload", "internal"},
	"internal/jsonobj":   {},
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
	"projection":         {".", "view"},
	"presence":           {".", "api", "payload"},
	"engine":             {".", "api", "payload", "order", "=store", "view", "projection", "presence", "engine", "=runner", "internal/jsonobj"},
	"protocol":           {".", "api", "docs", "payload", "search", "view", "internal"},
	"runner":             {".", "payload", "=runner", "view", "internal"},
	"runner/runnertest":  {".", "payload", "order", "=runner"},
	"server":             {".", "internal"},
	"client":             {".", "api", "payload", "search", "view", "internal"},
	"deck":               {"*"},
	"cmd":                {"*"},
	"bench":              {"*"},
	"test":               {"*"},

	"cmd/tapedeck/internal/terminal":    {},
	"cmd/tapedeck/internal/transcript":  {".", "payload", "=cmd/tapedeck/internal/terminal"},
	"cmd/tapedeck/internal/player":      {".", "payload", "=cmd/tapedeck/internal/terminal", "=cmd/tapedeck/internal/transcript"},
	"cmd/tapedeck/internal/agentconfig": {".", "deck", "runner", "internal"},
}

func TestRoomsPointInward(t *testing.T) {
	for _, p := range list(t) {
		room := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if room == "" {
			room = "."
		}
		allowed := allowedFor(room)
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module) {
				if (room == "." || room == "internal/jsonobj") && strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") {
					t.Errorf("the root package imports %s; it may import the standard library only, so that everyone can import it", imp)
				}
				continue
			}
			other := strings.TrimPrefix(strings.TrimPrefix(imp, module), "/")
			if other == "" {
				other = "."
			}
			if !within(allowed, other) && !within([]string{wall(room)}, other) {
				t.Errorf("%s imports %s; it may import only %v: everything points inward", room, other, allowed)
			}
			if strings.HasPrefix(other, "cmd/") && !strings.HasPrefix(room, "cmd/") {
				t.Errorf("%s imports %s; nothing imports a command", room, other)
			}
		}
	}
}

// wall returns the folder on a wall that a package belongs to: a socket may
// have rooms inside, but siblings never import each other.
func wall(room string) string {
	parts := strings.Split(room, "/")
	if len(parts) >= 2 && (parts[0] == "store" || parts[0] == "protocol" || parts[0] == "runner") {
		return parts[0] + "/" + parts[1]
	}
	return room
}

func allowedFor(room string) []string {
	for r := room; ; r = r[:strings.LastIndex(r, "/")] {
		if a, ok := rules[r]; ok {
			return a
		}
		if !strings.Contains(r, "/") {
			return []string{"."}
		}
	}
}

func within(rooms []string, other string) bool {
	for _, r := range rooms {
		if r == "*" || r == other || r == "="+other || r != "." && strings.HasPrefix(other, r+"/") {
			return true
		}
	}
	return false
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range list(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// TestLibcIsTheOneOfSQLite: the C library in Go must be of the version that the
// SQLite in Go was made with; another one may misbehave in ways no test sees.
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
