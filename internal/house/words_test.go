package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unchecked are folders without our own text, a page that `make bench` writes,
// and this file.
var unchecked = []string{".git", "bin", "web/dist", "docs/benchmarks.md", "internal/house/words_test.go"}

// terms are removed before the check: phrases with another meaning (room as
// space, ring buffers), identifiers (links in doc comments, qualified names,
// classes of CSS) and our package.
var terms = regexp.MustCompile(`(?i)\b(?:no|makes?|made|has|have|enough|little|more) room\b|\broom (?:for|left)\b|\bring buffers?\b|\bpackage house\b|\binternal/house\b|\[[\w.*]+\]|\w+\.\w+|[\w:]*ring-[\w/-]+`)

// TestWordsOfGlossary keeps the words in the column "not" of the glossary in
// docs/log.md out of comments and strings in Go, out of comments and texts of
// the screen, and out of the documentation. It skips code in the documentation,
// and strings without a space, which may be names on the wire.
func TestWordsOfGlossary(t *testing.T) {
	words := glossary(t)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, filepath.Join("..", "..")+string(filepath.Separator)))
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata") || slices.Contains(unchecked, name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		read := textOf(name)
		if d.IsDir() || read == nil {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, p := range read(t, name, string(b)) {
			for _, f := range words.find(p) {
				t.Errorf("%s:%d: %q; the glossary in docs/log.md has %s", name, f.line, f.word, f.use)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A passage is a text in a file.
type passage struct {
	text string
	line int // the line on which it begins
}

// textOf returns the function that finds the passages of a file, nil if the file
// is not checked.
func textOf(name string) func(t *testing.T, name, source string) []passage {
	switch {
	case strings.HasSuffix(name, ".go"):
		return goText
	case (strings.HasPrefix(name, "ui/src/") || strings.HasPrefix(name, "packages/")) && (strings.HasSuffix(name, ".ts") || strings.HasSuffix(name, ".tsx")):
		return screenText
	case name == "README.md", name == "AGENTS.md", strings.HasPrefix(name, "docs/") && strings.HasSuffix(name, ".md"):
		return docText
	}
	return nil
}

// goText returns comments and strings.
func goText(t *testing.T, name, source string) []passage {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var out []passage
	for _, g := range f.Comments {
		var text strings.Builder
		for _, c := range g.List {
			text.WriteString(strings.TrimPrefix(c.Text, "//") + "\n")
		}
		out = append(out, passage{text.String(), fset.Position(g.Pos()).Line})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && isSentence(text) {
				out = append(out, passage{text, fset.Position(n.Pos()).Line})
			}
		}
		return true
	})
	return out
}

// isSentence reports whether a string has words of ours: not a name, and not
// JSON, which holds what users and agents say.
func isSentence(text string) bool {
	return strings.Contains(text, " ") && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[")
}

// screenParts matches comments, strings and the text between tags.
var screenParts = regexp.MustCompile("(?s)/\\*.*?\\*/|//[^\n]*|\"(?:[^\"\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\n]|\\\\.)*'|`(?:[^`\\\\]|\\\\.)*`|>[^<>{}=;]*[a-z][^<>{}=;]*<")

func screenText(_ *testing.T, _, source string) []passage {
	var out []passage
	line, last := 1, 0
	for _, m := range screenParts.FindAllStringIndex(source, -1) {
		line += strings.Count(source[last:m[0]], "\n")
		last = m[0]
		if text := source[m[0]:m[1]]; strings.Contains(text, " ") {
			out = append(out, passage{strings.NewReplacer("\n * ", "\n", "\n// ", "\n").Replace(text), line})
		}
	}
	return out
}

var inlineCode = regexp.MustCompile("`[^`\n]*`|\\]\\([^)\n]*\\)")

// docText returns paragraphs without fenced blocks, inline code, targets of links
// and the table of the glossary.
func docText(_ *testing.T, name, source string) []passage {
	var text strings.Builder
	fenced, glossary := false, false
	for line := range strings.Lines(source) {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			glossary = name == "docs/log.md" && trimmed == "### Glossary"
		}
		fence := strings.HasPrefix(trimmed, "```")
		if fence {
			fenced = !fenced
		}
		if fenced || fence || glossary && strings.HasPrefix(line, "|") {
			line = "\n"
		}
		text.WriteString(inlineCode.ReplaceAllString(line, "`"))
	}
	return []passage{{text.String(), 1}}
}

// A wordList has the words not to use, with those to use.
type wordList struct {
	all *regexp.Regexp
	use map[string]string
}

// glossary reads the table in docs/log.md.
func glossary(t *testing.T) wordList {
	t.Helper()
	b, err := os.ReadFile("../../docs/log.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(b), "\n### Glossary\n")
	table, _, _ = strings.Cut(table, "\n## ")
	words := wordList{use: map[string]string{}}
	var patterns []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(line, "| use |") || strings.HasPrefix(line, "|---") {
			continue
		}
		for word := range strings.SplitSeq(cells[3], ",") {
			if word = strings.TrimSpace(word); word != "" {
				use := strings.TrimSpace(cells[1])
				if old := words.use[word]; old != "" {
					use = old + " or " + use
				}
				words.use[word] = use
				patterns = append(patterns, strings.ReplaceAll(regexp.QuoteMeta(word), " ", `\s+`))
			}
		}
	}
	if len(patterns) < 30 {
		t.Fatalf("the glossary has only %d words in the column \"not\"", len(patterns))
	}
	slices.SortFunc(patterns, func(a, b string) int { return len(b) - len(a) }) // the longest alternative first
	words.all = regexp.MustCompile(`(?i)\b(?:` + strings.Join(patterns, "|") + `)\b`)
	return words
}

type foundWord struct {
	line      int
	word, use string
}

func (w wordList) find(p passage) []foundWord {
	var out []foundWord
	text := terms.ReplaceAllString(p.text, "")
	for _, m := range w.all.FindAllStringIndex(text, -1) {
		word := strings.Join(strings.Fields(text[m[0]:m[1]]), " ")
		out = append(out, foundWord{p.line + strings.Count(text[:m[0]], "\n"), word, w.use[strings.ToLower(word)]})
	}
	return out
}

func TestFindWords(t *testing.T) {
	words := glossary(t)
	for name, tests := range map[string]map[string]int{
		"x.go": {
			"package x\n// It is\n// taken\n// back.\n":        3,
			"package x\n\nvar _ = \"no doors here\"\n":         3,
			"package x\nvar _ = \"gone\" // a wire name\n":     0,
			"package x\ntype s struct{ a int `json:\"he a\"`}": 0,
		},
		"ui/src/x.tsx": {
			"const a = 1;\n// what is in force\n":      2,
			"/**\n * It is taken\n * back. */":         2,
			"const a = <p>\n  The room is full\n</p>;": 2,
			"const gone = room(house);":                0,
		},
		"docs/x.md": {
			"# A\n\nThey went to the\nhouse.":         4,
			"```\nin force\n```\n`at hand` [a](door)": 0,
		},
	} {
		for source, want := range tests {
			line := 0
			for _, p := range textOf(name)(t, name, source) {
				for _, f := range words.find(p) {
					line = f.line
				}
			}
			if line != want {
				t.Errorf("%s: %q has a word in line %d, want %d", name, source, line, want)
			}
		}
	}
}
