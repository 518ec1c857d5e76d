package rest

import (
	"context"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
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

// withSummaries returns the rows of a list with the summaries of their sessions. A
// summary continues from its checkpoint, so that its cost does not grow with the history.
func (h *handler) withSummaries(ctx context.Context, rows []api.SessionRow) ([]api.SessionRow, error) {
	out := make([]api.SessionRow, 0, len(rows))
	for _, row := range rows {
		s, err := h.Views.Summary(ctx, row.ID, -1)
		switch kind := tapedeck.KindOf(err); {
		case err != nil && (kind == tapedeck.NotFound || kind == tapedeck.Gone):
			continue // it was deleted in the meantime
		case err != nil:
			return nil, err
		}
		row.Summary = &api.SessionSummary{
			DurationMS: s.DurationMS, Turns: s.Turns, Tokens: s.Tokens.Total, FilesModified: int64(len(s.FilesModified)) + s.FilesLeftOut,
			LinesAdded: s.LinesAdded, LinesRemoved: s.LinesRemoved, FinalStatus: s.FinalStatus,
		}
		out = append(out, row)
	}
	return out, nil
}
