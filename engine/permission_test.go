package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/hub"
)

var yesNo = []tapedeck.PermissionOption{{ID: "yes", Kind: "allow_once"}, {ID: "no", Kind: "reject_once"}}

// asking sends a text, asks, and sends the answer as a text.
func asking(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
	say("TEXT_MESSAGE_START", `{"messageId":"m","role":"assistant"}`)
	say("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"may I? "}`)
	a, err := in.Ask(ctx, tapedeck.Question{ID: "p", Message: "May I?", Options: yesNo})
	if err != nil {
		return err
	}
	say("TEXT_MESSAGE_CONTENT", fmt.Sprintf(`{"messageId":"m","delta":"%s%s"}`, a.Option, a.Outcome))
	say("TEXT_MESSAGE_END", `{"messageId":"m"}`)
	return nil
}

func (w *world) answer(session, option string) (api.Answered, error) {
	return w.Answer(context.Background(), api.Answer{Session: session, Permission: "p", Option: option, Actor: "user:ada"})
}

// answers returns the answers in the log.
func (w *world) answers(session string) []tapedeck.Event {
	var out []tapedeck.Event
	for _, ev := range w.events(session) {
		if ev.Type == tapedeck.PermissionAnswered {
			out = append(out, ev)
		}
	}
	return out
}

// waitsFor checks for which questions the catalogue says that a session waits.
func (w *world) waitsFor(session string, ids ...string) {
	w.Helper()
	var got []string
	s := w.head(session)
	for _, q := range s.Waiting {
		got = append(got, q.ID)
	}
	if !slices.Equal(got, ids) || (s.Status == tapedeck.StatusWaiting) != (len(ids) > 0) {
		w.Errorf("session %s is %s and waits for %v, want %v", session, s.Status, got, ids)
	}
}

// An agent may use the id of a question again when it has its answer, in its run and while
// another program asks in the session. Each answer reaches its own question.
func TestAnswersOfOneID(t *testing.T) {
	asks := func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		for n := range 3 {
			a, err := in.Ask(ctx, tapedeck.Question{ID: "p", Message: "May I?", Options: yesNo})
			if err != nil {
				return err
			}
			say("TEXT_MESSAGE_START", fmt.Sprintf(`{"messageId":"m%d","role":"assistant"}`, n))
			say("TEXT_MESSAGE_CONTENT", fmt.Sprintf(`{"messageId":"m%d","delta":"%s "}`, n, a.Option))
			say("TEXT_MESSAGE_END", fmt.Sprintf(`{"messageId":"m%d"}`, n))
		}
		return nil
	}
	inBubble(t, asks, func(w *world) {
		w.create("s")
		run := w.start("s")
		for _, option := range []string{"yes", "no"} {
			synctest.Wait()
			w.waitsFor("s", "p")
			_, err := w.answer("s", option)
			w.must(err)
		}
		synctest.Wait()
		w.waitsFor("s", "p")
		first := w.answers("s")[0].Offset
		_, err := w.Answer(w.Context(), api.Answer{Session: "s", Permission: "p", Option: "yes", Offset: &first})
		refuses(w, err, tapedeck.Conflict, "was asked at offset")
		_, err = w.answer("s", "yes")
		w.must(err)
		synctest.Wait()
		_, err = w.answer("s", "no")
		refuses(w, err, tapedeck.Conflict, "answered already: yes")
		got := ""
		for _, ev := range w.events("s") {
			if ev.Invocation == run.Invocation && ev.Type == "TEXT_MESSAGE_CONTENT" {
				var d struct{ Delta string }
				w.must(json.Unmarshal(ev.Data, &d))
				got += d.Delta
			}
		}
		if got != "yes no yes " {
			w.Errorf("the agent got the answers %q", got)
		}
	})
}

// A program elsewhere asks with the id of a question that an agent of this server has asked,
// and that was answered.
func TestAnswerForeignOfOneID(t *testing.T) {
	asks := func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
		if err := asking(ctx, in, say); err != nil {
			return err
		}
		<-ctx.Done() // its run stays open
		return nil
	}
	inBubble(t, asks, func(w *world) {
		w.create("s")
		w.start("s")
		synctest.Wait()
		_, err := w.answer("s", "yes")
		w.must(err)
		synctest.Wait()
		_, err = w.Append(w.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{
			{Type: tapedeck.RunStarted, Thread: "side", Invocation: "outside", Data: json.RawMessage(`{}`)},
			{Type: tapedeck.PermissionRequested, Thread: "side", Invocation: "outside", Data: json.RawMessage(`{"id":"p","options":[{"id":"yes"},{"id":"no"}]}`)},
		}})
		w.must(err)
		w.waitsFor("s", "p")
		_, err = w.answer("s", "no")
		w.must(err)
		list := w.answers("s")
		if last := list[len(list)-1]; len(list) != 2 || last.Invocation != "outside" || !strings.Contains(string(last.Data), `"no"`) {
			w.Errorf("the answers are %v", list)
		}
		w.waitsFor("s")
	})
}

func TestAnswer(t *testing.T) {
	inBubble(t, asking, func(w *world) {
		w.create("s")
		run := w.start("s")
		synctest.Wait()
		w.waitsFor("s", "p")
		_, err := w.Answer(w.Context(), api.Answer{Session: "s", Permission: "q", Option: "yes"})
		refuses(w, err, tapedeck.NotFound, `no permission "q"`)
		_, err = w.answer("s", "maybe")
		refuses(w, err, tapedeck.Invalid, "choose one of yes, no")
		_, err = w.answer("other", "yes")
		refuses(w, err, tapedeck.NotFound, "")

		done, err := w.answer("s", "yes")
		w.must(err)
		if done != (api.Answered{Permission: "p", Option: "yes", Offset: 6}) {
			w.Errorf("answered %+v", done)
		}
		w.waitsFor("s")
		_, err = w.answer("s", "no")
		refuses(w, err, tapedeck.Conflict, "answered already: yes")
		synctest.Wait()
		if _, status := w.end("s"); status != tapedeck.StatusComplete {
			w.Errorf("the run is %s", status)
		}
		_, err = w.answer("s", "no")
		refuses(w, err, tapedeck.Conflict, "answered already: yes")

		events := w.events("s")
		compare(w, types(events), "message.added RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT permission.requested permission.answered TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED")
		if got := said(w, events)["m"]; got != "may I? yesselected" {
			w.Errorf("the agent said %q", got)
		}
		if ev := w.answers("s")[0]; ev.Actor != "user:ada" || ev.Invocation != run.Invocation {
			w.Errorf("the answer is %+v", ev)
		}
	})
}

// However a waiting run ends, its questions are answered once each, before the
// open messages and calls are closed.
func TestOpenQuestions(t *testing.T) {
	ways := map[string]func(*world){
		"cancel":   func(w *world) { _, err := w.Cancel(w.Context(), "s", ""); w.must(err) },
		"shutdown": func(w *world) { w.must(w.Shutdown(w.Context())) },
		"timeout":  func(*world) { time.Sleep(2 * time.Hour) },
		"rewind": func(w *world) {
			to := int64(1)
			_, err := w.Rewind(w.Context(), api.Rewind{Session: "s", ToOffset: &to})
			w.must(err)
		},
	}
	runners := map[string]talker{
		"it listens": asking,
		"it is deaf": func(_ context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
			_, _ = in.Ask(context.Background(), tapedeck.Question{ID: "p", Options: yesNo})
			time.Sleep(24 * time.Hour)
			return nil
		},
		"it does not wait": func(ctx context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
			say("permission.requested", `{"id":"p","options":[{"id":"yes"}]}`)
			<-ctx.Done()
			return ctx.Err()
		},
		"several": func(ctx context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
			var wg sync.WaitGroup
			for _, id := range []string{"p", "q", "r"} {
				wg.Go(func() {
					if a, err := in.Ask(ctx, tapedeck.Question{ID: id, Options: yesNo}); err != nil || a.Outcome != "cancelled" || a.ID != id {
						t.Errorf("%s was answered %+v, %v", id, a, err)
					}
				})
			}
			wg.Wait()
			return ctx.Err()
		},
	}
	for way, end := range ways {
		for kind, runner := range runners {
			t.Run(way+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, runner, func(o *engine.Options) { o.RunTimeout = time.Hour })
					w.create("s")
					w.start("s")
					synctest.Wait()
					if s := w.head("s"); s.Status != tapedeck.StatusWaiting || len(s.Waiting) == 0 {
						t.Errorf("it is %s with the questions %v", s.Status, s.Waiting)
					}
					end(w)
					w.waitsFor("s")
					answered, asked, closed := map[string]int{}, 0, false
					for _, ev := range w.events("s") {
						switch ev.Type {
						case tapedeck.PermissionRequested:
							asked++
						case tapedeck.PermissionAnswered:
							var d tapedeck.Choice
							w.must(json.Unmarshal(ev.Data, &d))
							if answered[d.ID]++; closed || d.Outcome != "cancelled" || d.Option != "" || ev.Actor != "tapedeck" || answered[d.ID] > 1 {
								t.Errorf("%s at offset %d: %s", ev.Actor, ev.Offset, ev.Data)
							}
						default:
							closed = closed || strings.Contains(string(ev.Data), `"closed"`)
						}
					}
					if asked == 0 || len(answered) != asked {
						t.Errorf("%d questions, answered: %v", asked, answered)
					}
					time.Sleep(48 * time.Hour) // for the deaf one
					if _, err := w.answer("s", "yes"); tapedeck.KindOf(err) != tapedeck.Conflict && way != "rewind" {
						t.Errorf("an answer after the end: %v", err)
					}
				})
			})
		}
	}
}

// The asker can withdraw a question.
func TestWithdraw(t *testing.T) {
	inBubble(t, func(ctx context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
		ask, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		a, err := in.Ask(ask, tapedeck.Question{ID: "p", Options: yesNo})
		if err != nil || a.Outcome != "cancelled" {
			t.Errorf("answered %+v, %v", a, err)
		}
		for name, q := range map[string]tapedeck.Question{
			"has asked p before": {ID: "p", Options: yesNo},
			"no options":         {},
			"ids of their own":   {Options: []tapedeck.PermissionOption{{ID: "a"}, {ID: "a"}}},
			"not allowed":        {ID: "a b", Options: yesNo},
		} {
			_, err := in.Ask(ctx, q)
			refuses(t, err, tapedeck.Invalid, name)
		}
		return nil
	}, func(w *world) {
		w.create("s")
		w.start("s")
		time.Sleep(2 * time.Minute)
		_, status := w.end("s")
		if got := w.answers("s"); len(got) != 1 || status != tapedeck.StatusComplete {
			t.Errorf("%s, answers: %v", status, got)
		}
	})
}

// An agent that waits for people is not idle. After the answer it can be idle
// again.
func TestWaitingIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			if _, err := in.Ask(ctx, tapedeck.Question{ID: "p", Options: yesNo}); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}, func(o *engine.Options) { o.IdleTimeout = time.Minute })
		w.create("s")
		w.start("s")
		time.Sleep(24 * time.Hour)
		_, err := w.answer("s", "yes")
		w.must(err)
		answered := time.Now()
		time.Sleep(time.Hour)
		ev, status := w.end("s")
		if got := ev.Time.Sub(answered); status != tapedeck.StatusFailed || got < time.Minute || got > time.Minute+time.Second {
			t.Errorf("it is %s after %v", status, got)
		}
	})
}

// A client can append an answer as an event, by the same rules.
func TestAnswerAsEvent(t *testing.T) {
	inBubble(t, asking, func(w *world) {
		w.create("s")
		run := w.start("s")
		synctest.Wait()
		refuses(w, w.append("s", `permission.answered {"id":"p","option":"maybe"}`), tapedeck.Invalid, "no option")
		epoch := tapedeck.Append{Session: "s", Events: parse(`permission.answered {"id":"p","option":"no","outcome":"selected"}`), Producer: &tapedeck.Producer{ID: "me"}}
		for range 2 { // the second time is a repetition
			_, err := w.Append(w.Context(), epoch)
			w.must(err)
		}
		refuses(w, w.append("s", `permission.answered {"id":"p","option":"yes"}`), tapedeck.Conflict, "answered already: no")
		synctest.Wait()
		if got := said(w, w.events("s"))["m"]; got != "may I? noselected" {
			w.Errorf("the agent said %q", got)
		}
		if got := w.answers("s"); len(got) != 1 || got[0].Invocation != run.Invocation {
			w.Errorf("the answers are %v", got)
		}
	})
}

// The engine learns of an answer that was appended without it by following the
// log.
func TestAnswerFromElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, asking)
		bells := hub.New(w.store)
		e := w.open(asking, func(o *engine.Options) { o.Store = bells })
		w.create("s")
		_, err := e.Start(t.Context(), api.Task{Session: "s", Text: "go"})
		w.must(err)
		synctest.Wait()
		_, err = bells.Append(t.Context(), tapedeck.Append{Session: "s", Events: parse(`permission.answered {"id":"p","option":"no","outcome":"selected"}`)})
		w.must(err)
		synctest.Wait()
		if got := said(w, w.events("s"))["m"]; got != "may I? noselected" {
			w.Errorf("the agent said %q", got)
		}
	})
}

// The agent of an external run can ask, too.
func TestAnswerForeign(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		ask := `permission.requested {"id":"%s","options":[{"id":"yes"},{"id":"no"}]}`
		events := parse(`RUN_STARTED {"threadId":"t","runId":"r"}`, fmt.Sprintf(ask, "p"), fmt.Sprintf(ask, "q"))
		for i := range events {
			events[i].Invocation, events[i].Thread = "r", "side"
		}
		_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: events})
		w.must(err)
		_, err = w.answer("s", "maybe")
		refuses(w, err, tapedeck.Invalid, "choose one of yes, no")
		_, err = w.answer("s", "yes")
		w.must(err)
		_, err = w.answer("s", "no")
		refuses(w, err, tapedeck.Conflict, "answered already: yes")
		_, err = w.Cancel(w.Context(), "s", "")
		w.must(err)
		if got := w.answers("s"); len(got) != 2 || got[0].Thread != "side" || !strings.Contains(string(got[1].Data), `"id":"q","outcome":"cancelled"`) {
			w.Errorf("the answers are %v", got)
		}
	})
}

// Of answers and a cancel at the same time, one is accepted. The agent, the log
// and the clients that answered agree on which.
func TestAnswersAtOnce(t *testing.T) {
	for i := range 200 {
		w := newWorld(t, asking)
		w.create("s")
		w.start("s")
		w.waitAsked("s")
		var won sync.Map
		var wg sync.WaitGroup
		for _, option := range []string{"yes", "no"} {
			wg.Go(func() {
				_, err := w.answer("s", option)
				if err == nil {
					won.Store(option, true)
				} else if tapedeck.KindOf(err) != tapedeck.Conflict {
					t.Errorf("%s: %v", option, err)
				}
			})
			wg.Go(func() {
				err := w.append("s", `permission.answered {"id":"p","option":"`+option+`"}`)
				if err == nil {
					won.Store(option, true)
				}
			})
		}
		if i%2 == 0 {
			wg.Go(func() { _, _ = w.Cancel(context.Background(), "s", "") })
		}
		wg.Wait()
		w.must(w.Shutdown(t.Context()))
		var d tapedeck.Choice
		log := w.answers("s")
		if len(log) == 0 {
			t.Fatal("it was not answered")
		}
		w.must(json.Unmarshal(log[0].Data, &d))
		n := 0
		won.Range(func(option, _ any) bool {
			if n++; option != d.Option {
				t.Errorf("%s won, but the log has %s", option, log[0].Data)
			}
			return true
		})
		if len(log) != 1 || n != 1 && d.Option != "" {
			t.Fatalf("%d won; the log has %v", n, log)
		}
	}
}

// A lateStore reports only after a minute that a question is durable.
type lateStore struct{ tapedeck.Store }

func (s lateStore) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	done, err := s.Store.Append(ctx, a)
	for _, ev := range a.Events {
		if ev.Type == tapedeck.PermissionRequested {
			time.Sleep(time.Minute) // in a bubble
		}
	}
	return done, err
}

// A reader of the log can know of a question before the engine does.
func TestEarlyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, silent)
		w.Engine = w.open(asking, func(o *engine.Options) { o.Store = lateStore{w.store} })
		w.create("s")
		w.start("s")
		time.Sleep(time.Second)
		if types := types(w.events("s")); !strings.HasSuffix(types, tapedeck.PermissionRequested) {
			t.Fatalf("the log has %s", types)
		}
		_, err := w.answer("s", "yes")
		w.must(err)
		synctest.Wait()
		if got := w.answers("s"); len(got) != 1 || said(t, w.events("s"))["m"] != "may I? yesselected" {
			t.Errorf("the answers are %v", got)
		}
	})
}

// waitAsked waits, in real time, until the log has a question.
func (w *world) waitAsked(session string) {
	bells := hub.New(w.store)
	for page, err := range bells.Follow(w.Context(), session, tapedeck.FollowOptions{Idle: time.Millisecond}) {
		w.must(err)
		for _, rec := range page.Records {
			if strings.Contains(string(rec.Data), tapedeck.PermissionRequested) {
				return
			}
		}
		bells.Wake(session)
	}
}

// After a restart no pending question waits for an answer any more.
func TestRecoverAnswersQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, asking)
		w.create("s")
		w.start("s")
		synctest.Wait()
		w.down.Store(true) // the first engine cannot end it, as if it were dead
		_ = w.Shutdown(t.Context())
		w.down.Store(false)
		second := w.open(asking)
		if n, err := second.Recover(t.Context()); n != 1 || err != nil {
			t.Fatalf("recovered %d, %v", n, err)
		}
		_, status := w.end("s")
		got := w.answers("s")
		if status != tapedeck.StatusInterrupted || len(got) != 1 || !strings.Contains(string(got[0].Data), "cancelled") {
			t.Errorf("it is %s, answers: %v", status, got)
		}
		_, err := second.Answer(t.Context(), api.Answer{Session: "s", Permission: "p", Option: "yes"})
		refuses(t, err, tapedeck.Conflict, "cancelled")
	})
}
