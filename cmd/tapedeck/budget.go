package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

func newBudget(e *env) *cobra.Command {
	var f budgetFlags
	var none bool
	c := &cobra.Command{
		Use:   "budget SESSION",
		Short: "Show or set what the runs of a session may use",
		Long: `Budget shows what the runs of a session have used, and what they may use together
before they pause and ask. With flags it sets a new budget, which counts from the
beginning of the session; --none removes it. What other commands and screens have
granted is part of the limit that is shown, and ends with a new budget.`,
		Example: `  tapedeck budget ses_01J…
  tapedeck budget ses_01J… --max-tokens 200000 --max-usd 2.50
  tapedeck budget ses_01J… --none`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			amount, err := f.budget()
			switch {
			case err != nil:
				return err
			case none && amount != nil:
				return usageError("--none removes the budget, so no limit goes with it")
			case none:
				amount = &tapedeck.Amount{}
			}
			return e.withExisting(c.Context(), func(conn *connection) error {
				if amount == nil {
					s, err := conn.Session(c.Context(), args[0])
					if err != nil {
						return err
					}
					return e.printDone(s, "%s", spending(&s, time.Now()))
				}
				s, err := conn.Rename(c.Context(), api.Rename{Session: args[0], Budget: amount})
				if err != nil {
					return err
				}
				return e.printDone(s, "%s", spending(&s, time.Now()))
			})
		},
	}
	f.register(c.Flags())
	c.Flags().BoolVar(&none, "none", false, "remove the budget")
	return c
}

// spending says what the runs of a session have used, and of what.
func spending(s *tapedeck.Session, now time.Time) string {
	var spent, limit tapedeck.Amount
	if s.Spent != nil {
		spent = s.Spent.Amount
		if !s.Spent.Since.IsZero() {
			spent.Seconds += max(0, now.Sub(s.Spent.Since).Seconds())
		}
	}
	n := 0.0
	if s.Budget != nil {
		limit, n = s.Budget.Amount, float64(s.Budget.Grants+1)
	}
	clock := func(v float64) string { return time.Duration(v * float64(time.Second)).Round(time.Second).String() }
	whole := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	var out []string
	for _, p := range [...]struct {
		spent, limit float64
		show         func(float64) string
		unit         string
	}{
		{float64(spent.Tokens), float64(limit.Tokens), whole, " tokens"}, {spent.USD, limit.USD, func(v float64) string { return fmt.Sprintf("$%.2f", v) }, ""},
		{float64(spent.Turns), float64(limit.Turns), whole, " model calls"}, {spent.Seconds, limit.Seconds, clock, ""},
	} {
		switch {
		case p.limit > 0:
			out = append(out, p.show(p.spent)+" of "+p.show(p.limit*n)+p.unit)
		case p.spent > 0:
			out = append(out, p.show(p.spent)+p.unit)
		}
	}
	if len(out) == 0 {
		return "nothing used"
	}
	return strings.Join(out, ", ")
}
