package expression

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// A Script is a list of lines that each assign a variable: total = price * count. The
// last line may be an expression without a variable. Several goroutines may use it.
type Script struct {
	text  string
	lines []scriptLine
}

type scriptLine struct {
	variable string // empty: the value of the script
	program  *Program
	line     int
}

const maxLines = 1000

// CompileScript compiles a script. Lines end with a line break or a semicolon; brackets
// may span lines. Text after # or // is a comment.
func CompileScript(source string) (*Script, error) {
	s := &Script{text: source}
	if len(source) > maxText {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the script has %d bytes; at most %d are allowed", len(source), maxText)
	}
	if text := strings.TrimSpace(source); strings.HasPrefix(text, "=") || strings.HasPrefix(text, "${") {
		p, err := Compile(text)
		s.lines = []scriptLine{{program: p, line: 1}}
		return s, err
	}
	statements, err := split(source)
	if err != nil {
		return nil, err
	}
	if len(statements) == 0 {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the script is empty")
	}
	if len(statements) > maxLines {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the script has %d lines; at most %d are allowed", len(statements), maxLines)
	}
	for i, st := range statements {
		variable, text, err := assignment(st.text)
		if err != nil {
			return nil, fmt.Errorf("line %d of the script: %w", st.line, err)
		}
		if variable == "" && i < len(statements)-1 {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "line %d of the script assigns no variable", st.line).WithHint("write name = expression; only the last line may be a value")
		}
		p, err := Compile(text)
		if err != nil {
			return nil, fmt.Errorf("line %d of the script: %w", st.line, err)
		}
		s.lines = append(s.lines, scriptLine{variable, p, st.line})
	}
	return s, nil
}

// String returns the text that was compiled.
func (s *Script) String() string { return s.text }

// HasValue reports whether the last line is a value.
func (s *Script) HasValue() bool { return s.lines[len(s.lines)-1].variable == "" }

// Assigned returns the variables that the script assigns, each once, in their order.
func (s *Script) Assigned() []string {
	var out []string
	seen := map[string]bool{"": true}
	for _, l := range s.lines {
		if !seen[l.variable] {
			seen[l.variable] = true
			out = append(out, l.variable)
		}
	}
	return out
}

// Uses returns the variables that have to exist before the script: those that a line needs
// and no line before it assigns.
func (s *Script) Uses() []Use {
	var out []Use
	assigned := map[string]bool{}
	for _, l := range s.lines {
		for _, u := range l.program.Uses() {
			if !assigned[u.Variable] {
				u.Line = l.line
				out = append(out, u)
			}
		}
		assigned[l.variable] = true
	}
	return out
}

// Run evaluates the lines, each with the variables that those before it assigned. It
// returns the assigned variables, and the value of the last line, nil if that assigns a
// variable.
func (s *Script) Run(ctx context.Context, variables map[string]any) (assigned map[string]any, value any, err error) {
	seen := maps.Clone(variables)
	if seen == nil {
		seen = map[string]any{}
	}
	assigned = map[string]any{}
	for _, l := range s.lines {
		v, err := l.program.Eval(ctx, seen)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d of the script: %w", l.line, err)
		}
		if l.variable == "" {
			return assigned, v, nil
		}
		seen[l.variable], assigned[l.variable] = v, v
	}
	return assigned, nil, nil
}

type statement struct {
	text string
	line int
}

// split returns the statements with the lines on which they begin.
func split(source string) ([]statement, error) {
	var out []statement
	var b strings.Builder
	line, begin, depth := 1, 1, 0
	flush := func() {
		if text := strings.TrimSpace(b.String()); text != "" {
			out = append(out, statement{text, begin})
		}
		b.Reset()
	}
	for i := 0; i < len(source); i++ {
		c := source[i]
		if strings.TrimSpace(b.String()) == "" {
			begin = line
		}
		switch {
		case c == '"' || c == '\'' || c == '`':
			n := stringEnd(source[i:])
			if n == 0 {
				return nil, tapedeck.Errorf(tapedeck.Invalid, "line %d of the script has a text without its closing quotation mark", line)
			}
			b.WriteString(source[i : i+n])
			line += strings.Count(source[i:i+n], "\n")
			i += n - 1
			continue
		case strings.HasPrefix(source[i:], "//"), c == '#' && strings.TrimSpace(b.String()) == "":
			i += len(firstLine(source[i:])) - 1
			continue
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		case (c == '\n' || c == ';') && depth <= 0:
			flush()
			if c == '\n' {
				line++
			}
			continue
		}
		if c == '\n' {
			line++
		}
		b.WriteByte(c)
	}
	flush()
	return out, nil
}

// assignment returns the variable and the expression of "name = expression", or "" and
// the text if it assigns nothing.
func assignment(text string) (variable, expression string, err error) {
	tokens, err := scan(text)
	if err != nil {
		return "", "", err
	}
	n := 0
	for n < len(tokens) && tokens[n].kind == wordToken && !wordOperators[tokens[n].text] {
		n++
	}
	if n == 0 || n >= len(tokens) || !tokens[n].is("=") {
		return "", text, nil
	}
	_, rest, _ := strings.Cut(text, "=")
	if n > 1 {
		return "", "", tapedeck.Errorf(tapedeck.Invalid, "the variable before %q has spaces", "="+shorten(rest, 40)).WithHint("write name = expression, without var, let or const")
	}
	return tokens[0].text, strings.TrimSpace(rest), nil
}
