// Package mcp is the protocol adapter for the Model Context Protocol: agents list, search,
// read and compare sessions with tools, and subscribe to sessions as resources. Tools that
// change sessions exist only if they are allowed. docs/protocol/mcp.md describes it. The
// official SDK implements the protocol.
//
// What is in a session was written by users, agents and tools. An agent that reads it may
// take it for instructions. So descriptions say that it is data, and in the text of an answer
// each line of it begins with a mark.
package mcp

import (
	"context"
	"iter"
	"log/slog"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/view"
)

// Options configure a server. Reader is required.
type Options struct {
	Reader Reader
	Writer Writer // nil: there are no tools that change sessions

	// OwnSession lets an agent of kind llm use the tools of Writer on the session in which it
	// runs itself. Without it they refuse that session.
	OwnSession bool

	Version string       // of the program; "" for "dev"
	Logger  *slog.Logger // for errors that clients must not see; nil for none
}

// A Reader reads sessions. Negative offsets mean the head.
type Reader interface {
	Catalogue
	Log
	Views
}

// A Catalogue finds sessions.
type Catalogue interface {
	Session(ctx context.Context, id string) (tapedeck.Session, error)
	Sessions(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error)
	Search(ctx context.Context, q search.Query) (search.Result, error)
}

// A Log reads and follows the events of a session.
type Log interface {
	Events(ctx context.Context, session string, q Query) (tapedeck.Page, error)
	Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error]
}

// Views shows sessions as of an offset.
type Views interface {
	Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error)
	Summary(ctx context.Context, session string, at int64) (view.Summary, error)
	Diff(ctx context.Context, a, b string, atA, atB int64) (view.Diff, error)
}

// A Query asks for a page of events.
type Query struct {
	From      int64 // first offset; in reverse, the events before it, negative for the head
	Limit     int   // most events; it is above 0
	Reverse   bool  // newest first
	Effective bool  // only active events

	// Select has the other conditions, with at most one invocation. Its timeline is for the
	// reader to set, if Effective says so.
	Select view.Filter
}

// A Writer changes sessions.
type Writer interface {
	Agents(ctx context.Context) ([]tapedeck.Agent, error)
	Run(ctx context.Context, t api.Task) (api.Started, error)
	Cancel(ctx context.Context, session, invocation string) (api.Cancelled, error)
	Rewind(ctx context.Context, r api.Rewind) (api.Rewound, error)
	Fork(ctx context.Context, f api.Fork) (tapedeck.Session, error)
}
