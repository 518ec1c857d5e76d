package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// A connection is a client and what has to be released after it.
type connection struct {
	*client.Client
	mu     sync.Mutex
	local  *holder               // not nil if this process holds the data folder
	locate func() *client.Client // of the server at the next attempt to follow; nil: as before
}

// adopt takes what another connection has to release.
func (c *connection) adopt(other *connection) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other.local == nil {
		return nil
	}
	if c.local != nil { // there is none unless two requests have looked at once
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

func (c *connection) close() error {
	c.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.local != nil {
		return c.local.stop()
	}
	return nil
}

// ownRun is how long the run of this command may take to go, once it has ended.
const ownRun = 2 * time.Second

// awaitGuests waits for the runs that other commands have begun here: they have
// found this process serving the folder, and would be cut off.
func (e *env) awaitGuests(c *connection) {
	c.mu.Lock()
	local := c.local
	c.mu.Unlock()
	if local == nil || local.app.options.ephemeral || local.app.Running() == 0 {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The end of this command's own run is printed a moment before the engine is
	// done with it.
	moment, done := context.WithTimeout(ctx, ownRun)
	defer done()
	if local.app.AwaitIdle(moment) == nil {
		return
	}
	if ctx.Err() == nil {
		e.notice("waiting for a run that another command has begun (Ctrl-C to end it)")
	}
	_ = local.app.AwaitIdle(ctx) // either way it is time to go
}

// connect finds the server of the sessions: the one at --url, the process that
// holds the data folder, or, if none does, this process itself.
func (e *env) connect(ctx context.Context) (*connection, error) {
	if u := e.serverURL(); u != "" && !e.ephemeral {
		return e.connectURL(ctx, u)
	}
	if ephemeral, err := e.forgets(); err != nil {
		return nil, err
	} else if ephemeral {
		e.notice(nothingKept)
		return e.own(ctx, appOptions{ephemeral: true})
	}
	c, err := e.connectFolder(ctx)
	if err != nil {
		return nil, err
	}
	// The folder may be served by a command that has ended meanwhile.
	c.OnRefused(func(ctx context.Context) (*client.Client, error) {
		next, err := e.connectFolder(ctx)
		if err != nil {
			return nil, err
		}
		return next.Client, c.adopt(next)
	})
	return c, nil
}

// connectURL connects to the server that the user names, whatever folder it
// holds.
func (e *env) connectURL(ctx context.Context, url string) (*connection, error) {
	if e.data != "" {
		return nil, usageError("--url and --data name two places; give one of them")
	}
	if e.url == "" {
		e.notice("using the server at %s, which $TAPEDECK_URL names", terminal.Clean(url))
	}
	c, err := client.New(url)
	if err != nil {
		return nil, err
	}
	return &connection{Client: c, locate: func() *client.Client { return nil }}, c.Ping(ctx)
}

// settleTime is how long a process may hold the data folder without serving it:
// it is starting or stopping.
const settleTime = 3 * time.Second

// connectFolder finds the process that serves the data folder, or serves it.
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
	if e.data != "" { // a flag is nearer than an environment variable
		return ""
	}
	return os.Getenv("TAPEDECK_URL")
}

// tryFolder takes the lock of the data folder and serves it. Only if another
// process holds the lock, it counts what the lock file and server.json say: without
// a holder they are stale, or came with a copy of the folder.
func (e *env) tryFolder(ctx context.Context) (*connection, error) {
	lock, err := sqlite.TakeLock(e.folder())
	switch {
	case err == nil:
		return e.own(ctx, appOptions{dir: e.folder(), lock: lock})
	case tapedeck.KindOf(err) == tapedeck.Conflict:
		return e.running(ctx, err)
	}
	return nil, err
}

// own serves the sessions in this process, to itself.
func (e *env) own(ctx context.Context, o appOptions) (*connection, error) {
	a, err := e.openOwn(ctx, o)
	if err != nil {
		if o.lock != nil {
			o.lock.Release() // for the store, which releases it too, may not have been opened
		}
		return nil, err
	}
	h, err := hold(a, "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	c, err := client.NewFor(h.url, a.Instance())
	if err != nil {
		return nil, errors.Join(err, h.stop())
	}
	locate := e.locate
	if o.ephemeral { // no other process has these sessions
		locate = func() *client.Client { return nil }
	}
	return &connection{Client: c, local: h, locate: locate}, nil
}

func (e *env) openOwn(ctx context.Context, o appOptions) (_ *app, err error) {
	if o.config, err = e.readConfig(); err != nil {
		return nil, err
	}
	return openApp(ctx, o)
}

// errUnserved is that a process holds the data folder and does not serve it.
var errUnserved = errors.New("the folder is not served")

// running connects to the process that holds the data folder. held is the error
// that says which one it is.
func (e *env) running(ctx context.Context, held error) (*connection, error) {
	c := e.locate()
	if c == nil {
		return nil, unserved(held, errUnserved)
	}
	switch err := c.Ping(ctx); {
	case err == nil:
		return &connection{Client: c, locate: e.locate}, nil
	case client.Silent(err):
		return nil, unserved(held, err)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, unserved(held, errUnserved)
}

// unserved adds to the error of a folder in use that its process does not answer.
func unserved(held, cause error) error {
	return tapedeck.Errorf(tapedeck.Unavailable, "%w, which does not answer", held).
		WithHint("it may be stopped or overloaded: continue it (kill -CONT), end it, or try again").Because(cause)
}

// locate returns a client of the process that says it serves the data folder,
// nil if none does.
func (e *env) locate() *client.Client {
	// The lock file is written first, and on a full disk, too; server.json is for
	// a holder that says nothing there.
	url, instance, ok := sqlite.ServedAt(e.folder())
	if !ok {
		n, noted := readNote(e.folder())
		if !noted {
			return nil
		}
		url, instance = n.URL, n.Instance
	}
	c, err := client.NewFor(url, instance)
	if err != nil { // the file is not ours
		return nil
	}
	return c
}

// exists reports whether there is a database in the data folder, so that a
// command that only reads does not make one by a slip of the keyboard.
func (e *env) exists() error {
	if e.serverURL() != "" {
		return nil
	}
	if ephemeral, err := e.forgets(); err != nil {
		return err
	} else if ephemeral {
		return tapedeck.Errorf(tapedeck.NotFound, "there are no sessions: nothing is kept").
			WithHint("unset %s to see those in %s", persistenceVariable, e.folder())
	}
	dir := e.folder()
	if _, err := os.Stat(filepath.Join(dir, "tapedeck.db")); errors.Is(err, fs.ErrNotExist) {
		return tapedeck.Errorf(tapedeck.NotFound, "there are no sessions in %s", dir).
			WithHint("start a server with: tapedeck serve --demo")
	}
	return nil
}

// with connects, calls f and releases the connection.
func (e *env) with(ctx context.Context, f func(c *connection) error) (err error) {
	c, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	err = f(c)
	var exit *exitError
	if !errors.As(err, &exit) || exit.code != exitCancelled { // who presses Ctrl-C wants to go
		e.awaitGuests(c)
	}
	return err
}

// reading is with for a session that must be there already.
func (e *env) reading(ctx context.Context, f func(*connection) error) error {
	if err := e.exists(); err != nil {
		return err
	}
	return e.with(ctx, f)
}
