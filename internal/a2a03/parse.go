package a2a03

import (
	"encoding/json"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
)

// Parse returns what an agent of version 0.3 has sent, in the form of version 1.0: a
// task, a message or an update.
func Parse(raw json.RawMessage) (sdk.Event, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	switch head.Kind {
	case "task":
		return parse(raw, (*Task).Modern)
	case "message":
		return parse(raw, (*Message).Modern)
	case "status-update":
		return parse(raw, (*StatusUpdate).modern)
	case "artifact-update":
		return parse(raw, (*ArtifactUpdate).modern)
	}
	return nil, tapedeck.Errorf(tapedeck.Invalid, "A2A 0.3 has no object of the kind %.40q", head.Kind)
}

// parse decodes an object and converts it.
func parse[T any, E sdk.Event](raw json.RawMessage, modern func(*T) (E, error)) (sdk.Event, error) {
	v := new(T)
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, err
	}
	return modern(v)
}

// Modern returns the task in the form of version 1.0.
func (t *Task) Modern() (*sdk.Task, error) {
	status, err := t.Status.modern()
	out := &sdk.Task{ID: sdk.TaskID(t.ID), ContextID: t.ContextID, Status: status, Metadata: t.Metadata}
	for i := 0; i < len(t.History) && err == nil; i++ {
		var m *sdk.Message
		if t.History[i] != nil {
			m, err = t.History[i].Modern()
			out.History = append(out.History, m)
		}
	}
	for i := 0; i < len(t.Artifacts) && err == nil; i++ {
		var a *sdk.Artifact
		a, err = t.Artifacts[i].modern()
		out.Artifacts = append(out.Artifacts, a)
	}
	return out, err
}

// Modern returns the message in the form of version 1.0.
func (m *Message) Modern() (*sdk.Message, error) {
	out := &sdk.Message{ID: m.ID, ContextID: m.ContextID, TaskID: sdk.TaskID(m.TaskID), Metadata: m.Metadata, Extensions: m.Extensions}
	switch m.Role {
	case "user":
		out.Role = sdk.MessageRoleUser
	case "agent":
		out.Role = sdk.MessageRoleAgent
	}
	var err error
	out.Parts, err = modernParts(m.Parts)
	return out, err
}

func modernParts(parts []Part) (sdk.ContentParts, error) {
	var out sdk.ContentParts
	for i := range parts {
		p, err := parts[i].modern()
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func (a *Artifact) modern() (*sdk.Artifact, error) {
	parts, err := modernParts(a.Parts)
	return &sdk.Artifact{ID: sdk.ArtifactID(a.ID), Name: a.Name, Description: a.Description, Parts: parts, Metadata: a.Metadata}, err
}

func (s *Status) modern() (sdk.TaskStatus, error) {
	out := sdk.TaskStatus{State: states[s.State], Timestamp: s.Timestamp}
	if s.Message == nil {
		return out, nil
	}
	var err error
	out.Message, err = s.Message.Modern()
	return out, err
}

// states has the states of version 1.0 by their names in 0.3.
var states = func() map[string]sdk.TaskState {
	m := map[string]sdk.TaskState{}
	for _, s := range []sdk.TaskState{
		sdk.TaskStateAuthRequired, sdk.TaskStateCanceled, sdk.TaskStateCompleted, sdk.TaskStateFailed,
		sdk.TaskStateInputRequired, sdk.TaskStateRejected, sdk.TaskStateSubmitted, sdk.TaskStateWorking,
	} {
		m[ofState(s)] = s
	}
	return m
}()

// ModernState returns a state in the form of version 1.0, in which it may already be. It
// reports false for a text that is no state.
func ModernState(s string) (sdk.TaskState, bool) {
	for old, modern := range states {
		if s == old || s == string(modern) {
			return modern, true
		}
	}
	return "", false
}

func (u *StatusUpdate) modern() (*sdk.TaskStatusUpdateEvent, error) {
	status, err := u.Status.modern()
	return &sdk.TaskStatusUpdateEvent{TaskID: sdk.TaskID(u.TaskID), ContextID: u.ContextID, Status: status, Metadata: u.Metadata}, err
}

func (u *ArtifactUpdate) modern() (*sdk.TaskArtifactUpdateEvent, error) {
	a, err := u.Artifact.modern()
	return &sdk.TaskArtifactUpdateEvent{
		TaskID: sdk.TaskID(u.TaskID), ContextID: u.ContextID, Artifact: a, Append: u.Append, LastChunk: u.LastChunk, Metadata: u.Metadata,
	}, err
}
