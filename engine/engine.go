// Package engine turns verbs into events: create, append, start, cancel and so
// on. It is the only room that decides what is appended to a session. It runs
// agents, writes down what they do, and makes sure that every run ends with
// exactly one terminal event.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/engine/exchange"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/presence"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/runner"
)

// Defaults of [Options].
const (
	DefaultLease     = 10 * time.Minute
	DefaultKillAfter = 12 * time.Second
	DefaultMaxEvents = 100_000
)

// Options of an engine. Store is required.
type Options struct {
	Store       tapedeck.Store // above it the hub, so that followers hear of what is appended
	Views       Views          // of the same store; nil for some of its own
	Agents      []Agent        // those that tasks can go to; the first is the default
	Now         func() time.Time
	Logger      *slog.Logger
	Lease       time.Duration   // a run written from outside ends when nothing was heard for so long
	RunTimeout  time.Duration   // a run that takes longer is stopped and has failed; 0 for no limit
	IdleTimeout time.Duration   // likewise one whose agent says nothing for so long; 0 or less for no limit
	KillAfter   time.Duration   // a stopped agent that has not ended after this is left to itself
	MaxEvents   int             // most events in one append from outside
	Player      exchange.Player // of HTML recordings; without one there are none

	// KillLeftover ends the processes of an agent that an earlier server has left
	// running, from what its agent.started says, and reports whether there were
	// any. Nil: they are left alone.
	KillLeftover func(payload.AgentStarted) (bool, error)

	// Discard takes the folder that was made for a session out of the way when
	// that was deleted and no fork holds its events, and returns what removes it,
	// which may take long. Nil: it stays.
	Discard func(session string) (remove func() error, err error)
}

// An Agent is a name with the runner behind it.
type Agent struct {
	tapedeck.Agent
	Runner      tapedeck.Runner
	RunTimeout  time.Duration // instead of that of [Options]; 0 for that, negative for no limit
	IdleTimeout time.Duration // likewise

	Starts []string // the agents that it may start

	// Folder returns where the agent works in a session, and makes it if need be.
	// Nil, or "": it has no folder.
	Folder func(session string) (string, error)
}

// An Engine carries out verbs on the sessions of one store. Its methods may be
// called by several goroutines.
type Engine struct {
	options  Options
	store    tapedeck.Store
	views    Views
	id       string // owner of the runs that it starts
	ledgers  ledgers
	leases   leases
	presence *presence.Tracker

	foldersMu sync.RWMutex // nobody is given the folder of a session while one is deleted

	answering sync.Mutex // held while a question of a run that is written from outside is being answered

	mu      sync.Mutex
	runs    map[string]*run // by invocation
	closing bool
	wg      sync.WaitGroup
	life    context.Context // until Shutdown
	endLife context.CancelFunc
}

// New returns an engine. Call [Engine.Recover] before the first verb and
// [Engine.Shutdown] at the end.
func New(o Options) *Engine {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Lease <= 0 {
		o.Lease = DefaultLease
	}
	if o.KillAfter <= 0 {
		o.KillAfter = DefaultKillAfter
	}
	if o.MaxEvents <= 0 {
		o.MaxEvents = DefaultMaxEvents
	}
	if o.Views == nil {
		own := projection.New(projection.Options{Store: o.Store, Logger: o.Logger})
		o.Store.Observe(tapedeck.Observer{Erased: own.Observer().Erased}) // not of commits: nothing runs own in the background
		o.Views = own
	}
	e := &Engine{options: o, store: o.Store, views: o.Views, id: tapedeck.NewID("eng_"), runs: map[string]*run{}}
	e.life, e.endLife = context.WithCancel(context.Background())
	e.leases = leases{since: o.Now(), lastEvent: map[leaseKey]time.Time{}}
	e.presence = presence.New(0, e.storeLeft)
	e.wg.Go(e.sweep)
	return e
}

// Agents returns the agents that tasks can go to; the first is the default.
func (e *Engine) Agents() []tapedeck.Agent {
	out := make([]tapedeck.Agent, len(e.options.Agents))
	for i, a := range e.options.Agents {
		out[i] = a.Agent
		if c, ok := a.Runner.(runner.Capable); ok {
			out[i].Capabilities, out[i].Unavailable = new(c.Capabilities()), reasonOf(c.Available())
		}
	}
	return out
}

// why returns what users may know of why an agent cannot run.
func reasonOf(err error) string {
	var e *tapedeck.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e) && e.Hint != "":
		return e.Message + "; " + e.Hint
	case errors.As(err, &e):
		return e.Message
	}
	return "it cannot run here"
}

// Shutdown takes no new runs, stops those under way, ends each with the error
// [tapedeck.CodeInterrupted], and waits for them, at most as long as ctx lasts.
func (e *Engine) Shutdown(ctx context.Context) error {
	e.mu.Lock()
	e.closing = true
	e.endLife()
	for _, r := range e.runs {
		r.stop(errShutdown)
	}
	e.mu.Unlock()
	done := make(chan struct{})
	go func() { e.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return tapedeck.Errorf(tapedeck.Unavailable, "some runs have not stopped in time; they are ended at the next start").Because(ctx.Err())
	}
}

// event returns an event of ours.
func event(p payload.Payload, actor string) tapedeck.Event {
	e := payload.NewEvent(p)
	e.Actor = actor
	return e
}

// object returns the JSON of members that are known to encode.
func object[V any](members map[string]V) json.RawMessage {
	b, err := json.Marshal(members)
	if err != nil {
		panic(err) // only strings, numbers and what came as JSON are put in
	}
	return b
}
