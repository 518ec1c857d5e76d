package hub_test

import (
	"context"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/store/memory"
)

// A headCounter counts how often it is asked for the head.
type headCounter struct {
	tapedeck.Store
	heads int
}

func (s *headCounter) Head(ctx context.Context, session string) (tapedeck.Session, error) {
	s.heads++
	return s.Store.Head(ctx, session)
}

// TestNothingIsAskedOverAPage: a follower that has read a page asks the store for
// nothing more before it hands the page out: it would hold it while it waits.
func TestNothingIsAskedOverAPage(t *testing.T) {
	store := &headCounter{Store: memory.New(memory.Options{})}
	h := hub.New(store)
	create(t, h)
	add(t, h, 21)
	store.heads = 0
	if err := collect(t.Context(), h, 0, 21); err != nil {
		t.Fatal(err)
	}
	if store.heads != 1 {
		t.Errorf("the head was asked for %d times, not only at the beginning", store.heads)
	}
}
