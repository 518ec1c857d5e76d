package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/engine"
)

func TestAppendBringsIntoForm(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		at := time.UnixMilli(1234)
		w.must(w.append("s", `RUN_STARTED {"runId":"run_1","metadata":{"tapedeck":{"owner":"eng_x","note":"<n>"}}}`))
		for _, ev := range []tapedeck.Event{
			{Type: "TEXT_MESSAGE_CHUNK", Data: json.RawMessage(`{"messageId":"m","delta":"hi"}`)},
			{Type: "TEXT_MESSAGE_CHUNK", Data: json.RawMessage(`{"delta":" there"}`)},
			{Type: "STATE_DELTA", Data: json.RawMessage(`{"delta":[],"rawEvent":null} `), Time: at},
			{Type: "x.y", Data: json.RawMessage("{ }"), Time: at},
			{Type: "x.y", Time: at},
			{Type: "x.y", Data: json.RawMessage(`{"z":1, "a":"<>", "timestamp":"theirs"}`), Time: at},
			{Type: "RUN_FINISHED"},
		} {
			_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{ev}})
			w.must(err)
		}
		compare(w, lines(w.events("s")), `
0 0 session.created {}
1 0 RUN_STARTED {"metadata":{"tapedeck":{"note":"\u003cn\u003e"}},"runId":"INV","threadId":"main"}
2 0 TEXT_MESSAGE_START {"messageId":"m","metadata":{"tapedeck":{"chunk":true}}}
3 0 TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"hi"}
4 0 TEXT_MESSAGE_CONTENT {"messageId":"m","delta":" there"}
5 0 TEXT_MESSAGE_END {"messageId":"m"}
6 0 STATE_DELTA {"delta":[],"timestamp":1234}
7 0 x.y {"timestamp":1234}
8 0 x.y {"timestamp":1234}
9 0 x.y {"z":1,"a":"<>","timestamp":"theirs"}
10 0 RUN_FINISHED {"threadId":"main","runId":"INV"}
`)
	})
}

// TestAppendParts: the parts of an append have the sizes of the events that they become.
func TestAppendParts(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	chunk := func(id string) tapedeck.Event {
		return tapedeck.Event{Type: "TEXT_MESSAGE_CHUNK", Data: json.RawMessage(`{"messageId":"` + id + `","delta":"hi"}`)}
	}
	a := tapedeck.Append{Session: "s", Producer: &tapedeck.Producer{ID: "p"}, Parts: []int{1, 2, 1}, Events: []tapedeck.Event{
		{Type: "RUN_STARTED", Data: json.RawMessage(`{"runId":"r"}`)}, chunk("m"), chunk("m2"), {Type: "RUN_FINISHED"},
	}}
	done, err := w.Append(w.Context(), a)
	w.must(err)
	if got := fmt.Sprint(done.Parts, done.First, done.Next, done.Seq); got != "[1 5 2] 1 9 2" {
		t.Errorf("the parts are %s", got)
	}
	for _, parts := range [][]int{{5}, {1, -1}, {2, 1}, {1, 2, 2}} {
		a.Parts, a.Producer = parts, nil
		if _, err := w.Append(w.Context(), a); tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("parts %v: %v", parts, err)
		}
	}
}

func TestAppendRefusals(t *testing.T) {
	w := newWorld(t, silent, func(o *engine.Options) { o.MaxEvents = 3 })
	w.create("s")
	expect := int64(7)
	for _, tt := range []struct {
		a    tapedeck.Append
		kind tapedeck.Kind
		want string
	}{
		{tapedeck.Append{}, tapedeck.Invalid, "nothing to append"},
		{tapedeck.Append{Chunks: [][]byte{[]byte("x")}}, tapedeck.Invalid, "takes events"},
		{tapedeck.Append{Events: parse("a", "a", "a", "a")}, tapedeck.TooLarge, "at most 3 are allowed | append them in several parts"},
		{tapedeck.Append{Events: parse("a", `session.closed {}`)}, tapedeck.Invalid, "event 2 of 2: session.closed cannot be appended | events of the session itself are made by its verbs"},
		{tapedeck.Append{Events: parse(`session.whatever {}`)}, tapedeck.Invalid, "made by its verbs"},
		{tapedeck.Append{Events: parse("a", "b [1]")}, tapedeck.Invalid, "event 2 of 2: the data of b is not a JSON object"},
		{tapedeck.Append{Events: parse("b {")}, tapedeck.Invalid, "not a JSON object"},
		{tapedeck.Append{Events: parse("b {\"a\":\"\xff\"}")}, tapedeck.Invalid, "not valid UTF-8"},
		{tapedeck.Append{Events: parse("../x {}")}, tapedeck.Invalid, "must begin with"},
		{tapedeck.Append{Events: []tapedeck.Event{{Type: "acme.said", Channel: "nochannel"}}}, tapedeck.Invalid, `there is no channel "nochannel" | the channels are chunks,`},
		{tapedeck.Append{Events: []tapedeck.Event{{Type: "RUN_STARTED", Channel: "nochannel"}}}, tapedeck.Invalid, "there is no channel"},
		{tapedeck.Append{Events: []tapedeck.Event{{Type: "acme.said", Channel: "session"}}}, tapedeck.Invalid, "acme.said cannot be in the channel session, which is the session's own"},
		{tapedeck.Append{Events: parse(`RUN_STARTED {"runId":"r"}`, `RUN_FINISHED {}`, `RUN_FINISHED {}`)}, tapedeck.Conflict, "a RUN_FINISHED must be part of a run, and thread main has no open run"},
		{tapedeck.Append{Events: []tapedeck.Event{{Type: "RUN_STARTED", Invocation: "r"}, {Type: "RUN_FINISHED", Invocation: "r"}, {Type: "RUN_FINISHED", Invocation: "r"}}}, tapedeck.Conflict, "run r has ended"},
		{tapedeck.Append{Events: []tapedeck.Event{{Type: "a", Actor: "\x00"}}}, tapedeck.Invalid, "control character"},
		{tapedeck.Append{Events: []tapedeck.Event{{Type: "a", Time: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)}}}, tapedeck.Invalid, "year 12026"},
		{tapedeck.Append{Events: parse("a", `TEXT_MESSAGE_START {"messageId":"m"}`)}, tapedeck.Conflict, "event 2 of 2: a TEXT_MESSAGE_START must be part of a run, and thread main has no open run | send RUN_STARTED first"},
		{tapedeck.Append{Events: parse(`RUN_STARTED {"runId":"r"}`, `TEXT_MESSAGE_END {"messageId":"m"}`)}, tapedeck.Conflict, "is not open in run r"},
		{tapedeck.Append{Events: parse("a"), Expect: &expect}, tapedeck.Conflict, "is at offset 1, you expected 7 | read from 1"},
		{tapedeck.Append{Session: "none", Events: parse("a")}, tapedeck.NotFound, "no session"},
		{tapedeck.Append{Events: parse("a"), Check: func(*tapedeck.Session) error { return tapedeck.Errorf(tapedeck.Limited, "not now") }}, tapedeck.Limited, "not now"},
	} {
		if tt.a.Session == "" {
			tt.a.Session = "s"
		}
		_, err := w.Append(t.Context(), tt.a)
		refuses(t, err, tt.kind, tt.want)
	}
	if h := w.head("s").Head; h != 1 {
		t.Errorf("something was written: the head is %d", h)
	}
	w.must(w.append("s", "a", "a", "a"))
}

// The order of events does not matter for a repetition by a producer.
func TestAppendDuplicate(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	one := tapedeck.Append{Session: "s", Producer: &tapedeck.Producer{ID: "p"}, Events: parse(
		`RUN_STARTED {"runId":"r"}`, `TEXT_MESSAGE_START {"messageId":"m"}`)}
	two := tapedeck.Append{Session: "s", Producer: &tapedeck.Producer{ID: "p", Seq: 1}, Events: parse(
		`TEXT_MESSAGE_END {"messageId":"m"}`, `RUN_FINISHED {}`)}
	for i, a := range []tapedeck.Append{one, one, two, one, two} {
		done, err := w.Append(t.Context(), a)
		if err != nil || done.Duplicate != (i == 1 || i > 2) || done.Head != int64(3+2*min(1, i/2)) {
			t.Errorf("append %d: got %+v, %v", i, done, err)
		}
	}
	two.Producer.Seq = 2 // the same events, and no repetition
	_, err := w.Append(t.Context(), two)
	refuses(t, err, tapedeck.Conflict, "must be part of a run")
	two.Producer.Seq = 5
	_, err = w.Append(t.Context(), two)
	refuses(t, err, tapedeck.Conflict, "but 2 comes next")
	if got := types(w.events("s")); got != "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_FINISHED" {
		t.Error(got)
	}
}

func TestAppendIntoARunOfOurs(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("s")
		in := w.start("s").Invocation
		for _, line := range []string{`RUN_FINISHED {}`, `RUN_ERROR {"message":"x"}`, `STATE_DELTA {"delta":[]}`, `TEXT_MESSAGE_CHUNK {"messageId":"x","delta":"y"}`} {
			refuses(w, w.append("s", line), tapedeck.Conflict, "is written by the server that drives it")
		}
		_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{
			{Type: tapedeck.PermissionAnswered, Invocation: in, Data: json.RawMessage(`{"id":"q"}`)},
		}})
		w.must(err) // an answer to the agent's question
		_, err = w.Append(w.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{
			{Type: "RUN_STARTED", Thread: "other", Data: json.RawMessage(`{"runId":"theirs"}`)},
		}})
		w.must(err)
	})
}

// speak appends whole runs on a thread of its own, one event at a time, until
// enough were accepted, despite failures.
func (w *world) speak(thread string, runs int) error {
	for i := range runs {
		id := fmt.Sprintf("%s_%d", thread, i)
		for _, ev := range parse(
			`RUN_STARTED {"runId":"`+id+`"}`, `TEXT_MESSAGE_START {"messageId":"`+id+`"}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"`+id+`","delta":"x"}`, `TEXT_MESSAGE_END {"messageId":"`+id+`"}`, `RUN_FINISHED {}`) {
			ev.Thread = thread
			for {
				_, err := w.Append(context.Background(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{ev}})
				if err == nil {
					break
				}
				if tapedeck.KindOf(err) != tapedeck.Unavailable {
					return fmt.Errorf("%s of %s: %w", ev.Type, id, err)
				}
			}
		}
		// A wrong event is refused for the right reason, however busy the session is.
		_, err := w.Append(context.Background(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{
			{Type: "TEXT_MESSAGE_END", Thread: thread, Invocation: id, Data: json.RawMessage(`{"messageId":"` + id + `"}`)}}})
		if tapedeck.KindOf(err) != tapedeck.Conflict {
			return fmt.Errorf("an event after the end of %s: %v", id, err)
		}
	}
	return nil
}

func TestAppendConcurrently(t *testing.T) {
	const writers, runs = 64, 5
	for _, failing := range []bool{false, true} {
		t.Run(fmt.Sprintf("failing commits %v", failing), func(t *testing.T) {
			w := newWorld(t, silent)
			w.create("s")
			stop := make(chan struct{})
			var wg, meanwhile sync.WaitGroup
			if failing {
				meanwhile.Go(func() {
					for {
						select {
						case <-stop:
							w.down.Store(false)
							return
						default:
							w.down.Store(rand.IntN(3) == 0)
						}
					}
				})
			}
			for i := range writers {
				wg.Go(func() {
					if err := w.speak(fmt.Sprintf("t%d", i), runs); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			close(stop)
			meanwhile.Wait()
			if events := w.events("s"); len(events) != 1+writers*runs*5 {
				t.Errorf("there are %d events, want %d", len(events), 1+writers*runs*5)
			}
			if open := w.head("s").Runs; len(open) > 0 {
				t.Errorf("open: %v", open)
			}
		})
	}
}

// After a failed append, the ledger must not rely on events that were not written.
func TestAppendFailedCommit(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	w.must(w.append("s", `RUN_STARTED {"runId":"r"}`))
	for range 3 {
		w.down.Store(true)
		refuses(t, w.append("s", `TEXT_MESSAGE_START {"messageId":"m"}`), tapedeck.Unavailable, "could not be stored")
		w.down.Store(false)
		refuses(t, w.append("s", `TEXT_MESSAGE_END {"messageId":"m"}`), tapedeck.Conflict, "is not open")
	}
	w.must(w.append("s", `TEXT_MESSAGE_START {"messageId":"m"}`))
	w.down.Store(true)
	refuses(t, w.append("s", `TEXT_MESSAGE_END {"messageId":"m"}`, `RUN_FINISHED {}`), tapedeck.Unavailable, "")
	w.down.Store(false)
	refuses(t, w.append("s", `RUN_FINISHED {}`), tapedeck.Conflict, "cannot finish while")
	w.must(w.append("s", `TEXT_MESSAGE_END {"messageId":"m"}`, `RUN_FINISHED {}`))
	w.events("s")
}

func TestAppendAfterWritesPastTheEngine(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	past := func(line string) {
		ev := parse(line)
		ev[0].Invocation = "r"
		_, err := w.store.Append(t.Context(), tapedeck.Append{Session: "s", Events: ev})
		w.must(err)
	}
	w.must(w.append("s", `x.y {}`))
	past(`RUN_STARTED {"runId":"r","threadId":"main"}`)
	w.must(w.append("s", `TEXT_MESSAGE_START {"messageId":"m"}`))
	past(`TEXT_MESSAGE_END {"messageId":"m"}`)
	refuses(t, w.append("s", `TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"x"}`), tapedeck.Conflict, "is not open")
	past(`RUN_FINISHED {"runId":"r","threadId":"main"}`)
	w.must(w.append("s", `RUN_STARTED {"runId":"r2"}`))
	if got := types(w.events("s")); got != "x.y RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_FINISHED RUN_STARTED" {
		t.Error(got)
	}
}

// A ledger that is ahead because of a failed commit must not count as right when
// another writer has appended as many events.
func TestAppendPastTheEngineAfterAFailedCommit(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	w.must(w.append("s", `RUN_STARTED {"runId":"r"}`))
	w.down.Store(true)
	refuses(t, w.append("s", `TEXT_MESSAGE_START {"messageId":"m"}`), tapedeck.Unavailable, "")
	w.down.Store(false)
	_, err := w.store.Append(t.Context(), tapedeck.Append{Session: "s", Events: parse("x.y")})
	w.must(err)
	refuses(t, w.append("s", `TEXT_MESSAGE_END {"messageId":"m"}`), tapedeck.Conflict, "is not open")
}

func TestAppendAfterDeleteAndCreate(t *testing.T) {
	w := newWorld(t, silent)
	for range 3 {
		w.create("s")
		w.must(w.append("s", `RUN_STARTED {"runId":"r"}`, `TEXT_MESSAGE_START {"messageId":"m"}`))
		w.events("s")
		w.must(w.Delete(t.Context(), "s"))
		refuses(t, w.append("s", `TEXT_MESSAGE_END {"messageId":"m"}`), tapedeck.NotFound, "no session")
	}
}

// A recreated session with the same head is another session.
func TestAppendAfterCreateToTheSameHead(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	w.must(w.append("s", `RUN_STARTED {"runId":"r"}`, `TEXT_MESSAGE_START {"messageId":"m"}`))
	w.must(w.store.Delete(t.Context(), "s"))
	_, err := w.store.Create(t.Context(), tapedeck.Spec{ID: "s", Events: parse("session.created", "x.y", "x.y")})
	w.must(err)
	refuses(t, w.append("s", `TEXT_MESSAGE_END {"messageId":"m"}`), tapedeck.Conflict, "must be part of a run")
}

// Even if others are always faster, events that fit in no form are refused at
// once, and events that fit in another form are formed again.
func TestAppendOvertaken(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	overtaken := 0
	overtake := func(lines ...string) func() {
		return func() {
			overtaken++
			w.must(w.append("s", lines...))
		}
	}
	w.store.before = overtake("x.y")
	refuses(t, w.append("s", `TEXT_MESSAGE_END {"messageId":"m"}`), tapedeck.Conflict, "must be part of a run")
	w.store.before = overtake(`RUN_STARTED {"runId":"run_1"}`)
	w.must(w.append("s", `TEXT_MESSAGE_START {"messageId":"m"}`)) // nothing was open when it set out
	w.store.before = overtake(`TEXT_MESSAGE_END {"messageId":"m"}`, `RUN_FINISHED {}`, `RUN_STARTED {"runId":"run_2"}`)
	w.must(w.append("s", `STATE_DELTA {"delta":[]}`)) // of run_1 when it set out
	if events := w.events("s"); events[len(events)-1].Invocation != "run_2" || overtaken != 3 {
		t.Errorf("overtaken %d times; the last event is of %s", overtaken, events[len(events)-1].Invocation)
	}
	asked := 0
	w.store.before = overtake("x.y")
	_, err := w.Append(t.Context(), tapedeck.Append{Session: "s", Events: parse(`RUN_STARTED {"runId":"run_3"}`), Check: func(*tapedeck.Session) error {
		asked++
		return nil
	}})
	refuses(t, err, tapedeck.Conflict, "thread main is busy with run run_2")
	if asked != 1 {
		t.Errorf("the writer was asked %d times", asked)
	}
}

// If a client disconnects during an append, the ledger is restored, not wrong.
func TestAppendCancelled(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.Append(ctx, tapedeck.Append{Session: "s", Events: parse(`RUN_STARTED {"runId":"r"}`)})
	if err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("got %v", err)
	}
	w.must(w.append("s", `RUN_STARTED {"runId":"r"}`))
}

// A member with another case, or one that a later member of the same name
// replaces, does not count: it does not make the engine the owner of a run.
func TestOwnerThatDoesNotCount(t *testing.T) {
	w := newWorld(t, echo)
	for i, data := range []string{
		`{"runId":"r","Metadata":{"tapedeck":{"owner":"eng_x"}}}`,
		`{"runId":"r","metadata":{"tapedeck":{"owner":"eng_x"}},"metadata":{}}`,
		`{"runId":"r","metadata":{},"metadata":{"tapedeck":{"owner":"eng_x"}}}`,
		`{"runId":"r","metadata":{"tapedeck":{"OWNER":"eng_x"}}}`,
	} {
		id := fmt.Sprint("s", i)
		w.create(id)
		w.must(w.append(id, "RUN_STARTED "+data))
		if runs := w.head(id).Runs; len(runs) != 1 || runs[0].Owner != "" {
			t.Errorf("%s: %+v", data, runs)
		}
	}
}
