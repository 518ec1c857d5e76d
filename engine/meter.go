package engine

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A meter measures what a run uses of its own budget. The counts come from the events
// that are in the log, so a rewind gives nothing back.
type meter struct {
	mu     sync.Mutex
	since  time.Time // when the time began to count
	spent  tapedeck.Amount
	grants int64 // how often people have granted the budget again
}

// add counts a usage.reported.
func (m *meter) add(ev *tapedeck.Event) {
	var fold tapedeck.Session // the same count as that of the session
	if fold.Apply(ev); fold.Spent == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent = m.spent.Plus(fold.Spent.Amount)
}

// begin starts the time of a run.
func (m *meter) begin(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.since.IsZero() {
		m.since = now
	}
}

// account returns the state of a budget at a time.
func (m *meter) account(budget tapedeck.Amount, now time.Time) account {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := account{scope: scopeRun, budget: budget, spent: m.spent, grants: m.grants}
	if !m.since.IsZero() {
		a.spent = a.spent.Plus(tapedeck.Amount{Seconds: max(0, now.Sub(m.since).Seconds())})
	}
	return a
}

// grant sets how often the budget was granted again.
func (m *meter) grant(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grants = max(m.grants, n)
}

// wait leaves out a time in which the run has waited for people.
func (m *meter) wait(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since = m.since.Add(d)
}

// An account is the state of one budget.
type account struct {
	scope  string          // whose budget it is
	owner  string          // of all sessions; with scopeOwner
	period string          // of the owner's budget
	budget tapedeck.Amount // what is granted at once
	grants int64           // how often it was granted again
	spent  tapedeck.Amount
}

// who returns the beginning of a sentence that says what was used.
func (a *account) who() string {
	if a.scope == scopeOwner {
		return "the sessions of " + a.owner + " have, in " + a.period + " (UTC), used"
	}
	return "the " + a.scope + " has used"
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// limit returns what may be spent.
func (a *account) limit() tapedeck.Amount {
	n := a.grants + 1
	return tapedeck.Amount{
		Tokens: times(a.budget.Tokens, n), USD: a.budget.USD * float64(n),
		Turns: times(a.budget.Turns, n), Seconds: a.budget.Seconds * float64(n),
	}
}

// times returns n times a number of an amount, or the largest one.
func times(v, n int64) int64 {
	if v > 0 && n > maxTokens/v {
		return maxTokens
	}
	return v * n
}

// over reports whether the budget is used up.
func (a *account) over() bool { return usesUp(a.spent, a.limit()) }

// usesUp reports whether an amount uses up a limit: whether one of its numbers has reached
// that of the limit.
func usesUp(a, limit tapedeck.Amount) bool {
	return limit.Tokens > 0 && a.Tokens >= limit.Tokens || limit.USD > 0 && a.USD >= limit.USD ||
		limit.Turns > 0 && a.Turns >= limit.Turns || limit.Seconds > 0 && a.Seconds >= limit.Seconds
}

// granted returns the number of grants after one more. It is enough of them to continue:
// a budget may have been set below what was spent already.
func (a *account) granted() int64 {
	n := a.grants + 1
	for _, v := range a.parts() {
		if v.of > 0 && v.spent >= v.of*float64(n+1) {
			n = min(int64(v.spent/v.of), maxTokens)
		}
	}
	return n
}

// A part is one number of an account.
type part struct {
	spent, of float64
	show      func(float64) string
	unit      string // after the number, for one; "" if show has it
}

// units returns the unit of n.
func (p *part) units(n float64) string {
	switch {
	case p.unit == "":
		return ""
	case n == 1:
		return " " + p.unit
	}
	return " " + p.unit + "s"
}

func (a *account) parts() [4]part {
	whole := func(v float64) string { return grouped(int64(v)) }
	return [...]part{
		{float64(a.spent.Tokens), float64(a.budget.Tokens), whole, "token"}, {a.spent.USD, a.budget.USD, dollars, ""},
		{float64(a.spent.Turns), float64(a.budget.Turns), whole, "model call"}, {a.spent.Seconds, a.budget.Seconds, clock, ""},
	}
}

// words returns what is used up of a budget, and what one more budget is.
func (a *account) words() (used, more string) {
	for _, v := range a.parts() {
		limit := v.of * float64(a.grants+1)
		if v.of > 0 && v.spent >= limit {
			next := v.of * float64(a.granted()-a.grants)
			return v.show(v.spent) + " of " + v.show(limit) + v.units(limit), v.show(next) + " more" + v.units(next)
		}
	}
	return "", ""
}

func dollars(usd float64) string { return "$" + strconv.FormatFloat(usd, 'f', 2, 64) }

// clock returns a time in words, rounded to seconds.
func clock(seconds float64) string {
	return time.Duration(min(seconds, maxClock) * float64(time.Second)).Round(time.Second).String()
}

// maxClock is the longest time that is shown, in seconds: about 100 years.
const maxClock = 3e9

// grouped returns a number with a comma after each three digits.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}
