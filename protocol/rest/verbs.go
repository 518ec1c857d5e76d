package rest

import (
	"context"
	"io"
	"iter"

	"github.com/tapedeck/tapedeck"
)

// sessions is what is read from the hub.
type sessions interface {
	Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error)
	Head(ctx context.Context, session string) (tapedeck.Session, error)
	List(ctx context.Context, f tapedeck.Filter) ([]tapedeck.Session, string, error)
	Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error]
}

// verbs is the engine.
type verbs interface {
	writer
	runner
	rewinder
	exporter
	eraser
	answerer
	attendance
}

// writer is what the engine does to sessions.
type writer interface {
	Create(ctx context.Context, n tapedeck.NewSession) (tapedeck.Session, error)
	Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	Rename(ctx context.Context, r tapedeck.Rename) (tapedeck.Session, error)
	Close(ctx context.Context, session, actor string) error
	Delete(ctx context.Context, session string) error
	Import(ctx context.Context, in tapedeck.ImportRequest, r io.Reader) (tapedeck.Imported, error)
	PreviewImport(ctx context.Context, in tapedeck.ImportRequest, r io.Reader) (tapedeck.ImportPreview, error)
}

// runner is what the engine does with agents.
type runner interface {
	Start(ctx context.Context, t tapedeck.Task) (tapedeck.Started, error)
	Cancel(ctx context.Context, session, invocation string) (tapedeck.Cancelled, error)
	Resume(ctx context.Context, r tapedeck.Resume) (tapedeck.Started, error)
	Agents() []tapedeck.Agent
}

// rewinder is what the engine does to what is in force.
type rewinder interface {
	Rewind(ctx context.Context, r tapedeck.Rewind) (tapedeck.Rewound, error)
	Undo(ctx context.Context, u tapedeck.Undo) (tapedeck.Rewound, error)
	Overwrite(ctx context.Context, o tapedeck.Overwrite) (tapedeck.Rewound, error)
	Clear(ctx context.Context, c tapedeck.Clear) (tapedeck.Rewound, error)
	Fork(ctx context.Context, f tapedeck.Fork) (tapedeck.Session, error)
}

// exporter is how the engine makes files of sessions.
type exporter interface {
	Export(ctx context.Context, in tapedeck.ExportRequest) (tapedeck.Export, error)
	PreviewExport(ctx context.Context, in tapedeck.ExportRequest) (tapedeck.RedactionPreview, error)
}

// eraser is how the engine removes what was said for good.
type eraser interface {
	Erase(ctx context.Context, e tapedeck.Erase) (tapedeck.Erased, error)
}

// searcher finds what was said.
type searcher interface {
	Search(ctx context.Context, q tapedeck.Search) (tapedeck.Found, error)
}
