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
)

// outside appends the beginning of a run that a program writes; meta is the metadata.
func (w *world) outside(run, meta string) {
	w.Helper()
	w.must(w.append("s", `RUN_STARTED {"threadId":"main","runId":"`+run+`","metadata":{"tapedeck":{`+meta+`}}}`))
}

func (w *world) outsideEnds(run string) {
	w.Helper()
	w.must(w.append("s", `RUN_FINISHED {"threadId":"main","runId":"`+run+`"}`))
	synctest.Wait()
}

// What is sent to the agent of an outside program waits for that program: no agent of the server
// gets it, also not after a restart.
func TestInputForAnOutsideAgent(t *testing.T) {
	for name, meta := range map[string]string{"my-loop": `"agent":"my-loop"`, "": ``} {
		t.Run("agent "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, talker(func(context.Context, tapedeck.Invocation, func(string, string) bool) error { return nil }))
				w.create("s")
				w.outside("inv_1", meta)
				for _, when := range []string{"steer", "queue"} {
					in := w.queue(when, when)
					if in.When != when || in.Note == "" { // the program sees what the user wants
						t.Errorf("got %+v", in)
					}
				}
				w.outsideEnds("inv_1")
				for _, repeated := range []bool{false, true} { // it belongs to the agent of the inputs before it
					got, err := w.Start(t.Context(), api.Task{Session: "s", Text: "late", When: api.WhenQueue, MessageID: "m"})
					w.must(err)
					if got.Input == "" || got.Repeated != repeated || !strings.Contains(got.Note, "takes it") || strings.Contains(got.Note, "open run") {
						t.Errorf("got %+v", got)
					}
				}
				w.Engine = w.open(silent)
				synctest.Wait()
				if got := w.inputs(); got != "waiting steer, waiting queue, waiting late" {
					t.Error(got)
				}
				list, err := w.Inputs(t.Context(), "s", "")
				w.must(err)
				for _, in := range list {
					if !in.Outside || in.Agent != name {
						t.Errorf("got %+v", in)
					}
				}
				if got := w.tasks("s"); got != "" {
					t.Errorf("agents got %s", got)
				}
			})
		})
	}
}

// Without an open run, a cancel of everything withdraws what waits in all threads.
func TestCancelAllBetweenRuns(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		w.outside("inv_1", `"agent":"my-loop"`)
		w.queue("queue", "one")
		w.queue("steer", "two")
		w.outsideEnds("inv_1")
		_, err := w.Cancel(w.Context(), "s", "")
		refuses(w, err, tapedeck.Conflict, "nothing is running in session s")
		_, err = w.CancelAll(w.Context(), "s", "inv_1")
		refuses(w, err, tapedeck.Conflict, "inv_1 is not running")
		if got := w.inputs(); got != "waiting one, waiting two" {
			w.Error(got)
		}
		done, err := w.CancelAll(w.Context(), "s", "")
		if w.must(err); done.Withdrawn != 2 || done.Invocation != "" || done.Offset != -1 || w.waiting() != "" {
			w.Errorf("got %+v", done)
		}
		_, err = w.CancelAll(w.Context(), "s", "")
		refuses(w, err, tapedeck.Conflict, "and no input waits")
	})
}

// Between the runs of an outside program no agent of the server answers in its place: a message
// without a name is refused, and one with its name waits for it.
func TestBetweenOutsideRuns(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		w.outside("inv_1", `"agent":"my-loop"`)
		w.outsideEnds("inv_1")
		head := w.head("s").Head
		send := func(agent, when string) (api.Started, error) {
			return w.Start(w.Context(), api.Task{Session: "s", Text: "go", Agent: agent, When: when})
		}
		for _, when := range []string{"", "queue", "steer", "interrupt"} {
			_, err := send("", when)
			refuses(w, err, tapedeck.Conflict, "this server has no agent my-loop, which the thread has, and the message names no agent | name an agent of the server; with when=queue a message that names my-loop waits until a program of that name takes it")
			_, err = send("nobody", when)
			refuses(w, err, tapedeck.NotFound, `there is no agent "nobody" | there are: bot mute`)
		}
		_, err := send("my-loop", "now")
		refuses(w, err, tapedeck.Conflict, "this server has no agent my-loop, so nothing begins here")
		if got := w.head("s").Head; got != head {
			w.Errorf("the refused tasks append %d events", got-head)
		}
		in, err := send("my-loop", "queue")
		w.must(err)
		synctest.Wait()
		if in.Status != "waiting" || !strings.Contains(in.Note, "my-loop") || w.inputs() != "waiting go" {
			w.Errorf("got %+v, and %s", in, w.inputs())
		}
		started, err := send("mute", "queue") // it does not wait behind what is for the program
		w.must(err)
		if started.Status != tapedeck.StatusRunning {
			w.Errorf("got %+v", started)
		}
		w.must(second(w.Cancel(w.Context(), "s", started.Invocation)))
		if _, err := w.Withdraw(w.Context(), api.Withdraw{Session: "s", Input: in.Input}); err != nil {
			w.Error(err)
		}
		in, err = send("my-loop", "queue") // it had the thread before
		w.must(err)
		w.must(w.outsideTakes(in.Input))
		if _, err := send("bot", ""); tapedeck.KindOf(err) != tapedeck.Conflict {
			w.Errorf("while the run of the program is open: %v", err)
		}
		w.outsideEnds("inv_2")
		started, err = send("bot", "queue")
		w.must(err)
		if started.Input != "" {
			w.Errorf("an agent of the server waits: %+v", started)
		}
	})
}

// What waits for a program names it, also if the log has no run of it any more.
func TestInputBehindOneForAProgram(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		w.outside("inv_1", `"agent":"my-loop"`)
		w.outsideEnds("inv_1")
		send := func() error {
			return second(w.Start(w.Context(), api.Task{Session: "s", Text: "go", Agent: "my-loop", When: "queue"}))
		}
		w.must(send())
		w.must(second(w.Rewind(w.Context(), api.Rewind{Session: "s", ToOffset: new(int64(1)), Thread: "main"})))
		refuses(w, send(), tapedeck.NotFound, `there is no agent "my-loop" | there are: bot mute`) // the rewind has withdrawn it, too
		w.outside("inv_2", `"agent":"my-loop"`)
		w.must(send())
		w.outsideEnds("inv_2")
		w.must(send())
		if got := w.inputs(); got != "withdrawn go its thread was reverted, waiting go, waiting go" {
			w.Error(got)
		}
	})
}

func (w *world) outsideTakes(input string) error {
	w.outside("inv_2", `"agent":"my-loop"`)
	_, err := w.Take(w.Context(), api.Take{Session: "s", Input: input, Invocation: "inv_2"})
	return err
}

// The agent of the session that the server does not have any more is an outside program, too.
func TestInputForAnAgentThatIsGone(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.must(second(w.Create(w.Context(), api.NewSession{ID: "s", Agent: "mute"})))
		w.Engine = w.open(silent, func(o *engine.Options) { o.Agents = o.Agents[:1] })
		w.must(second(w.Start(w.Context(), api.Task{Session: "s", Text: "go", Agent: "bot"})))
		in, err := w.Start(w.Context(), api.Task{Session: "s", Text: "later", Agent: "mute", When: "queue"})
		w.must(err)
		list, err := w.Inputs(w.Context(), "s", "")
		w.must(err)
		if in.Input == "" || len(list) != 1 || !list[0].Outside || list[0].Agent != "mute" {
			w.Errorf("got %+v, and %+v", in, list)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// What an outside program takes is in the context of the instance that its run names.
func TestTakenByAnInstance(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{
			{Type: tapedeck.RunStarted, Invocation: "inv_1", Instance: "prog", Data: json.RawMessage(`{"threadId":"main","runId":"inv_1"}`)},
		}})
		w.must(err)
		taken, err := w.Take(w.Context(), api.Take{Session: "s", Input: w.queue("queue", "one").Input, Invocation: "inv_1"})
		w.must(err)
		if ev := w.events("s")[taken.Offset]; ev.Type != tapedeck.MessageAdded || ev.Instance != "prog" {
			t.Errorf("the message is %s of %q", ev.Type, ev.Instance)
		}
	})
}

// A task in a thread that a program has added for an agent which the server lacks is for that
// program, and nobody answers in its place.
func TestTaskForAnAddedAgent(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{
			{Type: tapedeck.InstanceStarted, Data: json.RawMessage(`{"id":"prog","name":"my-loop"}`)},
		}})
		w.must(err)
		_, err = w.Start(w.Context(), api.Task{Session: "s", Text: "go"})
		refuses(w, err, tapedeck.Conflict, "this server has no agent my-loop")
		w.must(second(w.Start(w.Context(), api.Task{Session: "s", Text: "go", Agent: "bot"})))
	})
}

// An outside program gets an input in its open run, once.
func TestTake(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		w.outside("inv_1", `"agent":"my-loop"`)
		in := w.queue("queue", "one")
		take := func(input, run string) (api.Taken, error) {
			return w.Take(w.Context(), api.Take{Session: "s", Input: input, Invocation: run})
		}
		refused := func(input, run string, kind tapedeck.Kind, want string) {
			w.Helper()
			_, err := take(input, run)
			refuses(w, err, kind, want)
		}
		refused(in.Input, "inv_2", tapedeck.Conflict, "the run inv_2 is not open | the open run of thread main is inv_1")
		refused(in.Input, "../x", tapedeck.Invalid, "the run")
		refused("inp_x", "inv_1", tapedeck.NotFound, "these wait: "+in.Input)
		w.outsideEnds("inv_1")
		for run, meta := range map[string]string{"inv_other": `"agent":"other"`, "inv_nameless": ""} {
			w.outside(run, meta)
			refused(in.Input, run, tapedeck.Conflict, "is for the agent my-loop, and the run "+run+" is of")
			w.outsideEnds(run)
		}
		refused(in.Input, "inv_1", tapedeck.Conflict, "the run inv_1 is not open | append a RUN_STARTED with a new id in thread main first")
		w.outside("inv_2", `"agent":"my-loop"`)
		got, err := take(in.Input, "inv_2")
		if w.must(err); got.Message.Text() != "one" || got.Repeated {
			w.Errorf("got %+v", got)
		}
		again, err := take(in.Input, "inv_2")
		if w.must(err); again.Message.Text() != "one" || again.Message.ID != got.Message.ID || again.Offset != got.Offset || !again.Repeated {
			w.Errorf("a second time: %+v", again)
		}
		ev := w.events("s")[got.Offset]
		if ev.Type != tapedeck.MessageAdded || ev.Invocation != "inv_2" || ev.Actor != "user:ada" {
			w.Errorf("got %+v", ev)
		}
		if w.inputs() != "steered" || w.tasks("s") != "one" || w.waiting() != "" {
			w.Errorf("%s, %s", w.inputs(), w.tasks("s"))
		}
		w.outsideEnds("inv_2")
		w.outside("inv_3", "")
		refused(in.Input, "inv_3", tapedeck.Conflict, "was steered already, in inv_2")
	})
}

// A program takes only what waits for a program, and only in a run that it writes.
func TestTakeIsForPrograms(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		w.outside("inv_1", `"agent":"my-loop"`)
		theirs := w.queue("queue", "theirs")
		named := func(task api.Task) api.Started {
			task.Session, task.Text, task.When = "s", "ours", "queue"
			in, err := w.Start(w.Context(), task)
			w.must(err)
			return in
		}
		ours := named(api.Task{Agent: "bot"})
		if own := named(api.Task{Agent: "my-loop"}); own.Note == "" { // the name of the run's agent is good, though the server has none
			w.Errorf("got %+v", own)
		}
		_, err := w.Take(w.Context(), api.Take{Session: "s", Input: ours.Input, Invocation: "inv_1"})
		refuses(w, err, tapedeck.Conflict, "waits for an agent of this server")
		for _, task := range []api.Task{{Budget: &tapedeck.Amount{Tokens: 1}}, {Config: []byte(`{}`)}} {
			task.Session, task.Text, task.When = "s", "x", "queue"
			_, err = w.Start(w.Context(), task)
			refuses(w, err, tapedeck.Invalid, "has neither a config nor a budget")
		}
		w.outsideEnds("inv_1")
		if run := w.head("s").Runs; len(run) != 1 || run[0].Invocation != ours.Invocation {
			w.Errorf("an input for another agent does not wait behind: %+v", run)
		}
		_, err = w.Take(w.Context(), api.Take{Session: "s", Input: theirs.Input, Invocation: ours.Invocation})
		refuses(w, err, tapedeck.Conflict, "this server drives the run")
		_, err = w.Cancel(w.Context(), "s", ours.Invocation)
		w.must(err)
	})
}

// A queue belongs to the agent of its run, which need not be the agent of the session. What was
// meant to steer one agent does not steer the next one.
func TestQueueBelongsToTheAgentOfTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask, done := make(chan bool), make(chan bool)
		var did []string
		as := func(name string) engine.Agent {
			return engine.Agent{Agent: tapedeck.Agent{Name: name}, Runner: steerer{func(ctx context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
				did = append(did, name+" does "+in.Task)
				for {
					select {
					case <-ask:
					case <-done:
						return nil
					}
					messages, err := in.Steer(ctx)
					for range messages {
						did = append(did, name+" is steered")
					}
					if err != nil {
						return err
					}
				}
			}}}
		}
		w := newWorld(t, silent, func(o *engine.Options) { o.Agents = []engine.Agent{as("a"), as("b")} })
		w.create("s")
		start := func(text, agent, when string) {
			_, err := w.Start(t.Context(), api.Task{Session: "s", Text: text, Agent: agent, When: when})
			w.must(err)
			synctest.Wait()
		}
		start("one", "b", "")
		start("two", "a", "queue")
		start("three", "", "steer")
		tell := func(c chan bool) {
			select {
			case c <- true:
			default:
				t.Error("no agent runs")
			}
			synctest.Wait()
		}
		tell(done)
		tell(ask)
		tell(done)
		tell(done)
		compare(t, strings.Join(did, "\n"), "b does one\na does two\nb does three")
	})
}
