package mcp

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/mcpname"
)

// The requests are those of the HTTP API, with the session that is in the path there. The
// actor is the client. A request cannot configure the agent, which would let a caller choose
// what the agent may do.

type runInput struct {
	Session string `json:"session,omitempty" jsonschema:"the id of the session; without it, a new one"`
	api.Task
}

type cancelInput struct {
	Session string `json:"session" jsonschema:"the id of the session"`
	api.Cancel
}

type rewindInput struct {
	Session string `json:"session" jsonschema:"the id of the session"`
	api.Rewind
}

type forkInput struct {
	Session string `json:"session" jsonschema:"the id of the session to fork"`
	api.Fork
}

// addWriteTools adds the tools that change sessions, and the list of agents, which only they
// need. There is no tool that answers the questions of agents: people answer them.
func (s *server) addWriteTools() {
	addTool(s, tool{
		name: "list_agents", title: "List agents", description: "List the agents that run_agent can start. The first is the default.",
		request: requestSchema[struct{}]("", nil), answer: component("Agents"),
	}, s.agents)
	addTool(s, tool{
		name: "run_agent", title: "Give an agent a task",
		description: "Give an agent a task, in a session that exists or in a new one. The answer comes when the task is stored; the run continues. " +
			"session_summary says when it has ended, read_session has the result. A thread with an open run is a conflict.",
		request: requestSchema[runInput]("Task", map[string]field{"config": nil, "actor": nil}), answer: component("Started"),
		changes: &changes{destructive: true, openWorld: true},
	}, s.run)
	addTool(s, tool{
		name: "cancel_run", title: "Cancel a run", description: "Stop a run. Its partial text is kept.",
		request: requestSchema[cancelInput]("Cancel", nil), answer: component("Cancelled"), changes: &changes{destructive: true},
	}, s.cancel)
	addTool(s, tool{
		name: "rewind_session", title: "Rewind a session",
		description: "Take a session, or one thread of it, back to what it was before an invocation or an offset: give exactly one of before_invocation_id and to_offset. " +
			"Open runs in the reverted part are cancelled first. Nothing is deleted: a rewind before the answer's marker undoes it.",
		request: requestSchema[rewindInput]("Rewind", map[string]field{"actor": nil, "to_offset": offset}), answer: component("Rewound"),
		changes: &changes{destructive: true},
	}, s.rewind)
	addTool(s, tool{
		name: "fork_session", title: "Fork a session",
		description: "Create a session that shares the events of another one below an offset, and continues on its own.",
		request:     requestSchema[forkInput]("Fork", map[string]field{"actor": nil, "owner": nil, "at": offset}), answer: component("Session"),
		changes: &changes{},
	}, s.fork)
}

func (s *server) agents(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (answer, error) {
	list, err := s.Writer.Agents(ctx)
	if err != nil {
		return answer{}, err
	}
	var b strings.Builder
	for i := range list {
		fmt.Fprintf(&b, "%s (%s) %s\n", list[i].Name, list[i].Kind, brief(list[i].Description))
	}
	if len(list) == 0 {
		list = []tapedeck.Agent{} // not null
		b.WriteString("There are no agents.\n")
	}
	return answer{b.String(), api.Agents{Agents: list}}, nil
}

func (s *server) run(ctx context.Context, req *sdk.CallToolRequest, in runInput) (answer, error) {
	if err := cmp.Or(checkOptionalID("the session", in.Session), checkOptionalID("the thread", in.Thread), s.mayChange(req, in.Session)); err != nil {
		return answer{}, err
	}
	if in.Session != "" && in.Title != "" {
		return answer{}, tapedeck.Errorf(tapedeck.Invalid, "title is for a new session; session %s has its title", in.Session)
	}
	in.Task.Session, in.Actor = in.Session, actor(req)
	out, err := s.Writer.Run(ctx, in.Task)
	return answer{fmt.Sprintf("Run %s has started in session %s at offset %d.", out.Invocation, out.Session, out.Offset), out}, err
}

func (s *server) cancel(ctx context.Context, req *sdk.CallToolRequest, in cancelInput) (answer, error) {
	if err := cmp.Or(tapedeck.CheckID("the session", in.Session), checkOptionalID("the invocation", in.Invocation), s.mayChange(req, in.Session)); err != nil {
		return answer{}, err
	}
	out, err := s.Writer.Cancel(ctx, in.Session, in.Invocation)
	return answer{fmt.Sprintf("Run %s was cancelled. It can be resumed: %t.", out.Invocation, out.Resumable), out}, err
}

func (s *server) rewind(ctx context.Context, req *sdk.CallToolRequest, in rewindInput) (answer, error) {
	err := cmp.Or(
		tapedeck.CheckID("the session", in.Session), checkOptionalID("the thread", in.Thread),
		checkOptionalID("the invocation", in.BeforeInvocation), s.mayChange(req, in.Session),
	)
	if err != nil {
		return answer{}, err
	}
	in.Rewind.Session, in.Actor = in.Session, actor(req)
	out, err := s.Writer.Rewind(ctx, in.Rewind)
	return answer{
		fmt.Sprintf("Session %s was rewound: the events from offset %d on are reverted. A rewind with before_invocation_id %s undoes it.", out.Session, out.To, out.Marker), out,
	}, err
}

func (s *server) fork(ctx context.Context, req *sdk.CallToolRequest, in forkInput) (answer, error) {
	if err := cmp.Or(tapedeck.CheckID("the session", in.Session), checkOptionalID("the id", in.ID), s.mayChange(req, in.Session)); err != nil {
		return answer{}, err
	}
	in.Parent, in.Actor = in.Session, actor(req)
	out, err := s.Writer.Fork(ctx, in.Fork)
	if err != nil {
		return answer{}, err
	}
	return answer{"The fork is " + sessionLine(&out), out}, nil
}

// mayChange refuses the session of the caller: its agent would change the conversation
// that it is in.
func (s *server) mayChange(req *sdk.CallToolRequest, session string) error {
	own, sent := req.Params.Meta[mcpname.Session]
	if !sent || s.OwnSession || own != session {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Forbidden, "an agent must not use this on session %s, in which it runs itself", session).
		WithHint("this server does not allow it; ask the user to do it")
}

// actor returns who the client says it is.
func actor(req *sdk.CallToolRequest) string {
	name := ""
	if info := req.ClientInfo(); info != nil {
		name = or(info.Name, "")
	}
	if own, ok := req.Params.Meta[mcpname.Session].(string); ok && tapedeck.CheckID("the session", own) == nil {
		return "agent:" + own
	}
	if name == "" {
		return "mcp"
	}
	return "mcp:" + name
}
