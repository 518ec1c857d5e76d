package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine/exchange"
)

// TestPreviewImportIsWhatImportMakes: the preview matches the import, and creates
// nothing.
func TestPreviewImportIsWhatImportMakes(t *testing.T) {
	e, store := importer(t, nil)
	for name, in := range map[string]struct{ format, input string }{
		"claude code":   {exchange.ClaudeCode, talk(50) + `{"type":"progress"}` + "\n"},
		"conversations": {exchange.Auto, conversations(3, 20)},
	} {
		request := api.ImportRequest{Format: in.format, Title: "Mine"}
		before := len(sessionsIn(t, store))
		p, err := e.PreviewImport(t.Context(), request, strings.NewReader(in.input))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(sessionsIn(t, store)); n != before {
			t.Fatalf("%s: a preview has made %d sessions", name, n-before)
		}
		done, err := e.Import(t.Context(), request, strings.NewReader(in.input))
		if err != nil {
			t.Fatal(err)
		}
		if p.Total != len(done.Sessions) || len(p.Sessions) != p.Total || p.Events != done.Events || p.Lines != done.Lines || !slices.Equal(p.Skipped, done.Skipped) {
			t.Errorf("%s: %+v, but it made %+v", name, p, done)
		}
		for i, id := range done.Sessions {
			s, err := store.Head(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			events, would := eventsOf(t, store, id), p.Sessions[i]
			if would.Title != s.Title || would.Events != len(events) || !slices.Equal(would.Threads, []string{"main"}) || would.ID != "" {
				t.Errorf("%s: %+v, but it made %+v", name, would, s)
			}
		}
	}
}

func TestPreviewImportTellsOfTimesAndIDs(t *testing.T) {
	e, store := importer(t, nil)
	if _, err := e.Create(t.Context(), api.NewSession{ID: "a", Title: "mine"}); err != nil {
		t.Fatal(err)
	}
	file := ndjson(t, e, "a")
	request := api.ImportRequest{Format: exchange.Auto}
	p, err := e.PreviewImport(t.Context(), request, strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	at := eventsOf(t, store, "a")[0].Time
	one := p.Sessions[0]
	if p.Format != exchange.NDJSON || one.ID != "a" || !one.IDTaken || one.Title != "mine" || !one.First.Equal(at) || !one.Last.Equal(at) {
		t.Errorf("%+v", p)
	}
	elsewhere, _ := importer(t, nil)
	p, err = elsewhere.PreviewImport(t.Context(), request, strings.NewReader(file+file))
	if err != nil || p.Sessions[0].IDTaken || !p.Sessions[1].IDTaken {
		t.Errorf("only the first can have it: %+v %v", p, err)
	}
}

func TestPreviewImportFailsAsTheImportWould(t *testing.T) {
	e, _ := importer(t, nil)
	for in, words := range map[string]string{
		conversations(2, 3) + `{"mess`: "is not JSON",
		"":                             "no conversation",
		`{"a":1}`:                      "cannot be detected",
	} {
		request := api.ImportRequest{Format: exchange.Auto}
		_, preview := e.PreviewImport(t.Context(), request, strings.NewReader(in))
		_, real := e.Import(t.Context(), request, strings.NewReader(in))
		if preview == nil || real == nil || preview.Error() != real.Error() || !strings.Contains(preview.Error(), words) {
			t.Errorf("%q: %v and %v", in, preview, real)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.PreviewImport(ctx, api.ImportRequest{Format: exchange.ClaudeCode}, strings.NewReader(talk(5))); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestPreviewImportIsBounded: the answer stays small for a file of many sessions.
func TestPreviewImportIsBounded(t *testing.T) {
	e, _ := importer(t, nil)
	p, err := e.PreviewImport(t.Context(), api.ImportRequest{Format: exchange.Auto}, strings.NewReader(conversations(500, 2)))
	if err != nil || p.Total != 500 || len(p.Sessions) != 100 {
		t.Errorf("%d of %d, %v", len(p.Sessions), p.Total, err)
	}
}
