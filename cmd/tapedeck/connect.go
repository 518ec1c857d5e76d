package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
)

// A connection is a client and what has to be released after it.
type connection struct {
	*client.Client
	mu     sync.Mutex
	local  *holder // not nil if this process holds the data folder
	locate func() string
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
func (c *connection) awaitGuests(say io.Writer) {
	c.mu.Lock()
	local := c.local
	c.mu.Unlock()
	if local == nil || local.app.options.ephemeral || local.app.engine.Running() == 0 {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The end of this command's own run is printed a moment before the engine is
	// done with it.
	moment, done := context.WithTimeout(ctx, ownRun)
	defer done()
	if local.app.engine.AwaitIdle(moment) == nil {
		return
	}
	if ctx.Err() == nil {
		fmt.Fprintln(say, "tapedeck: waiting for a run that another command has begun (Ctrl-C to end it)")
	}
	_ = local.app.engine.AwaitIdle(ctx) // either way it is time to go
}

// connect finds who serves the sessions: the server at --url, the process that
// holds the data folder, or, if none does, this process itself.
func (e *env) connect(ctx context.Context) (*connection, error) {
	if u := e.serverURL(); u != "" && !e.ephemeral {
		c, err := client.New(u)
		if err != nil {
			return nil, err
		}
		return &connection{Client: c, locate: func() string { return "" }}, nil
	}
	if ephemeral, err := e.forgets(); err != nil {
		return nil, err
	} else if ephemeral {
		fmt.Fprintln(e.stderr, nothingKept)
		return e.own(ctx, appOptions{ephemeral: true})
	}
	c, err := e.connectFolder(ctx)
	if err != nil {
		return nil, err
	}
	// Who served the folder may be a command that has ended meanwhile.
	c.OnRefused(func(ctx context.Context) (string, error) {
		next, err := e.connectFolder(ctx)
		if err != nil {
			return "", err
		}
		return next.BaseURL(), c.adopt(next)
	})
	return c, nil
}

// connectFolder finds who serves the data folder, or serves it.
func (e *env) connectFolder(ctx context.Context) (*connection, error) {
	var last error
	for deadline := time.Now().Add(3 * time.Second); ; {
		c, err := e.tryFolder(ctx)
		if err == nil || tapedeck.KindOf(err) != tapedeck.Conflict {
			return c, err
		}
		// In use, but nobody answers: it is starting or stopping.
		last = err
		if time.Now().After(deadline) {
			return nil, last
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

func (e *env) tryFolder(ctx context.Context) (*connection, error) {
	if c, ok := e.running(ctx); ok {
		return c, nil
	}
	return e.own(ctx, appOptions{dir: e.folder()})
}

// own serves the sessions in this process, to itself.
func (e *env) own(ctx context.Context, o appOptions) (*connection, error) {
	var err error
	if o.config, err = e.readConfig(); err != nil {
		return nil, err
	}
	a, err := openApp(ctx, o)
	if err != nil {
		return nil, err
	}
	h, err := hold(a, "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, a.close(func(context.Context) {}))
	}
	c, err := client.New(h.url)
	if err != nil {
		return nil, errors.Join(err, h.stop())
	}
	locate := e.locate
	if o.ephemeral { // nobody else has these sessions
		locate = func() string { return "" }
	}
	return &connection{Client: c, local: h, locate: locate}, nil
}

// running connects to the process that holds the data folder, if it answers.
func (e *env) running(ctx context.Context) (*connection, bool) {
	n, ok := readNote(e.folder())
	if !ok {
		return nil, false
	}
	c, err := client.New(n.URL)
	if err != nil || c.Ping(ctx) != nil {
		return nil, false
	}
	return &connection{Client: c, locate: e.locate}, true
}

// locate returns the URL at which the data folder is served now.
func (e *env) locate() string {
	n, _ := readNote(e.folder())
	return n.URL
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
		c.awaitGuests(e.stderr)
	}
	return err
}
