package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
)

func TestStartRefusals(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		w.create("closed")
		w.must(w.Close(w.Context(), "closed", ""))
		busy := w.start("s")
		for _, tt := range []struct {
			task api.Task
			kind tapedeck.Kind
			want string
		}{
			{api.Task{Session: "s", Text: "go"}, tapedeck.Conflict, "thread main is busy with " + busy.Invocation + " | wait for it, cancel it, or use another thread"},
			{api.Task{Session: "s", Text: "go", Thread: "main"}, tapedeck.Conflict, "thread main is busy"},
			{api.Task{Session: "s", Text: "go", Thread: "../x"}, tapedeck.Invalid, "the thread"},
			{api.Task{Session: "s", Text: "go", Agent: "nobody"}, tapedeck.NotFound, `there is no agent "nobody" | there are: bot mute`},
			{api.Task{Text: "go", Agent: "nobody"}, tapedeck.NotFound, "there are: bot mute"},
			{api.Task{Session: "s", Text: " \n"}, tapedeck.Invalid, "the task is empty"},
			{api.Task{Text: ""}, tapedeck.Invalid, "the task is empty"},
			{api.Task{Text: strings.Repeat("x", 1<<20+1)}, tapedeck.TooLarge, "at most 1048576"},
			{api.Task{Text: "a\xff"}, tapedeck.Invalid, "not valid UTF-8"},
			{api.Task{Text: "go", Actor: "\x00"}, tapedeck.Invalid, "the actor has a control"},
			{api.Task{Text: "go", Title: "\x00"}, tapedeck.Invalid, "the title has a control"},
			{api.Task{Session: "s", Thread: "t", Text: "go", Actor: "\x00"}, tapedeck.Invalid, "control character"},
			{api.Task{Session: "closed", Text: "go"}, tapedeck.Conflict, "closed"},
			{api.Task{Session: "none", Text: "go"}, tapedeck.NotFound, "no session"},
		} {
			_, err := w.Start(w.Context(), tt.task)
			refuses(w, err, tt.kind, tt.want)
		}
		if n := len(w.events("s")); n != 3 {
			w.Errorf("there are %d events, want 3", n)
		}
		if list, _ := w.store.List(w.Context(), tapedeck.Filter{}); len(list.Sessions) != 2 {
			w.Errorf("there are %d sessions, want 2", len(list.Sessions))
		}
	})
}

// A message that is sent again begins no second run: neither after its run, nor while
// another one is open.
func TestStartAMessageAgainLater(t *testing.T) {
	quick := func(ctx context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
		if strings.HasSuffix(in.Task, "long") {
			<-ctx.Done()
		}
		return nil
	}
	inBubble(t, quick, func(w *world) {
		w.create("s")
		first, err := w.Start(w.Context(), api.Task{Session: "s", Text: "go", MessageID: "m"})
		w.must(err)
		synctest.Wait()
		for _, other := range []string{"quick", "long", "never"} {
			again, err := w.Start(w.Context(), api.Task{Session: "s", Text: "go", MessageID: "m"})
			w.must(err)
			if again.Invocation != first.Invocation || !again.Repeated {
				w.Errorf("before %s: got %+v, want %+v", other, again, first)
			}
			_, _ = w.Start(w.Context(), api.Task{Session: "s", Text: other})
			synctest.Wait()
		}
		if got := types(w.events("s")); strings.Count(got, tapedeck.RunStarted) != 3 {
			w.Error(got)
		}
	})
}

// A message can also be sent again while its own run is open.
func TestStartTheSameMessageAgain(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		first, err := w.Start(w.Context(), api.Task{Session: "s", Text: "go", MessageID: "m 1"})
		w.must(err)
		for range 2 {
			again, err := w.Start(w.Context(), api.Task{Session: "s", Text: "go", MessageID: "m 1"})
			w.must(err)
			if want := (api.Started{Session: "s", Invocation: first.Invocation, Status: tapedeck.StatusRunning, Offset: first.Offset, Repeated: true}); again != want {
				w.Errorf("got %+v, want %+v", again, want)
			}
			_, _ = w.Cancel(w.Context(), "s", "") // the second time, the run is over
		}
		n := len(w.events("s"))
		_, err = w.Start(w.Context(), api.Task{Session: "s", Text: "stop", MessageID: "m 1"})
		refuses(w, err, tapedeck.Conflict, `session s has another message with the id "m 1"`)
		_, err = w.Start(w.Context(), api.Task{Session: "s", Text: "go", MessageID: "\x00"})
		refuses(w, err, tapedeck.Invalid, "the id of the message has a control character")
		if got := len(w.events("s")); got != n {
			w.Errorf("there are %d events, want %d", got, n)
		}
	})
}

// A task can create the session that it names, also when another task does so at the
// same time.
func TestStartCreatesTheSession(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		_, err := w.Start(w.Context(), api.Task{Session: "mine", Create: true, Text: "go", Agent: "nobody"})
		refuses(w, err, tapedeck.NotFound, `there is no agent "nobody"`)
		_, err = w.Start(w.Context(), api.Task{Session: "/", Create: true, Text: "go"})
		refuses(w, err, tapedeck.Invalid, "must begin with a letter")
		if list, _ := w.store.List(w.Context(), tapedeck.Filter{}); len(list.Sessions) != 0 {
			w.Errorf("there are %d sessions, want none", len(list.Sessions))
		}
		var group sync.WaitGroup
		for _, thread := range []string{"a", "b"} {
			group.Go(func() {
				_, err := w.Start(w.Context(), api.Task{Session: "mine", Create: true, Text: "go " + thread, Thread: thread})
				w.must(err)
			})
		}
		group.Wait()
		if s := w.head("mine"); len(s.Runs) != 2 || s.Agent != "bot" || !strings.HasPrefix(s.Title, "go ") {
			w.Errorf("got %+v", s)
		}
	})
}

// TestStartInOneThread: of several tasks that create the same session, one begins its run
// and the others are refused. The session stays.
func TestStartInOneThread(t *testing.T) {
	for range 50 {
		inBubble(t, silent, func(w *world) {
			var group sync.WaitGroup
			var begun atomic.Int64
			for range 8 {
				group.Go(func() {
					_, err := w.Start(w.Context(), api.Task{Session: "mine", Create: true, Text: "go"})
					if err == nil {
						begun.Add(1)
					} else if tapedeck.KindOf(err) != tapedeck.Conflict {
						w.Errorf("got %v", err)
					}
				})
			}
			group.Wait()
			if n := begun.Load(); n != 1 {
				w.Errorf("%d runs began", n)
			}
			if s := w.head("mine"); len(s.Runs) != 1 {
				w.Errorf("got %+v", s)
			}
		})
	}
}

func TestStartTwoThreads(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("s")
		w.start("s")
		_, err := w.Start(w.Context(), api.Task{Session: "s", Thread: "other", Text: "go"})
		w.must(err)
		synctest.Wait()
		if runs := w.head("s").Runs; len(runs) != 2 || runs[0].Thread != "main" || runs[1].Thread != "other" {
			w.Errorf("got %v", runs)
		}
		w.events("s")
	})
}

func TestStartNewSession(t *testing.T) {
	inBubble(t, func(_ context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		if in.Task != "First <line>\nand more" || string(in.Config) != `{"a":1}` {
			return fmt.Errorf("got %+v", in)
		}
		return nil
	}, func(w *world) {
		s, err := w.Start(w.Context(), api.Task{Text: "First <line>\nand more", Config: []byte(`{"a":1}`), Actor: "user:ada"})
		w.must(err)
		synctest.Wait()
		if e := w.head(s.Session); e.Title != "First <line>" || e.Agent != "bot" || e.Status != tapedeck.StatusComplete {
			w.Errorf("got %+v", e)
		}
		if s.Offset != 1 || w.events(s.Session)[1].Type != tapedeck.MessageAdded {
			w.Errorf("offset %d", s.Offset)
		}
	})
}

// TestFolderOfTheSession: an agent works in the folder that the session has chosen, if it may,
// and an agent without a choice works where it always does.
func TestFolderOfTheSession(t *testing.T) {
	var worked string
	runner := talker(func(_ context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
		worked = in.Folder
		return nil
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, silent, func(o *engine.Options) {
			folder := func(session, chosen string) (string, error) { return "/own/" + session + chosen, nil }
			o.Agents = []engine.Agent{
				{Agent: tapedeck.Agent{Name: "bot", Folders: []string{"/a", "/b"}}, Runner: runner, Folder: folder},
				{Agent: tapedeck.Agent{Name: "fixed"}, Runner: runner, Folder: folder},
			}
		})
		for _, c := range []struct{ agent, label, want string }{
			{"bot", "", "/own/s"}, {"bot", "/b", "/own/s/b"}, {"fixed", "/b", "/own/s"},
		} {
			labels := map[string]string{"k": "v"}
			if c.label != "" {
				labels[api.LabelFolder] = c.label
			}
			_, err := w.Create(t.Context(), api.NewSession{ID: "s", Labels: labels})
			w.must(err)
			_, err = w.Start(t.Context(), api.Task{Session: "s", Agent: c.agent, Text: "go"})
			w.must(err)
			synctest.Wait()
			if worked != c.want {
				t.Errorf("%+v: it worked in %q", c, worked)
			}
			w.must(w.Delete(t.Context(), "s"))
		}
		_, err := w.Create(t.Context(), api.NewSession{ID: "t", Labels: map[string]string{api.LabelFolder: "/etc"}})
		w.must(err)
		_, err = w.Start(t.Context(), api.Task{Session: "t", Text: "go"})
		refuses(t, err, tapedeck.Invalid, `must not work in the folder "/etc"`)
		if h := w.head("t").Head; h != 1 {
			t.Errorf("the head is %d: something was started", h)
		}
	})
}

// A session that was created for a task is deleted again if the task cannot start.
func TestStartNewSessionFails(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.must(w.Shutdown(w.Context()))
		_, err := w.Start(w.Context(), api.Task{Text: "go"})
		refuses(w, err, tapedeck.Unavailable, "the server is stopping")
		if list, _ := w.store.List(w.Context(), tapedeck.Filter{}); len(list.Sessions) != 0 {
			w.Errorf("left behind: %v", list)
		}
	})
}

func TestStartOutlivesItsRequest(t *testing.T) {
	inBubble(t, func(ctx context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Minute):
			return nil
		}
	}, func(w *world) {
		w.create("s")
		w.store.lag.Store(int64(time.Second))
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(time.Second/2, cancel) // while its beginning is being stored
		_, err := w.Start(ctx, api.Task{Session: "s", Text: "go"})
		w.must(err)
		time.Sleep(2 * time.Minute)
		if _, status := w.end("s"); status != tapedeck.StatusComplete {
			w.Errorf("the run is %s", status)
		}
		_, err = w.Start(ctx, api.Task{Session: "s", Text: "go"})
		if err == nil || ctx.Err() == nil {
			w.Errorf("a request that is over has started a run: %v", err)
		}
	})
}

func TestStartConcurrently(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		var won, lost atomic.Int32
		for range 100 {
			go func() {
				switch _, err := w.Start(context.Background(), api.Task{Session: "s", Text: "go"}); tapedeck.KindOf(err) {
				case "":
					won.Add(1)
				case tapedeck.Conflict:
					lost.Add(1)
				default:
					w.Error(err)
				}
			}()
		}
		synctest.Wait()
		if won.Load() != 1 || lost.Load() != 99 {
			w.Errorf("%d have won, %d lost", won.Load(), lost.Load())
		}
		if n := len(w.events("s")); n != 3 {
			w.Errorf("there are %d events, want 3", n)
		}
	})
}

func TestHistory(t *testing.T) {
	var seen []string
	inBubble(t, func(ctx context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
		seen = nil
		for ev, err := range in.History(ctx) {
			if err != nil {
				return err
			}
			seen = append(seen, ev.Type)
		}
		return nil
	}, func(w *world) {
		w.create("s")
		w.start("s")
		synctest.Wait()
		if got := strings.Join(seen, " "); got != "session.created" {
			w.Error(got)
		}
		w.start("s")
		synctest.Wait()
		if got := strings.Join(seen, " "); got != "session.created message.added RUN_STARTED RUN_FINISHED" {
			w.Error(got)
		}
	})
}

// picky takes the config {"good":1} and no other.
type picky struct{ talker }

func (picky) CheckConfig(config json.RawMessage) error {
	if len(config) > 0 && string(config) != `{"good":1}` {
		return tapedeck.Errorf(tapedeck.Invalid, "the config is bad")
	}
	return nil
}

// A config that the agent cannot use is refused before anything is stored.
func TestConfigIsCheckedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, silent, func(o *engine.Options) { o.Agents[0].Runner = picky{talker(silent)} })
		try := func(session, when, config string) error {
			_, err := w.Start(t.Context(), api.Task{Session: session, Text: "go", When: when, Config: json.RawMessage(config)})
			return err
		}
		refuses(t, try("", "", `{"bad":1}`), tapedeck.Invalid, "the config is bad")
		all, err := w.store.List(t.Context(), tapedeck.Filter{})
		if w.must(err); len(all.Sessions) > 0 {
			t.Errorf("it leaves %+v", all.Sessions)
		}
		w.create("s")
		head := w.head("s").Head
		refuses(t, try("s", "", `{"bad":1}`), tapedeck.Invalid, "the config is bad")
		if got := w.head("s").Head; got != head {
			t.Errorf("the head was %d and is %d", head, got)
		}
		w.must(try("s", "", `{"good":1}`))
		refuses(t, try("s", "queue", `{"bad":1}`), tapedeck.Invalid, "the config is bad")
		refuses(t, try("s", "interrupt", `{"bad":1}`), tapedeck.Invalid, "the config is bad")
		w.must(try("s", "queue", `{"good":1}`))
	})
}
