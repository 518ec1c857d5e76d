package testmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A prompt is a decoded request of any provider.
type prompt struct {
	model   string
	stream  bool
	user    string // the newest message of the user
	users   int    // number of messages of the user
	results int    // number of tool results after the newest message
	tools   []tool
	form    *schema // the schema of a JSON answer; nil if the answer is text
}

// say adds a message of the user, without the blocks that agents add for the model.
func (p *prompt) say(text string) {
	if text = strings.TrimSpace(withoutAsides(text)); text != "" {
		p.user, p.results = text, 0
		p.users++
	}
}

// aside matches the tag that begins a block that agents add to messages of the user.
var aside = regexp.MustCompile(`<([a-zA-Z_ -]*(?:context|reminder|instructions|INSTRUCTIONS))>`)

// historyBegins and historyEnds enclose what an agent that cannot resume gets of an earlier conversation.
// Its markers were for other answers.
const historyBegins, historyEnds = "[CONVERSATION SO FAR]", "[END OF CONVERSATION SO FAR]"

func withoutAsides(text string) string {
	if before, rest, ok := strings.Cut(text, historyBegins); ok {
		if _, after, ok := strings.Cut(rest, historyEnds); ok {
			text = before + after
		}
	}
	var b strings.Builder
	for {
		at := aside.FindStringSubmatchIndex(text)
		if at == nil {
			return b.String() + text
		}
		end := "</" + text[at[2]:at[3]] + ">"
		n := strings.Index(text[at[1]:], end)
		if n < 0 {
			return b.String() + text
		}
		b.WriteString(text[:at[0]])
		text = text[at[1]+n+len(end):]
	}
}

// An answer is the model's answer to a prompt.
type answer struct {
	reasoning string
	text      string
	calls     []call
	pause     time.Duration // before each word
	cut       bool          // the connection breaks after half of the text
	status    int           // an HTTP status instead of an answer; 0 for an answer
}

type call struct {
	name string
	args json.RawMessage // a JSON object
}

var (
	errorMarker = regexp.MustCompile(`\[error (\d{3})\]`)
	toolMarker  = regexp.MustCompile(`\[tool ([A-Za-z0-9_.-]+)`)
	sayMarker   = regexp.MustCompile(`\[answer `)
	runMarker   = regexp.MustCompile(`\[run ("(?:[^"\\]|\\.)*")\]`)
)

// patience is how many times the model answers a message with 429 before it answers
// normally.
const patience = 2

func (m *Model) answer(p prompt) answer {
	if p.form != nil { // a question of the agent itself, not of the user
		return answer{text: p.form.example()}
	}
	a := answer{status: m.status(p), pause: m.options.Pace}
	if strings.Contains(p.user, "[think]") {
		a.reasoning = "The user has asked for something. I think about it first."
	}
	steps := stepsOf(p)
	switch {
	case p.results < len(steps):
		a.calls = steps[p.results : p.results+1]
		if strings.Contains(p.user, "[parallel]") {
			a.calls = steps
		}
		a.text = fmt.Sprintf("Now I call %s.", a.calls[0].name)
	case p.results > 0:
		a.text = fmt.Sprintf("Done after %d tool results.", p.results)
	default:
		a.text = fmt.Sprintf("Hello! This is answer number %d.", p.users)
	}
	if text, ok := lastWords(p.user); ok && len(a.calls) == 0 {
		a.text = text
	}
	if strings.Contains(p.user, "[slow]") && len(a.calls) == 0 {
		a.pause, a.text = m.options.Pause, m.slowText()
	}
	a.cut = strings.Contains(p.user, "[cut]") || strings.Contains(p.user, "[cut once]") && m.isFirst(p)
	return a
}

// lastWords returns the last message that a prompt requests.
func lastWords(user string) (text string, ok bool) {
	at := sayMarker.FindStringIndex(user)
	if at == nil {
		return "", false
	}
	var value json.RawMessage
	if json.NewDecoder(strings.NewReader(user[at[1]:])).Decode(&value) != nil {
		return "", false
	}
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	return text, true
}

func (m *Model) slowText() string {
	var b strings.Builder
	for i := range m.options.Words {
		fmt.Fprintf(&b, "word%d ", i+1)
	}
	return b.String()
}

// status returns the HTTP status that refuses a prompt; 0 if the model answers it.
func (m *Model) status(p prompt) int {
	found := errorMarker.FindStringSubmatch(p.user)
	if found == nil {
		return 0
	}
	status, _ := strconv.Atoi(found[1]) // three digits
	if status < 400 || status > 599 {
		return http.StatusBadRequest
	}
	if status != http.StatusTooManyRequests {
		return status
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refusals[p.user] >= patience {
		return 0
	}
	m.refusals[p.user]++
	return status
}

// isFirst reports whether no request with the message of the user was cut yet.
func (m *Model) isFirst(p prompt) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusals[p.user]++
	return m.refusals[p.user] == 1
}

// stepsOf returns the tool calls that the markers of a prompt request, in order.
func stepsOf(p prompt) []call {
	var steps []call
	for _, at := range toolMarker.FindAllStringSubmatchIndex(p.user, -1) {
		c := call{name: p.user[at[2]:at[3]], args: json.RawMessage("{}")}
		var args json.RawMessage
		rest := strings.TrimLeft(p.user[at[1]:], " ")
		if strings.HasPrefix(rest, "{") && json.NewDecoder(strings.NewReader(rest)).Decode(&args) == nil {
			c.args = args
		}
		steps = append(steps, c)
	}
	for _, found := range runMarker.FindAllStringSubmatch(p.user, -1) {
		var command string
		if json.Unmarshal([]byte(found[1]), &command) != nil {
			continue
		}
		if c, ok := shellCall(command)(p.tools); ok {
			steps = append(steps, c)
		}
	}
	if strings.Contains(p.user, "[tools]") {
		for _, pick := range []func([]tool) (call, bool){todoCall(false), shellCall(workCommand), todoCall(true)} {
			if c, ok := pick(p.tools); ok {
				steps = append(steps, c)
			}
		}
	}
	return steps
}
