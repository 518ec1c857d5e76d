package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/protocol/a2a"
	"github.com/tapedeck/tapedeck/protocol/durable/subscription"
	"github.com/tapedeck/tapedeck/server"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

const defaultListen = "127.0.0.1:4747"

type serveFlags struct {
	listen       string
	demo         bool
	insecure     bool
	auth         string
	allowHosts   hosts
	maxBody      string
	maxEvents    int
	maxConns     int
	memoryLimit  string
	longPoll     time.Duration
	lease        time.Duration
	runTimeout   time.Duration
	idleTimeout  time.Duration
	killAfter    time.Duration
	a2aTasks     string
	allowOrigins origins
	publicURL    string
	webhookAllow prefixes
	rotateKey    bool
	mcpWrite     bool
	mcpOwn       bool
	verbose      bool
	logRequests  bool
	logFormat    string
	metrics      string
	noMetrics    bool
	postgres     postgresFlags
}

func newServe(e *env) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve sessions over HTTP",
		Long: `Serve serves the sessions of the data folder over HTTP until you interrupt it.
Other commands on this folder go through the server.

With --postgres, the sessions are in a PostgreSQL database, and the data folder has only
keys and the folders of agents. One server at a time owns a database. With --standby you
can start several: each answers all requests, forwards them to the owner, and takes over
when the owner ends. Give --postgres several times to spread the sessions over
several databases: always all of them, in the same order.

With --demo, sample sessions are created in the data folder, beside yours, with ids that
begin with demo_. --data ./demo keeps them apart: to remove all of them, remove that
folder. tapedeck delete demo_hello deletes one of them.

With --auth every request needs a token; tapedeck token makes them. Without it there is
no access control, and the server listens on an address that other machines can reach
only with --insecure.

Webhooks of subscriptions and push notifications of A2A go only to public addresses
with HTTPS, and to those that --webhook-allow names.`,
		Example: `  tapedeck serve --demo --data ./demo
  tapedeck serve --data /var/lib/tapedeck --listen 127.0.0.1:8080
  tapedeck serve --auth auth.toml --listen 0.0.0.0:4747 --allow-host deck.example
  PGPASSWORD=secret tapedeck serve --postgres postgres://tapedeck@db.example/tapedeck`,
		Args: both(noOther, noArgs),
		RunE: func(c *cobra.Command, _ []string) error { return e.serve(c.Context(), f) },
	}
	e.ephemeralFlag(c)
	f.declare(c.Flags())
	return c
}

func (f *serveFlags) declare(fl *pflag.FlagSet) {
	fl.StringVar(&f.listen, "listen", defaultListen, "address to listen on")
	fl.BoolVar(&f.demo, "demo", false, "create sample sessions: one is always live, one is a workflow, others begin over AG-UI and over A2A")
	fl.BoolVar(&f.insecure, "insecure", false, "allow an address that other machines can reach, although there is no access control")
	fl.StringVar(&f.auth, "auth", "", "file of the tokens that requests need (default: requests need none)")
	fl.Var(&f.allowHosts, "allow-host", "names by which clients reach this server, such as deck.example; others are refused (default: those of the loopback, or all with another --listen)")
	fl.StringVar(&f.maxBody, "max-body", "64MiB", "largest request body")
	fl.IntVar(&f.maxEvents, "max-events", 100_000, "largest number of events in one append")
	fl.IntVar(&f.maxConns, "max-connections", 0, "largest number of connections (default: derived from the limit of open files, ulimit -n)")
	fl.StringVar(&f.memoryLimit, "memory-limit", "", "memory that the server tries to stay within, such as 512MiB (default $GOMEMLIMIT, otherwise derived from the control group)")
	fl.DurationVar(&f.longPoll, "long-poll", 25*time.Second, "how long a long poll waits")
	fl.DurationVar(&f.lease, "lease", 10*time.Minute, "end a run of an external writer that is silent for this long, unless the run asks for less")
	fl.DurationVar(&f.runTimeout, "run-timeout", 0, "stop a run that takes longer, and end it as failed (default: no limit)")
	fl.DurationVar(&f.idleTimeout, "idle-timeout", deck.DefaultIdleTimeout, "stop a run whose agent sends nothing for this long, and end it as failed; waiting for an answer from people does not count; 0 for no limit")
	fl.DurationVar(&f.killAfter, "kill-after", engine.DefaultKillAfter, "how long an agent may take to end after a cancel, a time-out or the stop of the server; then its run ends without it")
	fl.StringVar(&f.a2aTasks, "a2a-tasks", string(a2a.PerTurn), "what a task of A2A is: per-turn for each run, or per-session for all runs of a session together")
	fl.Var(&f.allowOrigins, "allow-origin", `origins whose web pages may use all endpoints from a browser, such as https://app.example ("*" for all, without credentials)`)
	fl.StringVar(&f.publicURL, "public-url", "", "where receivers of webhooks reach this server, such as https://deck.example (default: the address that was used to create the subscription)")
	fl.Var(&f.webhookAllow, "webhook-allow", "addresses to which webhooks and push notifications may go although they are not public, such as 127.0.0.0/8,10.1.2.3; plain HTTP is allowed there")
	fl.BoolVar(&f.rotateKey, "rotate-webhook-key", false, "sign webhooks with a new key from now on; receivers can check signatures of the old one for another day")
	fl.BoolVar(&f.mcpWrite, "mcp-write", false, "allow MCP clients (/mcp) to run agents, cancel runs, rewind and fork; without it they only read")
	fl.BoolVar(&f.mcpOwn, "mcp-own-session", false, "allow this also to an agent of kind llm in the session in which it runs itself; needs --mcp-write")
	fl.BoolVar(&f.noMetrics, "no-metrics", false, "measure nothing: there are neither /metrics nor /debug/pprof nor stats")
	f.postgres.declare(fl)
	fl.BoolVar(&f.logRequests, "log-requests", false, "log each request: its id, its sender, its session, its status and its time")
	fl.BoolVar(&f.verbose, "verbose", false, "log debug messages, and each request")
	fl.StringVar(&f.logFormat, "log-format", "text", "how to write the log: text or json")
	fl.StringVar(&f.metrics, "metrics", "", "address of a second listener that has only /metrics, and needs no token (default: /metrics of --listen alone, for admins)")
}

// noOther refuses --url, which names the server of other commands.
func noOther(c *cobra.Command, _ []string) error {
	if c.Flags().Changed("url") {
		return usageError("serve is a server itself, so --url has no effect here; say where it listens with --listen")
	}
	return nil
}

func (e *env) serve(ctx context.Context, f serveFlags) error {
	o, err := f.appOptions(ctx, e)
	if err != nil {
		return err
	}
	if err := f.bound(&o); err != nil {
		return err
	}
	if o.ephemeral {
		e.notice(nothingKept)
		return e.serveAs(ctx, &f, &o)
	}
	return sqlite.Attempt(o.dir, func() error {
		if o.lock, err = sqlite.TakeLock(o.dir); err != nil {
			return err
		}
		defer o.lock.Release() // the store, which also releases it, may not be open
		return e.serveAs(ctx, &f, &o)
	})
}

// listeners listens on the addresses of the server, before it creates or changes anything.
// Without --metrics, metrics is nil. Call end at the end: what is served is closed already.
func (f *serveFlags) listeners() (all, metrics net.Listener, end func(), err error) {
	if all, err = listen("--listen", f.listen, defaultListen); err != nil {
		return nil, nil, nil, err
	}
	if f.metrics == "" {
		return all, nil, func() { _ = all.Close() }, nil
	}
	if metrics, err = listen("--metrics", f.metrics, metricsExample); err != nil {
		_ = all.Close()
		return nil, nil, nil, err
	}
	return all, metrics, func() { _ = all.Close(); _ = metrics.Close() }, nil
}

// serveAs is serve with the options of its app.
func (e *env) serveAs(ctx context.Context, f *serveFlags, o *appOptions) error {
	l, metrics, end, err := f.listeners()
	if err != nil {
		return err
	}
	defer end()
	if len(o.postgres) > 0 { // the address of a server is in its database
		if err := f.postgres.setAddress(o.postgres, l.Addr()); err != nil {
			return err
		}
	}
	a, err := openApp(ctx, *o)
	if err != nil {
		return err
	}
	figures := serveMetrics(metrics, a.service.Metrics(), o.logger)
	defer figures.close()
	h := holdAt(a, l)
	live := ""
	stopDemo := func() {}
	if f.demo {
		if live, stopDemo, err = startDemo(ctx, a, h.url); err != nil {
			return errors.Join(err, h.stop())
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go trim(ctx, a.service.Followers)
	e.printServing(h.url, figures.url, o, live)
	select {
	case err = <-h.done:
	case err = <-a.service.Lost():
		h.note = "" // another process may serve the folder now
		stopDemo()
		_ = h.stop() // err says that nothing can be stored any more
		return err
	case <-ctx.Done():
		e.notice("stopping")
	}
	stopDemo()
	return errors.Join(err, h.stop())
}

func (f *serveFlags) appOptions(ctx context.Context, e *env) (appOptions, error) {
	size, err := parseSize(f.maxBody)
	if err != nil {
		return appOptions{}, usageError("--max-body: %w", err)
	}
	if err := f.check(); err != nil {
		return appOptions{}, err
	}
	loopback, err := f.checkListen(ctx)
	if err != nil {
		return appOptions{}, err
	}
	ephemeral, err := e.inMemory()
	if err != nil {
		return appOptions{}, err
	}
	e.startsAgents = true
	c, err := e.readConfig()
	if err != nil {
		return appOptions{}, err
	}
	pg, err := f.postgres.options(e)
	if err != nil {
		return appOptions{}, err
	}
	var key []byte
	if !ephemeral {
		if key, err = e.encryptionKey(ctx); err != nil {
			return appOptions{}, err
		}
	}
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	logger, err := newLogger(e.stderr, f.logFormat, level)
	if err != nil {
		return appOptions{}, err
	}
	who, err := f.access(ctx, &c, logger)
	if err != nil {
		return appOptions{}, err
	}
	return appOptions{
		dir: e.folder(), key: key, ephemeral: ephemeral, postgres: pg, maxBody: size, maxEvents: f.maxEvents, longPoll: f.longPoll, lease: f.lease,
		runTimeout: f.runTimeout, idleTimeout: timeLimit(f.idleTimeout), killAfter: f.killAfter, config: c, demo: f.demo,
		subscribers: true, retains: true, publicURL: f.publicURL, webhookAllow: f.webhookAllow, rotateKey: f.rotateKey,
		a2aTasks: a2a.Policy(f.a2aTasks), allowOrigins: f.allowOrigins, anyHost: !loopback && len(f.allowHosts) == 0, allowHosts: f.allowHosts, access: who,
		mcpWrite: f.mcpWrite, mcpOwn: f.mcpOwn, logger: logger, logRequests: f.logRequests, traces: true, noMetrics: f.noMetrics,
	}, nil
}

// bound sets the limits of memory and connections.
func (f *serveFlags) bound(o *appOptions) error {
	limit := int64(0)
	if f.memoryLimit != "" {
		n, err := parseSize(f.memoryLimit)
		if err != nil {
			return usageError("--memory-limit: %w", err)
		}
		if limit = n; limit < minMemory {
			return usageError("--memory-limit must be at least %d MiB", minMemory>>20)
		}
	}
	o.bodies, o.maxBody = bodyBudget(limitMemory(limit), o.maxBody, o.logger)
	if o.maxConns = f.maxConns; o.maxConns == 0 {
		o.maxConns = connectionLimit(openFiles())
	}
	return nil
}

func (f *serveFlags) check() error {
	for flag, bad := range map[string]bool{"--max-events": f.maxEvents < 1, "--long-poll": f.longPoll <= 0, "--lease": f.lease <= 0, "--kill-after": f.killAfter <= 0} {
		if bad {
			return usageError("%s must be above 0", flag)
		}
	}
	if p := a2a.Policy(f.a2aTasks); p != a2a.PerTurn && p != a2a.PerSession {
		return usageError("--a2a-tasks is %s or %s, not %q", a2a.PerTurn, a2a.PerSession, f.a2aTasks)
	}
	if f.maxConns < 0 {
		return usageError("--max-connections takes a number from 0; 0 derives it from the limit of open files")
	}
	if f.publicURL != "" {
		if _, err := subscription.PublicURL(f.publicURL); err != nil {
			return usageError("--public-url: %w", err)
		}
	}
	if f.demo && f.postgres.standby {
		return usageError("--demo and --standby cannot be used together: the demo has one server")
	}
	if f.metrics != "" && f.noMetrics {
		return usageError("--metrics and --no-metrics cannot be used together")
	}
	if f.metrics != "" {
		if _, err := hostOf("--metrics", f.metrics, metricsExample); err != nil {
			return err
		}
	}
	if f.mcpOwn && !f.mcpWrite {
		return usageError("--mcp-own-session needs --mcp-write")
	}
	if f.runTimeout < 0 || f.idleTimeout < 0 {
		return usageError("--run-timeout and --idle-timeout take a duration from 0; 0 is no limit")
	}
	return nil
}

// origins are the values of --allow-origin, as browsers write them. An empty value
// is refused, because it would allow nothing; a string slice flag would drop it.
type origins []string

func (o *origins) Set(list string) error {
	for s := range strings.SplitSeq(list, ",") {
		origin, err := server.Origin(strings.TrimSpace(s))
		if err != nil {
			return err
		}
		*o = append(*o, origin)
	}
	return nil
}

func (o *origins) String() string { return strings.Join(*o, ",") }
func (o *origins) Type() string   { return "strings" }

// prefixes are the values of --webhook-allow: networks, or single addresses.
type prefixes []netip.Prefix

func (p *prefixes) Set(list string) error {
	for s := range strings.SplitSeq(list, ",") {
		s = strings.TrimSpace(s)
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			address, addrErr := netip.ParseAddr(s)
			if addrErr != nil || address.Zone() != "" {
				return tapedeck.Errorf(tapedeck.Invalid, "an address is written as 10.1.2.3 or 10.0.0.0/8, not %q", s)
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		*p = append(*p, prefix.Masked())
	}
	return nil
}

func (p *prefixes) String() string {
	out := make([]string, len(*p))
	for i, prefix := range *p {
		out[i] = prefix.String()
	}
	return strings.Join(out, ",")
}

func (p *prefixes) Type() string { return "strings" }

// printServing prints the address of the server and, for the demo, commands to try.
func (e *env) printServing(url, figures string, o *appOptions, live string) {
	if e.json {
		line := map[string]any{"url": url, "pid": os.Getpid(), "live": live}
		if figures != "" {
			line["metrics"] = figures
		}
		_ = e.printJSON(line)
		return
	}
	p := e.pen()
	where := e.folder()
	switch {
	case o.ephemeral:
		where = "memory"
	case len(o.postgres) > 0:
		where, _ = whereOf(o.postgres) // they were valid
	}
	_ = p.Printf("Tapedeck %s serves %s at %s\n", version(), where, p.Paint(terminal.Bold, url))
	if figures != "" {
		_ = p.Printf("Metrics are at %s\n", figures)
	}
	if live == "" {
		return
	}
	args := ""
	if e.data != "" {
		args = " --data " + e.data
	}
	if o.ephemeral {
		args = " --url " + url
	}
	cmd := "tapedeck"
	if strings.Contains(os.Args[0], "go-build") { // go run
		cmd = "go run ./cmd/tapedeck"
	}
	_ = p.Printf("\nOpen %s/s/%s in a browser to watch a live session; drag the bar to look back.\n\nTry in another terminal:\n", url, live)
	for _, try := range [][2]string{
		{cmd + " ls" + args, "list the sessions"},
		{cmd + " tail " + live + args, "follow the live session, event by event"},
		{cmd + " replay demo_hello" + args, "play a session at its original speed (? shows the keys)"},
		{cmd + ` run "fix the build" --agent coder` + args, "watch an agent work"},
		{"curl -N " + url + "/api/v1/sessions/" + live + "/stream", "the live session as Server-Sent Events"},
	} {
		_ = p.Printf("  %s\n      %s\n", try[0], p.Paint(terminal.Dim, try[1]))
	}
	if o.ephemeral {
		return
	}
	_ = p.Printf("\nThen kill this server with kill -9 %d and start it again: tail continues where it stopped.\n", os.Getpid())
}
