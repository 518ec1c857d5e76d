package rest

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// Labels that have members and parameters of their own.
const (
	labelProject = "projectId"
	labelTask    = "taskId"
)

// withLabels adds labels, given as names and values, that are not empty.
func withLabels(labels map[string]string, more ...string) map[string]string {
	for i := 0; i < len(more); i += 2 {
		if more[i+1] == "" {
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[more[i]] = more[i+1]
	}
	return labels
}

// parseLabels returns the labels that a list must have: those with parameters of their
// own, and any as label=name:value.
func parseLabels(q *httpapi.Query) map[string]string {
	labels := withLabels(nil, labelProject, q.String(labelProject), labelTask, q.String(labelTask))
	for _, l := range q.Values["label"] {
		name, value, ok := strings.Cut(l, ":")
		if !ok || name == "" || value == "" {
			q.Fail("the parameter label must be a name and a value with a colon between them, not %q", l)
		}
		labels = withLabels(labels, name, value)
	}
	return labels
}

// A rowSummary is what a list of sessions shows of each.
type rowSummary struct {
	DurationMS    int64           `json:"duration_ms"`
	Turns         int64           `json:"turns_count"`
	Tokens        int64           `json:"tokens_used"`
	FilesModified int64           `json:"files_modified"` // the number of files
	LinesAdded    int64           `json:"lines_added"`
	LinesRemoved  int64           `json:"lines_removed"`
	FinalStatus   tapedeck.Status `json:"final_status,omitempty"` // absent while a run is open and before the first run has ended
}

// listSummaries answers with a list in which each session has its summary. A summary
// continues from its checkpoint, so that its cost does not grow with the history.
func (h *handler) listSummaries(w http.ResponseWriter, r *http.Request, sessions []tapedeck.Session, next string) error {
	rows := make([]json.RawMessage, 0, len(sessions))
	for i := range sessions {
		s, err := h.Views.Summary(r.Context(), sessions[i].ID, -1)
		switch kind := tapedeck.KindOf(err); {
		case err != nil && (kind == tapedeck.NotFound || kind == tapedeck.Gone):
			continue // it was deleted in the meantime
		case err != nil:
			return err
		}
		row, err := json.Marshal(&sessions[i])
		if err != nil {
			return err
		}
		summary, err := json.Marshal(rowSummary{
			DurationMS: s.DurationMS, Turns: s.Turns, Tokens: s.Tokens.Total, FilesModified: int64(len(s.FilesModified)) + s.FilesLeftOut,
			LinesAdded: s.LinesAdded, LinesRemoved: s.LinesRemoved, FinalStatus: s.FinalStatus,
		})
		if err != nil {
			return err
		}
		row = append(append(append(row[:len(row)-1], `,"summary":`...), summary...), '}')
		rows = append(rows, row)
	}
	return httpapi.WriteJSON(w, http.StatusOK, struct {
		Sessions []json.RawMessage `json:"sessions"`
		Next     string            `json:"next,omitempty"`
	}{rows, next})
}
