package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

// maxDepth bounds how deep steps nest.
const maxDepth = 16

// A step is one line of a script. It has exactly one of the members that say
// what to do; the others refine it.
type step struct {
	Say    *string         `json:"say"`
	Think  *string         `json:"think"`
	Tool   *string         `json:"tool"`
	Plan   []entry         `json:"plan"`
	State  json.RawMessage `json:"state"`
	Patch  json.RawMessage `json:"patch"`
	Usage  json.RawMessage `json:"usage"`
	Error  *string         `json:"error"`
	Wait   *string         `json:"wait"`
	Sleep  *int            `json:"sleep"`
	Repeat *int            `json:"repeat"`
	Step   *string         `json:"step"`
	Turn   *bool           `json:"turn"`
	Event  *string         `json:"event"`
	Set    *settings       `json:"set"`

	Rate   float64         `json:"rate"`   // say, think, tool: words a second
	MS     int             `json:"ms"`     // tool: how long it works
	Args   json.RawMessage `json:"args"`   // tool
	Result json.RawMessage `json:"result"` // tool; absent for a call that gets no answer
	Failed bool            `json:"failed"` // tool: the result tells of a failure
	Shows  string          `json:"shows"`  // tool: what its terminal shows while it works
	Agent  string          `json:"agent"`  // tool: the sub-agent that it starts, which plays steps
	Kind   tapedeck.Kind   `json:"kind"`   // error
	Data   json.RawMessage `json:"data"`   // event

	Steps []json.RawMessage `json:"steps"` // repeat, step, the agent of a tool

	do    func(*player, *step) bool // plays it; resolved from the members above
	steps []step                    // Steps, parsed
}

// An entry is a line of a plan.
type entry struct {
	Content  string `json:"content"`
	Status   string `json:"status"`
	Priority string `json:"priority,omitempty"`
}

// settings hold for all steps that follow.
type settings struct {
	Rate   *float64 `json:"rate"`
	Jitter *float64 `json:"jitter"`
}

// parse reads a script of one step a line. Empty lines and lines that begin with
// # are left out.
func parse(name string, text []byte) ([]step, error) {
	var steps []step
	for line := 1; len(text) > 0; line++ {
		var b []byte
		b, text, _ = bytes.Cut(text, []byte("\n"))
		if b = bytes.TrimSpace(b); len(b) == 0 || b[0] == '#' {
			continue
		}
		s, err := parseStep(b, fmt.Sprintf("%s, line %d", name, line), 1)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// parseArray reads a script that is a JSON array of steps.
func parseArray(text json.RawMessage) ([]step, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the steps are not an array of steps")
	}
	return parseAll(raw, "step ", 1)
}

func parseAll(raw []json.RawMessage, where string, depth int) ([]step, error) {
	steps := make([]step, 0, len(raw))
	for i, b := range raw {
		s, err := parseStep(b, fmt.Sprintf("%s%d", where, i+1), depth)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// parseStep reads one step; where says which, for errors.
func parseStep(b []byte, where string, depth int) (step, error) {
	var s step
	err := strict(b, &s)
	if err == nil {
		err = s.resolve()
	}
	if err != nil {
		return s, tapedeck.Errorf(tapedeck.Invalid, "%s: %w", where, err)
	}
	if len(s.Steps) > 0 && depth == maxDepth {
		return s, tapedeck.Errorf(tapedeck.Invalid, "%s: steps nest deeper than %d", where, maxDepth)
	}
	s.steps, err = parseAll(s.Steps, where+", step ", depth+1)
	return s, err
}

// resolve finds what the step does and checks what belongs to it.
func (s *step) resolve() error {
	n := 0
	for _, a := range []struct {
		set bool
		do  func(*player, *step) bool
	}{
		{s.Say != nil, (*player).say}, {s.Think != nil, (*player).think}, {s.Tool != nil, (*player).tool},
		{s.Plan != nil, (*player).plan}, {s.State != nil, (*player).state}, {s.Patch != nil, (*player).patch},
		{s.Usage != nil, (*player).usage}, {s.Error != nil, (*player).fail}, {s.Wait != nil, (*player).wait},
		{s.Sleep != nil, (*player).sleep}, {s.Repeat != nil, (*player).repeat}, {s.Step != nil, (*player).step},
		{s.Turn != nil, (*player).nextTurn}, {s.Event != nil, (*player).event}, {s.Set != nil, (*player).set},
	} {
		if a.set {
			n++
			s.do = a.do
		}
	}
	switch {
	case n == 0:
		return fmt.Errorf("the step says nothing to do")
	case n > 1:
		return fmt.Errorf("the step says %d things to do; one step does one", n)
	}
	return s.check()
}

func (s *step) check() error {
	switch {
	case s.Wait != nil && *s.Wait != "cancel":
		return fmt.Errorf(`a step can wait for "cancel" only, not %q`, *s.Wait)
	case s.MS < 0, s.Sleep != nil && *s.Sleep < 0, s.Rate < 0, s.Repeat != nil && *s.Repeat < 0:
		return fmt.Errorf("a number is negative")
	case s.Turn != nil && !*s.Turn:
		return fmt.Errorf(`"turn" can only be true`)
	case s.Tool != nil && *s.Tool == "":
		return fmt.Errorf("the tool has no name")
	case s.Set != nil && s.Set.Rate != nil && *s.Set.Rate <= 0:
		return fmt.Errorf("the rate must be above 0")
	case s.Set != nil && s.Set.Jitter != nil && (*s.Set.Jitter < 0 || *s.Set.Jitter > 1):
		return fmt.Errorf("the jitter must be from 0 to 1")
	case s.Agent != "" && s.Tool == nil:
		return fmt.Errorf(`an "agent" belongs to a "tool", which starts it`)
	case (s.Repeat != nil || s.Step != nil || s.Agent != "") != (len(s.Steps) > 0):
		return fmt.Errorf(`"steps" belong to "repeat", "step" and the "agent" of a tool, and these need them`)
	}
	return nil
}

// strict decodes one JSON value that has no members unknown to v. Its errors are
// in words of who wrote the JSON.
func strict(b []byte, v any) error {
	if !utf8.Valid(b) {
		return fmt.Errorf("it is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return nil
		}
		return fmt.Errorf("more follows after the JSON value")
	}
	var t *json.UnmarshalTypeError
	switch {
	case errors.As(err, &t):
		return fmt.Errorf("%q must not be a JSON %s", t.Field, t.Value)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the JSON ends early")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}
