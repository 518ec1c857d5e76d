package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// The views of a session, as the server folds them. at is the offset before which
// to stop, negative for the head.

// Snapshot returns a part of the conversation of a session. The server does not support
// [view.Query.Runs]; see [Client.Tasks].
func (c *Client) Snapshot(ctx context.Context, session string, query view.Query) (view.Snapshot, error) {
	q := atOption(query.At)
	setString(q, "thread", query.Thread)
	setInt(q, "limit", int64(max(query.Limit, 0)))
	setInt(q, "before", max(query.Before, 0))
	return get[view.Snapshot](ctx, c, sessionPath(session, "snapshot"), q)
}

// Summary returns how long a session took, what it used and what it changed.
func (c *Client) Summary(ctx context.Context, session string, at int64) (view.Summary, error) {
	return get[view.Summary](ctx, c, sessionPath(session, "summary"), atOffset(at))
}

// TaskOptions say which tasks are wanted, and as of when.
type TaskOptions struct {
	At     *int64 // the offset as of which they are wanted; nil, or a negative one, for the head
	Limit  int    // most tasks, at most 10,000; 0 for the server's default of 100
	Before int64  // only those that began before this offset; 0 for the newest
}

// Tasks returns the runs of a session, each with the user's text that began it.
func (c *Client) Tasks(ctx context.Context, session string, o TaskOptions) (api.Tasks, error) {
	q := atOption(o.At)
	setInt(q, "limit", int64(max(o.Limit, 0)))
	setInt(q, "before", max(o.Before, 0))
	return get[api.Tasks](ctx, c, sessionPath(session, "tasks"), q)
}

// Threads returns the threads of a session.
func (c *Client) Threads(ctx context.Context, session string, at int64) (api.Threads, error) {
	return get[api.Threads](ctx, c, sessionPath(session, "threads"), atOffset(at))
}

// Instances returns the agents that take part in a session.
func (c *Client) Instances(ctx context.Context, session string, at int64) (api.Instances, error) {
	return get[api.Instances](ctx, c, sessionPath(session, "instances"), atOffset(at))
}

// Branches returns the forks of a session and its reverted branches.
func (c *Client) Branches(ctx context.Context, session string, at int64) (api.Branches, error) {
	return get[api.Branches](ctx, c, sessionPath(session, "branches"), atOffset(at))
}

// ReplayIndex returns what a player of a session needs to know before it has
// read the events.
func (c *Client) ReplayIndex(ctx context.Context, session string, at int64) (view.Index, error) {
	return get[view.Index](ctx, c, sessionPath(session, "replay-index"), atOffset(at))
}

// ContextOptions say whose context is wanted, and as of when. Instance and Thread
// exclude each other; without both it is the main thread.
type ContextOptions struct {
	At       *int64 // the offset as of which it is wanted; nil, or a negative one, for the head
	Instance string
	Thread   string
	Limit    int // most messages, at most 10,000; 0 for the server's default of 128
}

// Context returns the messages that a model would get. The field Place of each
// message is empty; Places has the positions.
func (c *Client) Context(ctx context.Context, session string, o ContextOptions) (api.Context, error) {
	q := atOption(o.At)
	setString(q, "instance", o.Instance)
	setString(q, "thread", o.Thread)
	setInt(q, "limit", int64(max(o.Limit, 0)))
	return get[api.Context](ctx, c, sessionPath(session, "context"), q)
}

func atOption(at *int64) url.Values {
	if at == nil {
		return url.Values{}
	}
	return atOffset(*at)
}

func atOffset(at int64) url.Values {
	q := url.Values{}
	if at >= 0 {
		q.Set("at", strconv.FormatInt(at, 10))
	}
	return q
}
