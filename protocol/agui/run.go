package agui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// continueTask is the task of a run without new words of the user, such as one that
// brings the answer of a tool in the front end.
const continueTask = "Continue where you left off."

// noText is the task if the message of the user has only attachments.
const noText = "(a message without text)"

// run starts a run, or gives answers to a run that waits for them, and streams it.
func (h *handler) run(w http.ResponseWriter, r *http.Request) error {
	in, err := h.readInput(w, r)
	if err != nil {
		return err
	}
	return h.runInput(w, r, in)
}

func (h *handler) runInput(w http.ResponseWriter, r *http.Request, in *input) error {
	head, err := h.Sessions.Head(r.Context(), in.place.session)
	switch kind := tapedeck.KindOf(err); {
	case kind == tapedeck.NotFound:
	case err != nil:
		return err
	case head.Kind != tapedeck.KindSession:
		return tapedeck.Errorf(tapedeck.NotFound, "there is no session %q", in.place.session)
	}
	now := view.Snapshot{}
	if err == nil {
		if now, err = h.Views.Snapshot(r.Context(), in.place.session, view.Query{At: new(head.Head), Thread: in.place.lane}); err != nil {
			return err
		}
	}
	if _, busy := head.Run(in.place.lane); busy && len(in.resume) > 0 {
		return h.resume(w, r, in, &now, &head)
	}
	if err := checkAnswers(in.resume, leftBy(now.Runs), askedIn(&now)); err != nil {
		return err
	}
	task, err := h.taskOf(r.Context(), in, &now, &head)
	if err != nil {
		return err
	}
	started, err := h.Verbs.Start(r.Context(), task)
	if err != nil {
		return err
	}
	s := h.newStream(w, in, started.Invocation, in.RunID)
	s.naming.Learn(&now, started.Invocation)
	for i := range in.Messages {
		m := &in.Messages[i]
		s.known[m.ID] = true
		s.naming.Sent(m)
	}
	return s.follow(r, started.Offset)
}

// resume answers the questions of an open run and streams how it continues. The
// client may lack events that came after the questions, so it gets a snapshot first: as
// of the answers, because it gets what follows from them as events.
func (h *handler) resume(w http.ResponseWriter, r *http.Request, in *input, now *view.Snapshot, head *tapedeck.Session) error {
	open, _ := head.Run(in.place.lane)
	if fresh := aguiwire.NewMessages(in.Messages, aguiwire.Known(now)); len(fresh) > 0 {
		return tapedeck.Errorf(tapedeck.Conflict, "thread %s is busy with %s, so it takes answers but no new message", in.place.id, open.Invocation).
			WithHint("send the message when the run has ended, or as a task with when=queue")
	}
	answered, err := h.answer(r.Context(), in, now)
	if err != nil {
		return err
	}
	then := *head
	then.Head = answered + 1
	return h.attach(w, r, in, &then, cmp.Or(in.RunID, open.Invocation))
}

// taskOf returns the task that an input means.
func (h *handler) taskOf(ctx context.Context, in *input, now *view.Snapshot, head *tapedeck.Session) (api.Task, error) {
	t := api.Task{
		Session: in.place.session, Thread: in.place.lane, Agent: in.agent, Create: true, Invocation: in.RunID,
		State: newState(in.State, now.State), Text: continueTask,
	}
	var err error
	if t.Messages, err = h.freshMessages(ctx, in, now, head); err != nil {
		return t, err
	}
	if t.State != nil && len(t.Messages) > 0 && isBehind(in, now) {
		return t, tapedeck.Errorf(tapedeck.Conflict, "the client has another state than thread %s, and lacks its newest messages", in.place.id).
			WithHint("connect to the thread, and send the message again; without state, or with an empty one, the state stays as it is")
	}
	if len(t.Messages) == 0 && len(in.resume) == 0 {
		if t.Messages, t.Rewind, err = h.askAgain(ctx, in, now, head); err != nil {
			return t, err
		}
	}
	if t.Rewind != nil {
		t.Expect = &head.Head // what somebody has added meanwhile must not be reverted
	}
	if n := len(t.Messages); n > 0 && t.Messages[n-1].Role == payload.RoleUser {
		t.Text = cmp.Or(string(bytes.TrimSpace([]byte(t.Messages[n-1].Text()))), noText)
	}
	t.Config = configOf(in.ForwardedProps)
	if in.Tools != nil || in.Context != nil || in.ForwardedProps != nil || in.Resume != nil {
		input := in.RunInput
		input.Messages, input.Extra = []payload.Message{}, nil
		if t.State == nil && now.State != nil {
			input.State = now.State.Value // that of the thread counts, and the client may have another one
		}
		if isTooLarge(now.State) {
			input.State = nil
		}
		t.Input = &input
	}
	return t, nil
}

// configOf returns the config for the runner, which a client gives as the member
// tapedeck.config of its forwardedProps; nil for none.
func configOf(props json.RawMessage) json.RawMessage {
	raw := jsonobj.Member(jsonobj.Member(props, metaKey), "config")
	if jsonobj.IsNull(raw) {
		return nil
	}
	return raw
}

// freshMessages returns the messages that the thread does not have: those after the
// newest one that it has, without what an earlier attempt of a step said.
func (h *handler) freshMessages(ctx context.Context, in *input, now *view.Snapshot, head *tapedeck.Session) ([]payload.Message, error) {
	fresh := aguiwire.NewMessages(in.Messages, aguiwire.Known(now))
	if len(fresh) > 0 && len(fresh) == len(in.Messages) && now.Earlier > 0 {
		all, err := h.conversation(ctx, in.place, now.At) // the client is far behind
		if err != nil {
			return nil, err
		}
		fresh = aguiwire.NewMessages(in.Messages, aguiwire.Known(&all))
	}
	fresh = slices.DeleteFunc(slices.Clone(fresh), func(m payload.Message) bool { return m.Role == payload.RoleActivity })
	fresh, err := h.leaveOut(ctx, in, fresh, head)
	if err != nil {
		return nil, err
	}
	names := aguiwire.NamesOf(now)
	for i := range fresh {
		if jsonobj.IsNull(fresh[i].Content) {
			fresh[i].Content = nil
		}
		fresh[i].ToolCallID = names.LogCall(fresh[i].ToolCallID)
		delete(fresh[i].Metadata, metaKey) // what the server sent, or what a client must not set
	}
	return fresh, checkIDs(fresh)
}

// leaveOut removes from new messages what an earlier attempt of a step said. It refuses one
// that the thread has reverted. What the request wants, a last message of a user or the last
// answers of tools, may be one of these: the client can send it again.
func (h *handler) leaveOut(ctx context.Context, in *input, fresh []payload.Message, head *tapedeck.Session) ([]payload.Message, error) {
	end := len(fresh)
	for end > 0 && fresh[end-1].Role == payload.RoleTool {
		end--
	}
	if end > 0 && end == len(fresh) && fresh[end-1].Role == payload.RoleUser {
		end--
	}
	var ids, kept []string
	for i := range fresh[:end] {
		if m := &fresh[i]; m.Role == payload.RoleReasoning { // no snapshot without reasoning removes it
			kept = append(kept, m.ID)
		} else {
			ids = append(ids, m.ID)
		}
	}
	past := aguiwire.Past{
		Head: head, Thread: in.place.lane, Events: h.Sessions, Timelines: h.Views,
		What: "thread " + in.place.id, Hint: "connect to the thread",
	}
	repeated, err := past.Repeated(ctx, ids, kept)
	if err != nil || len(repeated) == 0 {
		return fresh, err
	}
	wanted := fresh[end:]
	return slices.Concat(slices.DeleteFunc(fresh[:end], func(m payload.Message) bool { return repeated[m.ID] }), wanted), nil
}

// checkIDs refuses two new messages with one id, because the second would replace the
// first. Reasoning may have the id of the message that it is about.
func checkIDs(list []payload.Message) error {
	type key struct {
		id        string
		reasoning bool
	}
	seen := map[key]bool{}
	for i := range list {
		k := key{list[i].ID, list[i].Role == payload.RoleReasoning}
		if seen[k] {
			return tapedeck.Errorf(tapedeck.Invalid, "two new messages have the id %.100q", k.id).WithHint("give each message an id of its own")
		}
		seen[k] = true
	}
	return nil
}

// askAgain returns the last message of the client, if that is a user's and has an
// answer already: the client wants another answer. The rewind, which can be undone, reverts
// the old one, which is no part of now any more.
func (h *handler) askAgain(ctx context.Context, in *input, now *view.Snapshot, head *tapedeck.Session) ([]payload.Message, *api.Rewind, error) {
	nothing := tapedeck.Errorf(tapedeck.Invalid, "the input has no new message for the agent").
		WithHint("add a message of the user, or the answer of a tool, with an id that the thread does not have")
	n := len(in.Messages)
	if n == 0 || in.Messages[n-1].Role != payload.RoleUser {
		return nil, nil, nothing
	}
	if open, busy := head.Run(in.place.lane); busy {
		return nil, nil, tapedeck.Errorf(tapedeck.Conflict, "thread %s is busy with %s", in.place.id, open.Invocation).
			WithHint("connect to it, or stop it; a task with when=queue waits for its end")
	}
	last := in.Messages[n-1]
	i := slices.IndexFunc(now.Messages, func(m view.Message) bool { return m.ID == last.ID })
	if i < 0 {
		return nil, nil, nothing
	}
	// The request may be a repetition of the one that got the answer.
	_, used, err := h.Views.FindInvocation(ctx, in.place.session, in.RunID)
	if err != nil || used {
		return nil, nil, cmp.Or(err, error(tapedeck.Errorf(tapedeck.Conflict, "session %s has a run %s already", in.place.session, in.RunID).
			WithHint("connect to the thread; to ask again, use another runId")))
	}
	at := now.Messages[i].Offset
	if *now, err = h.Views.Snapshot(ctx, in.place.session, view.Query{At: &at, Thread: in.place.lane}); err != nil {
		return nil, nil, err
	}
	delete(last.Metadata, metaKey)
	return []payload.Message{last}, &api.Rewind{ToOffset: &at}, nil
}

// newState returns the state of the client, nil if the thread has it already. An
// empty object, or null, changes nothing: it is what a client without state sends, and
// what one sends that has not connected to the thread. If the state of the thread is too
// large for a frame, no client has it, so none can say that it has changed.
func newState(state json.RawMessage, now *view.State) json.RawMessage {
	var theirs, ours any
	if state == nil || isTooLarge(now) || json.Unmarshal(state, &theirs) != nil || theirs == nil {
		return nil
	}
	if m, ok := theirs.(map[string]any); ok && len(m) == 0 {
		return nil
	}
	if now != nil && json.Unmarshal(now.Value, &ours) == nil && reflect.DeepEqual(theirs, ours) {
		return nil
	}
	return state
}

// isBehind reports whether a client has some messages of a thread and lacks the newest one:
// somebody else has continued the thread since, and the client has not seen it. A client that
// has none sends only what is new.
func isBehind(in *input, now *view.Snapshot) bool {
	newest, inLog := "", ""
	names := aguiwire.NamesOf(now)
	for i := range now.Messages {
		if m := &now.Messages[i]; slices.Contains([]string{payload.RoleUser, payload.RoleAssistant, payload.RoleTool}, m.Role) {
			newest, inLog = names.Message(m), m.ID
		}
	}
	known := aguiwire.Known(now)
	has := func(match func(id string) bool) bool {
		return slices.ContainsFunc(in.Messages, func(m payload.Message) bool { return match(m.ID) })
	}
	return has(func(id string) bool { return known[id] }) && !has(func(id string) bool { return id == newest || id == inLog })
}

// isTooLarge reports whether no frame can have the state.
func isTooLarge(s *view.State) bool { return s != nil && len(s.Value) > maxFrame }

// stop cancels the open run of a thread. A run that the request names must not have
// ended: a late stop must not hit the next run.
func (h *handler) stop(w http.ResponseWriter, r *http.Request) error {
	var d struct {
		RunID string `json:"runId"`
	}
	if r.ContentLength != 0 {
		body, err := h.readJSON(w, r)
		if err != nil {
			return err
		}
		if json.Unmarshal(body, &d) != nil {
			return tapedeck.Errorf(tapedeck.Invalid, "the runId must be a string")
		}
	}
	return h.stopRun(w, r, r.PathValue("agent"), r.PathValue("thread"), d.RunID)
}

func (h *handler) stopRun(w http.ResponseWriter, r *http.Request, agent, thread, runID string) error {
	at, err := parseThread(thread)
	if err == nil {
		agent, err = h.agent(agent)
	}
	if err != nil {
		return err
	}
	if agent == "" {
		agent = h.Verbs.Agents()[0].Name
	}
	stopped, err := h.stopped(r.Context(), at, agent, runID)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, struct {
		Stopped bool `json:"stopped"`
	}{stopped})
}

// stopped cancels the open run of an agent in a thread and reports whether it did.
func (h *handler) stopped(ctx context.Context, at place, agent, runID string) (bool, error) {
	head, err := h.Sessions.Head(ctx, at.session)
	open, busy := head.Run(at.lane)
	switch {
	case tapedeck.KindOf(err) == tapedeck.NotFound:
		return false, nil
	case err != nil || !busy:
		return false, err
	}
	if err := h.checkAgent(ctx, at, head.Head, open, agent); err != nil {
		return false, err
	}
	if runID != "" && runID != open.Invocation && tapedeck.CheckID("the runId", runID) == nil {
		// A run that only brought answers has an id that the log does not have.
		if _, other, err := h.Views.FindInvocation(ctx, at.session, runID); err != nil || other {
			return false, err
		}
	}
	_, err = h.Verbs.Cancel(ctx, at.session, open.Invocation)
	if tapedeck.KindOf(err) == tapedeck.Conflict {
		return false, nil // it has ended by itself
	}
	return err == nil, err
}

// checkAgent refuses the run of another agent of this server. A run that is written by
// another program, or by a sub-agent, has no path of its own, so that of any agent will do.
func (h *handler) checkAgent(ctx context.Context, at place, head int64, open tapedeck.OpenRun, agent string) error {
	now, err := h.Views.Snapshot(ctx, at.session, view.Query{At: &head, Thread: at.lane, Limit: 1})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(now.Runs, func(r view.Run) bool { return r.Invocation == open.Invocation })
	if i < 0 || now.Runs[i].Agent == agent {
		return nil
	}
	if slices.ContainsFunc(h.Verbs.Agents(), func(a tapedeck.Agent) bool { return a.Name == now.Runs[i].Agent }) {
		return tapedeck.Errorf(tapedeck.NotFound, "the agent %s has no open run in thread %s", agent, at.id).WithHint("the thread has a run of %s", now.Runs[i].Agent)
	}
	return nil
}
