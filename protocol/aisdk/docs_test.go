package aisdk_test

import (
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
	page, err := os.ReadFile("../../docs/protocol/ai-sdk.md")
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
	if len(blocks) < 6 {
		t.Fatalf("found only %d requests", len(blocks))
	}
	for _, b := range blocks {
		want, _ := strconv.Atoi(string(b[1]))
		w := httptest.NewRecorder()
		d.Handler().ServeHTTP(w, parseRequest(t, b[2]))
		if w.Code != want || strings.Contains(w.Body.String(), `"error"`) {
			t.Errorf("%s: got %d %s, want %d", b[2], w.Code, w.Body, want)
		}
		if strings.Contains(string(b[2]), "/events") && w.Body.String() != `{"messageId":"m1","head":7}`+"\n" {
			t.Errorf("the page has another answer than %s", w.Body)
		}
	}
}
