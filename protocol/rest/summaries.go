package rest

import (
	"context"
	"strings"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/lru"
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

// maxSummaries is how many summaries are kept in memory, of about 150 bytes each.
const maxSummaries = 10_000

// summaries keeps the summaries of rows: a screen asks for the same list every few
// seconds, and most of its sessions have no new events.
type summaries struct {
	mu   sync.Mutex
	kept lru.Map[string, keptSummary] // by session
}

type keptSummary struct {
	gen, at int64 // the session, and the offset of which the summary is
	sum     api.SessionSummary
}

// rowSummary returns the summary of a row.
func (h *handler) rowSummary(ctx context.Context, row *api.SessionRow) (api.SessionSummary, error) {
	c := &h.summaries
	c.mu.Lock()
	kept, ok := c.kept.Get(row.ID)
	c.mu.Unlock()
	if ok && kept.gen == row.Gen && kept.at == row.Head {
		return kept.sum, nil
	}
	s, err := h.Views.Summary(ctx, row.ID, -1)
	if err != nil {
		return api.SessionSummary{}, err
	}
	kept = keptSummary{row.Gen, s.At, api.SessionSummary{
		StartedAt: s.StartedAt, UpdatedAt: s.UpdatedAt, Axis: s.Axis, RecordingMS: s.RecordingMS,
		DurationMS: s.DurationMS, Turns: s.Turns, Tokens: s.Tokens.Total, FilesModified: int64(len(s.FilesModified)) + s.FilesLeftOut,
		LinesAdded: s.LinesAdded, LinesRemoved: s.LinesRemoved, FinalStatus: s.FinalStatus,
	}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Put(row.ID, kept)
	c.kept.Trim(maxSummaries, nil)
	return kept.sum, nil
}
