package chat

import (
	"bytes"
	"encoding/json"
)

// A callPiece is a piece of a call of a function. The first of a call should
// have its id and name, later ones its index; but some providers send whole
// calls, some without an index, some all under the index 0, some without ids.
type callPiece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // text that is JSON; from some, JSON
	} `json:"function"`
}

// maxCalls is the most calls of one answer.
const maxCalls = 256

// calls are those of one answer, in the order in which they began.
type calls struct {
	all []*call
}

type call struct {
	index *int
	id    string
	name  string
	begun bool // told: not before it has a name
	args  []byte
	told  int // bytes of args
}

func (c *calls) add(pieces []callPiece, yield func(Delta, error) bool) bool {
	for i := range pieces {
		p := &pieces[i]
		n := c.find(p)
		if n < 0 {
			c.all = append(c.all, &call{index: p.Index})
			n = len(c.all) - 1
		}
		k := c.all[n]
		if k.id == "" {
			k.id = p.ID
		}
		if k.name == "" {
			k.name = p.Function.Name
		}
		k.args = append(k.args, p.arguments()...)
		if k.name != "" && !k.tell(n, yield) {
			return false
		}
	}
	return true
}

// end tells of calls that were never given a name.
func (c *calls) end(yield func(Delta, error) bool) bool {
	for n, k := range c.all {
		if !k.tell(n, yield) {
			return false
		}
	}
	return true
}

// tell yields what is new of the call.
func (k *call) tell(n int, yield func(Delta, error) bool) bool {
	if !k.begun {
		k.begun = true
		if !yield(Delta{Kind: CallBegin, Call: n, ID: k.id, Name: k.name}, nil) {
			return false
		}
	}
	text := string(k.args[k.told:])
	k.told = len(k.args)
	return text == "" || yield(Delta{Kind: CallArgs, Call: n, Text: text}, nil)
}

// find returns the call that a piece continues, -1 if it begins one.
func (c *calls) find(p *callPiece) int {
	for n := len(c.all) - 1; n >= 0; n-- {
		k := c.all[n]
		switch {
		case p.Index != nil && k.index != nil && *p.Index != *k.index:
		case p.Index == nil && p.ID != "" && p.ID != k.id:
		case k.isOver(p):
			return -1
		default:
			return n
		}
	}
	return -1
}

// isOver reports whether p begins a new call, though it has the index of k, or
// none: it has another id, or, without ids, is a whole call after a whole one.
func (k *call) isOver(p *callPiece) bool {
	if p.Function.Name == "" {
		return false
	}
	if p.ID != "" && k.id != "" {
		return p.ID != k.id
	}
	return isObject(k.args) && isObject(p.arguments())
}

// arguments returns the text of the arguments.
func (p *callPiece) arguments() []byte {
	raw := p.Function.Arguments
	if s, ok := stringOf(raw); ok {
		return []byte(s)
	}
	if !isSet(raw) {
		return nil
	}
	return raw
}

func isObject(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) && json.Valid(b)
}
