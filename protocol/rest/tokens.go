package rest

import (
	"cmp"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// tokenRoutes are the tokens of sessions.
func tokenRoutes() []Route {
	return []Route{
		{
			Method: http.MethodPost, Path: "/sessions/{id}/tokens", Summary: "Make a token of this session.",
			Request: api.NewToken{}, Answer: api.IssuedToken{}, Status: http.StatusCreated,
			serve: (*handler).issueToken,
		},
		{
			Method: http.MethodGet, Path: "/sessions/{id}/tokens", Summary: "List the tokens of this session that have a name.",
			Answer: api.SessionTokens{}, Status: http.StatusOK,
			serve: (*handler).listTokens,
		},
		{
			Method: http.MethodDelete, Path: "/sessions/{id}/tokens", Summary: "Revoke all tokens of this session.",
			Status: http.StatusNoContent,
			serve:  (*handler).revokeTokens,
		},
		{
			Method: http.MethodDelete, Path: "/sessions/{id}/tokens/{tid}", Summary: "Revoke a token of this session.",
			Status: http.StatusNoContent,
			serve:  (*handler).revokeTokens,
		},
		{
			Method: http.MethodGet, Path: "/tokens", Summary: "List the tokens of all sessions, for admins.",
			Parameters: []string{issuedBy}, Answer: api.SessionTokens{}, Status: http.StatusOK,
			serve: (*handler).listIssued,
		},
		{
			Method: http.MethodDelete, Path: "/tokens", Summary: "Revoke all tokens of sessions that a user issued, for admins.",
			Parameters: []string{issuedBy}, Status: http.StatusNoContent,
			serve: (*handler).revokeIssued,
		},
	}
}

// issuedBy is the parameter that names the user who issued the tokens.
const issuedBy = "issued_by"

// noTokens is the error of a server without access control.
func (h *handler) noTokens() error {
	if h.Tokens != nil {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Unsupported, "this server has no access control, so nobody needs a token").WithHint("start it with --auth")
}

// issueToken makes a token.
func (h *handler) issueToken(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decode[api.NewToken](h, w, r)
	if err == nil {
		err = h.noTokens()
	}
	if err != nil {
		return err
	}
	in.Session = id
	out, err := h.Tokens.Issue(r.Context(), in)
	if err != nil {
		return err
	}
	w.Header().Set("Location", httpapi.Prefix(r)+Root+"/sessions/"+id+"/tokens/"+out.ID)
	return httpapi.WriteJSON(w, http.StatusCreated, out)
}

// listTokens lists the tokens that have a name.
func (h *handler) listTokens(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err == nil {
		err = h.noTokens()
	}
	if err != nil {
		return err
	}
	out, err := h.Tokens.List(r.Context(), id)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, out)
}

// revokeTokens revokes a token, or all.
func (h *handler) revokeTokens(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	token := r.PathValue("tid")
	if token != "" {
		err = tapedeck.CheckID("the id of the token", token)
	}
	if err == nil {
		err = h.noTokens()
	}
	if err == nil {
		err = h.Tokens.Revoke(r.Context(), id, token)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// listIssued lists the tokens of all sessions.
func (h *handler) listIssued(w http.ResponseWriter, r *http.Request) error {
	q := httpapi.ParseQuery(r, issuedBy)
	by := q.Filter(issuedBy)
	if err := cmp.Or(q.Err, h.noTokens()); err != nil {
		return err
	}
	out, err := h.Tokens.ListIssued(r.Context(), by)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return httpapi.WriteJSON(w, http.StatusOK, out)
}

// revokeIssued revokes the tokens that a user issued.
func (h *handler) revokeIssued(w http.ResponseWriter, r *http.Request) error {
	q := httpapi.ParseQuery(r, issuedBy)
	by := q.Filter(issuedBy)
	switch {
	case q.Err != nil:
		return q.Err
	case by == "": // a revocation is of somebody
		return tapedeck.Errorf(tapedeck.Invalid, "the parameter %s is missing", issuedBy).WithHint("it names the user who issued the tokens")
	}
	err := h.noTokens()
	if err == nil {
		err = h.Tokens.RevokeIssued(r.Context(), by)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
