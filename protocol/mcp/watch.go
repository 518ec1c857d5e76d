package mcp

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
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
	watched map[watched]*watch
	clients map[*sdk.ServerSession]map[string]*watch // by client and session
}

// watched names a watch. Each identity has watches of its own: another one may not read the
// session any more.
type watched struct {
	session string
	by      *access.Identity // nil without access control
}

type watch struct {
	watched
	cancel  context.CancelFunc
	clients int
}

func newWatches(
	ctx context.Context, follow func(context.Context, string, tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error], notify func(context.Context, string),
) *watches {
	return &watches{ctx: ctx, follow: follow, notify: notify, watched: map[watched]*watch{}, clients: map[*sdk.ServerSession]map[string]*watch{}}
}

// add subscribes a client to a session, whose head is given, with the identity of ctx.
func (w *watches) add(ctx context.Context, client *sdk.ServerSession, session string, head int64) error {
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
	key := watched{session, access.From(ctx)}
	it := w.watched[key]
	if old := mine[session]; old != nil && old != it { // of an earlier token
		delete(mine, session)
		w.release(old)
	}
	switch {
	case it != nil && mine[session] == it:
		return nil
	case len(mine) == maxSubscriptions && mine[session] == nil:
		return errTooMany
	case it == nil:
		it = w.start(key, head)
	}
	it.clients++
	mine[session] = it
	return nil
}

// start starts a watch. The caller has the lock.
func (w *watches) start(key watched, head int64) *watch {
	ctx, cancel := context.WithCancel(w.ctx)
	it := &watch{watched: key, cancel: cancel}
	w.watched[key] = it
	if key.by != nil {
		ctx = access.With(ctx, key.by)
	}
	go func() {
		defer cancel()
		w.run(ctx, key.session, head)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.watched[key] == it { // it ended by itself: the session was closed or deleted, or the identity may not read it any more
			delete(w.watched, key)
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
		w.release(it)
	}
}

// forget ends all subscriptions of a client.
func (w *watches) forget(client *sdk.ServerSession) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, it := range w.clients[client] {
		w.release(it)
	}
	delete(w.clients, client)
}

// release ends a watch without clients. The caller has the lock.
func (w *watches) release(it *watch) {
	if it.clients--; it.clients > 0 {
		return
	}
	it.cancel()
	if w.watched[it.watched] == it {
		delete(w.watched, it.watched)
	}
}
