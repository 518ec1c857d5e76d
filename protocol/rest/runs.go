package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// run starts a task in a new session.
func (h *handler) run(w http.ResponseWriter, r *http.Request) error {
	if q := httpapi.ParseQuery(r); q.Err != nil {
		return q.Err
	}
	in, err := decode[api.Task](h, w, r)
	if err != nil {
		return err
	}
	return h.start(w, r, in)
}

// task starts the next task of a session.
func (h *handler) task(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decode[api.Task](h, w, r)
	if err != nil {
		return err
	}
	if in.Title != "" {
		return tapedeck.Errorf(tapedeck.Invalid, "the member \"title\" is for a new session; this session has its title").
			WithHint("change it with PATCH /sessions/%s", id)
	}
	in.Session = id
	return h.start(w, r, in)
}

func (h *handler) start(w http.ResponseWriter, r *http.Request, t api.Task) error {
	t.Config = given(t.Config)
	s, err := h.Verbs.Start(r.Context(), t)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusAccepted, s)
}

// resume continues a run that was cancelled, interrupted or has failed.
func (h *handler) resume(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decodeOptional[api.Resume](h, w, r)
	if err != nil {
		return err
	}
	in.Session, in.Config = id, given(in.Config)
	s, err := h.Verbs.Resume(r.Context(), in)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusAccepted, s)
}

func (h *handler) cancel(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decodeOptional[api.Cancel](h, w, r)
	if err != nil {
		return err
	}
	if in.Invocation != "" {
		if err := tapedeck.CheckID("the invocation", in.Invocation); err != nil {
			return err
		}
	}
	cancel := h.Verbs.Cancel
	if in.All {
		cancel = h.Verbs.CancelAll
	}
	c, err := cancel(r.Context(), id, in.Invocation)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, c)
}

func (h *handler) renew(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decode[api.Renewal](h, w, r)
	if err != nil {
		return err
	}
	if err := tapedeck.CheckID("the invocation", in.Invocation); err != nil {
		return err
	}
	in.Session = id
	out, err := h.Verbs.Renew(r.Context(), in)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, out)
}

func (h *handler) agents(w http.ResponseWriter, r *http.Request) error {
	if q := httpapi.ParseQuery(r); q.Err != nil {
		return q.Err
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.Agents{Agents: httpapi.OrEmpty(h.Verbs.Agents())})
}
