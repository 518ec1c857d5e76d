package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/tapedeck/tapedeck"
)

// A budgetFlags is what a run may use, as the flags say it.
type budgetFlags struct {
	amount tapedeck.Amount
	time   time.Duration
	flags  *pflag.FlagSet
}

// budgetNames are the flags of a budget.
var budgetNames = [...]string{"max-tokens", "max-usd", "max-turns", "max-time"}

func (b *budgetFlags) register(fl *pflag.FlagSet) {
	b.flags = fl
	fl.Int64Var(&b.amount.Tokens, budgetNames[0], 0, "pause and ask after this many tokens (default: no limit, or for run as configured for the agent)")
	fl.Float64Var(&b.amount.USD, budgetNames[1], 0, "pause and ask after this cost in US dollars")
	fl.Int64Var(&b.amount.Turns, budgetNames[2], 0, "pause and ask after this many calls of the model")
	fl.DurationVar(&b.time, budgetNames[3], 0, "pause and ask after this time, such as 30m")
}

// budget returns the budget that the flags set, nil if none is set.
func (b *budgetFlags) budget() (*tapedeck.Amount, error) {
	given := false
	for _, name := range budgetNames {
		f := b.flags.Lookup(name)
		if given = given || f.Changed; f.Changed && f.Value.String() == "0" {
			return nil, usageError("--%s must be above 0; leave it out for no new limit", name)
		}
	}
	if !given {
		return nil, nil
	}
	b.amount.Seconds = b.time.Seconds()
	if err := b.amount.Check("the budget"); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return &b.amount, nil
}
