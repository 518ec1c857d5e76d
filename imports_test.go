package tapedeck

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestRootImportsOnlyTheStandardLibrary keeps the root free of dependencies,
// because every other package imports it. internal/jsonobj, which it imports,
// has the same rule.
func TestRootImportsOnlyTheStandardLibrary(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") && path != "github.com/tapedeck/tapedeck/internal/jsonobj" {
				t.Errorf("%s imports %s", name, path)
			}
			switch path {
			case "os", "net", "net/http", "database/sql":
				t.Errorf("%s imports %s: the root does no I/O", name, path)
			}
		}
	}
}
