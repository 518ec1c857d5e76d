// Package views has the views of a session that Durable Streams serves: agui,
// messages, state and text. Each turns the events of the session into messages.
package views

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// A Kind is a kind of view.
type Kind struct {
	ContentType string

	// New returns a fold of a session that gets the events from offset at on.
	New func(from Source, session string, at int64) Fold
}

var kinds = map[string]Kind{
	"agui":     {"application/json", newAGUI},
	"messages": {"application/json", newMessages},
	"state":    {"application/json", newState},
	"text":     {"text/plain; charset=utf-8", newText},
}

// Find returns the kind with a name.
func Find(name string) (Kind, bool) {
	k, ok := kinds[name]
	return k, ok
}

// A Source has the earlier events of sessions, and their views.
type Source struct {
	Log   Log
	Views Snapshots
}

// Log reads the events of sessions.
type Log interface {
	Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error)
}

// Snapshots shows the active events of a session as of an offset.
type Snapshots interface {
	Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error)
}

// A Fold turns the events of a session, in order, into what a view shows. The result
// for an event depends only on the log, never on where the reader began: so an offset
// means the same to every reader.
type Fold interface {
	// Apply appends to out what an event becomes: any number of messages. The fold of
	// a view that is text appends at most one run of text.
	Apply(ctx context.Context, e *tapedeck.Event, out [][]byte) ([][]byte, error)

	// Size returns about how many bytes the fold remembers; 0 if it remembers nothing.
	Size() int
}
