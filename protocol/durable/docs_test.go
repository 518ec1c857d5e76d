package durable_test

import (
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/store/memory"
)

// TestDocument sends the requests of the protocol's page in order, and expects the
// documented answers.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol/durable-streams.md")
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New(memory.Options{})
	o := options(store)
	subscribe(t, &o, store)
	handler := durable.New(o)
	blocks := regexp.MustCompile("(?s)```http (\\d+)\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 10 {
		t.Fatalf("found only %d requests", len(blocks))
	}
	for _, b := range blocks {
		want, _ := strconv.Atoi(string(b[1]))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, parseRequest(t, b[2]))
		if w.Code != want {
			t.Errorf("%s: got %d %s, want %d", b[2], w.Code, w.Body, want)
		}
	}
}
