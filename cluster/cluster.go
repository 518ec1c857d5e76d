// Package cluster makes several servers of one database answer as one. The server that owns
// the database answers requests itself, the others forward theirs to it. While nobody owns
// the database, requests wait for a moment. The package knows no stores: its caller says
// who the owner is.
package cluster

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"
)

// Defaults of [Options].
const (
	DefaultWait    = 15 * time.Second
	DefaultWaiting = 1024
)

// Options of a [Node]. The zero value is ready for use.
type Options struct {
	// Wait is how long a request waits while no server owns the database, or while the
	// owner cannot be reached; 0 for [DefaultWait].
	Wait time.Duration

	// Waiting is how many requests may wait at once. More are refused. 0 for
	// [DefaultWaiting].
	Waiting int

	Instance string // the id of this process, for GET /healthz
	Meter    Meter  // measures; nil for none
	Logger   *slog.Logger

	// Admin answers /metrics and /debug/pprof/ while another server owns the database: these
	// are about a process. Nil: nothing is there.
	Admin http.Handler
}

// A Meter measures what a node forwards. Its methods may be called by several goroutines.
type Meter interface {
	Forwarded(outcome Outcome) // a request was forwarded, or could not be
	Waits(delta int)           // so many more requests wait
}

// An Outcome is what became of a request that this server does not answer itself.
type Outcome string

// Outcomes.
const (
	Answered  Outcome = "answered"  // the owner has answered
	Uncertain Outcome = "uncertain" // the connection broke, and the owner may have done it
	Refused   Outcome = "refused"   // no owner could be reached in time, or too many requests waited
)

// A Role is what a node does with requests. Its values are in a header of health checks.
type Role string

// Roles.
const (
	Owns     Role = "owner"    // it answers them
	Forwards Role = "forwards" // it forwards them to the owner
	Waits    Role = "waits"    // they wait for the next owner
	Stops    Role = "stops"    // as one of the others, but the process ends soon
)

// An Owner is another server that owns the database.
type Owner struct {
	Name    string // no two owners have the same one
	Address string // its URL, without a path
}

// A Local is this server, which owns the database.
type Local struct {
	Handler http.Handler
	Name    string // as in [Owner]

	// Owns is asked before each request. It is false if another server has taken over, which
	// the caller also says with [Node.NoOwner] or [Node.Follow] soon.
	Owns func(context.Context) bool
}

// A Node is one of the servers. It is an [http.Handler]. At first nobody owns the database.
// Its methods may be called by several goroutines.
type Node struct {
	options Options
	proxy   *httputil.ReverseProxy
	probe   http.RoundTripper
	waiting chan struct{} // has a value for each request that waits

	closed context.Context // of the node: what it forwards ends
	close  context.CancelFunc
	cut    context.Context // streams end
	cutAll context.CancelFunc

	mu       sync.Mutex
	state    *state
	key      []byte
	active   int           // requests that this server answers as the owner
	idle     chan struct{} // closed when active becomes 0, nil if nobody waits for that
	stopping bool
	unready  time.Time // since when the owner cannot be reached; zero while it can
}

// A state says who owns the database. It does not change; another one follows it.
type state struct {
	role    Role
	local   *Local // not nil if this server owns the database
	yields  bool   // only reads are answered here
	owner   *remote
	changed chan struct{} // closed when another state follows
}

// New returns a node.
func New(o Options) *Node {
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	if o.Waiting <= 0 {
		o.Waiting = DefaultWaiting
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Meter == nil {
		o.Meter = noMeter{}
	}
	n := &Node{options: o, waiting: make(chan struct{}, o.Waiting), state: &state{role: Waits, changed: make(chan struct{})}, unready: time.Now()}
	n.closed, n.close = context.WithCancel(context.Background())
	n.cut, n.cutAll = context.WithCancel(n.closed)
	n.proxy, n.probe = n.newProxy()
	return n
}

type noMeter struct{}

func (noMeter) Forwarded(Outcome) {}
func (noMeter) Waits(int)         {}

// UseKey says with which key the servers of the database prove to each other that they are.
// Before that, nothing is forwarded.
func (n *Node) UseKey(key []byte) {
	n.mu.Lock()
	n.key = key
	n.mu.Unlock()
}

// Own says that this server owns the database.
func (n *Node) Own(l Local) { n.set(&state{role: Owns, local: &l}) }

// Yield says that this server stops to own the database soon: only reads are answered here,
// everything else waits for the next owner.
func (n *Node) Yield() {
	if s := n.current(); s.local != nil {
		n.set(&state{role: Owns, local: s.local, yields: true})
	}
}

// NoOwner says that no server owns the database now.
func (n *Node) NoOwner() {
	if n.current().role != Waits {
		n.set(&state{role: Waits})
	}
}

// Follow says that another server owns the database. An address that cannot be used is an
// error, and the node stays as it is.
func (n *Node) Follow(o Owner) error {
	s := n.current()
	same := s.owner != nil && s.owner.Owner == o
	if same && s.role == Forwards {
		return nil
	}
	r := s.owner
	if !same {
		var err error
		if r, err = newRemote(n.closed, o); err != nil {
			return err
		}
	}
	n.set(&state{role: Forwards, owner: r})
	return nil
}

func (n *Node) current() *state {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state
}

// set replaces the state. What was forwarded to an owner ends when another server is known
// to own the database: the old one may be paused and never answer. While nobody owns it, the
// old one may only be slow.
func (n *Node) set(s *state) {
	s.changed = make(chan struct{})
	n.mu.Lock()
	old := n.state
	if s.role == Waits && old.owner != nil {
		s.owner = old.owner // to end it later
	}
	n.state = s
	n.unready = time.Time{}
	if s.role == Waits {
		n.unready = time.Now()
	}
	n.mu.Unlock()
	close(old.changed)
	if old.owner != nil && s.owner != old.owner {
		old.owner.replaced()
	}
}

// Role returns what the node does with requests now.
func (n *Node) Role() Role {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopping {
		return Stops
	}
	return n.state.role
}

// Stop says that the process ends soon: GET /readyz says so to proxies. Requests are answered
// as before.
func (n *Node) Stop() {
	n.mu.Lock()
	n.stopping = true
	n.mu.Unlock()
}

// Idle waits until this server answers no request as the owner. Call [Node.NoOwner] first.
func (n *Node) Idle(ctx context.Context) error {
	n.mu.Lock()
	if n.active == 0 {
		n.mu.Unlock()
		return nil
	}
	if n.idle == nil {
		n.idle = make(chan struct{})
	}
	idle := n.idle
	n.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CutStreams ends the event streams and WebSockets that this server forwards.
func (n *Node) CutStreams() { n.cutAll() }

// Close ends everything that this server forwards, and what waits.
func (n *Node) Close() { n.close() }
