package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// inputs lists the inputs of a session.
func (h *handler) inputs(w http.ResponseWriter, r *http.Request) error {
	id, err := httpapi.SessionID(r)
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, "thread")
	thread := q.Filter("thread")
	if q.Err == nil && thread != "" {
		q.Err = tapedeck.CheckID("the thread", thread)
	}
	if q.Err != nil {
		return q.Err
	}
	list, err := h.Verbs.Inputs(r.Context(), id, thread)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.Inputs{Inputs: httpapi.OrEmpty(list)})
}

// inputOf returns the session and the input that a path names.
func inputOf(r *http.Request) (session, input string, err error) {
	if session, err = httpapi.SessionID(r); err != nil {
		return "", "", err
	}
	input = r.PathValue("input")
	return session, input, tapedeck.CheckID("the input", input)
}

// moveInput changes the place of an input that waits.
func (h *handler) moveInput(w http.ResponseWriter, r *http.Request) error {
	session, input, err := inputOf(r)
	if err == nil {
		err = httpapi.ParseQuery(r).Err
	}
	if err != nil {
		return err
	}
	in, err := decodeOptional[api.Move](h, w, r)
	if err != nil {
		return err
	}
	in.Session, in.Input = session, input
	done, err := h.Verbs.Move(r.Context(), in)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, done)
}

// withdrawInput withdraws an input that waits.
func (h *handler) withdrawInput(w http.ResponseWriter, r *http.Request) error {
	session, input, err := inputOf(r)
	q := httpapi.ParseQuery(r, "actor")
	actor := q.String("actor")
	if err == nil {
		err = q.Err
	}
	if err != nil {
		return err
	}
	done, err := h.Verbs.Withdraw(r.Context(), api.Withdraw{Session: session, Input: input, Actor: actor})
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, done)
}

// takeInput gives an input to the open run of an outside program.
func (h *handler) takeInput(w http.ResponseWriter, r *http.Request) error {
	session, input, err := inputOf(r)
	if err == nil {
		err = httpapi.ParseQuery(r).Err
	}
	if err != nil {
		return err
	}
	in, err := decode[api.Take](h, w, r)
	if err != nil {
		return err
	}
	in.Session, in.Input = session, input
	done, err := h.Verbs.Take(r.Context(), in)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, done)
}
