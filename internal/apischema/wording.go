package apischema

import (
	"go/ast"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// The texts of the description are comments of Go types. A user of HTTP knows no Go, so
// the names of Go in them become the words of the wire: fields become members, constants
// become their values, types become schemas or types of events. A sentence that begins
// with "In Go" is left out.

// A wording translates texts. Its names have their package in front.
type wording struct {
	values  map[string]string // of constants
	schemas map[string]string // names of schemas, by type
	events  map[string]string // types of events, by the type of their data
}

// newWording returns the wording for the collected schemas.
func (d *description) newWording() *wording {
	w := &wording{values: d.comments.values, schemas: map[string]string{}, events: map[string]string{}}
	for name, t := range d.types {
		w.schemas[qualified(t, t.Name())] = name
	}
	for _, name := range payload.EventTypes() {
		if p, err := payload.Decode(tapedeck.Event{Type: name, Data: []byte("{}")}); err == nil {
			w.events[qualified(reflect.TypeOf(p), reflect.TypeOf(p).Name())] = name
		}
	}
	return w
}

// qualified returns a name of the package of t as other packages write it.
func qualified(t reflect.Type, name string) string {
	return t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:] + "." + name
}

// reword translates the texts of all schemas.
func (d *description) reword() {
	w := d.newWording()
	for name, s := range d.named {
		t := d.types[name]
		if t == nil { // its text is not a comment
			continue
		}
		s.Description = w.text(t, "", s.Description, false)
		for _, f := range fields(t) {
			member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			p := s.Properties[member]
			null := slices.ContainsFunc(p.AnyOf, func(s *schema) bool { return s.Type == "null" })
			p.Description = w.text(owner(t, f), f.Name, p.Description, null)
		}
	}
}

// owner returns the struct that declares a field of t.
func owner(t reflect.Type, f reflect.StructField) reflect.Type {
	for _, i := range f.Index[:len(f.Index)-1] {
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	return t
}

var (
	goName    = regexp.MustCompile(`\b(?:(tapedeck|api|view|payload|search|rest|problem)\.)?[A-Z][A-Za-z0-9]+\b`)
	reference = regexp.MustCompile(`[;,:]? ?\b[Ss]ee ([A-Za-z]+\.)?[A-Z][A-Za-z]*(\.[A-Z][A-Za-z]*)?`)
	nothing   = regexp.MustCompile(`\bnil\b`)
)

// text translates the comment of t, or of its field own. null says that the value may be
// null; otherwise a member without a value is absent.
func (w *wording) text(t reflect.Type, own, text string, null bool) string {
	absent := "absent"
	if null {
		absent = "null"
	}
	text = nothing.ReplaceAllString(text, absent)
	if name := t.Name(); !token.IsExported(name) {
		text = regexp.MustCompile(`\b[Aa]n? `+name+`\b`).ReplaceAllString(text, "This")
	}
	text = reference.ReplaceAllStringFunc(text, func(clause string) string {
		if _, ok := w.word(t, clause[strings.LastIndexByte(clause, ' ')+1:], false); ok {
			return clause
		}
		return "" // it leads to nothing that the description has
	})
	var b strings.Builder
	end := 0
	for _, m := range goName.FindAllStringIndex(text, -1) {
		name := text[m[0]:m[1]]
		begins := m[0] == 0 && name != own || strings.HasSuffix(text[:m[0]], ". ")
		begins = begins && !strings.HasPrefix(text[m[1]:], ",") // it begins a list of members
		word, _ := w.word(t, name, begins)
		before := withArticle(text[end:m[0]], word)
		if w.values[name] != "" { // "is a tapedeck.Conflict": a value has no article
			before = article.ReplaceAllString(before, "")
		}
		b.WriteString(before)
		b.WriteString(word)
		end = m[1]
	}
	return strings.TrimSpace(b.String() + text[end:])
}

var article = regexp.MustCompile(`\b([Aa])n? $`)

// withArticle returns text with the article at its end in the form that word needs.
func withArticle(text, word string) string {
	form := "$1 "
	if strings.ContainsRune("AEIOU", rune(word[0])) {
		form = "${1}n "
	}
	return article.ReplaceAllString(text, form)
}

// word returns the word for a name of Go that stands in a comment of t, or the name
// itself and false if there is none. begins says that it begins a sentence: there a name
// of one word may be a word of English.
func (w *wording) word(t reflect.Type, name string, begins bool) (string, bool) {
	full := name
	if !strings.Contains(name, ".") {
		english := begins && name[1:] == strings.ToLower(name[1:])
		if f, ok := fieldOf(t, name); ok && !english {
			return "`" + f + "`", true
		}
		full = qualified(t, name)
	}
	for _, full := range []string{full, "tapedeck." + name} {
		if v := w.values[full]; v != "" {
			return "`" + v + "`", true
		}
		if v := w.events[full]; v != "" {
			return "`" + v + "`", true
		}
		if v := w.schemas[full]; v != "" {
			return v, true
		}
	}
	return name, false
}

// fieldOf returns the name of a member of t by the name of its field.
func fieldOf(t reflect.Type, name string) (string, bool) {
	for _, f := range fields(t) {
		if f.Name == name {
			member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return member, true
		}
	}
	return "", false
}

// readValues reads the constants of a file that are strings.
func readValues(pkg string, g *ast.GenDecl, into map[string]string) {
	for _, spec := range g.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, name := range v.Names {
			if i >= len(v.Values) {
				continue
			}
			if lit, ok := v.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil {
					into[pkg+"."+name.Name] = s
				}
			}
		}
	}
}
