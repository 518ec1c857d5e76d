package engine

import (
	"context"
	"iter"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine/exchange"
	"github.com/tapedeck/tapedeck/internal/past"
)

// Export returns a session as a file, including inherited events. The formats are in
// [exchange.ExportFormats]. Another format, a pattern that is not a regular
// expression, or an offset beyond the head is [tapedeck.Invalid]. Do not cancel ctx
// before the file is written.
func (e *Engine) Export(ctx context.Context, in api.ExportRequest) (api.Export, error) {
	src, err := e.source(ctx, in)
	if err != nil {
		return api.Export{}, err
	}
	return exchange.Encode(in.Format, src)
}

// PreviewExport returns what the redaction would leave out of an export. It writes
// nothing.
func (e *Engine) PreviewExport(ctx context.Context, in api.ExportRequest) (api.RedactionPreview, error) {
	src, err := e.source(ctx, in)
	if err != nil {
		return api.RedactionPreview{}, err
	}
	return exchange.Preview(src)
}

func (e *Engine) source(ctx context.Context, in api.ExportRequest) (exchange.Source, error) {
	if err := in.Check(); err != nil {
		return exchange.Source{}, err
	}
	redactor, err := exchange.NewRedactor(in.Redact)
	if err != nil {
		return exchange.Source{}, err
	}
	s, err := e.session(ctx, in.Session)
	if err != nil {
		return exchange.Source{}, err
	}
	switch at := in.At; {
	case at == nil:
	case *at > s.Head:
		return exchange.Source{}, tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d, you asked for %d", s.ID, s.Head, *at)
	case *at < s.Head:
		if s, err = past.Entry(ctx, e.store, &s, *at); err != nil {
			return exchange.Source{}, err
		}
		s.Status, s.Resumable = "", nil // it goes on
	}
	for _, at := range []*int64{in.Start, in.Poster} {
		if at != nil && *at > s.Head {
			return exchange.Source{}, tapedeck.Errorf(tapedeck.Invalid, "the export ends at offset %d, a start or poster at %d is beyond it", s.Head, *at)
		}
	}
	t, err := e.views.Timeline(ctx, s.ID, s.Head)
	if err != nil {
		return exchange.Source{}, err
	}
	return exchange.Source{
		Session: s, Timeline: t, Effective: in.View == api.ExportEffective, Terminal: in.Terminal, Redactor: redactor,
		Look:   exchange.Look{Start: in.Start, Poster: in.Poster, Theme: string(in.Theme)},
		Player: e.options.Player, Now: e.options.Now(),
		Events: func() iter.Seq2[tapedeck.Event, error] { return e.upTo(ctx, &s) },
	}, nil
}

// upTo yields the events of a session up to the head in s.
func (e *Engine) upTo(ctx context.Context, s *tapedeck.Session) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		if s.Head == 0 {
			return
		}
		for ev, err := range tapedeck.Events(ctx, e.store, s.ID, 0) {
			if !yield(ev, err) || err != nil || ev.Offset == s.Head-1 {
				return
			}
		}
	}
}
