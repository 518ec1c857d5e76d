package deck

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/telemetry"
)

// newHub returns the hub over a store, and begins to trace if the options say so.
func (d *Deck) newHub(s tapedeck.Store) *hub.Hub {
	if d.options.logsRequests() {
		s = noting{s}
	}
	if d.options.Traces == nil {
		return hub.New(s)
	}
	d.tracer = telemetry.New(telemetry.Options{Provider: d.options.Traces, Log: s, AllRequests: d.options.TraceRequests, Logger: d.options.Logger})
	return hub.New(d.tracer.Layer(s))
}

// openTraces follows the runs. Nothing was appended before.
func (d *Deck) openTraces(ctx context.Context) error {
	if d.tracer == nil {
		return nil
	}
	d.hub.Observe(d.tracer.Observer())
	if err := d.tracer.Load(ctx); err != nil {
		return err
	}
	d.runInBackground(d.tracer.Run)
	return nil
}
