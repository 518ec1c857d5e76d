package deck

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/audit"
	"github.com/tapedeck/tapedeck/retention"
)

// openRetention starts to apply the retention of the options, if they have one. Only the
// deck that holds the folder or the lease of the database does.
func (d *Deck) openRetention() {
	if d.options.Retention.IsZero() {
		return
	}
	w := retention.New(retention.Options{Policy: d.options.Retention, Store: d.hub, Delete: d.retire, Logger: d.options.Logger})
	d.hub.Observe(w.Observer())
	d.runInBackground(w.Run)
}

// retire deletes a session that nobody uses, and records that before.
func (d *Deck) retire(ctx context.Context, c retention.Candidate) (bool, error) {
	ctx = access.With(ctx, access.System)
	done, err := d.auditor.beginFor(ctx, audit.Delete, c.Session.ID, "retention: "+c.Reason)
	if err != nil {
		return false, err
	}
	gone, err := d.engine.Retire(ctx, &c.Session, d.options.Retention.Keeps)
	if err == nil && !gone {
		done(tapedeck.Errorf(tapedeck.Conflict, "it is in use again"))
		return false, nil
	}
	done(err)
	return gone, err
}
