// Package expression evaluates the expressions of workflows: conditions, values,
// templates and scripts. The language is that of expr-lang. Texts with FEEL's prefix
// "=" and JUEL's brackets "${…}" are accepted where they mean the same; what would mean
// something else is refused by name.
//
// All input is hostile. An evaluation has a bound on its steps and on the size of every
// value it makes, so no expression stops the server.
package expression

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/tapedeck/tapedeck"
)

const (
	maxText  = 64 << 10 // bytes of an expression, template or script
	maxNodes = 2000     // nodes of the tree of one expression

	// MaxSize is the size of the largest value that an expression may make, in bytes of
	// its JSON, about.
	MaxSize = 1 << 20
)

// A Program is a compiled expression. Several goroutines may use it.
type Program struct {
	text     string
	code     *vm.Program
	required []string // variables that have to exist
	optional []string // variables that the expression compares with null
}

// Compile compiles an expression. A text with the prefix "=" is read as FEEL, one in
// "${…}" or "#{…}" as JUEL. Errors are of kind [tapedeck.Invalid].
func Compile(text string) (*Program, error) {
	source, lang := dialectOf(text)
	if strings.TrimSpace(source) == "" {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the expression is empty")
	}
	if len(source) > maxText {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the expression has %d bytes; at most %d are allowed", len(source), maxText)
	}
	translated, widened, err := translate(source, lang)
	if err != nil {
		return nil, err
	}
	p := &Program{text: strings.TrimSpace(text)}
	names, guarded := &collector{}, &guards{source: []rune(translated), widened: widened, lang: lang}
	p.code, err = expr.Compile(translated, withFunctions,
		expr.Patch(names), expr.Patch(guarded), expr.Optimize(false), expr.DisableIfOperator(), expr.MaxNodes(maxNodes))
	if names.err != nil {
		return nil, names.err
	}
	if err == nil && guarded.err != nil {
		err = guarded.err
	}
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the expression %s cannot be read: %s", quote(text), asWritten(cause(err), widened)).Because(err)
	}
	p.required, p.optional = names.variables()
	return p, nil
}

// String returns the text that was compiled.
func (p *Program) String() string { return p.text }

// Variables returns the names of the variables that the expression uses, sorted.
func (p *Program) Variables() []string {
	return slices.Sorted(slices.Values(slices.Concat(p.required, p.optional)))
}

// A Use is a place where a variable has to exist.
type Use struct {
	Variable string
	Text     string // the expression, quoted and in one line
	Line     int    // of the script, from 1; 0 outside of scripts
}

// String says in a sentence that the variable does not exist.
func (u Use) String() string {
	text := fmt.Sprintf("the expression %s uses the variable %q, which does not exist", u.Text, u.Variable)
	if u.Line > 0 {
		text = fmt.Sprintf("line %d of the script: %s", u.Line, text)
	}
	return text
}

// Uses returns the variables without which the expression fails, sorted. Those that may be
// missing are not among them.
func (p *Program) Uses() []Use {
	var out []Use
	for _, name := range p.required {
		out = append(out, Use{Variable: name, Text: quote(p.text)})
	}
	return out
}

// Eval evaluates the expression. The result is a value of JSON: nil, bool, int, json.Number,
// string, []any or map[string]any. A whole number that fits in an int is an int. A variable that
// does not exist is an error, unless the expression compares it with null. Errors are of
// kind [tapedeck.Invalid], or that of ctx, which ends the evaluation.
func (p *Program) Eval(ctx context.Context, variables map[string]any) (any, error) {
	env := make(map[string]any, len(p.required)+len(p.optional)+1)
	for _, name := range p.required {
		v, ok := variables[name]
		if !ok {
			return nil, missing(p.text, name, variables)
		}
		env[environmentName(name)] = normalize(v)
	}
	for _, name := range p.optional {
		if v, ok := variables[name]; ok {
			env[environmentName(name)] = normalize(v)
		}
	}
	env[budgetName] = &budget{ctx: ctx, start: time.Now()}
	out, err := expr.Run(p.code, env)
	if err == nil {
		out, err = export(out)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var refused *tapedeck.Error
		if errors.As(err, &refused) {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the expression %s fails: %s", quote(p.text), refused.Message).WithHint("%s", refused.Hint).Because(err)
		}
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the expression %s fails: %s", quote(p.text), cause(err)).Because(err)
	}
	return out, nil
}

// Bool evaluates a condition. A result that is not true or false is an error.
func (p *Program) Bool(ctx context.Context, variables map[string]any) (bool, error) {
	v, err := p.Eval(ctx, variables)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, tapedeck.Errorf(tapedeck.Invalid, "the condition %s is %s, not true or false", quote(p.text), describe(v))
	}
	return b, nil
}

func missing(text, name string, variables map[string]any) error {
	e := tapedeck.Errorf(tapedeck.Invalid, "the expression %s uses the variable %q, which does not exist", quote(text), name)
	names := slices.Sorted(maps.Keys(variables))
	switch {
	case len(names) == 0:
		return e.WithHint("there are no variables")
	case len(names) > 20:
		names = append(names[:20], "…")
	}
	return e.WithHint("the variables are %s; a comparison with null, as in %s != null, is allowed for a variable that may be missing", strings.Join(names, ", "), name)
}

// ownNames are names that no author wrote, and what stands for them in an error.
var ownNames = strings.NewReplacer("expression.decimalNumber", "number", "expression.farNumber", "number",
	`Identifier("`+literalName+`")`, "Number", variablePrefix, "", spaceInName, " ")

// cause returns the first line of an error of expr, without the excerpt of the
// translated text, which the user did not write.
func cause(err error) string {
	var f *file.Error
	text := err.Error()
	if errors.As(err, &f) {
		text = f.Message
		var refused *tapedeck.Error
		if errors.As(f.Prev, &refused) {
			text = refused.Message
		}
	}
	text, _, _ = strings.Cut(text, "\n")
	text = ownNames.Replace(text)
	switch { // no names of Go's types
	case strings.Contains(text, "operation: int("), strings.Contains(text, "cannot use number as argument (type int)"):
		text = "a whole number is needed where it has another value"
	case strings.Contains(text, "interface conversion") && strings.HasSuffix(text, "not string"):
		text = "a text is needed where it has another value"
	case strings.Contains(text, "interface conversion"), strings.Contains(text, "reflect"):
		text = "a value has the wrong type"
	}
	return shorten(text, 300)
}

// quote returns a text for a sentence: in one line, not too long.
func quote(text string) string {
	return fmt.Sprintf("%q", shorten(strings.Join(strings.Fields(text), " "), 120))
}

func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
