package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/internal/proposal"
	"github.com/tapedeck/tapedeck/payload"
)

// A call is the part of an update or a question that describes a tool call. A missing
// member has not changed.
type call struct {
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title"`
	Kind      string          `json:"kind"`
	Status    string          `json:"status"`
	Input     json.RawMessage `json:"rawInput"`
	Output    json.RawMessage `json:"rawOutput"`
	Content   json.RawMessage `json:"content"`
	Locations json.RawMessage `json:"locations"`
	Meta      struct {
		Delta *struct {
			Data payload.Piece `json:"data"`
		} `json:"terminal_output_delta"`
		Exit *struct {
			Code   *int    `json:"exit_code"`
			Signal *string `json:"signal"`
		} `json:"terminal_exit"`
	} `json:"_meta"`
}

// title returns the text of the call for people.
func (k *call) title() string { return cmp.Or(k.Title, k.Kind) }

// A tool is the state of a call that was announced.
type tool struct {
	name    string
	kind    string
	title   string          // the newest title
	input   json.RawMessage // the newest input, before it is in an event
	sent    json.RawMessage // the input that is in an event
	content json.RawMessage // the newest content
	shown   string          // the part of the content that was sent as terminal output
	halves  payload.Halves
	output  strings.Builder // output that arrived as deltas of a terminal

	locations json.RawMessage // the newest locations
}

// maxOutput is how many bytes of a terminal's output are kept for the answer of its
// tool. The terminal events have the whole output.
const maxOutput = 1 << 20

// announce records the tool call of a question, and returns it.
func (c *conversation) announce(raw json.RawMessage) *call {
	k := &call{}
	if json.Unmarshal(raw, k) != nil || k.ID == "" {
		return k
	}
	t := c.ensureTool(k, raw)
	t.learn(k)
	if len(t.input) == 0 {
		t.offer(k.Input)
	}
	c.sendInput(k.ID, t)
	return k
}

// toolCall handles an update of a tool call. It reports false if the line must also be
// kept as RAW.
func (c *conversation) toolCall(raw json.RawMessage, update bool) bool {
	k := &call{}
	if json.Unmarshal(raw, k) != nil || k.ID == "" {
		return false
	}
	t := c.ensureTool(k, raw)
	late := c.n.IsCalled(k.ID) && isObject(k.Input) && !bytes.Equal(k.Input, t.sent)
	t.learn(k)
	t.offer(k.Input)
	ready := update || !c.quirks.PartialInput
	if ready && t.input != nil || k.Status == "in_progress" || k.over() {
		c.sendInput(k.ID, t)
	}
	c.show(k, t)
	if k.over() {
		answer := t.answer(k)
		if c.subs[k.ID] {
			c.n.SubagentDone(k.ID, failure(&answer))
			c.subs[k.ID] = false
		}
		c.n.Answered(k.ID, answer)
		t.content, t.shown, t.sent = nil, "", nil
		t.output.Reset()
	}
	return !late // an input that arrives too late is kept only as RAW
}

// failure returns why a sub-agent has failed; "" if it has not.
func failure(a *narrate.Answer) string {
	if !a.Failed {
		return ""
	}
	return narrate.Brief("it failed: "+narrate.String(a.Content), nil)
}

func (k *call) over() bool { return k.Status == "completed" || k.Status == "failed" }

// ensureTool returns the state of a call. It announces a new call.
func (c *conversation) ensureTool(k *call, raw json.RawMessage) *tool {
	if t := c.tools[k.ID]; t != nil {
		return t
	}
	t := &tool{name: c.name(k, raw)}
	c.tools[k.ID] = t
	about := tapedeck.Members{}
	for name, v := range map[string]json.RawMessage{"title": text(k.Title), "kind": text(k.Kind), "locations": k.Locations} {
		if len(v) > 2 { // neither "" nor []
			about[name] = v
		}
	}
	c.n.Tool(narrate.Call{ID: k.ID, Name: t.name, Lane: c.lane, Metadata: metadata(about)})
	return t
}

func text(s string) json.RawMessage { return narrate.Text(s) }

// metadata returns the metadata of an event with members of this protocol.
func metadata(about tapedeck.Members) tapedeck.Members {
	raw, err := json.Marshal(about)
	if err != nil || len(about) == 0 {
		return nil
	}
	return tapedeck.Members{"acp": raw}
}

// name returns the name of the tool. The protocol has no name, only a title for people
// and a kind.
func (c *conversation) name(k *call, raw json.RawMessage) string {
	name := ""
	if c.quirks.ToolName != "" {
		name = narrate.String(narrate.Pointer(raw, c.quirks.ToolName))
	}
	if c.quirks.TitleIsName {
		name = cmp.Or(name, k.Title)
	}
	return cmp.Or(name, k.Kind, "tool")
}

func isObject(raw json.RawMessage) bool { return len(raw) > 2 && raw[0] == '{' }

// learn stores the kind, the title and the locations of an update. Missing members stay
// unchanged.
func (t *tool) learn(k *call) {
	if k.Title != "" {
		t.title = k.Title
	}
	if k.Kind != "" {
		t.kind = k.Kind
	}
	if isSet(k.Locations) {
		t.locations = k.Locations
	}
}

// offer stores the input of a call. The newest input counts.
func (t *tool) offer(input json.RawMessage) {
	if isObject(input) {
		t.input = input
	}
}

// sendInput yields the input of a call, once.
func (c *conversation) sendInput(id string, t *tool) {
	if c.n.IsCalled(id) {
		return
	}
	if t.input == nil && c.quirks.TitleIsCommand && t.kind == "execute" && t.title != "" {
		t.input = json.RawMessage(proposal.Encode(map[string]string{"command": t.title}))
	}
	c.n.Args(id, string(t.input))
	c.n.Called(id)
	t.sent, t.input = t.input, nil
}

// show yields the output of a running tool as the output of a terminal.
func (c *conversation) show(k *call, t *tool) {
	id := c.n.ToolID(k.ID)
	if d := k.Meta.Delta; d != nil && d.Data != "" {
		text := t.halves.Next(d.Data)
		t.output.WriteString(text[:min(len(text), max(0, maxOutput-t.output.Len()))])
		c.output(id, text)
	}
	if e := k.Meta.Exit; e != nil {
		out := payload.TerminalExit{Terminal: id, Code: e.Code}
		if e.Signal != nil {
			out.Signal = *e.Signal
		}
		c.n.Event(out)
	}
	if len(k.Content) <= 2 {
		return
	}
	t.content = k.Content
	if t.kind != "execute" || k.Status != "in_progress" || c.quirks.TitleIsCommand { // such an agent explains the command there
		return
	}
	now := payload.Piece(read(k.Content).text).Units()                 // what was shown may end with half of a character
	if more, ok := strings.CutPrefix(now, t.shown); ok && more != "" { // agents repeat the whole text each time
		t.shown = now
		c.output(id, t.halves.Next(payload.Piece(more)))
	}
}

func (c *conversation) output(id, text string) {
	if text != "" {
		c.n.Event(payload.TerminalOutput{Terminal: id, Data: text})
	}
}

// answer returns the answer of the tool: the text of its content, otherwise the output
// of its terminal, otherwise the raw output.
func (t *tool) answer(k *call) narrate.Answer {
	c := read(t.content)
	said, diffs := payload.Whole(c.text), c.diffs
	if string(k.Content) == "[]" {
		said = "" // what was there before was not the answer
	}
	if said == "" {
		said = t.output.String()
	}
	if said == "" {
		said = narrate.String(k.Output)
	}
	about := tapedeck.Members{}
	if len(diffs) > 0 {
		if raw, err := json.Marshal(diffs); err == nil {
			about["diffs"] = raw
		}
	}
	if k.Title != "" {
		about["title"] = text(k.Title)
	}
	return narrate.Answer{
		Content: text(strings.ToValidUTF8(said, "")), Failed: k.Status == "failed", Native: k.Output, Metadata: metadata(about),
	}
}
