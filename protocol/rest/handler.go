// Package rest is the protocol adapter for Tapedeck's own HTTP API under /api/v1:
// sessions, their events as pages and as Server-Sent Events, tasks, and views.
// docs/http.md describes it.
//
// Access control is not here: it happens before the request reaches the handler.
package rest

import (
	"log/slog"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// Root is the path under which the handler expects to be mounted.
const Root = httpapi.Root

type handler struct {
	Options
	*httpapi.Mux
}

// New returns the handler. It expects the whole path, [Root] included.
func New(o Options) http.Handler {
	o.MaxBody = orDefault(o.MaxBody, 10<<20)
	o.MaxAppend = orDefault(o.MaxAppend, 64<<20)
	o.MaxImport = orDefault(o.MaxImport, 4<<30)
	o.MaxEvents = orDefault(o.MaxEvents, 100_000)
	o.Heartbeat = orDefault(o.Heartbeat, sse.Heartbeat)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &handler{Options: o, Mux: httpapi.NewMux(Root, o.Logger)}
	for _, r := range Routes() {
		h.Handle(r.Method, r.Path, func(w http.ResponseWriter, req *http.Request) error {
			err := r.serve(h, w, req)
			setRefusal(w.Header(), err)
			return err
		})
	}
	return h
}

func orDefault[T ~int | ~int64](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// isTask reports whether a request asks for the form of the task protocol.
func isTask(r *http.Request) bool {
	return r.URL.RawQuery != "" && r.URL.Query().Get("format") == "task"
}

// serveTask answers a request in the form of the task protocol.
func (h *handler) serveTask(w http.ResponseWriter, r *http.Request) error {
	if h.Task == nil {
		return tapedeck.Errorf(tapedeck.Unsupported, "this server does not offer the SSE task protocol")
	}
	h.Task.ServeHTTP(w, r)
	return nil
}

// socket serves a WebSocket.
func (h *handler) socket(w http.ResponseWriter, r *http.Request) error {
	if h.Socket == nil {
		return tapedeck.Errorf(tapedeck.Unsupported, "this server does not offer WebSockets")
	}
	h.Socket.ServeHTTP(w, r)
	return nil
}
