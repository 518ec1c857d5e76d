package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
)

// A call is what an update, or a question, says of a tool call. What is not there
// has not changed.
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
			Data string `json:"data"`
		} `json:"terminal_output_delta"`
		Exit *struct {
			Code   *int    `json:"exit_code"`
			Signal *string `json:"signal"`
		} `json:"terminal_exit"`
	} `json:"_meta"`
}

// title returns what people are shown of the call.
func (k *call) title() string { return cmp.Or(k.Title, k.Kind) }

// A tool is what is known of a call that was announced.
type tool struct {
	name    string
	kind    string
	input   json.RawMessage // not yet told
	told    json.RawMessage // the input as it was told
	content json.RawMessage // the newest
	shown   string          // what its terminal has shown of the content
	output  strings.Builder // what came as the output of a terminal

	locations json.RawMessage // the newest
}

// maxOutput bounds what is kept of a terminal for the answer of its tool. All of
// it is in the events of the terminal.
const maxOutput = 1 << 20

// announce takes what a question says of a tool call.
func (c *conversation) announce(raw json.RawMessage) *call {
	k := &call{}
	if json.Unmarshal(raw, k) != nil || k.ID == "" {
		return k
	}
	t := c.know(k, raw)
	t.learn(k)
	if len(t.input) == 0 {
		t.offer(k.Input)
	}
	c.tell(k.ID, t)
	return k
}

// toolCall takes an update of a tool call.
func (c *conversation) toolCall(raw json.RawMessage, update bool) bool {
	k := &call{}
	if json.Unmarshal(raw, k) != nil || k.ID == "" {
		return false
	}
	t := c.know(k, raw)
	late := c.n.IsCalled(k.ID) && isObject(k.Input) && !bytes.Equal(k.Input, t.told)
	t.learn(k)
	t.offer(k.Input)
	ready := update || !c.quirks.PartialInput
	if ready && t.input != nil || k.Status == "in_progress" || k.over() {
		c.tell(k.ID, t)
	}
	c.show(k, t)
	if k.over() {
		answer := t.answer(k)
		if c.subs[k.ID] {
			c.n.SubagentDone(k.ID, failure(&answer))
			c.subs[k.ID] = false
		}
		c.n.Answered(k.ID, answer)
		t.content, t.shown, t.told = nil, "", nil
		t.output.Reset()
	}
	return !late // an input that comes too late is kept as it came
}

// failure returns why a sub-agent has failed, if it has.
func failure(a *narrate.Answer) string {
	if !a.Failed {
		return ""
	}
	return narrate.Brief("it failed: " + narrate.String(a.Content))
}

func (k *call) over() bool { return k.Status == "completed" || k.Status == "failed" }

// know returns what is known of a call, which is announced if it is new.
func (c *conversation) know(k *call, raw json.RawMessage) *tool {
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

// metadata returns the metadata of an event that has members of this protocol.
func metadata(about tapedeck.Members) tapedeck.Members {
	raw, err := json.Marshal(about)
	if err != nil || len(about) == 0 {
		return nil
	}
	return tapedeck.Members{"acp": raw}
}

// name returns the name of the tool. The protocol has none, only a title for
// people and a kind.
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

// learn takes what an update says of a call. What it does not say stays.
func (t *tool) learn(k *call) {
	if k.Kind != "" {
		t.kind = k.Kind
	}
	if isSome(k.Locations) {
		t.locations = k.Locations
	}
}

// offer takes the input of a call; the newest counts.
func (t *tool) offer(input json.RawMessage) {
	if isObject(input) {
		t.input = input
	}
}

// tell tells the input of a call, once.
func (c *conversation) tell(id string, t *tool) {
	if c.n.IsCalled(id) {
		return
	}
	c.n.Args(id, string(t.input))
	c.n.Called(id)
	t.told, t.input = t.input, nil
}

// show shows what a tool puts out while it works, as that of a terminal.
func (c *conversation) show(k *call, t *tool) {
	id := c.n.ToolID(k.ID)
	if d := k.Meta.Delta; d != nil && d.Data != "" {
		t.output.WriteString(d.Data[:min(len(d.Data), max(0, maxOutput-t.output.Len()))])
		c.n.Event(payload.TerminalOutput{Terminal: id, Data: d.Data})
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
	if t.kind != "execute" || k.Status != "in_progress" {
		return
	}
	now := read(k.Content).text
	if more, ok := strings.CutPrefix(now, t.shown); ok && more != "" { // agents say it all again each time
		t.shown = now
		c.n.Event(payload.TerminalOutput{Terminal: id, Data: more})
	}
}

// answer returns what the tool has answered: the text of its content, else what
// its terminal has shown, else its output as the agent has it.
func (t *tool) answer(k *call) narrate.Answer {
	c := read(t.content)
	said, diffs := c.text, c.diffs
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
