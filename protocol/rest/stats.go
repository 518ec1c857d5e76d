package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

func serverRoutes() []Route {
	return []Route{{
		Method: http.MethodGet, Path: "/stats", Summary: "Describe the server since its start.",
		Answer: api.Stats{}, Status: http.StatusOK,
		serve: (*handler).stats,
	}, {
		Method: http.MethodGet, Path: "/audit", Summary: "Show the audit log, newest first.",
		Parameters: auditParameters, Answer: api.AuditPage{}, Status: http.StatusOK,
		serve: (*handler).audit,
	}}
}

var auditParameters = []string{"action", "actor", "session", "outcome", "from", "to", "limit"}

// Limits of a page of the audit log, in records.
const (
	auditDefault = 100
	auditLimit   = 1000
)

func (h *handler) audit(w http.ResponseWriter, r *http.Request) error {
	if h.Audit == nil {
		return tapedeck.Errorf(tapedeck.Unsupported, "this server has no audit log")
	}
	q := httpapi.ParseQuery(r, auditParameters...)
	in := api.AuditQuery{
		Action: q.Filter("action"), Actor: q.Filter("actor"), Session: q.Filter("session"), Outcome: q.OneOf("outcome", "", "allowed", "failed", "refused"),
		From: q.Time("from"), To: q.Time("to"), Limit: q.Limit(auditDefault, auditLimit),
	}
	if q.Err != nil {
		return q.Err
	}
	page, err := h.Audit.Audit(r.Context(), in)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return httpapi.WriteJSON(w, http.StatusOK, page)
}

func (h *handler) stats(w http.ResponseWriter, r *http.Request) error {
	if h.Operator == nil {
		return tapedeck.Errorf(tapedeck.Unsupported, "this server has no statistics")
	}
	if q := httpapi.ParseQuery(r); q.Err != nil {
		return q.Err
	}
	s, err := h.Operator.Stats(r.Context())
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, s)
}
