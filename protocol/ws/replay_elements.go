package ws

import (
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A place says to which element a thread belongs.
type place struct {
	element string // its id in the diagram; "" for a thread of no element
	index   *int64 // of the instance of a loop, from 0; nil for none
}

// threadNamed returns the thread of an element, also of one that can have none.
func threadNamed(element string) string {
	thread, _ := payload.ElementThread(element)
	return thread
}

// threadShown returns how the protocol calls a thread: with the letters of its element.
func threadShown(thread string) string {
	if !strings.Contains(thread, "@") { // as almost always; each piece of a text comes here
		return thread
	}
	if element, ok := payload.ElementOf(thread); ok && thread == threadNamed(element) {
		return "thread_" + element
	}
	return thread
}

// elements knows the threads of the elements of a workflow. An element that runs a second
// time has a second thread, whose name does not say which element it belongs to: only the
// workflow's events do.
type elements struct {
	mu       sync.Mutex
	byThread map[string]place
	order    []string // of the threads in byThread
}

func newElements() *elements { return &elements{byThread: map[string]place{}} }

// of returns the place of a thread. A thread that no workflow has entered belongs to the
// element of its name: a backend without a diagram writes such threads.
func (x *elements) of(thread string) place {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p, ok := x.byThread[thread]; ok {
		return p
	}
	element, _ := payload.ElementOf(thread)
	return place{element: element}
}

// threads returns the threads of an element, oldest first; one that may not exist if the
// workflow has entered none.
func (x *elements) threads(element string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []string
	for _, thread := range x.order {
		if x.byThread[thread].element == element {
			out = append(out, thread)
		}
	}
	if first := threadNamed(element); len(out) == 0 {
		if _, taken := x.byThread[first]; !taken {
			out = []string{first}
		}
	}
	return out
}

func (x *elements) add(thread, element string, index *int64) {
	if thread == "" {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.byThread[thread]; !known {
		x.order = append(x.order, thread)
	}
	x.byThread[thread] = place{element, index}
}

// note learns from an event of a workflow which thread an element has.
func (x *elements) note(e *tapedeck.Event) {
	if e.Type != tapedeck.WorkflowEntered {
		return
	}
	if d, err := payload.DecodeAs[payload.WorkflowEntered](*e); err == nil {
		x.add(d.Thread, d.Element, d.Index)
	}
}

// find learns the threads of the elements that a workflow has entered.
func (x *elements) find(w *view.Workflow) {
	for i := range w.Activations {
		a := &w.Activations[i]
		x.add(a.Thread, a.Element, a.Index)
	}
}

// maxWorkflows is how many older workflows of a session a page learns.
const maxWorkflows = 100

// learnWorkflows learns the workflows of a session as of an offset, and returns the newest
// one, nil if there is none.
func (r *replay) learnWorkflows(threads []view.Thread, at int64) (*view.Workflow, error) {
	newest, err := r.Views.Workflow(r.ctx, r.session, "", at)
	if err != nil || newest == nil {
		return nil, err
	}
	for _, thread := range workflowThreads(threads) {
		if thread == newest.Thread {
			continue
		}
		w, err := r.Views.Workflow(r.ctx, r.session, thread, at)
		if err != nil {
			return nil, err
		}
		if w != nil {
			r.elements.find(w)
			r.diagram.begin(w)
		}
	}
	r.elements.find(newest)
	r.diagram.begin(newest)
	return newest, nil
}

// workflowThreads returns the threads of which others are elements: a workflow beside the
// thread main has its thread before the names of its elements' threads.
func workflowThreads(threads []view.Thread) (out []string) {
	for i := range threads {
		name := tapedeck.MainThread
		if end := strings.LastIndex(threads[i].Name, ":thread_"); end > 0 {
			name = threads[i].Name[:end]
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out[max(0, len(out)-maxWorkflows):]
}

// entered reports whether a workflow of the server has entered the element of a thread.
func (x *elements) entered(thread string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, known := x.byThread[thread]
	return known
}
