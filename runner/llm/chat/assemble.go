package chat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/secret"
	"github.com/tapedeck/tapedeck/payload"
)

// A Kind is the kind of a [Delta].
type Kind int

// The kinds of a [Delta].
const (
	Reasoning Kind = iota // Text continues the thoughts of the model
	Text                  // Text continues its message
	CallBegin             // a function call begins: Call, ID and Name
	CallArgs              // Text continues the arguments of Call
	Finish                // the answer is complete; Text is the reason, such as "stop"
	Used                  // Usage is the usage of the model call; the last delta
	Again                 // the answer begins again, because it broke off; Text says why. The deltas before count for nothing
)

// A Delta is a piece of the model's answer.
type Delta struct {
	Kind  Kind
	Text  payload.Piece // may begin and end with half of a character
	Call  int           // index of the call in the answer; calls need not begin in this order
	ID    string        // the provider's id of the call; can be "", and need not be unique
	Name  string        // the name of the function
	Usage *Usage

	// Nothing is of Finish: what the server sent, if that has no text, thought or call.
	Nothing string
}

// A chunk is an event of a stream, or a complete answer.
type chunk struct {
	Model   string          `json:"model"`
	Error   json.RawMessage `json:"error"`
	Usage   json.RawMessage `json:"usage"`
	Choices []struct {
		Index   int             `json:"index"`
		Delta   piece           `json:"delta"`
		Message piece           `json:"message"` // the message of a complete answer
		Finish  string          `json:"finish_reason"`
		Error   json.RawMessage `json:"error"` // from OpenRouter, in the middle of an answer
	} `json:"choices"`
}

// A piece has some of these members. Providers use different names for reasoning.
type piece struct {
	Content          json.RawMessage `json:"content"` // a string or parts
	Refusal          payload.Piece   `json:"refusal"`
	ReasoningContent payload.Piece   `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"` // a string
	Details          json.RawMessage `json:"reasoning_details"`
	Calls            []callPiece     `json:"tool_calls"`
}

// An assembler turns chunks into deltas.
type assembler struct {
	yield    func(Delta, error) bool
	secrets  *secret.Words // of the request
	calls    calls
	usage    *Usage
	model    string
	finished string // the finish reason; "" before it arrives
	done     bool   // the server has marked the end of the stream

	media    string // the content type of the answer
	answered bool   // a choice has arrived
	said     bool   // so has text, a thought or a call
	first    string // the beginning of the first event without these
	foreign  bool   // an event has no choices where they belong
}

// fail ends the answer with an error.
func (a *assembler) fail(err error) bool {
	if a.usage != nil && !a.yield(Delta{Kind: Used, Usage: a.usage}, nil) {
		return false
	}
	a.yield(Delta{}, err)
	return false
}

// end ends the answer after its stream has ended.
func (a *assembler) end() {
	if !a.answered && (a.foreign || !a.done) {
		a.fail(a.noAnswer())
		return
	}
	if a.finished == "" && !a.done {
		a.fail(passing(brokenOff(nil)))
		return
	}
	finish := Delta{Kind: Finish, Text: payload.Piece(a.finished)}
	if !a.said {
		finish.Nothing = cmp.Or(a.first, "an empty answer")
	}
	if !a.calls.end(a.yield) || !a.yield(finish, nil) || a.usage == nil {
		return
	}
	a.yield(Delta{Kind: Used, Usage: a.usage}, nil)
}

// noAnswer returns the error of a server that sends something else than an answer.
func (a *assembler) noAnswer() error {
	switch {
	case a.foreign:
		return tapedeck.Errorf(tapedeck.Unavailable, "the model's server does not answer in the form of OpenAI's chat completions; it sends %s", a.first).
			WithHint("check the url of the agent")
	case a.first == "" && a.media != "text/event-stream":
		return tapedeck.Errorf(tapedeck.Unavailable, "the model's server answers with the content type %q, not with a stream of events", cmp.Or(oneLine(a.media, a.secrets), "none")).
			WithHint("check the url of the agent")
	}
	return passing(tapedeck.Errorf(tapedeck.Unavailable, "the model's server sends an empty answer"))
}

// chunk handles one event. It reports false if no more events are wanted.
func (a *assembler) chunk(data []byte) bool {
	if len(bytes.TrimSpace(data)) == 0 {
		return true
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return a.fail(tapedeck.Errorf(tapedeck.Unavailable, "the model's server does not answer with an object of JSON; it sends %s", oneLine(string(data), a.secrets)).Because(err))
	}
	if isSet(c.Error) {
		return a.fail(inStream(c.Error, a.secrets))
	}
	if c.Model != "" {
		a.model = c.Model
	}
	if u := parseUsage(c.Usage, a.model); u != nil {
		a.usage = u // some providers repeat it; the last one counts
	}
	a.foreign = a.foreign || c.Choices == nil && !isSet(c.Usage)
	if !a.said && a.first == "" {
		a.first = oneLine(string(data), a.secrets)
	}
	for i := range c.Choices {
		choice := &c.Choices[i]
		if isSet(choice.Error) {
			return a.fail(inStream(choice.Error, a.secrets))
		}
		if choice.Index != 0 {
			continue // an alternative answer, which we did not request
		}
		a.answered = true
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
	a.said = a.said || thought+text+p.Refusal != "" || len(p.Calls) > 0
	if !a.say(Reasoning, thought) || !a.say(Text, text+p.Refusal) || !a.calls.add(p.Calls, a.yield) {
		return false
	}
	if len(a.calls.all) > maxCalls {
		return a.fail(tapedeck.Errorf(tapedeck.TooLarge, "the model has called more than %d functions at once", maxCalls))
	}
	return true
}

func (a *assembler) say(k Kind, text payload.Piece) bool {
	return text == "" || a.yield(Delta{Kind: k, Text: text}, nil)
}

// thought returns the reasoning of a piece. Some providers send the same text under two
// names.
func (p *piece) thought() payload.Piece {
	if p.ReasoningContent != "" {
		return p.ReasoningContent
	}
	if s, _ := stringOf(p.Reasoning); s != "" || !isSet(p.Details) {
		return s
	}
	var details []struct {
		Text    payload.Piece `json:"text"`
		Summary payload.Piece `json:"summary"`
	}
	_ = json.Unmarshal(p.Details, &details) // encrypted details have no text
	var b strings.Builder
	for _, d := range details {
		b.WriteString(string(d.Text + d.Summary))
	}
	return payload.Piece(b.String())
}

// parts returns the text and the reasoning of a content. The content is a string, or parts
// in the form of Mistral.
func parts(content json.RawMessage) (text, thought payload.Piece) {
	if s, ok := stringOf(content); ok || !isSet(content) {
		return s, ""
	}
	var list []struct {
		Type     string          `json:"type"`
		Text     payload.Piece   `json:"text"`
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

func stringOf(raw json.RawMessage) (payload.Piece, bool) {
	var s payload.Piece
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return s, s.UnmarshalJSON(raw) == nil
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
