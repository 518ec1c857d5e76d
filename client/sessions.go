package client

import (
	"cmp"
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
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// Create creates a session.
func (c *Client) Create(ctx context.Context, n api.NewSession) (tapedeck.Session, error) {
	return post[tapedeck.Session](ctx, c, "/api/v1/sessions", n)
}

// Session returns a session's entry in the catalogue.
func (c *Client) Session(ctx context.Context, id string) (tapedeck.Session, error) {
	return get[tapedeck.Session](ctx, c, sessionPath(id), nil)
}

// Sessions returns a page of sessions.
func (c *Client) Sessions(ctx context.Context, f tapedeck.Filter) (api.Sessions, error) {
	return get[api.Sessions](ctx, c, "/api/v1/sessions", listQuery(f))
}

// SessionsWithSummaries is [Client.Sessions], and each row has its summary.
func (c *Client) SessionsWithSummaries(ctx context.Context, f tapedeck.Filter) (api.Sessions, error) {
	q := listQuery(f)
	q.Set("summary", "true")
	return get[api.Sessions](ctx, c, "/api/v1/sessions", q)
}

func listQuery(f tapedeck.Filter) url.Values {
	q := url.Values{}
	setString(q, "status", string(f.Status))
	setString(q, "agent", f.Agent)
	setString(q, "owner", f.Owner)
	setString(q, "parent", f.Parent)
	setString(q, "q", f.Query)
	setString(q, "cursor", f.Cursor)
	setInt(q, "limit", int64(f.Limit))
	if f.Sort != "" || f.Ascending {
		q.Set("sort", cmp.Or(f.Sort, "created"))
		q.Set("order", map[bool]string{true: "asc", false: "desc"}[f.Ascending])
	}
	for name, t := range map[string]time.Time{"from": f.From, "to": f.To} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	for name, value := range f.Labels {
		q.Add("label", name+":"+value)
	}
	return q
}

// Delete deletes a session.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, sessionPath(id), nil, nil, nil)
}

// Agents returns the agents that accept tasks, the default agent first.
func (c *Client) Agents(ctx context.Context) ([]tapedeck.Agent, error) {
	out, err := get[api.Agents](ctx, c, "/api/v1/agents", nil)
	return out.Agents, err
}

// Stats describes the server since its start.
func (c *Client) Stats(ctx context.Context) (api.Stats, error) {
	return get[api.Stats](ctx, c, "/api/v1/stats", nil)
}

// Audit returns a page of the audit log, newest first. It is for admins.
func (c *Client) Audit(ctx context.Context, in api.AuditQuery) (api.AuditPage, error) {
	q := url.Values{}
	for name, value := range map[string]string{"action": in.Action, "actor": in.Actor, "session": in.Session, "outcome": in.Outcome} {
		setString(q, name, value)
	}
	for name, t := range map[string]time.Time{"from": in.From, "to": in.To} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	setInt(q, "limit", int64(in.Limit))
	return get[api.AuditPage](ctx, c, "/api/v1/audit", q)
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
	var out api.Appended
	if err := decode(resp, &out); err != nil {
		return tapedeck.Appended{}, err
	}
	done := tapedeck.Appended{First: -1, Next: -1, Head: out.Head, Duplicate: out.Duplicate}
	if out.First != nil && out.Last != nil {
		done.First, done.Next = *out.First, *out.Last+1
	}
	return done, nil
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
	setString(q, "actor", in.Actor)
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
	Gen        int64 // Gen of the page that From is of: a session that was created again since is [tapedeck.Replaced]. 0 if it is not known
	Limit      int
	Reverse    bool
	Channels   []string
	Threads    []string
	Types      []string
	Invocation string
	Effective  bool // only active events
}

func (o PageOptions) query() url.Values {
	q := url.Values{}
	setInt(q, "from", o.From)
	if o.Gen != 0 {
		q.Set("from", string(httpapi.AppendIncarnation(strconv.AppendInt(nil, o.From, 10), &tapedeck.Session{Gen: o.Gen})))
	}
	setInt(q, "limit", int64(o.Limit))
	setString(q, "channel", strings.Join(o.Channels, ","))
	setString(q, "thread", strings.Join(o.Threads, ","))
	setString(q, "type", strings.Join(o.Types, ","))
	setString(q, "invocation", o.Invocation)
	if o.Reverse {
		q.Set("reverse", "true")
	}
	if o.Effective {
		q.Set("view", "effective")
	}
	return q
}

// Page returns one page of a session's events.
func (c *Client) Page(ctx context.Context, session string, o PageOptions) (tapedeck.Page, error) {
	out, err := get[api.Events](ctx, c, sessionPath(session, "events"), o.query())
	if err != nil {
		return tapedeck.Page{}, err
	}
	p := tapedeck.Page{Next: out.Next, Head: out.Head, Closed: out.Closed}
	_, p.Gen, _ = httpapi.ParseCursor(out.Cursor)
	for _, raw := range out.Events {
		var e tapedeck.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			return p, tapedeck.Errorf(tapedeck.Internal, "the server sent an event that cannot be read: %w", err)
		}
		p.Records = append(p.Records, tapedeck.Record{Offset: e.Offset, Data: raw})
	}
	return p, nil
}
