package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// Rewind takes a session, or a thread of it, back to what it was before an
// event. A run that is in the way is cancelled first.
func (c *Client) Rewind(ctx context.Context, r api.Rewind) (api.Rewound, error) {
	in := map[string]any{}
	putString(in, "before_invocation_id", r.BeforeInvocation)
	if r.ToOffset != nil {
		in["to_offset"] = *r.ToOffset
	}
	putString(in, "thread", r.Thread)
	if r.Force {
		in["force"] = true
	}
	return c.jump(ctx, r.Session, "rewind", in)
}

// Undo takes back a rewind, a clear or an overwrite.
func (c *Client) Undo(ctx context.Context, u api.Undo) (api.Rewound, error) {
	in := map[string]any{}
	putString(in, "marker", u.Marker)
	return c.jump(ctx, u.Session, "undo", in)
}

// Overwrite says that what follows takes the place of the events from an offset
// on.
func (c *Client) Overwrite(ctx context.Context, o api.Overwrite) (api.Rewound, error) {
	in := map[string]any{"from_offset": o.FromOffset}
	putString(in, "thread", o.Thread)
	if o.Force {
		in["force"] = true
	}
	return c.jump(ctx, o.Session, "overwrite", in)
}

// Clear takes everything in a session, or in a thread of it, back.
func (c *Client) Clear(ctx context.Context, r api.Clear) (api.Rewound, error) {
	in := map[string]any{}
	putString(in, "thread", r.Thread)
	return c.jump(ctx, r.Session, "clear", in)
}

func (c *Client) jump(ctx context.Context, session, verb string, in map[string]any) (api.Rewound, error) {
	var out api.Rewound
	err := c.call(ctx, http.MethodPost, sessionPath(session, verb), nil, in, &out)
	return out, err
}

// Fork makes a session that shares the events of another one.
func (c *Client) Fork(ctx context.Context, f api.Fork) (tapedeck.Session, error) {
	in := map[string]any{}
	putString(in, "id", f.ID)
	putString(in, "owner", f.Owner)
	if f.At != nil {
		in["at"] = *f.At
	}
	if f.Title != nil {
		in["title"] = *f.Title
	}
	if f.Copy {
		in["copy"] = true
	}
	var out tapedeck.Session
	err := c.call(ctx, http.MethodPost, sessionPath(f.Parent, "fork"), nil, in, &out)
	return out, err
}

// Resume asks the agent of a thread to go on where a run stopped before its
// end.
func (c *Client) Resume(ctx context.Context, r api.Resume) (api.Started, error) {
	in := map[string]any{}
	putString(in, "agent", r.Agent)
	putString(in, "thread", r.Thread)
	putString(in, "task", r.Text)
	if r.Config != nil {
		in["config"] = r.Config
	}
	return c.start(ctx, sessionPath(r.Session, "resume"), in)
}

// start asks for a run.
func (c *Client) start(ctx context.Context, path string, in map[string]any) (api.Started, error) {
	var out struct {
		Session    string `json:"session_id"`
		Invocation string `json:"invocation_id"`
		Offset     int64  `json:"offset"`
	}
	err := c.call(ctx, http.MethodPost, path, nil, in, &out)
	return api.Started(out), err
}

// Erase removes the payloads of events for good and returns the receipt.
func (c *Client) Erase(ctx context.Context, e api.Erase) (api.Erased, error) {
	in := map[string]any{}
	if e.All {
		in["all"] = true
	} else {
		in["events"] = e.Events
	}
	putString(in, "reason", e.Reason)
	var out api.Erased
	err := c.call(ctx, http.MethodPost, sessionPath(e.Session, "erase"), nil, in, &out)
	return out, err
}

// CloseSession closes a session: nothing can be appended to it any more.
func (c *Client) CloseSession(ctx context.Context, session string) (tapedeck.Session, error) {
	var out tapedeck.Session
	err := c.call(ctx, http.MethodPost, sessionPath(session, "close"), nil, nil, &out)
	return out, err
}

// Rename changes what people see of a session.
func (c *Client) Rename(ctx context.Context, r api.Rename) (tapedeck.Session, error) {
	in := map[string]any{}
	if r.Title != nil {
		in["title"] = *r.Title
	}
	if r.Labels != nil {
		in["labels"] = r.Labels
	}
	var out tapedeck.Session
	err := c.call(ctx, http.MethodPatch, sessionPath(r.Session), nil, in, &out)
	return out, err
}

// The views of a session, as the server folds them; at is the offset before
// which to stop, negative for the head. docs/http.md says what is in them.

// Summary returns how long a session took, what it used and what it changed.
func (c *Client) Summary(ctx context.Context, session string, at int64) (json.RawMessage, error) {
	return c.view(ctx, session, "summary", at, nil)
}

// TaskOptions say which tasks are wanted, and as of when.
type TaskOptions struct {
	At     int64 // the offset as of which they are wanted; negative for the head
	Limit  int   // most tasks, at most 10,000; 0 for the server's default of 100
	Before int64 // only those that began before this offset; 0 for the newest
}

// Tasks returns what was asked in a session, and what became of it.
func (c *Client) Tasks(ctx context.Context, session string, o TaskOptions) (json.RawMessage, error) {
	q := url.Values{}
	if o.Limit > 0 {
		q.Set("limit", strconv.Itoa(o.Limit))
	}
	if o.Before > 0 {
		q.Set("before", strconv.FormatInt(o.Before, 10))
	}
	return c.view(ctx, session, "tasks", o.At, q)
}

// Threads returns the lanes of conversation in a session.
func (c *Client) Threads(ctx context.Context, session string, at int64) (json.RawMessage, error) {
	return c.view(ctx, session, "threads", at, nil)
}

// Instances returns the agents that took part in a session.
func (c *Client) Instances(ctx context.Context, session string, at int64) (json.RawMessage, error) {
	return c.view(ctx, session, "instances", at, nil)
}

// Branches returns the forks and the rewinds of a session.
func (c *Client) Branches(ctx context.Context, session string, at int64) (json.RawMessage, error) {
	return c.view(ctx, session, "branches", at, nil)
}

// ReplayIndex returns what a player of a session needs to know before it has
// read the events.
func (c *Client) ReplayIndex(ctx context.Context, session string, at int64) (json.RawMessage, error) {
	return c.view(ctx, session, "replay-index", at, nil)
}

// ContextOptions say whose context is wanted, and as of when. Instance and Thread
// exclude each other; without both it is the main thread.
type ContextOptions struct {
	At       int64 // the offset as of which it is wanted; negative for the head
	Instance string
	Thread   string
	Limit    int // most messages, at most 10,000; 0 for the server's default of 128
}

// Context returns the messages that a model would get.
func (c *Client) Context(ctx context.Context, session string, o ContextOptions) (json.RawMessage, error) {
	q := url.Values{}
	setString(q, "instance", o.Instance)
	setString(q, "thread", o.Thread)
	if o.Limit > 0 {
		q.Set("limit", strconv.Itoa(o.Limit))
	}
	return c.view(ctx, session, "context", o.At, q)
}

func (c *Client) view(ctx context.Context, session, name string, at int64, q url.Values) (json.RawMessage, error) {
	if q == nil {
		q = url.Values{}
	}
	if at >= 0 {
		q.Set("at", strconv.FormatInt(at, 10))
	}
	var out json.RawMessage
	err := c.call(ctx, http.MethodGet, sessionPath(session, name), q, nil, &out)
	return out, err
}

func putString(in map[string]any, name, v string) {
	if v != "" {
		in[name] = v
	}
}
