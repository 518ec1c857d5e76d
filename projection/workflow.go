package projection

import (
	"context"

	"github.com/tapedeck/tapedeck/view"
)

// Workflow returns the workflow of a thread as of an offset, nil if it has none. The thread
// "" is the main one if that has a workflow, and otherwise the first that has one. It reads
// the log from the beginning, so its cost is that of the session's length.
func (p *Projections) Workflow(ctx context.Context, session, thread string, at int64) (*view.Workflow, error) {
	fold := view.NewWorkflowFold(thread)
	for e, err := range p.Effective(ctx, session, 0, at) {
		if err != nil {
			return nil, err
		}
		fold.Apply(&e)
	}
	if w, ok := fold.Workflow(); ok {
		return &w, nil
	}
	return nil, nil //nolint:nilnil // there is none, which is no error
}
