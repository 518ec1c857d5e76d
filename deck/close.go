package deck

import (
	"context"
	"errors"
	"time"
)

const (
	// closeGrace is how long Close waits after it has given up on agents that do not stop.
	closeGrace = 3 * time.Second

	// drainGrace is how long Close waits for followers that have not read everything.
	drainGrace = time.Second
)

// Close stops the active runs, each with its terminal event. Then it ends the streams:
// of [Deck.Handler], and of [Deck.Follow]. A follower gets all events before its stream
// ends, unless it takes longer than a second to read them. Then Close closes the store.
// It returns at the latest when ctx is done: the next Open ends the runs that have not
// stopped by then. A second call does nothing.
func (d *Deck) Close(ctx context.Context) (err error) {
	d.closing.Do(func() { err = d.close(ctx, func() {}, func(context.Context) error { return nil }) })
	return err
}

// close stops the runs, calls leave, after which no new request should come, ends the
// streams, calls quit, which waits for the requests, and waits for the background work.
func (d *Deck) close(ctx context.Context, leave func(), quit func(context.Context) error) error {
	longest := d.options.KillAfter
	for _, a := range d.options.Agents {
		longest = max(longest, a.KillAfter)
	}
	ctx, cancel := context.WithTimeout(ctx, longest+closeGrace)
	defer cancel()
	close(d.stopped)
	err := d.engine.Shutdown(ctx)
	d.drain(ctx)
	leave()
	d.cutStreams()
	err = errors.Join(err, quit(ctx))
	d.background.Wait()
	if d.tracer != nil {
		d.tracer.Flush(ctx) // the runs that have ended just now
	}
	d.auditor.close()
	return errors.Join(err, d.hub.Close())
}

// drain waits until the followers have read what is there. Nothing depends on it: a
// follower that is not ready in time continues at the next start.
func (d *Deck) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainGrace)
	defer cancel()
	_ = d.hub.Drain(ctx)
}
