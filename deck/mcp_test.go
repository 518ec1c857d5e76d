package deck_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/testmodel"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/llm"
	"github.com/tapedeck/tapedeck/runner/llm/mcp"
	"github.com/tapedeck/tapedeck/view"
)

// openWithAgent opens a deck with an agent of kind llm, which is an MCP client of this deck.
func openWithAgent(t *testing.T, o deck.Options, policy llm.Policy) *deck.Deck {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	t.Cleanup(s.Close)
	agent := llm.New(llm.Options{
		Name: "test", BaseURL: "http://model/v1", Model: "test-model", Policy: policy,
		HTTPClient: &http.Client{Transport: testmodel.Transport(testmodel.New(testmodel.Options{}))},
		Servers:    []mcp.Server{{Name: "deck", URL: "http://" + s.Listener.Addr().String() + "/mcp"}},
	})
	o.InMemory, o.Agents = true, []deck.Agent{{Name: "coder", Runner: agent}, echoAgent}
	d := openAt(t, "", o)
	s.Config.Handler = d.Handler()
	s.Start()
	return d
}

// results runs a task in a session to its end, and returns the results of its tool calls.
func results(t *testing.T, d *deck.Deck, session, task string) []string {
	t.Helper()
	run, err := d.Run(t.Context(), api.Task{Session: session, Text: task, Agent: "coder"})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range d.Follow(t.Context(), run.Session, run.Offset) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == tapedeck.RunError {
			t.Fatalf("%s", e.Data)
		}
		if e.Type == tapedeck.RunFinished && e.Invocation == run.Invocation {
			break
		}
	}
	s, err := d.Session(session).Snapshot(t.Context(), view.Query{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range s.Calls {
		if c.Invocation == run.Invocation && c.Result != nil {
			out = append(out, c.Result.Text)
		}
	}
	return out
}

// TestAgentReadsSessions: an agent of kind llm reads sessions, its own too, through the
// endpoint of its own server, and changes none.
func TestAgentReadsSessions(t *testing.T) {
	d := openWithAgent(t, deck.Options{}, llm.Policy{{Tool: "deck__*", Decision: llm.Allow}})
	s, err := d.Create(t.Context(), api.NewSession{ID: "other", Title: "Another session"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("m", payload.RoleUser, "a secret word")})); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Create(t.Context(), api.NewSession{ID: "self"}); err != nil {
		t.Fatal(err)
	}
	got := results(t, d, "self", `[tool deck__list_sessions {}] [tool deck__read_session {"session":"other"}] [tool deck__session_summary {"session":"self"}] `+
		`[tool deck__rewind_session {"session":"other","to_offset":1}]`)
	wants := []string{"Another session", "\n| a secret word\n", "Session self: running", "deck__rewind_session"}
	if len(got) != len(wants) {
		t.Fatalf("%q", got)
	}
	for i, want := range wants {
		if !strings.Contains(got[i], want) {
			t.Errorf("%q does not have %q", got[i], want)
		}
	}
	if info, err := s.Info(t.Context()); err != nil || info.Head != 2 {
		t.Errorf("%v %+v", err, info)
	}
}

// TestAgentActs: with the permission an agent runs other agents and changes other sessions,
// but not its own one. With the second permission it changes that, too.
func TestAgentActs(t *testing.T) {
	for _, own := range []bool{false, true} {
		d := openWithAgent(t, deck.Options{MCPWrite: true, MCPOwnSession: own}, llm.Policy{{Tool: "deck__*", Decision: llm.Allow}})
		for _, id := range []string{"self", "other"} {
			if _, err := d.Create(t.Context(), api.NewSession{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		got := results(t, d, "self", `[tool deck__run_agent {"session":"other","task":"hi","agent":"echo"}] [tool deck__fork_session {"session":"other","id":"fork"}] `+
			`[tool deck__run_agent {"session":"self","thread":"side","task":"hi","agent":"echo"}] [tool deck__fork_session {"session":"self"}]`)
		if len(got) != 4 {
			t.Fatalf("%q", got)
		}
		for i, text := range got {
			refused := strings.HasPrefix(text, "forbidden: an agent must not use this on session self, in which it runs itself")
			if want := i >= 2 && !own; refused != want {
				t.Errorf("call %d, own session allowed %t: %s", i, own, text)
			}
		}
		task, err := d.Session("other").Snapshot(t.Context(), view.Query{Limit: 1, Before: 2})
		if err != nil || len(task.Messages) != 1 || task.Messages[0].Actor != "agent:self" {
			t.Errorf("%v %+v", err, task.Messages)
		}
		if err := d.AwaitIdle(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestAgentCannotAnswer: an agent asks for each tool of the endpoint, as for those of any
// other server, and no tool answers such a question.
func TestAgentCannotAnswer(t *testing.T) {
	d := openWithAgent(t, deck.Options{MCPWrite: true, MCPOwnSession: true}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run, err := d.Run(ctx, api.Task{Text: `[tool deck__list_sessions {}] [tool deck__answer {"session":"s"}] [tool deck__answer_permission {"session":"s"}]`, Agent: "coder"})
	if err != nil {
		t.Fatal(err)
	}
	var questions, unknown int
	for e, err := range d.Follow(ctx, run.Session, run.Offset) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case tapedeck.PermissionRequested:
			questions++
			if _, err := d.Session(run.Session).Answer(ctx, api.Answer{Permission: idOf(t, e), Option: "reject_once"}); err != nil {
				t.Error(err)
			}
		case tapedeck.ToolCallResult:
			if strings.Contains(string(e.Data), "There is no tool") {
				unknown++
			}
		}
		if e.Type == tapedeck.RunFinished {
			break
		}
	}
	if questions != 1 || unknown != 2 {
		t.Errorf("%d questions, %d unknown tools", questions, unknown)
	}
}

func idOf(t *testing.T, e tapedeck.Event) string {
	t.Helper()
	var q tapedeck.Question
	if err := json.Unmarshal(e.Data, &q); err != nil {
		t.Fatal(err)
	}
	return q.ID
}
