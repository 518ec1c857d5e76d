package apischema

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	twoWords = regexp.MustCompile(`^[A-Z][a-z0-9]+[A-Z]`)
	inText   = regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9]*\b`)
	ofGo     = regexp.MustCompile(`\bnil\b|\bstruct\b|\[\]byte|\b(tapedeck|api|view|payload|search|rest|problem|json|time|context)\.[A-Z]|\b[A-Z][A-Za-z]+\.[A-Z][a-z]`)
)

// goNames returns the exported names, and the types, of the packages whose types the API
// has, if they consist of two words: other names may be words of English.
func goNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, dir := range []string{"", "api", "internal/problem", "payload", "search", "view", "protocol/rest"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					if n.IsExported() && twoWords.MatchString(n.Name) {
						names[n.Name] = true
					}
				case *ast.TypeSpec:
					if !n.Name.IsExported() && strings.ToLower(n.Name.Name) != n.Name.Name {
						names[n.Name.Name] = true
					}
				}
				return true
			})
		}
	}
	return names
}

// TestNoNamesOfGo: nobody needs to know Go to read the description.
func TestNoNamesOfGo(t *testing.T) {
	d, err := describe(root)
	if err != nil {
		t.Fatal(err)
	}
	names, checked := goNames(t), 0
	for name := range d.named {
		delete(names, name)
	}
	delete(names, "OpenAPI") // also the name of the standard
	check := func(where, text string) {
		checked++
		for _, word := range append(inText.FindAllString(text, -1), ofGo.FindAllString(text, -1)...) {
			if names[word] || ofGo.MatchString(word) {
				t.Errorf("%s has the name %s of Go: %s", where, word, text)
			}
		}
	}
	for name, s := range d.named {
		check(name, s.Description)
		for member, p := range s.Properties {
			check(name+"."+member, p.Description)
		}
	}
	for path, operations := range d.operations {
		for method, op := range operations {
			check(method+" "+path, op.Summary+" "+op.Description)
			for _, p := range op.Parameters {
				check(method+" "+path+" "+p.Name, p.Description)
			}
			for status, r := range op.Responses {
				check(method+" "+path+" "+status, r.Description)
			}
		}
	}
	if checked < 1000 {
		t.Errorf("only %d texts were checked", checked)
	}
}

// TestWording: names become words of the wire, with the article that they need.
func TestWording(t *testing.T) {
	d, err := describe(root)
	if err != nil {
		t.Fatal(err)
	}
	w := d.newWording()
	for text, want := range map[string]string{
		"Exactly one of BeforeInvocation and ToOffset": "Exactly one of `before_invocation_id` and `to_offset`",
		"A Kind says what": "An ErrorKind says what",
		"a Rewind that changes nothing is a tapedeck.Conflict":   "a Rewind that changes nothing is `conflict`",
		"nil if none; see tapedeck.Status, or see engine.Secret": "absent if none; see Status, or",
		"a message of RoleTool, of payload.RoleUser":             "a message of RoleTool, of `user`",
		"payload.FeedbackAdded has it. Actor does":               "`feedback.added` has it. Actor does",
	} {
		if got := w.text(d.types["Rewind"], "", text, false); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
	if got := w.text(d.types["Rewind"], "", "nil if none", true); got != "null if none" || strings.Contains(got, "nil ") {
		t.Error(got)
	}
}
