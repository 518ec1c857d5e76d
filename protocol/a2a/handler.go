// Package a2a is the protocol adapter for A2A, in its versions 0.3 and 1.0. A context
// is a session, and a task is a run of it, so the tasks of all clients and of all
// other protocols are A2A tasks, too. docs/protocol/a2a.md describes it.
//
// Nothing here keeps a task: each one is folded from the log. So tasks survive a crash,
// and a stream can begin after any event that its client has.
package a2a

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/protocol/a2a/push"
	"github.com/tapedeck/tapedeck/view"
)

// A Policy says what a task is.
type Policy string

// These are the policies.
const (
	// PerTurn makes each run a task of its own, as the protocol recommends.
	PerTurn Policy = "per-turn"

	// PerSession makes the main thread of a session one task, whose id is that of the
	// session. It has the state of the newest run, and accepts messages also after that has
	// ended.
	PerSession Policy = "per-session"
)

// Options configure the handler. Sessions, Verbs and Views are required.
type Options struct {
	Sessions Sessions // the hub
	Verbs    Verbs    // the engine
	Views    Views    // the projections

	Push *push.Options // for push notifications; nil for none

	// MayPush returns an error if the sender of a request may not see and change the push
	// notification configs of a session: they have secrets, and outlive the request. Nil:
	// everybody may.
	MayPush func(ctx context.Context, session string) error

	Policy    Policy          // "" for [PerTurn]
	Stop      context.Context // streams end when it is done: they are answers to POST, which servers wait for; nil for never
	Version   string          // of the server, for the cards; "" for "dev"
	MaxBody   int64           // the largest body in bytes; 0 for 10 MiB
	Heartbeat time.Duration   // a stream that is silent for this long sends a comment; 0 for 15 s
	Logger    *slog.Logger    // for errors that clients must not see; nil for none
}

// Sessions are the sessions and their events.
type Sessions interface {
	Head(ctx context.Context, session string) (tapedeck.Session, error)
	List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error)
	Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error]
}

// Verbs does what messages ask for.
type Verbs interface {
	Agents() []tapedeck.Agent
	Start(ctx context.Context, t api.Task) (api.Started, error)
	Cancel(ctx context.Context, session, invocation string) (api.Cancelled, error)
	Answer(ctx context.Context, a api.Answer) (api.Answered, error)
	Rewind(ctx context.Context, r api.Rewind) (api.Rewound, error)
	Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	Create(ctx context.Context, n api.NewSession) (tapedeck.Session, error)
	Delete(ctx context.Context, session string) error
}

// Views tell which events of a session are active.
type Views interface {
	Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error)
	Timeline(ctx context.Context, session string, at int64) (*view.Timeline, error)
	Effective(ctx context.Context, session string, from, at int64) iter.Seq2[tapedeck.Event, error]
	FindInvocation(ctx context.Context, session, invocation string) (offset int64, found bool, err error)
}

const defaultMaxBody = 10 << 20

// A Handler serves the paths that begin with [Root] and with [ProxyRoot], those of
// [WellKnown], and the requests for which [IsKagent] holds.
type Handler struct {
	Options
	push *push.Dispatcher // nil: there are no push notifications
}

// New returns a handler. With push notifications, register its [Handler.Observer] with the
// store, and call [Handler.Run].
func New(o Options) *Handler {
	if o.Policy == "" {
		o.Policy = PerTurn
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.MaxBody <= 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = sse.Heartbeat
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Handler{Options: o}
	if o.Push != nil {
		h.push = push.New(*o.Push, h)
	}
	return h
}

// Observer returns the observer of the store, which learns what push notifications have to
// tell. Without them it does nothing.
func (h *Handler) Observer() tapedeck.Observer {
	if h.push == nil {
		return tapedeck.Observer{}
	}
	return h.push.Observer()
}

// Run sends push notifications until ctx ends. Without them it returns at once.
func (h *Handler) Run(ctx context.Context) {
	if h.push != nil {
		h.push.Run(ctx)
	}
}

// wellKnown is the name of the folder in which clients look for cards.
const wellKnown = ".well-known"

// Roots of the paths of agents. The path of an agent is Root and its name, or
// ProxyRoot, a namespace and its name.
const (
	Root      = "/a2a"
	ProxyRoot = "/api/a2a"
)

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if slices.Contains(WellKnown, r.URL.Path) {
		h.answer(w, r, h.defaultCard(w, r))
		return
	}
	if h.serveKagent(w, r) {
		return
	}
	name, base, rest, ok := h.locate(r.URL.Path)
	if !ok {
		h.answer(w, r, problem.NoSuchPath(r.URL.Path))
		return
	}
	c := &call{Handler: h, w: w, r: r, base: base}
	var err error
	if c.agent, err = h.agent(name); err != nil {
		c.missing = noAgent.of(err)
	}
	c.serve(rest)
}

// answer writes err, if there is one, in the form of all other endpoints.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		problem.Write(w, r, err, h.Logger)
	}
}

// locate divides a path into the name of an agent, the path of the agent and what
// follows it. Below Root, a name that no agent has is a namespace, unless a request in the
// REST form follows it.
func (h *Handler) locate(path string) (name, base, rest string, ok bool) {
	if after, proxied := strings.CutPrefix(path, ProxyRoot+"/"); proxied {
		name, base, rest = h.inNamespace(ProxyRoot, after)
		return name, base, rest, base != ""
	}
	after, ok := strings.CutPrefix(path, Root+"/")
	if !ok {
		return "", "", "", false
	}
	name, rest, _ = strings.Cut(after, "/")
	if !h.hasAgent(name) && name != wellKnown {
		inside, base, below := h.inNamespace(Root, after)
		what, _, _ := strings.Cut(rest, "/")
		_, isREST := restRoutes[what]
		if h.hasAgent(inside) || base != "" && what != wellKnown && !isREST {
			return inside, base, below, true
		}
	}
	return name, Root + "/" + name, rest, name != ""
}

// inNamespace divides what follows a root into a namespace, the name of an agent and the
// rest. An agent in the namespace ns may be configured as ns.name. base is "" if the
// namespace or the name is missing.
func (h *Handler) inNamespace(root, after string) (name, base, rest string) {
	ns, after, _ := strings.Cut(after, "/")
	name, rest, _ = strings.Cut(after, "/")
	if ns == "" || name == "" {
		return "", "", ""
	}
	base = root + "/" + ns + "/" + name
	if full := ns + "." + name; h.hasAgent(full) {
		return full, base, rest
	}
	return name, base, rest
}

func (h *Handler) hasAgent(name string) bool {
	return slices.ContainsFunc(h.Verbs.Agents(), func(a tapedeck.Agent) bool { return a.Name == name })
}

// agent returns the agent with a name.
func (h *Handler) agent(name string) (tapedeck.Agent, error) {
	agents := h.Verbs.Agents()
	if i := slices.IndexFunc(agents, func(a tapedeck.Agent) bool { return a.Name == name }); i >= 0 {
		return agents[i], nil
	}
	if name == wellKnown { // clients look beside a URL that does not end with a slash
		return tapedeck.Agent{}, tapedeck.Errorf(tapedeck.NotFound, "the card of an agent is below the URL of the agent").
			WithHint("give the client the URL %s/{agent}/ with the slash at its end", Root)
	}
	return tapedeck.Agent{}, tapedeck.Errorf(tapedeck.NotFound, "there is no agent %.128q", name).
		WithHint("GET /api/v1/agents lists the agents")
}

// A call is one request to an agent.
type call struct {
	*Handler
	w       http.ResponseWriter
	r       *http.Request
	agent   tapedeck.Agent // without a name, the tasks of all agents are visible
	missing error          // there is no agent at this path; nil if there is
	base    string         // the path of the agent
	version version
	gen     int64 // the incarnation of the session of a stream; 0 until it is known
}

// sees reports whether the tasks of an agent are visible. A run of an external program
// names no agent.
func (c *call) sees(agent string) bool {
	return agent == "" || c.agent.Name == "" || agent == c.agent.Name
}

// serve answers a request. rest is what follows the path of the agent.
func (c *call) serve(rest string) {
	switch {
	case c.missing != nil && (slices.Contains(WellKnown, "/"+rest) || rest == "" && c.r.Method != http.MethodPost):
		c.answer(c.w, c.r, c.missing)
	case slices.Contains(WellKnown, "/"+rest):
		c.answer(c.w, c.r, c.card())
	case rest == "" && c.r.Method == http.MethodPost:
		c.serveRPC()
	case rest == "":
		c.answer(c.w, c.r, problem.MethodNotAllowed(c.w, c.r, http.MethodPost))
	default:
		c.serveREST(rest)
	}
}
