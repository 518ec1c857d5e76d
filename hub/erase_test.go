package hub_test

import (
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// TestEraseWakesFollowers: a follower gets the receipt at once, and a later one does
// not get the erased payloads.
func TestEraseWakesFollowers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		add(t, h, 2)
		done := make(chan error)
		go func() { done <- collect(t.Context(), h, 0, 3) }()
		synctest.Wait()
		ranges := []tapedeck.OffsetRange{{From: 0, To: 2}}
		receipt := payload.NewEvent(payload.SessionRedacted{Offsets: ranges})
		if _, err := h.Erase(t.Context(), tapedeck.Erasure{Session: "s", Ranges: ranges, Events: []tapedeck.Event{receipt}}); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		for e, err := range tapedeck.Events(t.Context(), h, "s", 0) {
			if err != nil || e.Erased() != (e.Offset < 2) {
				t.Errorf("at %d: %s, %v", e.Offset, e.Data, err)
			}
		}
	})
}
