package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/internal/secret"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// A connection is a client and the resources to release after it.
type connection struct {
	*client.Client
	mu     sync.Mutex
	local  *holder               // not nil if this process holds the data folder
	locate func() *client.Client // returns the client for the next attempt to follow; nil for the same one
}

// adopt takes over the resources of another connection.
func (c *connection) adopt(other *connection) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other.local == nil {
		return nil
	}
	if c.local != nil { // two requests reconnected at once
		return other.local.stop()
	}
	c.local = other.local
	return nil
}

// holds reports whether this process holds the data folder.
func (c *connection) holds() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.local != nil
}

// holdInputs keeps inputs that wait from beginning, if this process would begin them: its
// end would interrupt them. The next process begins them.
func (c *connection) holdInputs() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.local != nil {
		c.local.app.HoldInputs()
	}
}

func (c *connection) close() error {
	c.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.local != nil {
		return c.local.stop()
	}
	return nil
}

// ownRunTime is the time that the engine may need to finish the run of this command,
// after its terminal event.
const ownRunTime = 2 * time.Second

// awaitOtherRuns waits for the runs that other commands started in this process, which
// serves the folder. Its end would interrupt them.
func (e *env) awaitOtherRuns(c *connection) {
	c.mu.Lock()
	local := c.local
	c.mu.Unlock()
	if local == nil || local.app.options.ephemeral || local.app.Running() == 0 {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The end of this command's own run is printed a moment before the engine has
	// finished it.
	moment, done := context.WithTimeout(ctx, ownRunTime)
	defer done()
	if local.app.AwaitIdle(moment) == nil {
		return
	}
	if ctx.Err() == nil {
		e.notice("waiting for a run in this process (Ctrl-C interrupts it; a workflow continues when a server starts)")
	}
	_ = local.app.AwaitIdle(ctx) // an error means that the user does not want to wait
}

// connect connects to the server of the sessions: the one at --url, otherwise the
// process that holds the data folder, otherwise this process.
func (e *env) connect(ctx context.Context) (*connection, error) {
	if u := e.serverURL(); u != "" && !e.ephemeral {
		return e.connectURL(ctx, u)
	}
	if ephemeral, err := e.inMemory(); err != nil {
		return nil, err
	} else if ephemeral {
		e.notice(nothingKept)
		return e.serveHere(ctx, appOptions{ephemeral: true})
	}
	c, err := e.connectFolder(ctx)
	if err != nil {
		return nil, err
	}
	// The server may be a command that ends before the next request.
	c.OnRefused(func(ctx context.Context) (*client.Client, error) {
		next, err := e.connectFolder(ctx)
		if err != nil {
			return nil, err
		}
		return next.Client, c.adopt(next)
	})
	return c, nil
}

// connectURL connects to the server at an address, whichever folder it holds.
func (e *env) connectURL(ctx context.Context, url string) (*connection, error) {
	if e.data != "" {
		return nil, usageError("--url and --data cannot be used together")
	}
	if e.config != "" {
		return nil, usageError("the server at --url or $%s has a configuration of its own, so --config cannot be used with it", urlVariable)
	}
	if e.url == "" {
		e.notice("using the server at %s, from $%s", terminal.Clean(secret.Address(url)), urlVariable)
	}
	c, err := client.New(url, clientOptions()...)
	if err != nil {
		return nil, err
	}
	e.elsewhere = true
	return &connection{Client: c, locate: func() *client.Client { return nil }}, c.Ping(ctx)
}

// settleTime is how long a process may hold the data folder without serving it,
// while it starts or stops.
const settleTime = 3 * time.Second

// connectFolder connects to the process that serves the data folder. If no process
// does, this process serves it.
func (e *env) connectFolder(ctx context.Context) (*connection, error) {
	for deadline := time.Now().Add(settleTime); ; {
		c, err := e.tryFolder(ctx)
		if !errors.Is(err, errUnserved) || time.Now().After(deadline) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (e *env) serverURL() string {
	if e.url != "" {
		return e.url
	}
	if e.data != "" { // a flag overrides an environment variable
		return ""
	}
	return os.Getenv(urlVariable)
}

// onlyFolder refuses a server's URL, for a command that uses the data folder itself. why is
// a sentence about that.
func (e *env) onlyFolder(why string) error {
	switch {
	case e.serverURL() == "":
		return nil
	case e.url == "":
		return usageError("%s, and $%s names a server; unset it, or name a folder with --data", why, urlVariable)
	}
	return usageError("%s; leave out --url", why)
}

// tryFolder takes the lock of the data folder and serves it. It reads the lock file
// and server.json only if another process holds the lock: otherwise they are stale,
// or part of a copy of the folder.
func (e *env) tryFolder(ctx context.Context) (*connection, error) {
	lock, err := sqlite.TakeLock(e.folder())
	switch {
	case err == nil:
		key, err := e.encryptionKey(ctx)
		if err != nil {
			lock.Release()
			return nil, err
		}
		return e.serveHere(ctx, appOptions{dir: e.folder(), lock: lock, key: key, reads: e.reads, auditActor: localActor()})
	case tapedeck.KindOf(err) == tapedeck.Conflict:
		return e.connectHolder(ctx, err)
	}
	return nil, err
}

// serveHere serves the sessions in this process and connects to it.
func (e *env) serveHere(ctx context.Context, o appOptions) (*connection, error) {
	a, err := e.openHere(ctx, o)
	if err != nil {
		if o.lock != nil {
			o.lock.Release() // the store, which also releases it, may not be open
		}
		return nil, err
	}
	h, err := hold(a)
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	c, err := client.NewFor(h.url, a.service.Instance())
	if err != nil {
		return nil, errors.Join(err, h.stop())
	}
	locate := e.locate
	if o.ephemeral { // no other process has these sessions
		locate = func() *client.Client { return nil }
	}
	return &connection{Client: c, local: h, locate: locate}, nil
}

func (e *env) openHere(ctx context.Context, o appOptions) (_ *app, err error) {
	if o.config, err = e.readConfig(); err != nil {
		return nil, err
	}
	return openApp(ctx, o)
}

// errUnserved means that a process holds the data folder but does not serve it.
var errUnserved = errors.New("the folder is not served")

// connectHolder connects to the process that holds the data folder. held is the error
// that names this process.
func (e *env) connectHolder(ctx context.Context, held error) (*connection, error) {
	c := e.locate()
	if c == nil {
		return nil, unserved(held, errUnserved)
	}
	switch err := c.Ping(ctx); {
	case err == nil:
		if e.config != "" {
			e.notice("another process serves %s, with a configuration of its own; --config is not used", terminal.Clean(e.folder()))
		}
		e.elsewhere = true
		return &connection{Client: c, locate: e.locate}, nil
	case client.Silent(err):
		return nil, unserved(held, err)
	case client.Busy(err):
		return nil, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, unserved(held, errUnserved)
}

// unserved returns the error of a folder whose process does not answer.
func unserved(held, cause error) error {
	return tapedeck.Errorf(tapedeck.Unavailable, "%w, which does not answer", held).
		WithHint("the process may be stopped or overloaded: continue it (kill -CONT), end it, or try again").Because(cause)
}

// locate returns a client of the process that announced that it serves the data
// folder, nil if no process did.
func (e *env) locate() *client.Client {
	// The lock file is written first, and also on a full disk. server.json is for a
	// process that announces nothing in the lock file.
	url, instance, ok := sqlite.ServedAt(e.folder())
	if !ok {
		n, noted := readNote(e.folder())
		if !noted {
			return nil
		}
		url, instance = n.URL, n.Instance
	}
	c, err := client.NewFor(url, instance, clientOptions()...)
	if err != nil { // the file has something else
		return nil
	}
	return c
}

// exists returns an error if the data folder has no database. Otherwise a command
// that only reads would create one after a typing mistake.
func (e *env) exists() error {
	if e.serverURL() != "" {
		return nil
	}
	if ephemeral, err := e.inMemory(); err != nil {
		return err
	} else if ephemeral {
		return tapedeck.Errorf(tapedeck.NotFound, "there are no sessions: nothing is kept").
			WithHint("unset %s to use the sessions in %s", persistenceVariable, e.folder())
	}
	dir := e.folder()
	if hasData(dir) {
		return nil
	}
	from := ""
	if e.data == "" && os.Getenv(dataVariable) != "" {
		from = ", which $" + dataVariable + " names"
	}
	return tapedeck.Errorf(tapedeck.NotFound, "there are no sessions in %s%s", dir, from).
		WithHint("start a server with: tapedeck serve --demo")
}

// hasData reports whether a folder has a database, or names the one that has its sessions.
// It may have one if it cannot be read.
func hasData(dir string) bool {
	return tapedeck.KindOf(sqlite.Find(dir)) != tapedeck.NotFound || databaseOf(dir) != ""
}

// with connects, calls f and closes the connection. If it fails, it leaves no folder behind
// that it has made.
func (e *env) with(ctx context.Context, f func(c *connection) error) error {
	if e.serverURL() != "" {
		return e.connected(ctx, f)
	}
	return sqlite.Attempt(e.folder(), func() error { return e.connected(ctx, f) })
}

func (e *env) connected(ctx context.Context, f func(c *connection) error) (err error) {
	c, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	err = f(c)
	var exit *exitError
	if !errors.As(err, &exit) || exit.code != exitCancelled || e.cancelledElsewhere { // after Ctrl-C the user does not want to wait
		e.awaitOtherRuns(c)
	}
	return err
}

// withExisting is like with, for commands that need an existing session.
func (e *env) withExisting(ctx context.Context, f func(*connection) error) error {
	if err := e.exists(); err != nil {
		return err
	}
	return e.with(ctx, f)
}

// withoutTrace is like with, for commands that work also without sessions. If the folder has
// none, it uses a store in memory, so that it creates nothing.
func (e *env) withoutTrace(ctx context.Context, f func(*connection) error) (err error) {
	if ephemeral, err := e.inMemory(); err != nil {
		return err
	} else if ephemeral || e.serverURL() != "" || hasData(e.folder()) {
		return e.with(ctx, f)
	}
	c, err := e.serveHere(ctx, appOptions{ephemeral: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return f(c)
}

// reading is like withExisting, for commands that only read and end at once.
func (e *env) reading(ctx context.Context, f func(*connection) error) error {
	e.reads = true
	return e.withExisting(ctx, f)
}
