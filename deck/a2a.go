package deck

import (
	"slices"

	"github.com/tapedeck/tapedeck/protocol/a2a"
	"github.com/tapedeck/tapedeck/protocol/a2a/push"
)

// openA2A makes the handler of A2A, and starts to send push notifications. The key of their
// configs is in the data folder dir.
func (d *Deck) openA2A(store push.Store, dir string) {
	o, u := &d.options, d.used()
	options := a2a.Options{
		Sessions: u.sessions, Verbs: u.verbs, Views: u.views, Policy: o.A2ATasks, Stop: d.streams, Version: o.Version, Logger: o.Logger,
	}
	if o.InMemory {
		dir = ""
	}
	if d.guard != nil {
		options.MayPush = d.guard.Owns
	}
	if !o.NoSubscriptions {
		options.Push = &push.Options{Store: store, Sessions: d.hub, Folder: dir, Allow: slices.Clone(o.AllowWebhooks), Logger: o.Logger}
	}
	h := a2a.New(options)
	d.hub.Observe(h.Observer())
	d.runInBackground(d.asSystem(h.Run))
	d.a2a = h
}
