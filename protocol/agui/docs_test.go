package agui_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/runner/script"
)

// TestDocument sends the requests of the protocol's page in order, and expects the
// documented answers.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol/ag-ui.md")
	if err != nil {
		t.Fatal(err)
	}
	d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true, NoScreen: true, AnyHost: true, Agents: []deck.Agent{
		{Name: "hello", Runner: script.New(script.Options{Script: "hello", Instant: true})},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(t.Context()) }()
	blocks := regexp.MustCompile("(?s)```http (\\d+)\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 5 {
		t.Fatalf("found only %d requests", len(blocks))
	}
	for _, b := range blocks {
		want, _ := strconv.Atoi(string(b[1]))
		w := httptest.NewRecorder()
		d.Handler().ServeHTTP(w, parseRequest(t, b[2]))
		if w.Code != want || strings.Contains(w.Body.String(), "RUN_ERROR") {
			t.Errorf("%s: got %d %s, want %d", b[2], w.Code, w.Body, want)
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
