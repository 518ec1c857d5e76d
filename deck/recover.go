package deck

import (
	"context"
	"time"
)

// recoverEvery is how often recoverRuns tries again.
const recoverEvery = 5 * time.Second

// recoverRuns writes the terminal event of every run that an earlier process
// left open. If the store cannot take that now (the disk may be full), the deck
// opens all the same, so that it can be read, and tries again until it succeeds.
func (d *Deck) recoverRuns(ctx context.Context) {
	if d.tryRecover(ctx) {
		return
	}
	d.runInBackground(func(ctx context.Context) {
		tick := time.NewTicker(recoverEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if d.tryRecover(ctx) {
				return
			}
		}
	})
}

func (d *Deck) tryRecover(ctx context.Context) bool {
	n, err := d.engine.Recover(ctx)
	if n > 0 {
		d.options.Logger.Info("ended runs that an earlier process had left open", "runs", n)
	}
	if err != nil {
		d.options.Logger.Error("runs that an earlier process had left open could not be ended; trying again", "error", err)
	}
	return err == nil
}
