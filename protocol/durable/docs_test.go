package durable_test

import (
	"net/http/httptest"
	"testing"

	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/store/memory"
)

// TestDocument sends the requests of the protocol's page in order, and expects the
// documented answers.
func TestDocument(t *testing.T) {
	store := memory.New(memory.Options{})
	o := options(store)
	subscribe(t, &o, store)
	handler := durable.New(o)
	for _, x := range apitest.Examples(t, "../../docs/protocol/durable-streams.md", 10) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, parseRequest(t, x.Request))
		if w.Code != x.Status {
			t.Errorf("%s: got %d %s, want %d", x.Request, w.Code, w.Body, x.Status)
		}
	}
}
