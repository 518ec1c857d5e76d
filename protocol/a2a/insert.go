package a2a

import (
	"context"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/a2a03"
	"github.com/tapedeck/tapedeck/payload"
)

// insertTask makes the conversation of a saved task that of its session, which must not
// exist or have nothing but its beginning. It reports false if the session has more, or the
// task has no messages. The agent has run elsewhere, so its runs have no owner here.
func (c *call) insertTask(ctx context.Context, t *a2a03.Task) (bool, error) {
	if len(t.History) == 0 {
		return false, nil
	}
	s, err := c.Sessions.Head(ctx, t.ContextID)
	absent := tapedeck.KindOf(err) == tapedeck.NotFound
	if err != nil && !absent || s.Head > 1 || err == nil && s.Kind != tapedeck.KindSession {
		return false, err
	}
	if state, _ := a2a03.StateToV1(t.Status.State); !state.Terminal() {
		return false, tapedeck.Errorf(tapedeck.Conflict, "the task is %s, and no agent of this server would continue it", t.Status.State).
			WithHint("save it when it has ended")
	}
	events, err := conversationOf(t)
	if err == nil && absent {
		_, err = c.Verbs.Create(ctx, api.NewSession{ID: t.ContextID})
	}
	if err == nil {
		_, err = c.Verbs.Append(ctx, tapedeck.Append{Session: t.ContextID, Events: events, Expect: new(int64(1))})
	}
	return true, err
}

// conversationOf returns the events of a task that has ended: a run for each invocation. A
// message without a text, such as a tool call, is left out.
func conversationOf(t *a2a03.Task) ([]tapedeck.Event, error) {
	r := outsideRun{used: map[string]bool{}}
	for _, m := range t.History {
		if m == nil || m.ID == "" {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "a message of the history has no messageId")
		}
		role, known := map[string]string{"user": payload.RoleUser, "agent": payload.RoleAssistant}[m.Role]
		if !known {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "a message of the history has the role %.40q; it is user or agent", m.Role)
		}
		text := saidBy(m)
		if text == "" {
			continue
		}
		if err := r.next(m, role); err != nil {
			return nil, err
		}
		r.put(payload.MessageAdded{Message: payload.Message{ID: m.ID, Role: role, Content: payload.Text(text)}})
	}
	if r.invocation == "" {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the history has no message with a text")
	}
	switch state, _ := a2a03.StateToV1(t.Status.State); state {
	case sdk.TaskStateCompleted:
		r.end(nil)
	case sdk.TaskStateFailed:
		why := "the run failed"
		if m := t.Status.Message; m != nil && saidBy(m) != "" {
			why = saidBy(m)
		}
		r.begin()
		r.put(payload.RunError{Message: why})
	default:
		r.end(&payload.Outcome{Type: payload.OutcomeCancelled})
	}
	return r.events, nil
}

// An outsideRun makes the events of runs.
type outsideRun struct {
	events     []tapedeck.Event
	used       map[string]bool // the invocations so far
	invocation string          // of the newest message, "" before the first
	begun      bool            // it has its RUN_STARTED
}

func (r *outsideRun) put(p payload.Payload) {
	e := payload.NewEvent(p)
	e.Invocation = r.invocation
	r.events = append(r.events, e)
}

// next begins the run of a message if it is another one: the invocation that it names, otherwise a new one
// for what a user says after an answer.
func (r *outsideRun) next(m *a2a03.Message, role string) error {
	id, _ := m.Metadata[prefixes[1]+keyInvocation].(string)
	switch {
	case id != "":
		if err := tapedeck.CheckID("the invocation", id); err != nil {
			return err
		}
	case r.invocation == "" || r.begun && role == payload.RoleUser:
		id = tapedeck.NewID("inv_")
	default:
		id = r.invocation
	}
	if id != r.invocation {
		if r.used[id] {
			return tapedeck.Errorf(tapedeck.Invalid, "the messages of the invocation %s do not follow each other", id)
		}
		if r.invocation != "" {
			r.end(nil)
		}
		r.used[id], r.invocation, r.begun = true, id, false
	}
	if role == payload.RoleAssistant {
		r.begin()
	}
	return nil
}

func (r *outsideRun) begin() {
	if !r.begun {
		r.begun = true
		r.put(payload.RunStarted{ThreadID: tapedeck.MainThread, RunID: r.invocation})
	}
}

// end ends the run. outcome is nil for success.
func (r *outsideRun) end(outcome *payload.Outcome) {
	r.begin()
	r.put(payload.RunFinished{ThreadID: tapedeck.MainThread, RunID: r.invocation, Outcome: outcome})
}
