package cluster

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// retryEvery is the time between two attempts to reach an owner that does not answer.
const retryEvery = 100 * time.Millisecond

// retryAfter is what a client that is refused is asked to wait.
const retryAfter = 2 * time.Second

// ServeHTTP implements [http.Handler].
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if n.health(w, r) {
		return
	}
	to, err := n.verify(r)
	if err != nil {
		problem.Write(w, r, err, n.options.Logger)
		return
	}
	if s := n.enter(r, to); s != nil { // first, because the stack of each follower has these frames
		defer n.leave()
		s.Handler.ServeHTTP(w, r)
		return
	}
	n.forwardOrWait(w, r, to)
}

// enter returns this server if it answers r, nil otherwise. After it call leave. to is the
// owner to which another server has forwarded r, "" if a client has sent it.
func (n *Node) enter(r *http.Request, to string) *Local {
	n.mu.Lock()
	s := n.state
	if s.local == nil || s.yields && !isRead(r) || to != "" && to != s.local.Name {
		n.mu.Unlock()
		return nil
	}
	n.active++
	n.mu.Unlock()
	if s.local.Owns(r.Context()) {
		return s.local
	}
	n.leave()
	return nil
}

func (n *Node) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.active--; n.active == 0 && n.idle != nil {
		close(n.idle)
		n.idle = nil
	}
}

// isRead reports whether r changes nothing.
func isRead(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
}

// forwardOrWait forwards a request, or waits until an owner is known.
func (n *Node) forwardOrWait(w http.ResponseWriter, r *http.Request, to string) {
	p := &patience{node: n}
	for sent := 0; ; {
		s := n.current()
		switch {
		case to != "" && (s.role == Forwards || s.local != nil && s.local.Name != to):
			misdirected(w) // only one hop: two servers may each take the other one for the owner
			return
		case s.role == Forwards && n.serveProcess(w, r):
			return
		case s.role == Forwards:
			a := n.forward(w, r, s.owner)
			if a.sent && !errors.Is(a.err, errNotOwner) {
				sent++
			}
			if a.err == nil {
				n.options.Meter.Forwarded(Answered)
				return
			}
			if !a.repeatable(r) || sent >= maxSent {
				n.options.Meter.Forwarded(Uncertain)
				problem.Write(w, r, a.failure(r), n.options.Logger)
				return
			}
		}
		if err := p.wait(r.Context(), s); err != nil {
			if to != "" {
				misdirected(w)
				return
			}
			n.options.Meter.Forwarded(Refused)
			problem.Write(w, r, err, n.options.Logger)
			return
		}
		if l := n.enter(r, to); l != nil {
			defer n.leave()
			l.Handler.ServeHTTP(w, r)
			return
		}
	}
}

// maxSent is how often a request that changes nothing is sent to owners that break it off.
const maxSent = 3

// serveProcess answers a request that is about this process, not about the sessions.
func (n *Node) serveProcess(w http.ResponseWriter, r *http.Request) bool {
	if n.options.Admin == nil || r.URL.Path != "/metrics" && !strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
		return false
	}
	n.options.Admin.ServeHTTP(w, r)
	return true
}

// A patience limits how long one request waits.
type patience struct {
	node *Node
	end  time.Time // zero before the request waits
}

// wait waits until the state s is replaced, or for a moment if s has an owner. The error is
// that of a request that cannot wait any more.
func (p *patience) wait(ctx context.Context, s *state) error {
	n := p.node
	select {
	case n.waiting <- struct{}{}:
	default:
		return unavailable("too many requests wait for the server that owns the database")
	}
	n.options.Meter.Waits(1)
	defer func() { <-n.waiting; n.options.Meter.Waits(-1) }()
	if p.end.IsZero() {
		p.end = time.Now().Add(n.options.Wait)
	}
	left := time.Until(p.end)
	if left <= 0 {
		return unavailable("the server that owns the database cannot be reached")
	}
	if s.role == Forwards {
		left = min(left, retryEvery)
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-s.changed:
	case <-timer.C:
		if s.role != Forwards {
			return unavailable("no server owns the database now")
		}
	case <-ctx.Done():
		return ctx.Err()
	case <-n.closed.Done():
		return unavailable("this server stops")
	}
	return nil
}

func unavailable(message string) error {
	err := tapedeck.Errorf(tapedeck.Unavailable, "%s", message).WithHint("nothing was done; try again")
	err.After = retryAfter
	return err
}
