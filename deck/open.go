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
	"github.com/tapedeck/tapedeck/telemetry"
	"github.com/tapedeck/tapedeck/web"
)

// Open opens the data folder dir, makes it if there is none, and returns the deck
// on it. Runs that an earlier process left open have their terminal event when
// Open returns; if the disk cannot take that now, Open tries again in the
// background. A folder that another process holds is a [tapedeck.Conflict]. The
// context limits Open only. Call [Deck.Close] at the end.
func Open(ctx context.Context, dir string, o Options) (*Deck, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if !o.InMemory { // a later change of the working directory moves no data
		var err error
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
	}
	d := &Deck{options: o, stopped: make(chan struct{}), lost: make(chan error, 1), instance: tapedeck.NewID("srv_"), bodies: newBodies(o.BodyBudget)}
	if !o.NoMetrics {
		d.operator = newOperator(d)
	}
	o.member.adopt(d)
	s, err := d.openStore(ctx, dir)
	if err != nil {
		return nil, err
	}
	d.hub, d.ready, d.owns = d.newHub(s.store), s.ready, s.owns
	d.views = projection.New(projection.Options{Store: d.hub, Totals: s.totals, Logger: o.Logger})
	d.search = indexer.New(indexer.Options{Index: s.index, Log: d.hub, Timelines: d.views, Logger: o.Logger})
	d.hub.Observe(d.views.Observer())
	d.hub.Observe(d.search.Observer())
	d.streams, d.cutStreams = context.WithCancel(context.WithoutCancel(ctx))
	d.engine = d.newEngine(&s)
	d.auditor = newAuditor(dir, &d.options)
	d.verbs = d.engine
	if d.auditor != nil {
		d.verbs = recordedVerbs{d.engine, d.auditor}
	}
	d.workflows = workflow.New(workflow.Options{Store: s.diagrams, Engine: d.engine})
	if err := d.openAccess(dir); err != nil {
		return nil, errors.Join(err, d.abandon())
	}
	if err := d.openSubscriptions(s.subs, dir); err != nil {
		return nil, errors.Join(err, d.abandon())
	}
	d.openA2A(s.pushes, dir)
	if err := d.operator.begin(ctx, s.figures); err != nil {
		return nil, errors.Join(err, d.abandon())
	}
	if err := d.openTraces(ctx); err != nil {
		return nil, errors.Join(err, d.abandon())
	}
	d.runInBackground(d.views.Run, d.search.Run)
	d.recoverRuns(ctx)
	d.openRetention()
	d.handler = d.cutOff(d.newHandler())
	return d, nil
}

// complete sets what the options leave out, and checks the rest.
func (o *Options) complete() (err error) {
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
		if o.AllowOrigins[i], err = server.Origin(s); err != nil {
			return err
		}
	}
	if err := checkNames(o.Agents); err != nil {
		return err
	}
	if o.PublicURL != "" {
		if o.PublicURL, err = subscription.PublicURL(o.PublicURL); err != nil {
			return err
		}
	}
	return nil
}

// abandon closes what an Open has opened that fails.
func (d *Deck) abandon() error {
	d.auditor.close()
	return d.hub.Close()
}

func (d *Deck) newEngine(s *storage) *engine.Engine {
	o := &d.options
	script, style := web.Player()
	agents := engineAgents(o.Agents)
	attach(agents, s.diagrams)
	var traced func(context.Context) string
	if o.Traces != nil {
		traced = telemetry.Parent
	}
	return engine.New(engine.Options{
		Trace: traced,
		Store: d.hub, Views: d.views, Agents: agents, Unlisted: []engine.Agent{d.walker(s.diagrams)}, Logger: o.Logger, Lease: o.Lease, MaxEvents: o.MaxEvents,
		RunTimeout: o.RunTimeout, IdleTimeout: o.IdleTimeout, KillAfter: o.KillAfter, KillLeftover: procgroup.KillLeftover, LeaveRuns: o.LeaveRuns,
		Player: exchange.Player{Script: script, Style: style}, Discard: o.Discard,
		Budgets: o.Budgets, Spending: s.spending,
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
		Verbs: u.verbs, Sessions: u.sessions, Views: u.views, Contexts: instance.New(u.verbs, u.views, u.sessions), Search: u.search, Tokens: u.tokens, Operator: u.operator, Audit: u.audit, Task: tasks, Workflows: u.workflows,
		Socket:    ws.New(ws.Options{Sessions: u.sessions, Verbs: u.verbs, Views: u.views, Logger: o.Logger}),
		MaxAppend: o.MaxBody, MaxEvents: o.MaxEvents, Logger: o.Logger,
	})
	out := server.Options{
		REST: api,
		Task: task.Default(tasks, api), Channels: rest.InChannels(api),
		Durable: durable.New(durable.Options{
			Store: u.sessions, Verbs: u.verbs, Views: u.views, Fork: u.forkAt, Subscriptions: d.subs,
			LongPoll: o.LongPoll, MaxBody: o.MaxBody, Logger: o.Logger,
		}),
		AGUI: agui.New(agui.Options{
			Sessions: u.sessions, Verbs: u.verbs, Views: u.views, MaxBody: o.MaxBody, MaxEvents: o.MaxEvents, Version: o.Version, Stop: d.streams, Logger: o.Logger,
		}),
		AISDK:    aisdk.New(aisdk.Options{Sessions: u.sessions, Verbs: u.verbs, Views: u.views, MaxBody: o.MaxBody, Stop: d.streams, Logger: o.Logger}),
		MCP:      d.newMCP(),
		A2A:      d.a2a,
		IsKagent: a2a.IsKagent,
		Ready:    d.Ready, Screen: screen, Version: o.Version, Instance: d.instance, Bodies: d.bodies, Logger: o.Logger,
		AllowOrigins: o.AllowOrigins, AnyHost: o.AnyHost, AllowHosts: o.AllowHosts,
	}
	d.operator.serve(&out)
	d.auditor.serve(&out, d.guard != nil)
	if d.tracer != nil {
		out.Trace = d.tracer.Request
	}
	d.control(&out)
	d.describe(&out)
	d.mounted = append(d.mounted, out.REST, out.Durable, out.AGUI, out.AISDK, out.MCP, out.A2A)
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
