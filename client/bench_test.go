package client_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/deck"
)

// BenchmarkWriter appends events of 256 bytes, one by one, to a server on a disk.
func BenchmarkWriter(b *testing.B) {
	d, err := deck.Open(b.Context(), b.TempDir(), deck.Options{NoScreen: true})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(d.Handler())
	defer func() { server.Close(); _ = d.Close(context.Background()) }()
	if _, err := d.Create(b.Context(), api.NewSession{ID: "s"}); err != nil {
		b.Fatal(err)
	}
	c, err := client.New(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	w := c.NewWriter(b.Context(), "s", client.WriterOptions{})
	e := tapedeck.Event{Type: "bench.said", Data: json.RawMessage(`{"text":"` + strings.Repeat("x", 245) + `"}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Append(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}
