package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/store/storetest"
)

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestSubscriptions(t *testing.T) {
	storetest.RunSubscriptions(t, open, func(s tapedeck.Store) storetest.Subscriptions { return s.(*memory.Store).Subscriptions() })
}

func TestPushConfigs(t *testing.T) {
	storetest.RunPushConfigs(t, open, func(s tapedeck.Store) storetest.PushConfigs { return s.(*memory.Store).PushConfigs() })
}

func TestWorkflows(t *testing.T) {
	storetest.RunWorkflows(t, open, func(s tapedeck.Store) storetest.Workflows { return s.(*memory.Store).Workflows() })
}

func TestSpending(t *testing.T) {
	storetest.RunSpending(t, open, func(s tapedeck.Store) storetest.Spending { return s.(*memory.Store).Spending() })
}

func open(testing.TB) storetest.Store {
	var fail atomic.Bool
	clock := storetest.NewClock()
	m := memory.New(memory.Options{Now: clock.Now, FailCommit: func() error {
		if fail.Load() {
			return errors.New("disk full")
		}
		return nil
	}})
	return storetest.Store{
		Store: m,
		Reopen: func(testing.TB) tapedeck.Store {
			m = memory.Reopen(m)
			return m
		},
		FailCommits: fail.Store,
		Clock:       clock,
	}
}

// TestNothingIsLeft matters to a server that runs for weeks: deleted and expired
// sessions must not stay in the store's maps.
func TestNothingIsLeft(t *testing.T) {
	clock, ctx := storetest.NewClock(), t.Context()
	m := memory.New(memory.Options{Now: clock.Now})
	create := func(s tapedeck.Spec) {
		t.Helper()
		s.Kind, s.Events = tapedeck.KindSession, []tapedeck.Event{{Type: "CUSTOM"}}
		if _, err := m.Create(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		parent := fmt.Sprint("parent", i)
		create(tapedeck.Spec{ID: parent, TTL: time.Hour})
		create(tapedeck.Spec{ID: fmt.Sprint("fork", i), Parent: parent, TTL: time.Minute})
		create(tapedeck.Spec{ID: fmt.Sprint("fork2-", i), Parent: fmt.Sprint("fork", i)})
		if err := m.Delete(ctx, parent); err != nil {
			t.Fatal(err)
		}
	}
	clock.Advance(2 * time.Minute)
	for i := range 10 {
		if err := m.Delete(ctx, fmt.Sprint("fork2-", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := memory.Left(m); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

func Example() {
	ctx := context.Background()
	store := memory.New(memory.Options{})
	defer store.Close()
	store.Create(ctx, tapedeck.Spec{ID: "ses_1"})
	store.Append(ctx, tapedeck.Append{Session: "ses_1", Events: []tapedeck.Event{
		{Type: tapedeck.MessageAdded, Actor: "user:ada", Data: []byte(`{"message":{"id":"msg_1","role":"user","content":"Hello"}}`)},
		{Type: tapedeck.RunStarted, Invocation: "inv_1", Data: []byte(`{"threadId":"main","runId":"inv_1"}`)},
	}})
	for e, err := range tapedeck.Events(ctx, store, "ses_1", 0) {
		fmt.Println(e.Offset, e.Type, e.Channel, err)
	}
	// Output:
	// 0 message.added chunks <nil>
	// 1 RUN_STARTED agentState <nil>
}
