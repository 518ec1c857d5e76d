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
		return parse(raw, (*Task).ToV1)
	case "message":
		return parse(raw, (*Message).ToV1)
	case "status-update":
		return parse(raw, (*StatusUpdate).toV1)
	case "artifact-update":
		return parse(raw, (*ArtifactUpdate).toV1)
	}
	return nil, tapedeck.Errorf(tapedeck.Invalid, "A2A 0.3 has no object of the kind %.40q", head.Kind)
}

// parse decodes an object and converts it.
func parse[T any, E sdk.Event](raw json.RawMessage, toV1 func(*T) (E, error)) (sdk.Event, error) {
	v := new(T)
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, err
	}
	return toV1(v)
}

// ToV1 returns the task in the form of version 1.0.
func (t *Task) ToV1() (*sdk.Task, error) {
	status, err := t.Status.toV1()
	out := &sdk.Task{ID: sdk.TaskID(t.ID), ContextID: t.ContextID, Status: status, Metadata: t.Metadata}
	for i := 0; i < len(t.History) && err == nil; i++ {
		var m *sdk.Message
		if t.History[i] != nil {
			m, err = t.History[i].ToV1()
			out.History = append(out.History, m)
		}
	}
	for i := 0; i < len(t.Artifacts) && err == nil; i++ {
		var a *sdk.Artifact
		a, err = t.Artifacts[i].toV1()
		out.Artifacts = append(out.Artifacts, a)
	}
	return out, err
}

// ToV1 returns the message in the form of version 1.0.
func (m *Message) ToV1() (*sdk.Message, error) {
	out := &sdk.Message{ID: m.ID, ContextID: m.ContextID, TaskID: sdk.TaskID(m.TaskID), Metadata: m.Metadata, Extensions: m.Extensions}
	switch m.Role {
	case "user":
		out.Role = sdk.MessageRoleUser
	case "agent":
		out.Role = sdk.MessageRoleAgent
	}
	var err error
	out.Parts, err = partsToV1(m.Parts)
	return out, err
}

func partsToV1(parts []Part) (sdk.ContentParts, error) {
	var out sdk.ContentParts
	for i := range parts {
		p, err := parts[i].toV1()
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func (a *Artifact) toV1() (*sdk.Artifact, error) {
	parts, err := partsToV1(a.Parts)
	return &sdk.Artifact{ID: sdk.ArtifactID(a.ID), Name: a.Name, Description: a.Description, Parts: parts, Metadata: a.Metadata}, err
}

func (s *Status) toV1() (sdk.TaskStatus, error) {
	out := sdk.TaskStatus{State: states[s.State], Timestamp: s.Timestamp}
	if s.Message == nil {
		return out, nil
	}
	var err error
	out.Message, err = s.Message.ToV1()
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

// StateToV1 returns a state in the form of version 1.0, in which it may already be. It
// reports false for a text that is no state.
func StateToV1(s string) (sdk.TaskState, bool) {
	for old, current := range states {
		if s == old || s == string(current) {
			return current, true
		}
	}
	return "", false
}

func (u *StatusUpdate) toV1() (*sdk.TaskStatusUpdateEvent, error) {
	status, err := u.Status.toV1()
	return &sdk.TaskStatusUpdateEvent{TaskID: sdk.TaskID(u.TaskID), ContextID: u.ContextID, Status: status, Metadata: u.Metadata}, err
}

func (u *ArtifactUpdate) toV1() (*sdk.TaskArtifactUpdateEvent, error) {
	a, err := u.Artifact.toV1()
	return &sdk.TaskArtifactUpdateEvent{
		TaskID: sdk.TaskID(u.TaskID), ContextID: u.ContextID, Artifact: a, Append: u.Append, LastChunk: u.LastChunk, Metadata: u.Metadata,
	}, err
}
