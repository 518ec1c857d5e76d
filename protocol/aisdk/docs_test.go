package aisdk_test

import (
	"net/http/httptest"
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
	for _, x := range apitest.Examples(t, "../../docs/protocol/ai-sdk.md", 6) {
		w := httptest.NewRecorder()
		d.Handler().ServeHTTP(w, apitest.Request(t, x.Request))
		if w.Code != x.Status || strings.Contains(w.Body.String(), `"error"`) {
			t.Errorf("%s: got %d %s, want %d", x.Request, w.Code, w.Body, x.Status)
		}
		if strings.Contains(string(x.Request), "/events") && w.Body.String() != `{"messageId":"m1","head":7}`+"\n" {
			t.Errorf("the page has another answer than %s", w.Body)
		}
	}
}
