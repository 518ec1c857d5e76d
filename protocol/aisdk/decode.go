package aisdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// Triggers of a request.
const (
	submit     = "submit-message"
	regenerate = "regenerate-message"
)

// An input is the body of a request for a run, as DefaultChatTransport sends it. A
// front end may add members; those that no version defines are ignored.
type input struct {
	ID        string          `json:"id"`
	Messages  []message       `json:"messages"`
	Trigger   string          `json:"trigger"`
	MessageID string          `json:"messageId"`
	Config    json.RawMessage `json:"config"`  // for the agent's runner; nil for none
	Run       string          `json:"run"`     // the id of the run that begins with the messages, of an agent elsewhere; "" for none
	LeaseMS   json.RawMessage `json:"leaseMs"` // how long the program of the run may be silent; nil for the lease of the server

	agent   string
	version int
	back    *api.Rewind // reverts the message that the last one replaces; nil for none

	overtaken bool // the chat has changed since the request was decided to revert messages
}

// A message is a UIMessage.
type message struct {
	ID       string          `json:"id"`
	Role     string          `json:"role"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Parts    []uiPart        `json:"parts"`
}

// A uiPart is a part of a UIMessage, with the members that the server reads.
type uiPart struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	MediaType  string          `json:"mediaType"`
	Filename   string          `json:"filename"`
	URL        string          `json:"url"`
	ToolName   string          `json:"toolName"`
	ToolCallID string          `json:"toolCallId"`
	State      string          `json:"state"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output"`
	ErrorText  string          `json:"errorText"`
	Approval   *struct {
		ID       string `json:"id"`
		Approved *bool  `json:"approved"`
	} `json:"approval"`
}

// States of the part of a tool.
const (
	stateInputStreaming    = "input-streaming"
	stateInputAvailable    = "input-available"
	stateApprovalResponded = "approval-responded"
	stateOutputAvailable   = "output-available"
	stateOutputError       = "output-error"
	stateOutputDenied      = "output-denied"
)

// toolPrefix begins the type of the part of a tool.
const toolPrefix = "tool-"

// dynamicTool is the type of the part of a tool whose name is a member.
const dynamicTool = "dynamic-tool"

// tool returns the name of the tool of a part, "" if it is of another kind.
func (p *uiPart) tool() string {
	if p.Type == dynamicTool {
		return p.ToolName
	}
	name, ok := strings.CutPrefix(p.Type, toolPrefix)
	if !ok {
		return ""
	}
	return name
}

// place returns where in the log a message of this server is.
func (m *message) place() (p place) {
	_ = json.Unmarshal(jsonobj.Member(m.Metadata, metaKey), &p) // a front end can send anything
	return p
}

// maxNesting is how deep the values of an input may be nested. A deeper value could
// be stored, but no view could show it.
const maxNesting = 500

// readInput reads the request for a run of the agent in the path.
func (h *handler) readInput(w http.ResponseWriter, r *http.Request) (*input, error) {
	in := new(input)
	err := h.readRequest(w, r, in)
	if err == nil {
		in.version, err = versionOf(r)
	}
	if err == nil {
		in.agent, err = h.agent(r.PathValue("agent"))
	}
	if err == nil {
		err = tapedeck.CheckID("the id of the chat", in.ID)
	}
	return in, err
}

// readRequest reads the body of a request for a chat.
func (h *handler) readRequest(w http.ResponseWriter, r *http.Request, in *input) error {
	if err := h.readJSON(w, r, in); err != nil {
		return err
	}
	switch in.Trigger {
	case "":
		in.Trigger = submit
	case submit, regenerate:
	default:
		return tapedeck.Errorf(tapedeck.Invalid, "the trigger must be %s or %s, not %.100q", submit, regenerate, in.Trigger)
	}
	if jsonobj.IsNull(in.Config) {
		in.Config = nil
	}
	return nil
}

// readJSON reads the body, a JSON object.
func (h *handler) readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	if t := mediaType(r); t != "application/json" {
		return tapedeck.Errorf(tapedeck.Unsupported, "a body of type %.100q is not understood here", t).WithHint("send Content-Type: application/json")
	}
	if r.ContentLength > h.MaxBody {
		return &http.MaxBytesError{Limit: h.MaxBody}
	}
	body, err := intake.ReadAll(http.MaxBytesReader(w, r.Body, h.MaxBody), r.ContentLength)
	switch {
	case err != nil:
		return readError(err)
	case !utf8.Valid(body):
		return tapedeck.Errorf(tapedeck.Invalid, "the body is not valid UTF-8")
	case !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")):
		return tapedeck.Errorf(tapedeck.Invalid, "the body is not a JSON object")
	case jsonobj.Nesting(body) > maxNesting:
		return tapedeck.Errorf(tapedeck.Invalid, "the body is nested more than %d levels deep", maxNesting)
	}
	err = json.Unmarshal(body, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return tapedeck.Errorf(tapedeck.Invalid, "the member %.100s of the body cannot be a JSON %.20s", wrong.Field, wrong.Value)
	case err != nil:
		return tapedeck.Errorf(tapedeck.Invalid, "the body is not the request of a chat").Because(err)
	}
	return nil
}

// mediaType returns the media type of the body, "" if it has none.
func mediaType(r *http.Request) string {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

// readError returns the error of a body that could not be read. The client caused it.
func readError(err error) error {
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return err
	}
	if refused, _ := intake.Refused(err); refused != nil {
		return refused
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the body could not be read to its end").Because(err)
}

// logged returns a UIMessage as messages of the log: the answers of tools are messages
// of their own there.
func (m *message) logged() ([]payload.Message, error) {
	switch {
	case m.ID == "":
		return nil, tapedeck.Errorf(tapedeck.Invalid, "a new message has no id")
	case m.Role == payload.RoleAssistant:
		return m.answers(), nil
	case m.Role != payload.RoleUser && m.Role != payload.RoleSystem:
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the message %.100q has the role %.100q", m.ID, m.Role).WithHint("roles are system, user and assistant")
	}
	texts, parts := []string{}, []contentPart{}
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Type {
		case "text":
			texts = append(texts, p.Text)
			parts = append(parts, contentPart{Type: "text", Text: &p.Text})
		case chunkFile:
			if p.URL == "" || p.MediaType == "" {
				return nil, tapedeck.Errorf(tapedeck.Invalid, "a file of the message %.100q has no url or no mediaType", m.ID)
			}
			parts = append(parts, filePart(p))
		}
	}
	if len(parts) == 0 {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the message %.100q has neither a text nor a file", m.ID).
			WithHint("other parts of a message of the user are not stored")
	}
	if len(parts) == len(texts) || m.Role == payload.RoleSystem {
		return []payload.Message{payload.NewMessage(m.ID, m.Role, strings.Join(texts, "\n"))}, nil
	}
	content, err := json.Marshal(parts)
	return []payload.Message{{ID: m.ID, Role: m.Role, Content: content}}, err
}

// answers returns the messages of an assistant that this server did not record, such
// as the history of a chat that comes from elsewhere.
func (m *message) answers() (list []payload.Message) {
	said, tools := payload.Message{ID: m.ID, Role: payload.RoleAssistant}, []payload.Message(nil)
	var texts []string
	for i := range m.Parts {
		p := &m.Parts[i]
		switch name := p.tool(); {
		case p.Type == "text":
			texts = append(texts, p.Text)
		case name != "" && p.ToolCallID != "":
			said.ToolCalls = append(said.ToolCalls, payload.ToolCall{
				ID: p.ToolCallID, Type: "function", Function: payload.FunctionCall{Name: name, Arguments: argumentsOf(p.Input)},
			})
			if a, ok := p.answer(); ok {
				tools = append(tools, a)
			}
		}
	}
	if len(texts) > 0 {
		said.Content = payload.Text(strings.Join(texts, "\n\n"))
	}
	if said.Content == nil && said.ToolCalls == nil {
		return nil
	}
	return append(append(list, said), tools...)
}

// answer returns the answer of the tool of a part, if it has one.
func (p *uiPart) answer() (payload.Message, bool) {
	m := payload.Message{ID: p.ToolCallID + ":answer", Role: payload.RoleTool, ToolCallID: p.ToolCallID}
	switch p.State {
	case stateOutputAvailable:
		m.Content = payload.Text(answerText(p.Output))
	case stateOutputError:
		m.Content, m.Error = payload.Text(p.ErrorText), p.ErrorText
		if m.Error == "" {
			m.Error = "the tool failed"
		}
	default:
		return m, false
	}
	return m, true
}

// answerText returns the output of a tool as text: a string as it is, any other value as JSON.
func answerText(output json.RawMessage) string {
	if jsonobj.IsString(output) {
		return jsonobj.StringOf(output)
	}
	return string(output)
}

// argumentsOf returns the input of a tool as the text of its arguments.
func argumentsOf(input json.RawMessage) string {
	if len(input) == 0 {
		return "{}"
	}
	return answerText(input)
}

// A contentPart is a part of a user's message in the log.
type contentPart struct {
	Type     string        `json:"type"`
	Text     *string       `json:"text,omitempty"`
	Source   *partSource   `json:"source,omitempty"`
	Metadata *partMetadata `json:"metadata,omitempty"`
}

type partSource struct {
	Type     string `json:"type"` // url or data
	Value    string `json:"value"`
	MimeType string `json:"mimeType,omitempty"`
}

type partMetadata struct {
	Filename string `json:"filename,omitempty"`
}

// filePart returns a file as content of a message. A data URL becomes the bytes that it
// has, which agents can read.
func filePart(p *uiPart) contentPart {
	kind, _, _ := strings.Cut(p.MediaType, "/")
	if kind != "image" && kind != "audio" && kind != "video" {
		kind = "document"
	}
	c := contentPart{Type: kind, Source: &partSource{Type: "url", Value: p.URL, MimeType: p.MediaType}}
	if rest, ok := strings.CutPrefix(p.URL, "data:"); ok {
		if about, data, ok := strings.Cut(rest, ","); ok && strings.HasSuffix(about, ";base64") {
			c.Source.Type, c.Source.Value = "data", data
		}
	}
	if p.Filename != "" {
		c.Metadata = &partMetadata{p.Filename}
	}
	return c
}
