package rest

import (
	"context"
	"errors"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/intake"
)

// Workflows keeps diagrams of workflows and starts them.
type Workflows interface {
	List(ctx context.Context) ([]api.DiagramVersion, error)
	Get(ctx context.Context, name, version string) (api.Diagram, error)
	Put(ctx context.Context, n api.NewWorkflow) (api.Diagram, error)
	Delete(ctx context.Context, name string) error
	Check(ctx context.Context, c api.CheckWorkflow) (api.Diagram, error)
	Run(ctx context.Context, r api.RunWorkflow) (api.Started, error)
}

// workflowRoutes are the stored workflows.
func workflowRoutes() []Route {
	return []Route{
		{
			Method: http.MethodGet, Path: "/workflows", Summary: "List the stored workflows.",
			Answer: api.Workflows{}, Status: http.StatusOK,
			serve: withWorkflows((*handler).workflows),
		},
		{
			Method: http.MethodGet, Path: "/workflows/{name}", Summary: "Show a stored workflow with its diagram.",
			Parameters: []string{"version"}, Answer: api.Diagram{}, Status: http.StatusOK,
			serve: withWorkflows((*handler).workflow),
		},
		{
			Method: http.MethodPut, Path: "/workflows/{name}", Summary: "Store a diagram as the current version of a workflow.",
			Request: api.NewWorkflow{}, Answer: api.Diagram{}, Status: http.StatusOK,
			serve: withWorkflows((*handler).putWorkflow),
		},
		{
			Method: http.MethodDelete, Path: "/workflows/{name}", Summary: "Delete a stored workflow with all its versions.",
			Status: http.StatusNoContent,
			serve:  withWorkflows((*handler).deleteWorkflow),
		},
		{
			Method: http.MethodPost, Path: "/workflows/check", Summary: "Check a diagram and show what a run of it needs.",
			Request: api.CheckWorkflow{}, Answer: api.Diagram{}, Status: http.StatusOK,
			serve: withWorkflows((*handler).checkWorkflow),
		},
		{
			Method: http.MethodPost, Path: "/workflows/run", Summary: "Start a workflow.",
			Request: api.RunWorkflow{}, Answer: api.Started{}, Status: http.StatusAccepted,
			serve: withWorkflows((*handler).runWorkflow),
		},
		{
			Method: http.MethodPost, Path: "/sessions/{id}/messages", Summary: "Send a message to the workflow that runs in a session.",
			Request: api.SendMessage{}, Answer: api.MessageSent{}, Status: http.StatusOK,
			serve: (*handler).sendMessage,
		},
	}
}

// withWorkflows refuses the request if the server keeps no workflows.
func withWorkflows(serve func(*handler, http.ResponseWriter, *http.Request) error) func(*handler, http.ResponseWriter, *http.Request) error {
	return func(h *handler, w http.ResponseWriter, r *http.Request) error {
		if h.Workflows == nil {
			return tapedeck.Errorf(tapedeck.Unsupported, "this server does not offer workflows")
		}
		return serve(h, w, r)
	}
}

func (h *handler) workflows(w http.ResponseWriter, r *http.Request) error {
	if q := httpapi.ParseQuery(r); q.Err != nil {
		return q.Err
	}
	list, err := h.Workflows.List(r.Context())
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.Workflows{Workflows: httpapi.OrEmpty(list)})
}

func (h *handler) workflow(w http.ResponseWriter, r *http.Request) error {
	q := httpapi.ParseQuery(r, "version")
	version := q.String("version")
	if q.Err != nil {
		return q.Err
	}
	out, err := h.Workflows.Get(r.Context(), r.PathValue("name"), version)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, out)
}

// diagramTypes are the content types of a body that is the diagram itself.
const diagramTypes = "application/xml or application/json"

// putWorkflow stores a diagram. The body is the XML, or an object that has it.
func (h *handler) putWorkflow(w http.ResponseWriter, r *http.Request) error {
	if q := httpapi.ParseQuery(r); q.Err != nil {
		return q.Err
	}
	n, err := h.newWorkflow(w, r)
	if err != nil {
		return err
	}
	n.Name = r.PathValue("name")
	out, err := h.Workflows.Put(r.Context(), n)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, out)
}

func (h *handler) newWorkflow(w http.ResponseWriter, r *http.Request) (api.NewWorkflow, error) {
	switch mediaType(r) {
	case "application/json":
		return decode[api.NewWorkflow](h, w, r)
	case "application/xml", "text/xml", "application/bpmn+xml", "application/octet-stream":
	default:
		return api.NewWorkflow{}, unsupported(r, diagramTypes)
	}
	limited, err := limitBody(w, r, api.MaxDiagram)
	var body []byte
	if err == nil {
		body, err = intake.ReadAll(limited, r.ContentLength)
	}
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return api.NewWorkflow{}, tapedeck.Errorf(tapedeck.TooLarge, "the diagram is larger than %d MiB", api.MaxDiagram>>20)
	}
	return api.NewWorkflow{BPMN: string(body)}, readError(err)
}

func (h *handler) deleteWorkflow(w http.ResponseWriter, r *http.Request) error {
	if q := httpapi.ParseQuery(r); q.Err != nil {
		return q.Err
	}
	if err := h.Workflows.Delete(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *handler) checkWorkflow(w http.ResponseWriter, r *http.Request) error {
	if q := httpapi.ParseQuery(r); q.Err != nil {
		return q.Err
	}
	in, err := decode[api.CheckWorkflow](h, w, r)
	if err != nil {
		return err
	}
	out, err := h.Workflows.Check(r.Context(), in)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, out)
}

func (h *handler) runWorkflow(w http.ResponseWriter, r *http.Request) error {
	if q := httpapi.ParseQuery(r); q.Err != nil {
		return q.Err
	}
	in, err := decode[api.RunWorkflow](h, w, r)
	if err != nil {
		return err
	}
	started, err := h.Workflows.Run(r.Context(), in)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusAccepted, started)
}

// sessionWorkflow answers with the workflow of a session.
func (h *handler) sessionWorkflow(ctx context.Context, v *viewing) (any, error) {
	thread := v.query.ID("thread")
	if v.query.Err != nil {
		return nil, v.query.Err
	}
	out, err := h.Views.Workflow(ctx, v.session.ID, thread, v.at)
	return api.SessionWorkflow{At: v.at, Workflow: out}, err
}

// sendMessage sends a message to the workflow of a session.
func (h *handler) sendMessage(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decode[api.SendMessage](h, w, r)
	if err != nil {
		return err
	}
	in.Session = id
	done, err := h.Verbs.SendMessage(r.Context(), in)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, done)
}
