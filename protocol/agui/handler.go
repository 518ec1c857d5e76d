// Package agui is the protocol adapter for AG-UI, the protocol between agents and
// front ends: a client starts a run, connects to a thread after a refresh, and
// answers the questions of an agent. docs/protocol/ag-ui.md describes it.
//
// The package also serves the routes that a CopilotKit front end expects of its
// runtime, and it appends the events of AG-UI agents that run elsewhere.
package agui

import (
	"context"
	"iter"
	"log/slog"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/view"
)

// The paths under which the handler expects to be mounted.
const (
	Root        = "/agui"
	CopilotRoot = "/copilotkit"
)

// Options configure the handler. Sessions, Verbs and Views are required.
type Options struct {
	Sessions Sessions
	Verbs    Verbs
	Views    Views

	MaxBody   int64           // largest body of a request, in bytes; 0 for 64 MiB
	MaxEvents int             // the largest number of events in one request; 0 for 100,000
	Version   string          // of the server, for CopilotKit
	Stop      context.Context // done when streams must end; nil for never
	Logger    *slog.Logger    // for errors that clients must not see; nil for none
}

// Sessions are the sessions and their events. [*hub.Hub] implements it.
//
// [*hub.Hub]: https://pkg.go.dev/github.com/tapedeck/tapedeck/hub#Hub
type Sessions interface {
	Head(ctx context.Context, session string) (tapedeck.Session, error)
	Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error)
	Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error]
	List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error)
}

// Verbs change sessions. [*engine.Engine] implements it.
//
// [*engine.Engine]: https://pkg.go.dev/github.com/tapedeck/tapedeck/engine#Engine
type Verbs interface {
	Agents() []tapedeck.Agent
	Start(ctx context.Context, t api.Task) (api.Started, error)
	Answer(ctx context.Context, a api.Answer) (api.Answered, error)
	Cancel(ctx context.Context, session, invocation string) (api.Cancelled, error)
	Create(ctx context.Context, n api.NewSession) (tapedeck.Session, error)
	Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	Rename(ctx context.Context, r api.Rename) (tapedeck.Session, error)
	Delete(ctx context.Context, session string) error
}

// Views are the conversations of sessions.
type Views interface {
	Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error)
	Timeline(ctx context.Context, session string, at int64) (*view.Timeline, error)
	FindInvocation(ctx context.Context, session, invocation string) (offset int64, found bool, err error)
}

type handler struct {
	Options
	*httpapi.Mux
}

// New returns the handler. It expects the whole path, [Root] or [CopilotRoot]
// included.
func New(o Options) http.Handler {
	if o.MaxBody <= 0 {
		o.MaxBody = 64 << 20
	}
	if o.MaxEvents <= 0 {
		o.MaxEvents = 100_000
	}
	if o.Stop == nil {
		o.Stop = context.Background()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &handler{o, httpapi.NewMux("", o.Logger)}
	h.Handle(http.MethodPost, Root+"/{agent}", h.run)
	h.Handle(http.MethodPost, Root+"/{agent}/connect", h.connect)
	h.Handle(http.MethodPost, Root+"/{agent}/stop/{thread}", h.stop)
	h.Handle(http.MethodPost, Root+"/{agent}/events/{thread}", h.ingest)
	h.routeCopilot()
	return h
}

// defaultAgent is the name under which front ends ask for the first agent of the
// server. CopilotKit uses it unless the page names another.
const defaultAgent = "default"

// agent returns the name of an agent as the engine knows it, "" for the first one.
func (h *handler) agent(name string) (string, error) {
	for _, a := range h.Verbs.Agents() {
		if a.Name == name {
			return name, nil
		}
	}
	if name == defaultAgent && len(h.Verbs.Agents()) > 0 {
		return "", nil
	}
	return "", tapedeck.Errorf(tapedeck.NotFound, "there is no agent %.128q", name).WithHint("GET /api/v1/agents lists the agents")
}

// heartbeat is how long a stream may be silent before it sends a comment.
const heartbeat = sse.Heartbeat
