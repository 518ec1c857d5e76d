package process

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
)

// claudeLine is a line of Claude Code's stream-json. Qwen Code uses the same format.
type claudeLine struct {
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	Session   string          `json:"session_id"`
	UUID      string          `json:"uuid"`
	Parent    string          `json:"parent_tool_use_id"` // the call that began the sub-agent that sent the line; "" for the agent itself
	Event     claudeEvent     `json:"event"`
	Message   claudeMessage   `json:"message"`
	Native    json.RawMessage `json:"tool_use_result"`
	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request"`

	IsError bool         `json:"is_error"` // this and the members below belong to a result
	Result  string       `json:"result"`
	Errors  []string     `json:"errors"`
	Cost    *float64     `json:"total_cost_usd"`
	Usage   *claudeUsage `json:"usage"`
}

type claudeMessage struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"`
	Usage   *claudeUsage    `json:"usage"`
}

// claudeEvent is an event of the model's stream, which Claude Code forwards.
type claudeEvent struct {
	Type    string        `json:"type"`
	Message claudeMessage `json:"message"`
	Index   int           `json:"index"`
	Block   claudeBlock   `json:"content_block"`
	Delta   struct {
		Type      string        `json:"type"`
		Text      payload.Piece `json:"text"`
		Thinking  payload.Piece `json:"thinking"`
		JSON      payload.Piece `json:"partial_json"`
		Signature string        `json:"signature"`
	} `json:"delta"`
	Usage *claudeUsage `json:"usage"`
}

type claudeBlock struct {
	Type     string          `json:"type"`
	Text     payload.Piece   `json:"text"`
	Thinking payload.Piece   `json:"thinking"`
	ID       string          `json:"id"` // this and the next two belong to tool_use
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	UseID    string          `json:"tool_use_id"` // this and the members below belong to tool_result
	Content  json.RawMessage `json:"content"`
	IsError  bool            `json:"is_error"`
}

type claudeUsage struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
}

// report returns the usage in the form of events. There the input includes cached
// tokens; Claude counts them separately.
func (u *claudeUsage) report(model string) payload.UsageReported {
	d := payload.UsageReported{}
	d.Model, d.OutputTokens, d.CachedInputTokens, d.CacheWriteInputTokens = model, u.Output, u.CacheRead, u.CacheWrite
	if u.Input != nil {
		sum := *u.Input
		for _, n := range []*int64{u.CacheRead, u.CacheWrite} {
			if n != nil {
				sum += *n
			}
		}
		d.InputTokens = &sum
	}
	return d
}

// A lane is the state of what the agent, or one of its sub-agents, is saying.
type lane struct {
	name      string
	message   string              // the id of the current message
	streaming bool                // the message arrives in pieces, so its text in a complete copy is ignored
	blocks    map[int]claudeBlock // the open content blocks, by index
	used      *claudeUsage        // usage of the newest model call, not reported yet
	usedBy    string              // the message of that model call
	model     string
}

// A taskInput is the input of a tool call that begins a sub-agent.
type taskInput struct {
	Type        string `json:"subagent_type"`
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
}

func (s *stream) claude(raw json.RawMessage) bool {
	var l claudeLine
	if json.Unmarshal(raw, &l) != nil {
		return false
	}
	name := s.laneOf(l.Parent)
	switch l.Type {
	case "system":
		if l.Subtype == "init" {
			s.begins()
		}
		s.claudeSystem(raw, &l)
		return false // the whole line is kept as RAW, too
	case "stream_event":
		return s.claudeEvent(name, &l.Event)
	case "assistant":
		return s.claudeAssistant(name, &l.Message)
	case "user":
		return s.claudeUser(&l)
	case "result":
		s.claudeOutput(raw, l.IsError || l.Subtype != "success")
		s.claudeResult(&l)
		return false // the line has more than the events, so it is kept as RAW, too
	case "control_request":
		return s.claudeRequest(&l)
	case "control_response", "keep_alive":
		return true
	}
	return false
}

// laneOf returns the name of the lane of a line. It begins the sub-agent if this is
// its first line.
func (s *stream) laneOf(parent string) string {
	if s.lanes[parent] == nil {
		s.lanes[parent] = &lane{name: parent, blocks: map[int]claudeBlock{}}
		if t := s.tasks[parent]; parent != "" {
			name := t.Type
			if name == "" {
				name = "subagent"
			}
			s.n.Subagent(parent, name, t.Description, "")
			s.n.SubagentTask(parent, t.Prompt)
		}
	}
	return parent
}

func (s *stream) claudeEvent(name string, e *claudeEvent) bool {
	l := s.lanes[name]
	switch e.Type {
	case "message_start":
		s.claudeTurn(l)
		l.message, l.streaming, l.model = e.Message.ID, true, e.Message.Model
		clear(l.blocks)
		s.claudeUsed(l, e.Message.ID, e.Message.Usage)
	case "content_block_start":
		l.blocks[e.Index] = e.Block
		s.claudeBlock(name, l.message, &e.Block, true)
	case "content_block_delta":
		return s.claudeDelta(name, l, e)
	case "content_block_stop":
		if b := l.blocks[e.Index]; b.Type == "tool_use" {
			s.n.Called(b.ID)
		} else {
			s.n.EndMessage(name)
		}
		delete(l.blocks, e.Index)
	case "message_delta":
		s.claudeUsed(l, l.message, e.Usage)
	case "message_stop":
		l.streaming = false
	default:
		return e.Type == "ping"
	}
	return true
}

// claudeTurn begins a model call. The usage of the one before belongs to that.
func (s *stream) claudeTurn(l *lane) {
	s.flush(l)
	s.n.NextTurn(l.name)
}

func (s *stream) claudeDelta(name string, l *lane, e *claudeEvent) bool {
	switch e.Delta.Type {
	case "text_delta":
		s.say(name, l.message, string(e.Delta.Text))
	case "thinking_delta":
		s.think(name, l.message, string(e.Delta.Thinking))
	case "input_json_delta":
		s.n.Args(l.blocks[e.Index].ID, string(e.Delta.JSON))
	case "signature_delta":
		return s.n.StoreEncrypted(name, e.Delta.Signature)
	default:
		return false
	}
	return true
}

// claudeBlock reports a block of a message: only its beginning if begins is set, and
// otherwise the complete block. It reports false for an unknown block.
func (s *stream) claudeBlock(name, message string, b *claudeBlock, begins bool) bool {
	switch b.Type {
	case "text":
		s.say(name, message, string(b.Text))
	case "thinking":
		s.think(name, message, string(b.Thinking))
	case "tool_use":
		s.worked = true
		s.n.Tool(narrate.Call{ID: b.ID, Name: b.Name, Lane: name, Message: message})
		if begins {
			return true
		}
		var t taskInput
		if json.Unmarshal(b.Input, &t) == nil && t.Type != "" {
			s.tasks[b.ID] = t
		}
		if !s.n.IsCalled(b.ID) && !s.lanes[name].streaming {
			s.called(narrate.Call{ID: b.ID}, b.Input)
		}
	default:
		return false
	}
	return true
}

// claudeAssistant handles a complete message, or a complete part of it. If the message was
// streamed, its text was reported already. Its tool calls are handled again, because
// only here is their whole input known.
func (s *stream) claudeAssistant(name string, m *claudeMessage) bool {
	l := s.lanes[name]
	var blocks []claudeBlock
	if json.Unmarshal(m.Content, &blocks) != nil {
		return false
	}
	known := true
	if !l.streaming {
		if m.ID != l.message {
			s.claudeTurn(l)
		}
		l.message, l.model = m.ID, m.Model
	}
	for i := range blocks {
		b := &blocks[i]
		if l.streaming && b.Type != "tool_use" {
			continue
		}
		known = s.claudeBlock(name, m.ID, b, false) && known
		if !l.streaming {
			s.n.EndMessage(name)
		}
	}
	s.claudeUsed(l, m.ID, m.Usage)
	return known
}

// claudeUser handles the input of the agent: the answers of its tools. The log
// already has the tasks of the agent and of its sub-agents.
func (s *stream) claudeUser(l *claudeLine) bool {
	if s.unread[l.UUID] {
		s.read(l.UUID)
		return true
	}
	var blocks []claudeBlock
	if json.Unmarshal(l.Message.Content, &blocks) != nil {
		return true // the content is a text: a task
	}
	known := true
	for _, b := range blocks {
		if b.Type != "tool_result" {
			known = known && b.Type == "text"
			continue
		}
		if s.lanes[b.UseID] != nil {
			s.flush(s.lanes[b.UseID])
			s.n.SubagentDone(b.UseID, failureOf(b))
			delete(s.lanes, b.UseID)
		}
		delete(s.tasks, b.UseID)
		known = known && s.n.HasTool(b.UseID)
		s.n.Answered(b.UseID, narrate.Answer{Content: contentOf(b.Content), Failed: b.IsError, Native: l.Native})
	}
	return known
}

func failureOf(b claudeBlock) string {
	if !b.IsError {
		return ""
	}
	return narrate.Brief("it failed: "+narrate.String(b.Content), nil)
}

// contentOf returns the content of a tool's answer as text. For a part that is not
// text it has the part's type in brackets.
func contentOf(raw json.RawMessage) json.RawMessage {
	var parts []struct {
		Type string        `json:"type"`
		Text payload.Piece `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return narrate.Text(narrate.String(raw))
	}
	var text payload.Piece
	for _, p := range parts {
		if p.Text == "" && p.Type != "text" {
			p.Text = payload.Piece("[" + p.Type + "]")
		}
		text += p.Text
	}
	return narrate.Text(text.Whole())
}

// claudeUsed records the usage of a model call. The program reports it several times,
// with growing numbers.
func (s *stream) claudeUsed(l *lane, message string, u *claudeUsage) {
	if u == nil {
		return
	}
	if l.used != nil && message != l.usedBy {
		s.flush(l)
	}
	if l.used == nil {
		l.used = &claudeUsage{}
	}
	l.usedBy = message
	for _, f := range []struct{ to, from **int64 }{
		{&l.used.Input, &u.Input}, {&l.used.Output, &u.Output}, {&l.used.CacheRead, &u.CacheRead}, {&l.used.CacheWrite, &u.CacheWrite},
	} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
}

// flush reports the usage of the newest model call of a lane.
func (s *stream) flush(l *lane) {
	if u := s.takeUsage(l); u != nil {
		s.use(l.name, *u)
	}
}

// takeUsage returns the usage of the newest model call if it was not reported yet,
// and otherwise nil.
func (s *stream) takeUsage(l *lane) *payload.UsageReported {
	if l.used == nil {
		return nil
	}
	d := l.used.report(l.model)
	l.used = nil
	if (d.InputTokens == nil || *d.InputTokens <= 0) && (d.OutputTokens == nil || *d.OutputTokens <= 0) {
		return nil
	}
	s.usageReported = true
	return &d
}

// flushAll reports all usage that was not reported yet. It is called after the last line.
func (s *stream) flushAll() {
	for _, l := range s.lanes {
		s.flush(l)
	}
}

// claudeResult handles the result. It adds the total cost to the usage of the last
// model call. If no model call reported its usage, it reports the total usage.
func (s *stream) claudeResult(l *claudeLine) {
	last := s.takeUsage(s.lanes[s.laneOf("")])
	s.flushAll()
	if last == nil {
		last = &payload.UsageReported{}
		if !s.usageReported && l.Usage != nil {
			*last = l.Usage.report("")
		}
	}
	last.CostUSD = l.Cost
	s.use("", *last)
	why := l.Result
	for _, e := range l.Errors {
		why = e
	}
	if why == "" {
		why = l.Subtype
	}
	s.result(l.IsError || l.Subtype != "success", why)
}
