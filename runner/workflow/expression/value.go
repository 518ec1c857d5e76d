package expression

import (
	"context"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/decimal"
)

// A Value is a text of a diagram that stands for a value: a fixed text, an expression,
// or a template with expressions in it. Several goroutines may use it.
type Value struct {
	Text     string // as the diagram has it
	program  *Program
	template []piece // texts and expressions in turn
}

type piece struct {
	text    string
	program *Program
}

// Literal returns the value that is the text itself.
func Literal(text string) *Value { return &Value{Text: text} }

// ParseValue reads a text in the form of Camunda 8 and of this project: "= a" is an
// expression, "Hello {{ name }}" is a template, everything else is a fixed text.
func ParseValue(text string) (*Value, error) {
	if source, lang := dialectOf(text); lang == feel && strings.TrimSpace(source) != "" {
		p, err := Compile(text)
		return &Value{Text: text, program: p}, err
	}
	return parseTemplate(text, "{{", "}}")
}

// ParseJUEL reads a text in the form of Camunda 7: "${a}" is an expression,
// "Hello ${name}" is a template, everything else is a fixed text.
func ParseJUEL(text string) (*Value, error) {
	if _, lang := dialectOf(text); lang == juel {
		p, err := Compile(text)
		return &Value{Text: text, program: p}, err
	}
	return parseTemplate(text, "${", "}")
}

// ParseExpression reads a text that is an expression with or without a prefix, such as
// the collection of a multi-instance activity.
func ParseExpression(text string) (*Value, error) {
	p, err := Compile(text)
	return &Value{Text: text, program: p}, err
}

// Constant returns the text of a value that has no expression.
func (v *Value) Constant() (string, bool) {
	return v.Text, v.program == nil && v.template == nil
}

// Variables returns the names of the variables that the value uses.
func (v *Value) Variables() []string {
	if v.program != nil {
		return v.program.Variables()
	}
	var out []string
	for _, p := range v.template {
		if p.program != nil {
			out = append(out, p.program.Variables()...)
		}
	}
	return out
}

// Uses returns the variables without which the value cannot be evaluated.
func (v *Value) Uses() []Use {
	if v.program != nil {
		return v.program.Uses()
	}
	var out []Use
	for _, p := range v.template {
		if p.program != nil {
			out = append(out, p.program.Uses()...)
		}
	}
	return out
}

// Eval returns the value. Fixed texts and templates are strings; for expressions see
// [Program.Eval].
func (v *Value) Eval(ctx context.Context, variables map[string]any) (any, error) {
	if v.program != nil {
		return v.program.Eval(ctx, variables)
	}
	if v.template == nil {
		return v.Text, nil
	}
	return v.fill(ctx, variables, text)
}

// fill returns the text of a template. It writes values with a function of the caller.
func (v *Value) fill(ctx context.Context, variables map[string]any, write func(any) string) (string, error) {
	var b strings.Builder
	for _, p := range v.template {
		s := p.text
		if p.program != nil {
			out, err := p.program.Eval(ctx, variables)
			if err != nil {
				return "", err
			}
			s = write(out)
		}
		if b.Len()+len(s) > MaxSize {
			return "", tapedeck.Errorf(tapedeck.Invalid, "the text that begins with %s has more than 1 MiB", quote(shorten(v.Text, 40)))
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

// Render returns the value as text: null is nothing, lists and objects are JSON.
func (v *Value) Render(ctx context.Context, variables map[string]any) (string, error) {
	out, err := v.Eval(ctx, variables)
	if err != nil {
		return "", err
	}
	return text(out), nil
}

// Key returns the value as a text that another one has to be equal to: the correlation key
// of a message. The same number is always the same text, without an exponent. Null and the
// empty text are errors, because they would be the key of nothing in particular.
func (v *Value) Key(ctx context.Context, variables map[string]any) (key string, err error) {
	var out any
	if v.template != nil {
		key, err = v.fill(ctx, variables, func(v any) string { s, _ := plainText(v); return s })
	} else if out, err = v.Eval(ctx, variables); err == nil {
		var ok bool
		if key, ok = plainText(out); !ok {
			err = tapedeck.Errorf(tapedeck.Invalid, "the correlation key %s is the number %s, which has more than %d digits", quote(v.Text), shorten(key, 50), maxKey)
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(key) > maxKey:
		err = tapedeck.Errorf(tapedeck.Invalid, "the correlation key %s is a text of %d bytes; a key has at most %d", quote(v.Text), len(key), maxKey)
	case key != "":
		return key, nil
	case out == nil && v.template == nil:
		err = tapedeck.Errorf(tapedeck.Invalid, "the correlation key %s is null", quote(v.Text))
	default:
		err = tapedeck.Errorf(tapedeck.Invalid, "the correlation key %s is an empty text", quote(v.Text))
	}
	return "", err
}

// maxKey is the length of the longest key. No message from outside has a longer one.
const maxKey = 512

// plainText is text, but a number has no exponent. It is false if such a number is too long.
func plainText(v any) (string, bool) {
	s := text(v)
	if !isNumber(normalize(v)) {
		return s, true
	}
	plain, ok := decimal.Plain(s, maxKey)
	if !ok {
		return s, false
	}
	return plain, true
}

func parseTemplate(source, open, end string) (*Value, error) {
	v := &Value{Text: source}
	rest := source
	for {
		before, after, found := strings.Cut(rest, open)
		if before != "" || !found && v.template != nil {
			v.template = append(v.template, piece{text: before})
		}
		if !found {
			break
		}
		n := templateEnd(after, end)
		if n < 0 {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the text %s has %s without %s", quote(source), open, end).
				WithHint(`write {{ "{{" }} for two brackets that are no expression`)
		}
		text := after[:n]
		if open == "${" {
			text = open + text + end // Compile reads it as JUEL
		}
		p, err := Compile(text)
		if err != nil {
			return nil, err
		}
		v.template = append(v.template, piece{program: p})
		rest = after[n+len(end):]
	}
	if len(v.template) == 1 && v.template[0].program == nil {
		v.template = nil
	}
	return v, nil
}

// templateEnd returns where the expression at the start of s ends, -1 if it does not.
// Marks in texts and brackets inside of it do not count.
func templateEnd(s, end string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		if depth == 0 && strings.HasPrefix(s[i:], end) {
			return i
		}
		switch s[i] {
		case '"', '\'', '`':
			n := stringEnd(s[i:])
			if n == 0 {
				return -1
			}
			i += n - 1
		case '{':
			depth++
		case '}':
			depth--
		}
	}
	return -1
}

// wholeJUEL returns the inner text if all of the text is one expression of JUEL.
func wholeJUEL(text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, "${")
	if !ok {
		rest, ok = strings.CutPrefix(text, "#{")
	}
	if !ok {
		return "", false
	}
	n := templateEnd(rest, "}")
	if n < 0 || n != len(rest)-1 {
		return "", false
	}
	return rest[:n], true
}
