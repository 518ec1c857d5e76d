package cluster

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/tapedeck/tapedeck/internal/problem"
)

// The headers of the health checks. Package server has the first one, too.
const (
	instanceHeader = "Tapedeck-Instance"
	roleHeader     = "Tapedeck-Role"
)

// readyTimeout limits how long the owner may take to say how it is.
const readyTimeout = 2 * time.Second

// health answers a health check. It reports false for another request.
func (n *Node) health(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch r.URL.Path {
	case "/healthz":
		w.Header().Set(instanceHeader, n.options.Instance)
		if s := n.current(); s.local != nil {
			w.Header().Set(roleHeader, string(n.Role()))
			s.local.Handler.ServeHTTP(w, r)
			break
		}
		n.say(w, n.Role(), "ok\n")
	case "/readyz":
		n.readyz(w, r)
	default:
		return false
	}
	return true
}

func (n *Node) say(w http.ResponseWriter, role Role, text string) {
	h := w.Header()
	h.Set(roleHeader, string(role))
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text)
}

// readyz says whether a request that comes now is answered: by this server, by the owner, or
// after it has waited for the next owner. So a take-over does not make a proxy take all
// servers out.
func (n *Node) readyz(w http.ResponseWriter, r *http.Request) {
	role := n.Role()
	w.Header().Set(roleHeader, string(role))
	s := n.current()
	switch {
	case role == Stops:
		problem.Write(w, r, unavailable("this server stops"), n.options.Logger)
	case s.local != nil:
		s.local.Handler.ServeHTTP(w, r)
	case s.role == Forwards && n.ownerIsReady(r.Context(), s.owner, w):
	case n.patient():
		n.say(w, role, "ready, requests wait for the next owner of the database\n")
	default:
		problem.Write(w, r, unavailable("no server that owns the database answers"), n.options.Logger)
	}
}

// ownerIsReady passes on what an owner says of itself. It reports false if it says nothing.
func (n *Node) ownerIsReady(ctx context.Context, o *remote, w http.ResponseWriter) bool {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, o.url.String()+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	r.Host = "localhost" // which each server accepts
	resp, err := n.probe.RoundTrip(r)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	if Role(resp.Header.Get(roleHeader)) != Owns {
		return false
	}
	n.mu.Lock()
	n.unready = time.Time{}
	n.mu.Unlock()
	if resp.StatusCode == http.StatusOK {
		n.say(w, Forwards, "ready, another server owns the database\n")
		return true
	}
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, io.LimitReader(resp.Body, 64<<10))
	return true
}

// patient reports whether the owner is away for no longer than requests wait for it.
func (n *Node) patient() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unready.IsZero() {
		n.unready = time.Now()
	}
	return time.Since(n.unready) < n.options.Wait
}
