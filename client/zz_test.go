package client_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/deck"
)

func BenchmarkWriter(b *testing.B) {
	d, err := deck.Open(b.Context(), b.TempDir(), deck.Options{})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(d.Handler())
	defer func() { server.Close(); _ = d.Close(context.Background()) }()
	_, _ = d.Create(b.Context(), api.NewSession{ID: "s"})
	c, _ := client.New(server.URL)
	w := c.NewWriter(b.Context(), "s", client.WriterOptions{})
	e := tapedeck.Event{Type: "bench.said", Data: json.RawMessage(`{"text":"` + strings.Repeat("x", 244) + `"}`)}
	b.ResetTimer()
	for range b.N {
		_, _ = w.Append(b.Context(), e)
	}
	if err := w.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}
