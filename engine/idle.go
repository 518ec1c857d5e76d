package engine

import "context"

// AwaitIdle waits until this engine drives no run, or until ctx is done.
func (e *Engine) AwaitIdle(ctx context.Context) error {
	for {
		var r *run
		e.mu.Lock()
		for _, r = range e.runs {
			break
		}
		e.mu.Unlock()
		if r == nil {
			return nil
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Running returns how many runs this engine drives.
func (e *Engine) Running() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.runs)
}
