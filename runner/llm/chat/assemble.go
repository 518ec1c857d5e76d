package chat

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// A Kind says what a [Delta] is.
type Kind int

// The kinds of a [Delta].
const (
	Reasoning Kind = iota // Text is more of what the model thinks
	Text                  // Text is more of what it says
	CallBegin             // a call of a function begins: Call, ID and Name
	CallArgs              // Text is more of the arguments of Call
	Finish                // the model has said all; Text is why, such as "stop"
	Used                  // Usage is what the model call used; the last
)

// A Delta is a piece of what a model says.
type Delta struct {
	Kind  Kind
	Text  string
	Call  int    // which call of the answer; they need not begin in this order
	ID    string // of the call, as the provider has it; may be "", and need not be new
	Name  string // of the function
	Usage *Usage
}

// A chunk is an event of a stream, or a whole answer.
type chunk struct {
	Model   string          `json:"model"`
	Error   json.RawMessage `json:"error"`
	Usage   json.RawMessage `json:"usage"`
	Choices []struct {
		Index   int             `json:"index"`
		Delta   piece           `json:"delta"`
		Message piece           `json:"message"` // of a whole answer
		Finish  string          `json:"finish_reason"`
		Error   json.RawMessage `json:"error"` // so says OpenRouter in the middle of an answer
	} `json:"choices"`
}

// A piece has some of these. Providers disagree on the name of reasoning.
type piece struct {
	Content          json.RawMessage `json:"content"` // a string or parts
	Refusal          string          `json:"refusal"`
	ReasoningContent string          `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"` // a string
	Details          json.RawMessage `json:"reasoning_details"`
	Calls            []callPiece     `json:"tool_calls"`
}

// An assembler makes deltas of chunks.
type assembler struct {
	yield    func(Delta, error) bool
	calls    calls
	usage    *Usage
	model    string
	finished string // why; "" before
	done     bool   // the server has said that there is no more
}

// fail ends the answer.
func (a *assembler) fail(err error) bool {
	if a.usage != nil && !a.yield(Delta{Kind: Used, Usage: a.usage}, nil) {
		return false
	}
	a.yield(Delta{}, err)
	return false
}

// end ends an answer whose stream has ended.
func (a *assembler) end() {
	if a.finished == "" && !a.done {
		a.fail(passing(brokenOff(nil)))
		return
	}
	if !a.calls.end(a.yield) || !a.yield(Delta{Kind: Finish, Text: a.finished}, nil) || a.usage == nil {
		return
	}
	a.yield(Delta{Kind: Used, Usage: a.usage}, nil)
}

// chunk takes in one event. It reports false when no more are wanted.
func (a *assembler) chunk(data []byte) bool {
	if len(bytes.TrimSpace(data)) == 0 {
		return true
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return a.fail(tapedeck.Errorf(tapedeck.Unavailable, "what the model has sent cannot be read").Because(err))
	}
	if isSet(c.Error) {
		return a.fail(inStream(c.Error))
	}
	if c.Model != "" {
		a.model = c.Model
	}
	if u := parseUsage(c.Usage, a.model); u != nil {
		a.usage = u // some tell it again and again; the last counts
	}
	for i := range c.Choices {
		choice := &c.Choices[i]
		if isSet(choice.Error) {
			return a.fail(inStream(choice.Error))
		}
		if choice.Index != 0 {
			continue // another answer to the same; nobody has asked for it
		}
		if !a.piece(&choice.Delta) || !a.piece(&choice.Message) {
			return false
		}
		if choice.Finish != "" {
			a.finished = choice.Finish
		}
	}
	return true
}

func (a *assembler) piece(p *piece) bool {
	text, thought := parts(p.Content)
	if thought == "" {
		thought = p.thought()
	}
	if !a.say(Reasoning, thought) || !a.say(Text, text+p.Refusal) || !a.calls.add(p.Calls, a.yield) {
		return false
	}
	if len(a.calls.all) > maxCalls {
		return a.fail(tapedeck.Errorf(tapedeck.TooLarge, "the model has called more than %d functions at once", maxCalls))
	}
	return true
}

func (a *assembler) say(k Kind, text string) bool {
	return text == "" || a.yield(Delta{Kind: k, Text: text}, nil)
}

// thought returns the reasoning of a piece. Some send the same under two names.
func (p *piece) thought() string {
	if p.ReasoningContent != "" {
		return p.ReasoningContent
	}
	if s, _ := stringOf(p.Reasoning); s != "" || !isSet(p.Details) {
		return s
	}
	var details []struct {
		Text    string `json:"text"`
		Summary string `json:"summary"`
	}
	_ = json.Unmarshal(p.Details, &details) // what is encrypted says nothing to us
	var b strings.Builder
	for _, d := range details {
		b.WriteString(d.Text + d.Summary)
	}
	return b.String()
}

// parts returns the text and the reasoning of a content: a string, or parts as
// Mistral sends them.
func parts(content json.RawMessage) (text, thought string) {
	if s, ok := stringOf(content); ok || !isSet(content) {
		return s, ""
	}
	var list []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	_ = json.Unmarshal(content, &list)
	for _, p := range list {
		if isSet(p.Thinking) {
			t, _ := parts(p.Thinking)
			thought += t
		} else {
			text += p.Text
		}
	}
	return text, thought
}

func stringOf(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(raw, &s) == nil
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
