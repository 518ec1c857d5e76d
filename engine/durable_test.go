package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/view"
)

// A ledgered is a durable runner: all that it knows is in the log.
type ledgered struct{ talker }

func (ledgered) Durable() {}

func (ledgered) Opening(_ context.Context, in tapedeck.Invocation) ([]tapedeck.Event, error) {
	if in.Task == "refuse" {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "it cannot begin")
	}
	return []tapedeck.Event{{Type: "workflow.started", Data: json.RawMessage(`{"digest":"d","resumes":"` + in.Resumes + `"}`)}}, nil
}

// begunWith returns the types of the events of the invocation so far.
func begunWith(ctx context.Context, in tapedeck.Invocation) string {
	var types []string
	for ev, err := range in.Begun(ctx) {
		if err != nil {
			return err.Error()
		}
		types = append(types, ev.Type)
	}
	return strings.Join(types, " ")
}

func note(say func(string, string) bool, text string) {
	say("CUSTOM", fmt.Sprintf(`{"name":"note","value":%q}`, text))
}

// notes returns what the runner noted.
func (w *world) notes(session string) string {
	var out []string
	for _, ev := range w.events(session) {
		var d struct{ Name, Value string }
		if ev.Type == "CUSTOM" && json.Unmarshal(ev.Data, &d) == nil && d.Name == "note" {
			out = append(out, d.Value)
		}
	}
	return strings.Join(out, "|")
}

// durable makes the agent bot durable, with an agent helper that it may start.
func durable(bot, helper talker) func(*engine.Options) {
	return func(o *engine.Options) {
		o.Agents[0].Runner, o.Agents[0].Starts = ledgered{bot}, []string{"helper"}
		o.Agents = append(o.Agents, engine.Agent{Agent: tapedeck.Agent{Name: "helper"}, Runner: helper})
		o.IdleTimeout, o.RunTimeout = time.Minute, time.Hour
	}
}

func durably(t *testing.T, bot, helper talker, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, silent, durable(bot, helper))
		w.create("s")
		test(w)
	})
}

func (w *world) recover(bot, helper talker) {
	w.Helper()
	w.Engine = w.open(silent, durable(bot, helper))
	if n, err := w.Recover(w.Context()); n != 0 || err != nil {
		w.Errorf("%d runs were ended, %v", n, err)
	}
	synctest.Wait()
}

// delegates starts the helper on a named thread, and notes the result.
func delegates(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
	d, err := in.Delegate(ctx, tapedeck.Delegation{Agent: "helper", Task: "help", Thread: "thread_T"})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	note(say, fmt.Sprint(d.Status, " ", d.Text, d.Message, err))
	return err
}

// speaks says a text, after the number of events that are its history.
func speaks(text string) talker {
	return func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		n := 0
		for ev := range in.History(ctx) {
			if ev.ThreadName() == in.Thread {
				n++
			}
		}
		say("TEXT_MESSAGE_START", `{"messageId":"`+in.ID+`","role":"assistant"}`)
		say("TEXT_MESSAGE_CONTENT", fmt.Sprintf(`{"messageId":%q,"delta":"%s after %d"}`, in.ID, text, n))
		say("TEXT_MESSAGE_END", `{"messageId":"`+in.ID+`"}`)
		return nil
	}
}

// A durable run continues after each restart, under its id, also if it was begun by a
// resume. Its sub-agent is started again on the same thread.
func TestDurableRunContinues(t *testing.T) {
	durably(t, delegates, silent, func(w *world) {
		first := w.start("s")
		synctest.Wait()
		_, err := w.Cancel(w.Context(), "s", first.Invocation)
		w.must(err)
		again, err := w.Resume(w.Context(), api.Resume{Session: "s"})
		w.must(err)
		crash(w)
		w.recover(func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			in.Inbox.Rests() // or else it is suspected of the next crash
			return delegates(ctx, in, say)
		}, silent)
		crash(w)
		bot := func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			note(say, in.Resumes+" "+begunWith(ctx, in))
			return delegates(ctx, in, say)
		}
		w.recover(bot, speaks("hi"))
		if _, status := w.end("s"); status != tapedeck.StatusComplete {
			t.Errorf("it is %s", status)
		}
		const begun = "message.added workflow.started RUN_STARTED SUBAGENT_STARTED"
		notes := w.notes("s")
		if !strings.HasPrefix(notes, first.Invocation+" "+begun) || !strings.Contains(notes, "|complete hi after ") {
			t.Errorf("the notes are %s", notes)
		}
		all, _ := w.threads("s")
		var runs []string
		for _, r := range all.Runs {
			runs = append(runs, fmt.Sprint(r.Thread, " ", r.Status, " ", r.Invocation == again.Invocation))
		}
		want := "main cancelled false, thread_T cancelled false, main complete true, thread_T interrupted false, thread_T interrupted false, thread_T complete false"
		if got := strings.Join(runs, ", "); got != want {
			t.Errorf("the runs are %s, want %s", got, want)
		}
	})
}

// A stop of the server leaves a durable run open; no time limit of the server ends it.
func TestDurableRunOutlivesTheServer(t *testing.T) {
	durably(t, silent, silent, func(w *world) {
		began := w.start("s")
		time.Sleep(100 * time.Hour)
		w.must(w.Shutdown(w.Context()))
		if runs := w.head("s").Runs; len(runs) != 1 {
			t.Fatalf("%v are open", runs)
		}
		w.recover(func(context.Context, tapedeck.Invocation, func(string, string) bool) error { return nil }, silent)
		if end, status := w.end("s"); status != tapedeck.StatusComplete || end.Invocation != began.Invocation {
			t.Errorf("it is %s", status)
		}
	})
}

// A delegation on a named thread happens once. Its task is no history, and what the
// first one said is the outcome of the second one.
func TestDelegateOnce(t *testing.T) {
	twice := func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		if err := delegates(ctx, in, say); err != nil {
			return err
		}
		return delegates(ctx, in, say)
	}
	durably(t, twice, speaks("hi"), func(w *world) {
		w.start("s")
		synctest.Wait()
		if got := w.notes("s"); got != "complete hi after 0<nil>|complete hi after 0<nil>" {
			t.Error(got)
		}
		if got := w.ends("s"); strings.Join(got, ", ") != "helper complete, bot complete" {
			t.Error(got)
		}
	})
	durably(t, twice, func(context.Context, tapedeck.Invocation, func(string, string) bool) error {
		return tapedeck.Errorf(tapedeck.Invalid, "no luck")
	}, func(w *world) {
		w.start("s")
		synctest.Wait()
		if got := w.notes("s"); got != "failed no luck<nil>|failed no luck<nil>" {
			t.Error(got)
		}
	})
}

// A rewind of the thread of a sub-agent makes it start again; the run that started it
// does not notice.
func TestRewindOfADelegation(t *testing.T) {
	n := 0
	durably(t, delegates, func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		if n++; n == 1 {
			return chatty(ctx, in, say)
		}
		return speaks("hi")(ctx, in, say)
	}, func(w *world) {
		began := w.start("s")
		synctest.Wait()
		child := w.head("s").Runs[1]
		_, err := w.Rewind(w.Context(), api.Rewind{Session: "s", Thread: "thread_T", BeforeInvocation: child.Invocation})
		w.must(err)
		synctest.Wait()
		if got := w.notes("s"); got != "complete hi after 0<nil>" {
			t.Error(got)
		}
		if end, status := w.end("s"); status != tapedeck.StatusComplete || end.Invocation != began.Invocation {
			t.Errorf("it is %s", status)
		}
	})
}

// asks yields a question with a form, and notes the answer that its inbox gets.
func asks(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
	return asksWith(ctx, in, say, `{"id":"sum","type":"number","required":true,"min":1},{"id":"how","type":"enum","options":[{"value":"fast"}]},{"id":"day","type":"date"},{"id":"shown","type":"string","readOnly":true}`)
}

func asksWith(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool, form string) error {
	if !strings.Contains(begunWith(ctx, in), "permission.requested") {
		say("permission.requested", `{"id":"per_1","options":[{"id":"submit","kind":"allow_once"},{"id":"no","kind":"reject_once"}],"form":[`+form+`]}`)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-in.Inbox.Ready:
		}
		for _, ev := range in.Inbox.Take() {
			note(say, ev.Type+" "+string(ev.Data))
			if ev.Type == tapedeck.PermissionAnswered {
				return nil
			}
		}
	}
}

// An answer to a question that a durable runner yielded arrives in its inbox, also
// after a restart. It must fit the form.
func TestAnswerWithInput(t *testing.T) {
	durably(t, asks, silent, func(w *world) {
		w.start("s")
		crash(w)
		w.recover(asks, silent)
		w.waitsFor("s", "per_1")
		if got := strings.Count(types(w.events("s")), "permission.requested"); got != 1 {
			t.Errorf("it was asked %d times", got)
		}
		answer := func(option, input string) error {
			a := api.Answer{Session: "s", Permission: "per_1", Option: option, Actor: "user:ada"}
			if err := json.Unmarshal([]byte(input), &a.Input); err != nil {
				t.Fatal(err)
			}
			_, err := w.Answer(w.Context(), a)
			return err
		}
		for input, want := range map[string]string{
			`{}`: `"sum" of the permission per_1 is required`, `{"sum":"1"}`: "must be a number", `{"sum":0}`: "at least 1",
			`{"sum":1,"other":2}`: "the fields are sum, how, day", `{"sum":1,"shown":"x"}`: `no field "shown"`,
			`{"sum":1,"how":"slow"}`: "choose one of fast", `{"sum":1,"day":"24.12.2026"}`: "must be a date",
		} {
			refuses(t, answer("submit", input), tapedeck.Invalid, want)
		}
		refuses(t, answer("submit", `{"sum":1,"how":"`+strings.Repeat("x", 1<<20)+`"}`), tapedeck.TooLarge, "at most 1048576 are allowed")
		w.must(answer("submit", `{"sum":2.5,"how":"fast","day":"2026-12-24"}`))
		synctest.Wait()
		if got := w.notes("s"); !strings.Contains(got, `"input":{"day":"2026-12-24","how":"fast","sum":2.5}`) {
			t.Error(got)
		}
		if _, status := w.end("s"); status != tapedeck.StatusComplete {
			t.Errorf("it is %s", status)
		}
	})
	durably(t, asks, silent, func(w *world) {
		w.start("s")
		synctest.Wait()
		_, err := w.Answer(w.Context(), api.Answer{Session: "s", Permission: "per_1", Option: "no"})
		w.must(err)
	})
}

// A field that is left out keeps its default, which must fit the field as an answer must.
func TestDefaultIsAnAnswer(t *testing.T) {
	for form, want := range map[string]string{
		`{"id":"k","type":"integer","max":5,"default":9}`:                  `must be at most 5; its default is 9 | give input.k`,
		`{"id":"k","type":"string","required":true,"default":""}`:          `its text is empty; its default is ""`,
		`{"id":"k","type":"string","required":true,"default":null}`:        `is required`,
		`{"id":"k","type":"integer","max":5,"default":9,"readOnly":true}`:  "",
		`{"id":"k","type":"integer","max":5,"default":5}`:                  "",
		`{"id":"k","type":"enum","options":[{"value":"a"}],"default":"b"}`: `cannot be "b"`,
		`{"id":"k","type":"integer","default":null}`:                       "",
		`{"id":"k","type":"string","maxLength":2,"default":"abc"}`:         `at most 2 characters`,
		`{"id":"k","type":"boolean","default":"true"}`:                     `must be true or false`,
	} {
		durably(t, func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			return asksWith(ctx, in, say, form)
		}, silent, func(w *world) {
			w.start("s")
			synctest.Wait()
			_, err := w.Answer(w.Context(), api.Answer{Session: "s", Permission: "per_1", Option: "submit"})
			if want == "" {
				w.must(err)
				return
			}
			refuses(t, err, tapedeck.Invalid, want)
			_, err = w.Answer(w.Context(), api.Answer{Session: "s", Permission: "per_1", Option: "no"})
			w.must(err)
		})
	}
}

func TestSendMessage(t *testing.T) {
	durably(t, asks, silent, func(w *world) {
		send := func(m api.SendMessage) error {
			m.Session = "s"
			_, err := w.SendMessage(w.Context(), m)
			return err
		}
		refuses(t, send(api.SendMessage{Name: "Paid"}), tapedeck.Conflict, "no workflow is running")
		w.start("s")
		synctest.Wait()
		refuses(t, send(api.SendMessage{}), tapedeck.Invalid, "no name")
		refuses(t, send(api.SendMessage{Name: "Paid", Thread: "other"}), tapedeck.Conflict, "on thread other")
		refuses(t, send(api.SendMessage{Name: "Paid", Correlation: new("")}), tapedeck.Invalid, "the correlation of the message is an empty text")
		refuses(t, send(api.SendMessage{Name: "Paid", Correlation: new(strings.Repeat("x", 513))}), tapedeck.Invalid, "at most 512")
		deep := json.RawMessage(strings.Repeat("[", 991) + strings.Repeat("]", 991)) // an event could have it, and no variable
		refuses(t, send(api.SendMessage{Name: "Paid", Variables: tapedeck.Members{"sum": deep}}), tapedeck.Invalid, `"sum" of the message is nested more than 990 deep`)
		w.must(send(api.SendMessage{Name: "Paid", Correlation: new("7"), Variables: tapedeck.Members{"sum": json.RawMessage("5")}, Actor: "user:ada"}))
		synctest.Wait()
		if got := w.notes("s"); got != `workflow.message {"name":"Paid","correlation":"7","variables":{"sum":5}}` {
			t.Error(got)
		}
		var err error
		for range 1001 {
			if err = send(api.SendMessage{Name: "More"}); err != nil {
				break
			}
		}
		refuses(t, err, tapedeck.Limited, "too many messages wait")
	})
}

// The messages that wait are bounded in bytes, too.
func TestSendLargeMessages(t *testing.T) {
	durably(t, asks, silent, func(w *world) {
		w.start("s")
		synctest.Wait()
		send := func(n int) error {
			_, err := w.SendMessage(w.Context(), api.SendMessage{Session: "s", Name: "Paid", Variables: tapedeck.Members{"text": json.RawMessage(`"` + strings.Repeat("x", n) + `"`)}})
			return err
		}
		refuses(t, send(1<<20), tapedeck.TooLarge, "at most 1048576 are allowed")
		for range 8 {
			w.must(send(1<<20 - 100))
		}
		refuses(t, send(1<<20-100), tapedeck.Limited, "too many messages wait")
		w.must(send(100))
	})
}

// A durable run that was interrupted is resumed also after another run on its thread; a
// task begins a new one.
func TestResumeDurableRun(t *testing.T) {
	n := 0
	durably(t, func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		note(say, in.Resumes+" "+in.Context)
		if n++; n < 3 {
			return silent(ctx, in, say)
		}
		return nil
	}, speaks("hi"), func(w *world) {
		first := w.start("s")
		synctest.Wait()
		_, err := w.Cancel(w.Context(), "s", "")
		w.must(err)
		w.start("s") // a new one
		synctest.Wait()
		second, err := w.Cancel(w.Context(), "s", "")
		w.must(err)
		w.turn("s", "helper", "")
		_, err = w.Resume(w.Context(), api.Resume{Session: "s"})
		w.must(err)
		synctest.Wait()
		if got, want := w.notes("s"), " | |"+second.Invocation+" "; got != want || first.Invocation == "" {
			t.Errorf("%q, want %q", got, want)
		}
		_, err = w.Resume(w.Context(), api.Resume{Session: "s"})
		refuses(t, err, tapedeck.Conflict, "nothing to resume")
	})
}

// The opening of a run is in the log with its beginning, or the run does not begin.
func TestOpening(t *testing.T) {
	durably(t, silent, silent, func(w *world) {
		_, err := w.Start(w.Context(), api.Task{Session: "s", Text: "refuse"})
		refuses(t, err, tapedeck.Invalid, "it cannot begin")
		if got := types(w.events("s")); got != "" || w.Running() != 0 {
			t.Errorf("the log has %s", got)
		}
		w.start("s")
		f := view.NewWorkflowFold("")
		for _, ev := range w.events("s") {
			f.Apply(&ev)
		}
		if x, ok := f.Workflow(); !ok || x.Digest != "d" || x.Invocation == "" {
			t.Errorf("%+v", x)
		}
	})
}
