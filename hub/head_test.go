package hub_test

import (
	"context"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/store/memory"
)

// A headCounter counts the calls of Head.
type headCounter struct {
	tapedeck.Store
	heads int
}

func (s *headCounter) Head(ctx context.Context, session string) (tapedeck.Session, error) {
	s.heads++
	return s.Store.Head(ctx, session)
}

// TestNoCallWhileAPageIsHeld: a follower yields a page without another call of the
// store, because it would hold the records while it waits for the answer.
func TestNoCallWhileAPageIsHeld(t *testing.T) {
	store := &headCounter{Store: memory.New(memory.Options{})}
	h := hub.New(store)
	create(t, h)
	add(t, h, 21)
	store.heads = 0
	if err := collect(t.Context(), h, 0, 21); err != nil {
		t.Fatal(err)
	}
	if store.heads != 1 {
		t.Errorf("Head was called %d times, want once, at the beginning", store.heads)
	}
}
