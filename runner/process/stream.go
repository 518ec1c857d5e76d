package process

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
)

// A stream is what is known of what a program says.
type stream struct {
	n       *narrate.Narrator
	attempt *attempt
	in      tapedeck.Invocation

	linked  string // the program's id of the conversation
	profile string // the permission mode that was told last
	worked  bool   // it said or did something
	ended   bool   // it said that it is at its end
	failure string // and that it failed, or how
	asked   int

	take func(*stream, json.RawMessage) bool

	// Of the dialect claude.
	lanes map[string]*lane
	tasks map[string]taskInput // the calls that may begin sub-agents
	told  bool                 // the usage of a model call was reported
}

// A dialect is what the lines of some programs mean.
type dialect struct {
	can       tapedeck.Capabilities
	take      func(*stream, json.RawMessage) bool // false if a line maps to nothing
	greet     func(task string) []byte            // what the program is told first; nil for one that is told nothing
	interrupt func() []byte                       // what asks it to stop; nil for SIGINT
	trusting  bool                                // it has no word for its end, so that the exit status must do
}

// Mapped is the dialect that [Options.Mapping] describes.
const Mapped = "lines"

var dialects = map[string]dialect{
	"claude": {
		take: (*stream).claude,
		can:  tapedeck.Capabilities{Deltas: true, Thinking: true, Tools: true, Plan: true},
	},
	"claude-control": {
		take: (*stream).claude, greet: greetClaude, interrupt: interruptClaude,
		can: tapedeck.Capabilities{Deltas: true, Thinking: true, Tools: true, Plan: true, Permission: true},
	},
	"codex":    {take: (*stream).codex, can: tapedeck.Capabilities{Thinking: true, Tools: true, Plan: true}},
	"gemini":   {take: (*stream).gemini, can: tapedeck.Capabilities{Deltas: true, Tools: true, Plan: true}},
	"opencode": {take: (*stream).opencode, can: tapedeck.Capabilities{Thinking: true, Tools: true, Plan: true}},
	"pi":       {take: (*stream).pi, can: tapedeck.Capabilities{Deltas: true, Thinking: true, Tools: true}},
	Mapped:     {},
}

// Dialects returns the names of the dialects.
func Dialects() []string { return slices.Sorted(maps.Keys(dialects)) }

func newStream(in tapedeck.Invocation, n *narrate.Narrator, a *attempt) *stream {
	return &stream{
		n: n, attempt: a, in: in, take: a.runner.dialect.take,
		lanes: map[string]*lane{}, tasks: map[string]taskInput{},
	}
}

// maxStray bounds what is kept of a line that is not JSON.
const maxStray = 4 << 10

// line takes a line.
func (s *stream) line(line json.RawMessage) {
	if line[0] != '{' || !json.Valid(line) {
		s.n.Raw(s.attempt.runner.link(), line[:min(len(line), maxStray)])
		return
	}
	if !s.take(s, line) {
		s.n.Raw(s.attempt.runner.link(), line)
	}
}

// link takes the id of the conversation, which most repeat in every line.
func (s *stream) link(id string) {
	if id != "" && id != s.linked {
		s.linked = id
		s.n.Link(s.attempt.runner.link(), id)
	}
}

func (s *stream) say(lane, id, text string) {
	s.worked = s.worked || text != ""
	s.n.Say(lane, id, text)
}

func (s *stream) think(lane, id, text string) {
	s.worked = s.worked || text != ""
	s.n.Think(lane, id, text)
}

// whole tells a message that is told as a whole.
func (s *stream) whole(tell func(lane, id, text string), id, text string) {
	tell("", id, text)
	s.n.EndMessage("")
}

// called tells a call whose input is known as a whole.
func (s *stream) called(c narrate.Call, input json.RawMessage) {
	s.worked = true
	s.n.Tool(c)
	s.n.Input(c.ID, input)
}

// result says that the program is at its end.
func (s *stream) result(failed bool, why string) {
	s.ended = true
	if failed {
		s.failure = why
		if why == "" {
			s.failure = "it does not say why"
		}
	}
}

// use reports usage in a lane, if there was any.
func (s *stream) use(lane string, u payload.UsageReported) {
	for _, n := range []*int64{u.InputTokens, u.OutputTokens, u.TotalTokens} {
		if n != nil && *n > 0 {
			s.n.Usage(lane, u)
			return
		}
	}
	if u.CostUSD != nil && *u.CostUSD > 0 {
		s.n.Usage(lane, u)
	}
}

// ask asks people, beside the run.
func (s *stream) ask(q tapedeck.Question, then func(option string) []byte) {
	a := s.attempt
	if s.in.Ask == nil || a.ctx.Err() != nil {
		a.send(then(""))
		return
	}
	a.others.Go(func() {
		given, err := s.in.Ask(a.ctx, q)
		if err != nil {
			given.Option = ""
		}
		select {
		case a.answers <- answer{then(given.Option)}:
		case <-a.life.Done():
		}
	})
}

// An answer is what the program is told of what people have decided.
type answer struct{ message []byte }
