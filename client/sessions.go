package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// Create makes a session.
func (c *Client) Create(ctx context.Context, n api.NewSession) (tapedeck.Session, error) {
	in := map[string]any{}
	for name, v := range map[string]string{"id": n.ID, "title": n.Title, "owner": n.Owner, "agent": n.Agent} {
		if v != "" {
			in[name] = v
		}
	}
	if len(n.Labels) > 0 {
		in["labels"] = n.Labels
	}
	if n.State != nil {
		in["state"] = n.State
	}
	var s tapedeck.Session
	err := c.call(ctx, http.MethodPost, "/api/v1/sessions", nil, in, &s)
	return s, err
}

// Session returns a session's entry in the catalogue.
func (c *Client) Session(ctx context.Context, id string) (tapedeck.Session, error) {
	var s tapedeck.Session
	err := c.call(ctx, http.MethodGet, sessionPath(id), nil, nil, &s)
	return s, err
}

// Sessions returns a page of sessions, newest first, and the cursor of the next
// page, "" if there is none.
func (c *Client) Sessions(ctx context.Context, f tapedeck.Filter) ([]tapedeck.Session, string, error) {
	q := url.Values{}
	setString(q, "status", string(f.Status))
	setString(q, "agent", f.Agent)
	setString(q, "owner", f.Owner)
	setString(q, "parent", f.Parent)
	setString(q, "q", f.Query)
	setString(q, "cursor", f.Cursor)
	setInt(q, "limit", int64(f.Limit))
	for name, t := range map[string]time.Time{"from": f.From, "to": f.To} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	var page struct {
		Sessions []tapedeck.Session `json:"sessions"`
		Next     string             `json:"next"`
	}
	err := c.call(ctx, http.MethodGet, "/api/v1/sessions", q, nil, &page)
	return page.Sessions, page.Next, err
}

// Delete deletes a session.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, sessionPath(id), nil, nil, nil)
}

// Run gives a task to an agent, in the task's session or, if it names none, in
// a new one.
func (c *Client) Run(ctx context.Context, t api.Task) (api.Started, error) {
	in := map[string]any{"task": t.Text}
	for name, v := range map[string]string{"agent": t.Agent, "thread": t.Thread} {
		if v != "" {
			in[name] = v
		}
	}
	if t.Config != nil {
		in["config"] = t.Config
	}
	path := "/api/v1/sessions/run"
	if t.Session != "" {
		path = sessionPath(t.Session, "task")
	} else if t.Title != "" {
		in["title"] = t.Title
	}
	var out struct {
		Session    string `json:"session_id"`
		Invocation string `json:"invocation_id"`
		Offset     int64  `json:"offset"`
	}
	err := c.call(ctx, http.MethodPost, path, nil, in, &out)
	return api.Started(out), err
}

// Cancel cancels a run of a session; "" for the only one.
func (c *Client) Cancel(ctx context.Context, session, invocation string) (api.Cancelled, error) {
	in := map[string]string{}
	if invocation != "" {
		in["invocation"] = invocation
	}
	var out struct {
		Invocation string `json:"invocation_id"`
		Offset     int64  `json:"offset"`
		Resumable  bool   `json:"resumable"`
	}
	err := c.call(ctx, http.MethodPost, sessionPath(session, "cancel"), nil, in, &out)
	return api.Cancelled(out), err
}

// Agents returns the agents that tasks can go to.
func (c *Client) Agents(ctx context.Context) ([]tapedeck.Agent, error) {
	var out struct {
		Agents []tapedeck.Agent `json:"agents"`
	}
	err := c.call(ctx, http.MethodGet, "/api/v1/agents", nil, nil, &out)
	return out.Agents, err
}

// Snapshot returns the conversation of a session as the server folds it; at is
// the offset before which to stop, negative for the head.
func (c *Client) Snapshot(ctx context.Context, session string, at int64, thread string) (json.RawMessage, error) {
	q := url.Values{}
	if at >= 0 {
		q.Set("at", strconv.FormatInt(at, 10))
	}
	setString(q, "thread", thread)
	var out json.RawMessage
	err := c.call(ctx, http.MethodGet, sessionPath(session, "snapshot"), q, nil, &out)
	return out, err
}

// An AppendOptions says how to append.
type AppendOptions struct {
	Expect   *int64             // the head must be this; nil for any
	Producer *tapedeck.Producer // nil for none
}

// Append appends the events that r holds, one JSON envelope a line, in one go:
// all or none.
func (c *Client) Append(ctx context.Context, session string, r io.Reader, o AppendOptions) (tapedeck.Appended, error) {
	req := &request{body: r, contentType: "application/x-ndjson", header: http.Header{}}
	if o.Expect != nil {
		req.header.Set("If-Match", strconv.FormatInt(*o.Expect, 10))
	}
	if p := o.Producer; p != nil {
		req.header.Set("Producer-Id", p.ID)
		req.header.Set("Producer-Epoch", strconv.FormatInt(p.Epoch, 10))
		req.header.Set("Producer-Seq", strconv.FormatInt(p.Seq, 10))
	}
	resp, err := c.send(ctx, http.MethodPost, sessionPath(session, "events"), req, []string{"application/json"})
	if err != nil {
		return tapedeck.Appended{}, err
	}
	var out struct {
		First     int64 `json:"first"`
		Last      int64 `json:"last"`
		Head      int64 `json:"head"`
		Duplicate bool  `json:"duplicate"`
	}
	err = decode(resp, &out)
	return tapedeck.Appended{First: out.First, Next: out.Last + 1, Head: out.Head, Duplicate: out.Duplicate}, err
}

// Import makes sessions of what r holds.
func (c *Client) Import(ctx context.Context, in api.ImportRequest, r io.Reader) (api.Imported, error) {
	var out api.Imported
	err := c.postImport(ctx, in, r, url.Values{}, &out)
	return out, err
}

// PreviewImport returns what an import of r would make.
func (c *Client) PreviewImport(ctx context.Context, in api.ImportRequest, r io.Reader) (api.ImportPreview, error) {
	var out api.ImportPreview
	err := c.postImport(ctx, in, r, url.Values{"preview": {"1"}}, &out)
	return out, err
}

func (c *Client) postImport(ctx context.Context, in api.ImportRequest, r io.Reader, q url.Values, out any) error {
	setString(q, "format", in.Format)
	setString(q, "title", in.Title)
	setString(q, "owner", in.Owner)
	resp, err := c.send(ctx, http.MethodPost, "/api/v1/import",
		&request{query: q, body: r, contentType: "application/octet-stream"}, []string{"application/json"})
	if err != nil {
		return err
	}
	return decode(resp, out)
}

// A PageOptions selects records of a session; see docs/http.md.
type PageOptions struct {
	From       int64
	Limit      int
	Reverse    bool
	Channels   []string
	Threads    []string
	Types      []string
	Invocation string
}

func (o PageOptions) query() url.Values {
	q := url.Values{}
	setInt(q, "from", o.From)
	setInt(q, "limit", int64(o.Limit))
	setString(q, "channel", strings.Join(o.Channels, ","))
	setString(q, "thread", strings.Join(o.Threads, ","))
	setString(q, "type", strings.Join(o.Types, ","))
	setString(q, "invocation", o.Invocation)
	if o.Reverse {
		q.Set("reverse", "true")
	}
	return q
}

// Page returns one page of a session's events.
func (c *Client) Page(ctx context.Context, session string, o PageOptions) (tapedeck.Page, error) {
	var out struct {
		Events []json.RawMessage `json:"events"`
		Next   int64             `json:"next"`
		Head   int64             `json:"head"`
		Closed bool              `json:"closed"`
	}
	if err := c.call(ctx, http.MethodGet, sessionPath(session, "events"), o.query(), nil, &out); err != nil {
		return tapedeck.Page{}, err
	}
	p := tapedeck.Page{Next: out.Next, Head: out.Head, Closed: out.Closed}
	for _, raw := range out.Events {
		var e tapedeck.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			return p, tapedeck.Errorf(tapedeck.Internal, "the server sent an event that cannot be read: %w", err)
		}
		p.Records = append(p.Records, tapedeck.Record{Offset: e.Offset, Data: raw})
	}
	return p, nil
}
