package rest

import (
	"context"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/view"
)

// A Route is an endpoint of the HTTP API. docs/http.md has a section for each.
type Route struct {
	Method     string
	Path       string   // below [Root], as a pattern of [http.ServeMux]
	Summary    string   // one sentence
	Parameters []string // the names of the parameters of the query

	// Request is a zero value of the type that the JSON body decodes to. It is nil
	// if the endpoint reads no body, or a body that is not a JSON object.
	Request  any
	Optional bool // the body may be absent

	// Answer is a zero value of the type that the JSON answer is encoded from. It is
	// nil if the answer has no body, is not JSON, or is written piece by piece.
	Answer any
	Status int // of an answer that is not an error

	serve func(*handler, http.ResponseWriter, *http.Request) error // answers, or returns the error to answer with
}

// Routes returns every endpoint.
func Routes() []Route {
	var all []Route
	for _, part := range [][]Route{sessionRoutes(), runRoutes(), inputRoutes(), historyRoutes(), eventRoutes(), instanceRoutes(), viewRoutes(), fileRoutes(), workflowRoutes(), tokenRoutes(), serverRoutes()} {
		all = append(all, part...)
	}
	return all
}

func sessionRoutes() []Route {
	return []Route{
		{
			Method: http.MethodPost, Path: "/sessions", Summary: "Create a session.",
			Request: createRequest{}, Optional: true, Answer: tapedeck.Session{}, Status: http.StatusCreated,
			serve: (*handler).create,
		},
		{
			Method: http.MethodGet, Path: "/sessions", Summary: "List sessions, newest first.",
			Parameters: listParameters, Answer: api.Sessions{}, Status: http.StatusOK,
			serve: (*handler).list,
		},
		{
			Method: http.MethodGet, Path: "/sessions/{id}", Summary: "Show a session.",
			Answer: tapedeck.Session{}, Status: http.StatusOK,
			serve: (*handler).show,
		},
		{
			Method: http.MethodPatch, Path: "/sessions/{id}", Summary: "Change the title or the labels of a session.",
			Request: api.Rename{}, Answer: tapedeck.Session{}, Status: http.StatusOK,
			serve: (*handler).rename,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/close", Summary: "Close a session. It stays closed.",
			Request: api.Close{}, Optional: true, Answer: tapedeck.Session{}, Status: http.StatusOK,
			serve: (*handler).close,
		},
		{
			Method: http.MethodDelete, Path: "/sessions/{id}", Summary: "Delete a session and its events.",
			Status: http.StatusNoContent,
			serve:  (*handler).delete,
		},
	}
}

func runRoutes() []Route {
	return []Route{
		{
			Method: http.MethodGet, Path: "/agents", Summary: "List the agents that accept tasks.",
			Answer: api.Agents{}, Status: http.StatusOK,
			serve: (*handler).agents,
		},
		{
			Method: http.MethodPost, Path: "/sessions/run", Summary: "Create a session and start a task in it.",
			Request: api.Task{}, Answer: api.Started{}, Status: http.StatusAccepted,
			serve: (*handler).run,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/task", Summary: "Start the next task of a session.",
			Request: api.Task{}, Answer: api.Started{}, Status: http.StatusAccepted,
			serve: (*handler).task,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/cancel", Summary: "Cancel a run.",
			Request: api.Cancel{}, Optional: true, Answer: api.Cancelled{}, Status: http.StatusOK,
			serve: (*handler).cancel,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/renew", Summary: "Say that the program which writes a run is alive.",
			Request: api.Renewal{}, Answer: api.Renewed{}, Status: http.StatusOK,
			serve: (*handler).renew,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/resume", Summary: "Continue a run that was cancelled, interrupted or has failed.",
			Request: api.Resume{}, Optional: true, Answer: api.Started{}, Status: http.StatusAccepted,
			serve: (*handler).resume,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/permissions/{pid}", Summary: "Answer a question of an agent.",
			Request: api.Answer{}, Answer: api.Answered{}, Status: http.StatusOK,
			serve: (*handler).answer,
		},
		{
			Method: http.MethodGet, Path: "/inbox", Summary: "List the questions of all sessions that wait for people, newest first.",
			Parameters: inboxParameters, Answer: api.Inbox{}, Status: http.StatusOK,
			serve: (*handler).inbox,
		},
		{
			Method: http.MethodGet, Path: "/usage", Summary: "Add up what the ended runs of all sessions used, by day, agent and model.",
			Parameters: usageParameters, Answer: api.Usage{}, Status: http.StatusOK,
			serve: (*handler).usage,
		},
	}
}

func inputRoutes() []Route {
	return []Route{
		{
			Method: http.MethodGet, Path: "/sessions/{id}/inputs", Summary: "List the inputs that wait, and the newest of those that have ended.",
			Parameters: []string{"thread"}, Answer: api.Inputs{}, Status: http.StatusOK,
			serve: (*handler).inputs,
		},
		{
			Method: http.MethodPatch, Path: "/sessions/{id}/inputs/{input}", Summary: "Change the place of an input that waits.",
			Request: api.Move{}, Optional: true, Answer: view.Input{}, Status: http.StatusOK,
			serve: (*handler).moveInput,
		},
		{
			Method: http.MethodDelete, Path: "/sessions/{id}/inputs/{input}", Summary: "Withdraw an input that waits.",
			Parameters: []string{"actor"}, Answer: view.Input{}, Status: http.StatusOK,
			serve: (*handler).withdrawInput,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/inputs/{input}/take", Summary: "Give an input to the open run of an outside program.",
			Request: api.Take{}, Answer: api.Taken{}, Status: http.StatusOK,
			serve: (*handler).takeInput,
		},
	}
}

func historyRoutes() []Route {
	return []Route{
		{
			Method: http.MethodPost, Path: "/sessions/{id}/rewind", Summary: "Revert the events from an offset or an invocation on.",
			Request: api.Rewind{}, Answer: api.Rewound{}, Status: http.StatusOK,
			serve: (*handler).rewind,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/undo", Summary: "Undo a rewind, a clear or an overwrite.",
			Request: undoRequest{}, Optional: true, Answer: api.Rewound{}, Status: http.StatusOK,
			serve: (*handler).undo,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/overwrite", Summary: "Revert the events from an offset on, because others replace them.",
			Request: api.Overwrite{}, Answer: api.Rewound{}, Status: http.StatusOK,
			serve: (*handler).overwrite,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/clear", Summary: "Revert all events of a session or a thread.",
			Request: api.Clear{}, Optional: true, Answer: api.Rewound{}, Status: http.StatusOK,
			serve: (*handler).clear,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/fork", Summary: "Create a session that shares the events of this one.",
			Request: api.Fork{}, Optional: true, Answer: tapedeck.Session{}, Status: http.StatusCreated,
			serve: (*handler).fork,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/erase", Summary: "Remove the payloads of events for good.",
			Request: api.Erase{}, Answer: api.Erased{}, Status: http.StatusOK,
			serve: (*handler).erase,
		},
	}
}

func eventRoutes() []Route {
	return []Route{
		{
			Method: http.MethodPost, Path: "/sessions/{id}/events", Summary: "Append events, all of them or none.",
			Answer: api.Appended{}, Status: http.StatusOK,
			serve: (*handler).append,
		},
		{
			Method: http.MethodGet, Path: "/sessions/{id}/events", Summary: "Read a page of events, or a stream if Accept has text/event-stream.",
			Parameters: eventsParameters, Answer: api.Events{}, Status: http.StatusOK,
			serve: (*handler).events,
		},
		{
			Method: http.MethodGet, Path: "/sessions/{id}/events/history", Summary: "Read the finished and active events in the form of the SSE task protocol.",
			Parameters: []string{"at", "from", "fromOffset", "limit", "thread", "invocation"}, Answer: api.Events{}, Status: http.StatusOK,
			serve: (*handler).serveTask,
		},
		{
			Method: http.MethodGet, Path: "/sessions/{id}/stream", Summary: "Follow the events as Server-Sent Events.",
			Parameters: streamParameters, Status: http.StatusOK,
			serve: (*handler).stream,
		},
		{
			Method: http.MethodGet, Path: "/ws", Summary: "Open a WebSocket that reads and appends events of any session.",
			Status: http.StatusSwitchingProtocols,
			serve:  (*handler).socket,
		},
		{
			Method: http.MethodGet, Path: "/sessions/{id}/ws", Summary: "Open a WebSocket of one session.",
			Status: http.StatusSwitchingProtocols,
			serve:  (*handler).socket,
		},
		{
			Method: http.MethodGet, Path: "/sessions/{id}/ws/replay", Summary: "Open a WebSocket that shows the elements of a workflow.",
			Parameters: []string{"delta", "content", "user", "now"}, Status: http.StatusSwitchingProtocols,
			serve: (*handler).socket,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/presence", Summary: "Report who looks at a session, and where.",
			Request: presenceRequest{}, Answer: api.Present{}, Status: http.StatusOK,
			serve: (*handler).presence,
		},
		{
			Method: http.MethodGet, Path: "/sessions/{id}/presence", Summary: "List who looks at a session now.",
			Answer: api.Present{}, Status: http.StatusOK,
			serve: (*handler).present,
		},
	}
}

// instanceRoutes are the repository of contexts.
func instanceRoutes() []Route {
	return []Route{
		{
			Method: http.MethodPost, Path: "/sessions/{id}/instances", Summary: "Create an instance of an agent.",
			Request: api.NewInstance{}, Answer: api.ContextInstance{}, Status: http.StatusCreated,
			serve: (*handler).createInstance,
		},
		{
			Method: http.MethodGet, Path: "/instances/{iid}", Summary: "Find an instance by its id.",
			Answer: api.ContextInstance{}, Status: http.StatusOK,
			serve: (*handler).findInstance,
		},
		{
			Method: http.MethodGet, Path: "/sessions/{id}/instances/{iid}", Summary: "Show an instance.",
			Answer: api.ContextInstance{}, Status: http.StatusOK,
			serve: (*handler).instance,
		},
		{
			Method: http.MethodGet, Path: "/sessions/{id}/instances/{iid}/events", Summary: "Read the context of an instance.",
			Parameters: contextEventsParameters, Answer: api.InstanceEvents{}, Status: http.StatusOK,
			serve: (*handler).contextEvents,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/instances/{iid}/events", Summary: "Append to the context of an instance.",
			Request: api.NewContextEvent{}, Answer: view.ContextEvent{}, Status: http.StatusCreated,
			serve: (*handler).appendContext,
		},
		{
			Method: http.MethodDelete, Path: "/sessions/{id}/instances/{iid}/events", Summary: "Revert the context of an instance after a sequence number.",
			Parameters: revertContextParameters, Answer: api.ContextReverted{}, Status: http.StatusOK,
			serve: (*handler).revertContext,
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/instances/{iid}/copy", Summary: "Copy the context of an instance to another one.",
			Request: api.CopyContext{}, Answer: api.ContextCopied{}, Status: http.StatusOK,
			serve: (*handler).copyContext,
		},
	}
}

// viewRoutes are the views. Each has the parameter at, the offset as of which it is
// wanted.
func viewRoutes() []Route {
	const thread, limit, before = "thread", "limit", "before"
	return []Route{
		viewRoute("snapshot", "Show the conversation and everything that belongs to it.", view.Snapshot{},
			ofSnapshot((*view.Snapshot).Exact), thread, limit, before),
		viewRoute("messages", "Show the messages of the conversation.", api.Messages{}, ofSnapshot(messages), thread, limit, before),
		viewRoute("state", "Show the shared state.", api.SharedState{}, ofSnapshot(state), thread),
		viewRoute("plan", "Show the newest plan.", api.CurrentPlan{}, ofSnapshot(plan), thread),
		viewRoute("threads", "List the threads.", api.Threads{}, ofSnapshot(threads)),
		viewRoute("tasks", "List the newest tasks.", api.Tasks{}, (*handler).tasks, thread, limit, before),
		viewRoute("instances", "List the instances of agents.", api.Instances{}, (*handler).instances),
		viewRoute("context", "Show what a model receives.", api.Context{}, (*handler).context, "instance", thread, limit),
		viewRoute("summary", "Sum up what the session has used and changed.", view.Summary{}, (*handler).summary, "format"),
		viewRoute("branches", "List the reverted parts of the session and its forks.", api.Branches{}, (*handler).branches),
		viewRoute("workflow", "Show the workflow of the session.", api.SessionWorkflow{}, (*handler).sessionWorkflow, thread),
		viewRoute("replay-index", "Show the data that a player needs.", view.Index{}, (*handler).replayIndex, limit),
	}
}

// viewRoute returns the route of a view: the last segment of its path, its summary, a
// zero value of its type, and its parameters besides at.
func viewRoute(name, summary string, answer any, makes func(*handler, context.Context, *viewing) (any, error), more ...string) Route {
	parameters := append([]string{"at"}, more...)
	return Route{
		Method: http.MethodGet, Path: "/sessions/{id}/" + name, Summary: summary,
		Parameters: parameters, Answer: answer, Status: http.StatusOK,
		serve: makeView(makes).serve(parameters),
	}
}

func fileRoutes() []Route {
	return []Route{
		{
			Method: http.MethodPost, Path: "/sessions/{id}/export", Summary: "Export a session as a file.",
			Parameters: exportParameters, Request: api.ExportRequest{}, Status: http.StatusOK,
			serve: (*handler).export,
		},
		{
			Method: http.MethodPost, Path: "/import", Summary: "Create sessions from recorded conversations or from exports.",
			Parameters: importParameters, Answer: api.Imported{}, Status: http.StatusCreated,
			serve: (*handler).importSessions,
		},
		{
			Method: http.MethodGet, Path: "/diff", Summary: "Compare the conversations of two sessions.",
			Parameters: diffParameters, Answer: view.Diff{}, Status: http.StatusOK,
			serve: (*handler).diff,
		},
		{
			Method: http.MethodGet, Path: "/openapi.json", Summary: "Describe this API as OpenAPI 3.1.",
			Status: http.StatusOK,
			serve:  (*handler).openAPI,
		},
		{
			Method: http.MethodGet, Path: "/search", Summary: "Find text in the conversations.",
			Parameters: searchParameters, Answer: search.Result{}, Status: http.StatusOK,
			serve: (*handler).search,
		},
	}
}
