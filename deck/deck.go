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
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access/grants"
	"github.com/tapedeck/tapedeck/access/guard"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/engine/exchange"
	"github.com/tapedeck/tapedeck/engine/instance"
	"github.com/tapedeck/tapedeck/engine/workflow"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/a2a"
	"github.com/tapedeck/tapedeck/protocol/agui"
	"github.com/tapedeck/tapedeck/protocol/aisdk"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/protocol/durable/subscription"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/protocol/task"
	"github.com/tapedeck/tapedeck/protocol/ws"
	"github.com/tapedeck/tapedeck/search/indexer"
	"github.com/tapedeck/tapedeck/server"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/web"
)

// Options of a deck. The zero value is ready for use: a server on the loopback
// without agents, with the limits that docs/http.md lists.
type Options struct {
	// Agents are the agents that tasks can go to. The first is the default.
	Agents []Agent

	// InMemory keeps everything in memory; nothing is written to a disk, and the
	// folder given to [Open] is not used.
	InMemory bool

	// Postgres keeps the sessions in a PostgreSQL database instead of the folder given to
	// [Open], which then has only keys and the folders of agents. Logger and OnLost of it
	// are not used. Nil: the sessions are in the folder.
	Postgres *postgres.Options

	MaxBody        int64 // largest body of an append over the HTTP API, Durable Streams and AG-UI, in bytes; 0 for 64 MiB
	MaxEvents      int   // the largest number of events in one append; 0 for 100,000
	MaxConnections int   // most connections that [Server.Serve] keeps at once; 0 for no limit
	BodyBudget     int64 // memory for the bodies of all requests together, in bytes; 0 for the default of docs/http.md

	LongPoll    time.Duration // how long a long poll waits; 0 for 25 s
	Lease       time.Duration // how long a run written from outside may be silent before it ends; 0 for 10 min
	RunTimeout  time.Duration // how long a run may take; 0 for no limit
	IdleTimeout time.Duration // how long the agent of a run may be silent, questions to people aside; 0 for 1 h, negative for no limit
	KillAfter   time.Duration // how long an agent that is stopped may take to end; then its run ends without it. 0 for 12 s

	// A2ATasks says what a task of A2A is; "" for a2a.PerTurn.
	A2ATasks a2a.Policy

	// AllowOrigins are the origins, such as "https://app.example", whose pages may
	// call the server from a browser, besides its own. "*" stands for all. Open
	// refuses a value that no browser sends.
	AllowOrigins []string

	// AnyHost accepts every Host header. Without it the handler answers only
	// requests for a name of the loopback, so that a web page cannot reach it
	// through a DNS name of its own.
	AnyHost bool

	// AllowHosts are the names by which clients reach the handler besides those of the
	// loopback, such as "deck.example".
	AllowHosts []string

	// Access decides who sends a request over the handler. Then each sender reaches only
	// what docs/security.md says. Nil: everybody may do everything. The methods of the
	// deck itself always may.
	Access *Access

	// NoSubscriptions leaves out the subscriptions of Durable Streams and the push
	// notifications of A2A. What happens meanwhile is delivered by the next deck on the
	// folder that has them.
	NoSubscriptions bool

	// PublicURL is where receivers of webhooks reach the server, such as
	// https://deck.example. "" stands for the address that was used to create the
	// subscription.
	PublicURL string

	// AllowWebhooks are addresses to which webhooks, of subscriptions and of A2A, may go
	// although they are not public, such as 127.0.0.0/8 or 10.1.2.3/32. There a webhook may also use plain HTTP. Without
	// any, webhooks go only to public addresses, with HTTPS.
	AllowWebhooks []netip.Prefix

	// RotateWebhookKey makes Open create a new key, which signs webhooks from now on.
	// Receivers can check signatures of the old key for another day.
	RotateWebhookKey bool

	// MCPWrite lets MCP clients run agents, cancel runs, rewind and fork. Without it
	// they can only read.
	MCPWrite bool

	// MCPOwnSession lets an agent of kind llm that is an MCP client of this deck do so
	// in the session in which it runs itself.
	MCPOwnSession bool

	// NoScreen leaves out the pages for people.
	NoScreen bool

	Version string // of the program; protocols and the front page name it. "" for "dev"

	// Logger gets what clients must not see: why an agent failed, the stack of a panic,
	// why the disk refused a write. Nil: the [slog.Default] at the time of Open.
	Logger *slog.Logger

	// Lock is the lock of the data folder, if the caller has taken it; the deck
	// releases it at the end. Nil: Open takes it.
	Lock *sqlite.Lock

	// Discard moves the working folder of a deleted session away and returns the
	// function that removes it, see [engine.Options].
	Discard func(session string) (remove func() error, err error)
}

// DefaultIdleTimeout is how long an agent may be silent if no time-out is set. It
// limits how long a model that hangs stays "running". It is longer than any command
// that an agent of kind llm may run.
const DefaultIdleTimeout = time.Hour

// An Agent is an agent that tasks can go to. Name and Runner are required.
type Agent struct {
	Name        string
	Kind        string // of its runner; "" for "go"
	Description string // for people; may be empty
	Runner      tapedeck.Runner

	RunTimeout  time.Duration // instead of that of [Options]; 0 for that, negative for no limit
	IdleTimeout time.Duration // instead of that of [Options]; 0 for that, negative for no limit
	KillAfter   time.Duration // instead of that of [Options]; 0 for that
	Budget      Budget        // what each run may use before it asks people; the zero value for no limit
	Starts      []string      // names of the agents that it may start; of a workflow, nil means all others

	Models  []string // the models that a task may choose, the default first; none if there is no choice
	Folders []string // the folders that a session may choose; none if there is no choice

	// Folder returns the folder in which the agent works in a session, and creates it
	// if it does not exist. chosen is the one of Folders that the session has chosen, ""
	// for none. Nil: the agent has no folder.
	Folder func(session, chosen string) (string, error)
}

// A Budget is what a run may use before it asks people whether to continue. 0 is no
// limit.
type Budget = engine.Budget

func engineAgents(list []Agent) []engine.Agent {
	out := make([]engine.Agent, len(list))
	for i, a := range list {
		out[i] = engine.Agent{
			Agent:  tapedeck.Agent{Name: a.Name, Kind: cmp.Or(a.Kind, "go"), Description: a.Description, Models: a.Models, Folders: a.Folders},
			Runner: a.Runner, RunTimeout: a.RunTimeout, IdleTimeout: a.IdleTimeout, Budget: a.Budget,
			KillAfter: max(a.KillAfter, 0), Starts: a.Starts, Folder: a.Folder,
		}
	}
	return out
}

// A Deck is an open data folder with its sessions, agents and handler. Its
// methods may be called by several goroutines.
type Deck struct {
	options    Options
	hub        *hub.Hub
	views      *projection.Projections
	search     *indexer.Index
	engine     *engine.Engine
	guard      *guard.Guard             // nil: there is no access control
	issuer     *grants.Issuer           // of the tokens of sessions; nil with guard
	subs       http.Handler             // of the subscriptions; nil if there are none
	dispatcher *subscription.Dispatcher // serves subs
	a2a        http.Handler
	mounted    []http.Handler // the protocols, for the test that knows who may use each route
	handler    http.Handler

	workflows *workflow.Library

	instance string     // names this deck to its clients
	lost     chan error // receives when the data folder was deleted, moved or replaced, or another server has taken over
	writable func(context.Context) error

	stopped    chan struct{} // closed by Close
	background sync.WaitGroup
	closing    sync.Once
	streams    context.Context // done when streams must end
	cutStreams context.CancelFunc
}

// Open opens the data folder dir, makes it if there is none, and returns the deck
// on it. Runs that an earlier process left open have their terminal event when
// Open returns; if the disk cannot take that now, Open tries again in the
// background. A folder that another process holds is a [tapedeck.Conflict]. The
// context limits Open only. Call [Deck.Close] at the end.
func Open(ctx context.Context, dir string, o Options) (*Deck, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	o.Version = cmp.Or(o.Version, "dev")
	if o.KillAfter <= 0 {
		o.KillAfter = engine.DefaultKillAfter
	}
	o.AllowOrigins = slices.Clone(o.AllowOrigins)
	for i, s := range o.AllowOrigins {
		var err error
		if o.AllowOrigins[i], err = server.Origin(s); err != nil {
			return nil, err
		}
	}
	if err := checkNames(o.Agents); err != nil {
		return nil, err
	}
	if o.PublicURL != "" {
		var err error
		if o.PublicURL, err = subscription.PublicURL(o.PublicURL); err != nil {
			return nil, err
		}
	}
	if !o.InMemory { // a later change of the working directory moves no data
		var err error
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
	}
	d := &Deck{options: o, stopped: make(chan struct{}), lost: make(chan error, 1), instance: tapedeck.NewID("srv_")}
	s, err := d.openStore(ctx, dir)
	if err != nil {
		return nil, err
	}
	d.hub, d.writable = hub.New(s.store), s.writable
	d.views = projection.New(projection.Options{Store: d.hub, Logger: o.Logger})
	d.search = indexer.New(indexer.Options{Index: s.index, Log: d.hub, Timelines: d.views, Logger: o.Logger})
	d.hub.Observe(d.views.Observer())
	d.hub.Observe(d.search.Observer())
	d.streams, d.cutStreams = context.WithCancel(context.WithoutCancel(ctx))
	d.engine = d.newEngine(s.diagrams)
	d.workflows = workflow.New(workflow.Options{Store: s.diagrams, Engine: d.engine})
	if err := d.openAccess(dir); err != nil {
		return nil, errors.Join(err, d.hub.Close())
	}
	if err := d.openSubscriptions(s.subs, dir); err != nil {
		return nil, errors.Join(err, d.hub.Close())
	}
	d.openA2A(s.pushes, dir)
	d.runInBackground(d.views.Run, d.search.Run)
	d.recoverRuns(ctx)
	d.handler = d.cutOff(d.newHandler())
	return d, nil
}

func (d *Deck) newEngine(diagrams workflow.Store) *engine.Engine {
	o := &d.options
	script, style := web.Player()
	agents := engineAgents(o.Agents)
	attach(agents, diagrams)
	return engine.New(engine.Options{
		Store: d.hub, Views: d.views, Agents: agents, Unlisted: []engine.Agent{d.walker(diagrams)}, Logger: o.Logger, Lease: o.Lease, MaxEvents: o.MaxEvents,
		RunTimeout: o.RunTimeout, IdleTimeout: o.IdleTimeout, KillAfter: o.KillAfter, KillLeftover: procgroup.KillLeftover,
		Player: exchange.Player{Script: script, Style: style}, Discard: o.Discard,
	})
}

func (d *Deck) newHandler() http.Handler {
	o := &d.options
	var screen fs.FS
	if !o.NoScreen {
		screen = web.Files()
	}
	u := d.used()
	tasks := task.New(task.Options{Sessions: u.sessions, Views: u.views, Logger: o.Logger})
	api := rest.New(rest.Options{
		Verbs: u.verbs, Sessions: u.sessions, Views: u.views, Contexts: instance.New(u.verbs, u.views), Search: u.search, Tokens: u.tokens, Task: tasks, Workflows: u.workflows,
		Socket:    ws.New(ws.Options{Sessions: u.sessions, Verbs: u.verbs, Views: u.views, Logger: o.Logger}),
		MaxAppend: o.MaxBody, MaxEvents: o.MaxEvents, Logger: o.Logger,
	})
	out := server.Options{
		REST: api,
		Task: task.Default(tasks, api),
		Durable: durable.New(durable.Options{
			Store: u.sessions, Verbs: u.verbs, Views: u.views, Fork: u.forkAt, Subscriptions: d.subs,
			LongPoll: o.LongPoll, MaxBody: o.MaxBody, Logger: o.Logger,
		}),
		AGUI: agui.New(agui.Options{
			Sessions: u.sessions, Verbs: u.verbs, Views: u.views, MaxBody: o.MaxBody, MaxEvents: o.MaxEvents, Version: o.Version, Stop: d.streams, Logger: o.Logger,
		}),
		AISDK:       aisdk.New(aisdk.Options{Sessions: u.sessions, Verbs: u.verbs, Views: u.views, MaxBody: o.MaxBody, Stop: d.streams, Logger: o.Logger}),
		MCP:         d.newMCP(),
		A2A:         d.a2a,
		A2ASessions: a2a.SessionPaths,
		Ready:       d.Ready, Screen: screen, Version: o.Version, Instance: d.instance, Bodies: o.BodyBudget, Logger: o.Logger,
		AllowOrigins: o.AllowOrigins, AnyHost: o.AnyHost, AllowHosts: o.AllowHosts,
	}
	d.control(&out)
	d.mounted = []http.Handler{out.REST, out.Durable, out.AGUI, out.AISDK, out.MCP, out.A2A}
	if d.dispatcher != nil {
		d.mounted = append(d.mounted, d.dispatcher)
	}
	return server.New(out)
}

// runInBackground runs each function until the deck closes.
func (d *Deck) runInBackground(fs ...func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-d.stopped; cancel() }()
	for _, f := range fs {
		d.background.Go(func() { f(ctx) })
	}
}

// Handler returns the handler of the HTTP API, of the protocols and of the screen. A
// [Server] serves it with the time-outs and limits of the program; a server of your own
// may serve it, too. Below a prefix, [http.StripPrefix] removes that first; the screen
// works at the root of a host only. [Deck.Close] ends its streams.
func (d *Deck) Handler() http.Handler { return d.handler }

// Ready reports whether the deck can serve: whether its store can be read and
// written.
func (d *Deck) Ready(ctx context.Context) error {
	if _, err := d.hub.List(ctx, tapedeck.Filter{Limit: 1}); err != nil {
		return err
	}
	return d.writable(ctx)
}

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

// AwaitIdle waits until no run is active, at most as long as ctx lasts.
func (d *Deck) AwaitIdle(ctx context.Context) error { return d.engine.AwaitIdle(ctx) }

const (
	// closeGrace is how long Close waits after it has given up on agents that do not stop.
	closeGrace = 3 * time.Second

	// drainGrace is how long Close waits for followers that have not read everything.
	drainGrace = time.Second
)

// Close stops the active runs, each with its terminal event. Then it ends the streams:
// of [Deck.Handler], and of [Deck.Follow]. A follower gets all events before its stream
// ends, unless it takes longer than a second to read them. Then Close closes the store.
// It returns at the latest when ctx is done: the next Open ends the runs that have not
// stopped by then. A second call does nothing.
func (d *Deck) Close(ctx context.Context) (err error) {
	d.closing.Do(func() { err = d.close(ctx, func(context.Context) error { return nil }) })
	return err
}

// close stops the runs and the streams, calls quit, which ends the server, and waits
// for the background work.
func (d *Deck) close(ctx context.Context, quit func(context.Context) error) error {
	longest := d.options.KillAfter
	for _, a := range d.options.Agents {
		longest = max(longest, a.KillAfter)
	}
	ctx, cancel := context.WithTimeout(ctx, longest+closeGrace)
	defer cancel()
	close(d.stopped)
	err := d.engine.Shutdown(ctx)
	d.drain(ctx)
	d.cutStreams()
	err = errors.Join(err, quit(ctx))
	d.background.Wait()
	return errors.Join(err, d.hub.Close())
}

// drain waits until the followers have read what is there. Nothing depends on it: a
// follower that is not ready in time continues at the next start.
func (d *Deck) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainGrace)
	defer cancel()
	_ = d.hub.Drain(ctx)
}
