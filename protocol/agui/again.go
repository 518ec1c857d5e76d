package agui

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/payload"
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
		s.putEvent(new(s.open[i].closing(nil)), false)
	}
	s.open.revert(j.To)
	clear(s.known)
	s.showAll(&now, s.state >= j.To)
	return nil
}

// refresh shows the client the messages as of an offset, if it has some that no event can
// correct. Messages that are open stay so, unless they get another id.
func (s *stream) refresh(ctx context.Context, to int64) error {
	if !s.stale || !s.begun {
		return nil
	}
	now, err := s.conversation(ctx, s.place, to)
	if err != nil {
		return err
	}
	messages := s.form().Messages(&now)
	if _, rest := split(messages); len(rest) > 0 {
		s.stale = false // too large to be sent while a message may be open; the client gets it when it connects
		return nil
	}
	s.naming.Learn(&now, s.invocation)
	open := slices.Clone(s.open)
	s.open.rename(&s.naming)
	for i, t := range slices.Backward(open) {
		if s.open[i].id != t.id {
			s.putEvent(new(t.closing(nil)), false)
		}
	}
	s.forget(messages)
	s.show(messages, &now, false)
	for i, t := range open {
		if s.open[i].id != t.id {
			s.putEvent(&s.open[i].start, true)
		}
	}
	return nil
}

// forget makes the client forget its messages before it gets others. Otherwise it keeps each
// known id at its place, where another message may belong now. A client keeps reasoning and
// activities unless a snapshot has some.
func (s *stream) forget(next []payload.Message) {
	var list []payload.Message
	for _, role := range []string{payload.RoleReasoning, payload.RoleActivity} {
		if slices.ContainsFunc(next, func(m payload.Message) bool { return m.Role == role }) {
			m := payload.Message{ID: aguiwire.Rename(s.invocation, int64(len(list))), Role: role, Content: payload.Text("")}
			if role == payload.RoleActivity {
				m.ActivityType, m.Content = "none", []byte("{}")
			}
			list = append(list, m)
		}
	}
	clear(s.known)
	s.snapshot(list, member{})
}

// putEvent gathers an event, if the client may get it.
func (s *stream) putEvent(e *tapedeck.Event, again bool) {
	if b, ok := s.event(e, again); ok {
		s.put(b)
	}
}

// revert forgets what was opened at an offset or later.
func (o *openThings) revert(to int64) {
	*o = slices.DeleteFunc(*o, func(t openThing) bool { return t.start.Offset >= to })
}

// showAll gathers the messages of a conversation, and the state if that is wanted. A
// client without a state in the log gets an empty one if it may have another.
func (s *stream) showAll(now *view.Snapshot, state bool) {
	s.naming.Learn(now, s.invocation)
	s.show(s.form().Messages(now), now, state)
}

func (s *stream) show(messages []payload.Message, now *view.Snapshot, state bool) {
	s.stale = false
	for i := range messages {
		if len(messages[i].Metadata) > 0 { // otherwise it only holds calls, and may still begin
			s.known[messages[i].ID] = true
		}
		for _, k := range messages[i].ToolCalls {
			s.known[callKey(k.ID)] = true
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
