package deck

import (
	"slices"

	"github.com/tapedeck/tapedeck/protocol/durable/subscription"
)

// openSubscriptions starts to deliver subscriptions. Their keys are in the data folder
// dir.
func (d *Deck) openSubscriptions(store subscription.Store, dir string) error {
	o := &d.options
	if o.NoSubscriptions {
		return nil
	}
	if o.InMemory {
		dir = ""
	}
	s := subscription.New(subscription.Options{
		Log: d.hub, Store: store, Folder: dir, PublicURL: o.PublicURL, Allow: slices.Clone(o.AllowWebhooks), Logger: o.Logger,
	})
	if o.RotateWebhookKey {
		if err := s.RotateKey(); err != nil {
			return err
		}
	}
	d.hub.Observe(s.Observer())
	d.runInBackground(s.Run)
	d.subs, d.dispatcher = d.subscriptions(s), s
	return nil
}
