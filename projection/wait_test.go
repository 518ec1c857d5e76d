package projection

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

// A caller that waits for a session while another one reads its log stops waiting
// when its own context ends.
func TestWaitingEndsWithItsContext(t *testing.T) {
	for name, wait := range map[string]func(context.Context, *Projections) error{
		"a view": func(ctx context.Context, p *Projections) error {
			_, err := p.Summary(ctx, "s", -1)
			return err
		},
		"a look-up": func(ctx context.Context, p *Projections) error {
			_, _, err := p.FindInvocation(ctx, "s", "i")
			return err
		},
		"forget": func(ctx context.Context, p *Projections) error { return p.Forget(ctx, "s") },
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testWaiting(t, wait) }) })
	}
}

func testWaiting(t *testing.T, wait func(context.Context, *Projections) error) {
	store := &heldStore{Store: memory.New(memory.Options{}), held: "s", reading: make(chan struct{}), release: make(chan struct{})}
	if _, err := store.Create(t.Context(), tapedeck.Spec{ID: "s", Events: []tapedeck.Event{{Type: tapedeck.SessionCreated}}}); err != nil {
		t.Fatal(err)
	}
	p := New(Options{Store: store})
	first := make(chan error)
	go func() {
		_, err := p.Snapshot(t.Context(), "s", view.Query{})
		first <- err
	}()
	<-store.reading
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begin := time.Now()
	if err := wait(ctx, p); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Minute {
		t.Errorf("it waited %s: %v", time.Since(begin), err)
	}
	store.through.Store(true)
	close(store.release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
