package main

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/server"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/tail"
)

// tailBytes is how much memory the newest events of all sessions may take.
const tailBytes = 64 << 20

// appOptions say how to put the program together.
type appOptions struct {
	dir          string // data folder; ignored if ephemeral
	ephemeral    bool   // keep everything in memory
	maxBody      int64  // largest body of a request, in bytes
	maxEvents    int    // most events in one append
	longPoll     time.Duration
	lease        time.Duration
	allowOrigins []string
	anyHost      bool
	logger       *slog.Logger
}

// An app is the whole house: a store, the hub above it, the engine and the
// doors.
type app struct {
	options appOptions
	hub     *hub.Hub
	engine  *engine.Engine
	handler http.Handler
	stopped chan struct{} // closed by close
}

// openApp opens the store and builds what stands on it.
func openApp(ctx context.Context, o appOptions) (*app, error) {
	if o.logger == nil {
		o.logger = slog.New(slog.DiscardHandler)
	}
	store, err := openStore(ctx, o)
	if err != nil {
		return nil, err
	}
	a := &app{options: o, hub: hub.New(store), stopped: make(chan struct{})}
	a.engine = engine.New(engine.Options{
		Store: a.hub, Agents: scriptAgents(), Logger: o.logger, Lease: o.lease, MaxEvents: o.maxEvents,
	})
	a.recover(ctx)
	a.handler = server.New(server.Options{
		REST:         rest.New(rest.Options{Verbs: a.engine, Sessions: a.hub, MaxAppend: o.maxBody, MaxEvents: o.maxEvents, Logger: o.logger}),
		Durable:      durable.New(durable.Options{Store: a.hub, Verbs: a.engine, Fork: a.engine.Fork, LongPoll: o.longPoll, MaxBody: o.maxBody, Logger: o.logger}),
		Ready:        a.ready,
		Version:      version(),
		Logger:       o.logger,
		AllowOrigins: o.allowOrigins,
		AnyHost:      o.anyHost,
	})
	return a, nil
}

// recover ends, before anyone can ask, what an earlier process left running. If
// the store cannot take that now (the disk may be full) it can still be read, so
// the server starts all the same and tries again.
func (a *app) recover(ctx context.Context) {
	if a.tryRecover(ctx) {
		return
	}
	go func() {
		tick := time.NewTicker(recoverEvery)
		defer tick.Stop()
		for {
			select {
			case <-a.stopped:
				return
			case <-tick.C:
			}
			if a.tryRecover(context.WithoutCancel(ctx)) {
				return
			}
		}
	}()
}

// recoverEvery is how often recover tries.
const recoverEvery = 5 * time.Second

func (a *app) tryRecover(ctx context.Context) bool {
	n, err := a.engine.Recover(ctx)
	if n > 0 {
		a.options.logger.Info("ended runs that an earlier process had left open", "runs", n)
	}
	if err != nil {
		a.options.logger.Error("runs that an earlier process had left open could not be ended; trying again", "error", err)
	}
	return err == nil
}

func openStore(ctx context.Context, o appOptions) (tapedeck.Store, error) {
	if o.ephemeral {
		return memory.New(memory.Options{}), nil
	}
	cache := tail.New(tailBytes)
	store, err := sqlite.Open(ctx, o.dir, sqlite.Options{OnCommit: cache.Commit, Logger: o.logger})
	if err != nil {
		return nil, err
	}
	return cache.Over(store), nil
}

// ready asks the store something that it has to read.
func (a *app) ready(ctx context.Context) error {
	_, _, err := a.hub.List(ctx, tapedeck.Filter{Limit: 1})
	return err
}

// close ends runs, calls then, and waits for what is being written.
func (a *app) close(then func(context.Context)) error {
	close(a.stopped)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := a.engine.Shutdown(ctx)
	then(ctx)
	return errors.Join(err, a.hub.Close())
}

// A holder serves a data folder over HTTP and tells other processes where.
type holder struct {
	app    *app
	http   *http.Server
	url    string
	note   string             // path of the file that says so; "" if there is none
	cutOff context.CancelFunc // ends every request
	done   chan error         // the result of serving
}

// hold starts to serve a on addr.
func hold(a *app, addr string) (*holder, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "cannot listen on %s: %w", addr, err).
			WithHint("another program may be using the port; choose one with --listen 127.0.0.1:PORT")
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &holder{
		app: a, url: "http://" + l.Addr().String(), cutOff: cancel, done: make(chan error, 1),
		http: &http.Server{
			Handler:           a.handler,
			BaseContext:       func(net.Listener) context.Context { return ctx },
			ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    64 << 10,
			ErrorLog:          slog.NewLogLogger(a.options.logger.Handler(), slog.LevelDebug),
		},
	}
	if !a.options.ephemeral {
		h.note = notePath(a.options.dir)
		if err := writeNote(h.note, note{URL: h.url, PID: os.Getpid()}); err != nil {
			return nil, errors.Join(tapedeck.Errorf(tapedeck.Unavailable, "cannot write into the data folder: %w", err), l.Close())
		}
	}
	go func() { h.done <- h.http.Serve(l) }()
	return h, nil
}

// stop ends the holder: runs are ended and their followers see it, then the
// followers are cut off (they resume from their cursors) and the store closes.
func (h *holder) stop() error {
	if h.note != "" {
		_ = os.Remove(h.note) // a stale one does no harm: the lock tells who holds the folder
	}
	return h.app.close(func(ctx context.Context) {
		h.cutOff()
		if h.http.Shutdown(ctx) != nil {
			_ = h.http.Close()
		}
	})
}

// A note in the data folder says which process serves it and where.
type note struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
}

func notePath(dir string) string { return filepath.Join(dir, "server.json") }

func writeNote(path string, n note) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	tmp := path + ".tmp" // renamed, so that nobody reads half of it
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func readNote(dir string) (note, bool) {
	var n note
	b, err := os.ReadFile(notePath(dir))
	if err != nil || json.Unmarshal(b, &n) != nil {
		return note{}, false
	}
	return n, n.URL != ""
}

// follow follows a session from the beginning of an invocation.
func (a *app) follow(ctx context.Context, s tapedeck.Started) iter.Seq2[tapedeck.Page, error] {
	return a.hub.Follow(ctx, s.Session, tapedeck.FollowOptions{From: s.Offset})
}
