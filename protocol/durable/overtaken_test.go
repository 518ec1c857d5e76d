package durable_test

import (
	"context"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/protocol/durable"
)

// An overtaken store appends something else before what it is asked to append.
type overtaken struct {
	*hub.Hub
	before func(a tapedeck.Append) tapedeck.Append
}

func (o *overtaken) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	if f := o.before; f != nil {
		o.before = nil
		if _, err := o.Hub.Append(ctx, f(a)); err != nil {
			return tapedeck.Appended{}, err
		}
	}
	return o.Hub.Append(ctx, a)
}

// TestConditionsAreForTheStore: that the head is as expected, and that an append
// is no repetition, was true when the request came and is not when it is written.
// So the door must not look for itself.
func TestConditionsAreForTheStore(t *testing.T) {
	o := options(newMemory())
	store := &overtaken{Hub: o.Store.(*hub.Hub)}
	o.Store = store
	door := durable.New(o)
	must(t, 201, door, "PUT", "a", "one", asText...)
	store.before = func(tapedeck.Append) tapedeck.Append {
		return tapedeck.Append{Session: "stream/a", Chunks: [][]byte{[]byte("two")}}
	}
	must(t, 412, door, "POST", "a", "x", append([]string{"If-Match", `"1"`}, asText...)...)
	store.before = func(a tapedeck.Append) tapedeck.Append { return a }
	must(t, 204, door, "POST", "a", "three", append([]string{"Producer-Id", "p", "Producer-Epoch", "0", "Producer-Seq", "0"}, asText...)...)
	if got := textOf(t, must(t, 200, door, "GET", "a", "")); got != "onetwothree" {
		t.Errorf("the stream has %q", got)
	}
}
