package view

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// A ContextMessage is a message as the chat interface of OpenAI has it, which
// most models understand.
type ContextMessage struct {
	Role       string            `json:"role"`    // system, user, assistant or tool
	Content    string            `json:"content"` // null beside tool calls that nothing was said to
	ToolCalls  []ContextToolCall `json:"tool_calls,omitempty"`
	ToolCallID string            `json:"tool_call_id,omitempty"` // of role tool: the call that it answers

	Place ContextPlace `json:"-"` // models are not told it
}

// A ContextPlace says where a message of a context is in the log.
type ContextPlace struct {
	Sequence  *int   `json:"sequence_number"` // of its [ContextEvent]; null of an answer that no tool gave
	Offset    *int64 `json:"offset"`
	EndOffset *int64 `json:"end_offset"` // null while it is not complete
}

// Places returns where the messages of a context are in the log.
func Places(messages []ContextMessage) []ContextPlace {
	out := make([]ContextPlace, len(messages))
	for i := range messages {
		out[i] = messages[i].Place
	}
	return out
}

// A ContextToolCall is a tool call of an assistant's message.
type ContextToolCall struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"` // "function"
	Function ContextFunction `json:"function"`
}

// A ContextFunction is a function that is called.
type ContextFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // a JSON object
}

// MarshalJSON encodes m.
func (m ContextMessage) MarshalJSON() ([]byte, error) {
	type plain ContextMessage
	if m.Content != "" || len(m.ToolCalls) == 0 {
		return json.Marshal(plain(m))
	}
	return json.Marshal(struct {
		plain
		Content *string `json:"content"`
	}{plain: plain(m)})
}

// Context returns what the model of an instance is to be told, so that it can go
// on: see [InThread] and [Instance].
//
// A model's provider refuses a conversation that is not well-formed, so this one
// always is, whatever the log has:
//
//   - Each call is answered right after the message that made it. One that has no
//     answer gets one that says so.
//   - An answer without a call, an empty message and reasoning are left out.
//   - Arguments that are not a JSON object become {}, and the answer says what
//     they were. A name has only letters, digits, "_" and "-", at most 64.
//   - What a tool that failed has answered begins with "Error: ".
//   - Of a message with parts it has the text, and says in brackets what else
//     there was, such as "[image]".
//   - The role developer becomes system.
//   - The newest system text that is stored for the model (see
//     [payload.NewPrompt]) comes first. Older ones are left out.
//   - A task after a run that was cut short has before it what the agent was told
//     of that.
func Context(s Snapshot, of Instance) []ContextMessage {
	out := []ContextMessage{}
	all := utterances(s, &of)
	said, answered := places(all)
	for _, u := range promptFirst(all) {
		m := ContextMessage{Role: u.role, Content: u.text, Place: said[u]}
		for _, k := range u.calls {
			m.ToolCalls = append(m.ToolCalls, contextCall(k))
		}
		if m.Content == "" && len(m.ToolCalls) == 0 {
			continue
		}
		out = append(out, m)
		for i, k := range u.calls {
			out = append(out, ContextMessage{Role: payload.RoleTool, Content: replyTo(k), ToolCallID: m.ToolCalls[i].ID, Place: answered[k]})
		}
	}
	return out
}

// places returns where utterances and answers to calls are in the log.
func places(all []*utterance) (said map[*utterance]ContextPlace, answered map[*ToolCall]ContextPlace) {
	said, answered = map[*utterance]ContextPlace{}, map[*ToolCall]ContextPlace{}
	for _, one := range steps(all) {
		p := ContextPlace{Sequence: &one.Sequence, Offset: &one.Offset, EndOffset: one.EndOffset}
		if one.said != nil {
			said[one.said] = p
		}
		if one.call != nil {
			answered[one.call] = p
		}
	}
	return said, answered
}

// promptFirst moves the newest stored system text to the front and drops the
// older ones.
func promptFirst(all []*utterance) []*utterance {
	var prompt []*utterance
	rest := make([]*utterance, 0, len(all))
	for _, u := range all {
		if u.prompt {
			prompt = []*utterance{u}
		} else {
			rest = append(rest, u)
		}
	}
	return append(prompt, rest...)
}

func contextCall(k *ToolCall) ContextToolCall {
	c := ContextToolCall{ID: callID(k), Type: "function", Function: ContextFunction{Name: functionName(k.Name), Arguments: "{}"}}
	if isObject(k.Arguments) {
		c.Function.Arguments = k.Arguments
	}
	return c
}

// callID returns the id of a call, which some agents do not give.
func callID(k *ToolCall) string {
	if k.ID == "" {
		return "call_" + strconv.FormatInt(k.Offset, 10)
	}
	return k.ID
}

// maxFunctionName is the longest name of a function that providers take.
const maxFunctionName = 64

func functionName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "unknown"
	}
	return name[:min(len(name), maxFunctionName)]
}

func isObject(s string) bool {
	raw := bytes.TrimLeft([]byte(s), " \t\r\n")
	return bytes.HasPrefix(raw, []byte("{")) && nesting(raw) <= maxDepth && json.Valid(raw)
}

// What a model is told of a call that has no answer.
const (
	replyOpen        = "The tool has not answered yet."
	replyCancelled   = "The call was cancelled before the tool answered. It may have taken effect."
	replyInterrupted = "The run was interrupted before the tool answered. It may have taken effect."
	maxRepeated      = 2000 // bytes of arguments that are told again
)

// replyTo returns the answer to a call, made up if there is none.
func replyTo(k *ToolCall) string {
	var b strings.Builder
	if args := strings.TrimSpace(k.Arguments); args != "" && !isObject(args) {
		if len(args) > maxRepeated {
			args = strings.ToValidUTF8(args[:maxRepeated], "") + "…"
		}
		b.WriteString("The arguments were not a JSON object: " + args + "\n")
	}
	switch {
	case k.Result != nil:
		b.WriteString(resultText(k))
	case k.Status == tapedeck.StatusCancelled:
		b.WriteString(replyCancelled)
	case k.Status == tapedeck.StatusInterrupted:
		b.WriteString(replyInterrupted)
	default:
		b.WriteString(replyOpen)
	}
	return b.String()
}

// resultText returns what a tool has answered.
func resultText(k *ToolCall) string {
	text := textOf(k.Result.Text, k.Result.Parts)
	switch why := k.Result.Error; {
	case k.Status != tapedeck.StatusFailed:
		return text
	case why == "" || why == text:
		return "Error: " + text
	case text == "":
		return "Error: " + why
	default:
		return "Error: " + why + "\n" + text
	}
}

// textOf returns a text in which parts that are none are named.
func textOf(text string, parts json.RawMessage) string {
	var list []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if len(parts) == 0 || !jsonobj.Unpack(parts, &list) {
		return text
	}
	var b strings.Builder
	for _, p := range list {
		if p.Type == "text" || p.Text != "" {
			b.WriteString(p.Text)
		} else {
			b.WriteString("[" + functionName(p.Type) + "]")
		}
	}
	return b.String()
}
