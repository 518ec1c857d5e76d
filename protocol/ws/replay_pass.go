package ws

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/view"
)

// passedType is the type of an event that has a frame of a diagram which the server does not
// run. It is no event of a workflow, because it has no definition: no view reads it.
const passedType = "replay.frame"

// ofDiagram has the types of frames that are passed on: those of a backend, and those with
// which a page asks the backend for something.
var ofDiagram = map[string]bool{
	typeStarted: true, typeCompleted: true, "workflow.cancelled": true, typeActivated: true, typeElement: true,
	"task.progress": true, typeTaskError: true, typeCancelled: true, "task.cancellable": true, "task.cancelling": true, "task.cancel.failed": true,
	"agent.tool_use": true, typeUserTask: true, "gateway.evaluating": true, typePathTaken: true, "task.cancel.request": true,
}

// pass stores a frame of a diagram. All sockets get it from the log.
func (r *replay) pass(ctx context.Context, m *replayMessage, raw []byte) error {
	if !strings.HasPrefix(m.Type, "workflow.") && m.Type != typeTaskDone {
		if _, err := threadOf(m.ElementID); err != nil {
			return err
		}
		if err := r.in.leave(ctx, r.handler, r.session, m); err != nil {
			return err
		}
		r.in.last = m.ElementID
	}
	var frame bytes.Buffer
	if err := json.Compact(&frame, raw); err != nil {
		return err
	}
	_, err := r.Verbs.Append(ctx, tapedeck.Append{Session: r.session, Events: []tapedeck.Event{
		{Type: passedType, Channel: tapedeck.ChannelWorkflow, Data: frame.Bytes()},
	}})
	return err
}

// passed returns the frame in an event, with a time; nil if there is none. Other protocols
// can write anything into such an event.
func passed(e *tapedeck.Event) []byte {
	typ := jsonobj.StringOf(jsonobj.Member(e.Data, "type"))
	if !ofDiagram[typ] && typ != typeTaskDone {
		return nil
	}
	if jsonobj.Member(e.Data, "timestamp") != nil {
		return e.Data
	}
	return append(append(slices.Clone(e.Data[:len(e.Data)-1]), `,"timestamp":"`+timestamp(e.Time)...), `"}`...)
}

// What the page of the source decides.
const (
	decisionApproved = "approved"
	decisionRejected = "rejected"
)

// A taskAnswer is what a page says about a user task.
type taskAnswer struct {
	TaskID   string           `json:"taskId"`
	Decision string           `json:"decision"` // decisionApproved or decisionRejected
	Comments string           `json:"comments"`
	User     string           `json:"user"`
	Input    tapedeck.Members `json:"input"` // the values of the form, by the ids of the fields
}

// completeTask answers the question of a user task of the server's workflow. The answer to
// another user task is passed on to the backend whose task it is.
func (r *replay) completeTask(ctx context.Context, m *replayMessage, raw []byte) error {
	var a taskAnswer
	if err := json.Unmarshal(raw, &a); err != nil {
		return malformed(err)
	}
	if a.TaskID == "" {
		return tapedeck.Errorf(tapedeck.Invalid, "the message has no taskId")
	}
	now, err := r.Views.Snapshot(ctx, r.session, view.Query{Limit: 1})
	if err != nil {
		return err
	}
	tasks, known, err := r.waitingTasks(ctx, now.At, a.TaskID)
	if err != nil {
		return err
	}
	known = known || slices.ContainsFunc(now.Permissions, func(p view.Permission) bool { return p.ID == a.TaskID })
	switch {
	case len(tasks) == 0 && !known:
		return r.pass(ctx, m, raw)
	case len(tasks) == 0:
		return tapedeck.Errorf(tapedeck.Conflict, "the task %.128q waits for no answer", a.TaskID).WithHint("it was answered before, or its run has ended")
	case len(tasks) > 1:
		return tapedeck.Errorf(tapedeck.Conflict, "%d tasks %.128q wait for an answer", len(tasks), a.TaskID).
			WithHint("send the id of the question as taskId; the first is %s", tasks[0].id)
	}
	element, q := tasks[0].element, tapedeck.Question{ID: tasks[0].id}
	if i := slices.IndexFunc(now.Permissions, func(p view.Permission) bool { return p.ID == q.ID }); i >= 0 {
		p := &now.Permissions[i]
		_ = json.Unmarshal(p.Form, &q.Form) // a form of another shape asks for nothing
		for _, o := range p.Options {
			q.Options = append(q.Options, tapedeck.PermissionOption{ID: o.ID, Kind: o.Kind})
		}
	}
	answer, err := a.answer(element, &q)
	if err != nil {
		return err
	}
	answer.Session = r.session
	_, err = r.Verbs.Answer(ctx, answer)
	return err
}

// waitingTasks returns the user tasks of the open workflows of the session that wait for an
// answer. The id is the element's or the question's. known says whether a workflow has, or
// had, such a task.
func (r *replay) waitingTasks(ctx context.Context, at int64, id string) (tasks []userTask, known bool, err error) {
	s, err := r.Sessions.Head(ctx, r.session)
	if err != nil {
		return nil, false, err
	}
	threads := []string{""} // the newest workflow
	for i := range s.Runs {
		if s.Runs[i].Owner != "" {
			threads = append(threads, s.Runs[i].Thread)
		}
	}
	seen := map[string]bool{}
	for _, thread := range threads {
		w, err := r.Views.Workflow(ctx, r.session, thread, at)
		if err != nil {
			return nil, false, err
		}
		if w == nil || seen[w.Invocation] {
			continue
		}
		seen[w.Invocation] = true
		found, has := waitingTasks(w, id)
		tasks, known = append(tasks, found...), known || has
	}
	return tasks, known, nil
}

func waitingTasks(w *view.Workflow, id string) (tasks []userTask, known bool) {
	for i := range w.Activations {
		a := &w.Activations[i]
		known = known || a.Element == id
		for _, wait := range a.Waits {
			if wait.Permission == "" || wait.Permission != id && wait.Element != id {
				continue
			}
			known = true
			if a.EndedAt == nil && wait.Answer == nil {
				tasks = append(tasks, userTask{wait.Permission, wait.Element})
			}
		}
	}
	return tasks, known
}

// answer returns the answer to a question. A decision is an option of the question, or goes
// into the fields of its form that are meant for it.
func (a *taskAnswer) answer(element string, q *tapedeck.Question) (api.Answer, error) {
	out := api.Answer{Permission: q.ID, Input: tapedeck.Members{}}
	if user := "user:" + a.User; a.User != "" && tapedeck.CheckName("the user", user) == nil {
		out.Actor = user
	}
	told := false
	for i := range q.Form {
		f := &q.Form[i]
		value := a.Input[f.ID]
		switch name := strings.TrimPrefix(f.ID, element+"_"); {
		case f.ReadOnly:
			continue
		case value != nil:
		case name == "decision", name == "approved":
			value = a.decision(f)
			told = told || value != nil
		case name == "comments" && a.Comments != "":
			value = jsonobj.AppendJSON(nil, a.Comments)
		case name == "completedBy" && a.User != "":
			value = jsonobj.AppendJSON(nil, a.User)
		}
		if value != nil {
			out.Input[f.ID] = value
		}
	}
	for name := range a.Input {
		if !slices.ContainsFunc(q.Form, func(f tapedeck.FormField) bool { return f.ID == name && !f.ReadOnly }) {
			return out, tapedeck.Errorf(tapedeck.Invalid, "the form of the task %s has no field %.100q that can be filled in", element, name)
		}
	}
	agrees := told || a.Decision == decisionApproved || a.Decision == "" && len(a.Input) > 0
	for _, o := range q.Options {
		rejects := strings.HasPrefix(o.Kind, "reject")
		if o.ID == a.Decision || out.Option == "" && (rejects && a.Decision == decisionRejected || !rejects && agrees) {
			out.Option = o.ID
		}
	}
	if out.Option == "" {
		return out, tapedeck.Errorf(tapedeck.Invalid, "the task %s cannot be answered with the decision %.64q", element, a.Decision).
			WithHint("its form has no field decision or approved; send the values of its fields in input")
	}
	return out, nil
}

// decision returns a decision as the value of a field; nil if there is none.
func (a *taskAnswer) decision(f *tapedeck.FormField) json.RawMessage {
	word := strings.TrimSuffix(a.Decision, "d") // approve
	if a.Decision == decisionRejected {
		word = "reject"
	}
	switch {
	case a.Decision == "":
		return nil
	case f.Type == "boolean" && a.Decision == decisionApproved:
		return json.RawMessage("true")
	case f.Type == "boolean" && a.Decision == decisionRejected:
		return json.RawMessage("false")
	case f.Type == "boolean":
		return nil
	}
	for _, o := range f.Options {
		if o.Value == a.Decision || strings.HasPrefix(strings.ToLower(o.Value), word) {
			return jsonobj.AppendJSON(nil, o.Value)
		}
	}
	return jsonobj.AppendJSON(nil, a.Decision)
}
