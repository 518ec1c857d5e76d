package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/agentconfig"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/protocol/a2a"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// appOptions are the options of an app.
type appOptions struct {
	dir          string            // data folder; ignored if ephemeral
	lock         *sqlite.Lock      // of the data folder, if it is already taken
	ephemeral    bool              // keep everything in memory
	postgres     *postgres.Options // keep the sessions there; nil for the data folder
	maxBody      int64             // largest body of a request, in bytes
	maxEvents    int               // largest number of events in one append
	maxConns     int               // largest number of connections; 0 for no limit
	bodies       int64             // memory for request bodies, in bytes; 0 for the default
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
	*deck.Deck
	options appOptions
	server  *deck.Server
	folders *folders
}

// openApp opens a data folder, or a store in memory.
func openApp(ctx context.Context, o appOptions) (_ *app, err error) {
	if o.logger == nil {
		o.logger = slog.New(slog.DiscardHandler)
	}
	a := &app{options: o, folders: &folders{}}
	if !o.ephemeral {
		a.folders.data = workPlace(o.dir)
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
	a.Deck, err = deck.Open(ctx, o.dir, deck.Options{
		Agents: agents, InMemory: o.ephemeral, Postgres: o.postgres, Lock: o.lock, Discard: a.folders.discard,
		MaxBody: o.maxBody, MaxEvents: o.maxEvents, MaxConnections: o.maxConns, BodyBudget: o.bodies,
		LongPoll: o.longPoll, Lease: o.lease, RunTimeout: o.runTimeout, IdleTimeout: o.idleTimeout, KillAfter: o.killAfter,
		NoSubscriptions: !o.subscribers, PublicURL: o.publicURL, AllowWebhooks: o.webhookAllow, RotateWebhookKey: o.rotateKey,
		A2ATasks: o.a2aTasks, AllowOrigins: o.allowOrigins, AnyHost: o.anyHost, AllowHosts: o.allowHosts, Access: o.access,
		MCPWrite: o.mcpWrite, MCPOwnSession: o.mcpOwn, Version: version(), Logger: o.logger,
	})
	if err != nil {
		return nil, err
	}
	if err := o.markPlace(); err != nil {
		return nil, errors.Join(err, a.Close(ctx))
	}
	a.folders.sweep(o.logger) // after Open, because now no other process uses the folder
	a.server = a.NewServer()
	return a, nil
}

// close stops the runs, ends the streams and closes the deck.
func (a *app) close() error {
	return errors.Join(a.server.Close(context.Background()), a.folders.remove())
}

// A holder serves a data folder over HTTP and announces the address to other
// processes.
type holder struct {
	app            *app
	url            string
	note           string             // path of server.json; "" if there is none
	stopAnnouncing context.CancelFunc // ends the attempts to write the note
	done           chan error         // the result of serving
	writes         sync.WaitGroup     // of the note
}

// hold starts to serve an app at an address.
func hold(a *app, addr string) (*holder, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "cannot listen on %s: %w", addr, err).
			WithHint("another program may be using the port; choose one with --listen 127.0.0.1:PORT")
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &holder{app: a, url: "http://" + l.Addr().String(), stopAnnouncing: cancel, done: make(chan error, 1)}
	if !a.options.ephemeral {
		h.note = notePath(a.options.dir)
		_ = a.options.lock.Announce(h.url, a.Instance()) // the note has the same
		h.announce(ctx, note{URL: h.url, PID: os.Getpid(), Instance: a.Instance()})
	}
	go func() { h.done <- a.server.Serve(l) }()
	return h, nil
}

// announceEvery is the time between two attempts to write a note.
const announceEvery = time.Second

// announce writes the note. If that fails, as on a full disk, the server works
// nevertheless and tries again. Meanwhile other commands find the server through the
// lock file, which has space for the address.
func (h *holder) announce(ctx context.Context, n note) {
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
	tmp := path + ".tmp" // renamed later, so that no process reads a partial note
	if err = os.WriteFile(tmp, append(b, '\n'), 0o600); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp) // on a full disk it exists and is empty
	}
	return err
}

func readNote(dir string) (note, bool) {
	var n note
	b, err := os.ReadFile(notePath(dir))
	if err != nil || json.Unmarshal(b, &n) != nil {
		return note{}, false
	}
	return n, n.URL != "" && n.Instance != ""
}
