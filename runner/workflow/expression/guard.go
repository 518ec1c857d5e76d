package expression

import (
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/decimal"
)

// These names are not of users: the translator refuses names with this beginning. The budget
// is in the environment of every evaluation; the others are functions, which get it as their
// last argument.
const (
	budgetName = "__budget"
	guardName  = "__guard"
	keepName   = "__keep"
	lookedAt   = "__looked_at"
	lengthName = "__length"
	trimName   = "__trim"

	literalName    = "__literal" // of a number that expr-lang cannot read; only until it is compiled
	charactersName = "__characters"
	sliceName      = "__slice"
	listName       = "__list"
	textName       = "__text"
	wholeName      = "__whole"
	keyName        = "__key"
	sumName        = "__sum"
	pairsName      = "__sort_pairs"
	equalName      = "__equal"
)

// operators are our functions for the operators of expr-lang, which know no decimals.
var operators = map[string]string{
	"+": "__add", "-": "__subtract", "*": "__multiply", "/": "__divide", "%": "__remainder", "**": "__power", "^": "__power", "..": "__range",
	"<": "__below", "<=": "__most", ">": "__above", ">=": "__least", "==": equalName, "in": "__in",
}

// guards puts a guard around everything that makes a new value or repeats, and replaces
// operators and numbers with our own.
type guards struct {
	source  []rune   // that the tree is of; locations count runes
	widened []string // see translator
	lang    dialect
	err     *tapedeck.Error
}

// Visit implements ast.Visitor. It does not come to the nodes that it makes.
func (g *guards) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.FloatNode:
		ast.Patch(node, g.literal(n))
	case *ast.UnaryNode:
		g.unary(node, n)
	case *ast.BinaryNode:
		g.binary(node, n)
	case *ast.PredicateNode:
		n.Node = own(guardName, n.Node, nodesOf(n.Node))
	case *ast.VariableDeclaratorNode:
		n.Value = guarded(n.Value)
	case *ast.BuiltinNode:
		keepElements(n)
		ast.Patch(node, guarded(builtinCall(n)))
	case *ast.MemberNode:
		if _, member := n.Property.(*ast.StringNode); !member {
			n.Node = own(charactersName, n.Node)
		}
		if literalKind(n.Property) == noLiteral { // a long text takes long to look up
			n.Property = own(lengthName, n.Property)
		}
	case *ast.CallNode:
		switch id, ok := n.Callee.(*ast.IdentifierNode); {
		case ok && id.Value == literalName:
			ast.Patch(node, g.number(n.Arguments[0].(*ast.StringNode).Value))
		case ok && functions[id.Value] != nil:
			if patterns[id.Value] && len(n.Arguments) > 1 {
				g.pattern(n.Arguments[1], feel)
			}
			ast.Patch(node, guarded(own(id.Value, n.Arguments...)))
		}
	case *ast.PairNode:
		n.Value = kept(n.Value)
	case *ast.ArrayNode:
		for i := range n.Nodes {
			n.Nodes[i] = kept(n.Nodes[i])
		}
		ast.Patch(node, guarded(n))
	case *ast.SliceNode:
		ast.Patch(node, guarded(sliceCall(n)))
	case *ast.MapNode:
		g.keys(n)
		ast.Patch(node, guarded(n))
	}
}

// keys refuses an object that has a key twice: it would keep one of the values.
func (g *guards) keys(n *ast.MapNode) {
	seen := map[string]bool{}
	for _, p := range n.Pairs {
		if key, ok := p.(*ast.PairNode).Key.(*ast.StringNode); ok {
			if seen[key.Value] {
				g.refuse("the key %s is twice in one object", quote(key.Value))
			}
			seen[key.Value] = true
		}
	}
}

// patterns are functions of ours. Their second argument is a regular expression of FEEL.
var patterns = map[string]bool{"matches_feel": true, "replace_pattern": true, "split_pattern": true}

// pattern refuses what is written in the expression and is no regular expression.
func (g *guards) pattern(n ast.Node, lang dialect) {
	if s, ok := n.(*ast.StringNode); ok {
		if _, err := parsePattern(s.Value, lang); err != nil {
			g.refuse("%s", err)
		}
	}
}

// literal returns the number that is written in the expression. The node has lost it: it
// has a float64.
func (g *guards) literal(n *ast.FloatNode) ast.Node {
	at, text := n.Location(), ""
	if at.From >= 0 && at.From <= at.To && at.To <= len(g.source) {
		text = strings.ReplaceAll(string(g.source[at.From:at.To]), "_", "")
	}
	if f, err := strconv.ParseFloat(text, 64); err != nil || f != n.Value {
		g.refuse("a number cannot be read")
	}
	return g.number(asWritten(text, g.widened))
}

// number returns the node of a number.
func (g *guards) number(text string) ast.Node {
	d, err := decimal.Parse(text)
	if err != nil {
		g.refuse("the number %s cannot be computed with: %s", shorten(text, 50), decimal.Bounds)
	}
	if i, ok := number(d).(int); ok {
		return &ast.IntegerNode{Value: i}
	}
	return &ast.ConstantNode{Value: decimalNumber{d}}
}

func (g *guards) unary(node *ast.Node, n *ast.UnaryNode) {
	if n.Operator != "-" && n.Operator != "+" {
		return
	}
	name := "__plus"
	if n.Operator == "-" {
		name = "__negate"
	}
	switch v := n.Node.(type) {
	case *ast.IntegerNode:
		if n.Operator == "-" { // there are no negative ones, so it cannot be the smallest
			v.Value = -v.Value
		}
		ast.Patch(node, v)
		return
	case *ast.ConstantNode:
		if d, ok := v.Value.(decimalNumber); ok && n.Operator == "-" {
			v.Value = decimalNumber{d.d.Neg()}
		}
		ast.Patch(node, v)
		return
	case *ast.StringNode, *ast.BoolNode, *ast.NilNode:
		g.refuse("%s needs a number, not %s", n.Operator, literalText(v))
	}
	ast.Patch(node, own(name, n.Node))
}

func (g *guards) binary(node *ast.Node, n *ast.BinaryNode) {
	left, right := literalKind(n.Left), literalKind(n.Right)
	mismatch := false
	switch n.Operator {
	case "matches":
		g.pattern(n.Right, plain)
		ast.Patch(node, own("matches_pattern", n.Left, n.Right))
		return
	case "contains":
		n.Left, n.Right = own(lengthName, n.Left), own(lengthName, n.Right)
		return
	case "startsWith", "endsWith":
		n.Right = own(lengthName, n.Right)
		return
	case "==", "!=":
		if g.lang == feel {
			left, right = max(left, builtKind(n.Left)), max(right, builtKind(n.Right))
		}
		mismatch = left != right && left > nullLiteral && right > nullLiteral
		if !mismatch && (shortLiteral(n.Left) || shortLiteral(n.Right)) {
			return // expr-lang compares texts, booleans and null as we do, and faster
		}
	case "<", "<=", ">", ">=":
		mismatch = left == nullLiteral || left == boolLiteral || right == nullLiteral || right == boolLiteral || left != right && left != noLiteral && right != noLiteral
	case "in":
		mismatch = right > nullLiteral
	case "-", "*", "/", "%", "**", "^", "..":
		mismatch = notNumber(left) || notNumber(right)
	case "+":
	default:
		return
	}
	if mismatch {
		g.refuse("%s cannot have %s and %s", n.Operator, literalText(n.Left), literalText(n.Right))
	}
	switch n.Operator {
	case "!=":
		ast.Patch(node, &ast.UnaryNode{Operator: "not", Node: own(equalName, n.Left, n.Right)})
	case "..": // the list may be large
		ast.Patch(node, guarded(own(operators[n.Operator], n.Left, n.Right)))
	default:
		ast.Patch(node, own(operators[n.Operator], n.Left, n.Right))
	}
}

const (
	noLiteral = iota
	nullLiteral
	boolLiteral
	textLiteral
	numberLiteral
	listLiteral
	objectLiteral
)

// builtKind tells lists and objects that are written in the expression.
func builtKind(n ast.Node) int {
	c, ok := n.(*ast.CallNode)
	if !ok || c.Callee.String() != guardName {
		return noLiteral
	}
	switch c.Arguments[0].(type) {
	case *ast.ArrayNode:
		return listLiteral
	case *ast.MapNode:
		return objectLiteral
	}
	return noLiteral
}

// literalKind tells values that are written in the expression. An operator that can only
// fail with them is refused before anything runs.
func literalKind(n ast.Node) int {
	switch n.(type) {
	case *ast.NilNode:
		return nullLiteral
	case *ast.BoolNode:
		return boolLiteral
	case *ast.StringNode:
		return textLiteral
	case *ast.IntegerNode, *ast.ConstantNode:
		return numberLiteral
	}
	return noLiteral
}

// literalText returns a value in a sentence as it is written in the expression.
func literalText(n ast.Node) string {
	switch n := n.(type) {
	case *ast.NilNode:
		return "null"
	case *ast.BoolNode:
		return n.String()
	case *ast.IntegerNode:
		return n.String()
	case *ast.StringNode:
		return quote(n.Value)
	case *ast.ConstantNode:
		return text(n.Value)
	case *ast.IdentifierNode:
		return variableName(n.Value)
	}
	switch builtKind(n) {
	case listLiteral:
		return "a list"
	case objectLiteral:
		return "an object"
	}
	return "a value"
}

func notNumber(kind int) bool { return kind != noLiteral && kind != numberLiteral }

// shortLiteral reports whether a node is null, a boolean or a short text.
func shortLiteral(n ast.Node) bool {
	if s, ok := n.(*ast.StringNode); ok && len(s.Value) > 16*bytesOfTick {
		return false
	}
	return notNumber(literalKind(n))
}

// nodesOf counts the nodes of a tree, for its guard.
func nodesOf(n ast.Node) ast.Node {
	count := nodeCounter(0)
	ast.Walk(&n, &count)
	return &ast.IntegerNode{Value: int(count)}
}

type nodeCounter int

func (c *nodeCounter) Visit(*ast.Node) { *c++ }

// guarded puts a guard around a node that is evaluated once.
func guarded(n ast.Node) ast.Node { return own(guardName, n, &ast.IntegerNode{}) }

// kept counts an element of a list or an object that is being made, unless it is in the
// expression.
func kept(n ast.Node) ast.Node {
	if literalKind(n) != noLiteral {
		return n
	}
	return own(keepName, n, &ast.IntegerNode{})
}

// keepElements counts what a function makes of each element, if it keeps that.
func keepElements(n *ast.BuiltinNode) {
	switch n.Name {
	case "map", "groupBy", "sortBy", "sum":
	default:
		return
	}
	for _, a := range n.Arguments {
		if p, ok := a.(*ast.PredicateNode); ok {
			p.Node.(*ast.CallNode).Callee = &ast.IdentifierNode{Value: keepName} // it has a guard already
		}
	}
}

func (g *guards) refuse(format string, args ...any) {
	if g.err == nil {
		g.err = tapedeck.Errorf(tapedeck.Invalid, format, args...)
	}
}

// builtinCall returns the call of a function of expr-lang with arguments that it can have, or
// of our own instead of one that compares or adds.
func builtinCall(n *ast.BuiltinNode) ast.Node {
	if n.Name == "trim" && len(n.Arguments) == 2 {
		return own(trimName, n.Arguments...)
	}
	if len(n.Arguments) > 0 {
		n.Arguments[0] = collection(n.Name, n.Arguments[0])
	}
	for i := range min(textArguments[n.Name], len(n.Arguments)) {
		n.Arguments[i] = own(textName, &ast.StringNode{Value: n.Name}, n.Arguments[i])
	}
	switch {
	case n.Name == "sum" && len(n.Arguments) == 2:
		return own(sumName, &ast.BuiltinNode{Name: "map", Arguments: n.Arguments})
	case n.Name == "sum":
		return own(sumName, n.Arguments...)
	case n.Name == "sortBy":
		return own(pairsName, append([]ast.Node{pairsOf(n.Arguments)}, n.Arguments[2:]...)...)
	case n.Name == "groupBy":
		if p, ok := n.Arguments[1].(*ast.PredicateNode); ok {
			p.Node = own(keyName, p.Node)
		}
	case (n.Name == "take" || n.Name == "get") && len(n.Arguments) == 2:
		n.Arguments[1] = own(wholeName, &ast.StringNode{Value: n.Name}, n.Arguments[1])
	}
	switch n.Name {
	case "len":
		for i := range n.Arguments {
			n.Arguments[i] = own(lengthName, n.Arguments[i])
		}
	case "count", "flatten", "fromPairs", "keys", "values", "toPairs", "reverse":
		if len(n.Arguments) == 1 {
			n.Arguments[0] = own(lookedAt, n.Arguments[0])
		}
	}
	return n
}

// collection returns the first argument of a function of expr-lang so that it has no bytes of a
// text. A literal of another type is refused when it is compiled.
func collection(name string, n ast.Node) ast.Node {
	switch name {
	case "first", "last", "get":
		return own(charactersName, n)
	case "all", "none", "any", "one", "filter", "map", "find", "findIndex", "findLast", "findLastIndex", "count",
		"groupBy", "sortBy", "sum", "reduce", "take", "reverse", "flatten":
		if literalKind(n) == noLiteral {
			return own(listName, &ast.StringNode{Value: name}, n)
		}
	}
	return n
}

// sliceCall returns our own slice, which counts the characters of a text.
func sliceCall(n *ast.SliceNode) ast.Node {
	from, to := n.From, n.To
	if from == nil {
		from = &ast.IntegerNode{}
	}
	if to == nil {
		to = &ast.IntegerNode{Value: sliceEnd}
	}
	return own(sliceName, n.Node, from, to)
}

// textArguments says how many of the first arguments of a function of expr-lang are texts.
// Given another value, the function fails with the names of Go's types.
var textArguments = map[string]int{
	"upper": 1, "lower": 1, "trim": 2, "trimPrefix": 2, "trimSuffix": 2, "split": 2, "splitAfter": 2,
	"hasPrefix": 2, "hasSuffix": 2, "toBase64": 1,
}

// own returns the call of one of our functions.
func own(name string, args ...ast.Node) ast.Node {
	args = append(slices.Clip(args), &ast.IdentifierNode{Value: budgetName})
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: args}
}
