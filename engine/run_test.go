package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/engine"
)

// Every append takes 100 ms here. The first event is appended at once. Deltas that
// arrive meanwhile become one event, with cuts that say when each part arrived.
// Events of another type, or with members of their own, keep their place.
func TestCoalescing(t *testing.T) {
	inBubble(t, func(_ context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
		say("TEXT_MESSAGE_START", `{"messageId":"m"}`)
		time.Sleep(10 * time.Millisecond)
		for _, word := range []string{"a", "bc", "ä", "d", "e"} {
			say("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"`+word+`"}`)
			time.Sleep(35 * time.Millisecond)
		}
		say("plan.updated", `{"entries":[]}`)
		say("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"f"}`)
		time.Sleep(10 * time.Millisecond)
		say("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"g"}`)
		say("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"x","timestamp":1}`)
		say("TEXT_MESSAGE_END", `{"messageId":"m"}`)
		return nil
	}, func(w *world) {
		w.create("s")
		w.store.lag.Store(int64(100 * time.Millisecond))
		w.start("s")
		time.Sleep(time.Minute)
		compare(w, strings.ReplaceAll(lines(w.events("s")), `TEXT_MESSAGE_`, ""), `
0 0 session.created {}
1 0 message.added {"message":{"id":"MSG","role":"user","content":"go"}}
2 0 RUN_STARTED {"metadata":{"tapedeck":{"agent":"bot","owner":"ENG"}},"runId":"INV","threadId":"main"}
3 100 START {"messageId":"m"}
4 110 CONTENT {"messageId":"m","delta":"abcä","cuts":[[1,0],[2,35],[2,70]]}
5 215 CONTENT {"messageId":"m","delta":"de","cuts":[[1,0],[1,35]]}
6 285 plan.updated {"entries":[]}
7 285 CONTENT {"messageId":"m","delta":"fg","cuts":[[1,0],[1,10]]}
8 295 CONTENT {"messageId":"m","delta":"x","timestamp":1}
9 295 END {"messageId":"m"}
10 500 RUN_FINISHED {"outcome":{"type":"success"},"threadId":"main","runId":"INV"}
`)
	})
}

// An agent that is faster than the store has to wait, and loses no event.
func TestBackPressure(t *testing.T) {
	const words = 100_000
	var spoken atomic.Int64
	inBubble(t, func(_ context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
		spoken.Store(0)
		say("TEXT_MESSAGE_START", `{"messageId":"m"}`)
		for i := range words {
			say("TEXT_MESSAGE_CONTENT", fmt.Sprintf(`{"messageId":"m","delta":"%d "}`, i))
			spoken.Add(1)
		}
		say("TEXT_MESSAGE_END", `{"messageId":"m"}`)
		return nil
	}, func(w *world) {
		w.create("s")
		w.start("s")
		w.store.lag.Store(int64(time.Second))
		time.Sleep(900 * time.Millisecond)
		if n := spoken.Load(); n == 0 || n > words/2 {
			w.Errorf("%d words were spoken before the store took one", n)
		}
		time.Sleep(time.Hour)
		if ev, _ := w.end("s"); ev.Type != tapedeck.RunFinished {
			w.Errorf("it ended with %s", ev.Type)
		}
		var want bytes.Buffer
		for i := range words {
			fmt.Fprintf(&want, "%d ", i)
		}
		if got := said(w, w.events("s"))["m"]; got != want.String() {
			w.Errorf("%d bytes were said, %d are kept", want.Len(), len(got))
		}
	})
}

// All events of an agent are in the log, in order, each message whole.
func TestRunProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		type line struct {
			typ, data string
			pause     time.Duration
		}
		var script []line
		want := map[string]string{}
		add := func(typ, data string) {
			script = append(script, line{typ, data, time.Duration(rapid.IntRange(0, 5).Draw(r, "pause")) * 10 * time.Millisecond})
		}
		kinds := []struct{ typ, member, more string }{
			{"TEXT_MESSAGE", "messageId", ""}, {"TOOL_CALL", "toolCallId", `,"toolCallName":"T"`}, {"REASONING_MESSAGE", "messageId", ""}}
		var open []int
		for i := range rapid.IntRange(1, 4).Draw(r, "things") {
			k := kinds[i%3]
			add(k.typ+"_START", fmt.Sprintf(`{%q:"id%d"%s}`, k.member, i, k.more))
			open = append(open, i)
		}
		for range rapid.IntRange(0, 40).Draw(r, "deltas") {
			i := rapid.SampledFrom(open).Draw(r, "thing")
			k, id := kinds[i%3], fmt.Sprintf("id%d", i)
			delta := rapid.SampledFrom([]string{"a", "ü", "\\u00e9", "\\n", "long text ", "𝄞", "\\ud834\\udd1e"}).Draw(r, "delta")
			want[id] += strings.NewReplacer("\\u00e9", "é", "\\n", "\n", "\\ud834\\udd1e", "𝄞").Replace(delta)
			typ := k.typ + "_CONTENT"
			if i%3 == 1 {
				typ = "TOOL_CALL_ARGS"
			}
			add(typ, fmt.Sprintf(`{%q:%q,"delta":"%s"}`, k.member, id, delta))
		}
		for _, i := range open {
			add(kinds[i%3].typ+"_END", fmt.Sprintf(`{%q:"id%d"}`, kinds[i%3].member, i))
		}
		lag := rapid.IntRange(0, 100).Draw(r, "lag")
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, func(_ context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
				for _, l := range script {
					say(l.typ, l.data)
					time.Sleep(l.pause)
				}
				return nil
			})
			w.create("s")
			w.start("s")
			w.store.lag.Store(int64(lag) * int64(time.Millisecond))
			time.Sleep(time.Hour)
			if ev, _ := w.end("s"); ev.Type != tapedeck.RunFinished {
				r.Fatalf("it ended with %s %s", ev.Type, ev.Data)
			}
			got := said(t, w.events("s"))
			for id, text := range want {
				if got[id] != text {
					r.Fatalf("%s says %q, want %q", id, got[id], text)
				}
			}
		})
	})
}

func TestRunFailures(t *testing.T) {
	begin := func(say func(string, string) bool) {
		say("TEXT_MESSAGE_START", `{"messageId":"m"}`)
		say("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"well "}`)
	}
	for _, tt := range []struct {
		name string
		say  func(say func(string, string) bool) error
		code string
		text string // of the message
	}{
		{"an error for users", func(func(string, string) bool) error {
			return fmt.Errorf("secret: %w", tapedeck.Errorf(tapedeck.Unavailable, "the model is overloaded"))
		}, "agent", "the model is overloaded"},
		{"an error of ours", func(func(string, string) bool) error { return errors.New("secret /etc/key") }, "agent", "the agent failed"},
		{"an internal error", func(func(string, string) bool) error { return tapedeck.Errorf(tapedeck.Internal, "secret") }, "agent", "the agent failed"},
		{"a panic", func(func(string, string) bool) error { panic("secret") }, "agent", "the agent failed"},
		{"it leaves its goroutine", func(func(string, string) bool) error { runtime.Goexit(); return nil }, "agent", "the agent failed"},
		{"an endless error", func(func(string, string) bool) error {
			return tapedeck.Errorf(tapedeck.Invalid, "%s", strings.Repeat("ä", 1<<20))
		}, "agent", strings.Repeat("ä", 2048) + "…"},
		{"nonsense", func(say func(string, string) bool) error {
			say("TEXT_MESSAGE_END", `{"messageId":"other"}`)
			say("TEXT_MESSAGE_END", `{"messageId":"m"}`)
			return nil
		}, "protocol", `text message "other" is not open`},
		{"no JSON", func(say func(string, string) bool) error { say("x.y", `{`); return nil }, "protocol", "not a JSON object"},
		{"no type", func(say func(string, string) bool) error { say("", `{}`); return nil }, "protocol", "type is empty"},
		{"it ends its run", func(say func(string, string) bool) error { say("RUN_FINISHED", `{}`); return nil }, "protocol", "an agent cannot send RUN_FINISHED"},
		{"it begins a run", func(say func(string, string) bool) error { say("RUN_STARTED", `{"runId":"x"}`); return nil }, "protocol", "an agent cannot send RUN_STARTED"},
		{"it fails its run", func(say func(string, string) bool) error { say("RUN_ERROR", `{"message":"x"}`); return nil }, "protocol", "an agent cannot send RUN_ERROR"},
		{"it closes the session", func(say func(string, string) bool) error { say("session.closed", `{}`); return nil }, "protocol", "an agent cannot send session.closed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(_ context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
					begin(say)
					return tt.say(say)
				}, func(o *engine.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
				w.create("s")
				w.start("s")
				w.store.lag.Store(int64(time.Second)) // so that all of it comes in one append
				time.Sleep(time.Minute)
				ev, status := w.end("s")
				data := string(ev.Data)
				if ev.Type != tapedeck.RunError || status != tapedeck.StatusFailed ||
					!strings.Contains(data, `"code":"`+tt.code+`"`) || !strings.Contains(strings.ReplaceAll(data, `\"`, `"`), tt.text) {
					t.Errorf("it ended %s with %s %.300s", status, ev.Type, data)
				}
				if strings.Contains(data, "secret") || len(data) > 5000 {
					t.Errorf("users see %.300s", data)
				}
				if got := types(w.events("s")); got != "message.added RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_ERROR" {
					t.Error(got)
				}
				w.start("s") // the thread is free again
			})
			if tt.text == "the agent failed" && !strings.Contains(log.String(), "secret") && tt.name != "it leaves its goroutine" {
				t.Errorf("the operator is not told: %s", &log)
			}
		})
	}
}

// A tellingStore refuses the beginning of a message. Its error has words that only
// the server's log may have.
type tellingStore struct{ tapedeck.Store }

func (s tellingStore) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	if slices.ContainsFunc(a.Events, func(e tapedeck.Event) bool { return e.Type == tapedeck.TextMessageStart }) {
		return tapedeck.Appended{}, errors.New("page 7 of /home/ada/secret.db is damaged")
	}
	return s.Store.Append(ctx, a)
}

// The end of a run says that an event could not be stored, and not why.
func TestStorageErrorsTellNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, chatty, func(o *engine.Options) { o.Store = tellingStore{o.Store} })
		w.create("s")
		w.start("s")
		time.Sleep(time.Minute)
		ev, _ := w.end("s")
		if said := string(ev.Data); !strings.Contains(said, `"code":"storage"`) || strings.Contains(said, "secret") {
			t.Errorf("it ended with %s %s", ev.Type, said)
		}
	})
}

func TestRunOutage(t *testing.T) {
	for _, tt := range []struct {
		outage time.Duration
		want   string // type of the last event, and its code
		whole  bool
	}{
		{5 * time.Second, "RUN_FINISHED", true},
		{25 * time.Second, "RUN_FINISHED", true},
		{10 * time.Minute, `"code":"storage"`, false},
	} {
		t.Run(tt.outage.String(), func(t *testing.T) {
			inBubble(t, func(ctx context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
				say("TEXT_MESSAGE_START", `{"messageId":"m"}`)
				for i := range 20 {
					say("TEXT_MESSAGE_CONTENT", fmt.Sprintf(`{"messageId":"m","delta":"%d "}`, i))
					time.Sleep(time.Second)
				}
				say("TEXT_MESSAGE_END", `{"messageId":"m"}`)
				return ctx.Err()
			}, func(w *world) {
				w.create("s")
				w.start("s")
				time.Sleep(2500 * time.Millisecond)
				w.down.Store(true)
				time.Sleep(tt.outage)
				w.down.Store(false)
				time.Sleep(30 * time.Second)
				ev, _ := w.end("s")
				if !strings.Contains(ev.Type+string(ev.Data), tt.want) {
					w.Errorf("it ended with %s %s", ev.Type, ev.Data)
				}
				got := said(w, w.events("s"))["m"]
				const all = "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 "
				if !strings.HasPrefix(got, "0 1 2 ") || !strings.HasPrefix(all, got) || tt.whole != (got == all) {
					w.Errorf("kept %q", got)
				}
			})
		})
	}
}
