package llm

import (
	"path"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

// A Decision says whether a tool call is executed.
type Decision string

// The decisions.
const (
	Allow Decision = "allow"
	Ask   Decision = "ask" // ask people each time, until they allow it for the rest of the run
	Deny  Decision = "deny"
)

// A Rule decides about the tools whose names match a pattern.
type Rule struct {
	Tool     string // a pattern for [path.Match], such as "github__*"
	Decision Decision
}

// A Policy decides about tools. The first rule that matches counts. If no rule matches,
// read-only tools are allowed, and people are asked about all others.
type Policy []Rule

func (p Policy) check() error {
	for _, r := range p {
		if _, err := path.Match(r.Tool, ""); err != nil {
			return tapedeck.Errorf(tapedeck.Unavailable, "the policy has %q, which is not a valid pattern", r.Tool)
		}
		if r.Decision != Allow && r.Decision != Ask && r.Decision != Deny {
			return tapedeck.Errorf(tapedeck.Unavailable, "the policy has the decision %q for %s", r.Decision, r.Tool).
				WithHint("a decision is allow, ask or deny")
		}
	}
	return nil
}

func (p Policy) decide(t *tool.Tool) Decision {
	for _, r := range p {
		if ok, _ := path.Match(r.Tool, t.Name); ok { // the pattern was checked
			return r.Decision
		}
	}
	if t.ReadOnly {
		return Allow
	}
	return Ask
}
