package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/apitest"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// post sends a message. headers are names and values in turn.
func post(t *testing.T, h http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func openDeck(t *testing.T, o deck.Options) *deck.Deck {
	t.Helper()
	o.InMemory = true
	d, err := deck.Open(t.Context(), "", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return d
}

// TestHostileRequests: the endpoint refuses what is not a request of a client, and what comes
// from a web page.
func TestHostileRequests(t *testing.T) {
	h := openDeck(t, deck.Options{AllowOrigins: []string{"https://app.example"}}).Handler()
	deep := strings.Repeat("[", 100_000)
	for _, c := range []struct {
		name, body string
		headers    []string
		want       int
	}{
		{"fine", initialize, nil, 200},
		{"a page of the server", initialize, []string{"Origin", "http://localhost"}, 200},
		{"an allowed page", initialize, []string{"Origin", "https://app.example"}, 200},
		{"a foreign page", initialize, []string{"Origin", "https://evil.example"}, 403},
		{"a sandboxed page", initialize, []string{"Origin", "null"}, 403},
		{"a name of somebody else", initialize, []string{"Host", "evil.example"}, 403},
		{"another site", initialize, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"a form", initialize, []string{"Content-Type", "text/plain"}, 415},
		{"no type to accept", initialize, []string{"Accept", "text/html"}, 400},
		{"compressed", initialize, []string{"Content-Encoding", "gzip"}, 415},
		{"an unknown client", initialize, []string{"Mcp-Session-Id", "nobody"}, 404},
		{"an old version", initialize, []string{"Mcp-Protocol-Version", "1999-01-01"}, 400},
		{"a version to come", initialize, []string{"Mcp-Protocol-Version", "9999-01-01"}, 400},
		{"nothing", "", nil, 400},
		{"no JSON", "{", nil, 400},
		{"deep JSON", deep, nil, 400},
		{"deep parameters", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + deep, nil, 400},
		{"too large", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 5<<20) + `"}`, nil, 413},
		{"an unknown method", `{"jsonrpc":"2.0","id":1,"method":"x"}`, nil, 400},
	} {
		if w := post(t, h, c.body, c.headers...); w.Code != c.want {
			t.Errorf("%s: %d %.300s", c.name, w.Code, w.Body)
		}
	}
	for method, want := range map[string]int{http.MethodGet: 400, http.MethodPut: 405, http.MethodDelete: 400} {
		r := httptest.NewRequest(method, "http://localhost/mcp", nil)
		r.Header.Set("Accept", "text/event-stream")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "http://localhost/mcp", nil)
	r.Header.Set("Sec-Fetch-Dest", "script")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("as a script: %d", w.Code)
	}
}

// enter initializes a client and returns its id.
func enter(t *testing.T, h http.Handler) string {
	t.Helper()
	w := post(t, h, initialize)
	id := w.Header().Get("Mcp-Session-Id")
	if w.Code != http.StatusOK || id == "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	post(t, h, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id)
	return id
}

const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`

func status(t *testing.T, h http.Handler, id string) int {
	t.Helper()
	return post(t, h, ping, "Mcp-Session-Id", id).Code
}

// TestIdleClients: a client is ended half an hour after its last request, but not while it
// has a stream.
func TestIdleClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openDeck(t, deck.Options{}).Handler()
		quiet, follower := enter(t, h), enter(t, h)
		stream := listen(t, h, follower)
		time.Sleep(29 * time.Minute) // of the bubble's clock
		if got := status(t, h, quiet); got != http.StatusOK {
			t.Errorf("after 29 minutes: %d", got)
		}
		time.Sleep(29 * time.Minute)
		if got := status(t, h, quiet); got != http.StatusOK {
			t.Errorf("29 minutes after its last request: %d", got)
		}
		time.Sleep(31 * time.Minute)
		if got := status(t, h, quiet); got != http.StatusNotFound {
			t.Errorf("after 31 minutes: %d", got)
		}
		if got := status(t, h, follower); got != http.StatusOK {
			t.Errorf("with a stream: %d", got)
		}
		if n := strings.Count(stream.Text(), ": heartbeat\n"); n < 89*4-5 || n > 89*4 {
			t.Errorf("%d heartbeats", n)
		}
		stream.Disconnect()
		time.Sleep(31 * time.Minute)
		if got := status(t, h, follower); got != http.StatusNotFound {
			t.Errorf("31 minutes after its stream: %d", got)
		}
	})
}

// listen opens the stream of a client.
func listen(t *testing.T, h http.Handler, id string) *apitest.Client {
	t.Helper()
	c := apitest.Watch(t, at("/mcp", h), "", "Mcp-Session-Id", id, "Accept", "text/event-stream", "Mcp-Protocol-Version", stateful)
	synctest.Wait()
	if c.Status != http.StatusOK {
		t.Fatalf("the stream: %d %s", c.Status, c.Text())
	}
	return c
}

// at serves every request at a path.
func at(path string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path, r.Host = path, "localhost"
		h.ServeHTTP(w, r)
	})
}

// TestManyClients: above the limit a new client replaces the one that has been idle for the
// longest time, and never one with a stream.
func TestManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openDeck(t, deck.Options{}).Handler()
		follower := enter(t, h)
		stream := listen(t, h, follower)
		time.Sleep(time.Second) // of the bubble's clock
		second, third := enter(t, h), ""
		for i := 2; i < 1001; i++ {
			time.Sleep(time.Millisecond)
			if id := enter(t, h); third == "" {
				third = id
			}
		}
		if got := [3]int{status(t, h, follower), status(t, h, second), status(t, h, third)}; got != [3]int{200, 404, 200} {
			t.Errorf("%v", got)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "http://localhost/mcp", nil)
		r.Header.Set("Mcp-Session-Id", third)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusNoContent || status(t, h, third) != http.StatusNotFound {
			t.Errorf("after its end: %d", w.Code)
		}
		stream.Disconnect()
	})
}

// TestClose: the end of the deck ends the streams, and refuses new requests.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDeck(t, deck.Options{})
		h := d.Handler()
		stream := listen(t, h, enter(t, h))
		_ = d.Close(context.Background())
		<-stream.Done
		if w := post(t, h, initialize); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// FuzzCall: no arguments of any tool break the server or make an answer that is too large.
func FuzzCall(f *testing.F) {
	d, err := deck.Open(context.Background(), "", deck.Options{InMemory: true, MCPWrite: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = d.Close(context.Background()) })
	h := d.Handler()
	all := append(slices.Clone(readers), "list_agents", "run_agent", "cancel_run", "rewind_session", "fork_session")
	for i := range all {
		f.Add(uint8(i), `{"session":"s","from":0,"limit":1}`)
		f.Add(uint8(i), `{"session":null,"a":{},"b":[[[]]],"at":1e99,"limit":-1}`)
	}
	f.Fuzz(func(t *testing.T, tool uint8, arguments string) {
		if !json.Valid([]byte(arguments)) {
			t.Skip()
		}
		name := all[int(tool)%len(all)]
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"name":%q,"arguments":%s}}`, metaOfRequest, name, arguments)
		w := post(t, h, body, "Mcp-Protocol-Version", stateless, "Mcp-Method", "tools/call", "Mcp-Name", name)
		answer, _ := io.ReadAll(w.Body)
		if w.Code >= 500 || len(answer) > maxAnswer || bytes.Contains(answer, []byte("internal")) || !json.Valid(answer) && w.Code == 200 {
			t.Errorf("%s %s: %d %.500s", name, arguments, w.Code, answer)
		}
	})
}

// metaOfRequest is what each request says of its client in the new version of the protocol.
const metaOfRequest = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// TestNullArguments: the arguments of a tool may be null, as if they were absent.
func TestNullArguments(t *testing.T) {
	h := openDeck(t, deck.Options{}).Handler()
	id := enter(t, h)
	for tool, says := range map[string]string{"list_sessions": `"sessions":[]`, "read_session": "required"} {
		w := post(t, h, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"`+tool+`","arguments":null}}`, "Mcp-Session-Id", id)
		if got := w.Body.String(); !strings.Contains(got, says) || strings.Contains(got, "internal error") {
			t.Errorf("%s: %s", tool, got)
		}
	}
}
