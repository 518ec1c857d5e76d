package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// rewind reverts the events of a session or a thread from an event on.
func (h *handler) rewind(w http.ResponseWriter, r *http.Request) error {
	return revert(h, w, r, decode, func(id string, in api.Rewind) (api.Rewound, error) {
		if in.BeforeInvocation != "" {
			if err := tapedeck.CheckID("the invocation", in.BeforeInvocation); err != nil {
				return api.Rewound{}, err
			}
		}
		in.Session = id
		return h.Verbs.Rewind(r.Context(), in)
	})
}

// An undoRequest is the body of POST /sessions/{id}/undo. In Go, its marker is a pointer,
// so that an empty marker is not taken for an absent one.
type undoRequest struct {
	api.Undo
	Marker *string `json:"marker,omitempty"` // what to undo; absent or null: the newest marker
}

// undo undoes a rewind, a clear or an overwrite.
func (h *handler) undo(w http.ResponseWriter, r *http.Request) error {
	return revert(h, w, r, decodeOptional, func(id string, in undoRequest) (api.Rewound, error) {
		if in.Marker != nil { // a client that has lost the marker may send ""; it does not mean the newest
			if err := tapedeck.CheckID("the marker", *in.Marker); err != nil {
				return api.Rewound{}, err
			}
			in.Undo.Marker = *in.Marker
		}
		in.Session = id
		return h.Verbs.Undo(r.Context(), in.Undo)
	})
}

// overwrite reverts the events from an offset on.
func (h *handler) overwrite(w http.ResponseWriter, r *http.Request) error {
	return revert(h, w, r, decode, func(id string, in api.Overwrite) (api.Rewound, error) {
		in.Session = id
		return h.Verbs.Overwrite(r.Context(), in)
	})
}

// clear reverts everything.
func (h *handler) clear(w http.ResponseWriter, r *http.Request) error {
	return revert(h, w, r, decodeOptional, func(id string, in api.Clear) (api.Rewound, error) {
		in.Session = id
		return h.Verbs.Clear(r.Context(), in)
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

// fork creates a session that shares the events of this one.
func (h *handler) fork(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decodeOptional[api.Fork](h, w, r)
	if err != nil {
		return err
	}
	in.Parent = id
	s, err := h.Verbs.Fork(r.Context(), in)
	if err != nil {
		return err
	}
	w.Header().Set("Location", httpapi.Prefix(r)+Root+"/sessions/"+s.ID)
	return httpapi.WriteJSON(w, http.StatusCreated, s)
}
