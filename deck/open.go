package deck

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/tapedeck/tapedeck"
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
	"github.com/tapedeck/tapedeck/web"
)

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
