package deck_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/deck"
)

// TestBelowPrefix: below a prefix the API, its alias and Durable Streams name addresses
// that lead back to what was created, the card of an agent names the agent, and the Go client works. The screen says that it
// does not.
func TestBelowPrefix(t *testing.T) {
	d := openAt(t, "", deck.Options{InMemory: true, Agents: []deck.Agent{{Name: "bot", Runner: tapedeck.RunnerFunc(breaks)}}})
	mux := http.NewServeMux()
	mux.Handle("/tape/deck/", http.StripPrefix("/tape/deck", d.Handler()))
	server := httptest.NewServer(mux)
	defer server.Close()
	send := func(method, path, contentType, body string) (int, http.Header) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Accept", "text/html")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode, resp.Header
	}
	for _, c := range []struct{ method, path, contentType, body, location string }{
		{"POST", "/api/v1/sessions", "application/json", `{"id":"a"}`, "/tape/deck/api/v1/sessions/a"},
		{"POST", "/api/sessions", "application/json", `{"id":"b"}`, "/tape/deck/api/v1/sessions/b"},
		{"POST", "/channels/api/sessions", "application/json", `{"id":"below_channels"}`, "/tape/deck/channels/api/v1/sessions/below_channels"},
		{"POST", "/sse/api/sessions", "application/json", `{"id":"below_sse"}`, "/tape/deck/sse/api/v1/sessions/below_sse"},
		{"POST", "/api/v1/sessions/a/fork", "application/json", `{"id":"f"}`, "/tape/deck/api/v1/sessions/f"},
		{"PUT", "/v1/stream/x/y", "text/plain", "hello", server.URL + "/tape/deck/v1/stream/x/y"},
	} {
		status, header := send(c.method, server.URL+"/tape/deck"+c.path, c.contentType, c.body)
		if at := header.Get("Location"); status != http.StatusCreated || at != c.location {
			t.Errorf("%s %s: %d, Location %q, want %q", c.method, c.path, status, at, c.location)
		}
	}
	if status, _ := send("GET", server.URL+"/tape/deck/", "", ""); status != http.StatusNotFound {
		t.Errorf("the screen: %d", status)
	}
	resp, err := http.Get(server.URL + "/tape/deck/.well-known/agent-card.json")
	if err != nil {
		t.Fatal(err)
	}
	card, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.Contains(string(card), `"`+server.URL+`/tape/deck/a2a/bot"`) {
		t.Errorf("the card of an agent: %s, %v", card, err)
	}
	c, err := client.New(server.URL + "/tape/deck")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Create(t.Context(), api.NewSession{ID: "c"}); err != nil {
		t.Error(err)
	}
	if s, err := c.Session(t.Context(), "f"); err != nil || s.Parent != "a" {
		t.Errorf("%+v, %v", s, err)
	}
}
