package apischema

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
)

const module = "github.com/tapedeck/tapedeck"

// comments has the comments of types and of fields of structs: by the path of the
// package and the name of the type, for a field followed by its name. It also has the
// values of constants, by package and name.
type comments struct {
	texts  map[string]string
	values map[string]string
}

// readComments reads the comments of the packages that have types of the API.
func readComments(root string) (comments, error) {
	c := comments{texts: map[string]string{}, values: map[string]string{}}
	for _, dir := range []string{"", "api", "internal/problem", "payload", "search", "view", "protocol/rest"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return c, err
		}
		path := strings.TrimSuffix(module+"/"+dir, "/")
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return c, err
			}
			c.readFile(path, f)
		}
	}
	return c, nil
}

func (c comments) readFile(path string, f *ast.File) {
	for _, decl := range f.Decls {
		g, ok := decl.(*ast.GenDecl)
		if ok && g.Tok == token.CONST {
			readValues(f.Name.Name, g, c.values)
		}
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, spec := range g.Specs {
			t := spec.(*ast.TypeSpec)
			name := path + "." + t.Name.Name
			doc := t.Doc
			if doc == nil {
				doc = g.Doc
			}
			c.texts[name] = textOf(doc)
			s, ok := t.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range s.Fields.List {
				text := strings.TrimSpace(textOf(field.Doc) + " " + textOf(field.Comment))
				for _, n := range field.Names {
					c.texts[name+"."+n.Name] = text
				}
			}
		}
	}
}

// link is a link to a name of Go, such as [Session] or [*tapedeck.Error].
var link = regexp.MustCompile(`\[\*?([A-Za-z.]+)\]`)

// forGo is a sentence that is for programs in Go only.
var forGo = regexp.MustCompile(`\bIn Go, .*?\.( |$)`)

// textOf returns a comment as one line.
func textOf(g *ast.CommentGroup) string {
	if g == nil {
		return ""
	}
	text := forGo.ReplaceAllString(strings.Join(strings.Fields(g.Text()), " "), "")
	return strings.TrimSpace(link.ReplaceAllString(text, "$1"))
}

// of returns the comment of a type.
func (c comments) of(t reflect.Type) string { return c.texts[t.PkgPath()+"."+t.Name()] }

// ofField returns the comment of a field of t, or of a struct that t embeds.
func (c comments) ofField(t reflect.Type, f reflect.StructField) string {
	t = owner(t, f)
	return c.texts[t.PkgPath()+"."+t.Name()+"."+f.Name]
}
