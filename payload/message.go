package payload

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// A Message is a whole message as AG-UI has it. Which members it has depends on
// its role, see [Message.Check].
type Message struct {
	ID             string           `json:"id" shape:"id"`
	Role           string           `json:"role"`
	Content        json.RawMessage  `json:"content,omitempty" shape:"some"` // a string; of a user or tool also an array of parts, of an activity an object
	ToolCalls      []ToolCall       `json:"toolCalls,omitempty"`            // of an assistant
	ToolCallID     string           `json:"toolCallId,omitempty"`           // of a tool: what it answers
	Error          string           `json:"error,omitempty"`                // of a tool
	ActivityType   string           `json:"activityType,omitempty"`         // of an activity
	Name           string           `json:"name,omitempty"`
	EncryptedValue string           `json:"encryptedValue,omitempty"` // see [ReasoningEncryptedValue]
	SubagentRunID  string           `json:"subagentRunId,omitempty" shape:"id"`
	Metadata       tapedeck.Members `json:"metadata,omitempty"`
	Extra          tapedeck.Members `json:"-"` // members that are not above
}

// A ToolCall is a call that an assistant's message has made.
type ToolCall struct {
	ID             string           `json:"id" shape:"id"`
	Type           string           `json:"type"` // "function"
	Function       FunctionCall     `json:"function"`
	EncryptedValue string           `json:"encryptedValue,omitempty"`
	Metadata       tapedeck.Members `json:"metadata,omitempty"`
	Extra          tapedeck.Members `json:"-"`
}

// A FunctionCall names a function and its arguments, as text that should be JSON
// but comes from a model.
type FunctionCall struct {
	Name      string           `json:"name"`
	Arguments string           `json:"arguments"`
	Extra     tapedeck.Members `json:"-"`
}

// NewMessage returns a message whose content is text.
func NewMessage(id, role, text string) Message {
	return Message{ID: id, Role: role, Content: jsonobj.AppendJSON(nil, text)}
}

// Text returns the text of the message's content; of parts, that of the text
// parts, joined.
func (m *Message) Text() string {
	if len(m.Content) == 0 || m.Content[0] == '"' {
		return jsonobj.StringOf(m.Content)
	}
	var parts []contentPart
	if decodeInto(m.Content, &parts) != nil {
		return "" // the object of an activity
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Text != nil {
			b.WriteString(*p.Text)
		}
	}
	return b.String()
}

// Check reports whether m has an id, a known role and what its role asks for.
func (m *Message) Check() error {
	if m.ID == "" {
		return tapedeck.Errorf(tapedeck.Invalid, "the message has no id")
	}
	kind, known := roles[m.Role]
	switch {
	case !known:
		return tapedeck.Errorf(tapedeck.Invalid, "the message %s has the role %s", jsonobj.Quote(m.ID), jsonobj.Quote(m.Role)).
			WithHint("roles are developer, system, user, assistant, tool, activity and reasoning")
	case len(m.Content) == 0 && m.Role == RoleAssistant:
	case len(m.Content) == 0 || !kind.fits(m.Content):
		return tapedeck.Errorf(tapedeck.Invalid, "the content of the %s message %s is not %s", m.Role, jsonobj.Quote(m.ID), kind)
	case m.Role == RoleTool && m.ToolCallID == "":
		return tapedeck.Errorf(tapedeck.Invalid, "the tool message %s has no toolCallId", jsonobj.Quote(m.ID))
	case m.Role == RoleActivity && m.ActivityType == "":
		return tapedeck.Errorf(tapedeck.Invalid, "the activity message %s has no activityType", jsonobj.Quote(m.ID))
	}
	return nil
}

// roles has for each role what its content must be.
var roles = map[string]shape{
	RoleDeveloper: shapeString, RoleSystem: shapeString, RoleUser: shapeText, RoleAssistant: shapeString,
	RoleTool: shapeText, RoleActivity: shapeObject, RoleReasoning: shapeString,
}

// MarshalJSON encodes m with its extra members.
func (m Message) MarshalJSON() ([]byte, error) {
	v := reflect.ValueOf(m)
	return layoutOf(v.Type()).encode(nil, v), nil
}

// UnmarshalJSON decodes a message and keeps members that it does not know.
func (m *Message) UnmarshalJSON(b []byte) error {
	*m = Message{}
	v := reflect.ValueOf(m).Elem()
	return layoutOf(v.Type()).decode(b, v)
}

// The roles of a [Message].
const (
	RoleDeveloper = "developer"
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
	RoleActivity  = "activity"
	RoleReasoning = "reasoning"
)
