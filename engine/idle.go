package engine

import "context"

// AwaitIdle waits until this engine drives no run and begins none, or until ctx is done.
func (e *Engine) AwaitIdle(ctx context.Context) error {
	for {
		if err := e.feeder.settleAll(ctx); err != nil {
			return err
		}
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

// Running returns how many runs this engine drives, and in how many sessions it is about
// to begin some.
func (e *Engine) Running() int {
	return e.feeder.working() + e.driven()
}

func (e *Engine) driven() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.runs)
}
