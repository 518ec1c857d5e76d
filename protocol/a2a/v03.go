package a2a

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
)

// The types of this file are those of version 0.3, in which each object names its kind.

type message03 struct {
	Kind       string         `json:"kind"`
	ID         string         `json:"messageId"`
	Role       string         `json:"role"`
	Parts      []part03       `json:"parts"`
	TaskID     string         `json:"taskId,omitempty"`
	ContextID  string         `json:"contextId,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Extensions []string       `json:"extensions,omitempty"`
	References []string       `json:"referenceTaskIds,omitempty"`
}

type part03 struct {
	Kind     string         `json:"kind"`
	Text     *string        `json:"text,omitempty"`
	Data     any            `json:"data,omitempty"`
	File     *file03        `json:"file,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

type file03 struct {
	Name     string `json:"name,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	Bytes    string `json:"bytes,omitempty"` // base64
	URI      string `json:"uri,omitempty"`
}

type status03 struct {
	State     string     `json:"state"`
	Message   *message03 `json:"message,omitempty"`
	Timestamp *time.Time `json:"timestamp,omitempty"`
}

type artifact03 struct {
	ID          string         `json:"artifactId"`
	Name        string         `json:"name,omitempty"`
	Description string         `json:"description,omitempty"`
	Parts       []part03       `json:"parts"`
	Metadata    map[string]any `json:"metadata,omitempty"`
}

type task03 struct {
	Kind      string         `json:"kind"`
	ID        string         `json:"id"`
	ContextID string         `json:"contextId"`
	Status    status03       `json:"status"`
	History   []*message03   `json:"history,omitempty"`
	Artifacts []artifact03   `json:"artifacts,omitempty"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

type statusUpdate03 struct {
	Kind      string         `json:"kind"`
	TaskID    string         `json:"taskId"`
	ContextID string         `json:"contextId"`
	Status    status03       `json:"status"`
	Final     bool           `json:"final"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

type artifactUpdate03 struct {
	Kind      string         `json:"kind"`
	TaskID    string         `json:"taskId"`
	ContextID string         `json:"contextId"`
	Artifact  artifact03     `json:"artifact"`
	Append    bool           `json:"append,omitempty"`
	LastChunk bool           `json:"lastChunk,omitempty"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

// to03 returns a task, a message or an update in the form of version 0.3. final says
// that the stream ends with it.
func to03(e sdk.Event, final bool) any {
	switch e := e.(type) {
	case *sdk.Task:
		t := task03{Kind: "task", ID: string(e.ID), ContextID: e.ContextID, Status: toStatus03(e.Status), Metadata: e.Metadata}
		for _, m := range e.History {
			t.History = append(t.History, toMessage03(m))
		}
		for _, a := range e.Artifacts {
			t.Artifacts = append(t.Artifacts, toArtifact03(a))
		}
		return t
	case *sdk.TaskStatusUpdateEvent:
		return statusUpdate03{"status-update", string(e.TaskID), e.ContextID, toStatus03(e.Status), final, e.Metadata}
	case *sdk.TaskArtifactUpdateEvent:
		return artifactUpdate03{"artifact-update", string(e.TaskID), e.ContextID, toArtifact03(e.Artifact), e.Append, e.LastChunk, e.Metadata}
	case *sdk.Message:
		return toMessage03(e)
	}
	return nil
}

func toStatus03(s sdk.TaskStatus) status03 {
	out := status03{State: toState03(s.State), Timestamp: s.Timestamp}
	if s.Message != nil {
		out.Message = toMessage03(s.Message)
	}
	return out
}

// toState03 returns a state as version 0.3 spells it: TASK_STATE_INPUT_REQUIRED is
// input-required.
func toState03(s sdk.TaskState) string {
	if s == sdk.TaskStateUnspecified {
		return "unknown"
	}
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(string(s), "TASK_STATE_")), "_", "-")
}

func toMessage03(m *sdk.Message) *message03 {
	out := &message03{
		Kind: "message", ID: m.ID, Role: "agent", Parts: toParts03(m.Parts), TaskID: string(m.TaskID), ContextID: m.ContextID,
		Metadata: m.Metadata, Extensions: m.Extensions,
	}
	if m.Role == sdk.MessageRoleUser {
		out.Role = "user"
	}
	return out
}

func toArtifact03(a *sdk.Artifact) artifact03 {
	return artifact03{string(a.ID), a.Name, a.Description, toParts03(a.Parts), a.Metadata}
}

func toParts03(parts sdk.ContentParts) []part03 {
	out := make([]part03, 0, len(parts))
	for _, p := range parts {
		o := part03{Metadata: p.Metadata}
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
			o.Kind, o.File = "file", &file03{p.Filename, p.MediaType, base64.StdEncoding.EncodeToString(v), ""}
		case sdk.URL:
			o.Kind, o.File = "file", &file03{p.Filename, p.MediaType, "", string(v)}
		}
		out = append(out, o)
	}
	return out
}

// A sendParams03 has the parameters of message/send and message/stream.
type sendParams03 struct {
	Message *message03 `json:"message"`
	Config  *struct {
		Blocking *bool `json:"blocking"`
		History  *int  `json:"historyLength"`
		Push     any   `json:"pushNotificationConfig"`
	} `json:"configuration"`
	Metadata map[string]any `json:"metadata"`
}

// request returns the parameters in the form of version 1.0.
func (p *sendParams03) request() (*sdk.SendMessageRequest, error) {
	out := &sdk.SendMessageRequest{Metadata: p.Metadata}
	if c := p.Config; c != nil {
		out.Config = &sdk.SendMessageConfig{HistoryLength: c.History, ReturnImmediately: c.Blocking != nil && !*c.Blocking}
		if c.Push != nil {
			out.Config.PushConfig = &sdk.PushConfig{}
		}
	}
	m := p.Message
	if m == nil {
		return out, nil // checkMessage reports it
	}
	out.Message = &sdk.Message{ID: m.ID, ContextID: m.ContextID, TaskID: sdk.TaskID(m.TaskID), Metadata: m.Metadata, Extensions: m.Extensions}
	switch m.Role {
	case "user":
		out.Message.Role = sdk.MessageRoleUser
	case "agent":
		out.Message.Role = sdk.MessageRoleAgent
	}
	for i := range m.Parts {
		part, err := m.Parts[i].part()
		if err != nil {
			return nil, err
		}
		out.Message.Parts = append(out.Message.Parts, part)
	}
	return out, nil
}

// part returns a part in the form of version 1.0.
func (p *part03) part() (*sdk.Part, error) {
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
			return nil, invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "the bytes of the file %.80q are not in base64", p.File.Name))
		}
		out.Content, out.Filename, out.MediaType = sdk.Raw(b), p.File.Name, p.File.MimeType
	default:
		return nil, invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "a part of the message has the kind %.40q and no content of it", p.Kind).
			WithHint("a part has the kind text, data or file"))
	}
	return out, nil
}

// encode returns a task, a message or an update as it goes into an answer.
func (v version) encode(e sdk.Event, final bool) json.RawMessage {
	if v == v03 {
		return encodeJSON(to03(e, final))
	}
	return encodeJSON(sdk.StreamResponse{Event: e})
}

// encodeTask returns a task that is the whole answer.
func (v version) encodeTask(t *sdk.Task) json.RawMessage {
	if v == v03 {
		return encodeJSON(to03(t, true))
	}
	return encodeJSON(t)
}
