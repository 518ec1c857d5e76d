package adk

import (
	"encoding/base64"
	"encoding/json"

	"google.golang.org/genai"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// contents are the texts, files, arguments and answers of active events, by the id of the
// message or tool call.
type contents map[string]*content

// A content is the content of one message or tool call.
type content struct {
	text  []byte      // the pieces; see whole
	parts []mediaPart // of a user's message that is not one text
}

// A mediaPart is a part of a user's message.
type mediaPart struct {
	Text   string `json:"text"`
	Source struct {
		Type  string `json:"type"`
		Value string `json:"value"`
	} `json:"source"`
}

// add adds an event of the log.
func (c contents) add(e *tapedeck.Event) {
	var d struct {
		MessageID  string          `json:"messageId"`
		ToolCallID string          `json:"toolCallId"`
		Delta      payload.Piece   `json:"delta"`
		Content    json.RawMessage `json:"content"`
		Message    struct {
			ID      string          `json:"id"`
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if e.Erased() {
		return
	}
	_ = e.Unpack(&d) // a member of another shape counts as absent
	switch e.Type {
	case tapedeck.TextMessageContent, tapedeck.ReasoningMessageContent:
		c.of("message", d.MessageID).append(d.Delta)
	case tapedeck.ToolCallStart:
		c.of("call", d.ToolCallID)
	case tapedeck.ToolCallArgs:
		c.of("call", d.ToolCallID).append(d.Delta)
	case tapedeck.ToolCallResult:
		c.of("message", d.MessageID).set(d.Content)
	case tapedeck.MessageAdded:
		c.of("message", d.Message.ID).set(d.Message.Content)
	}
}

// of returns the content with an id, and adds it if there is none.
func (c contents) of(kind, id string) *content {
	k := kind + "\x00" + id
	if c[k] == nil {
		c[k] = &content{}
	}
	return c[k]
}

func (c *content) append(delta payload.Piece) { c.text = append(c.text, delta...) }

func (c *content) whole() []byte { return []byte(payload.Whole(string(c.text))) }

// set replaces the content by that of a whole message: a text or an array of parts.
func (c *content) set(raw json.RawMessage) {
	var text string
	*c = content{}
	if json.Unmarshal(raw, &text) == nil {
		c.text = []byte(text)
		return
	}
	_ = json.Unmarshal(raw, &c.parts) // another shape has no parts
}

// restore puts into a part what the log has of it in other events. It reports false if
// that was erased.
func (c contents) restore(p *genai.Part, from *piece) bool {
	kind := "message"
	if p.FunctionCall != nil {
		kind = "call"
	}
	have := c[kind+"\x00"+from.ID]
	switch {
	case have == nil:
		return false
	case from.Part != nil && (*from.Part < 0 || *from.Part >= len(have.parts)):
		return false
	case from.Part != nil:
		have.parts[*from.Part].restore(p)
	case p.FunctionCall != nil:
		p.FunctionCall.Args = object(have.whole())
	case p.FunctionResponse != nil:
		p.FunctionResponse.Response = object(have.whole())
	default:
		p.Text = string(have.whole())
	}
	return true
}

// restore puts the text or the data of a user's message into a part.
func (m *mediaPart) restore(p *genai.Part) {
	if p.InlineData == nil {
		p.Text = m.Text
		return
	}
	if data, err := base64.StdEncoding.DecodeString(m.Source.Value); err == nil && m.Source.Type == "data" {
		p.InlineData.Data = data
	}
}

// object returns the object in a JSON text, nil if it is none.
func object(text []byte) (o map[string]any) {
	if json.Unmarshal(text, &o) != nil {
		return nil
	}
	return o
}
