// Package engine turns verbs (create, append, start, cancel and so on) into events.
// No other package decides which events are appended to a session. It runs agents,
// records their events, and makes sure that every run ends with exactly one
// terminal event.
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
	Store       tapedeck.Store // with the hub on top, which notifies followers of each append
	Unlisted    []Agent        // can be given tasks by name, but are not listed, and are never the default
	Views       Views          // of the same store; nil: the engine makes its own
	Agents      []Agent        // can be given tasks; the first is the default
	Now         func() time.Time
	Logger      *slog.Logger
	Lease       time.Duration   // an external run without an event for this long is ended; 0 for DefaultLease
	RunTimeout  time.Duration   // a run that takes longer is stopped and fails; 0 for no limit
	IdleTimeout time.Duration   // a run whose agent sends nothing for this long is stopped and fails; 0 or less for no limit
	KillAfter   time.Duration   // the engine stops waiting for a stopped agent after this; 0 for DefaultKillAfter
	MaxEvents   int             // the largest number of events in one append by a client; 0 for DefaultMaxEvents
	Player      exchange.Player // of HTML recordings; without it they cannot be exported

	// Trace returns the trace of a context, which the runs that begin with it get, as a
	// traceparent; "" for none. Nil: runs have no trace.
	Trace func(ctx context.Context) string

	// KillLeftover ends the processes that an agent of an earlier server process
	// left running, and reports whether there were any. Its argument is the data
	// of the event agent.started. Nil: such processes are left alone.
	KillLeftover func(payload.AgentStarted) (bool, error)

	// LeaveRuns keeps [Engine.Recover] from continuing what an earlier process left open
	// and what waits in queues: the next engine does. It is for a process that soon ends.
	LeaveRuns bool

	// Budgets are those of the owners of sessions, and Spending what they have used. Without
	// Spending owners have no budgets.
	Budgets  OwnerBudgets
	Spending Spending

	// Discard moves the folder of a deleted session out of the way, once no fork
	// needs its events. It returns a function that removes the folder, which may
	// take long. Nil: the folder stays.
	Discard func(session string) (remove func() error, err error)
}

// An Agent is a named runner with its settings.
type Agent struct {
	tapedeck.Agent
	Runner      tapedeck.Runner
	RunTimeout  time.Duration   // overrides that of [Options]; 0 uses that of [Options], negative means no limit
	IdleTimeout time.Duration   // the same for the idle timeout
	KillAfter   time.Duration   // overrides that of [Options]; 0 uses that of [Options]
	Budget      tapedeck.Amount // of each run; people are asked whether the run may use more
	StopAtLimit bool            // a run that has used up a budget is stopped, and nobody is asked

	Starts []string // the agents that it may start

	// Folder returns the working folder of the agent in a session, and creates it
	// if needed. chosen is what the session has chosen of the agent's folders, "" for
	// nothing. Nil, or a result of "", means no folder.
	Folder func(session, chosen string) (string, error)

	// Ready returns why the agent cannot run here, besides what its runner says; nil if it
	// can. A nil Ready is skipped.
	Ready func() error
}

// Available returns why the agent cannot run here, nil if it can.
func (a *Agent) Available() error {
	if a.Ready != nil {
		if err := a.Ready(); err != nil {
			return err
		}
	}
	if c, ok := a.Runner.(runner.Capable); ok {
		return c.Available()
	}
	return nil
}

// An Engine carries out verbs on the sessions of one store. Its methods may be
// called by several goroutines.
type Engine struct {
	options  Options
	store    tapedeck.Store
	views    Views
	id       string // the owner of the runs that it starts
	ledgers  ledgers
	feeder   *feeder
	leases   leases
	trial    *trial
	presence *presence.Tracker

	foldersMu sync.RWMutex // held for writing while a session is deleted, so that no run gets its folder or begins in it

	importing sync.Map // ids of the sessions of imports that are not complete

	budgets wake // of questions: a budget of a session or an owner has changed

	answering stripes // locked for a session while a question of an external run is answered

	mu      sync.Mutex
	runs    map[string]*run      // by invocation
	jumping map[string]*jumpGate // by session
	closing bool
	wg      sync.WaitGroup
	life    context.Context // until Shutdown
	endLife context.CancelFunc
}

// New returns an engine. Call [Engine.Recover] before the first verb, and
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
	e := &Engine{options: o, store: o.Store, views: o.Views, id: tapedeck.NewID("eng_"), runs: map[string]*run{}, feeder: newFeeder(), jumping: map[string]*jumpGate{}}
	e.life, e.endLife = context.WithCancel(context.Background())
	e.trial = newTrial(e)
	e.leases = leases{since: o.Now(), longest: o.Lease, lastEvent: map[leaseKey]time.Time{}, short: map[leaseKey]time.Duration{}}
	e.presence = presence.New(0, e.storeLeft)
	e.wg.Go(e.sweep)
	e.store.Observe(tapedeck.Observer{Committed: e.feeder.observe})
	e.wg.Go(e.feed)
	return e
}

// Agents returns the agents that can be given tasks; the first is the default.
func (e *Engine) Agents() []tapedeck.Agent {
	out := make([]tapedeck.Agent, len(e.options.Agents))
	for i, a := range e.options.Agents {
		out[i] = a.Agent
		out[i].Unavailable = reasonOf(a.Available())
		if c, ok := a.Runner.(runner.Capable); ok {
			out[i].Capabilities = new(c.Capabilities())
		}
	}
	return out
}

// reasonOf returns why an agent cannot run, in words for users.
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

// Shutdown refuses new runs and stops the active ones. Each ends with a RUN_ERROR
// of the code [tapedeck.CodeInterrupted]. Shutdown waits for them until ctx is done.
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
	defer e.trial.end(ctx)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return tapedeck.Errorf(tapedeck.Unavailable, "some runs have not stopped in time; the next start ends them").Because(ctx.Err())
	}
}

// event returns an event with the data p by an actor.
func event(p payload.Payload, actor string) tapedeck.Event {
	e := payload.NewEvent(p)
	e.Actor = actor
	return e
}

// encoded encodes a value that encoding/json can encode.
func encoded(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // callers give only finite numbers and texts
	}
	return b
}

// object encodes members, whose values must be valid for encoding/json.
func object[V any](members map[string]V) json.RawMessage {
	b, err := json.Marshal(members)
	if err != nil {
		panic(err) // callers give only strings, numbers and JSON
	}
	return b
}
