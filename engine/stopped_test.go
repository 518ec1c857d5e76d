package engine

import (
	"context"
	"errors"
	"testing"
)

// A stopped run is told so also if its events become durable at the same moment: the action
// that they announce must not begin.
func TestStoredOfAStoppedRun(t *testing.T) {
	stopped := errors.New("stopped")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(stopped)
	for range 100 { // a select takes any of those that are ready
		r := &run{ctx: ctx, queue: newQueue()}
		if err := r.stored(writing{t.Context(), r.queue}); !errors.Is(err, stopped) {
			t.Fatalf("stored returned %v", err)
		}
	}
}

// writing is a context that writes the events of the queue when stored begins to wait for them.
type writing struct {
	context.Context
	queue *queue
}

func (w writing) Done() <-chan struct{} {
	w.queue.drain()
	w.queue.markWritten()
	return nil
}
