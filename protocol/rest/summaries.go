package rest

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/view"
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
	labels := withLabels(nil, labelProject, q.Filter(labelProject), labelTask, q.Filter(labelTask))
	for _, l := range q.Values["label"] {
		name, value, ok := strings.Cut(l, ":")
		if !ok || name == "" || value == "" {
			q.Fail("the parameter label must be a name and a value with a colon between them, not %q", l)
		}
		labels = withLabels(labels, name, value)
	}
	return labels
}

// withSummaries returns the rows of a list with the summaries of their sessions.
func (h *handler) withSummaries(ctx context.Context, rows []api.SessionRow) ([]api.SessionRow, error) {
	out := make([]api.SessionRow, 0, len(rows))
	for _, row := range rows {
		s, err := h.rowSummary(ctx, &row)
		switch kind := tapedeck.KindOf(err); {
		case err != nil && (kind == tapedeck.NotFound || kind == tapedeck.Gone):
			continue // it was deleted in the meantime
		case err != nil:
			return nil, err
		}
		row.Summary = &s
		out = append(out, row)
	}
	return out, nil
}

// rowSummary returns the summary of a row: the one that the catalogue has, if that is the
// newest.
func (h *handler) rowSummary(ctx context.Context, row *api.SessionRow) (out view.SessionSummary, err error) {
	if t := &row.Totals; t.Row != nil && t.At == row.Head && json.Unmarshal(t.Row, &out) == nil {
		return out, nil
	}
	s, err := h.Views.Summary(ctx, row.ID, -1)
	return s.Short(), err
}
