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

// keepFolder is how long the command mcp holds the data folder after its last request. An
// agent runs this command for days, and meanwhile people want to start a server.
const keepFolder = time.Second

// A loan is a connection that exists while it is used. If this process holds the data folder,
// it releases the folder soon after the last use, but not while an agent runs.
type loan struct {
	*env

	mu    sync.Mutex
	conn  *connection // nil if there is none
	users int
	idle  *time.Timer // nil before the first use
}

// take returns the connection. Call giveBack after its use.
func (l *loan) take(ctx context.Context) (*connection, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		c, err := l.connect(ctx)
		if err != nil {
			return nil, err
		}
		l.conn = c
	}
	l.users++
	return l.conn, nil
}

func (l *loan) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users > 0 {
		return
	}
	if l.idle == nil {
		l.idle = time.AfterFunc(keepFolder, l.expire)
		return
	}
	l.idle.Reset(keepFolder)
}

// expire releases the folder, if this process holds it and nobody needs that.
func (l *loan) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users > 0 || l.conn == nil || !l.conn.holds() {
		return
	}
	app := l.conn.local.app
	switch {
	case app.options.ephemeral: // the sessions exist only here
	case app.Running() > 0:
		l.idle.Reset(keepFolder)
	default:
		if err := l.conn.close(); err != nil {
			l.printError(err)
		}
		l.conn = nil
	}
}

// close ends the loan. Like other commands it first waits for the runs in this process.
func (l *loan) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users++ // so that nothing expires
	if l.conn == nil {
		return nil
	}
	l.awaitOtherRuns(l.conn)
	return l.conn.close()
}

// lend calls f with the connection.
func lend[T any](ctx context.Context, l *loan, f func(*connection) (T, error)) (T, error) {
	c, err := l.take(ctx)
	if err != nil {
		var none T
		return none, err
	}
	defer l.giveBack()
	return f(c)
}

// A lentReader reads sessions through the HTTP API.
type lentReader struct{ *loan }

func (r lentReader) Session(ctx context.Context, id string) (tapedeck.Session, error) {
	return lend(ctx, r.loan, func(c *connection) (tapedeck.Session, error) { return c.Session(ctx, id) })
}

func (r lentReader) Sessions(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error) {
	return lend(ctx, r.loan, func(c *connection) (page tapedeck.SessionPage, err error) {
		list, err := c.Sessions(ctx, f)
		for _, row := range list.Sessions {
			page.Sessions = append(page.Sessions, row.Session)
		}
		page.Next = list.Next
		return page, err
	})
}

func (r lentReader) Search(ctx context.Context, q search.Query) (search.Result, error) {
	return lend(ctx, r.loan, func(c *connection) (search.Result, error) { return c.Search(ctx, q) })
}

func (r lentReader) Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error) {
	return lend(ctx, r.loan, func(c *connection) (view.Snapshot, error) { return c.Snapshot(ctx, session, q) })
}

func (r lentReader) Summary(ctx context.Context, session string, at int64) (view.Summary, error) {
	return lend(ctx, r.loan, func(c *connection) (view.Summary, error) { return c.Summary(ctx, session, at) })
}

func (r lentReader) Diff(ctx context.Context, a, b string, atA, atB int64) (view.Diff, error) {
	return lend(ctx, r.loan, func(c *connection) (view.Diff, error) { return c.Diff(ctx, a, b, atA, atB) })
}

func (r lentReader) Events(ctx context.Context, session string, q mcp.Query) (tapedeck.Page, error) {
	o := client.PageOptions{
		From: max(q.From, 0), Limit: q.Limit, Reverse: q.Reverse, Effective: q.Effective,
		Channels: q.Select.Channels, Threads: q.Select.Threads, Types: q.Select.Types,
	}
	if len(q.Select.Invocations) > 0 {
		o.Invocation = q.Select.Invocations[0]
	}
	return lend(ctx, r.loan, func(c *connection) (tapedeck.Page, error) { return c.Page(ctx, session, o) })
}

// Follow keeps the connection, and with it the data folder, if this process holds it.
func (r lentReader) Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error] {
	return func(yield func(tapedeck.Page, error) bool) {
		c, err := r.take(ctx)
		if err != nil {
			yield(tapedeck.Page{}, err)
			return
		}
		defer r.giveBack()
		from := client.FollowOptions{PageOptions: client.PageOptions{From: o.From}, Locate: c.locate}
		for record, err := range c.Follow(ctx, session, from) {
			p := tapedeck.Page{Records: []tapedeck.Record{record}, Next: record.Offset + 1, Head: record.Offset + 1}
			if !yield(p, err) {
				return
			}
		}
	}
}

// A lentWriter changes sessions through the HTTP API.
type lentWriter struct{ *loan }

func (w lentWriter) Agents(ctx context.Context) ([]tapedeck.Agent, error) {
	return lend(ctx, w.loan, func(c *connection) ([]tapedeck.Agent, error) { return c.Agents(ctx) })
}

func (w lentWriter) Run(ctx context.Context, t api.Task) (api.Started, error) {
	return lend(ctx, w.loan, func(c *connection) (api.Started, error) { return c.Run(ctx, t) })
}

func (w lentWriter) Cancel(ctx context.Context, session, invocation string) (api.Cancelled, error) {
	return lend(ctx, w.loan, func(c *connection) (api.Cancelled, error) { return c.Cancel(ctx, session, invocation) })
}

func (w lentWriter) Rewind(ctx context.Context, r api.Rewind) (api.Rewound, error) {
	return lend(ctx, w.loan, func(c *connection) (api.Rewound, error) { return c.Rewind(ctx, r) })
}

func (w lentWriter) Fork(ctx context.Context, f api.Fork) (tapedeck.Session, error) {
	return lend(ctx, w.loan, func(c *connection) (tapedeck.Session, error) { return c.Fork(ctx, f) })
}
