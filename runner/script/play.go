package script

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

const (
	defaultRate = 30.0    // words per second
	maxText     = 1 << 20 // bytes of one text, with the task inserted
	argsPiece   = 24      // bytes of a tool's arguments in one delta
)

// A player plays the steps of one invocation. Its methods report false when the run is
// over: the script has failed, ctx is done, or yield has returned false.
type player struct {
	ctx     context.Context
	yield   func(tapedeck.Event, error) bool
	task    string
	prefix  string // prefix of new ids
	ids     int    // number of ids so far
	turn    int
	sub     string // the sub-agent that plays now; "" for the agent itself
	round   int    // the round of the innermost repetition, from 1
	speed   float64
	instant bool
	rate    float64
	jitter  float64
	random  *rand.Rand
	limits  Limits
	steps   int   // steps and events so far
	bytes   int64 // of the data of the events so far
}

func (p *player) play(steps []step) bool {
	for i := range steps {
		if s := &steps[i]; !p.count(0) || !s.do(p, s) {
			return false
		}
	}
	return true
}

// count counts a step, or an event with its data.
func (p *player) count(bytes int) bool {
	p.steps++
	p.bytes += int64(bytes)
	switch l := p.limits; {
	case l.Steps > 0 && p.steps > l.Steps:
		return p.exceed("%d steps and events", l.Steps)
	case l.Bytes > 0 && p.bytes > l.Bytes:
		return p.exceed("%d bytes of events", l.Bytes)
	}
	return true
}

func (p *player) exceed(format string, limit any) bool {
	p.yield(tapedeck.Event{}, tapedeck.Errorf(tapedeck.Limited, "the script has more than "+format+" in one run, which is the limit of this server", limit))
	return false
}

// emit yields one event. When ctx is done, it yields nothing: the engine ends the open
// parts.
func (p *player) emit(typ string, data any) bool {
	if p.ctx.Err() != nil {
		return false
	}
	b, err := json.Marshal(data)
	if err != nil {
		return p.refuse("%s: %v", typ, err)
	}
	if p.sub != "" && !strings.HasPrefix(typ, "SUBAGENT_") && !strings.HasSuffix(typ, "_CONTENT") && !strings.HasSuffix(typ, "_ARGS") {
		b = fmt.Appendf(b[:len(b)-1], `,"subagentRunId":%q}`, p.sub) // data always has members, so the comma is correct
	}
	return p.count(len(b)) && p.yield(tapedeck.Event{Type: typ, Turn: p.turn, Data: b}, nil)
}

func (p *player) refuse(format string, args ...any) bool {
	p.yield(tapedeck.Event{}, tapedeck.Errorf(tapedeck.Invalid, format, args...))
	return false
}

// pause waits for d at the player's speed. It is the only place that waits for time, so
// that a fake clock can drive the player.
func (p *player) pause(d time.Duration) bool {
	if d = time.Duration(float64(d) / p.speed); d <= 0 || p.instant {
		return p.ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// beat waits for the duration of one word.
func (p *player) beat(s *step) bool {
	rate := p.rate
	if s.Rate > 0 {
		rate = s.Rate
	}
	vary := 1 + p.jitter*(2*p.random.Float64()-1)
	return p.pause(time.Duration(vary / rate * float64(time.Second)))
}

func (p *player) newID(kind string) string {
	p.ids++
	return fmt.Sprintf("%s.%s%d", p.prefix, kind, p.ids)
}

// members has the members of the events. Each type of event uses some of them.
type members struct {
	MessageID  string           `json:"messageId,omitempty"`
	ToolCallID string           `json:"toolCallId,omitempty"`
	Name       string           `json:"toolCallName,omitempty"`
	Role       string           `json:"role,omitempty"`
	Delta      *payload.Piece   `json:"delta,omitempty"`
	Content    *string          `json:"content,omitempty"`
	Metadata   tapedeck.Members `json:"metadata,omitempty"`
}

func (p *player) say(s *step) bool {
	text, ok := p.expand(*s.Say)
	if !ok {
		return false
	}
	m := members{MessageID: p.newID("m")}
	return p.emit("TEXT_MESSAGE_START", members{MessageID: m.MessageID, Role: "assistant"}) &&
		p.stream(s, "TEXT_MESSAGE_CONTENT", m, words(text)) &&
		p.emit("TEXT_MESSAGE_END", m)
}

func (p *player) think(s *step) bool {
	text, ok := p.expand(*s.Think)
	if !ok {
		return false
	}
	m := members{MessageID: p.newID("r")}
	return p.emit("REASONING_START", m) &&
		p.emit("REASONING_MESSAGE_START", members{MessageID: m.MessageID, Role: "reasoning"}) &&
		p.stream(s, "REASONING_MESSAGE_CONTENT", m, words(text)) &&
		p.emit("REASONING_MESSAGE_END", m) &&
		p.emit("REASONING_END", m)
}

// stream yields pieces as deltas, with a pause before each.
func (p *player) stream(s *step, typ string, m members, pieces []string) bool {
	for _, piece := range pieces {
		m.Delta = new(payload.Piece(piece))
		if !p.beat(s) || !p.emit(typ, m) {
			return false
		}
	}
	return true
}

func (p *player) tool(s *step) bool {
	id := members{ToolCallID: p.newID("c")}
	args := string(s.Args)
	if args == "" {
		args = "{}"
	}
	if !p.emit("TOOL_CALL_START", members{ToolCallID: id.ToolCallID, Name: *s.Tool}) ||
		!p.stream(s, "TOOL_CALL_ARGS", id, pieces(args, argsPiece)) ||
		!p.emit("TOOL_CALL_END", id) || !p.delegate(s, id.ToolCallID) || !p.work(s, id.ToolCallID) {
		return false
	}
	if s.Result == nil {
		return true
	}
	content := text(s.Result)
	m := members{ToolCallID: id.ToolCallID, MessageID: p.newID("t"), Role: "tool", Content: &content}
	if took := p.takes(s); s.Failed || took > 0 {
		ours := tapedeck.Meta{Error: s.Failed}
		if took > 0 {
			ours.DurationMS = new(took)
		}
		m.Metadata = ours.In(nil)
	}
	return p.emit("TOOL_CALL_RESULT", m)
}

// takes returns the duration of a tool at the player's speed, in milliseconds.
func (p *player) takes(s *step) int64 {
	if p.instant {
		return 0
	}
	return int64(float64(s.MS) / p.speed)
}

// delegate plays the steps of the sub-agent if the tool starts one.
func (p *player) delegate(s *step, call string) bool {
	if s.Agent == "" {
		return true
	}
	d := map[string]string{"subagentRunId": p.newID("s"), "name": s.Agent, "parentToolCallId": call}
	if p.sub != "" {
		d["parentSubagentRunId"] = p.sub
	}
	if !p.emit("SUBAGENT_STARTED", d) {
		return false
	}
	parent, turn := p.sub, p.turn
	p.sub, p.turn = d["subagentRunId"], 0
	if !p.play(s.steps) {
		return false
	}
	p.sub, p.turn = parent, turn
	return p.emit("SUBAGENT_FINISHED", map[string]string{"subagentRunId": d["subagentRunId"]})
}

// work waits for the duration of a tool. Meanwhile it yields the output of its terminal,
// line by line. The id of the terminal is the id of the call.
func (p *player) work(s *step, call string) bool {
	d := time.Duration(s.MS) * time.Millisecond
	if s.Shows == "" {
		return p.pause(d)
	}
	lines := strings.SplitAfter(s.Shows, "\n")
	for _, line := range lines {
		if !p.pause(d / time.Duration(len(lines))) {
			return false
		}
		if line != "" && !p.emit(tapedeck.TerminalOutput, payload.TerminalOutput{Terminal: call, Data: line}) {
			return false
		}
	}
	code := 0
	if s.Failed {
		code = 1
	}
	return p.emit(tapedeck.TerminalExit, payload.TerminalExit{Terminal: call, Code: &code})
}

func (p *player) plan(s *step) bool {
	return p.emit(tapedeck.PlanUpdated, map[string]any{"entries": s.Plan})
}

func (p *player) state(s *step) bool {
	return p.emit("STATE_SNAPSHOT", map[string]any{"snapshot": s.State})
}

func (p *player) patch(s *step) bool {
	return p.emit("STATE_DELTA", map[string]any{"delta": s.Patch})
}

func (p *player) usage(s *step) bool { return p.emit(tapedeck.UsageReported, s.Usage) }

func (p *player) fail(s *step) bool {
	kind := s.Kind
	if kind == "" {
		kind = tapedeck.Unavailable
	}
	p.yield(tapedeck.Event{}, &tapedeck.Error{Kind: kind, Message: *s.Error})
	return false
}

func (p *player) wait(*step) bool {
	<-p.ctx.Done()
	return false
}

func (p *player) sleep(s *step) bool { return p.pause(time.Duration(*s.Sleep) * time.Millisecond) }

// repeat plays its steps the given number of times; 0 means until the run is cancelled.
func (p *player) repeat(s *step) bool {
	outer := p.round
	for i := 1; i <= *s.Repeat || *s.Repeat == 0; i++ {
		p.round = i
		// The check of ctx ends a loop of steps that neither wait nor yield events.
		if p.ctx.Err() != nil || !p.play(s.steps) {
			return false
		}
	}
	p.round = outer
	return true
}

func (p *player) step(s *step) bool {
	name := map[string]string{"stepName": *s.Step}
	return p.emit("STEP_STARTED", name) && p.play(s.steps) && p.emit("STEP_FINISHED", name)
}

func (p *player) nextTurn(*step) bool {
	p.turn++
	return true
}

// event yields any event, also one that breaks the order. Tests of the engine need that.
func (p *player) event(s *step) bool {
	if p.ctx.Err() != nil {
		return false
	}
	return p.count(len(s.Data)) && p.yield(tapedeck.Event{Type: *s.Event, Turn: p.turn, Data: s.Data}, nil)
}

func (p *player) set(s *step) bool {
	if s.Set.Rate != nil {
		p.rate = *s.Set.Rate
	}
	if s.Set.Jitter != nil {
		p.jitter = *s.Set.Jitter
	}
	return true
}

// expand replaces {{task}} and {{n}}, the number of the round, in a text.
func (p *player) expand(text string) (string, bool) {
	if len(text)+strings.Count(text, "{{task}}")*len(p.task) > maxText {
		return "", p.refuse("a text of the script has more than %d bytes", maxText)
	}
	return strings.NewReplacer("{{task}}", p.task, "{{n}}", fmt.Sprint(p.round)).Replace(text), true
}

// words splits text before each word. The pieces joined are the text.
func words(text string) []string {
	var out []string
	start, space := 0, false
	for i, r := range text {
		if s := unicode.IsSpace(r); s != space {
			if space && start < i {
				out = append(out, text[start:i])
				start = i
			}
			space = s
		}
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

// pieces splits text into pieces of about n bytes, between characters.
func pieces(text string, n int) []string {
	var out []string
	for len(text) > n {
		i := n
		for i < len(text) && !utf8.RuneStart(text[i]) {
			i++
		}
		out = append(out, text[:i])
		text = text[i:]
	}
	return append(out, text)
}

// text returns a result as the content of a tool's answer: the value of a string, or the
// source of any other JSON.
func text(result json.RawMessage) string {
	var s string
	if json.Unmarshal(result, &s) == nil {
		return s
	}
	return string(result)
}
