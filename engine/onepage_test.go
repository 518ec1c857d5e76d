package engine

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/memory"
)

// TestOnePage: reads in any order are those of the log, also beyond the first page, and see
// what was appended before forget.
func TestOnePage(t *testing.T) {
	store := memory.New(memory.Options{})
	defer func() { _ = store.Close() }()
	if _, err := store.Create(t.Context(), tapedeck.Spec{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	grow := func(n int) {
		t.Helper()
		a := tapedeck.Append{Session: "a"}
		for range n {
			a.Events = append(a.Events, tapedeck.Event{Type: "test.note", Data: []byte(`{"value":1}`)})
		}
		if _, err := store.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	grow(2 * tapedeck.DefaultLimit)
	log := &onePage{Log: store, session: "a"}
	for range 300 {
		h, err := store.Head(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		r := tapedeck.Range{From: rand.Int64N(h.Head + 1), Limit: rand.IntN(4) * 400, Reverse: rand.IntN(8) == 0}
		if rand.IntN(8) == 0 {
			r.MaxBytes = 500
		}
		want, wantErr := store.Read(t.Context(), "a", r)
		got, err := log.Read(t.Context(), "a", r)
		if err != nil || wantErr != nil {
			t.Fatal(err, wantErr)
		}
		// A page may be shorter than the limit allows: the reader goes on at Next.
		if n := len(got.Records); n == 0 && len(want.Records) > 0 || n > len(want.Records) || !reflect.DeepEqual(got.Records, want.Records[:n]) {
			t.Fatalf("%+v: got %d records, want %d", r, n, len(want.Records))
		}
		if len(got.Records) == len(want.Records) && !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v: got the page %d %d %t, want %d %d %t", r, got.Next, got.Head, got.Closed, want.Next, want.Head, want.Closed)
		}
		if !r.Reverse && got.Next != r.From+int64(len(got.Records)) {
			t.Fatalf("%+v: %d records, and the next page begins at %d", r, len(got.Records), got.Next)
		}
		if rand.IntN(10) == 0 {
			log.forget()
			grow(1)
		}
	}
}
