package projection

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// Workflow returns the workflow of a thread as of an offset, nil if it has none. The thread
// "" is the main one if that has a workflow, and otherwise the first that has one.
func (p *Projections) Workflow(ctx context.Context, session, thread string, at int64) (*view.Workflow, error) {
	s, at, err := p.session(ctx, session, at)
	if err != nil {
		return nil, err
	}
	w, err := p.workflow(ctx, &s, thread, at)
	if err == nil && w != nil {
		w.XML, err = p.definition(ctx, &s, w.Offset)
	}
	if err == nil {
		err = p.same(ctx, &s)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// workflow returns a workflow without its definition.
func (p *Projections) workflow(ctx context.Context, s *tapedeck.Session, thread string, at int64) (*view.Workflow, error) {
	f, err := p.acquire(ctx, s)
	if err != nil {
		return nil, err
	}
	defer p.release(f)
	c, err := p.stateAt(ctx, f, s, at)
	if err != nil {
		return nil, err
	}
	if w, ok := c.Workflows.Workflow(thread); ok {
		return &w, nil
	}
	return nil, nil //nolint:nilnil // there is none, which is no error
}

// definition reads the definition in a workflow.started. It is not a part of the fold,
// because it can be large and does not change.
func (p *Projections) definition(ctx context.Context, s *tapedeck.Session, offset int64) (string, error) {
	page, err := p.store.Read(ctx, s.ID, tapedeck.Range{From: offset, Limit: 1})
	if err != nil || len(page.Records) == 0 {
		return "", err
	}
	e, err := page.Records[0].Event()
	if err != nil {
		return "", err
	}
	var d struct {
		XML string `json:"xml"`
	}
	e.Unpack(&d)
	return d.XML, nil
}
