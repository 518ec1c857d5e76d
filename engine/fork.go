package engine

import (
	"context"

	"github.com/tapedeck/tapedeck"
)

// Fork makes a session that shares the events of parent below offset at, as many
// as there are, at the same cost. Its first own event is session.forked. id is
// that of the new session, "" for a new one; one that exists is a
// [tapedeck.Conflict].
func (e *Engine) Fork(ctx context.Context, id, parent string, at int64) (tapedeck.Session, error) {
	p, err := e.session(ctx, parent)
	if err != nil {
		return tapedeck.Session{}, err
	}
	if id == "" {
		id = tapedeck.NewID("ses_")
	}
	d := map[string]any{"parent": parent, "at": at}
	for name, v := range map[string]string{"title": p.Title, "owner": p.Owner, "agent": p.Agent} {
		if v != "" {
			d[name] = v
		}
	}
	s, made, err := e.store.Create(ctx, tapedeck.Spec{
		ID: id, Parent: parent, ForkAt: &at,
		Events: []tapedeck.Event{{Type: tapedeck.SessionForked, Data: object(d)}},
	})
	if err == nil && !made {
		err = tapedeck.Errorf(tapedeck.Conflict, "session %s exists", id).WithHint("choose another id")
	}
	return s, err
}
