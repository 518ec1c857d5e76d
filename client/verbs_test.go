package client_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/view"
)

// TestVerbsOnTheWire: what each verb asks for, and that its answer arrives. What
// the server makes of it is tested with the server.
func TestVerbsOnTheWire(t *testing.T) {
	at, title := int64(5), "Another"
	for _, c := range []struct {
		name   string
		call   func(context.Context, *client.Client) (any, error)
		want   string // method, path and body
		answer string
		got    any
	}{
		{"rewind before", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Rewind(ctx, api.Rewind{Session: "s", BeforeInvocation: "inv_1", Thread: "main"})
		}, `POST /api/v1/sessions/s/rewind {"before_invocation_id":"inv_1","thread":"main"}`,
			`{"session_id":"s","marker":"rew_1","offset":9,"to_offset":3,"status":"complete","cancelled":["inv_2"]}`,
			api.Rewound{Session: "s", Marker: "rew_1", Offset: 9, To: 3, Status: "complete", Cancelled: []string{"inv_2"}}},
		{"rewind to the beginning", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Rewind(ctx, api.Rewind{Session: "s", ToOffset: new(int64)})
		}, `POST /api/v1/sessions/s/rewind {"to_offset":0}`, `{"session_id":"s"}`, api.Rewound{Session: "s"}},
		{"undo", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Undo(ctx, api.Undo{Session: "s"})
		}, `POST /api/v1/sessions/s/undo {}`, `{"session_id":"s"}`, api.Rewound{Session: "s"}},
		{"undo a marker", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Undo(ctx, api.Undo{Session: "s", Marker: "rew_1"})
		}, `POST /api/v1/sessions/s/undo {"marker":"rew_1"}`, `{"session_id":"s"}`, api.Rewound{Session: "s"}},
		{"overwrite", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Overwrite(ctx, api.Overwrite{Session: "s"})
		}, `POST /api/v1/sessions/s/overwrite {"from_offset":0}`, `{"session_id":"s"}`, api.Rewound{Session: "s"}},
		{"clear", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Clear(ctx, api.Clear{Session: "s", Thread: "t"})
		}, `POST /api/v1/sessions/s/clear {"thread":"t"}`, `{"session_id":"s"}`, api.Rewound{Session: "s"}},
		{"fork", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Fork(ctx, api.Fork{Parent: "s", ID: "f", At: &at, Title: &title, Owner: "ada", Copy: true})
		}, `POST /api/v1/sessions/s/fork {"at":5,"title":"Another","id":"f","owner":"ada","copy":true}`,
			`{"id":"f","parent":"s","fork_at":5}`, tapedeck.Session{ID: "f", Parent: "s", ForkedAt: 5}},
		{"fork all", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Fork(ctx, api.Fork{Parent: "s"})
		}, `POST /api/v1/sessions/s/fork {}`, `{"id":"f"}`, tapedeck.Session{ID: "f"}},
		{"resume", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Resume(ctx, api.Resume{Session: "s", Thread: "t", Text: "go on", Config: json.RawMessage(`{"a":1}`), Actor: "user:ada"})
		}, `POST /api/v1/sessions/s/resume {"task":"go on","thread":"t","config":{"a":1},"actor":"user:ada"}`,
			`{"session_id":"s","invocation_id":"inv_1","offset":7,"status":"running"}`, api.Started{Session: "s", Invocation: "inv_1", Status: "running", Offset: 7}},
		{"erase", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Erase(ctx, api.Erase{Session: "s", Events: []tapedeck.OffsetRange{{From: 1, To: 3}}, Reason: "why"})
		}, `POST /api/v1/sessions/s/erase {"events":[{"from":1,"to":3}],"reason":"why"}`,
			`{"session_id":"s","offset":8,"events":2,"forks":["f"]}`, api.Erased{Session: "s", Receipt: 8, Events: 2, Forks: []string{"f"}}},
		{"erase all", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Erase(ctx, api.Erase{Session: "s", All: true})
		}, `POST /api/v1/sessions/s/erase {"all":true}`, `{"session_id":"s"}`, api.Erased{Session: "s"}},
		{"close", func(ctx context.Context, c *client.Client) (any, error) { return c.CloseSession(ctx, "s") },
			`POST /api/v1/sessions/s/close`, `{"id":"s","closed":true}`, tapedeck.Session{ID: "s", Closed: true}},
		{"rename", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Rename(ctx, api.Rename{Session: "s", Title: &title, Labels: map[string]string{}})
		}, `PATCH /api/v1/sessions/s {"title":"Another","labels":{}}`, `{"id":"s","title":"Another"}`, tapedeck.Session{ID: "s", Title: "Another"}},
		{"a view", func(ctx context.Context, c *client.Client) (any, error) { return c.Summary(ctx, "s", 0) },
			`GET /api/v1/sessions/s/summary?at=0`, `{"turns":1}`, view.Summary{Turns: 1}},
		{"a context", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Context(ctx, "s", client.ContextOptions{Instance: "ins_1"})
		},
			`GET /api/v1/sessions/s/context?instance=ins_1`, `{}`, api.Context{}},
		{"tasks", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Tasks(ctx, "s", client.TaskOptions{Limit: 7, Before: 9})
		},
			`GET /api/v1/sessions/s/tasks?before=9&limit=7`, `{}`, api.Tasks{}},
		{"threads", func(ctx context.Context, c *client.Client) (any, error) { return c.Threads(ctx, "s", -1) },
			`GET /api/v1/sessions/s/threads`, `{}`, api.Threads{}},
		{"instances", func(ctx context.Context, c *client.Client) (any, error) { return c.Instances(ctx, "s", -1) },
			`GET /api/v1/sessions/s/instances`, `{}`, api.Instances{}},
		{"branches", func(ctx context.Context, c *client.Client) (any, error) { return c.Branches(ctx, "s", -1) },
			`GET /api/v1/sessions/s/branches`, `{}`, api.Branches{}},
		{"replay index", func(ctx context.Context, c *client.Client) (any, error) { return c.ReplayIndex(ctx, "s", -1) },
			`GET /api/v1/sessions/s/replay-index`, `{}`, view.Index{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked = r.Method + " " + r.RequestURI
				if len(body) > 0 {
					asked += " " + string(body)
				}
				_, _ = io.WriteString(w, c.answer)
			}))
			defer server.Close()
			cl, err := client.New(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.call(t.Context(), cl)
			if err != nil {
				t.Fatal(err)
			}
			if asked != c.want {
				t.Errorf("asked %s\nwant  %s", asked, c.want)
			}
			if diff := cmp.Diff(c.got, got, cmpopts.IgnoreUnexported(view.Index{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRevokeToken: the id of a token that is empty by mistake does not revoke all tokens.
func TestRevokeToken(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("it was asked: %s %s", r.Method, r.URL) }))
	defer s.Close()
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.RevokeToken(t.Context(), "a", ""); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("%v", err)
	}
}
