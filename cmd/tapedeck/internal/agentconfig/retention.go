package agentconfig

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/deck"
)

// retention says which sessions are deleted.
type retention struct {
	keepRule
	Label string              `toml:"keep_label"` // "" for the default
	Owner map[string]keepRule `toml:"owner"`      // instead of the above, for some owners
}

// A keepRule says how long sessions are kept, and how many; nil is no limit.
type keepRule struct {
	Age      *string `toml:"max_age"`
	Sessions *int    `toml:"max_sessions"`
}

// Limits of the settings.
const (
	minAge = time.Minute
	maxAge = 36500 * 24 * time.Hour
)

func (r *retention) check() error {
	if _, err := r.rule("retention"); err != nil {
		return within(err, "retention")
	}
	if err := tapedeck.CheckName("the label", r.Label); r.Label != "" && err != nil {
		return within(tapedeck.Errorf(tapedeck.Invalid, "keep_label of retention is no name of a label"), "retention", "keep_label")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Owner)) {
		if name == "" || tapedeck.CheckName("the owner", name) != nil {
			return within(tapedeck.Errorf(tapedeck.Invalid, "a retention is for an owner whose name is no text of 1 to 512 bytes"), "retention", "owner", name)
		}
		if _, err := new(r.Owner[name]).rule("the retention of the owner " + name); err != nil {
			return within(err, "retention", "owner", name)
		}
	}
	return nil
}

// rule returns a rule, which an error names as what.
func (k *keepRule) rule(what string) (out deck.RetentionRule, err error) {
	if k.Sessions != nil {
		if out.Sessions = *k.Sessions; out.Sessions < 1 {
			return out, within(tapedeck.Errorf(tapedeck.Invalid, "max_sessions of %s is not above 0", what).WithHint("leave it out for no limit"), "max_sessions")
		}
	}
	if k.Age == nil {
		return out, nil
	}
	age, err := time.ParseDuration(*k.Age)
	if n, ok := strings.CutSuffix(*k.Age, "d"); ok {
		var days int
		days, err = strconv.Atoi(n)
		age = time.Duration(min(max(days, 0), int(maxAge/(24*time.Hour))+1)) * 24 * time.Hour
	}
	if err != nil || age < minAge || age > maxAge {
		return out, within(tapedeck.Errorf(tapedeck.Invalid, "max_age of %s is no time from a minute to a hundred years", what).
			WithHint(`write it as "90d" or "12h"; leave it out for no limit`), "max_age")
	}
	out.Age = age
	return out, nil
}

// Retention returns which sessions are deleted.
func (c *Config) Retention() deck.Retention {
	all, _ := c.retention.rule("") // parse has checked it
	out := deck.Retention{Rule: all, Keep: c.retention.Label, Owners: map[string]deck.RetentionRule{}}
	for name, k := range c.retention.Owner {
		out.Owners[name], _ = k.rule("")
	}
	return out
}
