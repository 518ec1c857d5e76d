package expression

import (
	"context"
	"reflect"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/decimal"
)

// These bound an evaluation. A step is an element of a predicate that is evaluated, or a node of
// a value that is measured, about 2 µs at most. Everything that takes long counts as parts of
// steps, ticks of about 30 ns each. So whether an expression fails does not depend on how busy
// the server is. The time is the last resort, for work that no count includes.
const (
	ticksOfStep  = 64
	callTicks    = 8
	decimalTicks = 16 // to compute a decimal
	bytesOfTick  = 64 // of texts that are compared or copied
	maxTime      = 30 * time.Second
	ticksOfLook  = 256 * ticksOfStep // between two looks at the context, half a millisecond

	maxDepthOfValue = 200
	maxKept         = 32 * MaxSize
)

// maxWork is how many steps an evaluation takes at most. Only tests change it.
var maxWork = 1_000_000

// A budget is what one evaluation may use.
type budget struct {
	ctx      context.Context
	ticks    int
	nextLook int // the ticks after which to look at ctx
	kept     int // bytes of the elements of lists and objects that are being made
	start    time.Time
	deep     bool // a value is nested too deep to be measured
}

// sizeError is the error of a value that measure refuses.
func (b *budget) sizeError() error {
	if b.deep {
		return errDeep
	}
	return errSize
}

// spend counts ticks, and fails if they are used up, or if the evaluation was stopped.
func (b *budget) spend(ticks int) error {
	if b.ticks += ticks; b.ticks > maxWork*ticksOfStep {
		return errWork
	}
	if b.ticks < b.nextLook {
		return nil
	}
	b.nextLook = b.ticks + ticksOfLook
	return b.ctx.Err()
}

// textTicks returns a tick for 16 bytes of a text, 0 for another value.
func textTicks(v any) int {
	s, _ := v.(string)
	return len(s) / 16
}

// lengthOf returns the length of a list.
func lengthOf(v any) (int, bool) {
	switch v := v.(type) {
	case nil, string, int, bool, decimalNumber:
		return 0, false
	case []any:
		return len(v), true
	}
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice && r.Kind() != reflect.Array {
		return 0, false
	}
	return r.Len(), true
}

// converting returns the ticks for list and object, which make a new one of some values.
func converting(v any) int {
	switch v := v.(type) {
	case nil, string, int, bool, decimalNumber, []any:
		return 0
	case []int:
		return len(v)
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.Slice || r.Kind() == reflect.Map {
		return 16 * r.Len()
	}
	return 0
}

// walk counts a step for each value in values.
func (b *budget) walk(values []any) error {
	size := 8 * MaxSize
	if !b.measure(values, &size, 0) {
		return b.sizeError()
	}
	return b.spend(0)
}

var (
	errWork = tapedeck.Errorf(tapedeck.Invalid, "it takes too many steps")
	errDeep = tapedeck.Errorf(tapedeck.Invalid, "it has a value that is nested more than %d deep", maxDepthOfValue)
	errTime = tapedeck.Errorf(tapedeck.Invalid, "it takes longer than %d seconds", maxTime/time.Second)
	errKept = tapedeck.Errorf(tapedeck.Invalid, "it makes lists of more than %d MiB together", maxKept>>20)
	errSize = tapedeck.Errorf(tapedeck.Invalid, "it makes a value of more than 1 MiB")
)

// fewNodes is how many nodes of a predicate a step pays for.
const fewNodes = 16

// guard returns v, or an error if v is too large or the budget is used up. Nodes is the number
// of nodes that made v in a predicate.
func (b *budget) guard(v any, nodes int) (any, error) {
	_, err := b.look(v, nodes)
	return v, err
}

// keep is guard for an element of a list or an object that is being made. It stays in memory
// until all are there and can be measured together.
func (b *budget) keep(v any, nodes int) (any, error) {
	size, err := b.look(v, nodes)
	if b.kept += size; b.kept > maxKept && err == nil {
		err = errKept
	}
	return v, err
}

// look returns the size of a value, or the error of guard.
func (b *budget) look(v any, nodes int) (size int, err error) {
	left := MaxSize
	if !b.measure(v, &left, 0) {
		return 0, b.sizeError()
	}
	if time.Since(b.start) > maxTime {
		return 0, errTime
	}
	return MaxSize - left, b.spend(ticksOfStep + 2*max(nodes-fewNodes, 0))
}

// measure subtracts the size of v and reports whether something is left. It stops as
// soon as nothing is left, so values that contain themselves many times cost no more.
func (b *budget) measure(v any, left *int, depth int) bool {
	*left -= 8
	b.ticks += ticksOfStep
	if b.deep = b.deep || depth > maxDepthOfValue; *left < 0 || b.deep {
		return false
	}
	switch v := v.(type) {
	case nil, bool, int:
	case string:
		*left -= len(v)
		b.ticks += len(v) / bytesOfTick
	case decimalNumber:
		*left -= decimal.Digits
	case farNumber:
		*left -= len(v.text)
	case []any:
		for _, e := range v {
			if !b.measure(e, left, depth+1) {
				return false
			}
		}
	case map[string]any:
		for k, e := range v {
			*left -= len(k)
			if !b.measure(e, left, depth+1) {
				return false
			}
		}
	case []int:
		*left -= 8 * len(v)
		b.ticks += ticksOfStep * len(v)
	case []string:
		for _, e := range v {
			*left -= len(e) + 8
		}
	default:
		return b.measureOther(reflect.ValueOf(v), left, depth+1)
	}
	return *left >= 0
}

// measureOther is measure for lists and objects that only expr-lang makes, such as those of
// groupBy and toPairs.
func (b *budget) measureOther(v reflect.Value, left *int, depth int) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !b.measure(v.Index(i).Interface(), left, depth) {
				return false
			}
		}
	case reflect.Map:
		for key, e := range v.Seq2() {
			if !b.measure(key.Interface(), left, depth) || !b.measure(e.Interface(), left, depth) {
				return false
			}
		}
	}
	return *left >= 0
}
