// Package aisdk is the protocol adapter for the UI message stream of the AI SDK: the
// hook useChat starts runs, resumes their streams after a reload, and answers the
// questions of an agent. docs/protocol/ai-sdk.md describes it.
//
// An assistant's message of a chat is a run of the log: its id is that of the
// invocation. So the stream of a run is the same however often it is read.
package aisdk

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/view"
)

// Root is the path under which the handler expects to be mounted.
const Root = "/aisdk"

// Options configure the handler. Sessions, Verbs and Views are required.
type Options struct {
	Sessions Sessions
	Verbs    Verbs
	Views    Views

	MaxBody int64           // largest body of a request, in bytes; 0 for 64 MiB
	Stop    context.Context // done when streams must end; nil for never
	Logger  *slog.Logger    // for errors that clients must not see; nil for none
}

// Sessions are the sessions and their events. [*hub.Hub] implements it.
//
// [*hub.Hub]: https://pkg.go.dev/github.com/tapedeck/tapedeck/hub#Hub
type Sessions interface {
	Head(ctx context.Context, session string) (tapedeck.Session, error)
	Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error)
	Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error]
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
	AppendAfter(ctx context.Context, r api.Rewind, a tapedeck.Append) (tapedeck.Appended, error)
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

// New returns the handler. It expects the whole path, [Root] included.
func New(o Options) http.Handler {
	if o.MaxBody <= 0 {
		o.MaxBody = 64 << 20
	}
	if o.Stop == nil {
		o.Stop = context.Background()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &handler{o, httpapi.NewMux(Root, o.Logger)}
	h.route(http.MethodPost, "/{agent}", h.run)
	h.route(http.MethodGet, "/{agent}/{chat}/stream", h.resume)
	h.route(http.MethodGet, "/{agent}/{chat}/messages", h.messages)
	h.route(http.MethodPost, "/{agent}/{chat}/messages", h.addMessages)
	h.route(http.MethodPost, "/{agent}/{chat}/stop", h.stop)
	h.route(http.MethodPost, "/{agent}/{chat}/events", h.ingest)
	return h
}

// route routes requests to serve.
func (h *handler) route(method, path string, serve func(http.ResponseWriter, *http.Request) error) {
	h.Handle(method, path, func(w http.ResponseWriter, r *http.Request) error {
		if err := serve(w, r); err != nil {
			h.refuse(w, r, err)
		}
		return nil
	})
}

// refuse answers with an error as text: useChat shows the body of a failed request to its
// user, as it is. A client that names JSON among what it accepts gets the error of the API.
func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		problem.Write(w, r, err, h.Logger)
		return
	}
	seen, status := problem.Resolve(r, err, h.Logger)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", problem.RetryAfter(seen))
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(sentence(seen))) // if the client has disconnected, nobody needs it
}

// sentence returns an error as one text.
func sentence(e *tapedeck.Error) string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "; " + e.Hint
}

// defaultAgent is the name of the first agent of the server.
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

// chat returns the session in the path, "" with an error if its id is no id. A chat is
// the main thread of a session.
func chat(r *http.Request) (string, error) {
	id := r.PathValue("chat")
	return id, tapedeck.CheckID("the id of the chat", id)
}

// find returns the session in the path. The agent there may run elsewhere, so it is any name.
func (h *handler) find(r *http.Request) (tapedeck.Session, error) {
	id, err := chat(r)
	if err == nil {
		err = tapedeck.CheckID("the name of the agent", r.PathValue("agent"))
	}
	if err != nil {
		return tapedeck.Session{}, err
	}
	return h.head(r.Context(), id)
}

// notBegun reports whether err says only that the chat in the path has not begun.
func notBegun(head tapedeck.Session, err error) bool {
	return tapedeck.KindOf(err) == tapedeck.NotFound && head.Kind == ""
}

// head returns a session. A stream of Durable Streams is none.
func (h *handler) head(ctx context.Context, id string) (tapedeck.Session, error) {
	s, err := h.Sessions.Head(ctx, id)
	if err == nil && s.Kind != tapedeck.KindSession {
		err = tapedeck.Errorf(tapedeck.NotFound, "there is no session %q", id)
	}
	return s, err
}

// stop cancels the open run of a chat. Closing the stream of a run does not.
func (h *handler) stop(w http.ResponseWriter, r *http.Request) error {
	head, err := h.find(r)
	open, busy := head.Run(tapedeck.MainThread)
	if err == nil && busy {
		_, err = h.Verbs.Cancel(r.Context(), head.ID, open.Invocation)
		if tapedeck.KindOf(err) == tapedeck.Conflict { // it has ended by itself
			busy, err = false, nil
		}
	}
	if err != nil && !notBegun(head, err) {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, struct {
		Stopped bool `json:"stopped"`
	}{busy})
}
