package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A Budget is what a run may use before it asks people whether to continue. 0 is no
// limit.
type Budget struct {
	Tokens int64         // those that the model has read and written
	USD    float64       // the cost that the runner reports
	Turns  int           // calls of the model that report their usage
	Time   time.Duration // without the time in which the run has asked for more
}

// codeBudget is the code of a run that ended because its budget was used up.
const codeBudget = "budget"

// Options of the question of a run whose budget is used up.
const (
	budgetContinue = "continue"
	budgetStop     = "stop"
)

// A meter measures what a run uses of its budget. The counts come from the events
// that are in the log, so a rewind gives nothing back.
type meter struct {
	asking sync.Mutex // held while people are asked, so that they are asked once

	mu     sync.Mutex
	since  time.Time // when the time began to count
	tokens int64
	usd    float64
	turns  int
	grants int // how often people have granted the budget again
}

// add counts a usage.reported.
func (m *meter) add(ev *tapedeck.Event) {
	var d payload.UsageReported
	if json.Unmarshal(ev.Data, &d) != nil {
		return // the log refuses it
	}
	n := d.TotalTokens
	if n == nil {
		n = plus(d.InputTokens, d.OutputTokens)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns++
	if n != nil && *n > 0 {
		m.tokens = min(m.tokens+min(*n, maxTokens), maxTokens)
	}
	if d.CostUSD != nil && *d.CostUSD > 0 {
		m.usd += *d.CostUSD
	}
}

// begin starts the time of a run.
func (m *meter) begin(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.since.IsZero() {
		m.since = now
	}
}

// used returns what is used up of a budget, in words: what was used, and what one more
// budget is. It reports false if nothing is used up.
func (m *meter) used(b *Budget, now time.Time) (used, more string, over bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.grants + 1
	switch took := now.Sub(m.since); {
	case b.Tokens > 0 && m.tokens >= b.Tokens*int64(n):
		return grouped(m.tokens) + " of " + grouped(b.Tokens*int64(n)) + " tokens", grouped(b.Tokens), true
	case b.USD > 0 && m.usd >= b.USD*float64(n):
		return dollars(m.usd) + " of " + dollars(b.USD*float64(n)), dollars(b.USD), true
	case b.Turns > 0 && m.turns >= b.Turns*n:
		return fmt.Sprintf("%d of %d calls of its model", m.turns, b.Turns*n), strconv.Itoa(b.Turns), true
	case b.Time > 0 && !m.since.IsZero() && took >= b.Time*time.Duration(n):
		return took.Round(time.Second).String() + " of " + (b.Time * time.Duration(n)).String(), b.Time.String(), true
	}
	return "", "", false
}

// grant grants the budget again. waited does not count as time of the run.
func (m *meter) grant(waited time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grants++
	m.since = m.since.Add(waited)
}

// proceed is [tapedeck.Invocation.Proceed] of a run. If the budget of the run is used
// up, it asks people, and stops the run if they do not want it to continue.
func (r *run) proceed(ctx context.Context) error {
	b := &r.agent.Budget
	if *b == (Budget{}) || r.durable {
		return nil
	}
	r.meter.begin(r.engine.options.Now())
	if err := r.stored(ctx); err != nil { // so that all usage is counted
		return err
	}
	r.meter.asking.Lock()
	defer r.meter.asking.Unlock()
	for {
		begin := r.engine.options.Now()
		used, more, over := r.meter.used(b, begin)
		if !over {
			return nil
		}
		answer, err := r.ask(ctx, tapedeck.Question{
			ID: tapedeck.NewID("per_"), Message: fmt.Sprintf("The run has used %s. Continue for %s more?", used, more),
			Options: []tapedeck.PermissionOption{
				{ID: budgetContinue, Name: "Continue for " + more + " more", Kind: "allow_once"},
				{ID: budgetStop, Name: "Stop", Kind: "reject_once"},
			},
		})
		switch {
		case err != nil:
			return err
		case answer.Option == budgetContinue:
			r.meter.grant(r.engine.options.Now().Sub(begin))
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			r.stop(&overBudget{"the run has used " + used + ", and nobody wanted it to continue"})
			return context.Cause(r.ctx)
		}
	}
}

// askInBudget is [tapedeck.Invocation.Ask] of a run: an agent that knows no budget
// pauses at its next question.
func (r *run) askInBudget(ctx context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
	if err := r.proceed(ctx); err != nil {
		return tapedeck.Choice{ID: q.ID, Outcome: outcomeCancelled}, err
	}
	return r.ask(ctx, q)
}

// An overBudget is the cause with which a run is stopped whose budget is used up.
type overBudget struct{ message string }

func (o *overBudget) Error() string { return o.message }

func dollars(usd float64) string { return "$" + strconv.FormatFloat(usd, 'f', 2, 64) }

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
