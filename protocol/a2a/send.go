package a2a

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// A sent is what a message has led to: a task as of an offset. If whole, nothing
// follows.
type sent struct {
	fold    *fold
	from    int64 // its updates are from this offset on
	began   int64 // those that the message has led to are from this offset on
	whole   bool
	begun   bool // the client has its history: the message began a run, or answered a question
	refused bool // the task is not stored, and has no history
}

// task returns the task with as much of its history as the client wants.
func (s *sent) task(in *sdk.SendMessageRequest) *sdk.Task {
	t := s.fold.task()
	if s.refused {
		t.History = nil
	}
	if in.Config != nil {
		t = trim(t, in.Config.HistoryLength)
	}
	return t
}

// send carries out a message, and sets the push notification config that came with it.
func (c *call) send(ctx context.Context, in *sdk.SendMessageRequest) (sent, error) {
	if err := checkMessage(in); err != nil {
		return sent{}, err
	}
	if in.Config != nil && in.Config.PushConfig != nil {
		if err := c.checkPush(in.Config.PushConfig); err != nil {
			return sent{}, err
		}
	}
	s, err := c.carryOutMessage(ctx, in)
	if err == nil {
		err = c.setPushOf(ctx, in, &s)
	}
	return s, err
}

// carryOutMessage rewinds, answers a question of the agent, or gives the agent a task.
func (c *call) carryOutMessage(ctx context.Context, in *sdk.SendMessageRequest) (sent, error) {
	if err := c.settleIDs(in.Message); err != nil {
		return sent{}, err
	}
	if before, ok := rewindOf(in.Message.Metadata); ok {
		return c.rewind(ctx, in.Message, before)
	}
	text, err := textOf(in.Message)
	if err != nil {
		return sent{}, err
	}
	if in.Message.TaskID != "" {
		done, handled, err := c.continueTask(ctx, in.Message, text)
		if handled || err != nil {
			return done, err
		}
	}
	return c.start(ctx, in, text)
}

// settleIDs makes the task and the context of a message agree. For the task of a
// session, both are the id of the session.
func (c *call) settleIDs(m *sdk.Message) error {
	if m.TaskID == "" {
		if c.Policy == PerSession && m.ContextID != "" {
			m.TaskID = sdk.TaskID(m.ContextID)
		}
		return nil
	}
	if string(m.TaskID) == m.ContextID && c.Policy != PerSession {
		return taskNotFound.of(tapedeck.Errorf(tapedeck.NotFound, "there is no task %s: each run is a task here", m.TaskID).
			WithHint("send the contextId only, or start the server with --a2a-tasks per-session, which gives a session one task with its id"))
	}
	r, err := c.parseRef(string(m.TaskID))
	if err != nil {
		return err
	}
	if m.ContextID != "" && m.ContextID != r.session {
		return invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "task %s is not in the context %s", m.TaskID, m.ContextID))
	}
	m.ContextID = r.session
	return nil
}

// continueTask sends a message to a task that exists. It reports false if the message
// begins a run, which it can in the task of a session.
func (c *call) continueTask(ctx context.Context, m *sdk.Message, text string) (sent, bool, error) {
	r, err := c.parseRef(string(m.TaskID))
	if err != nil {
		return sent{}, true, err
	}
	f, err := c.load(ctx, r, -1)
	if r.invocation == "" && tapedeck.KindOf(err) == tapedeck.NotFound {
		return sent{}, false, nil // the client chose the id of its session
	}
	switch {
	case err != nil:
		return sent{}, true, err
	case len(f.questions) > 0:
		done, err := c.answerQuestion(ctx, f, m, text)
		return done, true, err
	case r.invocation == "":
		return sent{}, false, nil
	case f.terminal():
		return sent{}, true, unsupportedOperation.of(tapedeck.Errorf(tapedeck.Conflict, "task %s has ended", m.TaskID).
			WithHint("send the message with the contextId only; it begins a new task"))
	case f.rests():
		return sent{}, true, unsupportedOperation.of(tapedeck.Errorf(tapedeck.Conflict, "the run of task %s has ended, and the session waits for the next one", m.TaskID).
			WithHint("send the message with the contextId only; it begins a new task"))
	}
	return sent{}, true, unsupportedOperation.of(tapedeck.Errorf(tapedeck.Conflict, "the agent is working on task %s", m.TaskID).
		WithHint("wait until it ends, or cancel it"))
}

// answerQuestion answers the question that a message names, by default the one that the
// task shows: its oldest pending question.
func (c *call) answerQuestion(ctx context.Context, f *fold, m *sdk.Message, text string) (sent, error) {
	q := f.questions[0]
	if id := named(m); id != "" {
		i := slices.IndexFunc(f.questions, func(q *question) bool { return q.ID == id })
		if i < 0 {
			return sent{}, unsupportedOperation.of(tapedeck.Errorf(tapedeck.Conflict, "the question %.100q is not pending", id).
				WithHint("look at the status of the task"))
		}
		q = f.questions[i]
	}
	option, err := q.choose(m, text)
	if err != nil {
		return sent{}, err
	}
	done, err := c.Verbs.Answer(ctx, api.Answer{Session: f.session, Permission: q.ID, Option: option, Offset: &q.offset})
	if err != nil {
		return sent{}, err
	}
	if f, err = c.load(ctx, f.ref, done.Offset+1); err != nil {
		return sent{}, err
	}
	// If another question is pending, the task waits for its answer: nothing follows.
	return sent{fold: f, from: done.Offset + 1, began: done.Offset + 1, whole: f.rests(), begun: true}, nil
}

// named returns the id of the question that a message names in a data part, "" for none.
func named(m *sdk.Message) string {
	for _, p := range m.Parts {
		d, _ := p.Data().(map[string]any)
		if id, ok := d["permission"].(string); ok {
			return id
		}
	}
	return ""
}

// choose returns the id of the option that a message names: the member "option" of a
// data part, a decision of kagent's, or the name of the option as text.
func (q *question) choose(m *sdk.Message, text string) (string, error) {
	want, kind := strings.TrimSpace(text), ""
	for _, p := range m.Parts {
		d, _ := p.Data().(map[string]any)
		if s, ok := d["option"].(string); ok {
			want = s
		}
		switch d["decision_type"] {
		case "approve":
			kind = "allow_once"
		case "deny", "reject":
			kind = "reject_once"
		}
	}
	var names []string
	for _, o := range q.Options {
		if o.ID == want || strings.EqualFold(o.Name, want) || kind != "" && o.Kind == kind {
			return o.ID, nil
		}
		names = append(names, o.ID)
	}
	return "", invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "the message chooses none of the options of the question").
		WithHint("send one of them as text, or as data {\"option\": …}: %s", strings.Join(names, ", ")))
}

// start gives the agent a task.
func (c *call) start(ctx context.Context, in *sdk.SendMessageRequest, text string) (sent, error) {
	m := in.Message
	t := api.Task{Session: m.ContextID, Create: true, Text: text, Agent: c.agent.Name, MessageID: m.ID}
	if v, ok := m.Metadata[keyConfig]; ok {
		if _, object := v.(map[string]any); !object {
			return sent{}, invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "the metadata %s is not an object", keyConfig))
		}
		t.Config = encodeJSON(v)
	}
	s, err := c.Verbs.Start(ctx, t)
	if err != nil {
		return sent{}, startFault(err)
	}
	r := c.refOf(s.Session, s.Invocation)
	at := s.Offset + 1
	if s.Repeated {
		if _, err := c.load(ctx, ref{s.Session, s.Invocation}, -1); tapedeck.KindOf(err) == tapedeck.NotFound {
			return sent{}, unsupportedOperation.of(tapedeck.Errorf(tapedeck.Conflict, "the message %.100q was sent before, and its run was reverted", m.ID).
				WithHint("send the message with a new messageId"))
		}
		head, err := c.Sessions.Head(ctx, s.Session)
		if err != nil {
			return sent{}, err
		}
		at = head.Head
	}
	f, err := c.load(ctx, r, at)
	if err != nil {
		return sent{}, err
	}
	return sent{fold: f, from: at, began: s.Offset + 1, whole: s.Repeated && f.rests(), begun: !s.Repeated}, nil
}

// startFault gives an error of a start its code. A session that cannot take the message
// is not a task that was not found.
func startFault(err error) error {
	switch tapedeck.KindOf(err) {
	case tapedeck.NotFound, tapedeck.Gone:
		return unsupportedOperation.of(err)
	}
	return err
}

// result carries out a message and returns the task: when the agent rests, or at once if
// the client wants that.
func (c *call) result(in *sdk.SendMessageRequest) (*sdk.Task, error) {
	ctx := c.r.Context()
	s, err := c.send(ctx, in)
	if err != nil {
		return nil, err
	}
	if !s.whole && (in.Config == nil || !in.Config.ReturnImmediately) {
		if s.fold, err = c.await(ctx, s.fold, s.from); err != nil {
			return nil, err
		}
	}
	return s.task(in), nil
}

// cancel cancels the run of a task and returns the task afterwards.
func (c *call) cancel(ctx context.Context, id string) (*sdk.Task, error) {
	r, err := c.parseRef(id)
	if err != nil {
		return nil, err
	}
	f, err := c.load(ctx, r, -1)
	if err != nil {
		return nil, err
	}
	if f.open == "" {
		return nil, taskNotCancelable.of(tapedeck.Errorf(tapedeck.Conflict, "task %s has ended, so it cannot be cancelled", id))
	}
	if _, err := c.Verbs.Cancel(ctx, r.session, f.open); err != nil {
		if tapedeck.KindOf(err) == tapedeck.Conflict {
			err = taskNotCancelable.of(err)
		}
		return nil, err
	}
	if f, err = c.load(ctx, r, -1); err != nil {
		return nil, err
	}
	return f.task(), nil
}

// get returns a task.
func (c *call) get(ctx context.Context, id string, length *int) (*sdk.Task, error) {
	r, err := c.parseRef(id)
	if err != nil {
		return nil, err
	}
	f, err := c.load(ctx, r, -1)
	if err != nil {
		return nil, err
	}
	return trim(f.task(), length), nil
}

// rewindOf returns the invocation before which a message with this metadata rewinds. An
// empty one counts as none, as in the agents of kagent.
func rewindOf(metadata map[string]any) (string, bool) {
	switch v := metadata[keyRewind].(type) {
	case nil:
		return "", false
	case string:
		return v, v != ""
	default:
		b, _ := json.Marshal(v)
		return string(b), true // no invocation has this id
	}
}
