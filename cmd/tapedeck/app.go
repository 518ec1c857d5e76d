package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/agentconfig"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// appOptions say how to put the program together.
type appOptions struct {
	dir          string       // data folder; ignored if ephemeral
	lock         *sqlite.Lock // of the data folder, if it was taken before
	ephemeral    bool         // keep everything in memory
	maxBody      int64        // largest body of a request, in bytes
	maxEvents    int          // most events in one append
	maxConns     int          // most connections at once; 0 for no limit
	bodies       int64        // budget of memory for bodies, in bytes; 0 for the default
	longPoll     time.Duration
	lease        time.Duration
	runTimeout   time.Duration // see engine.Options
	idleTimeout  time.Duration // likewise; 0 for defaultIdle, negative for none
	allowOrigins []string
	anyHost      bool
	config       agentconfig.Config // of agents
	demo         bool               // with the agents of the demo
	logger       *slog.Logger
}

// orNever returns a limit that a user gave, for whom 0 is none.
func orNever(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// An app is a deck with the agents of the configuration and their folders.
type app struct {
	*deck.Deck
	options appOptions
	server  *deck.Server
	folders *folders
}

// openApp opens the deck.
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
				o.lock.Release() // for the store, which releases it too, may not have been opened
			}
		}()
	}
	a.Deck, err = deck.Open(ctx, o.dir, deck.Options{
		Agents: agents, InMemory: o.ephemeral, Lock: o.lock, Discard: a.folders.discard,
		MaxBody: o.maxBody, MaxEvents: o.maxEvents, MaxConnections: o.maxConns, BodyBudget: o.bodies,
		LongPoll: o.longPoll, Lease: o.lease, RunTimeout: o.runTimeout, IdleTimeout: o.idleTimeout,
		AllowOrigins: o.allowOrigins, AnyHost: o.anyHost, Version: version(), Logger: o.logger,
	})
	if err != nil {
		return nil, err
	}
	a.folders.sweep(o.logger) // after Open: the data folder is ours now
	a.server = a.NewServer()
	return a, nil
}

// close stops the runs, ends the streams and closes the deck.
func (a *app) close() error {
	return errors.Join(a.server.Close(context.Background()), a.folders.remove())
}

// A holder serves a data folder over HTTP and tells other processes where.
type holder struct {
	app    *app
	url    string
	note   string             // path of the file that says so; "" if there is none
	gone   context.CancelFunc // ends the attempts to write the note
	done   chan error         // the result of serving
	writes sync.WaitGroup     // of the note
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
	h := &holder{app: a, url: "http://" + l.Addr().String(), gone: cancel, done: make(chan error, 1)}
	if !a.options.ephemeral {
		h.note = notePath(a.options.dir)
		_ = a.options.lock.Announce(h.url, a.Instance()) // the note says the same
		h.announce(ctx, note{URL: h.url, PID: os.Getpid(), Instance: a.Instance()})
	}
	go func() { h.done <- a.server.Serve(l) }()
	return h, nil
}

// announceEvery is how often a note is tried again that could not be written.
const announceEvery = time.Second

// announce writes the note. On a full disk that fails; the server serves all the
// same, and tries again: other commands find it by the lock file, where there is
// room for what it says.
func (h *holder) announce(ctx context.Context, n note) {
	err := writeNote(h.note, n)
	if err == nil {
		return
	}
	h.app.options.logger.Error("server.json, which says where this server is, cannot be written; trying again", "error", err)
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
	h.gone()
	h.writes.Wait()
	if h.note != "" {
		_ = os.Remove(h.note) // one that stays does no harm: the lock tells which process holds the folder
	}
	return h.app.close()
}

// A note in the data folder says which process serves it and where. The instance
// tells that process from another one that has its port later.
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
	tmp := path + ".tmp" // renamed, so that nobody reads half of it
	if err = os.WriteFile(tmp, append(b, '\n'), 0o600); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp) // on a full disk it is there, and empty
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
