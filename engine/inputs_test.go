package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// queue sends a task for the session s that may wait.
func (w *world) queue(when, text string) api.Started {
	w.Helper()
	s, err := w.Start(w.Context(), api.Task{Session: "s", Text: text, Actor: "user:ada", When: when})
	w.must(err)
	return s
}

// inputs shows the inputs of the session s: the status and the text of each, or the
// reason why it was withdrawn.
func (w *world) inputs() string {
	w.Helper()
	list, err := w.Inputs(w.Context(), "s", "")
	w.must(err)
	var out []string
	for _, in := range list {
		out = append(out, strings.TrimSpace(string(in.Status)+" "+in.Text+" "+in.Reason))
	}
	return strings.Join(out, ", ")
}

// waiting returns the ids of the catalogue's inputs of the session s.
func (w *world) waiting() string {
	var ids []string
	for _, in := range w.head("s").Inputs {
		ids = append(ids, in.ID)
	}
	return strings.Join(ids, " ")
}

// tasks returns the texts of the users' messages in a session, in their order.
func (w *world) tasks(session string) string {
	w.Helper()
	var out []string
	for _, ev := range w.events(session) {
		if d, err := payload.DecodeAs[payload.MessageAdded](ev); err == nil && d.Message.Role == payload.RoleUser {
			out = append(out, d.Message.Text())
		}
	}
	return strings.Join(out, ", ")
}

// untilTold ends when the function next is called.
func untilTold() (runner talker, next func()) {
	told := make(chan struct{})
	return func(ctx context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
		say("TEXT_MESSAGE_START", `{"messageId":"`+tapedeck.NewID("m")+`","role":"assistant"}`)
		select {
		case <-told:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, func() { told <- struct{}{} }
}

func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner, next := untilTold()
		w := newWorld(t, runner)
		w.create("s")
		first := w.queue("queue", "one")
		if first.Input != "" || first.Status != tapedeck.StatusRunning {
			t.Errorf("a free thread gives %+v", first)
		}
		two, three, four := w.queue("queue", "two"), w.queue("queue", "three"), w.queue("steer", "four")
		if two.Status != view.InputWaiting || two.When != api.WhenQueue || two.Note != "" || two.Offset == 0 {
			t.Errorf("got %+v", two)
		}
		if four.When != api.WhenQueue || !strings.Contains(four.Note, "bot takes no input") {
			t.Errorf("an agent that cannot be steered gives %+v", four)
		}
		_, err := w.Move(t.Context(), api.Move{Session: "s", Input: three.Input, Before: two.Input})
		w.must(err)
		if got := w.inputs(); got != "waiting three, waiting two, waiting four" {
			t.Error(got)
		}
		gone, err := w.Withdraw(t.Context(), api.Withdraw{Session: "s", Input: four.Input, Actor: "user:bob"})
		if w.must(err); gone.Status != view.InputWithdrawn || gone.Text != "four" {
			t.Errorf("got %+v", gone)
		}
		for range 3 {
			next()
			synctest.Wait()
		}
		if got := w.tasks("s"); got != "one, three, two" {
			t.Error(got)
		}
		if got := w.inputs(); got != "started, started, withdrawn four" {
			t.Error(got)
		}
		events := w.events("s")
		at := int64(0)
		for _, ev := range events {
			if ev.Type == tapedeck.RunStarted && ev.Invocation == two.Invocation {
				at = ev.Offset
			}
		}
		if got := types(events[at-2 : at+1]); got != "input.started message.added RUN_STARTED" {
			t.Errorf("a queued run begins with %s", got)
		}
		if s := w.head("s"); s.Inputs != nil || s.Status != tapedeck.StatusComplete {
			t.Errorf("got %+v", s)
		}
	})
}

func TestQueueRefusals(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		w.start("s")
		a, b := w.queue("queue", "a"), w.queue("queue", "b")
		start := func(task api.Task) error {
			task.Session = "s"
			_, err := w.Start(w.Context(), task)
			return err
		}
		refuses(w, start(api.Task{Text: "x"}), tapedeck.Conflict, "with when=queue the task waits for it")
		refuses(w, start(api.Task{Text: "x", When: "now"}), tapedeck.Conflict, "is busy with")
		refuses(w, start(api.Task{Text: "x", When: "soon"}), tapedeck.Invalid, "it is one of now, queue, steer, interrupt")
		refuses(w, start(api.Task{Text: "x", When: "queue", Agent: "none"}), tapedeck.NotFound, "there is no agent")
		refuses(w, start(api.Task{Text: strings.Repeat("x", 65537), When: "queue"}), tapedeck.TooLarge, "at most 65536")
		refuses(w, start(api.Task{Text: "x", When: "queue", Messages: []payload.Message{payload.NewMessage("m", "user", "x")}}), tapedeck.Invalid, "has only a text")
		withdraw := func(id string) error {
			_, err := w.Withdraw(w.Context(), api.Withdraw{Session: "s", Input: id})
			return err
		}
		refuses(w, withdraw("in_9"), tapedeck.NotFound, "has no input \"in_9\" | these wait: "+a.Input+", "+b.Input)
		w.must(withdraw(a.Input))
		refuses(w, withdraw(a.Input), tapedeck.Conflict, "was withdrawn already | these wait: "+b.Input)
		_, err := w.Move(w.Context(), api.Move{Session: "s", Input: b.Input, Before: a.Input})
		refuses(w, err, tapedeck.Invalid, "is no other input that waits in thread main")
		refuses(w, w.append("s", `input.queued {"id":"in_x","text":"x"}`), tapedeck.Invalid, "input.queued cannot be appended")
		for range 99 {
			w.queue("queue", "x")
		}
		refuses(w, start(api.Task{Text: "x", When: "queue"}), tapedeck.Limited, "100 inputs wait")
		done, err := w.CancelAll(w.Context(), "s", "")
		if w.must(err); done.Withdrawn != 100 || w.waiting() != "" || w.tasks("s") != "go" {
			w.Errorf("got %+v", done)
		}
		list, err := w.Inputs(w.Context(), "s", "")
		w.must(err)
		refuses(w, withdraw(list[len(list)-1].ID), tapedeck.Conflict, "no input waits in session s")
	})
}

// The queue goes on after every end of a run, also if its agent had not begun.
func TestQueueGoesOn(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		w.start("s")
		w.queue("queue", "two")
		_, err := w.Cancel(w.Context(), "s", "")
		w.must(err)
		synctest.Wait()
		if got := w.tasks("s"); got != "go, two" || len(w.head("s").Runs) != 1 {
			w.Errorf("got %s", got)
		}
		three := w.queue("interrupt", "three")
		if three.Status != tapedeck.StatusRunning || w.head("s").Runs[0].Invocation != three.Invocation {
			w.Errorf("got %+v", three)
		}
		w.queue("queue", "five")
		w.queue("interrupt", "four")
		if got := w.inputs(); got != "started, started, started, waiting five" {
			w.Error(got)
		}
		_, err = w.Cancel(w.Context(), "s", "")
		w.must(err)
		synctest.Wait()
		if got := w.tasks("s"); got != "go, two, three, four, five" {
			w.Error(got)
		}
	})
}

// An input that cannot begin is withdrawn with the reason, and the next one begins.
func TestQueuePassesFailures(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		first, err := w.Start(w.Context(), api.Task{Session: "s", Text: "go", MessageID: "m1"})
		w.must(err)
		_, err = w.Start(w.Context(), api.Task{Session: "s", Text: "two", Agent: "mute", When: "queue"})
		w.must(err)
		w.queue("queue", "three")
		if again, err := w.Start(w.Context(), api.Task{Session: "s", Text: "go", MessageID: "m1", When: "queue"}); err != nil || again.Invocation != first.Invocation || !again.Repeated {
			w.Errorf("a message that runs already gives %+v, %v", again, err)
		}
		w.must(w.Shutdown(w.Context()))
		next := w.open(silent, func(o *engine.Options) { o.Agents = o.Agents[:1] })
		_, err = next.Recover(w.Context())
		w.must(err)
		synctest.Wait()
		w.Engine = next
		if got := w.inputs(); got != "withdrawn two there is no agent \"mute\", started" {
			w.Error(got)
		}
	})
}

// Queueing a message twice queues it once.
func TestQueueRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner, next := untilTold()
		w := newWorld(t, runner)
		w.create("s")
		w.start("s")
		task := api.Task{Session: "s", Text: "two", MessageID: "m2", When: "queue"}
		one, err := w.Start(t.Context(), task)
		w.must(err)
		two, err := w.Start(t.Context(), task)
		if w.must(err); two.Input != one.Input || !two.Repeated || two.Status != view.InputWaiting || two.Invocation != one.Invocation {
			t.Errorf("got %+v", two)
		}
		task.Text = "other"
		_, err = w.Start(t.Context(), task)
		refuses(t, err, tapedeck.Conflict, "another message with the id")
		next()
		synctest.Wait()
		task.Text = "two"
		three, err := w.Start(t.Context(), task)
		if w.must(err); three.Invocation != one.Invocation || three.Status != tapedeck.StatusRunning || !three.Repeated {
			t.Errorf("got %+v", three)
		}
		next()
		synctest.Wait()
		if got := w.tasks("s"); got != "go, two" {
			t.Error(got)
		}
	})
}

// What reverts a thread withdraws what waits there, also what waited before the
// place that it goes to; other threads keep theirs.
func TestQueueAndJumps(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		w.start("s")
		w.queue("queue", "two")
		_, err := w.Start(w.Context(), api.Task{Session: "s", Text: "other", Thread: "side"})
		w.must(err)
		_, err = w.Start(w.Context(), api.Task{Session: "s", Text: "aside", Thread: "side", When: "queue"})
		w.must(err)
		at := w.head("s").Head - 1
		done, err := w.Rewind(w.Context(), api.Rewind{Session: "s", ToOffset: &at, Thread: "main"})
		if tapedeck.KindOf(err) == tapedeck.Conflict { // nothing to revert in main: clear it
			done, err = w.Clear(w.Context(), api.Clear{Session: "s", Thread: "main"})
		}
		w.must(err)
		synctest.Wait()
		if ev := w.events("s")[done.Offset]; !strings.HasPrefix(ev.Type, "session.") {
			w.Errorf("the marker is at a %s", ev.Type)
		}
		if got := w.inputs(); got != "withdrawn two its thread was reverted, waiting aside" {
			w.Error(got)
		}
		_, err = w.Undo(w.Context(), api.Undo{Session: "s"})
		w.must(err)
		synctest.Wait()
		if got := w.tasks("s"); got != "go, other" {
			w.Errorf("after the undo: %s", got)
		}
		fork, err := w.Fork(w.Context(), api.Fork{Parent: "s"})
		w.must(err)
		synctest.Wait()
		if fork.Inputs != nil || w.tasks(fork.ID) != "go, other" {
			w.Errorf("the fork has %+v", fork.Inputs)
		}
		w.must(w.export("s", "b"))
	})
}

// export exports a session whose queue is not empty, and imports it under another id:
// nothing of it is run there.
func (w *world) export(session, id string) error {
	w.Helper()
	out, err := w.Export(w.Context(), api.ExportRequest{Session: session, Format: "ndjson"})
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := out.Write(&b); err != nil {
		return err
	}
	done, err := w.Import(w.Context(), api.ImportRequest{Format: "ndjson"}, strings.NewReader(b.String()))
	if err != nil {
		return err
	}
	synctest.Wait()
	if s := w.head(done.Sessions[0]); len(s.Runs) > 0 || s.Inputs != nil {
		w.Errorf("the import %s runs %+v and has %+v", id, s.Runs, s.Inputs)
	}
	return nil
}

// Erasing an input that waits withdraws it. Closing a session withdraws all.
func TestQueueEraseClose(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		w.start("s")
		w.queue("queue", "two")
		three := w.queue("queue", "three")
		range3 := []tapedeck.OffsetRange{{From: three.Offset, To: three.Offset + 1}}
		_, err := w.Erase(w.Context(), api.Erase{Session: "s", Events: range3})
		refuses(w, err, tapedeck.Conflict, "is running")
		_, err = w.Cancel(w.Context(), "s", "")
		w.must(err)
		synctest.Wait()
		done, err := w.Erase(w.Context(), api.Erase{Session: "s", Events: range3})
		w.must(err)
		if ev := w.events("s")[done.Receipt]; ev.Type != tapedeck.SessionRedacted {
			w.Errorf("the receipt is a %s", ev.Type)
		}
		if raw, _ := json.Marshal(w.events("s")); strings.Contains(string(raw), `"three"`) || !strings.Contains(string(raw), `"two"`) {
			w.Errorf("the log has %s", raw)
		}
		if got := w.inputs(); got != "started, withdrawn  its text was erased" {
			w.Error(got)
		}
		_, err = w.Cancel(w.Context(), "s", "")
		w.must(err)
		w.must(w.Close(w.Context(), "s", ""))
	})
}

// A steerer takes input while it runs: it repeats what it is sent until it is told to
// end.
type steerer struct {
	talker
}

func (steerer) Capabilities() tapedeck.Capabilities { return tapedeck.Capabilities{Steer: true} }
func (steerer) Available() error                    { return nil }

func TestSteer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn, heard := make(chan bool), []string{}
		runner := steerer{func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			for {
				select {
				case more := <-turn:
					if !more {
						return nil
					}
				case <-ctx.Done():
					return ctx.Err()
				}
				messages, err := in.Steer(ctx)
				for _, m := range messages {
					heard = append(heard, string(m))
					say("STEP_STARTED", `{"stepName":"heard"}`)
					say("STEP_FINISHED", `{"stepName":"heard"}`)
				}
				if err != nil {
					return err
				}
			}
		}}
		w := newWorld(t, silent, func(o *engine.Options) { o.Agents[0].Runner = runner })
		w.create("s")
		s := w.start("s")
		turn <- true
		one, two := w.queue("steer", "one"), w.queue("steer", "two")
		waits := w.queue("queue", "three")
		gone := w.queue("steer", "four")
		_, err := w.Withdraw(t.Context(), api.Withdraw{Session: "s", Input: gone.Input})
		if w.must(err); one.When != api.WhenSteer || one.Note != "" || two.Status != view.InputWaiting {
			t.Errorf("got %+v", one)
		}
		turn <- true
		turn <- true
		synctest.Wait()
		if len(heard) != 2 || !strings.Contains(heard[0], `"content":"one"`) || !strings.Contains(heard[1], `"role":"user"`) {
			t.Errorf("it heard %q", heard)
		}
		if got := w.inputs(); got != "steered, steered, waiting three, withdrawn four" {
			t.Error(got)
		}
		late := w.queue("steer", "late")
		turn <- false
		synctest.Wait()
		if got := w.head("s").Runs[0].Invocation; got != waits.Invocation {
			t.Errorf("%s runs", got)
		}
		turn <- true
		synctest.Wait()
		if got := w.inputs(); got != "steered, steered, started, withdrawn four, steered" {
			t.Errorf("%s after %s", got, late.Input)
		}
		turn <- false
		synctest.Wait()
		if got := w.tasks("s"); got != "go, one, two, three, late" {
			t.Error(got)
		}
		for _, ev := range w.events("s") {
			if ev.Type == tapedeck.MessageAdded && ev.Instance != view.AgentInstance("s", "bot", "") {
				t.Errorf("%s is in the context of %q", ev.Data, ev.Instance)
			}
			if d, err := payload.DecodeAs[payload.InputSteered](ev); err == nil && d.ID == one.Input && d.Invocation != s.Invocation {
				t.Errorf("steered into %s", d.Invocation)
			}
		}
	})
}

// A runner whose agent takes input at any time is told when there is some.
func TestSteered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done, asked, heard := make(chan bool), 0, 0
		runner := steerer{func(ctx context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
			for {
				select {
				case <-in.Steered:
					messages, err := in.Steer(ctx)
					if asked++; err != nil {
						return err
					}
					heard += len(messages)
				case <-done:
					return nil
				}
			}
		}}
		w := newWorld(t, silent, func(o *engine.Options) { o.Agents[0].Runner = runner })
		w.create("s")
		w.start("s")
		synctest.Wait()
		w.queue("queue", "later")
		synctest.Wait()
		if asked != 1 || heard != 0 { // once at its beginning: something may have waited
			t.Errorf("asked %d times, heard %d", asked, heard)
		}
		w.queue("steer", "one")
		synctest.Wait()
		w.queue("steer", "two")
		synctest.Wait()
		if asked != 3 || heard != 2 {
			t.Errorf("asked %d times, heard %d", asked, heard)
		}
		if got := w.inputs(); got != "waiting later, steered, steered" {
			t.Error(got)
		}
		done <- true
		done <- true
		synctest.Wait()
	})
}

// An input that has begun, or was withdrawn, does not wait again when its thread goes back to
// before that.
func TestInputsAfterJumps(t *testing.T) {
	for _, thread := range []string{"", "main"} {
		inBubble(t, silent, func(w *world) {
			w.create("s")
			w.start("s")
			for _, text := range []string{"one", "two", "three"} {
				w.queue("queue", text)
			}
			list, err := w.Inputs(w.Context(), "s", "")
			w.must(err)
			w.must(second(w.Withdraw(w.Context(), api.Withdraw{Session: "s", Input: list[2].ID})))
			w.must(second(w.Cancel(w.Context(), "s", "")))
			synctest.Wait()
			w.must(second(w.Cancel(w.Context(), "s", "")))
			synctest.Wait()
			if got := w.inputs(); got != "started, started, withdrawn three" {
				t.Fatal(got)
			}
			for _, to := range []int64{list[2].Offset + 1, list[1].Offset} {
				w.must(second(w.Rewind(w.Context(), api.Rewind{Session: "s", ToOffset: &to, Thread: thread, Force: true})))
				if got := w.inputs(); got != "started, started, withdrawn three" {
					t.Errorf("thread %q, to %d: %s", thread, to, got)
				}
			}
			w.must(second(w.Undo(w.Context(), api.Undo{Session: "s"})))
			if got := w.inputs(); got != "started, started, withdrawn three" {
				t.Errorf("thread %q, after the undo: %s", thread, got)
			}
		})
	}
}
