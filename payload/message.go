package payload

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// A Message is a whole AG-UI message. Its members depend on its role, see
// [Message.Check].
type Message struct {
	ID             string           `json:"id" shape:"id"`
	Role           string           `json:"role"`
	Content        json.RawMessage  `json:"content,omitempty" shape:"some"` // a string; role user or tool: also an array of parts; role activity: an object
	ToolCalls      []ToolCall       `json:"toolCalls,omitempty"`            // role assistant
	ToolCallID     string           `json:"toolCallId,omitempty"`           // role tool: the call that it answers
	Error          string           `json:"error,omitempty"`                // role tool
	ActivityType   string           `json:"activityType,omitempty"`         // role activity
	Name           string           `json:"name,omitempty"`
	EncryptedValue string           `json:"encryptedValue,omitempty"` // see [ReasoningEncryptedValue]
	SubagentRunID  string           `json:"subagentRunId,omitempty" shape:"id"`
	Metadata       tapedeck.Members `json:"metadata,omitempty"`
	Extra          tapedeck.Members `json:"-"` // members without a field
}

// A ToolCall is a call in an assistant's message.
type ToolCall struct {
	ID             string           `json:"id" shape:"id"`
	Type           string           `json:"type"` // "function"
	Function       FunctionCall     `json:"function"`
	EncryptedValue string           `json:"encryptedValue,omitempty"`
	Metadata       tapedeck.Members `json:"metadata,omitempty"`
	Extra          tapedeck.Members `json:"-"`
}

// A FunctionCall is a function's name and its arguments. The arguments are text
// from a model, which should be JSON.
type FunctionCall struct {
	Name      string           `json:"name"`
	Arguments string           `json:"arguments"`
	Extra     tapedeck.Members `json:"-"`
}

// Text returns text as a JSON string, for raw members such as the content of a
// [ToolCallResult].
func Text(text string) json.RawMessage { return jsonobj.AppendJSON(nil, text) }

// NewMessage returns a message with text content.
func NewMessage(id, role, text string) Message {
	return Message{ID: id, Role: role, Content: Text(text)}
}

// Text returns the text of the message's content. For parts, it joins the text
// parts.
func (m *Message) Text() string { return m.TextWith("") }

// TextWith is [Message.Text] with a separator between the parts of the content.
func (m *Message) TextWith(separator string) string {
	if len(m.Content) == 0 || m.Content[0] == '"' {
		return jsonobj.StringOf(m.Content)
	}
	var parts []contentPart
	if decodeInto(m.Content, &parts) != nil {
		return "" // an activity has an object
	}
	var texts []string
	for _, p := range parts {
		if p.Text != nil {
			texts = append(texts, string(*p.Text))
		}
	}
	return Whole(strings.Join(texts, separator))
}

// Check reports whether m has an id, a known role, and the members that its
// role requires.
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

// roles has the required shape of the content by role.
var roles = map[string]shape{
	RoleDeveloper: shapeString, RoleSystem: shapeString, RoleUser: shapeText, RoleAssistant: shapeString,
	RoleTool: shapeText, RoleActivity: shapeObject, RoleReasoning: shapeString,
}

// MarshalJSON encodes m with its extra members.
func (m Message) MarshalJSON() ([]byte, error) {
	v := reflect.ValueOf(m)
	return layoutOf(v.Type()).encode(nil, v), nil
}

// UnmarshalJSON decodes a message and keeps unknown members.
func (m *Message) UnmarshalJSON(b []byte) error {
	*m = Message{}
	v := reflect.ValueOf(m).Elem()
	return layoutOf(v.Type()).decode(b, v)
}

// These are the roles of a [Message].
const (
	RoleDeveloper = "developer"
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
	RoleActivity  = "activity"
	RoleReasoning = "reasoning"
)
