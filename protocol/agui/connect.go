package agui

import (
	"bytes"
	"context"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// connect restores a thread: what it has as of an offset, then the open run from
// there on, without a gap and without a repetition. The client may have nothing of
// the thread, a part of it, or all of it.
func (h *handler) connect(w http.ResponseWriter, r *http.Request) error {
	in, err := h.readInput(w, r)
	if err != nil {
		return err
	}
	return h.reattach(w, r, in)
}

// reattach streams a thread as connect does.
func (h *handler) reattach(w http.ResponseWriter, r *http.Request, in *input) error {
	head, err := h.Sessions.Head(r.Context(), in.place.session)
	if tapedeck.KindOf(err) == tapedeck.NotFound || err == nil && head.Head == 0 {
		s := h.newStream(w, in, "", in.RunID)
		defer s.out.Close()
		s.begin(nil)
		s.end(nil)
		return ignoreDisconnect(s.send())
	}
	if err != nil {
		return err
	}
	return h.attach(w, r, in, &head, "")
}

// attach streams a thread as it is at the head of a session, then its open run from there
// on. runID is the id of the run for the client; "" for that of the log.
func (h *handler) attach(w http.ResponseWriter, r *http.Request, in *input, head *tapedeck.Session, runID string) error {
	now, err := h.conversation(r.Context(), in.place, head.Head)
	if err != nil {
		return err
	}
	open, busy := head.Run(in.place.lane)
	s := h.newStream(w, in, open.Invocation, runID)
	if s.runID == "" {
		s.runID = runOf(in, open, &now)
	}
	if busy {
		if err := s.scan(r.Context(), open.Offset, head.Head); err != nil {
			return err
		}
	}
	s.restore(&now, head)
	if !busy {
		defer s.out.Close()
		s.endAs(&now)
		return ignoreDisconnect(s.send())
	}
	if s.askPending(now.Permissions); len(s.pending) > 0 {
		defer s.out.Close()
		s.open = nil // nothing was opened on this stream
		s.wait()
		return ignoreDisconnect(s.send())
	}
	s.open.rename(&s.naming)
	for i := range s.open {
		s.putEvent(&s.open[i].start, true)
	}
	return s.follow(r, head.Head)
}

// ignoreDisconnect returns nil: an answer that has begun cannot become an error, and
// a client that has disconnected needs none.
func ignoreDisconnect(error) error { return nil }

// runOf returns the id of the run that a stream pretends to be: that of the open run,
// or that of the newest run.
func runOf(in *input, open tapedeck.OpenRun, now *view.Snapshot) string {
	switch n := len(now.Runs); {
	case open.Invocation != "":
		return open.Invocation
	case n > 0:
		return now.Runs[n-1].Invocation
	}
	return in.RunID
}

// scan finds what the open run has opened and not closed.
func (s *stream) scan(ctx context.Context, from, to int64) error {
	for from < to {
		p, err := s.Sessions.Read(ctx, s.session, tapedeck.Range{From: from, Limit: int(min(to-from, tapedeck.DefaultLimit))})
		if err != nil {
			return err
		}
		if len(p.Records) == 0 {
			return tapedeck.Errorf(tapedeck.Conflict, "session %s was deleted and recreated in the meantime", s.session).WithHint("connect again")
		}
		for _, rec := range p.Records {
			if isDelta(rec.Data) { // most of a run
				continue
			}
			e, err := rec.Event()
			if err != nil {
				return err
			}
			if e.Invocation != s.invocation || e.ThreadName() != s.lane {
				continue
			}
			if j, ok := e.Jump(); ok && j.Attempt {
				s.open.revert(j.To)
			}
			s.open.note(&e, &e)
		}
		from = p.Next
	}
	return nil
}

// allActivities tells the client that the snapshot has all activities, so that it
// drops those that a rewind has reverted. Without it, a snapshot without activities
// leaves them as they are.
var allActivities = member{"metadata", []byte(`{"@ag-ui/client":{"authoritativeActivityTypes":null}}`)}

// isDelta reports whether an envelope is that of a delta, without decoding it. An
// envelope begins with its offset and its type.
func isDelta(envelope []byte) bool {
	_, rest, ok := bytes.Cut(envelope[:min(len(envelope), 80)], []byte(`,"type":"`))
	if !ok {
		return false
	}
	typ, _, _ := bytes.Cut(rest, []byte(`"`))
	return deltas[string(typ)] != ""
}

// restore gathers the conversation and the state as of an offset.
func (s *stream) restore(now *view.Snapshot, head *tapedeck.Session) {
	s.begin(nil)
	// After a jump, the client may have state that was reverted.
	s.showAll(now, now.State != nil || head.LastJump > 0)
	s.state = head.Head
}

// endAs ends the stream of a thread without an open run. An error of the newest run
// is not an error of this stream; the client finds it in the metadata. If the newest
// run waits for answers, the client learns again which.
func (s *stream) endAs(now *view.Snapshot) {
	if len(now.Runs) == 0 {
		s.end(nil)
		return
	}
	last := &now.Runs[len(now.Runs)-1]
	var outcome *payload.Outcome
	switch {
	case last.Status == tapedeck.StatusCancelled:
		outcome = &payload.Outcome{Type: payload.OutcomeCancelled}
	case last.Interrupts != nil:
		if list := interruptsOf(last.Interrupts); len(list) > 0 {
			s.naming.Learn(now, last.Invocation)
			outcome = &payload.Outcome{Type: payload.OutcomeInterrupt, Interrupts: list}
		}
	}
	s.end(s.naming.Outcome(outcome), encode("metadata", map[string]any{metaKey: struct {
		mark
		Status tapedeck.Status `json:"status"`
		Error  *view.RunError  `json:"error,omitempty"`
	}{mark{last.Offset, last.Invocation}, last.Status, last.Error}}))
}
