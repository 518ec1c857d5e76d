package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A task that replaces a part of its thread is stored with its rewind or not at all, whatever
// refuses it.
func TestReplacesOrNothing(t *testing.T) {
	back := func() *api.Rewind { return &api.Rewind{ToOffset: new(int64(8))} }
	refusals := map[string]struct {
		task api.Task
		want tapedeck.Kind
	}{
		"a config":           {api.Task{Agent: "picky", Config: json.RawMessage(`{}`), Rewind: back()}, tapedeck.Invalid},
		"an unknown agent":   {api.Task{Agent: "nobody", Rewind: back()}, tapedeck.NotFound},
		"a used id":          {api.Task{Invocation: "inv_1", Rewind: back()}, tapedeck.Conflict},
		"an older head":      {api.Task{Rewind: back(), Expect: new(int64(14))}, tapedeck.Conflict},
		"nothing to revert":  {api.Task{Rewind: &api.Rewind{ToOffset: new(int64(19))}}, tapedeck.Conflict},
		"after the end":      {api.Task{Rewind: &api.Rewind{ToOffset: new(int64(99))}}, tapedeck.Invalid},
		"no place":           {api.Task{Rewind: &api.Rewind{}}, tapedeck.Invalid},
		"an unknown run":     {api.Task{Rewind: &api.Rewind{BeforeInvocation: "inv_9"}}, tapedeck.NotFound},
		"a busy thread":      {api.Task{Thread: "busy", Rewind: &api.Rewind{ToOffset: new(int64(15))}}, tapedeck.Conflict},
		"a failing database": {api.Task{Rewind: back()}, ""},

		"an overwrite and an unknown agent": {api.Task{Agent: "nobody", Overwrite: &api.Overwrite{FromOffset: 8, Thread: "main"}}, tapedeck.NotFound},
		"an overwrite that is busy":         {api.Task{Overwrite: &api.Overwrite{FromOffset: 8}}, tapedeck.Conflict},
		"an overwrite after the end":        {api.Task{Overwrite: &api.Overwrite{FromOffset: 99}}, tapedeck.Invalid},
		"an overwrite of another thread":    {api.Task{Overwrite: &api.Overwrite{FromOffset: 8, Thread: "busy"}}, tapedeck.Invalid},
		"an overwrite that waits":           {api.Task{When: api.WhenQueue, Overwrite: &api.Overwrite{FromOffset: 8, Thread: "main"}}, tapedeck.Invalid},
		"a cut of too many calls":           {api.Task{Overwrite: &api.Overwrite{FromOffset: 8, Thread: "main", Context: &view.ContextCut{Uncalled: make([]string, 1001)}}}, tapedeck.TooLarge},
		"an overwrite of somebody else":     {api.Task{Overwrite: &api.Overwrite{FromOffset: 8, Thread: "main", Actor: "user:eve"}}, tapedeck.Invalid},
		"a cut of a call without an id":     {api.Task{Overwrite: &api.Overwrite{FromOffset: 8, Thread: "main", Context: &view.ContextCut{Uncalled: []string{""}}}}, tapedeck.Invalid},
		"a cut in no thread":                {api.Task{Overwrite: &api.Overwrite{FromOffset: 8, Thread: "main", Context: &view.ContextCut{Thread: "../x"}}}, tapedeck.Invalid},
	}
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, echo, func(o *engine.Options) {
					o.Agents = append(o.Agents, engine.Agent{Agent: tapedeck.Agent{Name: "picky", Kind: "test"}, Runner: picky{echo}})
				})
				w.create("s")
				p := w.tape("s")
				w.must(p.started(w.Start(t.Context(), api.Task{Session: "s", Text: "a", Invocation: "inv_1"}))("a"))
				synctest.Wait()
				p.play("task b; task wait on busy")
				before := p.shown()
				head := p.head("s").Head
				refusal.task.Session, refusal.task.Text = "s", "c"
				w.down.Store(refusal.want == "")
				_, err := w.Start(t.Context(), refusal.task)
				w.down.Store(false)
				if err == nil || refusal.want != "" && tapedeck.KindOf(err) != refusal.want {
					t.Errorf("the error is %v (%s), want %s", err, tapedeck.KindOf(err), refusal.want)
				}
				if got := p.shown(); got != before || p.head("s").Head != head {
					t.Errorf("the session has %s\nbefore %s", got, before)
				}
				p.stopAll()
			})
		})
	}
}

// What another program appends between the look at a session and the append is not reverted
// if the sender expects an offset. Otherwise the rewind is formed again.
func TestReplacesWhatItHasSeen(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		ctx := w.Context()
		w.create("s")
		p := w.tape("s")
		p.play("task a; task b")
		other := func() {
			_, err := w.Append(context.Background(), message("other"))
			w.must(err)
		}
		back := api.Rewind{Session: "s", Thread: tapedeck.MainThread, ToOffset: new(int64(8))}
		w.store.before = other
		if _, err := w.Start(ctx, api.Task{Session: "s", Text: "c", Rewind: &back, Expect: new(w.head("s").Head)}); tapedeck.RefusalOf(err) != tapedeck.RefusedOffset {
			w.Errorf("a task that expects an older head: %v", err)
		}
		w.store.before = other
		a := message("mine")
		a.Expect = new(w.head("s").Head)
		if _, err := w.AppendAfter(ctx, back, a); tapedeck.RefusalOf(err) != tapedeck.RefusedOffset {
			w.Errorf("an append that expects an older head: %v", err)
		}
		if got, want := p.shown(), "main: a, re a, b, re b, other, other {b}"; got != want {
			w.Errorf("got  %s\nwant %s", got, want)
		}
		w.store.before = other
		done, err := w.AppendAfter(ctx, back, message("mine"))
		w.must(err)
		if got, want := p.shown(), "main: a, re a, mine {a}"; got != want {
			w.Errorf("got  %s\nwant %s", got, want)
		}
		if ev := w.log("s")[done.First]; ev.Type != tapedeck.MessageAdded || done.Head != done.First+1 {
			w.Errorf("the first event of the client is at %d, which is %s; the head is %d", done.First, ev.Type, done.Head)
		}
	})
}

// The run that replaces a part of its thread knows nothing of that part: no history, no
// context of how it stopped, and no conversation of the agent's own.
func TestReplacesWithoutMemory(t *testing.T) {
	var seen tapedeck.Invocation
	var history []string
	runner := func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		seen, history = in, nil
		for ev, err := range in.History(ctx) {
			if err != nil {
				return err
			}
			if d, bad := payload.DecodeAs[payload.MessageAdded](ev); bad == nil {
				history = append(history, d.Message.Text())
			}
		}
		say("agent.linked", `{"runner":"bot","nativeId":"n1"}`)
		say("plan.updated", `{"entries":[{"content":"dig","status":"in_progress"}]}`)
		if strings.HasPrefix(in.Task, "fail") {
			return errors.New("out of order")
		}
		return nil
	}
	inBubble(t, runner, func(w *world) {
		w.create("s")
		p := w.tape("s")
		p.play("task a; task fail")
		r := api.Rewind{BeforeInvocation: p.invocations["fail"]}
		started, err := w.Start(w.Context(), api.Task{Session: "s", Text: "c", Rewind: &r})
		w.must(err)
		synctest.Wait()
		if seen.Task != "c" || seen.Context != "" || seen.Resumes != "" || seen.Link != nil || strings.Join(history, ",") != "a" {
			w.Errorf("the agent gets %q, context %q, resumes %q, link %v, history %v", seen.Task, seen.Context, seen.Resumes, seen.Link, history)
		}
		if ev := w.log("s")[started.Offset]; ev.Type != tapedeck.MessageAdded || ev.Invocation != started.Invocation {
			w.Errorf("the run begins at %d with %s of %s", started.Offset, ev.Type, ev.Invocation)
		}
	})
}

func message(text string) tapedeck.Append {
	return tapedeck.Append{Session: "s", Events: []tapedeck.Event{
		payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage(tapedeck.NewID("msg_"), payload.RoleUser, text)}),
	}}
}
