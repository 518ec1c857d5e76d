package agui

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// again tells the client that the run repeats a step: what the step has opened is closed,
// and the messages are those of before the step. So is the state, if the step has
// changed it.
func (s *stream) again(ctx context.Context, e *tapedeck.Event) error {
	if !s.begun || e.ThreadName() != s.lane || e.Invocation != s.invocation {
		return nil
	}
	j, _ := e.Jump()
	now, err := s.conversation(ctx, s.place, e.Offset+1)
	if err != nil {
		return err
	}
	for i := range slices.Backward(s.open) {
		if s.open[i].start.Offset < j.To {
			continue
		}
		end := s.open[i].closing(nil)
		if b, ok := s.event(&end, false); ok {
			s.put(b)
		}
	}
	s.open.revert(j.To)
	clear(s.known)
	s.showAll(&now, s.state >= j.To)
	return nil
}

// revert forgets what was opened at an offset or later.
func (o *openThings) revert(to int64) {
	*o = slices.DeleteFunc(*o, func(t openThing) bool { return t.start.Offset >= to })
}

// showAll gathers the messages of a conversation, and the state if that is wanted. A
// client without a state in the log gets an empty one if it may have another.
func (s *stream) showAll(now *view.Snapshot, state bool) {
	s.naming.learn(now, s.invocation)
	messages := s.form().Messages(now)
	for i := range messages {
		if len(messages[i].Metadata) > 0 { // otherwise it only holds calls, and may still begin
			s.known[messages[i].ID] = messages[i].Role
		}
		for _, k := range messages[i].ToolCalls {
			s.known[callKey(k.ID)] = "call"
		}
	}
	all := member{}
	if s.profile != legacy {
		all = allActivities
	}
	s.snapshot(messages, all)
	switch {
	case now.State != nil && len(now.State.Value) > maxFrame:
		s.Logger.Warn("a state is too large for AG-UI", "session", s.session, "thread", s.lane, "bytes", len(now.State.Value))
	case now.State != nil && state:
		s.put(frame(tapedeck.StateSnapshot, member{"snapshot", now.State.Value}))
	case state:
		s.put(frame(tapedeck.StateSnapshot, member{"snapshot", []byte("{}")}))
	}
}
