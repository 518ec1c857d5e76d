package view

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// A document is a JSON value that JSON Patches (RFC 6902) change in place. A
// patch is applied as a whole or not at all.
//
// Patches are hostile input, and a few bytes of patch can cost much: each
// "copy" of a document into itself doubles it. So all documents of a
// conversation share one budget.
type document struct {
	root   any
	budget *patchBudget
}

// A patchBudget bounds the cost of patches. Each patch adds to the budget in
// proportion to its length; a patch that costs more than is left is refused.
// The zero value holds initialBudget.
type patchBudget struct{ earned, spent int }

func (p *patchBudget) left() int { return initialBudget + p.earned - p.spent }

// spend takes cost from the budget. If that is more than is left, it takes all
// and returns errBudget.
func (p *patchBudget) spend(cost int) error {
	if left := p.left(); cost > left {
		p.spent += left
		return errBudget
	}
	p.spent += cost
	return nil
}

const (
	initialBudget = 4 << 20 // the budget of a conversation before its first patch
	budgetPerByte = 64      // what each byte of a patch adds to the budget
	maxDepth      = 1000    // deepest nesting in a view; encoding/json refuses ten times that
)

var (
	errPatch  = errors.New("the patch does not fit the document")
	errBudget = errors.New("the patch costs too much")
)

// newDocument decodes raw; nil is an empty object.
func newDocument(raw json.RawMessage, p *patchBudget) (*document, error) {
	d := &document{root: map[string]any{}, budget: p}
	if raw == nil {
		return d, nil
	}
	var err error
	d.root, err = decodeValue(raw)
	return d, err
}

// An operation is one operation of a JSON Patch.
type operation struct {
	Op    string          `json:"op"`
	Path  *string         `json:"path"`
	From  *string         `json:"from"`
	Value json.RawMessage `json:"value"`
}

// A change adds, removes or replaces one value.
type change struct {
	op    string
	path  []string
	value any
}

// patch applies a patch. If an operation fails, it undoes the ones before it.
func (d *document) patch(raw json.RawMessage) error {
	var ops []operation
	if !jsonobj.Unpack(raw, &ops) {
		return errPatch
	}
	d.budget.earned += budgetPerByte * len(raw)
	var undo []change
	for _, o := range ops {
		if err := d.apply(o, &undo); err != nil {
			for i := len(undo) - 1; i >= 0; i-- {
				_, _ = d.change(undo[i]) // undoing cannot fail
			}
			return err
		}
	}
	return nil
}

// apply applies one operation, and appends to undo the changes that revert it.
func (d *document) apply(o operation, undo *[]change) error {
	path, err := pointer(o.Path)
	if err != nil {
		return err
	}
	var value any
	switch o.Op {
	case "add", "replace", "test":
		if value, err = decodeValue(o.Value); err != nil { // an absent value is an error, too
			return err
		}
	}
	switch o.Op {
	case "test":
		return d.test(path, value)
	case "add", "replace":
		return d.insert(change{o.Op, path, value}, undo)
	case "remove":
		return d.record(change{o.Op, path, nil}, undo)
	case "copy":
		return d.copy(o, path, undo)
	case "move":
		return d.move(o, path, undo)
	}
	return errPatch
}

// record makes a change and appends its inverse to undo.
func (d *document) record(c change, undo *[]change) error {
	if err := d.budget.spend(d.shiftCost(c)); err != nil {
		return err
	}
	inverse, err := d.change(c)
	if err == nil {
		*undo = append(*undo, inverse)
	}
	return err
}

// insert records a change that may make the document deeper. The caller must
// have paid for reading all of the value.
func (d *document) insert(c change, undo *[]change) error {
	if len(c.path)+depth(c.value) > maxDepth {
		return errBudget
	}
	return d.record(c, undo)
}

func (d *document) copy(o operation, to []string, undo *[]change) error {
	from, err := pointer(o.From)
	if err != nil {
		return err
	}
	value, err := find(d.root, from)
	if err != nil {
		return err
	}
	if err := d.budget.spend(size(value, d.budget.left())); err != nil {
		return err
	}
	return d.insert(change{"add", to, clone(value)}, undo)
}

func (d *document) move(o operation, to []string, undo *[]change) error {
	from, err := pointer(o.From)
	if err != nil || len(from) < len(to) && slices.Equal(from, to[:len(from)]) {
		return errPatch // a value cannot move into itself
	}
	value, err := find(d.root, from)
	if err != nil {
		return err
	}
	if err := d.record(change{"remove", from, nil}, undo); err != nil {
		return err
	}
	if len(to) <= len(from) { // no deeper than before
		return d.record(change{"add", to, value}, undo)
	}
	if err := d.budget.spend(size(value, d.budget.left())); err != nil {
		return err
	}
	return d.insert(change{"add", to, value}, undo)
}

func (d *document) test(path []string, want any) error {
	have, err := find(d.root, path)
	if err == nil && !equal(have, want) {
		err = errPatch
	}
	return err
}

// shiftCost returns the cost of moving the elements of an array for a change.
func (d *document) shiftCost(c change) int {
	if c.op == "replace" || len(c.path) == 0 || c.path[len(c.path)-1] == "-" {
		return 0
	}
	node, _ := find(d.root, c.path[:len(c.path)-1]) // if it does not exist, the change fails
	if a, ok := node.(*[]any); ok {
		return len(*a) / 64
	}
	return 0
}

// change makes a change and returns its inverse.
func (d *document) change(c change) (change, error) {
	if len(c.path) == 0 {
		inverse := change{"replace", nil, d.root}
		d.root = c.value // removing the root leaves null
		return inverse, nil
	}
	node, err := find(d.root, c.path[:len(c.path)-1])
	if err != nil {
		return change{}, err
	}
	switch n := node.(type) {
	case map[string]any:
		return changeMember(n, c)
	case *[]any:
		return changeElement(n, c)
	}
	return change{}, errPatch
}

func changeMember(n map[string]any, c change) (change, error) {
	name := c.path[len(c.path)-1]
	old, ok := n[name]
	switch {
	case !ok && c.op != "add":
		return change{}, errPatch
	case !ok:
		n[name] = c.value
		return change{"remove", c.path, nil}, nil
	case c.op == "remove":
		delete(n, name)
		return change{"add", c.path, old}, nil
	}
	n[name] = c.value
	return change{"replace", c.path, old}, nil
}

func changeElement(n *[]any, c change) (change, error) {
	parent, token := c.path[:len(c.path)-1], c.path[len(c.path)-1]
	last := len(*n) - 1
	if c.op == "add" {
		if last++; token == "-" {
			token = strconv.Itoa(last)
		}
	}
	i, err := index(token, last)
	if err != nil {
		return change{}, err
	}
	path := append(slices.Clone(parent), token)
	switch c.op {
	case "add":
		*n = slices.Insert(*n, i, c.value)
		return change{"remove", path, nil}, nil
	case "remove":
		old := (*n)[i]
		*n = slices.Delete(*n, i, i+1)
		return change{"add", path, old}, nil
	}
	old := (*n)[i]
	(*n)[i] = c.value
	return change{"replace", path, old}, nil
}
