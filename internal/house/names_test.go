package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// maxRootNames is how many names the root package may export: types, functions,
// methods, methods of interfaces, constants and variables. It has the words that
// every package needs; what fewer packages need belongs to one of them. The event types
// of the catalogue do not count: an event that is added needs its name there.
const maxRootNames = 154

func TestRootExportsFewNames(t *testing.T) {
	files, err := filepath.Glob("../../*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		if name := filepath.Base(file); strings.HasSuffix(name, "_test.go") || name == "types.go" || name == "agui.go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			n += exported(d)
		}
	}
	if n == 0 || n > maxRootNames {
		t.Errorf("the root package exports %d names; at most %d are allowed", n, maxRootNames)
	}
}

// exported counts the exported names of a declaration.
func exported(d ast.Decl) int {
	n := 0
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
			n++
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			n += exportedBy(s)
		}
	}
	return n
}

func exportedBy(s ast.Spec) int {
	n := 0
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				n++
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return 0
		}
		n++
		if i, ok := s.Type.(*ast.InterfaceType); ok {
			for _, m := range i.Methods.List {
				n += len(m.Names) // an embedded interface has none
			}
		}
	}
	return n
}

// receiver returns the name of a receiver's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}
