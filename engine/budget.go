package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// codeBudget is the code of a run that ended because its budget was used up.
const codeBudget = "budget"

// Options of the question of a run whose budget is used up.
const (
	budgetContinue = "continue"
	budgetStop     = "stop"
)

// checkBudget checks the budget that a task sets for its run.
func checkBudget(t *api.Task) error {
	if t.Budget == nil {
		return nil
	}
	if err := t.Budget.Check("the budget"); err != nil {
		return err
	}
	switch {
	case *t.Budget == (tapedeck.Amount{}):
		return tapedeck.Errorf(tapedeck.Invalid, "the budget has no limit above 0").
			WithHint("it takes tokens, usd, turns and seconds; leave out what has no limit")
	case t.When == api.WhenSteer:
		return tapedeck.Errorf(tapedeck.Invalid, "a message for an open run has no budget of its own").
			WithHint("leave it out, or send the task with when=queue")
	}
	return nil
}

// budgetOf returns the budget of a run of an agent: that of the agent, with the limits
// that the task sets. Capped refuses those that are above the agent's.
func budgetOf(agent *Agent, t *api.Task) (tapedeck.Amount, error) {
	out, set := agent.Budget, t.Budget
	if set == nil {
		return out, nil
	}
	if isDurable(agent) {
		return out, tapedeck.Errorf(tapedeck.Invalid, "the agent %s is a workflow, which has no budget of its own", agent.Name).
			WithHint("the agents of its tasks have one")
	}
	refuse := func(name string, given, limit float64) error {
		if t.Capped && limit > 0 && given > limit {
			return tapedeck.Errorf(tapedeck.Forbidden, "a run of %s may use %v %s at most, not %v", agent.Name, limit, name, given).
				WithHint("only an admin may set more")
		}
		return nil
	}
	for _, err := range [...]error{
		refuse("tokens", float64(set.Tokens), float64(out.Tokens)), refuse("usd", set.USD, out.USD),
		refuse("turns", float64(set.Turns), float64(out.Turns)), refuse("seconds", set.Seconds, out.Seconds),
	} {
		if err != nil {
			return out, err
		}
	}
	out.Tokens, out.USD = cmp.Or(set.Tokens, out.Tokens), cmp.Or(set.USD, out.USD)
	out.Turns, out.Seconds = cmp.Or(set.Turns, out.Turns), cmp.Or(set.Seconds, out.Seconds)
	return out, nil
}

// proceed is [tapedeck.Invocation.Proceed] of a run. If a budget is used up, it asks
// people, and stops the run if they do not want it to continue.
func (r *run) proceed(ctx context.Context) error {
	if r.durable {
		return nil
	}
	if list, err := r.accounts(ctx); err != nil || len(list) == 0 {
		return err
	}
	if err := r.stored(ctx); err != nil { // so that all usage is counted
		return err
	}
	r.pausing.Lock() // so that people are asked once
	defer r.pausing.Unlock()
	for {
		a, err := r.usedUp(ctx)
		if a == nil || err != nil {
			return err
		}
		if err := r.pause(ctx, a); err != nil {
			return err
		}
	}
}

// pause asks people whether a run may use more than one of its budgets.
func (r *run) pause(ctx context.Context, a *account) error {
	used, more := a.words()
	if r.agent.StopAtLimit {
		return r.stopOver(a, used, "")
	}
	begin := r.engine.options.Now()
	asking, stop := context.WithCancel(ctx)
	defer stop()
	go r.untilGranted(asking, a, stop)
	answer, err := r.askScoped(asking, tapedeck.Question{
		ID: tapedeck.NewID("per_"), Message: fmt.Sprintf("%s %s. Continue for %s?", capital(a.who()), used, more),
		Options: []tapedeck.PermissionOption{
			{ID: budgetContinue, Name: "Continue for " + more, Kind: "allow_once"},
			{ID: budgetStop, Name: "Stop", Kind: "reject_once"},
		},
	}, a.scope)
	r.meter.wait(r.engine.options.Now().Sub(begin))
	switch {
	case err != nil:
		return err
	case answer.Option == budgetContinue:
		return r.grant(ctx, a)
	case ctx.Err() != nil:
		return ctx.Err()
	case answer.Option == "" && asking.Err() != nil && r.ctx.Err() == nil:
		return nil // granted elsewhere
	}
	return r.stopOver(a, used, ", and nobody wanted it to continue")
}

// stopOver stops a run whose budget is used up.
func (r *run) stopOver(a *account, used, why string) error {
	r.stop(&overBudget{a.who() + " " + used + why})
	return context.Cause(r.ctx)
}

// stopAtLimit stops a run that has used up a budget, if the configuration of its agent says
// so. It is called after each append of the agent, which may call its model without asking.
func (r *run) stopAtLimit(events []tapedeck.Event) {
	if !r.agent.StopAtLimit || r.durable {
		return
	}
	a := new(r.meter.account(r.budget, r.engine.options.Now()))
	if !a.over() {
		if !slices.ContainsFunc(events, func(ev tapedeck.Event) bool { return ev.Type == tapedeck.UsageReported }) {
			return
		}
		if a, _ = r.usedUp(r.ctx); a == nil { // what cannot be read now is read after the next call
			return
		}
	}
	used, _ := a.words()
	_ = r.stopOver(a, used, "")
}

// mayContinue reports why a sender may not grant more of a budget. scope is whose budget it
// is, and widest the widest one that the sender may grant: "" for all.
func mayContinue(scope, widest string) error {
	switch {
	case scope == "" || scope == scopeRun || widest == "" || scope == widest:
		return nil
	case scope == scopeSession:
		return tapedeck.Errorf(tapedeck.Forbidden, "only the owner of the session and an admin may grant more than its budget")
	}
	return tapedeck.Errorf(tapedeck.Forbidden, "only an admin may grant more than the budget of an owner")
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
