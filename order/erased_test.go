package order

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/store"
)

// erased returns e without its payload, as a store erases it.
func erased(t *rapid.T, e tapedeck.Event) tapedeck.Event {
	t.Helper()
	data, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	r, err := store.EraseRecord(tapedeck.Record{Offset: e.Offset, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Event()
	if err != nil {
		t.Fatalf("%s: %v", r.Data, err)
	}
	return out
}

// TestErasedRunsAreInOrder erases events of valid runs. The result must still
// be in a valid order, and give the same catalogue entry.
func TestErasedRunsAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, again, s, sAgain := NewVerifier(), NewVerifier(), tapedeck.Session{}, tapedeck.Session{}
		start := payload.NewEvent(payload.RunStarted{ThreadID: "x", RunID: "run"})
		start.Invocation = "run"
		events := []tapedeck.Event{start}
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			events = append(events, anyContent(t))
		}
		n := int64(0)
		for i := range events {
			if events[i].Invocation == "" {
				events[i].Invocation = "run"
			}
			accepted, err := v.Accept(events[i : i+1])
			if err != nil {
				continue
			}
			for _, e := range accepted {
				e.Offset, n = n, n+1
				blank := erased(t, e)
				if err := again.Add(&blank); err != nil {
					t.Fatalf("%s %s became %s: %v", e.Type, e.Data, blank.Data, err)
				}
				s.Apply(&e)
				sAgain.Apply(&blank)
			}
		}
		if d := cmp.Diff(s, sAgain); d != "" {
			t.Errorf("the entry: %s", d)
		}
	})
}
