package view

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// A document is a JSON value that is changed by JSON Patches (RFC 6902), in
// place. A patch is applied as a whole or not at all.
//
// Who writes the log is not trusted, and a few bytes of patch can ask for much:
// each "copy" of a document into itself doubles it. So all documents of a
// conversation live on one purse.
type document struct {
	root  any
	purse *purse
}

// A purse holds what patches may yet cost. Each patch adds to it; one that would
// overdraw it is refused. The zero value holds the first means.
type purse struct{ earned, spent int }

func (p *purse) left() int { return firstMeans + p.earned - p.spent }

// spend takes cost, or all that is left and reports an error.
func (p *purse) spend(cost int) error {
	if left := p.left(); cost > left {
		p.spent += left
		return errBudget
	}
	p.spent += cost
	return nil
}

const (
	firstMeans = 4 << 20 // of a conversation before its first patch
	perByte    = 64      // what each byte of a patch adds
	maxDepth   = 1000    // of what a view holds; encoding/json refuses what is ten times as deep
)

var (
	errPatch  = errors.New("the patch does not fit the document")
	errBudget = errors.New("the patch costs too much")
)

// newDocument decodes raw; nil is an empty object.
func newDocument(raw json.RawMessage, p *purse) (*document, error) {
	d := &document{root: map[string]any{}, purse: p}
	if raw == nil {
		return d, nil
	}
	var err error
	d.root, err = decodeValue(raw)
	return d, err
}

// An operation of a patch.
type operation struct {
	Op    string          `json:"op"`
	Path  *string         `json:"path"`
	From  *string         `json:"from"`
	Value json.RawMessage `json:"value"`
}

// A change is an elementary one: add, remove or replace a value.
type change struct {
	op    string
	path  []string
	value any
}

// patch applies a patch.
func (d *document) patch(raw json.RawMessage) error {
	var ops []operation
	if !jsonobj.Unpack(raw, &ops) {
		return errPatch
	}
	d.purse.earned += perByte * len(raw)
	var undo []change
	for _, o := range ops {
		if err := d.do(o, &undo); err != nil {
			for i := len(undo) - 1; i >= 0; i-- {
				_, _ = d.change(undo[i]) // what was done can be undone
			}
			return err
		}
	}
	return nil
}

// do does one operation. It adds to undo the changes that take it back.
func (d *document) do(o operation, undo *[]change) error {
	path, err := pointer(o.Path)
	if err != nil {
		return err
	}
	var value any
	switch o.Op {
	case "add", "replace", "test":
		if value, err = decodeValue(o.Value); err != nil { // no value is an error too
			return err
		}
	}
	switch o.Op {
	case "test":
		return d.test(path, value)
	case "add", "replace":
		return d.put(change{o.Op, path, value}, undo)
	case "remove":
		return d.record(change{o.Op, path, nil}, undo)
	case "copy":
		return d.copy(o, path, undo)
	case "move":
		return d.move(o, path, undo)
	}
	return errPatch
}

// record makes a change and adds its inverse to undo.
func (d *document) record(c change, undo *[]change) error {
	if err := d.purse.spend(d.shifted(c)); err != nil {
		return err
	}
	inverse, err := d.change(c)
	if err == nil {
		*undo = append(*undo, inverse)
	}
	return err
}

// put records a change that may make the document deeper. Its caller has paid
// for a look at all of the value.
func (d *document) put(c change, undo *[]change) error {
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
	if err := d.purse.spend(size(value, d.purse.left())); err != nil {
		return err
	}
	return d.put(change{"add", to, clone(value)}, undo)
}

func (d *document) move(o operation, to []string, undo *[]change) error {
	from, err := pointer(o.From)
	if err != nil || len(from) < len(to) && slices.Equal(from, to[:len(from)]) {
		return errPatch // not into itself
	}
	value, err := find(d.root, from)
	if err != nil {
		return err
	}
	if err := d.record(change{"remove", from, nil}, undo); err != nil {
		return err
	}
	if len(to) <= len(from) { // not deeper than it was
		return d.record(change{"add", to, value}, undo)
	}
	if err := d.purse.spend(size(value, d.purse.left())); err != nil {
		return err
	}
	return d.put(change{"add", to, value}, undo)
}

func (d *document) test(path []string, want any) error {
	have, err := find(d.root, path)
	if err == nil && !equal(have, want) {
		err = errPatch
	}
	return err
}

// shifted returns what a change costs because elements of an array have to move.
func (d *document) shifted(c change) int {
	if c.op == "replace" || len(c.path) == 0 || c.path[len(c.path)-1] == "-" {
		return 0
	}
	node, _ := find(d.root, c.path[:len(c.path)-1]) // if it is not there, the change will say so
	if a, ok := node.(*[]any); ok {
		return len(*a) / 64
	}
	return 0
}

// change makes a change and returns its inverse.
func (d *document) change(c change) (change, error) {
	if len(c.path) == 0 {
		inverse := change{"replace", nil, d.root}
		d.root = c.value // to remove all leaves null
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
