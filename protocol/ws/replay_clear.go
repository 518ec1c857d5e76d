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
	threads, busy, err := r.clearable(ctx)
	if err != nil {
		return err
	}
	if busy {
		return r.clearThreads(ctx, threads)
	}
	_, err = r.Verbs.Clear(ctx, api.Clear{Session: r.session, AllowEmpty: true})
	return err
}

// clearable returns the threads of elements that a clear may revert while the server is busy
// with the session. A page clears as soon as it hears that a workflow has started, so what
// the server runs keeps its history: it would be cancelled otherwise.
func (r *replay) clearable(ctx context.Context) (threads []string, busy bool, err error) {
	s, err := r.Sessions.Head(ctx, r.session)
	if err != nil {
		return nil, false, err
	}
	now, err := r.Views.Snapshot(ctx, r.session, view.Query{At: new(s.Head), Limit: 1})
	if err != nil {
		return nil, false, err
	}
	w, err := r.Views.Workflow(ctx, r.session, "", s.Head)
	if err != nil {
		return nil, false, err
	}
	runs := map[string]bool{} // threads
	for i := range s.Runs {
		if s.Runs[i].Owner != "" {
			runs[s.Runs[i].Thread], busy = true, true
		}
	}
	if w != nil && w.Status == tapedeck.StatusRunning {
		for i := range w.Activations {
			runs[w.Activations[i].Thread] = true
		}
		busy = true
	}
	for i := range now.Threads {
		if name := now.Threads[i].Name; !runs[name] && r.elements.of(name).element != "" {
			threads = append(threads, name)
		}
	}
	return threads, busy, nil
}

func (r *replay) clearThreads(ctx context.Context, threads []string) error {
	for _, thread := range threads {
		_, err := r.Verbs.Clear(ctx, api.Clear{Session: r.session, Thread: thread, AllowEmpty: true})
		if tapedeck.KindOf(err) == tapedeck.NotFound {
			_, err = r.Sessions.Head(ctx, r.session)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
