package expression

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/tapedeck/tapedeck"
)

// A collector finds the variables of an expression, and refuses what no expression may
// use.
type collector struct {
	found    []string
	callees  map[string]int  // how often a name is not a variable but a function
	declared map[string]bool // by let
	guarded  map[string]bool // compared with null
	err      *tapedeck.Error
}

// Visit implements ast.Visitor. Children are visited first.
func (c *collector) Visit(node *ast.Node) {
	if c.callees == nil {
		c.callees, c.declared, c.guarded = map[string]int{}, map[string]bool{}, map[string]bool{}
	}
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		c.found = append(c.found, n.Value)
	case *ast.VariableDeclaratorNode:
		c.declared[variableName(n.Name)] = true
	case *ast.BinaryNode:
		c.binary(n)
	case *ast.MemberNode:
		if n.Optional {
			c.guarded[root(n.Node)] = true
		}
	case *ast.CallNode:
		c.call(n)
	case *ast.BytesNode:
		c.refuse(tapedeck.Errorf(tapedeck.Invalid, "bytes are no values of JSON"))
	}
}

func (c *collector) binary(n *ast.BinaryNode) {
	_, left := n.Left.(*ast.NilNode)
	_, right := n.Right.(*ast.NilNode)
	switch n.Operator {
	case "??":
		c.guarded[root(n.Left)] = true
	case "==", "!=":
		if right {
			c.guarded[root(n.Left)] = true
		}
		if left {
			c.guarded[root(n.Right)] = true
		}
	}
}

func (c *collector) call(n *ast.CallNode) {
	id, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		c.refuse(tapedeck.Errorf(tapedeck.Invalid, "values have no methods").WithHint("%s", functionHint))
		return
	}
	c.callees[id.Value]++
	if functions[id.Value] == nil && id.Value != literalName {
		c.refuse(unknownFunction(id.Value))
		return
	}
	if lenient[id.Value] && len(n.Arguments) > 0 {
		c.guarded[root(n.Arguments[0])] = true
	}
}

// refuse keeps the first thing that is wrong.
func (c *collector) refuse(err *tapedeck.Error) {
	if c.err == nil {
		c.err = err
	}
}

// variables returns the names that have to exist, and those that may be missing, sorted.
func (c *collector) variables() (required, optional []string) {
	count := map[string]int{}
	for _, name := range c.found {
		count[variableName(name)]++
	}
	for name, n := range count {
		switch {
		case n <= c.callees[name]:
		case c.guarded[name] || c.declared[name]:
			optional = append(optional, name)
		default:
			required = append(required, name)
		}
	}
	slices.Sort(required)
	slices.Sort(optional)
	return required, optional
}

// root returns the variable to which a path of members belongs, "" if there is none.
func root(n ast.Node) string {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return variableName(n.Value)
	case *ast.MemberNode:
		return root(n.Node)
	case *ast.ChainNode:
		return root(n.Node)
	}
	return ""
}
