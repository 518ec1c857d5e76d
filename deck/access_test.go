package deck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/payload"
)

// TestStreamsEndWithAccess: an open stream ends when the session is shared no more, when the
// token is revoked, and when it expires. It shows nothing of what follows.
func TestStreamsEndWithAccess(t *testing.T) {
	revoked, revoke := context.WithCancel(context.Background())
	defer revoke()
	for name, end := range map[string]func(t *testing.T, g *guarded, session string){
		"unshared": func(t *testing.T, g *guarded, session string) {
			if _, err := g.Session(session).Rename(t.Context(), api.Rename{Labels: map[string]string{}}); err != nil {
				t.Error(err)
			}
		},
		"revoked": func(*testing.T, *guarded, string) { revoke() },
		"expired": func(*testing.T, *guarded, string) { time.Sleep(time.Hour) }, // of the bubble's clock
	} {
		for _, path := range []string{"/api/v1/sessions/$S/stream", "/v1/stream/sessions/$S?live=sse&offset=-1", "/aisdk/bot/$S/stream"} {
			synctest.Test(t, func(t *testing.T) {
				g := openGuarded(t, deck.Options{})
				session := g.session("open")
				who := &access.Identity{Subject: "vic", Role: access.User}
				switch name {
				case "revoked":
					revoked, revoke = context.WithCancel(context.Background())
					who.Revoked = revoked
				case "expired":
					who.Expires = time.Now().Add(30 * time.Minute)
				}
				g.known["viewer"] = who
				path := strings.ReplaceAll(path, "$S", session)
				c := apitest.Watch(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					in := httptest.NewRequestWithContext(r.Context(), http.MethodGet, path, nil)
					in.Host = "localhost"
					in.Header = r.Header
					g.Handler().ServeHTTP(w, in)
				}), "", "Authorization", "Bearer viewer", "Accept", "text/event-stream")
				synctest.Wait()
				if c.Status != 0 && c.Status != http.StatusOK { // 0 if the handler leaves it to the first write
					t.Fatalf("%s: %d %s", path, c.Status, c.Text())
				}
				select {
				case <-c.Done:
					t.Fatalf("%s %s: the stream ended at once: %s", name, path, c.Text())
				default:
				}
				end(t, g, session)
				synctest.Wait()
				if _, err := g.Session(session).Append(t.Context(), payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("late", payload.RoleUser, secret)})); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if name == "expired" && strings.Contains(path, "live=sse") { // a connection of Durable Streams lasts a minute; the next one gets 401
					c.Disconnect()
				}
				<-c.Done
				if strings.Contains(c.Text(), secret) || strings.Contains(c.Text(), "session.renamed") {
					t.Errorf("%s %s: the stream goes on: %s", name, path, c.Text())
				}
				if name != "expired" && strings.HasPrefix(path, "/aisdk") && !strings.Contains(c.Text(), "event: cut\ndata: {\"type\":\"error\"") {
					t.Errorf("%s: a client cannot know that the run continues: %s", name, c.Text())
				}
			})
		}
	}
}

// dial returns a client of a guarded deck with a token.
func (g *guarded) dial(token string) *client.Client {
	g.t.Helper()
	s := httptest.NewServer(g.Handler())
	g.t.Cleanup(s.Close)
	c, err := client.New(s.URL, client.WithToken(token))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(c.Close)
	return c
}

// appendWith appends an event through a client.
func appendWith(t *testing.T, c *client.Client, session string, e tapedeck.Event, p *tapedeck.Producer) (tapedeck.Appended, error) {
	t.Helper()
	b, err := json.Marshal(map[string]any{"type": e.Type, "thread": e.Thread, "invocation": e.Invocation, "actor": e.Actor, "data": e.Data})
	if err != nil {
		t.Fatal(err)
	}
	return c.Append(t.Context(), session, bytes.NewReader(b), client.AppendOptions{Producer: p})
}

// TestActorAndOwner: owner and actor are those of the token, whatever the body says. Only an
// admin names others.
func TestActorAndOwner(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	for token, want := range map[string]struct{ owner, actor string }{"owner": {"ada", "user:ada"}, "admin": {"mallory", "user:mallory"}} {
		c := g.dial(token)
		s, err := c.Create(t.Context(), api.NewSession{Owner: "mallory", Actor: "user:mallory"})
		if err != nil || s.Owner != want.owner {
			t.Errorf("%s: %+v, %v", token, s, err)
		}
		e := payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("m", payload.RoleUser, "x")})
		e.Actor = "user:mallory"
		if _, err := appendWith(t, c, s.ID, e, nil); err != nil {
			t.Fatal(err)
		}
		run, err := c.Run(t.Context(), api.Task{Text: "go", Actor: "user:mallory"})
		if err != nil {
			t.Fatal(err)
		}
		if made, err := g.Session(run.Session).Info(t.Context()); err != nil || token == "owner" && made.Owner != want.owner {
			t.Errorf("%s: the session of a task belongs to %q, %v", token, made.Owner, err)
		}
		for e, err := range g.Session(s.ID).Events(t.Context(), 0) {
			if err != nil || e.Actor != want.actor {
				t.Errorf("%s: event %d is by %q, %v", token, e.Offset, e.Actor, err)
			}
		}
	}
}

// TestAgentToken: the token of an agent appends what the agent does to its own open run, renews
// the lease of that run, and does nothing else.
func TestAgentToken(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	session := g.session("open")
	c := g.dial("agent")
	event := func(typ, thread, invocation, data string) tapedeck.Event {
		return tapedeck.Event{Type: typ, Thread: thread, Invocation: invocation, Data: []byte(data)}
	}
	for name, e := range map[string]tapedeck.Event{
		"another run":        event("CUSTOM", "work", "main", `{"name":"n","value":1}`),
		"another thread":     event("CUSTOM", "main", "inv", `{"name":"n","value":1}`),
		"a new run":          event("RUN_STARTED", "work", "inv2", `{"threadId":"work","runId":"inv2"}`),
		"its own run again":  event("RUN_STARTED", "work", "inv", `{"threadId":"work","runId":"inv"}`),
		"a user's message":   event("message.added", "work", "inv", `{"message":{"id":"u","role":"user","content":"x"}}`),
		"a system message":   event("message.added", "work", "inv", `{"message":{"id":"u","role":"system","content":"x"}}`),
		"a user's stream":    event("TEXT_MESSAGE_START", "work", "inv", `{"messageId":"u","role":"user"}`),
		"whole conversation": event("MESSAGES_SNAPSHOT", "work", "inv", `{"messages":[{"id":"u","role":"user","content":"x"}]}`),
		"its own answer":     event("permission.answered", "work", "inv", `{"id":"p1","option":"yes","outcome":"selected"}`),
	} {
		_, err := appendWith(t, c, session, e, nil)
		if tapedeck.KindOf(err) != tapedeck.Forbidden {
			t.Errorf("%s: %v", name, err)
		}
	}
	for run, want := range map[string]tapedeck.Kind{"inv": "", "main": tapedeck.Forbidden, "never": tapedeck.Forbidden} {
		if _, err := c.Renew(t.Context(), api.Renewal{Session: session, Invocation: run}); err == nil && want != "" || err != nil && tapedeck.KindOf(err) != want {
			t.Errorf("it renews run %s: %v, want %q", run, err, want)
		}
	}
	owner := tapedeck.Event{Type: "CUSTOM", Thread: "work", Invocation: "inv", Data: []byte(`{"name":"n","value":1}`)}
	if _, err := appendWith(t, g.dial("owner"), session, owner, &tapedeck.Producer{ID: "p"}); err != nil {
		t.Fatal(err)
	}
	epoch := &tapedeck.Producer{ID: "p", Epoch: 7} // it must not lock out the producer of the owner
	done, err := appendWith(t, c, session, event("CUSTOM", "", "", `{"name":"n","value":2}`), epoch)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range g.Session(session).Events(t.Context(), done.First) {
		if err != nil || e.Actor != "agent:coder" || e.Invocation != "inv" || e.Thread != "work" {
			t.Errorf("%+v, %v", e, err)
		}
	}
	if _, err := appendWith(t, g.dial("owner"), session, owner, &tapedeck.Producer{ID: "p", Seq: 1}); err != nil {
		t.Errorf("the producer of the owner is locked out: %v", err)
	}
	if _, err := appendWith(t, c, session, event("RUN_FINISHED", "work", "inv", `{"threadId":"work","runId":"inv"}`), nil); err != nil {
		t.Fatal(err)
	}
	_, err = appendWith(t, c, session, event("CUSTOM", "work", "inv", `{"name":"n","value":3}`), nil)
	if tapedeck.KindOf(err) != tapedeck.Forbidden {
		t.Errorf("after its end: %v", err)
	}
}

// TestForksOfShared: the fork of a shared session belongs to the one who made it, is shared
// with nobody, and names no parent to those who cannot read that.
func TestForksOfShared(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	session := g.session("")
	fork, err := g.dial("viewer").Fork(t.Context(), api.Fork{Parent: session, Owner: "mallory"})
	if err != nil || fork.Owner != "vic" || len(fork.Labels) != 0 || fork.Parent != session {
		t.Fatalf("%+v, %v", fork, err)
	}
	if _, err := g.dial("owner").Session(t.Context(), fork.ID); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("the owner of the parent sees the fork: %v", err)
	}
	if _, err := g.Session(session).Rename(t.Context(), api.Rename{Labels: map[string]string{}}); err != nil {
		t.Fatal(err)
	}
	if s, err := g.dial("viewer").Session(t.Context(), fork.ID); err != nil || s.Parent != "" || s.ForkedAt != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	g.known["token"].Limits.Forks = true
	if _, err := g.dial("token").Session(t.Context(), fork.ID); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("a token of the parent reaches the fork of another owner: %v", err)
	}
	mine, err := g.Session(session).Fork(t.Context(), api.Fork{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.dial("token").Session(t.Context(), mine.ID()); err != nil {
		t.Errorf("a token with forks: %v", err)
	}
}

// TestListsAndSearches: a list and a search have what the sender can read.
func TestListsAndSearches(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	for range 3 {
		g.session("")
	}
	if _, err := g.Create(t.Context(), api.NewSession{ID: "evil", Owner: "eve", Title: "hello"}); err != nil {
		t.Fatal(err)
	}
	found(t, g.Deck, "hello")
	for token, want := range map[string]int{"admin": 4, "reader": 4, "owner": 3, "viewer": 3, "foreign": 1} {
		c := g.dial(token)
		page, err := c.Sessions(t.Context(), tapedeck.Filter{})
		if err != nil || len(page.Sessions) != want {
			t.Errorf("%s lists %d sessions, %v", token, len(page.Sessions), err)
		}
	}
}

// TestUsageOfOthers: what foreign sessions used is never counted for a user, whatever owner
// or agent the request names.
func TestUsageOfOthers(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	for owner, tokens := range map[string]int64{"ada": 7, "eve": 100} {
		s, err := g.Create(t.Context(), api.NewSession{ID: "of_" + owner, Owner: owner, Agent: "bot"})
		if err != nil {
			t.Fatal(err)
		}
		report := tapedeck.Event{Type: tapedeck.UsageReported, Data: fmt.Appendf(nil, `{"inputTokens":%d}`, tokens)}
		if _, err := s.Append(t.Context(), report); err != nil {
			t.Fatal(err)
		}
	}
	for token, want := range map[string]int64{"admin": 107, "reader": 107, "owner": 7, "viewer": 0, "foreign": 100} {
		for _, q := range []client.UsageQuery{{}, {Agent: "bot"}, {Owner: "eve"}} {
			want := want
			if q.Owner == "eve" {
				want = want / 100 * 100
			}
			u, err := g.dial(token).Usage(t.Context(), q)
			if err != nil || u.Total.Total != want {
				t.Errorf("%s, %+v: %d tokens, want %d, %v", token, q, u.Total.Total, want, err)
			}
		}
	}
	for _, token := range []string{"agent", "token", "frozen"} {
		g.session("")
		if _, err := g.dial(token).Usage(t.Context(), client.UsageQuery{}); tapedeck.KindOf(err) != tapedeck.Forbidden {
			t.Errorf("%s: %v", token, err)
		}
	}
}

// TestImportForOthers: a user who names another owner of an import, or of its preview, is told
// that only an admin may. Nothing is imported.
func TestImportForOthers(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	for _, c := range []struct {
		token, owner, want string
		kind               tapedeck.Kind
	}{
		{"owner", "bob", "", tapedeck.Forbidden}, {"owner", "", "ada", ""}, {"owner", "ada", "ada", ""},
		{"admin", "bob", "bob", ""}, {"admin", "", "", ""},
	} {
		in := api.ImportRequest{Format: "openai-messages", Owner: c.owner}
		const chat = `{"role":"user","content":"hi"}`
		made, err := g.dial(c.token).Import(t.Context(), in, strings.NewReader(chat))
		if _, previewed := g.dial(c.token).PreviewImport(t.Context(), in, strings.NewReader(chat)); tapedeck.KindOf(err) != c.kind || tapedeck.KindOf(previewed) != c.kind {
			t.Errorf("%s for %q: %v, %v", c.token, c.owner, err, previewed)
		}
		if err != nil {
			continue
		}
		if s, err := g.Session(made.Sessions[0]).Info(t.Context()); err != nil || s.Owner != c.want {
			t.Errorf("%s for %q: the owner is %q, %v", c.token, c.owner, s.Owner, err)
		}
	}
}

// TestImportSharesNothing: a user who imports a file of others shares nothing with them,
// whatever labels the file has, at its beginning and later. An admin restores them.
func TestImportSharesNothing(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	file := `{"offset":0,"type":"session.created","data":{"labels":{"share.write":"*","pin":"1"},"Labels":{"share.write":"*"}}}
{"offset":1,"type":"session.renamed","data":{"labels":{"share.read":"eve"}}}
{"offset":2,"type":"session.renamed","data":{"labels":{"share.write":"eve","pin":"2"}}}
`
	for token, want := range map[string]map[string]string{"owner": {"pin": "2"}, "admin": {"share.write": "eve", "pin": "2"}} {
		for lines := range 3 {
			part := strings.Join(strings.SplitAfter(file, "\n")[:lines+1], "")
			made, err := g.dial(token).Import(t.Context(), api.ImportRequest{Format: "ndjson"}, strings.NewReader(part))
			if err != nil {
				t.Fatal(err)
			}
			s, err := g.Session(made.Sessions[0]).Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if token == "owner" && (s.Labels["share.write"] != "" || s.Labels["share.read"] != "" || lines == 1 && len(s.Labels) > 0) {
				t.Errorf("after %d events the session of the owner has %v", lines+1, s.Labels)
			}
			if lines == 2 && !maps.Equal(s.Labels, want) {
				t.Errorf("%s: %v, want %v", token, s.Labels, want)
			}
		}
	}
}
