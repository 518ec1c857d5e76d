package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/agentconfig"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/keyfile"
	"github.com/tapedeck/tapedeck/protocol/a2a"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// appOptions are the options of an app.
type appOptions struct {
	dir          string             // data folder; ignored if ephemeral
	lock         *sqlite.Lock       // of the data folder, if it is already taken
	key          []byte             // with which new sessions are encrypted; nil for none
	ephemeral    bool               // keep everything in memory
	postgres     []postgres.Options // keep the sessions there; nil for the data folder
	maxBody      int64              // largest body of a request, in bytes
	maxEvents    int                // largest number of events in one append
	maxConns     int                // largest number of connections; 0 for no limit
	bodies       int64              // memory for request bodies, in bytes; 0 for the default
	longPoll     time.Duration
	lease        time.Duration
	runTimeout   time.Duration // see engine.Options
	idleTimeout  time.Duration // likewise; 0 for the default, negative for no limit
	killAfter    time.Duration // likewise; 0 for the default
	a2aTasks     a2a.Policy
	allowOrigins []string
	anyHost      bool
	allowHosts   []string
	access       *deck.Access // nil: everybody may do everything
	subscribers  bool         // deliver subscriptions
	publicURL    string
	webhookAllow []netip.Prefix
	rotateKey    bool
	mcpWrite     bool               // see deck.Options
	mcpOwn       bool               // likewise
	config       agentconfig.Config // of agents
	demo         bool               // add the agents of the demo
	logger       *slog.Logger
	reads        bool   // the process only reads and ends at once, so it leaves runs open and serves other commands late
	retains      bool   // delete what the configuration says
	auditActor   string // see deck.Options
	noMetrics    bool   // likewise
	logRequests  bool   // likewise
	traces       bool   // send spans to the collector that the environment names
}

// timeLimit converts a time limit of a user, for whom 0 is no limit, to the options of a
// deck, where 0 is the default and -1 is no limit.
func timeLimit(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// An app is a deck with the configured agents and their working folders.
type app struct {
	*deck.Deck // nil if another server owns the database
	options    appOptions
	service    service
	folders    *folders

	stopTraces func()
}

// A service answers requests: a deck, or one of several servers of a database.
type service interface {
	Serve(net.Listener) error
	Close(context.Context) error
	Instance() string
	Lost() <-chan error
	Metrics() http.Handler
	Followers() int
}

// A standalone service is a deck with its server.
type standalone struct {
	*deck.Deck
	*deck.Server
}

// Close implements [service].
func (s standalone) Close(ctx context.Context) error { return s.Server.Close(ctx) }

// openApp opens a data folder, or a store in memory.
func openApp(ctx context.Context, o appOptions) (_ *app, err error) {
	if o.logger == nil {
		o.logger = slog.New(slog.DiscardHandler)
	}
	a := &app{options: o, folders: &folders{}, stopTraces: func() {}}
	if !o.ephemeral {
		a.folders.data = workPlace(o.dir)
	}
	if o.access != nil {
		o.config.ScriptLimits = scriptLimits
	}
	agents, err := buildAgents(&o.config, a.folders, o.demo)
	if err != nil {
		return nil, err
	}
	if o.lock == nil && !o.ephemeral {
		if o.lock, err = sqlite.TakeLock(o.dir); err != nil {
			return nil, err
		}
		a.options.lock = o.lock
		defer func() {
			if err != nil {
				o.lock.Release() // the store, which also releases it, may not be open
			}
		}()
	}
	if err := o.checkPlace(); err != nil {
		return nil, err
	}
	d := o.deckOptions(agents, a.folders)
	if o.traces {
		if a.stopTraces, err = openTraces(ctx, &d); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				a.stopTraces()
			}
		}()
	}
	if err := a.open(ctx, d); err != nil {
		return nil, err
	}
	if err := o.markPlace(); err != nil {
		return nil, errors.Join(err, a.service.Close(ctx))
	}
	a.folders.sweep(o.logger) // after open, because now no other process uses the folder
	return a, nil
}

// open opens the deck, or joins the servers of the database.
func (a *app) open(ctx context.Context, o deck.Options) error {
	if o.Postgres != nil {
		m, err := deck.Join(ctx, a.options.dir, o, nil)
		if err != nil {
			return err
		}
		a.Deck, a.service = m.Deck(), m
		return nil
	}
	d, err := deck.Open(ctx, a.options.dir, o)
	if err != nil {
		return err
	}
	a.Deck, a.service = d, standalone{d, d.NewServer()}
	return nil
}

// deckOptions returns the options of the deck.
func (o *appOptions) deckOptions(agents []deck.Agent, f *folders) deck.Options {
	var keep deck.Retention
	if o.retains {
		keep = o.config.Retention()
	}
	first, more := o.databases()
	return deck.Options{
		Retention: keep, Agents: agents, Budgets: o.config.Budgets(), InMemory: o.ephemeral, Postgres: first, MorePostgres: more, Lock: o.lock, EncryptionKey: o.key, Discard: f.discard,
		MaxBody: o.maxBody, MaxEvents: o.maxEvents, MaxConnections: o.maxConns, BodyBudget: o.bodies,
		LongPoll: o.longPoll, Lease: o.lease, RunTimeout: o.runTimeout, IdleTimeout: o.idleTimeout, KillAfter: o.killAfter,
		NoSubscriptions: !o.subscribers, PublicURL: o.publicURL, AllowWebhooks: o.webhookAllow, RotateWebhookKey: o.rotateKey,
		A2ATasks: o.a2aTasks, AllowOrigins: o.allowOrigins, AnyHost: o.anyHost, AllowHosts: o.allowHosts, Access: o.access,
		LeaveRuns: o.reads, MCPWrite: o.mcpWrite, MCPOwnSession: o.mcpOwn, Version: version(), Logger: o.logger, LogRequests: o.logRequests, NoMetrics: o.noMetrics, AuditActor: o.auditActor,
	}
}

// close stops the runs, ends the streams and closes the deck.
func (a *app) close() error {
	err := errors.Join(a.service.Close(context.Background()), a.folders.remove())
	a.stopTraces()
	return err
}

// A holder serves a data folder over HTTP and announces the address to other
// processes. A command that only reads announces it after [readTime].
type holder struct {
	app            *app
	url            string
	note           string             // path of server.json; "" before it is announced
	stopAnnouncing context.CancelFunc // ends the attempts to write the note
	done           chan error         // the result of serving
	writes         sync.WaitGroup     // of the note
}

// listen listens on the address of a flag. example is an address that the flag accepts.
func listen(flag, addr, example string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		e := tapedeck.Errorf(tapedeck.Unavailable, "cannot listen on %s: %w", addr, err)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, e.WithHint("another program uses the port; choose one with %s 127.0.0.1:PORT", flag)
		}
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			return nil, e.WithHint("this machine does not have the address; one that it has is %s %s", flag, example)
		}
		if errors.Is(err, fs.ErrPermission) {
			return nil, e.WithHint("this user may not use the port; ports from 1024 on are free for all, such as %s %s", flag, example)
		}
		return nil, e
	}
	return l, nil
}

// hold starts to serve an app to other processes of this machine, at a free port.
func hold(a *app) (*holder, error) {
	l, err := listen("--listen", "127.0.0.1:0", defaultListen)
	if err != nil {
		return nil, err
	}
	return holdAt(a, l), nil
}

// holdAt serves an app at a listener. The holder closes the listener at the end.
func holdAt(a *app, l net.Listener) *holder {
	ctx, cancel := context.WithCancel(context.Background())
	h := &holder{app: a, url: "http://" + l.Addr().String(), stopAnnouncing: cancel, done: make(chan error, 1)}
	switch {
	case a.options.ephemeral:
	case a.options.reads:
		h.writes.Go(func() {
			select {
			case <-ctx.Done():
			case <-time.After(readTime):
				h.announce(ctx)
			}
		})
	default:
		h.announce(ctx)
	}
	go func() { h.done <- a.service.Serve(l) }()
	return h
}

// announceEvery is the time between two attempts to write a note.
const announceEvery = time.Second

// readTime is how long a command that only reads holds the data folder before it serves
// other commands. Those commands wait longer than that, for [settleTime]. Otherwise one of
// them could start a run in a process that is about to end.
const readTime = time.Second

// announce writes the lock file and the note. If that fails, as on a full disk, the
// server works nevertheless and tries again. Meanwhile other commands find the server
// through the lock file, which has space for the address.
func (h *holder) announce(ctx context.Context) {
	n := note{URL: h.url, PID: os.Getpid(), Instance: h.app.service.Instance()}
	_ = h.app.options.lock.Announce(n.URL, n.Instance) // the note has the same
	h.note = notePath(h.app.options.dir)
	err := writeNote(h.note, n)
	if err == nil {
		return
	}
	h.app.options.logger.Error("server.json, which has the address of this server, cannot be written; trying again", "error", err)
	h.writes.Go(func() {
		tick := time.NewTicker(announceEvery)
		defer tick.Stop()
		for err != nil {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				err = writeNote(h.note, n)
			}
		}
	})
}

// stop stops the runs, ends the streams and closes the deck. Followers resume from
// their cursors later.
func (h *holder) stop() error {
	h.stopAnnouncing()
	h.writes.Wait()
	if h.note != "" {
		_ = os.Remove(h.note) // a stale note does no harm, because the lock says which process holds the folder
	}
	return h.app.close()
}

// A note in the data folder has the process that serves it and its address. The
// instance distinguishes this process from a later one on the same port.
type note struct {
	URL      string `json:"url"`
	PID      int    `json:"pid"`
	Instance string `json:"instance"`
}

func notePath(dir string) string { return filepath.Join(dir, "server.json") }

func writeNote(path string, n note) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return keyfile.Write(path, append(b, '\n')) // no process reads a partial note
}

func readNote(dir string) (note, bool) {
	b, err := os.ReadFile(notePath(dir))
	if err != nil {
		return note{}, false
	}
	return parseNote(b)
}

func parseNote(b []byte) (n note, ok bool) {
	if json.Unmarshal(b, &n) != nil {
		return note{}, false
	}
	return n, n.URL != "" && n.Instance != ""
}
