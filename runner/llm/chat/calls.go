package chat

import (
	"bytes"
	"encoding/json"

	"github.com/tapedeck/tapedeck/payload"
)

// A callPiece is a piece of a function call. The first piece of a call should have its id
// and name, and every piece its index. But some providers send whole calls, some send no
// index, some send index 0 for all calls, and some send no ids.
type callPiece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // JSON in a string; some providers send plain JSON
	} `json:"function"`
}

// maxCalls is the limit of calls in one answer.
const maxCalls = 256

// calls has the calls of one answer, in the order in which they began.
type calls struct {
	all []*call
}

type call struct {
	index *int
	id    string
	name  string
	begun bool // CallBegin was yielded, which needs the name
	args  []byte
	sent  int // the number of bytes of args that were yielded
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
		if k.name != "" && !k.flush(n, yield) {
			return false
		}
	}
	return true
}

// end yields the calls that never got a name.
func (c *calls) end(yield func(Delta, error) bool) bool {
	for n, k := range c.all {
		if !k.flush(n, yield) {
			return false
		}
	}
	return true
}

// flush yields the part of the call that was not yielded yet.
func (k *call) flush(n int, yield func(Delta, error) bool) bool {
	if !k.begun {
		k.begun = true
		if !yield(Delta{Kind: CallBegin, Call: n, ID: k.id, Name: k.name}, nil) {
			return false
		}
	}
	text := payload.Piece(k.args[k.sent:])
	k.sent = len(k.args)
	return text == "" || yield(Delta{Kind: CallArgs, Call: n, Text: text}, nil)
}

// find returns the index of the call that a piece continues; -1 if the piece begins a new
// call.
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

// isOver reports whether p begins a new call although it has the index of k, or no index.
// p must have a name. If both have an id, the ids must differ. Otherwise the arguments of
// both must be complete JSON objects.
func (k *call) isOver(p *callPiece) bool {
	if p.Function.Name == "" {
		return false
	}
	if p.ID != "" && k.id != "" {
		return p.ID != k.id
	}
	return isObject(k.args) && isObject(p.arguments())
}

// arguments returns the arguments as JSON text.
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
