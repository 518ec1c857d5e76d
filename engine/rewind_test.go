package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

// TestRewindGoesOnlyBack: a page that was loaded before another client rewound the
// session must not make hidden turns active again. An undo, and force, do.
func TestRewindGoesOnlyBack(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		p := w.tape("s")
		p.play("task a; task b; task c; rewind before a") // b and c are reverted, too
		head := w.head("s").Head
		log := w.log("s")
		b := log[slices.IndexFunc(log, func(e tapedeck.Event) bool { return e.Invocation == p.invocations["b"] })].Offset
		ctx := w.Context()
		for name, do := range map[string]func() (api.Rewound, error){
			"rewind before b": func() (api.Rewound, error) {
				return w.Rewind(ctx, api.Rewind{Session: "s", BeforeInvocation: p.invocations["b"]})
			},
			"rewind to b": func() (api.Rewound, error) {
				return w.Rewind(ctx, api.Rewind{Session: "s", ToOffset: &b})
			},
			"rewind of one thread": func() (api.Rewound, error) {
				return w.Rewind(ctx, api.Rewind{Session: "s", ToOffset: &b, Thread: "main"})
			},
			"overwrite from b": func() (api.Rewound, error) {
				return w.Overwrite(ctx, api.Overwrite{Session: "s", FromOffset: b})
			},
		} {
			_, err := do()
			var e *tapedeck.Error
			if tapedeck.KindOf(err) != tapedeck.Conflict || !errors.As(err, &e) || !strings.Contains(e.Hint, "undo") {
				w.Errorf("%s: %v", name, err)
			}
		}
		if w.head("s").Head != head {
			w.Error("something was appended")
		}
		if done, err := w.Rewind(ctx, api.Rewind{Session: "s", ToOffset: &b, Force: true}); err != nil || done.To != b {
			w.Errorf("forced: %v %v", done, err)
		}
		if _, err := w.Undo(ctx, api.Undo{Session: "s"}); err != nil {
			w.Errorf("an undo of it: %v", err)
		}
	})
}

func TestRewound(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		p := w.tape("s")
		for _, tt := range []struct {
			do, typ, data string
			want          api.Rewound
		}{
			{"task a; task b; rewind before b", "session.rewound",
				`{"marker":"M1","status":"complete","toOffset":8,"beforeInvocation":"INV"}`,
				api.Rewound{Offset: 15, To: 8, Status: "complete"}},
			{"undo", "session.rewound",
				`{"marker":"M2","previous":15,"status":"complete","toOffset":15,"undoes":"M1"}`,
				api.Rewound{Offset: 16, To: 15, Status: "complete"}},
			{"clear on main", "session.cleared",
				`{"marker":"M3","thread":"main","previous":16,"status":"idle"}`,
				api.Rewound{Offset: 17, Thread: "main", Status: "idle"}},
			{"overwrite from 3", "session.overwritten",
				`{"marker":"M4","previous":17,"status":"interrupted","fromOffset":3}`,
				api.Rewound{Offset: 18, To: 3, Status: "interrupted"}},
			{"undo 3", "session.rewound",
				`{"marker":"M5","thread":"main","previous":18,"status":"complete","toOffset":17,"undoes":"M3"}`,
				api.Rewound{Offset: 19, To: 17, Thread: "main", Status: "complete"}},
		} {
			p.play(tt.do)
			events := w.log("s")
			ev := events[len(events)-1]
			data := string(ev.Data)
			for i, m := range p.markers[1:] {
				data = strings.ReplaceAll(data, m, "M"+string(rune('1'+i)))
			}
			if data = strings.ReplaceAll(data, p.invocations["b"], "INV"); ev.Type != tt.typ || data != tt.data {
				t.Errorf("%s: got %s %s\nwant %s %s", tt.do, ev.Type, data, tt.typ, tt.data)
			}
			if strings.HasPrefix(tt.do, "undo") {
				var undone struct{ Undoes string }
				_ = json.Unmarshal(ev.Data, &undone)
				tt.want.Undoes = undone.Undoes
			}
			tt.want.Session, tt.want.Marker = "s", p.markers[len(p.markers)-1]
			if diff := cmp.Diff(tt.want, p.last); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tt.do, diff)
			}
			if s := w.head("s"); s.LastJump != p.last.Offset {
				t.Errorf("%s: the newest jump is at %d", tt.do, s.LastJump)
			}
		}
	})
}

// The first event of an invocation counts, of any actor and on any thread.
func TestRewindBeforeTheFirst(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		for _, ev := range []tapedeck.Event{
			{Type: "acme.note", Invocation: "r", Data: []byte(`{"text":"early"}`)}, // at 1
			{Type: "acme.note", Data: []byte(`{"text":"r"}`)},
			{Type: "RUN_STARTED", Data: []byte(`{"runId":"r"}`)},
			{Type: "acme.note", Thread: "r"},
			{Type: "RUN_FINISHED", Data: []byte(`{"runId":"r"}`)},
		} {
			_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{ev}})
			w.must(err)
		}
		got, err := w.Rewind(w.Context(), api.Rewind{Session: "s", BeforeInvocation: "r"})
		if err != nil || got.To != 1 {
			t.Errorf("it went to %d, %v", got.To, err)
		}
		p := w.tape("s")
		p.play("task a")
		w.must(w.append("s", `feedback.added {"rating":"up"}`))
		p.play("rewind before a")
		if p.last.To != 7 {
			t.Errorf("it went to %d", p.last.To)
		}
	})
}

// A marker is accepted in place of an invocation.
func TestRewindBeforeMarker(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		p := w.tape("s")
		p.play("task a; task b on t; clear; task c")
		_, err := w.Rewind(w.Context(), api.Rewind{Session: "s", BeforeInvocation: p.markers[1], Thread: "t"})
		w.must(err)
		if got, want := p.shown(), "main: c, re c {c}; t: b, re b {b}"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// Runs in the scope are cancelled first, all at once, and the client gets their
// ids; external runs, too.
func TestRewindCancels(t *testing.T) {
	inBubble(t, func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		say("TEXT_MESSAGE_START", `{"messageId":"m"}`)
		<-ctx.Done()
		time.Sleep(time.Second)
		return nil
	}, func(w *world) {
		w.create("s")
		p := w.tape("s")
		p.play("task a; task b on t")
		_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{{Type: "RUN_STARTED", Thread: "x", Data: []byte(`{"runId":"r"}`)}}})
		w.must(err)
		begin := time.Now()
		p.play("rewind to 5")
		if d := time.Since(begin); d > 1500*time.Millisecond {
			t.Errorf("it took %v", d)
		}
		if want := []string{p.invocations["a"], p.invocations["b"], "r"}; !slices.Equal(p.last.Cancelled, want) {
			t.Errorf("cancelled %v, want %v", p.last.Cancelled, want)
		}
		if s := w.head("s"); len(s.Runs) > 0 || s.Status != tapedeck.StatusInterrupted {
			t.Errorf("got %+v", s)
		}
		w.events("s")
	})
}

func TestJumpRefusals(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		w.create("closed")
		w.must(w.Close(w.Context(), "closed", ""))
		p := w.tape("s")
		p.play("task a; task b on t")
		before := w.head("s").Head
		rewind := func(session, thread, invocation string, to ...int64) error {
			r := api.Rewind{Session: session, Thread: thread, BeforeInvocation: invocation}
			if to != nil {
				r.ToOffset = &to[0]
			}
			_, err := w.Rewind(w.Context(), r)
			return err
		}
		undo := func(session, marker string) error {
			_, err := w.Undo(w.Context(), api.Undo{Session: session, Marker: marker})
			return err
		}
		over := func(session, thread string, from int64) error {
			_, err := w.Overwrite(w.Context(), api.Overwrite{Session: session, Thread: thread, FromOffset: from})
			return err
		}
		wipe := func(session, thread string) error {
			_, err := w.Clear(w.Context(), api.Clear{Session: session, Thread: thread})
			return err
		}
		for name, tt := range map[string]struct {
			err  error
			kind tapedeck.Kind
			want string
		}{
			"neither":            {rewind("s", "", ""), tapedeck.Invalid, "either an invocation or an offset"},
			"both":               {rewind("s", "", "inv_x", 3), tapedeck.Invalid, "either an invocation or an offset"},
			"unknown invocation": {rewind("s", "", "inv_x"), tapedeck.NotFound, `session s has no invocation "inv_x"`},
			"a part of one":      {rewind("s", "", "inv_"), tapedeck.NotFound, "has no invocation"},
			"a thread's name":    {rewind("s", "", "t"), tapedeck.NotFound, "has no invocation"},
			"hostile":            {rewind("s", "", `x","y":"`), tapedeck.NotFound, "has no invocation"},
			"beyond the head":    {rewind("s", "", "", before+1), tapedeck.Invalid, "is at offset 15, so it cannot go back to 16"},
			"negative":           {rewind("s", "", "", -1), tapedeck.Invalid, "cannot go back to -1"},
			"unknown thread":     {rewind("s", "u", "", 1), tapedeck.NotFound, `session s has no thread "u"`},
			"no thread's name":   {rewind("s", "../u", "", 1), tapedeck.Invalid, "the thread"},
			"with an invocation": {rewind("s", "u", p.invocations["a"]), tapedeck.NotFound, "has no thread"},
			"unknown session":    {rewind("none", "", "", 1), tapedeck.NotFound, "no session"},
			"closed":             {rewind("closed", "", "", 1), tapedeck.Conflict, "closed"},
			"nothing to undo":    {undo("s", ""), tapedeck.Conflict, "there is nothing to undo in session s"},
			"unknown marker":     {undo("s", "rew_x"), tapedeck.NotFound, `has no marker "rew_x"`},
			"an invocation":      {undo("s", p.invocations["a"]), tapedeck.NotFound, "has no marker"},
			"undo nowhere":       {undo("none", ""), tapedeck.NotFound, "no session"},
			"over the head":      {over("s", "", before+1), tapedeck.Invalid, "cannot go back to 16"},
			"over nothing":       {over("s", "", -1), tapedeck.Invalid, "cannot go back to -1"},
			"over no thread":     {over("s", "u", 0), tapedeck.NotFound, "has no thread"},
			"over the closed":    {over("closed", "", 1), tapedeck.Conflict, "closed"},
			"clear no thread":    {wipe("s", "u"), tapedeck.NotFound, "has no thread"},
			"clear the closed":   {wipe("closed", ""), tapedeck.Conflict, "closed"},
			"clear no session":   {wipe("none", ""), tapedeck.NotFound, "no session"},
		} {
			t.Run(name, func(t *testing.T) { refuses(t, tt.err, tt.kind, tt.want) })
		}
		if after := w.head("s").Head; after != before {
			t.Errorf("%d events were appended", after-before)
		}
		p.play("clear on t") // a thread without active events still exists
		refuses(t, wipe("s", "t"), tapedeck.Conflict, "nothing to revert")
		p.play("undo 1")
	})
}

// If two clients do opposite things at once, one of them succeeds, and the other
// gets an error that names the first.
func TestJumpsConcurrently(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		p := w.tape("s")
		p.play("task a; task b; rewind before b")
		w.store.lag.Store(int64(time.Second)) // so that all have looked before one has written
		verbs := []func() (api.Rewound, error){
			func() (api.Rewound, error) { return w.Undo(w.Context(), api.Undo{Session: "s"}) },
			func() (api.Rewound, error) { return w.Clear(w.Context(), api.Clear{Session: "s"}) },
			func() (api.Rewound, error) {
				return w.Overwrite(w.Context(), api.Overwrite{Session: "s", FromOffset: 3})
			},
			func() (api.Rewound, error) {
				return w.Rewind(w.Context(), api.Rewind{Session: "s", Thread: "main", ToOffset: new(int64(5))})
			},
		}
		var wg sync.WaitGroup
		won, errs := make([]api.Rewound, len(verbs)), make([]error, len(verbs))
		for i, verb := range verbs {
			wg.Go(func() { won[i], errs[i] = verb() })
		}
		wg.Wait()
		marker := ""
		for i := range verbs {
			if errs[i] == nil {
				if marker != "" {
					t.Error("two have won")
				}
				marker = won[i].Marker
			}
		}
		for _, err := range errs {
			if err != nil {
				refuses(t, err, tapedeck.Conflict, "meanwhile (marker "+marker+")")
			}
		}
		if n := len(w.log("s")); marker == "" || n != 17 {
			t.Errorf("there are %d events, the winner is %q", n, marker)
		}
	})
}

// A run that begins between the cancel and the rewind makes the rewind fail.
func TestRewindMeetsStart(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		p := w.tape("s")
		p.play("task a")
		w.store.before = func() { p.play("task wait") }
		_, err := w.Rewind(w.Context(), api.Rewind{Session: "s", ToOffset: new(int64(1))})
		refuses(t, err, tapedeck.Conflict, p.invocations["wait"]+" has begun on thread main meanwhile | try again, and it is cancelled")
		if got := p.shown(); got != "main: a, re a, wait, re wait {a}" {
			t.Error(got)
		}
		p.play("rewind to 1")
		if got := p.shown(); got != "" || len(p.last.Cancelled) != 1 || p.last.Cancelled[0] != p.invocations["wait"] {
			t.Errorf("%s; cancelled %v", got, p.last.Cancelled)
		}
	})
}

// A recreated session is not the one that the client means.
func TestRewindMeetsDelete(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		w.must(w.append("s", "x.y"))
		w.store.before = func() {
			w.must(w.Delete(w.Context(), "s"))
			w.create("s")
		}
		_, err := w.Rewind(w.Context(), api.Rewind{Session: "s", ToOffset: new(int64(1))})
		refuses(t, err, tapedeck.Conflict, "session s was deleted and recreated meanwhile")
		if n := len(w.log("s")); n != 1 {
			t.Errorf("there are %d events", n)
		}
	})
}

// The status that a jump on one thread records is right although another thread
// continues meanwhile.
func TestThreadJumpMeetsOthers(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		p := w.tape("s")
		p.play("task fail on t; task b")
		w.store.before = func() { p.play("task c on t") } // its end is the newest now
		p.play("clear on main")
		if s := w.head("s"); s.Status != tapedeck.StatusComplete || p.last.Status != s.Status {
			t.Errorf("got %s and %s", s.Status, p.last.Status)
		}
		w.store.before = func() { p.play("task wait on t") }
		p.play("undo")
		if s := w.head("s"); s.Status != tapedeck.StatusRunning || p.last.Status != s.Status {
			t.Errorf("got %s and %s", s.Status, p.last.Status)
		}
	})
}

// A constant stream of events without runs does not prevent the rewind of a
// thread.
func TestThreadJumpMeetsStream(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		p := w.tape("s")
		p.play("task a; task b on t")
		var stream func()
		stream = func() {
			w.must(w.append("s", "x.y"))
			w.store.before = stream
		}
		w.store.before = stream
		p.play("clear on t")
		w.store.before = nil
		if got := p.shown(); got != "main: a, re a {a}" {
			t.Error(got)
		}
	})
}

// TestRewindIfIdle: a rewind that must not cancel a run is refused while one is open, also one
// that begins between the look at the session and the commit; and the run goes on.
func TestRewindIfIdle(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		p := w.tape("s")
		back := func() error {
			_, err := w.Rewind(w.Context(), api.Rewind{Session: "s", ToOffset: new(int64(1)), IfIdle: true})
			return err
		}
		p.play("task wait")
		refuses(t, back(), tapedeck.Conflict, "session s is busy with "+p.invocations["wait"])
		if len(w.head("s").Runs) != 1 {
			t.Error("the run was cancelled")
		}
		p.play("cancel wait")
		w.store.before = func() {
			w.store.before = nil
			p.play("task wait")
		}
		refuses(t, back(), tapedeck.Conflict, "session s is busy with "+p.invocations["wait"])
		if len(w.head("s").Runs) != 1 {
			t.Error("the run that has begun meanwhile was cancelled")
		}
		p.play("cancel wait")
		w.must(back())
	})
}

// A task for a busy thread is refused at once. If it waited, the run might be
// cancelled meanwhile, and the agent would not get that context.
func TestStartMeetsCancel(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		p := w.tape("s")
		p.play("task wait")
		w.store.before = func() { p.play("cancel wait") }
		refuses(t, p.do("task b"), tapedeck.Conflict, "thread main is busy")
		w.store.before = nil
	})
}

// A task that is given during a rewind follows the events that are active
// afterwards.
func TestStartMeetsRewind(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		p := w.tape("s")
		p.play("task wait; cancel wait")
		w.store.before = func() { p.play("rewind to 1") }
		p.play("task b")
		for _, ev := range w.log("s") {
			if ev.Type == tapedeck.RunStarted && ev.Invocation == p.invocations["b"] && strings.Contains(string(ev.Data), "context") {
				t.Errorf("the context has a run that is not active: %s", ev.Data)
			}
		}
		if got := p.shown(); got != "main: b, re b {b}" {
			t.Error(got)
		}
	})
}

// A server that dies between the cancel and the rewind leaves a cancelled run, and
// reverts nothing.
func TestRewindCrash(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		p := w.tape("s")
		p.play("task a; task wait")
		alive := w.store.Store
		w.store.before = func() { // the cancel
			w.store.before = func() { w.store.Store = memory.New(memory.Options{}) } // the rewind
		}
		if err := p.do("rewind to 1"); err == nil {
			t.Error("it went well")
		}
		w.store.Store = alive
		p.Engine = w.open(echo)
		if n, err := p.Recover(w.Context()); n != 0 || err != nil {
			t.Errorf("ended %d runs, %v", n, err)
		}
		if got, s := p.shown(), w.head("s"); got != "main: a, re a, wait, re wait {a}" || s.Status != tapedeck.StatusCancelled || s.LastJump != 0 {
			t.Errorf("got %s, %s", got, s.Status)
		}
		p.play("rewind to 1; task b")
		if got := p.shown(); got != "main: b, re b {b}" {
			t.Error(got)
		}
	})
}

// While the store is unavailable, nothing is done by half.
func TestJumpWhileTheStoreIsDown(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("s")
		p := w.tape("s")
		p.play("task a")
		w.down.Store(true)
		refuses(t, p.do("clear"), tapedeck.Unavailable, "")
		_, err := w.Fork(w.Context(), api.Fork{Parent: "s", ID: "f"})
		refuses(t, err, tapedeck.Unavailable, "")
		w.down.Store(false)
		if got := p.shown(); got != "main: a, re a {a}" {
			t.Error(got)
		}
		p.play("clear")
		if got := p.shown(); got != "" {
			t.Error(got)
		}
	})
}

// The runner sees the active events, and no others.
func TestHistoryIsInForce(t *testing.T) {
	var seen []string
	inBubble(t, func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		seen = nil
		for ev, err := range in.History(ctx) {
			if err != nil {
				return err
			}
			var d struct{ Message struct{ Content string } }
			if json.Unmarshal(ev.Data, &d) == nil && d.Message.Content != "" {
				seen = append(seen, d.Message.Content)
			}
		}
		return echo(ctx, in, say)
	}, func(w *world) {
		w.create("s")
		p := w.tape("s")
		p.play("task a; task x on t; task b; rewind before b; task c; clear on t; task d; undo 2; task e")
		if got, want := strings.Join(seen, " "), "a x c d"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// An invocation is also found in a session with more invocations than the index
// has.
func TestRewindBeforeOneOfVeryMany(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	events := make([]tapedeck.Event, view.MaxInvocations+50)
	for i := range events {
		events[i] = tapedeck.Event{Type: "acme.note", Invocation: fmt.Sprintf("i%d", i)}
	}
	_, err := w.Append(t.Context(), tapedeck.Append{Session: "s", Events: events})
	w.must(err)
	for _, i := range []int64{view.MaxInvocations + 40, view.MaxInvocations - 1, 0} {
		got, err := w.Rewind(t.Context(), api.Rewind{Session: "s", BeforeInvocation: fmt.Sprintf("i%d", i)})
		if err != nil || got.To != i+1 { // session.created is at 0
			t.Errorf("before i%d it went to %d, %v", i, got.To, err)
		}
	}
	if _, err := w.Rewind(t.Context(), api.Rewind{Session: "s", BeforeInvocation: "i99999"}); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("before one that is not there: %v", err)
	}
}
