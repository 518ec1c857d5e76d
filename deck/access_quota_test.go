package deck_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/quota"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/apitest"
)

// limited are the routes that use a quota of the owner of a session. All others only read,
// or end something, which is always possible.
var limited = map[string]bool{
	"DELETE /api/v1/sessions/{id}/inputs/{input}":         true,
	"DELETE /api/v1/sessions/{id}/instances/{iid}/events": true,
	"GET /api/v1/sessions/{id}/stream":                    true,
	"GET /sse/api/v1/sessions/{id}/events":                true,
	"PATCH /api/v1/sessions/{id}":                         true,
	"PATCH /api/v1/sessions/{id}/inputs/{input}":          true,
	"PATCH /copilotkit/threads/{thread}":                  true,
	"POST /a2a/{agent} 0.3 message/send":                  true,
	"POST /a2a/{agent} 0.3 message/stream":                true,
	"POST /a2a/{agent} 1.0 SendMessage":                   true,
	"POST /a2a/{agent} 1.0 SendStreamingMessage":          true,
	"POST /a2a/{agent}/message:send":                      true,
	"POST /a2a/{agent}/message:stream":                    true,
	"POST /agui/{agent}":                                  true,
	"POST /agui/{agent}/events/{thread}":                  true,
	"POST /aisdk/{agent}":                                 true,
	"POST /aisdk/{agent}/{chat}/events":                   true,
	"POST /aisdk/{agent}/{chat}/messages":                 true,
	"POST /api/sessions":                                  true,
	"POST /api/tasks":                                     true,
	"POST /api/v1/import":                                 true,
	"POST /api/v1/sessions":                               true,
	"POST /api/v1/sessions/run":                           true,
	"POST /api/v1/sessions/{id}/clear":                    true,
	"POST /api/v1/sessions/{id}/events":                   true,
	"POST /api/v1/sessions/{id}/fork":                     true,
	"POST /api/v1/sessions/{id}/instances":                true,
	"POST /api/v1/sessions/{id}/instances/{iid}/copy":     true,
	"POST /api/v1/sessions/{id}/instances/{iid}/events":   true,
	"POST /api/v1/sessions/{id}/messages":                 true,
	"POST /api/v1/sessions/{id}/overwrite":                true,
	"POST /api/v1/sessions/{id}/permissions/{pid}":        true,
	"POST /api/v1/sessions/{id}/presence":                 true,
	"POST /api/v1/sessions/{id}/resume":                   true,
	"POST /api/v1/sessions/{id}/rewind":                   true,
	"POST /api/v1/sessions/{id}/task":                     true,
	"POST /api/v1/sessions/{id}/undo":                     true,
	"POST /copilotkit/agent/{agent}/run":                  true,
	"POST /copilotkit/threads/{thread}/archive":           true,
	"POST /mcp fork_session":                              true,
	"POST /mcp rewind_session":                            true,
	"POST /mcp run_agent":                                 true,
	"POST /v1/stream/sessions/{id}":                       true,
	"POST /v1/stream/{path}":                              true,
	"PUT /api/sessions/{id}/effective_history":            true,
	"PUT /v1/stream/{path}":                               true,
}

var ada = quota.Key{Subject: "ada", Role: access.User}

// exceed uses up all quotas of ada.
func (g *guarded) exceed() {
	g.t.Helper()
	g.limits.Store(&quota.Limits{Sessions: 1, Streams: 1, Events: 1, Bytes: 1, Runs: 1})
	if g.Quotas().Streams(ada) == 0 {
		if _, err := g.Quotas().Open(ada); err != nil {
			g.t.Fatal(err)
		}
	}
	g.Quotas().Charge(ada, 1000, 1000)
}

// TestQuotaInEveryProtocol sends the request of each route as a user who has used up all
// quotas. The refusal is in the form of the protocol, and says when to try again.
func TestQuotaInEveryProtocol(t *testing.T) {
	g := openGuarded(t, deck.Options{MCPWrite: true, AllowWebhooks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for route, r := range table {
		g.limits.Store(nil)
		id := g.prepare(route)
		g.exceed()
		a := g.ask(route, r, "owner", id)
		refused := strings.Contains(a.body, "no more are allowed") || strings.Contains(a.body, "ada sends more than 1 ")
		inForm := a.code == http.StatusTooManyRequests && a.retryAfter > 0 ||
			a.code == http.StatusOK && strings.HasPrefix(a.body, `{"jsonrpc"`) && (strings.Contains(a.body, `"error"`) && a.retryAfter > 0 || strings.Contains(a.body, `"isError":true`))
		if refused != limited[route] || refused && !inForm {
			t.Errorf("%s: %d, Retry-After %d: %.300s", route, a.code, a.retryAfter, a.body)
		}
		if admin := g.ask(route, r, "admin", id); admin.code == http.StatusTooManyRequests {
			t.Errorf("%s as admin: %d %s", route, admin.code, admin.body)
		}
	}
	for route := range limited {
		if _, ok := table[route]; !ok {
			t.Errorf("there is no route %s", route)
		}
	}
}

// TestStreamsAreGivenBack: of a hundred streams as many are served as the quota allows, over
// all protocols; and whatever their ends, each is counted once and given back.
func TestStreamsAreGivenBack(t *testing.T) {
	for name, end := range map[string]func(g *guarded, session string, watchers []*apitest.Client){
		"disconnected": func(_ *guarded, _ string, watchers []*apitest.Client) {
			for _, c := range watchers {
				c.Disconnect()
			}
		},
		"deleted": func(g *guarded, session string, _ []*apitest.Client) {
			if err := g.Session(session).Delete(g.t.Context()); err != nil {
				g.t.Error(err)
			}
		},
		"timed out": func(*guarded, string, []*apitest.Client) { time.Sleep(time.Hour) }, // of the bubble's clock; Durable Streams ends connections, the others are closed by the test
	} {
		synctest.Test(t, func(t *testing.T) {
			g := openGuarded(t, deck.Options{})
			session := g.session("open")
			g.limits.Store(&quota.Limits{Streams: 60})
			paths := []string{"/api/v1/sessions/$S/stream", "/v1/stream/sessions/$S?live=sse&offset=-1", "/aisdk/bot/$S/stream", "/sse/api/v1/sessions/$S/events", "/v1/stream/sessions/$S?live=long-poll&offset=now"}
			var watchers []*apitest.Client
			for n := range 100 {
				path := strings.ReplaceAll(paths[n%len(paths)], "$S", session)
				watchers = append(watchers, apitest.Watch(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					in := httptest.NewRequestWithContext(r.Context(), http.MethodGet, path, nil)
					in.Host, in.Header = "localhost", r.Header
					g.Handler().ServeHTTP(w, in)
				}), "", "Authorization", "Bearer owner", "Accept", "text/event-stream"))
				synctest.Wait()
			}
			refused := 0
			for _, c := range watchers {
				if c.Status == http.StatusTooManyRequests {
					refused++
				}
			}
			if n := g.Quotas().Streams(ada); n != 60 || refused != 40 {
				t.Errorf("%s: %d streams are open, and %d were refused", name, n, refused)
			}
			end(g, session, watchers)
			synctest.Wait()
			for _, c := range watchers {
				c.Disconnect()
				<-c.Done
			}
			if n := g.Quotas().Streams(ada); n != 0 {
				t.Errorf("%s: %d streams are not given back", name, n)
			}
		})
	}
}

// TestQuotaOnSockets: a WebSocket gets a frame for what its quota does not allow.
func TestQuotaOnSockets(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	session := g.session("open")
	s := httptest.NewServer(g.Handler())
	defer s.Close()
	g.exceed()
	c, _, err := websocket.Dial(t.Context(), s.URL+"/api/v1/sessions/"+session+"/ws?token=owner", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.CloseNow() }()
	for _, frame := range []string{`{"type":"follow","from":0}`, `{"type":"append","seq":0,"events":[` + event + `]}`} {
		if err := c.Write(t.Context(), websocket.MessageText, []byte(frame)); err != nil {
			t.Fatal(err)
		}
		_, got, err := c.Read(t.Context())
		if err != nil || !strings.Contains(string(got), `"type":"error"`) || !strings.Contains(string(got), `"kind":"limited"`) {
			t.Errorf("%s: %s, %v", frame, got, err)
		}
	}
}

// TestSessionQuota: an owner has as many sessions as the quota allows, whatever makes them,
// also at the same moment; a deletion makes place for another one.
func TestSessionQuota(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	g.limits.Store(&quota.Limits{Sessions: 20})
	c := g.dial("owner")
	var all sync.WaitGroup
	for n := range 60 {
		all.Go(func() {
			var err error
			switch n % 3 {
			case 0:
				_, err = c.Create(t.Context(), api.NewSession{})
			case 1:
				_, err = c.Run(t.Context(), api.Task{Text: "go"})
			case 2:
				_, err = c.Import(t.Context(), api.ImportRequest{Format: "ndjson"}, strings.NewReader(lines(5)))
			}
			if err != nil && tapedeck.KindOf(err) != tapedeck.Limited {
				t.Error(err)
			}
		})
	}
	all.Wait()
	page, err := c.Sessions(t.Context(), tapedeck.Filter{Limit: 1000})
	if err != nil || len(page.Sessions) > 20 || len(page.Sessions) == 0 {
		t.Fatalf("ada has %d sessions, %v", len(page.Sessions), err)
	}
	for range 20 - len(page.Sessions) {
		if _, err := c.Create(t.Context(), api.NewSession{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Fork(t.Context(), api.Fork{Parent: page.Sessions[0].ID}); tapedeck.KindOf(err) != tapedeck.Limited {
		t.Errorf("a fork: %v", err)
	}
	if err := c.Delete(t.Context(), page.Sessions[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Import(t.Context(), api.ImportRequest{Format: "ndjson"}, strings.NewReader(lines(2))); tapedeck.KindOf(err) != tapedeck.Limited {
		t.Errorf("an import of two: %v", err)
	}
	if _, err := c.Import(t.Context(), api.ImportRequest{Format: "ndjson"}, strings.NewReader(lines(1))); err != nil {
		t.Errorf("an import of one: %v", err)
	}
}

// lines returns a file of sessions.
func lines(sessions int) string {
	var b strings.Builder
	for n := range sessions {
		fmt.Fprintf(&b, `{"tapedeck":1,"session":{"id":"in%d"}}`+"\n"+`{"offset":0,"type":"session.created","data":{}}`+"\n", n)
	}
	return b.String()
}

// patient is an agent that goes on until it is cancelled.
func patient(ctx context.Context, _ tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(func(tapedeck.Event, error) bool) { <-ctx.Done() }
}

// TestRunQuota: an owner has as many runs as the quota allows, over all sessions and all who
// of all who start them, also at the same moment; the end of one makes place for another one.
func TestRunQuota(t *testing.T) {
	g := openGuarded(t, deck.Options{Agents: []deck.Agent{{Name: "bot", Runner: tapedeck.RunnerFunc(patient)}}})
	g.limits.Store(&quota.Limits{Runs: 3})
	c, writer := g.dial("owner"), g.dial("writer")
	shared, err := g.Create(t.Context(), api.NewSession{Owner: "ada", Labels: map[string]string{api.ShareWrite: "wil"}})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	started := make(chan api.Started, 20)
	for n := range 20 {
		all.Go(func() {
			task := api.Task{Text: "go", Session: shared.ID(), Thread: "t" + strconv.Itoa(n)}
			from := c
			if n%2 == 0 {
				from = writer
			}
			switch s, err := from.Run(t.Context(), task); {
			case err == nil:
				started <- s
			case tapedeck.KindOf(err) != tapedeck.Limited:
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(started)
	if len(started) != 3 {
		t.Errorf("%d runs began", len(started))
	}
	first := <-started
	if _, err := c.Cancel(t.Context(), first.Session, first.Invocation); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Run(t.Context(), api.Task{Text: "go"}); err != nil {
		t.Errorf("the runs of ada count for wil: %v", err)
	}
	next, err := c.Run(t.Context(), api.Task{Text: "go"})
	if err != nil {
		t.Fatalf("after the end of one: %v", err)
	}
	if _, err := c.Run(t.Context(), api.Task{Text: "later", Session: next.Session, When: "queue"}); tapedeck.KindOf(err) != tapedeck.Limited {
		t.Errorf("a task that would wait: %v", err)
	}
}

// TestRunQuotaDuringStarts: a run counts while its agent is made ready, before the catalogue
// has it.
func TestRunQuotaDuringStarts(t *testing.T) {
	asked, ready := make(chan struct{}, 10), make(chan struct{})
	dir := t.TempDir()
	g := openGuarded(t, deck.Options{Agents: []deck.Agent{{
		Name: "bot", Runner: tapedeck.RunnerFunc(patient),
		Folder: func(string, string) (string, error) { asked <- struct{}{}; <-ready; return dir, nil },
	}}})
	g.limits.Store(&quota.Limits{Runs: 2})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if code, answer := g.send("POST", "/api/v1/sessions/run", "owner", `{"task":"go"}`); code != http.StatusAccepted {
				t.Errorf("%d %s", code, answer)
			}
		})
		<-asked
	}
	if code, answer := g.send("POST", "/api/v1/sessions/run", "owner", `{"task":"go"}`); code != http.StatusTooManyRequests {
		t.Errorf("a third run: %d %s", code, answer)
	}
	close(ready)
	all.Wait()
}

// TestSessionQuotaDuringAnImport: a session that is about to be created counts.
func TestSessionQuotaDuringAnImport(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	g.limits.Store(&quota.Limits{Sessions: 1})
	body, file := io.Pipe()
	var imported answer
	var all sync.WaitGroup
	all.Go(func() {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/api/v1/import", body)
		r.Host = "localhost"
		r.Header = http.Header{"Content-Type": {"application/x-ndjson"}, "Authorization": {"Bearer owner"}}
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, r)
		imported = answer{code: w.Code, body: w.Body.String()}
	})
	head, events, _ := strings.Cut(lines(1), "\n")
	if _, err := io.WriteString(file, head+"\n"); err != nil { // it returns when the import reads
		t.Fatal(err)
	}
	if code, answer := g.send("POST", "/api/v1/sessions", "owner", ""); code != http.StatusTooManyRequests {
		t.Errorf("during an import: %d %s", code, answer)
	}
	_, _ = io.WriteString(file, events)
	_ = file.Close()
	all.Wait()
	if imported.code != http.StatusCreated && imported.code != http.StatusOK {
		t.Errorf("the import: %d %s", imported.code, imported.body)
	}
}

// TestAgentsPayFromTheirOwner: tokens for agents of many names have one quota together.
func TestAgentsPayFromTheirOwner(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	session := g.session("")
	g.limits.Store(&quota.Limits{Events: 1})
	sent := 0
	for n := range 30 {
		token := g.issue(session, fmt.Sprintf(`{"role":"agent","subject":"coder%d","invocation":"inv"}`, n)).Token
		if code, _ := g.send("POST", "/api/v1/sessions/"+session+"/events", token, event); code == http.StatusOK {
			sent++
		}
	}
	if sent == 0 || sent > 20 { // ten at once, and one more in each second of the test
		t.Errorf("%d events were taken", sent)
	}
}
