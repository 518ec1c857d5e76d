package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// A ContextMessage is a message in the format of OpenAI's chat API, which most
// model providers accept.
type ContextMessage struct {
	Role       string            `json:"role"`    // system, user, assistant or tool
	Content    string            `json:"content"` // null in a message that only makes tool calls
	ToolCalls  []ContextToolCall `json:"tool_calls,omitempty"`
	ToolCallID string            `json:"tool_call_id,omitempty"` // role tool: the call that it answers

	Place ContextPlace `json:"-"` // not sent to models
}

// A ContextPlace is the position in the log of a message of a context.
type ContextPlace struct {
	Sequence  *int   `json:"sequence_number"` // the number of its [ContextEvent]; null for an answer that Context made up, and if earlier messages are missing
	Offset    *int64 `json:"offset"`
	EndOffset *int64 `json:"end_offset"` // null while the message is not complete
}

// Places returns the position in the log of each message of a context.
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
	Arguments string `json:"arguments"` // a JSON object, as text
}

// MarshalJSON encodes m; an empty content beside tool calls is null.
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

// Context returns the messages from which the model of an instance can
// continue. For the instance of a thread see [InThread].
//
// Providers refuse a conversation that is not well-formed. So the result always
// is, whatever the log has:
//
//   - Each call has an answer right after the message that made it. A call
//     without an answer gets one that says so.
//   - Answers without a call, empty messages and reasoning are left out.
//   - Arguments that are not a JSON object become {}, and the answer quotes
//     them. In the name of a function, characters other than letters, digits,
//     "_" and "-" become "_", and it is cut to 64 characters.
//   - The answer of a tool that failed begins with "Error: ".
//   - A message with parts becomes their text. Other parts are named in
//     brackets, such as "[image]".
//   - The role developer becomes system.
//   - The newest system text that is stored for the model (see
//     [payload.NewPrompt]) comes first. Older ones are left out.
//   - After an interrupted run, the task begins with the text that told the
//     agent about it.
func Context(s Snapshot, of Instance) []ContextMessage {
	out := []ContextMessage{}
	all := utterances(s, &of)
	said, answered := places(all, s.Earlier == 0)
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

// places returns the positions in the log of utterances and of answers to
// calls. They have sequence numbers if all is the whole context.
func places(all []*utterance, whole bool) (said map[*utterance]ContextPlace, answered map[*ToolCall]ContextPlace) {
	said, answered = map[*utterance]ContextPlace{}, map[*ToolCall]ContextPlace{}
	for _, one := range steps(all) {
		p := ContextPlace{Offset: &one.Offset, EndOffset: one.EndOffset}
		if whole {
			p.Sequence = &one.Sequence
		}
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
	c := ContextToolCall{ID: k.ContextID(), Type: "function", Function: ContextFunction{Name: functionName(k.Name), Arguments: "{}"}}
	if isObject(k.Arguments) {
		c.Function.Arguments = k.Arguments
	}
	return c
}

// ContextID returns the id of the call in the context of its agent. A program that keeps its
// context may have given it another id than the log has, see [CallStep]. Some agents give
// none; then it is made from the offset.
func (k *ToolCall) ContextID() string {
	if k.ID == "" {
		return "call_" + strconv.FormatInt(k.Offset, 10)
	}
	return cmp.Or(k.Step.ID, k.ID)
}

// maxFunctionName is the longest function name that providers accept.
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

// These texts are the answers that a model gets for a call without an answer.
const (
	replyOpen        = "The tool has not answered yet."
	replyCancelled   = "The call was cancelled before the tool answered. It may have taken effect."
	replyInterrupted = "The answer of the tool is missing. The tool may have taken effect."
	maxRepeated      = 2000 // bytes of invalid arguments that the answer quotes
)

// replyTo returns the answer to a call. If the tool has not answered, it says
// so.
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

// resultText returns the answer of a tool, with "Error: " in front if it
// failed.
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

// textOf returns the text of a message. Parts that have no text are named in
// brackets.
func textOf(text string, parts json.RawMessage) string {
	var list []struct {
		Type string        `json:"type"`
		Text payload.Piece `json:"text"`
	}
	if len(parts) == 0 || !jsonobj.Unpack(parts, &list) {
		return text
	}
	var b strings.Builder
	for _, p := range list {
		if p.Type == "text" || p.Text != "" {
			b.WriteString(string(p.Text))
		} else {
			b.WriteString("[" + functionName(p.Type) + "]")
		}
	}
	return payload.Whole(b.String())
}
