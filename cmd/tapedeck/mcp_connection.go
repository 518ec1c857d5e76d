package main

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/protocol/mcp"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/view"
)

// keepFolder is how long the command mcp holds the data folder after its last request.
// An agent runs this command for days, and meanwhile people want to start a server.
const keepFolder = time.Second

// A sharedConnection is a connection that exists while it is used. If this process
// holds the data folder, it releases the folder soon after the last use, but not while
// an agent runs.
type sharedConnection struct {
	*env

	mu    sync.Mutex
	conn  *connection // nil if there is none
	users int
	idle  *time.Timer // nil before the first use
}

// acquire returns the connection. Call release after its use.
func (s *sharedConnection) acquire(ctx context.Context) (*connection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		c, err := s.connect(ctx)
		if err != nil {
			return nil, err
		}
		s.conn = c
	}
	s.users++
	return s.conn, nil
}

func (s *sharedConnection) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	if s.idle == nil {
		s.idle = time.AfterFunc(keepFolder, s.expire)
		return
	}
	s.idle.Reset(keepFolder)
}

// expire releases the folder, if this process holds it and nobody needs that.
func (s *sharedConnection) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users > 0 || s.conn == nil || !s.conn.holds() {
		return
	}
	app := s.conn.local.app
	switch {
	case app.options.ephemeral: // the sessions exist only here
	case app.Running() > 0:
		s.idle.Reset(keepFolder)
	default:
		if err := s.conn.close(); err != nil {
			s.printError(err)
		}
		s.conn = nil
	}
}

// close ends the connection. Like other commands it first waits for the runs in this
// process.
func (s *sharedConnection) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++ // so that nothing expires
	if s.conn == nil {
		return nil
	}
	s.awaitOtherRuns(s.conn)
	return s.conn.close()
}

// withConnection calls f with the connection.
func withConnection[T any](ctx context.Context, s *sharedConnection, f func(*connection) (T, error)) (T, error) {
	c, err := s.acquire(ctx)
	if err != nil {
		var none T
		return none, err
	}
	defer s.release()
	return f(c)
}

// A sharedReader reads sessions through the HTTP API.
type sharedReader struct{ *sharedConnection }

func (r sharedReader) Session(ctx context.Context, id string) (tapedeck.Session, error) {
	return withConnection(ctx, r.sharedConnection, func(c *connection) (tapedeck.Session, error) { return c.Session(ctx, id) })
}

func (r sharedReader) Sessions(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error) {
	return withConnection(ctx, r.sharedConnection, func(c *connection) (page tapedeck.SessionPage, err error) {
		list, err := c.Sessions(ctx, f)
		for _, row := range list.Sessions {
			page.Sessions = append(page.Sessions, row.Session)
		}
		page.Next = list.Next
		return page, err
	})
}

func (r sharedReader) Search(ctx context.Context, q search.Query) (search.Result, error) {
	return withConnection(ctx, r.sharedConnection, func(c *connection) (search.Result, error) { return c.Search(ctx, q) })
}

func (r sharedReader) Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error) {
	return withConnection(ctx, r.sharedConnection, func(c *connection) (view.Snapshot, error) { return c.Snapshot(ctx, session, q) })
}

func (r sharedReader) Summary(ctx context.Context, session string, at int64) (view.Summary, error) {
	return withConnection(ctx, r.sharedConnection, func(c *connection) (view.Summary, error) { return c.Summary(ctx, session, at) })
}

func (r sharedReader) Diff(ctx context.Context, a, b string, atA, atB int64) (view.Diff, error) {
	return withConnection(ctx, r.sharedConnection, func(c *connection) (view.Diff, error) { return c.Diff(ctx, a, b, atA, atB) })
}

func (r sharedReader) Events(ctx context.Context, session string, q mcp.Query) (tapedeck.Page, error) {
	o := client.PageOptions{
		From: max(q.From, 0), Limit: q.Limit, Reverse: q.Reverse, Effective: q.Effective,
		Channels: q.Select.Channels, Threads: q.Select.Threads, Types: q.Select.Types,
	}
	if len(q.Select.Invocations) > 0 {
		o.Invocation = q.Select.Invocations[0]
	}
	return withConnection(ctx, r.sharedConnection, func(c *connection) (tapedeck.Page, error) { return c.Page(ctx, session, o) })
}

// Follow keeps the connection, and with it the data folder, if this process holds it.
func (r sharedReader) Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error] {
	return func(yield func(tapedeck.Page, error) bool) {
		c, err := r.acquire(ctx)
		if err != nil {
			yield(tapedeck.Page{}, err)
			return
		}
		defer r.release()
		from := client.FollowOptions{PageOptions: client.PageOptions{From: o.From}, Locate: c.locate}
		for record, err := range c.Follow(ctx, session, from) {
			p := tapedeck.Page{Records: []tapedeck.Record{record}, Next: record.Offset + 1, Head: record.Offset + 1}
			if !yield(p, err) {
				return
			}
		}
	}
}

// A sharedWriter changes sessions through the HTTP API.
type sharedWriter struct{ *sharedConnection }

func (w sharedWriter) Agents(ctx context.Context) ([]tapedeck.Agent, error) {
	return withConnection(ctx, w.sharedConnection, func(c *connection) ([]tapedeck.Agent, error) { return c.Agents(ctx) })
}

func (w sharedWriter) Run(ctx context.Context, t api.Task) (api.Started, error) {
	return withConnection(ctx, w.sharedConnection, func(c *connection) (api.Started, error) { return c.Run(ctx, t) })
}

func (w sharedWriter) Cancel(ctx context.Context, session, invocation string) (api.Cancelled, error) {
	return withConnection(ctx, w.sharedConnection, func(c *connection) (api.Cancelled, error) { return c.Cancel(ctx, session, invocation) })
}

func (w sharedWriter) Rewind(ctx context.Context, r api.Rewind) (api.Rewound, error) {
	return withConnection(ctx, w.sharedConnection, func(c *connection) (api.Rewound, error) { return c.Rewind(ctx, r) })
}

func (w sharedWriter) Fork(ctx context.Context, f api.Fork) (tapedeck.Session, error) {
	return withConnection(ctx, w.sharedConnection, func(c *connection) (tapedeck.Session, error) { return c.Fork(ctx, f) })
}
