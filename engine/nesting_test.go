package engine_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// nested returns an object that is nested depth levels deep.
func nested(depth int) json.RawMessage {
	return json.RawMessage(`{"x":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`)
}

// TestDeepEventsComeBack: an event of the greatest depth that append allows can be
// exported and imported again; a deeper one cannot be appended.
func TestDeepEventsComeBack(t *testing.T) {
	e, store := importer(t, nil)
	s, err := e.Create(t.Context(), api.NewSession{})
	if err != nil {
		t.Fatal(err)
	}
	note := func(depth int) error {
		_, err := e.Append(t.Context(), tapedeck.Append{Session: s.ID, Events: []tapedeck.Event{{Type: "test.note", Data: nested(depth)}}})
		return err
	}
	if err := note(jsonobj.MaxNesting); err != nil {
		t.Fatal(err)
	}
	if err := note(jsonobj.MaxNesting + 1); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("one level more: %v", err)
	}
	x, err := e.Export(t.Context(), api.ExportRequest{Session: s.ID, Format: "ndjson"})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := x.Write(&file); err != nil {
		t.Fatal(err)
	}
	in, err := e.Import(t.Context(), api.ImportRequest{Format: "auto"}, &file)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range eventsOf(t, store, in.Sessions[0]) {
		if jsonobj.Nesting(ev.Data) == jsonobj.MaxNesting {
			return
		}
	}
	t.Error("the deep event has not come back")
}
