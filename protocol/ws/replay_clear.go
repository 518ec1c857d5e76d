package ws

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// clear reverts the history of an element, or of all elements. All sockets learn it from the
// log. What has no history is clear already.
func (r *replay) clear(ctx context.Context, element string) error {
	if element != "" {
		if _, err := threadOf(element); err != nil {
			return err
		}
		return r.clearThreads(ctx, r.elements.threads(element))
	}
	threads, kept, busy, err := r.clearable(ctx)
	switch {
	case err != nil:
		return err
	case !busy:
		return r.revert(ctx, "")
	}
	if err = r.clearThreads(ctx, threads); err == nil && kept != "" {
		err = tapedeck.Errorf(tapedeck.Conflict, "element %s keeps its history: the server is running it", kept).
			WithHint("clear again when it has ended, or cancel the run first")
	}
	return err
}

// clearable returns the threads of elements that a clear may revert while the server is busy
// with the session, and an element that keeps its history, "" for none. A page clears as soon
// as it hears that a workflow has started, so what the server is running keeps its history:
// it would be cancelled otherwise.
func (r *replay) clearable(ctx context.Context) (threads []string, kept string, busy bool, err error) {
	s, err := r.Sessions.Head(ctx, r.session)
	if err != nil {
		return nil, "", false, err
	}
	now, err := r.Views.Snapshot(ctx, r.session, view.Query{At: new(s.Head), Limit: 1})
	if err != nil {
		return nil, "", false, err
	}
	w, err := r.Views.Workflow(ctx, r.session, "", s.Head)
	if err != nil {
		return nil, "", false, err
	}
	runs := map[string]bool{} // threads
	for i := range s.Runs {
		if s.Runs[i].Owner != "" {
			runs[s.Runs[i].Thread], busy = true, true
		}
	}
	if w != nil && w.Status == tapedeck.StatusRunning {
		for i := range w.Activations {
			if w.Activations[i].EndedAt == nil {
				runs[w.Activations[i].Thread] = true
			}
		}
		busy = true
	}
	for i := range now.Threads {
		name := now.Threads[i].Name
		switch element := r.elements.of(name).element; {
		case element == "":
		case runs[name]:
			kept = element
		default:
			threads = append(threads, name)
		}
	}
	return threads, kept, busy, nil
}

func (r *replay) clearThreads(ctx context.Context, threads []string) error {
	for _, thread := range threads {
		err := r.revert(ctx, thread)
		if tapedeck.KindOf(err) == tapedeck.NotFound {
			_, err = r.Sessions.Head(ctx, r.session)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxClears is how often a clear is tried while backends go on writing: each of their
// messages begins a run again, and a clear does not cancel one that it has not seen.
const maxClears = 50

// revert clears a thread, "" for all.
func (r *replay) revert(ctx context.Context, thread string) (err error) {
	for range maxClears {
		_, err = r.Verbs.Clear(ctx, api.Clear{Session: r.session, Thread: thread, AllowEmpty: true})
		if tapedeck.KindOf(err) != tapedeck.Conflict {
			return err
		}
	}
	return err
}
