package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/payload"
)

// A queueStep is a verb with a number, which selects its argument from those that are
// possible then.
type queueStep struct {
	Verb string
	N    int
}

// A queueing carries out random verbs on a session with agents that run until they are
// told to end.
type queueing struct {
	*world
	told   chan string // an agent takes from it how it ends
	sent   []string    // the texts of all inputs
	forks  []string
	errors []string
}

// bot runs until it is told how to end, and takes input meanwhile.
func (q *queueing) bot(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
	say("STEP_STARTED", `{"stepName":"works"}`)
	for {
		select {
		case how := <-q.told:
			switch how {
			case "fail":
				return errors.New("failed")
			case "turn":
				if _, err := in.Steer(ctx); err != nil {
					return err
				}
			default:
				say("STEP_FINISHED", `{"stepName":"works"}`)
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (q *queueing) open() *engine.Engine {
	return q.world.open(silent, func(o *engine.Options) { o.Agents[0].Runner = steerer{q.bot} })
}

func (q *queueing) tell(how string) {
	select {
	case q.told <- how:
	default: // nothing runs
	}
}

// do carries out a step. Verbs may be refused; the invariant must hold all the same.
func (q *queueing) do(s queueStep) {
	ctx := q.Context()
	ids := strings.Fields(q.waiting())
	pick := func() string {
		if len(ids) == 0 {
			return "inp_none"
		}
		return ids[s.N%len(ids)]
	}
	thread := laneNames[s.N%2]
	switch s.Verb {
	case "queue", "steer", "interrupt":
		text := fmt.Sprintf("text %d", len(q.sent))
		q.sent = append(q.sent, text)
		_, err := q.Start(ctx, api.Task{Session: "s", Thread: thread, Text: text, When: s.Verb, MessageID: text})
		if err == nil && s.N%3 == 0 { // the client does not know that it arrived
			_, err = q.Start(ctx, api.Task{Session: "s", Thread: thread, Text: text, When: s.Verb, MessageID: text})
		}
		if err != nil {
			q.errors = append(q.errors, s.Verb+": "+err.Error())
		}
	case "done", "fail", "turn":
		q.tell(s.Verb)
	case "withdraw":
		_, _ = q.Withdraw(ctx, api.Withdraw{Session: "s", Input: pick()})
	case "move":
		_, _ = q.Move(ctx, api.Move{Session: "s", Input: pick(), Before: pick()})
	case "cancel":
		if runs := q.head("s").Runs; len(runs) > 0 {
			_, _ = q.Cancel(ctx, "s", runs[s.N%len(runs)].Invocation)
		}
	case "cancel all":
		if runs := q.head("s").Runs; len(runs) > 0 {
			_, _ = q.CancelAll(ctx, "s", runs[s.N%len(runs)].Invocation)
		}
	case "rewind":
		at := int64(s.N) % (q.head("s").Head + 1)
		_, _ = q.Rewind(ctx, api.Rewind{Session: "s", ToOffset: &at, Force: true})
	case "clear":
		_, _ = q.Clear(ctx, api.Clear{Session: "s", Thread: thread})
	case "undo":
		_, _ = q.Undo(ctx, api.Undo{Session: "s"})
	case "fork":
		if f, err := q.Fork(ctx, api.Fork{Parent: "s"}); err == nil {
			q.forks = append(q.forks, f.ID)
		}
	case "kill", "restart":
		if s.Verb == "kill" {
			crash(q.world)
		}
		if err := q.Shutdown(ctx); err != nil {
			q.errors = append(q.errors, err.Error())
		}
		q.Engine = q.open()
		if _, err := q.Recover(ctx); err != nil {
			q.errors = append(q.errors, err.Error())
		}
	}
}

// check returns what is wrong with the end of the session: each text must be that of
// exactly one message, or of an input that was withdrawn.
func (q *queueing) check() string {
	times, queued, ended := map[string]int{}, map[string]string{}, map[string][]string{}
	for _, ev := range q.events("s") {
		switch p, _ := payload.Decode(ev); d := p.(type) {
		case payload.MessageAdded:
			times[d.Message.Text()]++
		case payload.InputQueued:
			queued[d.ID] = d.Text
		case payload.InputStarted:
			ended[queued[d.ID]] = append(ended[queued[d.ID]], "started")
		case payload.InputSteered:
			ended[queued[d.ID]] = append(ended[queued[d.ID]], "steered")
		case payload.InputWithdrawn:
			ended[queued[d.ID]] = append(ended[queued[d.ID]], "withdrawn")
		}
	}
	for _, text := range q.sent {
		end := ended[text]
		switch want := 1; {
		case len(end) > 1:
			return fmt.Sprintf("%s ended as %v", text, end)
		default:
			if slices.Contains(end, "withdrawn") {
				want = 0
			}
			if times[text] != want {
				return fmt.Sprintf("%s is in the log %d times, and ended as %v", text, times[text], end)
			}
		}
	}
	for _, f := range q.forks {
		s := q.head(f)
		if len(s.Runs) > 0 || len(s.Inputs) > 0 {
			return fmt.Sprintf("the fork %s runs %v and has the inputs %v", f, s.Runs, s.Inputs)
		}
	}
	return strings.Join(q.errors, "; ")
}

// Whatever happens to a session, what was sent while an agent ran is run exactly once,
// given to a run exactly once, or withdrawn.
func TestQueueProperty(t *testing.T) {
	verbs := []string{
		"queue", "queue", "queue", "queue", "steer", "steer", "interrupt", "done", "done", "fail", "turn", "turn", "withdraw", "move",
		"cancel", "cancel all", "rewind", "clear", "undo", "fork", "kill", "restart",
	}
	steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) queueStep {
		return queueStep{rapid.SampledFrom(verbs).Draw(r, "verb"), rapid.IntRange(0, 1000).Draw(r, "n")}
	}), 1, 30)
	rapid.Check(t, func(r *rapid.T) {
		script := steps.Draw(r, "script")
		broken := "" // told outside of the bubble, where the test can be stopped
		synctest.Test(t, func(t *testing.T) {
			q := &queueing{world: newWorld(t, silent), told: make(chan string)}
			if err := q.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			q.Engine = q.open()
			q.create("s")
			for _, s := range script {
				q.do(s)
				if s.N%4 > 0 { // otherwise the next verb comes at once
					synctest.Wait()
				}
			}
			for range 200 { // until the queue is empty
				synctest.Wait()
				if s := q.head("s"); len(s.Runs) == 0 && len(s.Inputs) == 0 {
					break
				}
				q.tell("done")
			}
			if s := q.head("s"); len(s.Runs) > 0 || len(s.Inputs) > 0 {
				broken = fmt.Sprintf("it does not come to rest: %+v", s)
				return
			}
			broken = q.check()
		})
		if broken != "" {
			r.Fatalf("%s\n%v", broken, script)
		}
	})
}
