package tapedeck

import "slices"

// A WaitingInput is an input that was sent to a thread while a run was open there. It
// waits until it is run, given to the open run, or withdrawn.
type WaitingInput struct {
	ID      string `json:"id"`
	Thread  string `json:"thread"`
	Offset  int64  `json:"offset"`            // of the event that queued it, which has its text
	When    string `json:"when,omitempty"`    // queue, steer or interrupt; see the type input.queued
	Outside bool   `json:"outside,omitempty"` // the outside program that writes the runs of the thread takes it; no server runs it
}

// applyInput folds an event of an input. An id that does not wait changes nothing.
func (s *Session) applyInput(e *Event) {
	var d struct {
		ID      string `json:"id"`
		When    string `json:"when"`
		Before  string `json:"before"`
		Outside bool   `json:"outside"`
	}
	if !e.Unpack(&d) || d.ID == "" {
		return
	}
	at := s.inputIndex(d.ID)
	if at >= 0 == (e.Type == inputQueued) {
		return
	}
	in := WaitingInput{ID: d.ID, Thread: e.ThreadName(), Offset: e.Offset, When: d.When, Outside: d.Outside}
	list := slices.Clone(s.Inputs) // copies of the entry share the old list
	if at >= 0 {
		in = list[at]
		list = slices.Delete(list, at, at+1)
	}
	if s.Inputs = list; e.Type == inputQueued || e.Type == inputMoved {
		to := s.inputIndex(d.Before)
		if to < 0 {
			to = len(list)
		}
		s.Inputs = slices.Insert(list, to, in)
	}
	if len(s.Inputs) == 0 {
		s.Inputs = nil
	}
}

// inputIndex returns the index of an input that waits, -1 if none has the id.
func (s *Session) inputIndex(id string) int {
	return slices.IndexFunc(s.Inputs, func(in WaitingInput) bool { return in.ID == id })
}
