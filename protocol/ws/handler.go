// Package ws is the protocol adapter for WebSockets. It speaks two protocols, each at paths of
// its own: the native tapedeck.v1, which reads and appends events of several sessions on one
// socket, and tapedeck.replay.v1, in which the elements of a workflow have histories of their
// own. docs/protocol/websocket.md describes them.
//
// The origin of a page is not checked here: package server does so for all protocols.
package ws

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/view"
)

// Root is the path under which the handler expects to be mounted.
const Root = httpapi.Root

// The subprotocols.
const (
	Native = "tapedeck.v1"
	Replay = "tapedeck.replay.v1"
)

// Options configure the handler. Sessions, Verbs and Views are required.
type Options struct {
	Sessions Sessions
	Verbs    Verbs
	Views    Views

	Heartbeat time.Duration // a socket that is silent for this long sends a heartbeat; 0 for 15 s
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

// Verbs write to sessions.
type Verbs interface {
	Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	Clear(ctx context.Context, c api.Clear) (api.Rewound, error)
	Answer(ctx context.Context, a api.Answer) (api.Answered, error)
}

// Views show the conversation of a session.
type Views interface {
	Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error)
	Workflow(ctx context.Context, session, thread string, at int64) (*view.Workflow, error)
}

type handler struct {
	Options
	*httpapi.Mux
}

// New returns the handler. It expects the whole path, [Root] included.
func New(o Options) http.Handler {
	if o.Heartbeat <= 0 {
		o.Heartbeat = sse.Heartbeat
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &handler{o, httpapi.NewMux(Root, o.Logger)}
	h.Handle(http.MethodGet, "/ws", h.native)
	h.Handle(http.MethodGet, "/sessions/{id}/ws", h.native)
	h.Handle(http.MethodGet, "/sessions/{id}/ws/replay", h.replay)
	return h
}

// native serves a socket of tapedeck.v1.
func (h *handler) native(w http.ResponseWriter, r *http.Request) error {
	s, _, err := h.accept(w, r, Native, httpapi.ParseQuery(r).Err)
	if s != nil {
		s.serveNative()
	}
	return err
}

// replay serves a socket of tapedeck.replay.v1.
func (h *handler) replay(w http.ResponseWriter, r *http.Request) error {
	q := httpapi.ParseQuery(r, "delta", "content", "user", "now")
	o := replayOptions{
		delta:   q.OneOf("delta", "true", "true", "false") == "true",
		content: q.OneOf("content", "true", "true", "false") == "true",
		user:    q.Flag("user"),
		now:     q.Flag("now"),
	}
	if q.Err == nil && !o.delta && !o.content {
		q.Err = tapedeck.Errorf(tapedeck.Invalid, "without delta and without content a text would have no words").WithHint("leave out one of the two parameters")
	}
	s, now, err := h.accept(w, r, Replay, q.Err)
	if s != nil {
		s.serveReplay(o, now.Head) // as of the handshake: what the client does afterwards is live
	}
	return err
}

// accept accepts a socket, and returns the session of its path as it is. The socket is nil if
// there is an error, wrong among others, or if the request was answered.
func (h *handler) accept(w http.ResponseWriter, r *http.Request, protocol string, wrong error) (*socket, tapedeck.Session, error) {
	var now tapedeck.Session
	if err := checkUpgrade(w, r); err != nil {
		return nil, now, err
	}
	if err := checkProtocol(r, protocol); err != nil {
		return nil, now, err
	}
	session := r.PathValue("id")
	if session != "" {
		var err error
		if _, err = httpapi.SessionID(r); err == nil {
			now, err = h.Sessions.Head(r.Context(), session)
		}
		if err != nil {
			return nil, now, err
		}
	}
	if wrong != nil {
		return nil, now, wrong
	}
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{protocol}, InsecureSkipVerify: true}) // the origin was checked before
	if err != nil {
		h.Logger.Debug("a WebSocket was not accepted", "error", err)
		return nil, now, nil // it has been answered
	}
	return newSocket(h, c, r, session), now, nil
}

// checkUpgrade returns an error unless the request opens a WebSocket.
func checkUpgrade(w http.ResponseWriter, r *http.Request) error {
	switch {
	case !hasToken(r.Header["Connection"], "upgrade"), !hasToken(r.Header["Upgrade"], "websocket"):
		w.Header().Set("Upgrade", "websocket")
		return tapedeck.Errorf(tapedeck.Invalid, "this endpoint is for WebSockets").
			WithHint("open it with a WebSocket client, or read the session at /api/v1/sessions/{id}/stream")
	case r.Header.Get("Sec-Websocket-Version") != "13":
		w.Header().Set("Sec-WebSocket-Version", "13")
		return tapedeck.Errorf(tapedeck.Unsupported, "this server speaks version 13 of WebSocket")
	case !r.ProtoAtLeast(1, 1), len(r.Header["Sec-Websocket-Key"]) != 1, len(r.Header.Get("Sec-Websocket-Key")) != 24:
		return tapedeck.Errorf(tapedeck.Invalid, "the handshake of the WebSocket is malformed").WithHint("it needs HTTP/1.1 and one Sec-WebSocket-Key")
	}
	return nil
}

func hasToken(values []string, token string) bool {
	return slices.ContainsFunc(tokens(values), func(t string) bool { return strings.EqualFold(t, token) })
}

func tokens(values []string) (list []string) {
	for _, v := range values {
		for t := range strings.SplitSeq(v, ",") {
			if t = strings.TrimSpace(t); t != "" {
				list = append(list, t)
			}
		}
	}
	return list
}

// checkProtocol returns an error if the client offers subprotocols without the one of the
// path. A client that offers none, such as a page with only a URL, speaks that of the path.
func checkProtocol(r *http.Request, protocol string) error {
	offered := tokens(r.Header["Sec-Websocket-Protocol"])
	if len(offered) == 0 || slices.Contains(offered, protocol) {
		return nil
	}
	err := tapedeck.Errorf(tapedeck.Unsupported, "this path speaks %s, and none of the subprotocols %.200q", protocol, offered)
	switch {
	case protocol == Native && slices.Contains(offered, Replay):
		return err.WithHint("%s is spoken at /api/v1/sessions/{id}/ws/replay", Replay)
	case protocol == Replay && slices.Contains(offered, Native):
		return err.WithHint("%s is spoken at /api/v1/sessions/{id}/ws", Native)
	}
	return err.WithHint("offer %s, or no subprotocol", protocol)
}
