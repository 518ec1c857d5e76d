// Package durable is the door for Durable Streams, an open protocol of
// append-only streams over HTTP, under /v1/stream:
//
//	/v1/stream                          the streams there are (ours)
//	/v1/stream/{path}                   a stream of bytes or of JSON messages
//	/v1/stream/sessions/{id}            a session; its messages are the envelopes of its events
//	/v1/stream/sessions/{id}/views/{v}  a view of it that can only be read: agui, messages, state, text
//
// The protocol's subscriptions (webhooks and leases under __ds) are not here.
// Nor is access control: who may call is decided before the door.
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
)

// Root is the path under which the door expects to be mounted.
const Root = "/v1/stream"

// Options say what the door opens on. Store is required.
type Options struct {
	Store store // the hub: streams are kept there, and sessions read from there
	Verbs verbs // the engine, which writes sessions; nil: they can only be read

	Views standing // the projections: what is in force in a session

	// Fork makes session id of the events of parent below offset at, and
	// appends session.forked as its first own event. Nil: sessions cannot be
	// forked here.
	Fork func(ctx context.Context, id, parent string, at int64) (tapedeck.Session, error)

	LongPoll  time.Duration // how long a long-poll waits; 0 for 25 s
	SSEClose  time.Duration // how long a connection of Server-Sent Events lasts; 0 for 60 s
	Heartbeat time.Duration // how long one is silent before a comment is sent; 0 for 15 s
	PageBytes int           // most bytes of an answer, but at least one message; 0 for 1 MiB
	MaxBody   int64         // most bytes of a request; 0 for 10 MiB

	Now    func() time.Time // nil for time.Now
	Logger *slog.Logger     // for what clients are not told; nil for none
}

type store interface {
	tapedeck.Log
	tapedeck.Catalogue
	Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error]
}

type verbs interface {
	Create(ctx context.Context, s api.NewSession) (tapedeck.Session, error)
	Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	Close(ctx context.Context, session, actor string) error
	Delete(ctx context.Context, session string) error
}

type handler struct {
	Options
	fans  fans
	folds folds
}

// New returns the door. It expects to see the whole path, [Root] included.
func New(o Options) http.Handler {
	h := &handler{Options: o}
	h.fans.of = map[fanKey]*fan{}
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
		set(w.Header(), "Allow", allMethods)
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
			return notAllowed(w, "GET, OPTIONS")
		}
		return h.list(w, r)
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
		return notAllowed(w, "GET, HEAD, OPTIONS")
	case t.isSession && h.Verbs != nil:
		return h.writeSession(w, r, t)
	case t.isSession:
		return notAllowed(w, "GET, HEAD, OPTIONS")
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
		return noContent(w, t.inWords(h.Store.Delete(r.Context(), t.id)))
	}
	return notAllowed(w, allMethods)
}

// A target is what a path names.
type target struct {
	id        string // in the store
	isSession bool   // or a view of one
	view      string // "" for the log itself
}

// path returns the path of a stream.
func (t target) path() string { return strings.TrimPrefix(t.id, tapedeck.StreamPrefix) }

// parseTarget reads the path of a stream.
func parseTarget(path string) (target, error) {
	path, ok := strings.CutPrefix(path, Root+"/")
	if !ok {
		return target{}, tapedeck.Errorf(tapedeck.NotFound, "there is nothing here").WithHint("streams are under %s/", Root)
	}
	first, rest, _ := strings.Cut(path, "/")
	switch first {
	case "__ds":
		return target{}, tapedeck.Errorf(tapedeck.NotFound, "this server has no subscriptions")
	case "sessions":
		return parseSession(rest)
	}
	return target{id: tapedeck.StreamPrefix + path}, tapedeck.CheckPath(path)
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
	view, ok := strings.CutPrefix(rest, "views/")
	if _, known := views[view]; !ok || !known {
		return target{}, tapedeck.Errorf(tapedeck.NotFound, "a session has no %.64q", rest).
			WithHint("its views are views/agui, views/messages, views/state and views/text")
	}
	t.view = view
	return t, nil
}

// lookup returns the entry of what t names.
func (h *handler) lookup(ctx context.Context, t target) (tapedeck.Session, error) {
	s, err := h.Store.Head(ctx, t.id)
	if err != nil {
		return s, t.inWords(err)
	}
	if t.isSession {
		s.ContentType = jsonType
	}
	if t.view != "" {
		s.ContentType = views[t.view].contentType
	}
	return s, nil
}

// touch restarts the time to live of what is being read.
func (h *handler) touch(ctx context.Context, s *tapedeck.Session) error {
	if s.TTL == 0 {
		return nil
	}
	return h.Store.Touch(ctx, s.ID)
}

// head answers with what is known about a stream. It does not count as a read:
// the time to live goes on.
func (h *handler) head(w http.ResponseWriter, r *http.Request, t target) error {
	s, err := h.lookup(r.Context(), t)
	if err != nil {
		return err
	}
	setEntry(w.Header(), &s)
	w.WriteHeader(http.StatusOK)
	return nil
}
