package llm

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A memory is the conversation of one thread. It is the same fold that a later run builds
// from the log. So the model gets exactly the same messages in the middle of a run and
// after a restart.
type memory struct {
	in   *tapedeck.Invocation
	fold view.Conversation
	next int64               // the offset of the next event of the run in this fold
	ids  map[string]struct{} // the ids of all tool calls
}

func newMemory(in *tapedeck.Invocation) *memory {
	m := &memory{in: in, ids: map[string]struct{}{}}
	m.fold.Keep()
	return m
}

// recall folds the history, the system text and the task.
func (m *memory) recall(ctx context.Context, system string) error {
	thread := threadOf(m.in)
	if m.in.History != nil {
		for e, err := range m.in.History(ctx) {
			if err != nil {
				return err
			}
			m.next = e.Offset + 1
			if e.Channel == tapedeck.ChannelSession || e.ThreadName() == thread {
				m.fold.Apply(&e)
			}
		}
	}
	for _, k := range m.fold.Thread(thread).Calls {
		m.ids[k.ID] = struct{}{}
	}
	if now := m.fold.Thread(thread).Threads; system != "" || len(now) > 0 && now[0].Prompt != nil {
		m.add(payload.NewEvent(payload.NewPrompt(system)))
	}
	// The id is unique, because the log does not have the task in this form.
	m.add(payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage(m.in.ID+".task", payload.RoleUser, m.in.Task)}))
	return nil
}

func threadOf(in *tapedeck.Invocation) string {
	e := tapedeck.Event{Thread: in.Thread}
	return e.ThreadName()
}

// add folds an event of the run.
func (m *memory) add(e tapedeck.Event) {
	e.Offset, e.Channel = m.next, tapedeck.ChannelOf(e.Type)
	e.Thread, e.Invocation = threadOf(m.in), m.in.ID
	m.next++
	m.fold.Apply(&e)
}

// messages returns the messages for the model.
func (m *memory) messages() []view.ContextMessage {
	return view.Context(m.fold.Thread(threadOf(m.in)), view.InThread(m.in.Thread))
}

// maxCallID is the length of the longest call id that providers accept.
const maxCallID = 40

// callID returns the id of a call in the log. It is the provider's id if that is valid
// and new in the conversation. Some providers send no id, and some use the same ids in
// every answer.
func (m *memory) callID(given string) string {
	id := given
	if _, used := m.ids[id]; used || len(id) > maxCallID || tapedeck.CheckID("the call's id", id) != nil {
		id = tapedeck.NewID("call_")
	}
	m.ids[id] = struct{}{}
	return id
}
