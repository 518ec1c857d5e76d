package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// A rewindRequest is the body of POST /sessions/{id}/rewind.
type rewindRequest struct {
	BeforeInvocation string `json:"before_invocation_id"`
	ToOffset         *int64 `json:"to_offset"`
	Thread           string `json:"thread"`
	Force            bool   `json:"force"`
}

// rewind reverts the events of a session or a thread from an event on.
func (h *handler) rewind(w http.ResponseWriter, r *http.Request) error {
	return revert(h, w, r, decode, func(id string, in rewindRequest) (api.Rewound, error) {
		if in.BeforeInvocation != "" {
			if err := tapedeck.CheckID("the invocation", in.BeforeInvocation); err != nil {
				return api.Rewound{}, err
			}
		}
		return h.Verbs.Rewind(r.Context(), api.Rewind{
			Session: id, BeforeInvocation: in.BeforeInvocation, ToOffset: in.ToOffset, Thread: in.Thread, Force: in.Force,
		})
	})
}

// An undoRequest is the body of POST /sessions/{id}/undo.
type undoRequest struct {
	Marker *string `json:"marker"`
}

// undo undoes a rewind, a clear or an overwrite.
func (h *handler) undo(w http.ResponseWriter, r *http.Request) error {
	return revert(h, w, r, decodeOptional, func(id string, in undoRequest) (api.Rewound, error) {
		u := api.Undo{Session: id}
		if in.Marker != nil { // a client that has lost the marker may send ""; it does not mean the newest
			if err := tapedeck.CheckID("the marker", *in.Marker); err != nil {
				return api.Rewound{}, err
			}
			u.Marker = *in.Marker
		}
		return h.Verbs.Undo(r.Context(), u)
	})
}

// An overwriteRequest is the body of POST /sessions/{id}/overwrite.
type overwriteRequest struct {
	FromOffset *int64 `json:"from_offset"`
	Thread     string `json:"thread"`
	Force      bool   `json:"force"`
}

// overwrite reverts the events from an offset on.
func (h *handler) overwrite(w http.ResponseWriter, r *http.Request) error {
	return revert(h, w, r, decode, func(id string, in overwriteRequest) (api.Rewound, error) {
		if in.FromOffset == nil { // otherwise a body without it would revert everything
			return api.Rewound{}, tapedeck.Errorf(tapedeck.Invalid, "the member \"from_offset\" is missing").
				WithHint("give the offset of the first event to revert")
		}
		return h.Verbs.Overwrite(r.Context(), api.Overwrite{Session: id, FromOffset: *in.FromOffset, Thread: in.Thread, Force: in.Force})
	})
}

// A clearRequest is the body of POST /sessions/{id}/clear.
type clearRequest struct {
	Thread string `json:"thread"`
}

// clear reverts everything.
func (h *handler) clear(w http.ResponseWriter, r *http.Request) error {
	return revert(h, w, r, decodeOptional, func(id string, in clearRequest) (api.Rewound, error) {
		return h.Verbs.Clear(r.Context(), api.Clear{Session: id, Thread: in.Thread})
	})
}

// revert calls do with the session in the path and the body, and answers with the
// result.
func revert[In any](
	h *handler, w http.ResponseWriter, r *http.Request,
	decode func(*handler, http.ResponseWriter, *http.Request) (In, error),
	do func(id string, in In) (api.Rewound, error),
) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decode(h, w, r)
	if err != nil {
		return err
	}
	done, err := do(id, in)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, done)
}

// A forkRequest is the body of POST /sessions/{id}/fork.
type forkRequest struct {
	At    *int64  `json:"at"`
	Title *string `json:"title"`
	ID    string  `json:"id"`
	Owner string  `json:"owner"`
	Copy  bool    `json:"copy"`
}

// fork creates a session that shares the events of this one.
func (h *handler) fork(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decodeOptional[forkRequest](h, w, r)
	if err != nil {
		return err
	}
	s, err := h.Verbs.Fork(r.Context(), api.Fork{
		Parent: id, ID: in.ID, At: in.At, Title: in.Title, Owner: in.Owner, Copy: in.Copy,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", Root+"/sessions/"+s.ID)
	return httpapi.WriteJSON(w, http.StatusCreated, s)
}
