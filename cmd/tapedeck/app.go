package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/engine/exchange"
	"github.com/tapedeck/tapedeck/engine/instance"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/server"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/tail"
	"github.com/tapedeck/tapedeck/web"
)

// tailBytes is how much memory the newest events of all sessions may take.
const tailBytes = 64 << 20

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
	config       config // of agents
	demo         bool   // with the agents of the demo
	logger       *slog.Logger
}

// defaultIdle is how long an agent may say nothing if nobody says how long: a
// model that hangs must not stay "running" forever. No command of an agent of
// kind llm may take that long.
const defaultIdle = time.Hour

// orNever returns a limit that a user gave, for whom 0 is none.
func orNever(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// An app is the whole house: a store, the hub above it, the engine and the
// doors.
type app struct {
	options appOptions
	hub     *hub.Hub
	views   *projection.Projections
	watcher atomic.Pointer[projection.Projections] // views, as soon as there are any: the store is older
	index   searchIndex                            // what search stands on
	search  atomic.Pointer[search.Index]           // likewise
	engine  *engine.Engine
	handler http.Handler
	folders *folders
	stopped chan struct{} // closed by close
	lost    chan error    // receives when the data folder was deleted, moved or replaced

	writable func(context.Context) error // why the store cannot be written now

	instance string // names this process to its clients

	background sync.WaitGroup
}

// openApp opens the store and builds what stands on it.
func openApp(ctx context.Context, o appOptions) (*app, error) {
	if o.logger == nil {
		o.logger = slog.New(slog.DiscardHandler)
	}
	a := &app{options: o, stopped: make(chan struct{}), lost: make(chan error, 1), folders: &folders{}, instance: tapedeck.NewID("srv_")}
	if !o.ephemeral {
		a.folders.data = workPlace(o.dir)
	}
	agents, err := o.config.agents(a.folders, o.demo)
	if err != nil {
		return nil, err
	}
	store, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	a.folders.sweep(o.logger) // not before the store: that holds the folder now
	a.hub = hub.New(store)
	a.views = projection.New(projection.Options{Store: a.hub, Logger: o.logger})
	a.watcher.Store(a.views)
	background, done := context.WithCancel(context.WithoutCancel(ctx))
	go func() { <-a.stopped; done() }()
	a.background.Go(func() { a.views.Run(background) })
	a.engine = engine.New(engine.Options{
		Store: a.hub, Views: a.views, Agents: agents, Logger: o.logger, Lease: o.lease, MaxEvents: o.maxEvents,
		RunTimeout: o.runTimeout, IdleTimeout: cmp.Or(o.idleTimeout, defaultIdle), KillLeftover: procgroup.KillLeftover, Player: htmlPlayer(),
		Discard: a.folders.discard,
	})
	a.engine.OnErase(a.forget)
	found := search.New(search.Options{Index: a.index, Log: a.hub, Timelines: a.views, Logger: o.logger})
	a.search.Store(found)
	a.background.Go(func() { found.Run(background) })
	a.recover(ctx)
	api := rest.Options{Verbs: a.engine, Sessions: a.hub, Views: a.views, Contexts: instance.New(a.engine, a.views), Search: found, MaxAppend: o.maxBody, MaxEvents: o.maxEvents, Logger: o.logger}
	tasks := api
	tasks.Task = true
	a.handler = server.New(server.Options{
		REST:         rest.New(api),
		Task:         rest.New(tasks),
		Durable:      durable.New(durable.Options{Store: a.hub, Verbs: a.engine, Views: a.views, Fork: a.fork, LongPoll: o.longPoll, MaxBody: o.maxBody, Logger: o.logger}),
		Ready:        a.ready,
		Screen:       web.Files(),
		Version:      version(),
		Instance:     a.instance,
		Bodies:       o.bodies,
		Logger:       o.logger,
		AllowOrigins: o.allowOrigins,
		AnyHost:      o.anyHost,
	})
	return a, nil
}

// htmlPlayer returns what HTML recordings bring along.
func htmlPlayer() exchange.Player {
	script, style := web.Player()
	return exchange.Player{Script: script, Style: style}
}

// fork is what Durable Streams asks for when it forks a session.
func (a *app) fork(ctx context.Context, id, parent string, at int64) (tapedeck.Session, error) {
	return a.engine.Fork(ctx, tapedeck.Fork{ID: id, Parent: parent, At: &at})
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

// A searchIndex is the index of a store.
type searchIndex interface {
	Unindexed(ctx context.Context, limit int) ([]tapedeck.Unindexed, int, error)
	Index(ctx context.Context, in tapedeck.Indexed) error
	Search(ctx context.Context, q tapedeck.Search) (tapedeck.Found, error)
	Forget(ctx context.Context, session string) error
	Clean(ctx context.Context) error
}

// forget removes what was made of events that are erased.
func (a *app) forget(ctx context.Context, session string, forks []string) error {
	err := a.search.Load().Forget(ctx, session)
	return errors.Join(err, a.views.Forget(ctx, append([]string{session}, forks...)...))
}

func (a *app) openStore(ctx context.Context) (tapedeck.Store, error) {
	if a.options.ephemeral {
		m := memory.New(memory.Options{})
		x, err := m.OpenIndex()
		a.index, a.writable = x, func(context.Context) error { return nil }
		return m, err
	}
	cache := tail.New(tailBytes)
	onCommit := func(commits []tapedeck.Commit) {
		cache.Commit(commits)
		if v := a.watcher.Load(); v != nil {
			v.Watch(commits)
		}
		if x := a.search.Load(); x != nil {
			x.Changed()
		}
	}
	store, err := sqlite.Open(ctx, a.options.dir, sqlite.Options{
		Lock: a.options.lock, OnCommit: onCommit, Logger: a.options.logger,
		OnLost: func(err error) { a.lost <- err },
	})
	if err != nil {
		return nil, err
	}
	x, err := store.OpenIndex()
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	a.index, a.writable = x, store.Writable
	return cache.Over(store), nil
}

// ready asks the store something that it has to read, and whether it can write.
func (a *app) ready(ctx context.Context) error {
	if _, _, err := a.hub.List(ctx, tapedeck.Filter{Limit: 1}); err != nil {
		return err
	}
	return a.writable(ctx)
}

// close ends runs, calls then, and waits for what is being written.
func (a *app) close(then func(context.Context)) error {
	close(a.stopped)
	ctx, cancel := context.WithTimeout(context.Background(), engine.DefaultKillAfter+3*time.Second)
	defer cancel()
	err := a.engine.Shutdown(ctx)
	then(ctx)
	a.background.Wait()
	return errors.Join(err, a.hub.Close(), a.folders.remove())
}

// A holder serves a data folder over HTTP and tells other processes where.
type holder struct {
	app    *app
	http   *http.Server
	url    string
	note   string             // path of the file that says so; "" if there is none
	cutOff context.CancelFunc // ends every stream
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
		http: server.NewHTTP(cutting(ctx, a.handler), a.options.logger),
	}
	if !a.options.ephemeral {
		h.note = notePath(a.options.dir)
		h.announce(note{URL: h.url, PID: os.Getpid(), Instance: a.instance})
	}
	go func() { h.done <- server.Serve(h.http, l, a.options.maxConns, a.options.logger) }()
	return h, nil
}

// announceEvery is how often a note is tried again that could not be written.
const announceEvery = time.Second

// announce writes the note. On a full disk that fails; the server serves all the
// same, and tries again: the note is a few bytes, and only other commands need it.
func (h *holder) announce(n note) {
	err := writeNote(h.note, n)
	if err == nil {
		return
	}
	h.app.options.logger.Error("other commands cannot find this server, for the data folder cannot be written; trying again", "error", err)
	h.app.background.Go(func() {
		tick := time.NewTicker(announceEvery)
		defer tick.Stop()
		for err != nil {
			select {
			case <-h.app.stopped:
				return
			case <-tick.C:
				err = writeNote(h.note, n)
			}
		}
	})
}

// cutting ends streams when ctx is done: they would never end by themselves. All
// other requests are answered, whatever happens: who appends wants to know.
func cutting(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			cut, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			r = r.WithContext(cut)
		}
		next.ServeHTTP(w, r)
	})
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
	return n, n.URL != "" && n.Instance != ""
}

// follow follows a session from the beginning of an invocation.
func (a *app) follow(ctx context.Context, s tapedeck.Started) iter.Seq2[tapedeck.Page, error] {
	return a.hub.Follow(ctx, s.Session, tapedeck.FollowOptions{From: s.Offset})
}
