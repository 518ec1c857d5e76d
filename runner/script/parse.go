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

// maxDepth is the limit of the nesting of steps.
const maxDepth = 16

// A step is one line of a script. It has exactly one of the members in the first group,
// which select the action. The members in the second group refine it.
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

	Rate   float64         `json:"rate"`   // say, think, tool: words per second
	MS     int             `json:"ms"`     // tool: how long it works, in milliseconds
	Args   json.RawMessage `json:"args"`   // tool
	Result json.RawMessage `json:"result"` // tool: the result; absent for a call without an answer
	Failed bool            `json:"failed"` // tool: whether the call failed
	Shows  string          `json:"shows"`  // tool: the output of its terminal while it works
	Agent  string          `json:"agent"`  // tool: the name of a sub-agent that plays Steps
	Kind   tapedeck.Kind   `json:"kind"`   // error
	Data   json.RawMessage `json:"data"`   // event

	Steps []json.RawMessage `json:"steps"` // repeat, step, agent: the nested steps

	do    func(*player, *step) bool // plays the step; resolved from the first group
	steps []step                    // Steps, decoded
}

// An entry is a line of a plan.
type entry struct {
	Content  string `json:"content"`
	Status   string `json:"status"`
	Priority string `json:"priority,omitempty"`
}

// settings apply to all following steps.
type settings struct {
	Rate   *float64 `json:"rate"`
	Jitter *float64 `json:"jitter"`
}

// parse decodes a script with one step per line. It ignores empty lines and lines that
// begin with "#".
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

// parseArray decodes a script that is a JSON array of steps.
func parseArray(text json.RawMessage) ([]step, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, `"steps" is not an array of steps`)
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

// parseStep decodes one step. where names the step in errors.
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

// resolve sets the action of the step and checks its members.
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
		return fmt.Errorf("the step has no action")
	case n > 1:
		return fmt.Errorf("the step has %d actions, but a step has exactly one", n)
	}
	return s.check()
}

func (s *step) check() error {
	switch {
	case s.Wait != nil && *s.Wait != "cancel":
		return fmt.Errorf(`a step can wait only for "cancel", not for %q`, *s.Wait)
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
		return fmt.Errorf(`"agent" needs a "tool", which starts the sub-agent`)
	case (s.Repeat != nil || s.Step != nil || s.Agent != "") != (len(s.Steps) > 0):
		return fmt.Errorf(`"repeat", "step" and "agent" need "steps", and no other step can have them`)
	}
	return nil
}

// strict decodes one JSON value and refuses members that v does not have. Its errors are
// for the author of the JSON.
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
		return fmt.Errorf("there is more after the JSON value")
	}
	var t *json.UnmarshalTypeError
	switch {
	case errors.As(err, &t):
		return fmt.Errorf("%q must not be a JSON %s", t.Field, t.Value)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the JSON is not complete")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}
