package process

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
)

// A Mapping describes the lines of a program, each of which is a JSON object. The
// place of a value is given as a JSON pointer into the line; "" means that the line
// does not have the value.
type Mapping struct {
	Type  string          `json:"type"`  // pointer to the kind of a line; "" for "/type"
	Lines map[string]Line `json:"lines"` // the meaning of each kind of line; all other lines are kept as RAW
}

// A Line describes one kind of line. As is its meaning, and decides which of the
// other fields count:
//
//	session      ID
//	text         ID, Text, Whole
//	thinking     ID, Text, Whole
//	tool_start   ID, Name, Input
//	tool_result  ID, Text, Failed
//	plan         List
//
// usage Model, InputTokens, OutputTokens, Cost
//
//	result       Failed, Text
//	ignore       none
type Line struct {
	As           string `json:"as"`
	ID           string `json:"id"`
	Text         string `json:"text"`
	Whole        bool   `json:"whole"` // the text is the whole message, not a piece of it
	Name         string `json:"name"`
	Input        string `json:"input"`
	Failed       string `json:"failed"` // failed if the value is there and is not false, null, 0, "" or "success"
	List         string `json:"list"`
	Model        string `json:"model"`
	InputTokens  string `json:"tokens"`
	OutputTokens string `json:"answer"`
	Cost         string `json:"cost"`
}

// meanings maps each meaning of a line, the value of [Line.As], to its handler.
var meanings = map[string]func(*stream, *Line, json.RawMessage){
	"session": func(s *stream, l *Line, raw json.RawMessage) { s.link(at(raw, l.ID)) },
	"text":    func(s *stream, l *Line, raw json.RawMessage) { s.mapped(s.say, l, raw) },
	"thinking": func(s *stream, l *Line, raw json.RawMessage) {
		s.mapped(s.think, l, raw)
	},
	"tool_start": func(s *stream, l *Line, raw json.RawMessage) {
		s.called(narrate.Call{ID: at(raw, l.ID), Name: at(raw, l.Name)}, value(raw, l.Input))
	},
	"tool_result": func(s *stream, l *Line, raw json.RawMessage) {
		s.n.Answered(at(raw, l.ID), narrate.Answer{Content: narrate.Text(at(raw, l.Text)), Failed: isTrue(raw, l.Failed)})
	},
	"plan": func(s *stream, l *Line, raw json.RawMessage) {
		if entries, ok := narrate.Entries(value(raw, l.List)); ok {
			s.n.Plan(entries)
		}
	},
	"usage":  (*stream).mappedUsage,
	"result": func(s *stream, l *Line, raw json.RawMessage) { s.result(isTrue(raw, l.Failed), at(raw, l.Text)) },
	"ignore": func(*stream, *Line, json.RawMessage) {},
}

func (s *stream) mapped(tell func(lane, id, text string), l *Line, raw json.RawMessage) {
	if l.Whole {
		s.whole(tell, at(raw, l.ID), at(raw, l.Text))
		return
	}
	tell("", at(raw, l.ID), string(narrate.Piece(value(raw, l.Text))))
}

func (s *stream) mappedUsage(l *Line, raw json.RawMessage) {
	u := payload.UsageReported{}
	u.Model = at(raw, l.Model)
	var in, out int64
	if json.Unmarshal(value(raw, l.InputTokens), &in) == nil && in >= 0 {
		u.InputTokens = &in
	}
	if json.Unmarshal(value(raw, l.OutputTokens), &out) == nil && out >= 0 {
		u.OutputTokens = &out
	}
	var cost float64
	if json.Unmarshal(value(raw, l.Cost), &cost) == nil {
		u.CostUSD = &cost
	}
	s.use("", u)
}

// value returns the value at a pointer; nil if the pointer is "" or leads nowhere.
func value(raw json.RawMessage, pointer string) json.RawMessage {
	if pointer == "" {
		return nil
	}
	return narrate.Pointer(raw, pointer)
}

func at(raw json.RawMessage, pointer string) string { return narrate.String(value(raw, pointer)) }

func isTrue(raw json.RawMessage, pointer string) bool {
	switch at(raw, pointer) {
	case "", "false", "0", "success":
		return false
	}
	return true
}

func (m *Mapping) check() error {
	if m == nil || len(m.Lines) == 0 {
		return tapedeck.Errorf(tapedeck.Invalid, "the dialect %q needs a mapping", Mapped).
			WithHint("it says what each line of the program means; see docs/agents/process.md")
	}
	for _, kind := range slices.Sorted(maps.Keys(m.Lines)) {
		l := m.Lines[kind]
		if meanings[l.As] == nil {
			return tapedeck.Errorf(tapedeck.Invalid, "lines of the type %q have the unknown meaning %q", kind, l.As).
				WithHint("as can be %s", strings.Join(slices.Sorted(maps.Keys(meanings)), ", "))
		}
		for _, p := range []string{m.Type, l.ID, l.Text, l.Name, l.Input, l.Failed, l.List, l.Model, l.InputTokens, l.OutputTokens, l.Cost} {
			if p != "" && p[0] != '/' {
				return tapedeck.Errorf(tapedeck.Invalid, "%q is not a JSON pointer", p).WithHint(`a JSON pointer begins with "/"`)
			}
		}
	}
	return nil
}

// dialect returns the dialect that m describes. If no kind of line reports the end,
// the exit status decides whether the run succeeded.
func (m *Mapping) dialect() dialect {
	typ := m.Type
	if typ == "" {
		typ = "/type"
	}
	d := dialect{byExitStatus: true, take: func(s *stream, raw json.RawMessage) bool {
		l, ok := m.Lines[at(raw, typ)]
		if ok {
			meanings[l.As](s, &l, raw)
		}
		return ok
	}}
	for _, l := range m.Lines {
		d.byExitStatus = d.byExitStatus && l.As != "result"
		d.can.Deltas = d.can.Deltas || l.As == "text" && !l.Whole
		d.can.Thinking = d.can.Thinking || l.As == "thinking"
		d.can.Tools = d.can.Tools || l.As == "tool_start"
		d.can.Plan = d.can.Plan || l.As == "plan"
	}
	return d
}
