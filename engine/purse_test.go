package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/store/memory"
)

// purseWorld runs a test with an agent that calls its model, and with budgets of owners.
func purseWorld(t *testing.T, runner talker, b engine.OwnerBudgets, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, runner, withPurses(b))
		test(w)
	})
}

func withPurses(b engine.OwnerBudgets) func(*engine.Options) {
	return func(o *engine.Options) {
		o.Budgets, o.Spending = b, o.Store.(*slowStore).Store.(*memory.Store).Spending()
	}
}

// owned creates a session with an owner and a budget.
func (w *world) owned(id, owner string, b tapedeck.Amount) {
	w.Helper()
	n := api.NewSession{ID: id, Owner: owner}
	if b != (tapedeck.Amount{}) {
		n.Budget = &b
	}
	_, err := w.Create(w.Context(), n)
	w.must(err)
}

// startIn gives the agent a task in a thread.
func (w *world) startIn(session, thread string) {
	w.Helper()
	_, err := w.Start(w.Context(), api.Task{Session: session, Thread: thread, Text: "go"})
	w.must(err)
}

// pause waits until all runs have asked people or have ended.
func pause() {
	time.Sleep(2 * time.Minute) // of the bubble's clock
	synctest.Wait()
}

// All runs of a session share its budget: one answer lets all of them continue.
func TestSessionBudget(t *testing.T) {
	purseWorld(t, calling, engine.OwnerBudgets{}, func(w *world) {
		w.owned("s", "", tapedeck.Amount{Tokens: 300})
		w.startIn("s", "")
		w.startIn("s", "side")
		pause()
		asked := w.askedAfter("s")
		if len(asked) != 2 || !strings.Contains(asked[0], "The session has used 360 of 300 tokens. Continue for 300 more tokens?") && !strings.Contains(asked[0], "The session has used 300 of 300 tokens") {
			w.Fatalf("asked %q", asked)
		}
		before := *w.head("s").Spent
		w.answerNewest("s", "continue")
		pause()
		s := w.head("s")
		if len(w.askedAfter("s")) != 4 || len(s.Waiting) != 2 || s.Budget.Grants != 1 {
			w.Fatalf("asked %q, waits for %d, granted %d", w.askedAfter("s"), len(s.Waiting), s.Budget.Grants)
		}
		if s.Spent.Tokens < 600 || s.Spent.Tokens > 660 || s.Spent.Turns != s.Spent.Tokens/60 || before.Tokens >= s.Spent.Tokens {
			w.Errorf("spent %+v", s.Spent)
		}
		w.answerNewest("s", "stop")
		synctest.Wait()
		if s := w.head("s"); len(s.Waiting) != 1 || len(s.Runs) != 1 { // the other run still asks
			w.Errorf("waits for %d in %d runs", len(s.Waiting), len(s.Runs))
		}
		// A higher budget takes the question back.
		_, err := w.Rename(w.Context(), api.Rename{Session: "s", Budget: &tapedeck.Amount{Tokens: 50_000}})
		w.must(err)
		pause()
		if s := w.head("s"); len(s.Waiting) != 0 || s.Budget.Grants != 0 || s.Status != tapedeck.StatusComplete {
			w.Errorf("%s, waits for %d, granted %d", s.Status, len(s.Waiting), s.Budget.Grants)
		}
	})
}

// The time of a session is that in which its runs work. It counts side by side once, and
// not while one waits for people.
func TestSessionTime(t *testing.T) {
	purseWorld(t, calling, engine.OwnerBudgets{}, func(w *world) {
		w.owned("s", "", tapedeck.Amount{Seconds: 5})
		w.startIn("s", "")
		time.Sleep(time.Hour)
		synctest.Wait()
		if asked := w.askedAfter("s"); !slices.Equal(asked, []string{"5: The session has used 5s of 5s. Continue for 5s more?"}) || w.head("s").Spent.Seconds != 5 {
			w.Fatalf("asked %q, spent %+v", asked, w.head("s").Spent)
		}
		w.answerNewest("s", "continue")
		time.Sleep(time.Hour)
		synctest.Wait()
		if asked := w.askedAfter("s"); len(asked) != 2 || w.head("s").Spent.Seconds != 10 {
			w.Errorf("asked %q, spent %+v", asked, w.head("s").Spent)
		}
	})
}

// A rewind gives nothing back. A fork has the limit of its parent without its grants, and
// has spent nothing. An erasure keeps what was spent. No budget removes the limit.
func TestBudgetOfForksAndJumps(t *testing.T) {
	purseWorld(t, calling, engine.OwnerBudgets{}, func(w *world) {
		w.owned("s", "", tapedeck.Amount{Turns: 2})
		w.startIn("s", "")
		pause()
		w.answerNewest("s", "continue")
		pause()
		w.answerNewest("s", "stop")
		synctest.Wait()
		spent := *w.head("s").Spent
		_, err := w.Rewind(w.Context(), api.Rewind{Session: "s", ToOffset: new(int64(1))})
		w.must(err)
		fork, err := w.Fork(w.Context(), api.Fork{Parent: "s", ID: "f"})
		w.must(err)
		if fork.Spent != nil || fork.Budget == nil || *fork.Budget != (tapedeck.Budget{Amount: tapedeck.Amount{Turns: 2}}) {
			w.Errorf("the fork has spent %+v of %+v", fork.Spent, fork.Budget)
		}
		_, err = w.Erase(w.Context(), api.Erase{Session: "s", All: true})
		w.must(err)
		s := w.head("s")
		if *s.Spent != spent || s.Budget == nil || s.Budget.Turns != 2 || s.Budget.Grants != 1 {
			w.Errorf("after the erasure it has spent %+v of %+v, want %+v", s.Spent, s.Budget, spent)
		}
		var fold tapedeck.Session
		for _, ev := range w.log("s") {
			fold.Apply(&ev)
		}
		if *fold.Spent != spent || *fold.Budget != *s.Budget {
			w.Errorf("by the erased log it has spent %+v of %+v", fold.Spent, fold.Budget)
		}
		_, err = w.Rename(w.Context(), api.Rename{Session: "s", Budget: &tapedeck.Amount{}})
		w.must(err)
		if b := w.head("s").Budget; b != nil {
			w.Errorf("the budget is %+v", b)
		}
	})
}

func TestBadSessionBudget(t *testing.T) {
	purseWorld(t, calling, engine.OwnerBudgets{}, func(w *world) {
		bad := &tapedeck.Amount{Tokens: -1}
		_, err := w.Create(w.Context(), api.NewSession{Budget: bad})
		refuses(w, err, tapedeck.Invalid, "-1 tokens")
		w.create("s")
		_, err = w.Rename(w.Context(), api.Rename{Session: "s", Budget: bad})
		refuses(w, err, tapedeck.Invalid, "-1 tokens")
		refuses(w, w.append("s", `session.renamed {"budget":{"tokens":5}}`), tapedeck.Invalid, "cannot be appended")
	})
}

// All sessions of an owner share the budgets of the day and of the month. A new day takes
// the question back.
func TestOwnerBudget(t *testing.T) {
	b := engine.OwnerBudgets{
		OwnerBudget: engine.OwnerBudget{Day: tapedeck.Amount{Turns: 4}},
		Owners:      map[string]engine.OwnerBudget{"eve": {Month: tapedeck.Amount{USD: 0.05}}, "bob": {}},
	}
	purseWorld(t, calling, b, func(w *world) {
		for id, owner := range map[string]string{"a1": "ada", "a2": "ada", "e": "eve", "b": "bob", "n": ""} {
			w.owned(id, owner, tapedeck.Amount{})
			w.startIn(id, "")
		}
		pause()
		for id, want := range map[string]string{
			"a1": "The sessions of ada have, in 2000-01-01 (UTC), used ", "a2": "of 4 model calls. Continue for 4 more model calls?",
			"e": "The sessions of eve have, in 2000-01 (UTC), used $0.05 of $0.05. Continue for $0.05 more?", "b": "", "n": "",
		} {
			asked := w.askedAfter(id)
			if want == "" {
				if len(asked) != 0 || w.head(id).Status != tapedeck.StatusComplete {
					w.Errorf("%s asked %q", id, asked)
				}
			} else if len(asked) != 1 || !strings.Contains(asked[0], want) {
				w.Errorf("%s asked %q", id, asked)
			}
		}
		turns := func() int64 { return w.head("a1").Spent.Turns + w.head("a2").Spent.Turns }
		if n := turns(); n < 4 || n > 5 { // each run that is in a call can use one more
			w.Errorf("ada has used %d", n)
		}
		w.answerNewest("a2", "continue") // lets both continue
		pause()
		if n := turns(); n < 8 || n > 9 || len(w.head("a1").Waiting) != 1 || len(w.head("a2").Waiting) != 1 {
			w.Errorf("ada has used %d, waits for %d and %d", n, len(w.head("a1").Waiting), len(w.head("a2").Waiting))
		}
		used := turns()
		time.Sleep(24 * time.Hour)
		pause()
		if n := turns() - used; n < 4 || n > 5 || len(w.head("a1").Waiting) != 1 {
			w.Errorf("on the next day ada has used %d", n)
		}
		if len(w.head("e").Waiting) != 1 {
			w.Error("the month is not over")
		}
	})
}

// Only those who may, continue: the budget of an owner needs an admin, that of a session
// its owner. Everybody who may answer can stop the run. Nobody answers with an append.
func TestWhoContinues(t *testing.T) {
	b := engine.OwnerBudgets{OwnerBudget: engine.OwnerBudget{Day: tapedeck.Amount{Turns: 3}}}
	purseWorld(t, calling, b, func(w *world) {
		answer := func(option, grants string) error {
			q := w.head("s").Waiting[0]
			_, err := w.Answer(w.Context(), api.Answer{Session: "s", Permission: q.ID, Option: option, Grants: grants})
			return err
		}
		w.owned("s", "ada", tapedeck.Amount{Turns: 1})
		w.startIn("s", "")
		pause()
		refuses(w, answer("continue", "run"), tapedeck.Forbidden, "only the owner of the session and an admin")
		q := w.head("s").Waiting[0]
		refuses(w, w.append("s", fmt.Sprintf(`permission.answered {"id":%q,"option":"continue","outcome":"selected"}`, q.ID)), tapedeck.Forbidden, "an append cannot answer it")
		w.must(answer("continue", "session"))
		pause()
		w.must(answer("continue", "session"))
		pause()
		if asked := w.askedAfter("s"); len(asked) != 3 || !strings.Contains(asked[2], "The session") {
			w.Fatalf("asked %q", asked)
		}
		w.must(answer("continue", ""))
		pause()
		if asked := w.askedAfter("s"); len(asked) != 4 || !strings.Contains(asked[3], "The sessions of ada") {
			w.Fatalf("asked %q", asked)
		}
		for _, grants := range []string{"run", "session"} {
			refuses(w, answer("continue", grants), tapedeck.Forbidden, "only an admin")
		}
		w.must(answer("stop", "run"))
	})
}

// A server that dies while it asks counts nothing twice. The run that resumes asks the same
// question before its first call.
func TestBudgetAfterACrash(t *testing.T) {
	b := engine.OwnerBudgets{OwnerBudget: engine.OwnerBudget{Day: tapedeck.Amount{Turns: 3}}}
	purseWorld(t, calling, b, func(w *world) {
		w.owned("s", "ada", tapedeck.Amount{})
		w.startIn("s", "")
		pause()
		again := w.open(calling, withPurses(b)) // the engine that died never hears of it
		_, err := again.Recover(w.Context())
		w.must(err)
		if s := w.head("s"); s.Status != tapedeck.StatusInterrupted || len(s.Waiting) != 0 || s.Spent.Turns != 3 {
			w.Fatalf("%s, waits for %d, spent %+v", s.Status, len(s.Waiting), s.Spent)
		}
		_, err = again.Resume(w.Context(), api.Resume{Session: "s"})
		w.must(err)
		pause()
		asked := w.askedAfter("s")
		if s := w.head("s"); len(asked) != 2 || asked[0] != asked[1] || s.Spent.Turns != 3 || len(s.Waiting) != 1 {
			w.Errorf("asked %q, spent %+v", asked, s.Spent)
		}
		_, err = again.Answer(w.Context(), api.Answer{Session: "s", Permission: w.head("s").Waiting[0].ID, Option: "continue"})
		w.must(err)
		pause()
		if n := w.head("s").Spent.Turns; n != 6 {
			w.Errorf("spent %d", n)
		}
	})
}

// An agent that asks nothing does not begin when a budget is used up before.
func TestBudgetBeforeTheFirstCall(t *testing.T) {
	ran := 0
	deaf := func(ctx context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
		ran++
		say("usage.reported", `{"totalTokens":7}`)
		return nil
	}
	purseWorld(t, deaf, engine.OwnerBudgets{}, func(w *world) {
		w.owned("s", "", tapedeck.Amount{Tokens: 7})
		w.startIn("s", "")
		pause()
		w.startIn("s", "")
		pause()
		if s := w.head("s"); ran != 1 || len(s.Waiting) != 1 {
			w.Errorf("it ran %d times and waits for %d", ran, len(s.Waiting))
		}
	})
}

// A spending that cannot be read stops the run: it must not run without a limit.
func TestBudgetThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, calling, func(o *engine.Options) {
			o.Budgets.Day.Tokens, o.Spending = 5, brokenPurse{}
		})
		w.owned("s", "ada", tapedeck.Amount{})
		w.startIn("s", "")
		pause()
		if s := w.head("s"); s.Status != tapedeck.StatusFailed || s.Spent != nil {
			w.Errorf("%s, spent %+v", s.Status, s.Spent)
		}
	})
}

type brokenPurse struct{ engine.Spending }

func (brokenPurse) Of(context.Context, string, string) (store.Spending, error) {
	return store.Spending{}, errors.New("disk full")
}
