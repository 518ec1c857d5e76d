// Package task is the protocol adapter for the SSE task protocol: a session as one
// task after the other, for web pages that start tasks and show the work of agents.
// docs/protocol/task-events.md describes it.
//
// The protocol consists of four reads. Every other request of its clients is one of
// the HTTP API, see [Default].
package task

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/view"
)

// Root is the path under which the handler expects to be mounted.
const Root = httpapi.Root

// Options configure the handler. Sessions and Views are required.
type Options struct {
	Sessions Sessions
	Views    Views

	Heartbeat time.Duration // a stream that is silent for this long sends a comment; 0 for 15 s
	Logger    *slog.Logger  // for errors that clients must not see; nil for none
}

// Sessions are the sessions and their events. [*hub.Hub] implements it.
//
// [*hub.Hub]: https://pkg.go.dev/github.com/tapedeck/tapedeck/hub#Hub
type Sessions interface {
	Head(ctx context.Context, session string) (tapedeck.Session, error)
	Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error)
	Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error]
}

// Views tell which events of a session are active.
type Views interface {
	Timeline(ctx context.Context, session string, at int64) (*view.Timeline, error)
	Effective(ctx context.Context, session string, from, at int64) iter.Seq2[tapedeck.Event, error]
}

type handler struct {
	Options
	*httpapi.Mux
}

// The paths of the protocol, below [Root].
const (
	sessionPath = "/sessions/{id}"
	eventsPath  = "/sessions/{id}/events"
	historyPath = "/sessions/{id}/events/history"
	streamPath  = "/sessions/{id}/stream"
)

// New returns the handler of the protocol's own requests. It expects the whole path,
// [Root] included.
func New(o Options) http.Handler {
	if o.Heartbeat <= 0 {
		o.Heartbeat = sse.Heartbeat
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &handler{Options: o, Mux: httpapi.NewMux(Root, o.Logger)}
	h.Handle(http.MethodGet, sessionPath, h.session)
	h.Handle(http.MethodGet, eventsPath, h.events)
	h.Handle(http.MethodGet, historyPath, h.history)
	h.Handle(http.MethodGet, streamPath, h.stream)
	return h
}

// Default returns the HTTP API as clients of the protocol expect it: tasks answers
// the protocol's own requests, unless they name another format, and api answers all
// others. Both expect paths that begin with [Root], and so does the result. The ids of
// streams are numbers, without the incarnation, because such clients read them as numbers.
func Default(tasks, api http.Handler) http.Handler {
	mux := http.NewServeMux()
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tasks.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), plain{}, true)))
	})
	serve := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("format") {
		case "", "task":
			own.ServeHTTP(w, r)
		default:
			api.ServeHTTP(w, r)
		}
	}
	mux.Handle("/", api)
	mux.Handle("GET "+Root+sessionPath, own)
	mux.HandleFunc("GET "+Root+streamPath, serve)
	mux.Handle("GET "+Root+historyPath, own)
	mux.HandleFunc("GET "+Root+eventsPath, func(w http.ResponseWriter, r *http.Request) { serve(w, preferStream(r)) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Clean(r.URL.Path) != r.URL.Path { // mux would redirect it
			api.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// plain is a key of a context: the client reads the ids of a stream as numbers.
type plain struct{}

// session answers with a session. Clients of the protocol know only some statuses, so it has
// one of these.
func (h *handler) session(w http.ResponseWriter, r *http.Request) error {
	id, err := httpapi.SessionID(r)
	if err == nil {
		err = httpapi.ParseQuery(r).Err
	}
	if err != nil {
		return err
	}
	s, err := h.Sessions.Head(r.Context(), id)
	if err != nil {
		return err
	}
	switch s.Status {
	case tapedeck.StatusWaiting: // a client that sees it follows the task
		s.Status = tapedeck.StatusRunning
	case tapedeck.StatusInterrupted: // the last event of the task was error, or agent_complete if it waits for an answer
		s.Status = tapedeck.StatusFailed
		_, _, err = findBackwards(r.Context(), h.Sessions, id, s.Head, func(e *tapedeck.Event) bool {
			if e.Type == tapedeck.RunFinished {
				s.Status = tapedeck.StatusComplete
			}
			return e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError
		})
	}
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, s)
}

// preferStream makes r a request for an event stream, unless it accepts JSON: clients
// of the protocol need not say what they accept.
func preferStream(r *http.Request) *http.Request {
	if httpapi.WantsStream(r) || strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "json") {
		return r
	}
	r2 := *r
	r2.Header = r.Header.Clone()
	r2.Header.Set("Accept", "text/event-stream")
	return &r2
}

// broken logs why a stream has broken off, unless the client has disconnected. When the
// client reconnects, it gets the part of the reason that it may see.
func (h *handler) broken(r *http.Request, err error) {
	if r.Context().Err() == nil {
		problem.Log(r, err, h.Logger)
	}
}
