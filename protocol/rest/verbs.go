package rest

import (
	"context"
	"io"
	"iter"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/search"
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
	Create(ctx context.Context, n api.NewSession) (tapedeck.Session, error)
	Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	Rename(ctx context.Context, r api.Rename) (tapedeck.Session, error)
	Close(ctx context.Context, session, actor string) error
	Delete(ctx context.Context, session string) error
	Import(ctx context.Context, in api.ImportRequest, r io.Reader) (api.Imported, error)
	PreviewImport(ctx context.Context, in api.ImportRequest, r io.Reader) (api.ImportPreview, error)
}

// runner is what the engine does with agents.
type runner interface {
	Start(ctx context.Context, t api.Task) (api.Started, error)
	Cancel(ctx context.Context, session, invocation string) (api.Cancelled, error)
	Resume(ctx context.Context, r api.Resume) (api.Started, error)
	Agents() []tapedeck.Agent
}

// rewinder is what the engine does to what is in force.
type rewinder interface {
	Rewind(ctx context.Context, r api.Rewind) (api.Rewound, error)
	Undo(ctx context.Context, u api.Undo) (api.Rewound, error)
	Overwrite(ctx context.Context, o api.Overwrite) (api.Rewound, error)
	Clear(ctx context.Context, c api.Clear) (api.Rewound, error)
	Fork(ctx context.Context, f api.Fork) (tapedeck.Session, error)
}

// exporter is how the engine makes files of sessions.
type exporter interface {
	Export(ctx context.Context, in api.ExportRequest) (api.Export, error)
	PreviewExport(ctx context.Context, in api.ExportRequest) (api.RedactionPreview, error)
}

// eraser is how the engine removes what was said for good.
type eraser interface {
	Erase(ctx context.Context, e api.Erase) (api.Erased, error)
}

// searcher finds what was said.
type searcher interface {
	Search(ctx context.Context, q search.Query) (search.Result, error)
}
