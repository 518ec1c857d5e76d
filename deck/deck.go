// Package deck puts Tapedeck together for a Go program: one call opens the data
// folder and everything above it, and one value has the sessions, the agents and
// the HTTP handler.
//
//	d, err := deck.Open(ctx, "data", deck.Options{})
//	if err != nil {
//		return err
//	}
//	defer d.Close(context.Background())
//	return http.ListenAndServe("127.0.0.1:4747", d.Handler())
//
// The program tapedeck is built on this package: an embedded server does what
// "tapedeck serve" does. It ends the runs that a crash has left open, it removes
// erased text from every cache, and it closes streams when it stops.
package deck

import (
	"context"
	"iter"
	"net/http"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access/grants"
	"github.com/tapedeck/tapedeck/access/guard"
	"github.com/tapedeck/tapedeck/access/oidc"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/engine/workflow"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/durable/subscription"
	"github.com/tapedeck/tapedeck/search/indexer"
	"github.com/tapedeck/tapedeck/telemetry"
)

// A Deck is an open data folder with its sessions, agents and handler. Its
// methods may be called by several goroutines.
type Deck struct {
	options    Options
	hub        *hub.Hub
	views      *projection.Projections
	search     *indexer.Index
	engine     *engine.Engine
	verbs      guard.Verbs              // the engine, with the audit log
	auditor    *auditor                 // nil if there is no audit log
	guard      *guard.Guard             // nil: there is no access control
	provider   *oidc.Provider           // of log-ins; nil for none
	issuer     *grants.Issuer           // of the tokens of sessions; nil with guard
	subs       http.Handler             // of the subscriptions; nil if there are none
	dispatcher *subscription.Dispatcher // serves subs
	a2a        http.Handler
	mounted    []http.Handler // the protocols, for the test that knows who may use each route
	handler    http.Handler

	workflows *workflow.Library
	operator  *operator         // nil with [Options.NoMetrics]
	tracer    *telemetry.Tracer // nil without [Options.Traces]

	bodies   *intake.Gate
	instance string     // names this deck to its clients
	lost     chan error // receives when the data folder was deleted, moved or replaced, or another server has taken over
	ready    func(context.Context) error
	owns     func(context.Context) bool // see storage

	stopped    chan struct{} // closed by Close
	background sync.WaitGroup
	closing    sync.Once
	streams    context.Context // done when streams must end
	cutStreams context.CancelFunc
}

// Handler returns the handler of the HTTP API, of the protocols and of the screen. A
// [Server] serves it with the time-outs and limits of the program; a server of your own
// may serve it, too. Below a prefix, [http.StripPrefix] removes that first; the screen
// works at the root of a host only. [Deck.Close] ends its streams.
func (d *Deck) Handler() http.Handler { return d.handler }

// Ready reports whether the deck can serve: whether its store can be read and written; of
// several databases, whether one of them can.
func (d *Deck) Ready(ctx context.Context) error { return d.ready(ctx) }

// Instance returns the id of this deck; each Open creates a new one. GET /healthz
// returns it, so that a client can check that it reaches the right deck.
func (d *Deck) Instance() string { return d.instance }

// Lost returns a channel that receives an error when the data folder was deleted,
// moved or replaced, or when another server has taken over the database. The deck cannot
// write any more then; close it.
func (d *Deck) Lost() <-chan error { return d.lost }

// Followers returns how many streams follow a session now.
func (d *Deck) Followers() int { return d.hub.Followers() }

// Agents returns the agents that tasks can go to, the default first.
func (d *Deck) Agents() []tapedeck.Agent { return d.engine.Agents() }

// Sessions returns a page of sessions.
func (d *Deck) Sessions(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error) {
	return d.hub.List(ctx, f)
}

// Create creates a session and returns a handle of it. An id that exists is a
// [tapedeck.Conflict].
func (d *Deck) Create(ctx context.Context, n api.NewSession) (*Session, error) {
	s, err := d.engine.Create(ctx, n)
	if err != nil {
		return nil, err
	}
	return d.Session(s.ID), nil
}

// Run gives an agent a task, in a session that exists or in a new one, and
// returns when the task is durable. The run continues in the background;
// [Deck.Follow] from Started.Offset shows it, and [Session.Cancel] stops it. A
// thread that is busy is a [tapedeck.Conflict], an unknown agent is
// [tapedeck.NotFound].
func (d *Deck) Run(ctx context.Context, t api.Task) (api.Started, error) {
	return d.engine.Start(ctx, t)
}

// Append appends events to a session, all of them or none. They are durable when
// it returns without an error.
func (d *Deck) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	return d.engine.Append(ctx, a)
}

// Follow yields the events of a session from offset from on: first those that it
// has, then each new one as soon as it is durable. It ends when the session is
// closed, when ctx is done (with its error), after an error, or when the deck closes,
// with [tapedeck.Unavailable]. A caller that takes events slowly is late; it misses none.
func (d *Deck) Follow(ctx context.Context, session string, from int64) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(d.streams, cancel)()
		for page, err := range d.hub.Follow(ctx, session, tapedeck.FollowOptions{From: from}) {
			if err != nil {
				if d.streams.Err() != nil {
					err = errDeckClosed
				}
				yield(tapedeck.Event{}, err)
				return
			}
			for _, r := range page.Records {
				e, err := r.Event()
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

var errDeckClosed = tapedeck.Errorf(tapedeck.Unavailable, "the deck is closed")

// Running returns the number of active runs.
func (d *Deck) Running() int { return d.engine.Running() }

// HoldInputs keeps the inputs that wait from beginning until the deck is opened again.
// Call it before you cancel a run to close the deck.
func (d *Deck) HoldInputs() { d.engine.HoldInputs() }

// AwaitIdle waits until no run is active, at most as long as ctx lasts. The run of a
// workflow that waits for a person is not active: the next deck continues it.
func (d *Deck) AwaitIdle(ctx context.Context) error { return d.engine.AwaitIdle(ctx) }
