package postgres

import (
	"context"

	"github.com/tapedeck/tapedeck/internal/group"
)

// rowSize is the size of a task that changes a few rows of the catalogue.
const rowSize = 4096

// A task is a change that a caller asks for. do decides and writes it within the
// transaction of the group. Its error concerns only this caller, unless it is a
// [dbError]: that spoils the group, and do may be called again.
type task interface{ do(w *writer) error }

type request = group.Request[task]

// submit waits until a task is written.
func (w *writer) submit(ctx context.Context, t task, size int) error {
	r := &request{Task: t, Size: size, Done: make(chan struct{})}
	open, first := w.queue.Push(r)
	if !open {
		return w.store.errClosed()
	}
	if first {
		w.queue.Signal()
	}
	return r.Wait(ctx, &w.mu)
}
