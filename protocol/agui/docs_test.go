package agui_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/runner/script"
)

// TestDocument sends the requests of the protocol's page in order, and expects the
// documented answers.
func TestDocument(t *testing.T) {
	d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true, NoScreen: true, AnyHost: true, Agents: []deck.Agent{
		{Name: "hello", Runner: script.New(script.Options{Script: "hello", Instant: true})},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(t.Context()) }()
	for _, x := range apitest.Examples(t, "../../docs/protocol/ag-ui.md", 5) {
		w := httptest.NewRecorder()
		d.Handler().ServeHTTP(w, apitest.Request(t, x.Request))
		if w.Code != x.Status || strings.Contains(w.Body.String(), "RUN_ERROR") {
			t.Errorf("%s: got %d %s, want %d", x.Request, w.Code, w.Body, x.Status)
		}
	}
}

// The client in the page is the one that the conformance tests use.
func TestDocumentHasTheClient(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol/ag-ui.md")
	if err != nil {
		t.Fatal(err)
	}
	tested, err := os.ReadFile("../../conformance/agui/scenarios.mjs")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ *return transformHttpEventStream.*$`).Find(page)
	if line == nil || !bytes.Contains(tested, bytes.TrimSpace(line)) {
		t.Errorf("the page has %s", line)
	}
}
