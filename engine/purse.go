package engine

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/wallclock"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/store"
)

// Whose budget an [account] is of.
const (
	scopeRun     = "run"
	scopeSession = "session"
	scopeOwner   = "owner"
)

// Spending is what the runs in all sessions of owners have used. The stores have one; it
// must be that of the store of the engine.
type Spending interface {
	// Of returns what the runs of an owner have used in a period, see [store.Day].
	Of(ctx context.Context, owner, period string) (store.Spending, error)

	// Grant notes that the budget of a period was granted again n times in all.
	Grant(ctx context.Context, owner, period string, n int64) error
}

// An OwnerBudget is what the runs in all sessions of an owner may use together before
// people are asked. The periods begin at midnight UTC. The zero value is no limit.
type OwnerBudget struct {
	Day, Month tapedeck.Amount
}

// OwnerBudgets are the budgets of the owners of sessions. A session without an owner has
// none.
type OwnerBudgets struct {
	OwnerBudget                        // of every owner that has none below
	Owners      map[string]OwnerBudget // by owner; nothing of the above holds for them
}

func (b *OwnerBudgets) of(owner string) OwnerBudget {
	if own, ok := b.Owners[owner]; ok {
		return own
	}
	return b.OwnerBudget
}

// accounts returns the state of all budgets of a run.
func (r *run) accounts(ctx context.Context) (list []account, err error) {
	ctx = context.WithoutCancel(ctx) // a run without budgets begins also if it is to stop
	e := r.engine
	now := e.options.Now()
	if r.budget != (tapedeck.Amount{}) {
		list = append(list, r.meter.account(r.budget, now))
	}
	s, err := e.session(ctx, r.in.Session)
	if err != nil {
		return nil, err
	}
	var running tapedeck.Amount // what the entry does not have yet
	if s.Spent != nil && !s.Spent.Since.IsZero() {
		running.Seconds = max(0, now.Sub(s.Spent.Since).Seconds())
	}
	if b := s.Budget; b != nil {
		a := account{scope: scopeSession, budget: b.Amount, grants: b.Grants, spent: running}
		if s.Spent != nil {
			a.spent = running.Plus(s.Spent.Amount)
		}
		list = append(list, a)
	}
	own := e.options.Budgets.of(s.Owner)
	if e.options.Spending == nil || s.Owner == "" {
		own = OwnerBudget{}
	}
	for _, p := range [...]struct {
		period string
		budget tapedeck.Amount
	}{{store.Day(now), own.Day}, {store.Month(now), own.Month}} {
		if p.budget == (tapedeck.Amount{}) {
			continue
		}
		spent, err := e.options.Spending.Of(ctx, s.Owner, p.period)
		if err != nil {
			return nil, err
		}
		list = append(list, account{
			scope: scopeOwner, owner: s.Owner, period: p.period,
			budget: p.budget, grants: spent.Grants, spent: running.Plus(spent.Amount),
		})
	}
	return list, nil
}

// usedUp returns the first budget of a run that is used up, nil if none is.
func (r *run) usedUp(ctx context.Context) (*account, error) {
	list, err := r.accounts(ctx)
	for i := range list {
		if list[i].over() {
			return &list[i], nil
		}
	}
	return nil, err
}

// grant grants a budget again, so that all runs of the session or the owner see it.
func (r *run) grant(ctx context.Context, a *account) (err error) {
	e := r.engine
	switch a.scope {
	case scopeRun:
		r.meter.grant(a.granted())
		return nil
	case scopeSession:
		seen := tapedeck.Budget{Amount: a.budget, Grants: a.grants}
		ev := event(payload.SessionRenamed{Budget: encoded(tapedeck.Budget{Amount: a.budget, Grants: a.granted()})}, "tapedeck")
		_, err = e.write(ctx, tapedeck.Append{Session: r.in.Session, Events: []tapedeck.Event{ev}}, func(s *tapedeck.Session, _ []tapedeck.Event) error {
			if !reflect.DeepEqual(s.Budget, &seen) {
				return errMoved
			}
			return nil
		})
	case scopeOwner:
		err = e.options.Spending.Grant(ctx, a.owner, a.period, a.granted())
	}
	if errors.Is(err, errMoved) { // it was changed or granted meanwhile
		err = nil
	}
	if err == nil {
		e.budgets.notify()
	}
	return err
}

// A wake tells all who wait that something has changed.
type wake struct {
	mu sync.Mutex
	ch chan struct{}
}

// wait returns a channel that is closed at the next notify.
func (b *wake) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *wake) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// untilGranted calls granted when a budget for which people are asked is not used up any
// more: it was granted in the question of another run, a new one was set, or a new period
// has begun.
func (r *run) untilGranted(ctx context.Context, asked *account, granted func()) {
	if asked.scope == scopeRun {
		return // only the answer grants it
	}
	for ctx.Err() == nil {
		changed := r.engine.budgets.wait()
		list, err := r.accounts(ctx)
		if err == nil && !stillOver(list, asked) {
			granted()
			return
		}
		now := r.engine.options.Now().UTC()
		midnight := time.NewTimer(wallclock.Until(now.Truncate(24*time.Hour).Add(24*time.Hour), now))
		select {
		case <-changed:
		case <-midnight.C:
		case <-ctx.Done():
		}
		midnight.Stop()
	}
}

// stillOver reports whether the budget of an earlier account is used up.
func stillOver(list []account, asked *account) bool {
	for i := range list {
		if a := &list[i]; a.scope == asked.scope && a.period == asked.period {
			return a.over()
		}
	}
	return false
}
