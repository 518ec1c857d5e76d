package deck_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/deck"
)

// A logged is a log that is read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// take returns the lines that have a text since the last call.
func (l *logged) take(text string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	l.text.Reset()
	return lines
}

// TestRequestsAreLogged: the line of a request names its sender and its session, in every
// protocol, also where the path does not have the session.
func TestRequestsAreLogged(t *testing.T) {
	var log logged
	g := openGuarded(t, deck.Options{MCPWrite: true, AllowWebhooks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, LogRequests: true, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	for route, r := range table {
		id := g.prepare(route)
		log.take("")
		a := g.ask(route, r, "owner", id)
		lines := log.take("a request was answered")
		if len(lines) != 1 {
			t.Errorf("%s: %d lines: %q", route, len(lines), lines)
			continue
		}
		for _, want := range []string{" id=req_", fmt.Sprintf(" status=%d ", a.code)} {
			if !strings.Contains(lines[0], want) {
				t.Errorf("%s: the line lacks %q: %s", route, want, lines[0])
			}
		}
		names := strings.Contains(route, "{id}") || strings.Contains(route, "{thread}") || strings.Contains(route, "{chat}") || strings.Contains(r.body, "$S")
		if names && a.code < 300 && !strings.Contains(lines[0], "session="+id) {
			t.Errorf("%s: the line does not name the session: %s", route, lines[0])
		}
	}
	log.take("")
	for range 100 {
		if code, _ := g.send("GET", "/api/v1/sessions", "td_guessed", ""); code != http.StatusUnauthorized {
			t.Fatal(code)
		}
	}
	if lines := log.take("a request was refused: it has no valid token"); len(lines) < 20 || len(lines) > 25 || !strings.Contains(lines[0], " id=req_") {
		t.Errorf("%d lines for 100 refused tokens: %q", len(lines), lines[:1])
	}
}

// TestRefusedTokensAreLogged: without a log of requests, those with a wrong token are in it: the
// first ones each, and all of them as a number, also if no other one follows.
func TestRefusedTokensAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		g := openGuarded(t, deck.Options{NoMetrics: true, NoAudit: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		g.send("GET", "/api/v1/sessions", "owner", "")
		g.send("GET", "/api/v1/sessions?token=td_secret", "td_guessed", "")
		lines := log.take("level=WARN")
		if len(lines) != 1 || !strings.Contains(lines[0], "path=/api/v1/sessions ") || !strings.Contains(lines[0], `reason="this is no token of this server"`) {
			t.Errorf("%q", lines)
		}
		for range 99 {
			g.send("GET", "/api/v1/sessions", "td_guessed", "")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if lines := log.take("level=WARN"); len(lines) != 20 || !strings.Contains(lines[19], "requests=80") {
			t.Errorf("%d lines: %q", len(lines), lines)
		}
	})
}

// TestReasonsOfRefusalsAreLogged: the log says why a request was refused with 401.
func TestReasonsOfRefusalsAreLogged(t *testing.T) {
	var log logged
	g := openGuarded(t, deck.Options{NoMetrics: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	revoked, revoke := context.WithCancel(t.Context())
	revoke()
	g.known["old"] = &access.Identity{Subject: "ada", Role: access.User, Expires: time.Now().Add(-time.Hour)}
	g.known["ended"] = &access.Identity{Subject: "ada", Role: access.User, Revoked: revoked}
	for _, c := range []struct{ method, path, header, body, want string }{
		{"GET", "/api/v1/sessions", "", "", "this needs a token"},
		{"GET", "/api/v1/sessions", "Basic eHh4", "", "the header Authorization is not Bearer and a token"},
		{"GET", "/api/v1/sessions", "Bearer old", "", "the token has expired"},
		{"GET", "/v1/stream/users/ada/x", "Bearer ended", "", "the token was revoked"},
		{"POST", "/mcp", "Bearer nobody", "", "this is no token of this server"},
		{"POST", "/login", "", `{"token":"nobody"}`, "this is no token of this server"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
		r.Host = "127.0.0.1"
		r.Header.Set("Tapedeck-Login", "1")
		if c.header != "" {
			r.Header.Set("Authorization", c.header)
		}
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, r)
		if lines := log.take("a request was refused"); w.Code != http.StatusUnauthorized || len(lines) != 1 || !strings.Contains(lines[0], fmt.Sprintf("reason=%q", c.want)) {
			t.Errorf("%s %s with %q: %d, %q", c.method, c.path, c.header, w.Code, lines)
		}
	}
}

// TestHealthChecksAreNotLogged: a health check that succeeds, which commands and probes make all
// the time, is in the log of requests only among its debug messages.
func TestHealthChecksAreNotLogged(t *testing.T) {
	for level, want := range map[slog.Level]int{slog.LevelInfo: 1, slog.LevelDebug: 3} {
		var log logged
		g := openGuarded(t, deck.Options{LogRequests: true, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))})
		for _, path := range []string{"/healthz", "/readyz", "/api/v1/sessions"} {
			g.send("GET", path, "owner", "")
		}
		if lines := log.take("a request was answered"); len(lines) != want {
			t.Errorf("%s: %q", level, lines)
		}
	}
}

// TestNoTokenIsLogged: wherever a client sends a token, the log does not have it, nor what a
// terminal would obey.
func TestNoTokenIsLogged(t *testing.T) {
	const token = "td_Abcdefghijklmnopqrstuvwxyz0123456789-_ABCDE"
	var log logged
	g := openGuarded(t, deck.Options{LogRequests: true, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	for _, path := range []string{
		"/" + token, "/api/v1/sessions/" + token, "/api/v1/sessions/" + token + "/events", "/v1/stream/" + token, "/aisdk/bot/" + token + "/stream",
		"/api/v1/sessions/%74d_" + token[3:], "/api/v1/sessions?token=" + token, "/api/v1/sessions/s/tokens/tds_" + token[3:], "/a%C2%9B31m%E2%80%AEx",
	} {
		for _, as := range []string{"owner", token} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Host = "127.0.0.1"
			r.Header.Set("Authorization", "Bearer "+as)
			r.Header.Set("X-Request-Id", token)
			r.Header.Set("User-Agent", token)
			w := httptest.NewRecorder()
			g.Handler().ServeHTTP(w, r)
			if id := w.Header().Get("X-Request-Id"); !strings.HasPrefix(id, "req_") {
				t.Errorf("%s: the id of the request is %q", path, id)
			}
		}
	}
	lines := log.take("a request")
	for _, line := range lines {
		if strings.Contains(line, token[3:]) || strings.ContainsFunc(line, func(r rune) bool { return r > 0x7e || r < ' ' && r != '\n' }) {
			t.Errorf("the log has %s", line)
		}
	}
	if len(lines) < 18 {
		t.Errorf("%d lines", len(lines))
	}
}
