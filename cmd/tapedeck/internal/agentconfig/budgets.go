package agentconfig

import (
	"maps"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/deck"
)

// budgets are what the runs in all sessions of an owner may use.
type budgets struct {
	ownerBudget
	Owner map[string]ownerBudget `toml:"owner"` // instead of the above, for some owners
}

// An ownerBudget is what the runs of one owner may use; nil is no limit.
type ownerBudget struct {
	Day   *budget `toml:"day"`
	Month *budget `toml:"month"`
}

func (b *budgets) check() error {
	if err := b.ownerBudget.check("owners"); err != nil {
		return within(err, "budgets")
	}
	for _, name := range slices.Sorted(maps.Keys(b.Owner)) {
		if name == "" || tapedeck.CheckName("the owner", name) != nil {
			return within(tapedeck.Errorf(tapedeck.Invalid, "a budget is for an owner whose name is no text of 1 to 512 bytes"), "budgets", "owner", name)
		}
		if err := new(b.Owner[name]).check("the owner " + name); err != nil {
			return within(err, "budgets", "owner", name)
		}
	}
	return nil
}

func (b *ownerBudget) check(whose string) error {
	for period, b := range map[string]*budget{"day": b.Day, "month": b.Month} {
		what := "the budget of " + whose + " for a " + period
		if err := b.check(what); err != nil {
			return within(err, period)
		}
		if b != nil && b.AtLimit != "" {
			return within(tapedeck.Errorf(tapedeck.Invalid, "%s has at_limit, which is a setting of agents", what), period)
		}
	}
	return nil
}

func (b *ownerBudget) amounts() (out deck.OwnerBudget) {
	if b.Day != nil {
		out.Day = b.Day.amount()
	}
	if b.Month != nil {
		out.Month = b.Month.amount()
	}
	return out
}

// Budgets returns the budgets of the owners of sessions.
func (c *Config) Budgets() deck.OwnerBudgets {
	out := deck.OwnerBudgets{OwnerBudget: c.budgets.amounts(), Owners: map[string]deck.OwnerBudget{}}
	for name, b := range c.budgets.Owner {
		out.Owners[name] = b.amounts()
	}
	return out
}
