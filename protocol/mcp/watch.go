package mcp

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
)

// gather is how long a watch waits after a change, so that all changes of that time become
// one notification. It also covers the moment in which the SDK does not yet know a new
// subscriber: it learns of it after [watches.add] has returned.
const gather = 250 * time.Millisecond

var errTooMany = errors.New("the client has too many subscriptions")

// watches follow the sessions that have subscribers. All subscribers of a session share one
// watch.
type watches struct {
	ctx    context.Context // ends all watches
	follow func(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error]
	notify func(ctx context.Context, session string)

	mu      sync.Mutex
	watched map[string]*watch                        // by session
	clients map[*sdk.ServerSession]map[string]*watch // by client and session
}

type watch struct {
	cancel  context.CancelFunc
	clients int
}

func newWatches(
	ctx context.Context, follow func(context.Context, string, tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error], notify func(context.Context, string),
) *watches {
	return &watches{ctx: ctx, follow: follow, notify: notify, watched: map[string]*watch{}, clients: map[*sdk.ServerSession]map[string]*watch{}}
}

// add subscribes a client to a session, whose head is given.
func (w *watches) add(client *sdk.ServerSession, session string, head int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	mine, known := w.clients[client]
	if !known {
		mine = map[string]*watch{}
		w.clients[client] = mine
		go func() { // the SDK does not report subscriptions that end with their client
			_ = client.Wait() // however it ended
			w.forget(client)
		}()
	}
	it := w.watched[session]
	switch {
	case it != nil && mine[session] == it:
		return nil
	case len(mine) == maxSubscriptions && mine[session] == nil:
		return errTooMany
	case it == nil:
		it = w.start(session, head)
	}
	it.clients++
	mine[session] = it
	return nil
}

// start starts a watch. The caller has the lock.
func (w *watches) start(session string, head int64) *watch {
	ctx, cancel := context.WithCancel(w.ctx)
	it := &watch{cancel: cancel}
	w.watched[session] = it
	go func() {
		defer cancel()
		w.run(ctx, session, head)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.watched[session] == it { // it ended by itself: the session was closed or deleted
			delete(w.watched, session)
		}
	}()
	return it
}

// run notifies the subscribers when the session has changed, until ctx is done.
func (w *watches) run(ctx context.Context, session string, head int64) {
	for page, err := range w.follow(ctx, session, tapedeck.FollowOptions{From: head}) {
		if ctx.Err() != nil {
			return
		}
		// After an error a subscriber reads again, and learns the reason.
		if err == nil && (len(page.Records) == 0 || !page.CaughtUp()) {
			continue
		}
		select {
		case <-time.After(gather):
		case <-ctx.Done():
			return
		}
		w.notify(ctx, session)
	}
}

// remove ends the subscription of a client to a session.
func (w *watches) remove(client *sdk.ServerSession, session string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if it := w.clients[client][session]; it != nil {
		delete(w.clients[client], session)
		w.release(session, it)
	}
}

// forget ends all subscriptions of a client.
func (w *watches) forget(client *sdk.ServerSession) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for session, it := range w.clients[client] {
		w.release(session, it)
	}
	delete(w.clients, client)
}

// release ends a watch without clients. The caller has the lock.
func (w *watches) release(session string, it *watch) {
	if it.clients--; it.clients > 0 {
		return
	}
	it.cancel()
	if w.watched[session] == it {
		delete(w.watched, session)
	}
}
