package durable_test

import (
	"context"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/protocol/durable"
)

// An overtaken store appends another message before each append.
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

// TestConditionsAreForTheStore: a condition, such as the expected head, can hold when the
// request arrives and not when it is written. So the handler must not check it.
func TestConditionsAreForTheStore(t *testing.T) {
	o := options(newMemory())
	store := &overtaken{Hub: o.Store.(*hub.Hub)}
	o.Store = store
	handler := durable.New(o)
	must(t, 201, handler, "PUT", "a", "one", asText...)
	store.before = func(tapedeck.Append) tapedeck.Append {
		return tapedeck.Append{Session: "stream/a", Chunks: [][]byte{[]byte("two")}}
	}
	must(t, 412, handler, "POST", "a", "x", append([]string{"If-Match", `"1"`}, asText...)...)
	store.before = func(a tapedeck.Append) tapedeck.Append { return a }
	must(t, 204, handler, "POST", "a", "three", append([]string{"Producer-Id", "p", "Producer-Epoch", "0", "Producer-Seq", "0"}, asText...)...)
	if got := textOf(t, must(t, 200, handler, "GET", "a", "")); got != "onetwothree" {
		t.Errorf("the stream has %q", got)
	}
}
