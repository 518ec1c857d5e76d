// Package a2a03 has the types of A2A 0.3, in which each object names its kind, and
// converts them to those of version 1.0 and back.
package a2a03

import (
	"encoding/base64"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
)

// A Message is a message of a user or an agent.
type Message struct {
	Kind       string         `json:"kind"`
	ID         string         `json:"messageId"`
	Role       string         `json:"role"`
	Parts      []Part         `json:"parts"`
	TaskID     string         `json:"taskId,omitempty"`
	ContextID  string         `json:"contextId,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Extensions []string       `json:"extensions,omitempty"`
	References []string       `json:"referenceTaskIds,omitempty"`
}

// A Part is a text, data or a file.
type Part struct {
	Kind     string         `json:"kind"`
	Text     *string        `json:"text,omitempty"`
	Data     any            `json:"data,omitempty"`
	File     *File          `json:"file,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// A File has either bytes or a URI.
type File struct {
	Name     string `json:"name,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	Bytes    string `json:"bytes,omitempty"` // base64
	URI      string `json:"uri,omitempty"`
}

// A Status is the state of a task.
type Status struct {
	State     string     `json:"state"`
	Message   *Message   `json:"message,omitempty"`
	Timestamp *time.Time `json:"timestamp,omitempty"`
}

// An Artifact is a result of a task.
type Artifact struct {
	ID          string         `json:"artifactId"`
	Name        string         `json:"name,omitempty"`
	Description string         `json:"description,omitempty"`
	Parts       []Part         `json:"parts"`
	Metadata    map[string]any `json:"metadata,omitempty"`
}

// A Task is a task with its history.
type Task struct {
	Kind      string         `json:"kind"`
	ID        string         `json:"id"`
	ContextID string         `json:"contextId"`
	Status    Status         `json:"status"`
	History   []*Message     `json:"history,omitzero"` // a page replaces its messages with it, also with an empty one; nil: it is left out
	Artifacts []Artifact     `json:"artifacts,omitempty"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

// A StatusUpdate says that the state of a task has changed.
type StatusUpdate struct {
	Kind      string         `json:"kind"`
	TaskID    string         `json:"taskId"`
	ContextID string         `json:"contextId"`
	Status    Status         `json:"status"`
	Final     bool           `json:"final"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

// An ArtifactUpdate has a part of an artifact.
type ArtifactUpdate struct {
	Kind      string         `json:"kind"`
	TaskID    string         `json:"taskId"`
	ContextID string         `json:"contextId"`
	Artifact  Artifact       `json:"artifact"`
	Append    bool           `json:"append,omitempty"`
	LastChunk bool           `json:"lastChunk,omitempty"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

// Of returns a task, a message or an update in the form of version 0.3. final says
// that the stream ends with it.
func Of(e sdk.Event, final bool) any {
	switch e := e.(type) {
	case *sdk.Task:
		t := Task{
			Kind: "task", ID: string(e.ID), ContextID: e.ContextID, Status: ofStatus(e.Status), Metadata: e.Metadata,
		}
		if e.History != nil {
			t.History = make([]*Message, 0, len(e.History))
		}
		for _, m := range e.History {
			t.History = append(t.History, ofMessage(m))
		}
		for _, a := range e.Artifacts {
			t.Artifacts = append(t.Artifacts, ofArtifact(a))
		}
		return t
	case *sdk.TaskStatusUpdateEvent:
		return StatusUpdate{"status-update", string(e.TaskID), e.ContextID, ofStatus(e.Status), final, e.Metadata}
	case *sdk.TaskArtifactUpdateEvent:
		return ArtifactUpdate{"artifact-update", string(e.TaskID), e.ContextID, ofArtifact(e.Artifact), e.Append, e.LastChunk, e.Metadata}
	case *sdk.Message:
		return ofMessage(e)
	}
	return nil
}

func ofStatus(s sdk.TaskStatus) Status {
	out := Status{State: ofState(s.State), Timestamp: s.Timestamp}
	if s.Message != nil {
		out.Message = ofMessage(s.Message)
	}
	return out
}

// ofState returns a state as version 0.3 spells it: TASK_STATE_INPUT_REQUIRED is
// input-required.
func ofState(s sdk.TaskState) string {
	if s == sdk.TaskStateUnspecified {
		return "unknown"
	}
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(string(s), "TASK_STATE_")), "_", "-")
}

func ofMessage(m *sdk.Message) *Message {
	out := &Message{
		Kind: "message", ID: m.ID, Role: "agent", Parts: ofParts(m.Parts), TaskID: string(m.TaskID), ContextID: m.ContextID,
		Metadata: m.Metadata, Extensions: m.Extensions,
	}
	if m.Role == sdk.MessageRoleUser {
		out.Role = "user"
	}
	return out
}

func ofArtifact(a *sdk.Artifact) Artifact {
	return Artifact{string(a.ID), a.Name, a.Description, ofParts(a.Parts), a.Metadata}
}

func ofParts(parts sdk.ContentParts) []Part {
	out := make([]Part, 0, len(parts))
	for _, p := range parts {
		o := Part{Metadata: p.Metadata}
		switch v := p.Content.(type) {
		case sdk.Text:
			text := string(v)
			o.Kind, o.Text = "text", &text
		case sdk.Data:
			o.Kind, o.Data = "data", v.Value
			if _, object := v.Value.(map[string]any); !object {
				o.Data = map[string]any{"value": v.Value}
			}
		case sdk.Raw:
			o.Kind, o.File = "file", &File{p.Filename, p.MediaType, base64.StdEncoding.EncodeToString(v), ""}
		case sdk.URL:
			o.Kind, o.File = "file", &File{p.Filename, p.MediaType, "", string(v)}
		}
		out = append(out, o)
	}
	return out
}

// toV1 returns the part in the form of version 1.0.
func (p *Part) toV1() (*sdk.Part, error) {
	out := &sdk.Part{Metadata: p.Metadata}
	switch {
	case p.Kind == "text" && p.Text != nil:
		out.Content = sdk.Text(*p.Text)
	case p.Kind == "data":
		out.Content = sdk.Data{Value: p.Data}
	case p.Kind == "file" && p.File != nil && p.File.URI != "":
		out.Content, out.Filename, out.MediaType = sdk.URL(p.File.URI), p.File.Name, p.File.MimeType
	case p.Kind == "file" && p.File != nil:
		b, err := base64.StdEncoding.DecodeString(p.File.Bytes)
		if err != nil {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the bytes of the file %.80q are not in base64", p.File.Name)
		}
		out.Content, out.Filename, out.MediaType = sdk.Raw(b), p.File.Name, p.File.MimeType
	default:
		return nil, tapedeck.Errorf(tapedeck.Invalid, "a part of the message has the kind %.40q but no content of that kind", p.Kind).
			WithHint("a part has the kind text, data or file")
	}
	return out, nil
}
