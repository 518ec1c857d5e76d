package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/protocol/durable/subscription"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/tail"
)

// openFolder opens a durable store, with the layer that serves followers.
func openFolder(t testing.TB, dir string) tapedeck.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tail.New(16 << 20).Layer(store)
}

func newMemory() tapedeck.Store { return memory.New(memory.Options{}) }

// options connects the handler to a store as a server does.
func options(store tapedeck.Store) durable.Options {
	h := hub.New(store)
	return durable.Options{Store: h, Verbs: engine{h}, Fork: engine{h}.fork, Views: projection.New(projection.Options{Store: h})}
}

// subscribe gives the handler subscriptions, until the test ends. Its webhooks reach
// nobody.
func subscribe(t testing.TB, o *durable.Options, store *memory.Store) {
	d := subscription.New(subscription.Options{Log: o.Store, Store: store.Subscriptions(), Now: o.Now, Transport: nowhere{}})
	store.Observe(d.Observer())
	o.Subscriptions = d
	ended := make(chan struct{})
	go func() {
		d.Run(t.Context())
		close(ended)
	}()
	t.Cleanup(func() { <-ended }) // after the end of the test's context
}

// nowhere is a network that is down.
type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("the network is down")
}

// An engine appends what it gets, without checks.
type engine struct{ log tapedeck.Store }

func (e engine) Create(ctx context.Context, s api.NewSession) (tapedeck.Session, error) {
	data, _ := json.Marshal(map[string]any{"title": s.Title})
	done, err := e.log.Create(ctx, tapedeck.Spec{
		ID: s.ID, Kind: tapedeck.KindSession, Events: []tapedeck.Event{{Type: tapedeck.SessionCreated, Data: data}},
	})
	if err == nil && !done.New {
		err = tapedeck.Errorf(tapedeck.Conflict, "session %q exists", s.ID)
	}
	return done.Session, err
}

func (e engine) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	for i := range a.Events {
		a.Events[i].Time = time.Time{} // the time of an event is when it is appended
	}
	return e.log.Append(ctx, a)
}

func (e engine) Close(ctx context.Context, session, _ string) error {
	_, err := e.log.Append(ctx, tapedeck.Append{
		Session: session, Close: true, Events: []tapedeck.Event{{Type: tapedeck.SessionClosed}},
	})
	return err
}

func (e engine) Delete(ctx context.Context, session string) error { return e.log.Delete(ctx, session) }

func (e engine) fork(ctx context.Context, id, parent string, at int64) (tapedeck.Session, error) {
	done, err := e.log.Create(ctx, tapedeck.Spec{
		ID: id, Kind: tapedeck.KindSession, Parent: parent, ForkAt: &at,
		Events: []tapedeck.Event{payload.NewEvent(payload.SessionForked{Parent: parent, At: at})},
	})
	return done.Session, err
}
