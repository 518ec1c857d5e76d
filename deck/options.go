package deck

import (
	"cmp"
	"log/slog"
	"net/netip"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/protocol/a2a"
	"github.com/tapedeck/tapedeck/retention"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// Options of a deck. The zero value is ready for use: a server on the loopback
// without agents, with the limits that docs/http.md lists.
type Options struct {
	// Agents are the agents that tasks can go to. The first is the default.
	Agents []Agent

	// InMemory keeps everything in memory; nothing is written to a disk, and the
	// folder given to [Open] is not used.
	InMemory bool

	// Postgres keeps the sessions in a PostgreSQL database instead of the folder given to
	// [Open], which then has only keys and the folders of agents. Logger and OnLost of it
	// are not used. Nil: the sessions are in the folder.
	Postgres *postgres.Options

	// MorePostgres are the addresses of more databases. The sessions are spread over these
	// and the database of Postgres. The other options of Postgres apply to all of them. Do
	// not change the number or the order of the databases while they have sessions.
	MorePostgres []string

	MaxBody        int64 // largest body of an append over the HTTP API, Durable Streams and AG-UI, in bytes; 0 for 64 MiB
	MaxEvents      int   // the largest number of events in one append; 0 for 100,000
	MaxConnections int   // most connections that [Server.Serve] keeps at once; 0 for no limit
	BodyBudget     int64 // memory for the bodies of all requests together, in bytes; 0 for the default of docs/http.md

	LongPoll    time.Duration // how long a long poll waits; 0 for 25 s
	Lease       time.Duration // how long a run written from outside may be silent before it ends; 0 for 10 min
	RunTimeout  time.Duration // how long a run may take; 0 for no limit
	IdleTimeout time.Duration // how long the agent of a run may be silent, questions to people aside; 0 for 1 h, negative for no limit
	KillAfter   time.Duration // how long an agent that is stopped may take to end; then its run ends without it. 0 for 12 s

	// LeaveRuns leaves open the runs that an earlier process left and that could continue,
	// and what waits in queues: the next deck continues them. It is for a process that
	// only reads and soon ends.
	LeaveRuns bool

	// A2ATasks says what a task of A2A is; "" for a2a.PerTurn.
	A2ATasks a2a.Policy

	// AllowOrigins are the origins, such as "https://app.example", whose pages may
	// call the server from a browser, besides its own. "*" stands for all. Open
	// refuses a value that no browser sends.
	AllowOrigins []string

	// AnyHost accepts every Host header. Without it the handler answers only
	// requests for a name of the loopback, so that a web page cannot reach it
	// through a DNS name of its own.
	AnyHost bool

	// AllowHosts are the names by which clients reach the handler besides those of the
	// loopback, such as "deck.example".
	AllowHosts []string

	// Access decides who sends a request over the handler. Then each sender reaches only
	// what docs/security.md says. Nil: everybody may do everything. The methods of the
	// deck itself always may.
	Access *Access

	// NoSubscriptions leaves out the subscriptions of Durable Streams and the push
	// notifications of A2A. What happens meanwhile is delivered by the next deck on the
	// folder that has them.
	NoSubscriptions bool

	// PublicURL is where receivers of webhooks reach the server, such as
	// https://deck.example. "" stands for the address that was used to create the
	// subscription.
	PublicURL string

	// AllowWebhooks are addresses to which webhooks, of subscriptions and of A2A, may go
	// although they are not public, such as 127.0.0.0/8 or 10.1.2.3/32. There a webhook may also use plain HTTP. Without
	// any, webhooks go only to public addresses, with HTTPS.
	AllowWebhooks []netip.Prefix

	// RotateWebhookKey makes Open create a new key, which signs webhooks from now on.
	// Receivers can check signatures of the old key for another day.
	RotateWebhookKey bool

	// MCPWrite lets MCP clients run agents, cancel runs, rewind and fork. Without it
	// they can only read.
	MCPWrite bool

	// MCPOwnSession lets an agent of kind llm that is an MCP client of this deck do so
	// in the session in which it runs itself.
	MCPOwnSession bool

	// NoScreen leaves out the pages for people.
	NoScreen bool

	// NoMetrics measures nothing: the handler has neither /metrics nor /api/v1/stats.
	NoMetrics bool

	// LogRequests logs a line for each request: its id, its sender, its session, the status of the
	// answer and the time. A Logger for debug messages gets these lines in any case. A request that
	// is refused for its token is always logged.
	LogRequests bool

	// NoAudit leaves out the audit log, which is in the folder given to [Open] otherwise, see
	// docs/security.md.
	NoAudit bool

	// AuditActor is the actor in the audit log of requests without a token, and of the methods of
	// the deck, such as "local:ada" for a command line that one person uses. "" if nobody
	// knows.
	AuditActor string

	// Traces gets the spans of runs, and of requests that come with a trace, see
	// docs/observability.md. The caller shuts it down after the deck was closed. Nil: there
	// are none.
	Traces trace.TracerProvider

	// TraceRequests also traces requests that come without a trace.
	TraceRequests bool

	Version string // of the program; protocols and the front page name it. "" for "dev"

	// Budgets are what the runs in all sessions of an owner may use in a day and in a month
	// before an admin is asked. The zero value is no limit.
	Budgets OwnerBudgets

	// Retention says which sessions are deleted because they are old, or too many, see
	// docs/storage.md. The zero value deletes none.
	Retention Retention

	// Logger gets what clients must not see: why an agent failed, the stack of a panic,
	// why the disk refused a write. Nil: the [slog.Default] at the time of Open.
	Logger *slog.Logger

	// EncryptionKey is the master key, of 32 bytes: what new sessions have is encrypted, each
	// with a key of its own in the data folder, see docs/storage.md. A folder that was opened
	// with one needs it from then on. Nil: nothing is encrypted.
	EncryptionKey []byte

	// Lock is the lock of the data folder, if the caller has taken it; the deck
	// releases it at the end. Nil: Open takes it.
	Lock *sqlite.Lock

	member *Member // of which the deck is a part; nil for none

	// Discard moves the working folder of a deleted session away and returns the
	// function that removes it, see [engine.Options].
	Discard func(session string) (remove func() error, err error)
}

// DefaultIdleTimeout is how long an agent may be silent if no time-out is set. It
// limits how long a model that hangs stays "running". It is longer than any command
// that an agent of kind llm may run.
const DefaultIdleTimeout = time.Hour

// An Agent is an agent that tasks can go to. Name and Runner are required.
type Agent struct {
	Name        string
	Kind        string // of its runner; "" for "go"
	Description string // for people; may be empty
	Runner      tapedeck.Runner

	RunTimeout  time.Duration   // instead of that of [Options]; 0 for that, negative for no limit
	IdleTimeout time.Duration   // instead of that of [Options]; 0 for that, negative for no limit
	KillAfter   time.Duration   // instead of that of [Options]; 0 for that
	Budget      tapedeck.Amount // what each run may use before it asks people; the zero value for no limit
	StopAtLimit bool            // a run that has used up a budget is stopped with an error, and nobody is asked
	Starts      []string        // names of the agents that it may start; of a workflow, nil means all others

	Models  []string // the models that a task may choose, the default first; none if there is no choice
	Folders []string // the folders that a session may choose; none if there is no choice

	// Folder returns the folder in which the agent works in a session, and creates it
	// if it does not exist. chosen is the one of Folders that the session has chosen, ""
	// for none. Nil: the agent has no folder.
	Folder func(session, chosen string) (string, error)

	// Ready returns why the agent cannot run here, besides what its runner says; nil if it
	// can. It is quick. It may be nil.
	Ready func() error
}

// Available returns why the agent cannot run here, nil if it can.
func (a *Agent) Available() error {
	e := a.engine()
	return e.Available()
}

// A Retention says which sessions are deleted, see [Options].
type Retention = retention.Policy

// A RetentionRule is the part of a [Retention] that can differ between owners.
type RetentionRule = retention.Rule

// OwnerBudgets are the budgets of the owners of sessions, see [Options].
type OwnerBudgets = engine.OwnerBudgets

// An OwnerBudget is the budget of one owner.
type OwnerBudget = engine.OwnerBudget

func engineAgents(list []Agent) []engine.Agent {
	out := make([]engine.Agent, len(list))
	for i := range list {
		out[i] = list[i].engine()
	}
	return out
}

func (a *Agent) engine() engine.Agent {
	return engine.Agent{
		Agent:  tapedeck.Agent{Name: a.Name, Kind: cmp.Or(a.Kind, "go"), Description: a.Description, Models: a.Models, Folders: a.Folders},
		Runner: a.Runner, RunTimeout: a.RunTimeout, IdleTimeout: a.IdleTimeout, Budget: a.Budget, StopAtLimit: a.StopAtLimit,
		KillAfter: max(a.KillAfter, 0), Starts: a.Starts, Folder: a.Folder, Ready: a.Ready,
	}
}
