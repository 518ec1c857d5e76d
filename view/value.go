package view

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// JSON values are kept as encoding/json decodes them into an any, with two
// differences: numbers keep their spelling (json.Number), and arrays are
// *[]any, so that they can grow in place.

// decodeValue decodes JSON.
func decodeValue(raw json.RawMessage) (any, error) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err := dec.Decode(&v)
	return boxed(v), err
}

func boxed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			v[k] = boxed(child)
		}
	case []any:
		for i, child := range v {
			v[i] = boxed(child)
		}
		return &v
	}
	return v
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := maps.Clone(v)
		for k, child := range c {
			c[k] = clone(child)
		}
		return c
	case *[]any:
		c := slices.Clone(*v)
		for i, child := range c {
			c[i] = clone(child)
		}
		return &c
	}
	return v
}

// size estimates the bytes of v. It stops counting soon after limit.
func size(v any, limit int) int {
	n := 16
	switch v := v.(type) {
	case string:
		n += len(v)
	case json.Number:
		n += len(v)
	case map[string]any:
		for k, child := range v {
			if n += len(k) + size(child, limit-n); n > limit {
				break
			}
		}
	case *[]any:
		for _, child := range *v {
			if n += size(child, limit-n); n > limit {
				break
			}
		}
	}
	return n
}

// nesting returns the depth of nested arrays and objects in JSON text.
func nesting(raw []byte) int {
	deepest, depth, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			inString = !inString
		case inString:
			if c == '\\' {
				i++
			}
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// depth returns the depth of nested arrays and objects in v.
func depth(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		for _, child := range v {
			n = max(n, depth(child))
		}
	case *[]any:
		for _, child := range *v {
			n = max(n, depth(child))
		}
	default:
		return 0
	}
	return n + 1
}

// equal compares values as JSON Patch does: numbers by value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case *[]any:
		b, ok := b.(*[]any)
		return ok && slices.EqualFunc(*a, *b, equal)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	}
	return a == b // strings, booleans and null
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

// pointer splits a JSON Pointer (RFC 6901) into its tokens.
func pointer(p *string) ([]string, error) {
	switch {
	case p == nil || *p != "" && (*p)[0] != '/':
		return nil, errPatch
	case *p == "":
		return nil, nil
	}
	tokens := strings.Split((*p)[1:], "/")
	for i, t := range tokens {
		if strings.Contains(t, "~") {
			tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
		}
	}
	return tokens, nil
}

// find returns the value at path below node.
func find(node any, path []string) (any, error) {
	for _, token := range path {
		switch n := node.(type) {
		case map[string]any:
			child, ok := n[token]
			if !ok {
				return nil, errPatch
			}
			node = child
		case *[]any:
			i, err := index(token, len(*n)-1)
			if err != nil {
				return nil, err
			}
			node = (*n)[i]
		default:
			return nil, errPatch
		}
	}
	return node, nil
}

// index parses the index of an array's element, from 0 to last.
func index(token string, last int) (int, error) {
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i > last || strconv.Itoa(i) != token {
		return 0, errPatch
	}
	return i, nil
}
