package guard

import (
	"context"

	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// CancelAll stops a run, and withdraws the inputs that wait in its thread, or all if no run is
// open.
func (v *Guarded) CancelAll(ctx context.Context, session, invocation string) (api.Cancelled, error) {
	ctx, _, err := v.g.allow(ctx, session, access.Write)
	if err != nil {
		return api.Cancelled{}, err
	}
	return v.verbs.CancelAll(ctx, session, invocation)
}

// Inputs lists the inputs of a session.
func (v *Guarded) Inputs(ctx context.Context, session, thread string) ([]view.Input, error) {
	ctx, _, err := v.g.whole(ctx, session)
	if err != nil { // they are those of the head
		return nil, err
	}
	return v.verbs.Inputs(ctx, session, thread)
}

// Withdraw withdraws an input that waits.
func (v *Guarded) Withdraw(ctx context.Context, w api.Withdraw) (view.Input, error) {
	ctx, err := v.write(ctx, w.Session, &w.Actor)
	if err != nil {
		return view.Input{}, err
	}
	return v.verbs.Withdraw(ctx, w)
}

// Move changes the place of an input that waits.
func (v *Guarded) Move(ctx context.Context, m api.Move) (view.Input, error) {
	ctx, err := v.write(ctx, m.Session, &m.Actor)
	if err != nil {
		return view.Input{}, err
	}
	return v.verbs.Move(ctx, m)
}

// Take gives an input to the open run of an outside program. An agent's token does it for its
// own run.
func (v *Guarded) Take(ctx context.Context, t api.Take) (api.Taken, error) {
	ctx, err := v.drive(ctx, t.Session, t.Invocation)
	if err != nil {
		return api.Taken{}, err
	}
	return v.verbs.Take(ctx, t)
}
