package tapedeck

import (
	"math"
	"time"
)

// An Amount is an amount of what runs use. As a limit, 0 is no limit.
type Amount struct {
	Tokens  int64   `json:"tokens,omitempty"`  // those that models have read and written
	USD     float64 `json:"usd,omitempty"`     // the cost in US dollars, as far as it was reported
	Turns   int64   `json:"turns,omitempty"`   // calls of models that reported their usage
	Seconds float64 `json:"seconds,omitempty"` // the time of runs, without the time in which they waited for people
}

// The largest numbers of an [Amount].
const (
	maxWhole   = 1<<53 - 1 // a count that survives in JavaScript
	maxDecimal = 1e12
)

// Check returns an [Invalid] error unless all numbers are finite and at least 0. The
// error names the amount as what.
func (a Amount) Check(what string) error {
	for _, v := range [...]struct {
		name string
		is   float64
		max  float64
	}{{"tokens", float64(a.Tokens), maxWhole}, {"usd", a.USD, maxDecimal}, {"turns", float64(a.Turns), maxWhole}, {"seconds", a.Seconds, maxDecimal}} {
		if !(v.is >= 0 && v.is <= v.max) { // also if it is no number
			return Errorf(Invalid, "%s cannot have %v %s", what, v.is, v.name).WithHint("it takes numbers from 0 to %.0f", v.max)
		}
	}
	return nil
}

// Plus returns the sum of two amounts. It stops at the largest numbers.
func (a Amount) Plus(b Amount) Amount {
	return Amount{
		Tokens: wholeSum(a.Tokens, b.Tokens), USD: decimal(a.USD+b.USD, 1e9),
		Turns: wholeSum(a.Turns, b.Turns), Seconds: decimal(a.Seconds+b.Seconds, 1e3),
	}
}

func wholeSum(a, b int64) int64 { return min(max(a, 0)+min(max(b, 0), maxWhole), maxWhole) }

// decimal rounds, so that a sum has no digits that its parts do not have.
func decimal(v, precision float64) float64 {
	if v >= maxDecimal {
		return maxDecimal
	}
	return math.Round(v*precision) / precision
}

// A Budget is what the runs of a session may use together before people are asked.
type Budget struct {
	Amount
	Grants int64 `json:"grants,omitempty"` // how often people have granted it again: the limit is the budget times 1 + grants
}

// A Spending is what the runs of a session have used together.
type Spending struct {
	Amount
	Since time.Time `json:"since,omitzero"` // since when runs have been working, which Seconds do not have yet; zero if none is open, or one waits for people
}

// MarshalJSON encodes the spending with its time as a stamp.
func (s Spending) MarshalJSON() ([]byte, error) {
	return asGiven(struct {
		Amount
		Since stamp `json:"since,omitzero"`
	}{s.Amount, stamp(s.Since)})
}

// spend adds to what the runs have used.
func (s *Session) spend(a Amount) {
	var next Spending // copies of the entry share the old one
	if s.Spent != nil {
		next = *s.Spent
	}
	next.Amount = next.Plus(a)
	s.Spent = &next
}

// applyUsage folds the usage of a call of a model.
func (s *Session) applyUsage(e *Event) {
	var d struct {
		InputTokens  int64   `json:"inputTokens"`
		OutputTokens int64   `json:"outputTokens"`
		TotalTokens  *int64  `json:"totalTokens"`
		CostUSD      float64 `json:"costUsd"`
	}
	if !e.Unpack(&d) {
		return
	}
	tokens := wholeSum(d.InputTokens, d.OutputTokens)
	if d.TotalTokens != nil {
		tokens = *d.TotalTokens
	}
	s.spend(Amount{Tokens: max(tokens, 0), USD: max(d.CostUSD, 0), Turns: 1})
}

// applyTime adds the time of the runs. It is called after each event. Runs that work
// side by side count once.
func (s *Session) applyTime(e *Event) {
	working := s.Status == StatusRunning
	since := time.Time{}
	if s.Spent != nil {
		since = s.Spent.Since
	}
	switch {
	case working && since.IsZero():
		s.spend(Amount{})
		s.Spent.Since = e.Time
	case !working && !since.IsZero():
		s.spend(Amount{Seconds: max(0, e.Time.Sub(since).Seconds())})
		if s.Spent.Since = (time.Time{}); *s.Spent == (Spending{}) {
			s.Spent = nil
		}
	}
}

// applyBudget folds a new budget of the session. An empty one is none.
func (s *Session) applyBudget(b *Budget) {
	switch {
	case b == nil:
	case b.Amount == Amount{} || b.Grants < 0 || b.Check("the budget") != nil:
		s.Budget = nil
	default:
		s.Budget = b
	}
}
