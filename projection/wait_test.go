package projection

import (
	"context"
	"errors"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

// Whoever waits for a session while its log is read goes when its own context
// ends.
func TestWaitingEndsWithItsContext(t *testing.T) {
	store := &heldStore{Store: memory.New(memory.Options{}), held: "s", reading: make(chan struct{}), release: make(chan struct{})}
	if _, _, err := store.Create(t.Context(), tapedeck.Spec{ID: "s", Events: []tapedeck.Event{{Type: tapedeck.SessionCreated}}}); err != nil {
		t.Fatal(err)
	}
	p := New(Options{Store: store})
	first := make(chan error)
	go func() {
		_, err := p.Snapshot(t.Context(), "s", view.Query{At: -1})
		first <- err
	}()
	<-store.reading
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Summary(ctx, "s", -1); !errors.Is(err, context.Canceled) {
		t.Errorf("it waited: %v", err)
	}
	store.through.Store(true)
	close(store.release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
