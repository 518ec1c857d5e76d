package a2a

import (
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
)

// The names of metadata that clients of ADK and of kagent read.
const (
	keyInvocation = "invocation_id"
	keySession    = "session_id"
	keyApp        = "app_name"
	keyAuthor     = "author"
)

// prefixes begin the names of metadata. Clients read one of them.
var prefixes = [...]string{"adk_", "kagent_"}

// keyRewind is the name of the metadata that makes a message a rewind.
const keyRewind = "kagent_rewind_before_invocation_id"

// keyConfig is the name of the metadata with the config of the task.
const keyConfig = "tapedeckConfig"

// keyOffset is the name of the metadata with the offset of the newest event in a task.
const keyOffset = "tapedeckOffset"

// metadata returns metadata with names and values by turns, each name with each prefix.
// Empty values are left out.
func metadata(pairs ...string) map[string]any {
	m := make(map[string]any, len(pairs))
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		for _, p := range prefixes {
			m[p+pairs[i]] = pairs[i+1]
		}
	}
	return m
}

// meta returns the metadata of what belongs to an invocation. The updates of artifacts,
// which are many, have nothing but the invocation.
func (f *fold) meta(invocation string) map[string]any {
	return metadata(keyInvocation, invocation, keySession, f.session, keyApp, f.agent)
}

// message returns a message of the task.
func (f *fold) message(e *tapedeck.Event, role sdk.MessageRole, id string, parts ...*sdk.Part) *sdk.Message {
	author := "user"
	if role == sdk.MessageRoleAgent {
		author = f.agent
	}
	return &sdk.Message{
		ID: f.messageID(id, e.Invocation), Role: role, TaskID: sdk.TaskID(f.id()), ContextID: f.session, Parts: parts,
		Metadata: metadata(keyInvocation, e.Invocation, keySession, f.session, keyApp, f.agent, keyAuthor, author),
	}
}

// messageID returns the id of a message in the task. Two runs may use the same id.
func (f *fold) messageID(id, invocation string) string {
	if i, used := f.places[id]; used && f.history[i].Metadata[prefixes[0]+keyInvocation] != any(invocation) {
		return id + divider + invocation
	}
	return id
}

// status sets the state of the task, adds the message to the history, and returns the
// update that says so.
func (f *fold) status(e *tapedeck.Event, state sdk.TaskState, m *sdk.Message) []sdk.Event {
	f.state, f.at, f.last = state, e.Time, nil
	if m != nil {
		f.remember(m)
		if m.Role == sdk.MessageRoleAgent {
			f.last = m
		}
	}
	at := e.Time
	return []sdk.Event{&sdk.TaskStatusUpdateEvent{
		TaskID: sdk.TaskID(f.id()), ContextID: f.session, Metadata: f.meta(e.Invocation),
		Status: sdk.TaskStatus{State: state, Message: m, Timestamp: &at},
	}}
}

// now returns the update that says what the state of the task is.
func (f *fold) now() *sdk.TaskStatusUpdateEvent {
	t := f.task()
	return &sdk.TaskStatusUpdateEvent{TaskID: t.ID, ContextID: t.ContextID, Status: t.Status, Metadata: t.Metadata}
}

// remember adds a message to the history. A message that continues after its end
// replaces the part of it that was there.
func (f *fold) remember(m *sdk.Message) {
	if i, ok := f.places[m.ID]; ok {
		f.history[i] = m
		return
	}
	f.places[m.ID] = len(f.history)
	f.history = append(f.history, m)
}

// task returns the task as it is now.
func (f *fold) task() *sdk.Task {
	t := &sdk.Task{
		ID: sdk.TaskID(f.id()), ContextID: f.session, History: append([]*sdk.Message{}, f.history...), // not nil, see [a2a03.Task]
		Metadata: f.meta(f.metaInvocation()), Status: sdk.TaskStatus{State: f.state, Message: f.last, Timestamp: timeOrNil(f.at)},
	}
	t.Metadata[keyOffset] = f.through
	for _, a := range f.artifacts {
		t.Artifacts = append(t.Artifacts, &sdk.Artifact{
			ID: a.artifact, Parts: sdk.ContentParts{sdk.NewTextPart(a.sent())}, Metadata: metadata(keyInvocation, a.invocation),
		})
	}
	return t
}

// metaInvocation returns the invocation that the task names: its own, or for the task
// of a session that of its newest message.
func (f *fold) metaInvocation() string {
	if f.invocation != "" || len(f.history) == 0 {
		return f.invocation
	}
	return invocationOf(f.history[len(f.history)-1])
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// trim keeps the newest messages of the history, as many as the client asks for; nil
// for all.
func trim(t *sdk.Task, length *int) *sdk.Task {
	if length != nil && *length >= 0 && *length < len(t.History) {
		t.History = t.History[len(t.History)-*length:]
	}
	return t
}
