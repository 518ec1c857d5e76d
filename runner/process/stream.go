package process

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
)

// A stream is the state of interpreting the output of one program.
type stream struct {
	n       *narrate.Narrator
	attempt *attempt
	in      tapedeck.Invocation

	linked  string // the program's id of the conversation
	profile string // the permission mode that was reported last
	worked  bool   // the agent said or did something
	ended   bool   // the program reported its end
	refused bool   // opencode has refused a call of this step
	failure string // the reason why the run failed, as the program reports it; "" if it has not failed
	asked   int    // number of questions so far

	take func(*stream, json.RawMessage) bool

	unread map[string]bool // the messages of users that the program has not read yet, by id

	// Only the dialect claude uses the fields below.
	lanes         map[string]*lane
	tasks         map[string]taskInput // the calls that may begin sub-agents
	usageReported bool                 // the usage of at least one model call was reported
}

// A dialect interprets the lines of one kind of program.
type dialect struct {
	can          tapedeck.Capabilities
	take         func(*stream, json.RawMessage) bool // interprets a line; false if it maps to no event
	greet        func(task string) []byte            // the first message to the program; nil if it reads no input
	tell         func(id, text string) []byte        // a message of a user to the running program; nil if it takes none
	interrupt    func() []byte                       // the message that asks the program to stop; nil for SIGINT
	byExitStatus bool                                // no line reports the end, so the exit status decides
}

// Mapped is the dialect that [Options.Mapping] describes.
const Mapped = "lines"

var dialects = map[string]dialect{
	"claude": {
		take: (*stream).claude,
		can:  tapedeck.Capabilities{Deltas: true, Thinking: true, Tools: true, Plan: true},
	},
	"claude-control": {
		take: (*stream).claude, greet: greetClaude, tell: tellClaude, interrupt: interruptClaude,
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
		lanes: map[string]*lane{}, tasks: map[string]taskInput{}, unread: map[string]bool{},
	}
}

// maxStray is how many bytes of a line that is not JSON are kept.
const maxStray = 4 << 10

// line interprets a line. It stores a line without a meaning as RAW.
func (s *stream) line(line json.RawMessage) {
	if line[0] != '{' || !json.Valid(line) {
		s.n.Raw(s.attempt.runner.link(), line[:min(len(line), maxStray)])
		return
	}
	if !s.take(s, line) {
		s.n.Raw(s.attempt.runner.link(), line)
	}
}

// link stores the id of the conversation. Most programs repeat it in every line.
func (s *stream) link(id string) {
	if id != "" && id != s.linked {
		s.linked = id
		s.n.Link(s.attempt.runner.link(), id)
	}
}

// equipped reports what the agent has said of itself, once.
func (s *stream) equipped(q narrate.Equipment) {
	if (q.Model != "" || q.Tools != nil || q.Skills != nil) && s.linked == "" {
		s.n.Event(q.Event())
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

// whole reports a complete message. tell is say or think.
func (s *stream) whole(tell func(lane, id, text string), id, text string) {
	tell("", id, text)
	s.n.EndMessage("")
}

// called reports a tool call with its complete input.
func (s *stream) called(c narrate.Call, input json.RawMessage) {
	s.worked = true
	s.n.Tool(c)
	s.n.Input(c.ID, input)
}

// result records that the program reported its end.
func (s *stream) result(failed bool, why string) {
	s.ended = true
	if failed {
		s.failure = why
		if why == "" {
			s.failure = "it gave no reason"
		}
	}
}

// use reports the usage of a lane, unless all of it is zero or unknown.
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

// ask asks people in a goroutine of its own, so the run continues meanwhile. reply
// makes the message for the program from the chosen option; "" means that nobody
// chose.
func (s *stream) ask(q tapedeck.Question, reply func(option string) []byte) {
	a := s.attempt
	if s.in.Ask == nil || a.ctx.Err() != nil {
		a.send(reply(""))
		return
	}
	a.others.Go(func() {
		given, err := s.in.Ask(a.ctx, q)
		if err != nil {
			given.Option = ""
		}
		select {
		case a.answers <- answer{reply(given.Option)}:
		case <-a.life.Done():
		}
	})
}

// An answer is the message that reports a decision of people to the program.
type answer struct{ message []byte }
