package deck_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/deck"
)

// TestTokenInQuery: the parameter token counts only where the answer is an event stream or a
// WebSocket. With it no route gives anything else, whatever the request accepts.
func TestTokenInQuery(t *testing.T) {
	g := openGuarded(t, deck.Options{MCPWrite: true})
	session := g.session("open")
	streams := 0
	for route, r := range table {
		method, rest, _ := strings.Cut(route, " ")
		if strings.Contains(rest, " ") || r.rule[len(senders)-1] != '?' { // one that is in a body, or public
			continue
		}
		path, _, _ := strings.Cut(pathPart.Replace(rest), " ")
		for _, name := range []string{"{id}", "{thread}", "{chat}"} {
			path = strings.ReplaceAll(path, name, session)
		}
		path = strings.ReplaceAll(path, "{path}", "users/ada/"+session)
		for _, query := range []string{"?", "?live=sse&offset=-1&", "?live=long-poll&offset=-1&"} {
			code, kind := g.stream(method, path+query+"token=owner", r)
			isStream := strings.HasPrefix(kind, "text/event-stream") || code == http.StatusNotImplemented // a recorder is no connection that could become a WebSocket
			if isStream {
				streams++
			}
			if code != http.StatusUnauthorized && !isStream && code < 400 {
				t.Errorf("%s%s: %d %s for a token in the query", route, query, code, kind)
			}
		}
	}
	if streams < 7 {
		t.Errorf("only %d routes stream to a browser", streams)
	}
}

// stream sends a request that accepts a stream, and ends it at its first event.
func (g *guarded) stream(method, path string, r row) (code int, contentType string) {
	g.t.Helper()
	ctx, cancel := context.WithCancel(g.t.Context())
	defer cancel()
	in := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(""))
	in.Host = "127.0.0.1"
	for h := r.headers; len(h) > 0; h = h[2:] {
		in.Header.Set(h[0], h[1])
	}
	in.Header.Set("Accept", "text/event-stream")
	w := &cutting{ResponseRecorder: httptest.NewRecorder(), cut: cancel}
	g.Handler().ServeHTTP(w, in)
	return w.Code, w.Header().Get("Content-Type")
}

// A revoking body ends a token when it has been read.
type revoking struct {
	io.Reader
	revoke func()
}

func (b revoking) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil {
		b.revoke()
	}
	return n, err
}

// TestTokenEndsDuringABody: if the token of a request ends before the body has arrived, the
// answer is 401, and nothing of the request is carried out.
func TestTokenEndsDuringABody(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"append_message","arguments":{"session":"$S","text":"late"}` +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	const message = `{"messageId":"m","contextId":"$S","role":"ROLE_USER","parts":[{"text":"late"}]}`
	send := func(method string) string {
		m := message
		if strings.Contains(method, "/") {
			m = strings.NewReplacer("ROLE_USER", "user", `{"text"`, `{"kind":"text","text"`).Replace(m)
		}
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"message":` + m + `}}`
	}
	for name, c := range map[string]struct {
		path, body string
		headers    []string
	}{
		"mcp":              {"/mcp", call, []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "append_message"}},
		"mcp initialize":   {"/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, nil},
		"a2a":              {"/a2a/bot", send("SendMessage"), []string{"A2A-Version", "1.0"}},
		"a2a stream":       {"/a2a/bot", send("SendStreamingMessage"), []string{"A2A-Version", "1.0"}},
		"a2a 0.3 stream":   {"/a2a/bot", send("message/stream"), nil},
		"a2a notification": {"/a2a/bot", strings.Replace(send("SendMessage"), `"id":1,`, "", 1), []string{"A2A-Version", "1.0"}},
		"a2a rest":         {"/a2a/bot/message:send", `{"message":` + message + `}`, []string{"A2A-Version", "1.0"}},
		"events":           {"/api/v1/sessions/$S/events", event, nil},
		"task":             {"/api/v1/sessions/$S/task", `{"task":"go"}`, nil},
		"preview":          {"/api/v1/import?format=openai-messages&preview=1", `{"messages":[{"role":"user","content":"go"}]}`, nil},
	} {
		g := openGuarded(t, deck.Options{MCPWrite: true})
		session := g.session("open")
		before, err := g.Session(session).Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		revoked, revoke := context.WithCancel(t.Context())
		g.known["owner"] = &access.Identity{Subject: "ada", Role: access.User, Revoked: revoked}
		body := revoking{strings.NewReader(strings.ReplaceAll(c.body, "$S", session)), revoke}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, strings.ReplaceAll(c.path, "$S", session), body)
		r.Host = "127.0.0.1"
		r.Header.Set("Authorization", "Bearer owner")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for h := c.headers; len(h) > 0; h = h[2:] {
			r.Header.Set(h[0], h[1])
		}
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, r)
		if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "the token was revoked") || w.Header().Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %d %s %v", name, w.Code, w.Body, w.Header())
		}
		if after, err := g.Session(session).Info(t.Context()); err != nil || after.Head != before.Head {
			t.Errorf("%s: the head was %d and is %d, %v", name, before.Head, after.Head, err)
		}
	}
}

// TestSocketEndsWithToken: a WebSocket that does nothing is closed when its token is revoked.
func TestSocketEndsWithToken(t *testing.T) {
	for _, path := range []string{"/ws", "/ws/replay"} {
		g := openGuarded(t, deck.Options{})
		session := g.session("open")
		revoked, revoke := context.WithCancel(t.Context())
		g.known["viewer"] = &access.Identity{Subject: "vic", Role: access.User, Revoked: revoked}
		s := httptest.NewServer(g.Handler())
		defer s.Close()
		c, _, err := websocket.Dial(t.Context(), s.URL+"/api/v1/sessions/"+session+path+"?token=viewer", nil)
		if err != nil {
			t.Fatal(err)
		}
		revoke()
		var said []byte
		for err == nil {
			var b []byte
			_, b, err = c.Read(t.Context())
			said = append(said, b...)
		}
		var closed websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != websocket.StatusPolicyViolation || !strings.Contains(closed.Reason, "revoked") || !strings.Contains(string(said), "the token was revoked") {
			t.Errorf("%s: %v, after %s", path, err, said)
		}
	}
}

// TestWrongShares: a label that shares a session with nobody by mistake is refused.
func TestWrongShares(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	session := g.session("")
	for labels, want := range map[string]int{
		`{"share.raed":"bob"}`: 400, `{"share.read":"bob; eve"}`: 400, `{"share.write":"bob/eve"}`: 400,
		`{"share.read":"*","share.write":"bob, eve"}`: 200, `{"share.read":""}`: 200, `{"sharing":"x y/z"}`: 200,
	} {
		for _, member := range []string{"labels", "change_labels"} {
			if code, answer := g.send("PATCH", "/api/v1/sessions/"+session, "owner", `{"`+member+`":`+labels+`}`); code != want {
				t.Errorf("%s %s: %d %s", member, labels, code, answer)
			}
		}
		if code, answer := g.send("POST", "/api/v1/sessions", "owner", `{"labels":`+labels+`}`); (code == 400) != (want == 400) {
			t.Errorf("a creation with %s: %d %s", labels, code, answer)
		}
	}
	if code, answer := g.send("PATCH", "/api/v1/sessions/"+session, "owner", `{"change_labels":{"share.raed":null}}`); code != 200 {
		t.Errorf("the removal of a wrong label: %d %s", code, answer)
	}
}
