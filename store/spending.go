package store

import (
	"time"

	"github.com/tapedeck/tapedeck"
)

// MaxCount is the largest count of tokens and calls in a [Spending]. It survives in
// JavaScript.
const MaxCount = 1<<53 - 1

// A Spending is what the runs in all sessions of an owner have used in a period. Sessions
// that were deleted since count, too.
type Spending struct {
	tapedeck.Amount
	Grants int64 // how often the budget of the period was granted again
}

// A Charge is what an append adds to the spending of the owner of its session.
type Charge struct {
	Owner   string
	Periods [2]string
	tapedeck.Amount
}

// Day and Month return the name of the period of a time, such as 2026-11-24 and 2026-11.
// Periods begin at midnight UTC.
func Day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// Month is like [Day].
func Month(t time.Time) string { return t.UTC().Format("2006-01") }

// ChargeOf returns what an append adds, which has changed the entry of its session from
// before to after. It reports false for nothing. Sessions without an owner charge nobody.
func ChargeOf(a *tapedeck.Append, before *tapedeck.Spending, after *tapedeck.Session, now time.Time) (Charge, bool) {
	if after.Spent == before || after.Spent == nil || after.Owner == "" || a.Elsewhere {
		return Charge{}, false
	}
	c := Charge{Owner: after.Owner, Periods: [...]string{Day(now), Month(now)}, Amount: after.Spent.Amount}
	if before != nil {
		c.Tokens -= before.Tokens
		c.USD -= before.USD
		c.Turns -= before.Turns
		c.Seconds -= before.Seconds
	}
	return c, c.Amount != tapedeck.Amount{}
}
