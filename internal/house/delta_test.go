package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDeltasAreNoStrings finds readers of deltas that lose a character which comes in two
// of them: a field for a delta is a payload.Piece, or raw JSON, and so is what is read from
// a member of that name. Tests and benchmarks may write what they like.
func TestDeltasAreNoStrings(t *testing.T) {
	root := filepath.Join("..", "..")
	found := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"node_modules", "testdata", "bench"}, d.Name()) || d.Name() != ".." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && isDelta(field) {
				found++
				if isStringType(field.Type) {
					t.Errorf("%s: the type of a delta is payload.Piece", files.Position(field.Pos()))
				}
			}
			if call, ok := n.(*ast.CallExpr); ok && readsDelta(call) {
				t.Errorf("%s: a delta is read with PieceOf", files.Position(call.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 20 {
		t.Errorf("only %d fields are deltas; are they named otherwise now?", found)
	}
}

// isDelta reports whether encoding/json reads a member "delta" into a field.
func isDelta(f *ast.Field) bool {
	if f.Tag != nil && strings.Contains(f.Tag.Value, `json:"`) {
		return strings.Contains(f.Tag.Value, `json:"delta"`) || strings.Contains(f.Tag.Value, `json:"delta,`)
	}
	return slices.ContainsFunc(f.Names, func(n *ast.Ident) bool { return n.Name == "Delta" })
}

func isStringType(e ast.Expr) bool {
	if p, ok := e.(*ast.StarExpr); ok {
		e = p.X
	}
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "string"
}

// readsDelta reports whether a call decodes the JSON string of a member "delta" to a string.
func readsDelta(call *ast.CallExpr) (reads bool) {
	var name string
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	if name != "StringOf" && name != "str" && name != "text" {
		return false
	}
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			reads = reads || ok && lit.Value == `"delta"`
			return true
		})
	}
	return reads
}
