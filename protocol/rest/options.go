package rest

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/view"
)

// Options configure the handler. Sessions, Verbs, Views and Contexts are required.
type Options struct {
	Sessions Sessions // the hub
	Verbs    Verbs    // the engine
	Views    Views    // the projections
	Contexts Contexts // the contexts of instances
	Search   Searcher // nil: the server does not search
	Tokens   Tokens   // nil: the server has no access control
	Operator Operator // nil: the server has no statistics
	Audit    Audit    // nil: the server has no audit log

	// Workflows keeps diagrams of workflows and starts them. Nil: the server does not
	// offer that.
	Workflows Workflows

	// Task answers the requests in the form of the SSE task protocol: those with
	// format=task, and the history. Nil: the server does not offer this form.
	Task http.Handler

	// Socket serves the WebSockets. Nil: the server does not offer them.
	Socket http.Handler

	MaxBody   int64         // the largest body in bytes; 0 for 10 MiB
	MaxAppend int64         // the largest body of an append in bytes; 0 for 64 MiB
	MaxImport int64         // the largest import in bytes, which is read as it arrives; 0 for 4 GiB
	MaxEvents int           // the largest number of events in one append; 0 for 100,000
	Heartbeat time.Duration // a stream that is silent for this long sends a comment; 0 for 15 s
	Logger    *slog.Logger  // for errors that clients must not see; nil for none
}

// Sessions reads sessions and their events.
type Sessions interface {
	Head(ctx context.Context, session string) (tapedeck.Session, error)
	List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error)
	Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error)
	Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error]
}

// Verbs does what requests ask for. The parts group its methods by their use.
type Verbs interface {
	Writer
	Runner
	Rewinder
	Exchanger
	Attendance
}

// Writer creates, changes and deletes sessions.
type Writer interface {
	Create(ctx context.Context, n api.NewSession) (tapedeck.Session, error)
	Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	Rename(ctx context.Context, r api.Rename) (tapedeck.Session, error)
	Close(ctx context.Context, session, actor string) error
	Delete(ctx context.Context, session string) error
	Erase(ctx context.Context, e api.Erase) (api.Erased, error)
}

// Runner runs agents and answers their questions.
type Runner interface {
	Agents() []tapedeck.Agent
	Start(ctx context.Context, t api.Task) (api.Started, error)
	Cancel(ctx context.Context, session, invocation string) (api.Cancelled, error)
	Renew(ctx context.Context, r api.Renewal) (api.Renewed, error)
	Resume(ctx context.Context, r api.Resume) (api.Started, error)
	Answer(ctx context.Context, a api.Answer) (api.Answered, error)
	SendMessage(ctx context.Context, m api.SendMessage) (api.MessageSent, error)
	Queue
}

// Queue has the inputs that wait for a thread.
type Queue interface {
	CancelAll(ctx context.Context, session, invocation string) (api.Cancelled, error)
	Inputs(ctx context.Context, session, thread string) ([]view.Input, error)
	Withdraw(ctx context.Context, w api.Withdraw) (view.Input, error)
	Move(ctx context.Context, m api.Move) (view.Input, error)
	Take(ctx context.Context, t api.Take) (api.Taken, error)
}

// Rewinder changes which events of a session are active, and forks sessions.
type Rewinder interface {
	Rewind(ctx context.Context, r api.Rewind) (api.Rewound, error)
	Undo(ctx context.Context, u api.Undo) (api.Rewound, error)
	Overwrite(ctx context.Context, o api.Overwrite) (api.Rewound, error)
	Clear(ctx context.Context, c api.Clear) (api.Rewound, error)
	Fork(ctx context.Context, f api.Fork) (tapedeck.Session, error)
}

// Exchanger exports sessions to files and imports them.
type Exchanger interface {
	Export(ctx context.Context, in api.ExportRequest) (api.Export, error)
	PreviewExport(ctx context.Context, in api.ExportRequest) (api.RedactionPreview, error)
	Import(ctx context.Context, in api.ImportRequest, r io.Reader) (api.Imported, error)
	PreviewImport(ctx context.Context, in api.ImportRequest, r io.Reader) (api.ImportPreview, error)
}

// Attendance knows who is in a session.
type Attendance interface {
	Presence(ctx context.Context, n api.PresenceNote) ([]payload.Presence, error)
	Present(ctx context.Context, session string) ([]payload.Presence, error)
	WatchPresence(ctx context.Context, session string) api.PresenceWatcher
}

// Views shows sessions as of an offset.
type Views interface {
	EffectiveViews
	HistoryViews

	// Epoch changes when an event was erased. Views of different epochs may differ.
	Epoch() string
}

// EffectiveViews are built from the active events of a session.
type EffectiveViews interface {
	Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error)
	Instances(ctx context.Context, session string, at int64) (view.Instances, error)
	Timeline(ctx context.Context, session string, at int64) (*view.Timeline, error)
	Diff(ctx context.Context, a, b string, atA, atB int64) (view.Diff, error)
	Workflow(ctx context.Context, session, thread string, at int64) (*view.Workflow, error)
}

// HistoryViews are built from all events of a session, active or not.
type HistoryViews interface {
	Summary(ctx context.Context, session string, at int64) (view.Summary, error)
	Index(ctx context.Context, session string, at int64) (view.Index, error)
	Branches(ctx context.Context, session string, at int64) (view.Tree, error)

	// ChannelPlace and ChannelNumber number the events in the form of the six channels.
	ChannelPlace(ctx context.Context, session string, n int64) (offset, number int64, err error)
	ChannelNumber(ctx context.Context, session string, at int64) (number int64, err error)
}

// Contexts stores the context of each instance of an agent as a list of events.
type Contexts interface {
	CreateInstance(ctx context.Context, session, agent, parent string) (view.Instance, error)
	GetInstance(ctx context.Context, of view.Ref) (view.Instance, error)
	FindInstance(ctx context.Context, id string) (i view.Instance, session string, err error)
	GetEvents(ctx context.Context, of view.Ref, from int) (events []view.ContextEvent, next int, err error)
	AppendEvent(ctx context.Context, of view.Ref, typ string, content json.RawMessage, toolCallID string) (view.ContextEvent, error)
	DeleteEventsAfter(ctx context.Context, of view.Ref, sequence int) (int, api.Rewound, error)
	CopyEvents(ctx context.Context, source, target view.Ref, upTo *int) (int, error)
}

// Searcher finds text in the conversations.
type Searcher interface {
	Search(ctx context.Context, q search.Query) (search.Result, error)
}

// Tokens makes, lists and revokes the tokens of sessions.
type Tokens interface {
	Issue(ctx context.Context, n api.NewToken) (api.IssuedToken, error)

	// List lists the tokens that have a name.
	List(ctx context.Context, session string) (api.SessionTokens, error)

	// Revoke revokes a token; with an empty id, all tokens of the session.
	Revoke(ctx context.Context, session, id string) error

	// ListIssued lists the tokens of all sessions that a subject issued; with "", those of all subjects.
	ListIssued(ctx context.Context, by string) (api.SessionTokens, error)

	// RevokeIssued revokes all tokens that a subject issued so far.
	RevokeIssued(ctx context.Context, by string) error
}

// Audit has the audit log of the server.
type Audit interface {
	Audit(ctx context.Context, q api.AuditQuery) (api.AuditPage, error)
}

// Operator knows how the server is.
type Operator interface {
	Stats(ctx context.Context) (api.Stats, error)
}
