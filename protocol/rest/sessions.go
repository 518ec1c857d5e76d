package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// The number of items of a page.
const (
	pageLimit   = 1000 // the most, and the default for events
	listDefault = 100  // the default for sessions
)

// A createRequest is the body of POST /sessions: the session, and labels that have
// members of their own.
type createRequest struct {
	api.NewSession
	Project string `json:"projectId,omitempty"` // the label of this name
	Task    string `json:"taskId,omitempty"`    // the label of this name
}

func (h *handler) create(w http.ResponseWriter, r *http.Request) error {
	if q := httpapi.ParseQuery(r); q.Err != nil {
		return q.Err
	}
	in, err := decodeOptional[createRequest](h, w, r)
	if err != nil {
		return err
	}
	in.Labels = withLabels(in.Labels, labelProject, in.Project, labelTask, in.Task)
	in.State = given(in.State)
	if _, said := in.Labels[api.PresenceLabel]; isChannels(r) && !said { // presence is one of the channels
		in.Labels = withLabels(in.Labels, api.PresenceLabel, api.PresenceStored)
	}
	s, err := h.Verbs.Create(r.Context(), in.NewSession)
	if err != nil {
		return err
	}
	w.Header().Set("Location", httpapi.Prefix(r)+Root+"/sessions/"+s.ID)
	return httpapi.WriteJSON(w, http.StatusCreated, s)
}

// statuses are the values of the parameter status.
var statuses = []string{
	string(tapedeck.StatusIdle), string(tapedeck.StatusPending), string(tapedeck.StatusRunning),
	string(tapedeck.StatusWaiting), string(tapedeck.StatusComplete), string(tapedeck.StatusFailed), string(tapedeck.StatusCancelled),
	string(tapedeck.StatusInterrupted),
}

// listClosed is another value of the parameter status: sessions that are closed, with
// any status.
const listClosed = "closed"

var listParameters = []string{
	"status", "agent", "owner", "parent", "from", "to", "q", "cursor", "limit", labelProject, labelTask, "label", "without_label", "summary", "sort", "order",
}

// sorts are the values of the parameter sort; see [tapedeck.Filter].
var sorts = []string{sortCreated, "activity", sortTitle, "tokens", "cost", "duration", "failures"}

const (
	sortCreated = "created" // "" in the filter
	sortTitle   = "title"
)

func (h *handler) list(w http.ResponseWriter, r *http.Request) error {
	q := httpapi.ParseQuery(r, listParameters...)
	f := tapedeck.Filter{
		Labels: parseLabels(q), Without: q.List("without_label", tapedeck.CheckID),
		Status: tapedeck.Status(q.OneOf("status", "", append([]string{listClosed}, statuses...)...)),
		Agent:  q.Filter("agent"), Owner: q.Filter("owner"), Parent: q.ID("parent"),
		From: q.Time("from"), To: q.Time("to"),
		Query: q.String("q"), Cursor: q.String("cursor"), Limit: q.Limit(listDefault, pageLimit),
	}
	f.Sort = q.OneOf("sort", sortCreated, sorts...)
	usual := "desc"
	if f.Sort == sortTitle {
		usual = "asc"
	}
	if f.Sort == sortCreated {
		f.Sort = ""
	}
	f.Ascending = q.OneOf("order", usual, "asc", "desc") == "asc"
	summary := q.Flag("summary") || isChannels(r) && !q.Values.Has("summary")
	if q.Err != nil {
		return q.Err
	}
	if f.Closed = f.Status == listClosed; f.Closed {
		f.Status = ""
	}
	if err := h.addMatches(r.Context(), &f); err != nil {
		return err
	}
	page, err := h.Sessions.List(r.Context(), f)
	if err != nil {
		return err
	}
	out := api.Sessions{Sessions: make([]api.SessionRow, len(page.Sessions)), Next: page.Next}
	for i := range page.Sessions {
		out.Sessions[i].Session = page.Sessions[i]
	}
	if summary {
		if out.Sessions, err = h.withSummaries(r.Context(), out.Sessions); err != nil {
			return err
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, out)
}

func (h *handler) show(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	s, err := h.Sessions.Head(r.Context(), id)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, s)
}

func (h *handler) rename(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decode[api.Rename](h, w, r)
	if err != nil {
		return err
	}
	in.Session = id
	s, err := h.Verbs.Rename(r.Context(), in)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, s)
}

func (h *handler) close(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decodeOptional[api.Close](h, w, r)
	if err != nil {
		return err
	}
	if err := h.Verbs.Close(r.Context(), id, in.Actor); err != nil {
		return err
	}
	return h.show(w, r)
}

func (h *handler) delete(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	if err := h.Verbs.Delete(r.Context(), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
