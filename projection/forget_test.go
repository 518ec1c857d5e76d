package projection

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

// A heldStore blocks reads of one session until it is released.
type heldStore struct {
	tapedeck.Store
	held    string
	reading chan struct{} // receives when a read begins
	release chan struct{}
	early   atomic.Bool // a checkpoint was removed while a read was blocked
	through atomic.Bool
}

func (s *heldStore) Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error) {
	p, err := s.Store.Read(ctx, session, r)
	if session == s.held && r.From == 0 && !s.through.Load() {
		s.reading <- struct{}{}
		<-s.release
	}
	return p, err
}

func (s *heldStore) Delete(ctx context.Context, session string) error {
	if strings.HasPrefix(session, checkpoints) && !s.through.Load() {
		s.early.Store(true)
	}
	return s.Store.Delete(ctx, session)
}

// A fold of a fork may have read events before they were erased, and then saves a
// checkpoint with the parent. Forget removes the checkpoints of the parent after
// that, not before.
func TestForgetWaitsForForks(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprintf("the fork is deleted: %t", deleted), func(t *testing.T) { testForgetWaits(t, deleted) })
	}
}

func testForgetWaits(t *testing.T, deleted bool) {
	store := &heldStore{Store: memory.New(memory.Options{}), held: "fork", reading: make(chan struct{}), release: make(chan struct{})}
	events := make([]tapedeck.Event, 50)
	for i := range events {
		events[i] = payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage(tapedeck.NewID("msg_"), payload.RoleUser, "word")})
	}
	for _, spec := range []tapedeck.Spec{{ID: "parent", Events: events}, {ID: "fork", Parent: "parent"}} {
		if _, err := store.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	p := New(Options{Store: store, Every: 10})
	seen, forgotten := make(chan error), make(chan error)
	go func() {
		_, err := p.Snapshot(t.Context(), "fork", view.Query{})
		seen <- err
	}()
	<-store.reading
	if deleted {
		fork, err := store.Head(t.Context(), "fork")
		if err == nil {
			err = store.Store.Delete(t.Context(), "fork")
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Watch([]tapedeck.Commit{{Session: fork, Gone: true}})
	}
	go func() { forgotten <- p.Forget(t.Context(), "parent", "fork") }()
	for waits := false; !waits; runtime.Gosched() { // for the fork
		p.mu.Lock()
		_, kept := p.kept.Get("fork")
		waits = !kept
		p.mu.Unlock()
	}
	store.through.Store(true)
	close(store.release)
	if err := <-seen; err != nil != deleted {
		t.Errorf("the snapshot: %v", err)
	}
	if err := <-forgotten; err != nil {
		t.Error(err)
	}
	left, err := store.List(t.Context(), tapedeck.Filter{Kind: tapedeck.KindView})
	if err != nil || len(left.Sessions) > 0 || store.early.Load() {
		t.Errorf("%d checkpoints are left, %v; some were removed before: %t", len(left.Sessions), err, store.early.Load())
	}
}
