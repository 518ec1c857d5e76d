// Package durable is the protocol adapter for Durable Streams, an open protocol of
// append-only streams over HTTP, under /v1/stream:
//
//	/v1/stream                          the list of streams (an extension)
//	/v1/stream/{path}                   a stream of bytes or of JSON messages
//	/v1/stream/sessions/{id}            a session; its messages are the envelopes of its events
//	/v1/stream/sessions/{id}/views/{v}  a read-only view of it: agui, messages, state, text
//	/v1/stream/__ds/                    subscriptions, see package subscription
//
// Access control is not here: it happens before the request reaches the handler.
package durable

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/protocol/durable/views"
	"github.com/tapedeck/tapedeck/view"
)

// Root is the path under which the handler expects to be mounted.
const Root = "/v1/stream"

// control begins the paths of subscriptions.
const control = Root + "/__ds"

// Options configure the handler. Store is required.
type Options struct {
	Store Store // the hub: it stores the streams, and sessions are read from it
	Verbs Verbs // the engine, which writes sessions; nil: sessions can only be read
	Views Views // the projections; required for the views of sessions

	// Fork creates session id with the events of parent below offset at, and appends
	// session.forked as its first own event. Nil: sessions cannot be forked here.
	Fork func(ctx context.Context, id, parent string, at int64) (tapedeck.Session, error)

	Subscriptions http.Handler // of the requests below /v1/stream/__ds; nil: there are no subscriptions

	LongPoll  time.Duration // how long a long-poll waits; 0 for 25 s
	SSEClose  time.Duration // how long a connection of Server-Sent Events lasts; 0 for 60 s
	Heartbeat time.Duration // a connection that is silent for this long sends a comment; 0 for 15 s
	PageBytes int           // the largest answer in bytes, or one message; 0 for 1 MiB
	MaxBody   int64         // the largest body of a request in bytes; 0 for 10 MiB

	Now    func() time.Time // nil for time.Now
	Logger *slog.Logger     // for errors that clients must not see; nil for none
}

// Store stores streams and sessions, and follows them.
type Store interface {
	tapedeck.Log
	tapedeck.Catalogue
	Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error]
}

// Verbs writes sessions.
type Verbs interface {
	Create(ctx context.Context, s api.NewSession) (tapedeck.Session, error)
	Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	Close(ctx context.Context, session, actor string) error
	Delete(ctx context.Context, session string) error
}

// Views shows the active events of a session.
type Views interface {
	Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error)

	// Epoch changes when events of any session are erased.
	Epoch() string
}

type handler struct {
	Options
	broadcasts broadcasts
	folds      folds
}

// New returns the handler. It expects the whole path, [Root] included.
func New(o Options) http.Handler {
	h := &handler{Options: o}
	h.broadcasts.byKey = map[broadcastKey]*broadcast{}
	h.LongPoll = orDefault(o.LongPoll, 25*time.Second)
	h.SSEClose = orDefault(o.SSEClose, time.Minute)
	h.Heartbeat = orDefault(o.Heartbeat, sse.Heartbeat)
	h.PageBytes = orDefault(o.PageBytes, 1<<20)
	h.MaxBody = orDefault(o.MaxBody, 10<<20)
	if h.Now == nil {
		h.Now = time.Now
	}
	if h.Logger == nil {
		h.Logger = slog.New(slog.DiscardHandler)
	}
	return h
}

func orDefault[T ~int | ~int64](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setCommon(w.Header(), r)
	if r.Method == http.MethodOptions {
		set(w.Header(), "Allow", strings.Join(allMethods, ", "))
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err := h.serve(w, r); err != nil {
		h.fail(w, r, err)
	}
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request) error {
	if path := r.URL.Path; path == Root || path == Root+"/" {
		if r.Method != http.MethodGet {
			return notAllowed(w, r, []string{http.MethodGet, http.MethodOptions})
		}
		return h.list(w, r)
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, control); ok && h.Subscriptions != nil && (rest == "" || rest[0] == '/') {
		h.Subscriptions.ServeHTTP(w, r)
		return nil
	}
	t, err := parseTarget(r.URL.Path)
	if err != nil {
		return err
	}
	switch r.Method {
	case http.MethodGet:
		return h.get(w, r, t)
	case http.MethodHead:
		return h.head(w, r, t)
	}
	switch {
	case t.view != "":
		return notAllowed(w, r, readMethods)
	case t.isSession && h.Verbs != nil:
		return h.writeSession(w, r, t)
	case t.isSession:
		return notAllowed(w, r, readMethods)
	}
	return h.writeStream(w, r, t)
}

func (h *handler) writeStream(w http.ResponseWriter, r *http.Request, t target) error {
	switch r.Method {
	case http.MethodPost:
		return h.post(w, r, t)
	case http.MethodPut:
		return h.put(w, r, t)
	case http.MethodDelete:
		return noContent(w, t.explain(h.Store.Delete(r.Context(), t.id)))
	}
	return notAllowed(w, r, allMethods)
}

// A target is the stream, the session or the view that a path names.
type target struct {
	id        string // its id in the store
	isSession bool   // it is a session or a view of one
	view      string // "" for the log itself
}

// path returns the path of a stream.
func (t target) path() string { return strings.TrimPrefix(t.id, tapedeck.StreamPrefix) }

// parseTarget reads the path of a stream.
func parseTarget(path string) (target, error) {
	p, ok := strings.CutPrefix(path, Root+"/")
	if !ok {
		return target{}, tapedeck.Errorf(tapedeck.NotFound, "there is nothing at %.200q", path).WithHint("streams are under %s/", Root)
	}
	first, rest, _ := strings.Cut(p, "/")
	switch first {
	case "__ds":
		return target{}, tapedeck.Errorf(tapedeck.NotFound, "this server has no subscriptions")
	case "sessions":
		return parseSession(rest)
	}
	return target{id: tapedeck.StreamPrefix + p}, tapedeck.CheckPath(p)
}

func parseSession(path string) (target, error) {
	id, rest, below := strings.Cut(path, "/")
	if err := tapedeck.CheckID("the session's id", id); err != nil {
		return target{}, err
	}
	t := target{id: id, isSession: true}
	if !below {
		return t, nil
	}
	name, ok := strings.CutPrefix(rest, "views/")
	if _, known := views.Find(name); !ok || !known {
		return target{}, tapedeck.Errorf(tapedeck.NotFound, "a session has no %.64q", rest).
			WithHint("its views are views/agui, views/messages, views/state and views/text")
	}
	t.view = name
	return t, nil
}

// lookup returns the catalogue entry of t.
func (h *handler) lookup(ctx context.Context, t target) (tapedeck.Session, error) {
	s, err := h.Store.Head(ctx, t.id)
	if err != nil {
		return s, t.explain(err)
	}
	if t.isSession {
		s.ContentType = jsonType
	}
	if t.view != "" {
		kind, _ := views.Find(t.view) // parseTarget has checked the name
		s.ContentType = kind.ContentType
	}
	return s, nil
}

// touch restarts the time to live of a stream that is read.
func (h *handler) touch(ctx context.Context, s *tapedeck.Session) error {
	if s.TTL == 0 {
		return nil
	}
	return h.Store.Touch(ctx, s.ID)
}

// head answers with the metadata of a stream. It does not count as a read: the time to
// live is not restarted.
func (h *handler) head(w http.ResponseWriter, r *http.Request, t target) error {
	s, err := h.lookup(r.Context(), t)
	if err != nil {
		return err
	}
	setEntry(w.Header(), &s)
	w.WriteHeader(http.StatusOK)
	return nil
}
