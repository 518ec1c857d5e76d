package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/view"
)

// TestBadSessionIDs: an id that no session can have is refused, and nothing is sent. Its
// path would be that of another endpoint.
func TestBadSessionIDs(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was sent", r.URL) }))
	defer server.Close()
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for id, want := range map[string]string{"": "the session's id is empty", "..": "must begin with", "a/b": "not allowed", "%": "must begin with"} {
		for name, call := range map[string]func(context.Context) error{
			"Session":  func(ctx context.Context) error { _, err := c.Session(ctx, id); return err },
			"Delete":   func(ctx context.Context) error { return c.Delete(ctx, id) },
			"Snapshot": func(ctx context.Context) error { _, err := c.Snapshot(ctx, id, view.Query{}); return err },
			"Erase":    func(ctx context.Context) error { _, err := c.Erase(ctx, api.Erase{Session: id, All: true}); return err },
			"Follow": func(ctx context.Context) error {
				for _, err := range c.Follow(ctx, id, client.FollowOptions{}) {
					return err
				}
				return nil
			},
		} {
			if err := call(t.Context()); tapedeck.KindOf(err) != tapedeck.Invalid || !strings.Contains(err.Error(), want) {
				t.Errorf("%s(%q): %v, want %q", name, id, err, want)
			}
		}
	}
}
