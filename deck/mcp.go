package deck

import (
	"context"
	"iter"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access/guard"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/protocol/mcp"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/view"
)

// newMCP returns the handler of the MCP endpoint.
func (d *Deck) newMCP() http.Handler {
	o := mcp.Options{Reader: mcpReader{d.used()}, OwnSession: d.options.MCPOwnSession, Version: d.options.Version, Logger: d.options.Logger}
	if d.options.MCPWrite {
		o.Writer = mcpWriter{d.used().verbs}
	}
	return mcp.New(d.streams, o)
}

// mcpReader reads sessions for the MCP endpoint.
type mcpReader struct{ used }

func (r mcpReader) Session(ctx context.Context, id string) (tapedeck.Session, error) {
	return r.sessions.Head(ctx, id)
}

func (r mcpReader) Sessions(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error) {
	return r.sessions.List(ctx, f)
}

func (r mcpReader) Search(ctx context.Context, q search.Query) (search.Result, error) {
	return r.search.Search(ctx, q)
}

func (r mcpReader) Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error] {
	return r.sessions.Follow(ctx, session, o)
}

func (r mcpReader) Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error) {
	return r.views.Snapshot(ctx, session, q)
}

func (r mcpReader) Summary(ctx context.Context, session string, at int64) (view.Summary, error) {
	return r.views.Summary(ctx, session, at)
}

func (r mcpReader) Diff(ctx context.Context, a, b string, atA, atB int64) (view.Diff, error) {
	return r.views.Diff(ctx, a, b, atA, atB)
}

// Limits of a page of events: what one request costs is bounded. A page that ends at maxScan
// may be empty.
const (
	maxScan      = 20_000  // events that a request looks at
	maxPageBytes = 1 << 20 // bytes of events, or one event
)

func (r mcpReader) Events(ctx context.Context, session string, q mcp.Query) (tapedeck.Page, error) {
	out := tapedeck.Page{Next: q.From}
	if q.Effective {
		s, err := r.sessions.Head(ctx, session)
		if err == nil {
			q.Select.At = s.Head
			q.Select.Timeline, err = r.views.Timeline(ctx, session, s.Head)
		}
		if err != nil {
			return out, err
		}
	}
	size := 0
	for scanned, full := 0, false; !full && scanned < maxScan; {
		page, err := r.sessions.Read(ctx, session, tapedeck.Range{From: out.Next, Limit: q.Limit, MaxBytes: maxPageBytes, Reverse: q.Reverse})
		if err != nil {
			return out, err
		}
		out.Next, out.Head, out.Closed = page.Next, page.Head, page.Closed
		full = q.Reverse && page.Next == 0 || !q.Reverse && page.CaughtUp()
		scanned += len(page.Records)
		for _, rec := range page.Records {
			e, err := rec.Event()
			if err != nil {
				return out, err
			}
			if !q.Select.Match(&e) {
				continue
			}
			out.Records = append(out.Records, rec)
			if size += len(rec.Data); len(out.Records) == q.Limit || size >= maxPageBytes {
				if out.Next = rec.Offset; !q.Reverse {
					out.Next++
				}
				return out, nil
			}
		}
	}
	return out, nil
}

// mcpWriter changes sessions for the MCP endpoint.
type mcpWriter struct{ guard.Verbs }

func (w mcpWriter) Agents(context.Context) ([]tapedeck.Agent, error) { return w.Verbs.Agents(), nil }

func (w mcpWriter) Run(ctx context.Context, t api.Task) (api.Started, error) {
	return w.Start(ctx, t)
}
