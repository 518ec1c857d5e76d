package rest

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/view"
)

var (
	contextEventsParameters = []string{"from", "after"}
	revertContextParameters = []string{"after"}
)

// maxSequence is larger than every sequence number.
const maxSequence = 1 << 31

// sequence returns a sequence number from lowest on, def if it is absent.
func sequence(q *httpapi.Query, name string, lowest, def int) int {
	text := q.String(name)
	if !q.Values.Has(name) {
		return def
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && n > 0:
		q.Fail("the parameter %s is too large: %.100s", name, text)
	case err != nil || n < int64(lowest) || text[0] == '+':
		q.Fail("the parameter %s must be a whole number from %d, not %.100q", name, lowest, text)
	}
	return int(min(n, maxSequence))
}

// ref returns the instance in the path.
func ref(r *http.Request) (view.Ref, error) {
	id, err := httpapi.SessionID(r)
	if err == nil {
		err = tapedeck.CheckID("the instance's id", r.PathValue("iid"))
	}
	return view.Ref{Session: id, ID: r.PathValue("iid")}, err
}

func bodyOf(session string, i *view.Instance) api.ContextInstance {
	b := api.ContextInstance{ID: i.ID, Session: session, Agent: i.Name, Thread: i.Thread, CreatedAt: i.StartedAt}
	if i.Parent != "" {
		b.Parent = &i.Parent
	}
	return b
}

func (h *handler) createInstance(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decode[api.NewInstance](h, w, r)
	if err != nil {
		return err
	}
	if in.Agent == "" {
		return tapedeck.Errorf(tapedeck.Invalid, "the member \"agent_name\" is missing").WithHint("give the name of the agent")
	}
	i, err := h.Contexts.CreateInstance(r.Context(), id, in.Agent, in.Parent)
	if err != nil {
		return err
	}
	w.Header().Set("Location", httpapi.Prefix(r)+Root+"/sessions/"+id+"/instances/"+i.ID)
	return httpapi.WriteJSON(w, http.StatusCreated, bodyOf(id, &i))
}

func (h *handler) instance(w http.ResponseWriter, r *http.Request) error {
	of, err := ref(r)
	if err == nil {
		err = httpapi.ParseQuery(r).Err
	}
	if err != nil {
		return err
	}
	i, err := h.Contexts.GetInstance(r.Context(), of)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, bodyOf(of.Session, &i))
}

// findInstance answers with an instance of any session.
func (h *handler) findInstance(w http.ResponseWriter, r *http.Request) error {
	if err := httpapi.ParseQuery(r).Err; err != nil {
		return err
	}
	i, session, err := h.Contexts.FindInstance(r.Context(), r.PathValue("iid"))
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, bodyOf(session, &i))
}

// contextEvents answers with the context of an instance from a sequence number on.
func (h *handler) contextEvents(w http.ResponseWriter, r *http.Request) error {
	of, err := ref(r)
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, contextEventsParameters...)
	from, after := sequence(q, "from", 0, 0), sequence(q, "after", -1, -1)
	if q.Values.Has("from") && q.Values.Has("after") {
		q.Fail("from and after exclude each other: from is the first number, after the one before it")
	}
	if q.Err != nil {
		return q.Err
	}
	if q.Values.Has("after") {
		from = after + 1
	}
	events, next, err := h.Contexts.GetEvents(r.Context(), of, from)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.InstanceEvents{Instance: of.ID, Events: httpapi.OrEmpty(events), Next: int64(next)})
}

// appendContext appends to the context of an instance.
func (h *handler) appendContext(w http.ResponseWriter, r *http.Request) error {
	of, err := ref(r)
	if err == nil {
		err = httpapi.ParseQuery(r).Err
	}
	if err != nil {
		return err
	}
	in, err := decode[api.NewContextEvent](h, w, r)
	if err != nil {
		return err
	}
	e, err := h.Contexts.AppendEvent(r.Context(), of, in.Type, in.Content, in.ToolCallID)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusCreated, e)
}

// revertContext reverts the context of an instance after a sequence number.
func (h *handler) revertContext(w http.ResponseWriter, r *http.Request) error {
	of, err := ref(r)
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, revertContextParameters...)
	after := sequence(q, "after", -1, -1)
	if !q.Values.Has("after") { // otherwise a request without it would revert everything
		q.Fail("the parameter after is missing: the sequence number of the last event to keep, -1 to keep none")
	}
	if q.Err != nil {
		return q.Err
	}
	n, done, err := h.Contexts.DeleteEventsAfter(r.Context(), of, after)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.ContextReverted{Deleted: n, Marker: done.Marker})
}

// copyContext copies the context of the instance in the path to another one.
func (h *handler) copyContext(w http.ResponseWriter, r *http.Request) error {
	of, err := ref(r)
	if err == nil {
		err = httpapi.ParseQuery(r).Err
	}
	if err != nil {
		return err
	}
	in, err := decode[api.CopyContext](h, w, r)
	if err != nil {
		return err
	}
	to := view.Ref{Session: in.Session, ID: in.Target}
	if to.Session == "" {
		to.Session = of.Session
	}
	if in.UpTo != nil && *in.UpTo < 0 {
		return tapedeck.Errorf(tapedeck.Invalid, "up_to_sequence is %d; it is a sequence number, from 0", *in.UpTo)
	}
	n, err := h.Contexts.CopyEvents(r.Context(), of, to, in.UpTo)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.ContextCopied{Copied: n})
}
