package mcp_test

import (
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
)

func params(name string, arguments map[string]any) *sdk.CallToolParams {
	return &sdk.CallToolParams{Name: name, Arguments: arguments}
}

// TestWrite: an agent runs another one, forks, rewinds, undoes it, and cancels.
func TestWrite(t *testing.T) {
	both(t, func(t *testing.T, version string) {
		w := newWorld(t, deck.Options{MCPWrite: true})
		p := w.connect(t, version)
		agents, _ := get[api.Agents](p, "list_agents", nil)
		if len(agents.Agents) != 2 || agents.Agents[0].Name != "hello" {
			t.Errorf("%+v", agents)
		}
		started, text := get[api.Started](p, "run_agent", map[string]any{"task": "hi", "title": "A run"})
		w.await(t, started)
		if !strings.Contains(text, started.Session) || started.Status != tapedeck.StatusRunning {
			t.Errorf("%+v %s", started, text)
		}
		c, _ := get[page](p, "read_session", map[string]any{"session": started.Session})
		if len(c.Messages) != 2 || c.Messages[0].Actor != "mcp:test" {
			t.Errorf("%+v", c)
		}
		fork, _ := get[tapedeck.Session](p, "fork_session", map[string]any{"session": started.Session, "at": 2, "title": "A fork"})
		if fork.Parent != started.Session || fork.ForkedAt != 2 || fork.Title != "A fork" {
			t.Errorf("%+v", fork)
		}
		rewound, _ := get[api.Rewound](p, "rewind_session", map[string]any{"session": started.Session, "before_invocation_id": started.Invocation})
		if c, _ := get[page](p, "read_session", map[string]any{"session": started.Session}); len(c.Messages) != 0 {
			t.Errorf("after the rewind: %+v", c)
		}
		get[api.Rewound](p, "rewind_session", map[string]any{"session": started.Session, "before_invocation_id": rewound.Marker})
		if c, _ := get[page](p, "read_session", map[string]any{"session": started.Session}); len(c.Messages) != 2 {
			t.Errorf("after the undo: %+v", c)
		}
		slow, _ := get[api.Started](p, "run_agent", map[string]any{"session": started.Session, "task": "hi", "agent": "slow"})
		if got := p.fail("run_agent", map[string]any{"session": started.Session, "task": "hi"}); !strings.HasPrefix(got, "conflict: ") {
			t.Error(got)
		}
		cancelled, _ := get[api.Cancelled](p, "cancel_run", map[string]any{"session": started.Session})
		if cancelled.Invocation != slow.Invocation {
			t.Errorf("%+v", cancelled)
		}
	})
}

// TestRefusedArguments: the tools take no member that is not for callers, and say what is
// wrong.
func TestRefusedArguments(t *testing.T) {
	w := newWorld(t, deck.Options{MCPWrite: true})
	w.create(t, "s", "hi")
	p := w.connect(t, stateful)
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"run_agent", map[string]any{"task": "x", "config": map[string]any{"system": "y"}}, `unexpected additional properties ["config"]`},
		{"run_agent", map[string]any{"task": "x", "actor": "user:ada"}, `unexpected additional properties ["actor"]`},
		{"run_agent", map[string]any{"task": ""}, "invalid: "},
		{"run_agent", map[string]any{"task": "x", "agent": "nobody"}, "not_found: "},
		{"run_agent", map[string]any{"task": "x", "session": "s", "title": "t"}, "invalid: title is for a new session"},
		{"rewind_session", map[string]any{"session": "s"}, "invalid: "},
		{"rewind_session", map[string]any{"session": "s", "to_offset": -1}, "minimum"},
		{"fork_session", map[string]any{"session": "s", "id": "s"}, "conflict: "},
		{"fork_session", map[string]any{"session": "s", "owner": "x"}, `unexpected additional properties ["owner"]`},
		{"cancel_run", map[string]any{"session": "s"}, "conflict: "},
		{"cancel_run", map[string]any{}, `missing properties: ["session"]`},
		{"read_session", map[string]any{"session": "../s"}, "invalid: "},
		{"read_session", map[string]any{"session": strings.Repeat("s", 1000)}, "invalid: "},
		{"read_session", map[string]any{"session": "s", "thread": "-t"}, `invalid: the thread "-t" must begin`},
		{"read_events", map[string]any{"session": "s", "invocation": "-i"}, `invalid: the invocation "-i" must begin`},
		{"list_sessions", map[string]any{"parent": "-p"}, `invalid: the parent "-p" must begin`},
		{"search_sessions", map[string]any{"query": "x", "session": "-s"}, `invalid: the session "-s" must begin`},
		{"run_agent", map[string]any{"task": "x", "session": "-s"}, `invalid: the session "-s" must begin`},
		{"run_agent", map[string]any{"task": "x", "thread": "-t"}, `invalid: the thread "-t" must begin`},
		{"cancel_run", map[string]any{"session": "s", "invocation": "-i"}, `invalid: the invocation "-i" must begin`},
		{"rewind_session", map[string]any{"session": "s", "before_invocation_id": "-i"}, `invalid: the invocation "-i" must begin`},
		{"fork_session", map[string]any{"session": "s", "id": "-f"}, `invalid: the id "-f" must begin`},
		{"read_session", map[string]any{"session": "s", "limit": 101}, "maximum"},
		{"read_session", map[string]any{"session": "s", "limit": 0}, "minimum"},
		{"read_session", map[string]any{"session": "s", "at": 99}, "invalid: "},
		{"read_session", map[string]any{"session": "s", "at": "2"}, "type"},
		{"read_events", map[string]any{"session": "s", "from": 99}, "invalid: "},
		{"read_events", map[string]any{"session": "s", "view": "raw"}, "enum"},
		{"read_events", map[string]any{"session": "s", "channels": []string{"nope"}}, "enum"},
		{"read_events", map[string]any{"session": "s", "reverse": true, "from": 0}, "invalid: there are no events before offset 0"},
		{"list_sessions", map[string]any{"cursor": "nope"}, "invalid: "},
		{"list_sessions", map[string]any{"from": "yesterday"}, "invalid: from must be a time"},
		{"search_sessions", map[string]any{"query": "-x"}, "invalid: "},
		{"diff_sessions", map[string]any{"a": "s", "b": "nope"}, "not_found: "},
		{"session_summary", map[string]any{"session": "nope"}, "not_found: "},
	} {
		if got := p.fail(c.tool, c.arguments); !strings.Contains(got, c.want) {
			t.Errorf("%s %v: %s", c.tool, c.arguments, got)
		}
	}
}

// TestOwnSession: an agent that says in which session it runs cannot change that session,
// unless that is allowed.
func TestOwnSession(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		w := newWorld(t, deck.Options{MCPWrite: true, MCPOwnSession: allowed})
		w.create(t, "own", "hi")
		w.create(t, "other", "hi")
		p := w.connect(t, stateless)
		for _, session := range []string{"own", "other"} {
			for tool, arguments := range map[string]map[string]any{
				"fork_session":   {"session": session},
				"run_agent":      {"session": session, "task": "x", "thread": "side"},
				"cancel_run":     {"session": session, "invocation": "none"},
				"rewind_session": {"session": session, "to_offset": 1},
			} {
				call := params(tool, arguments)
				call.Meta = sdk.Meta{"dev.tapedeck/session": "own"}
				r, err := p.CallTool(t.Context(), call)
				if err != nil {
					t.Fatal(err)
				}
				refused := strings.HasPrefix(text(r), "forbidden: ")
				if want := session == "own" && !allowed; refused != want {
					t.Errorf("%s on %s, allowed %t: %s", tool, session, allowed, text(r))
				}
			}
		}
	}
}
