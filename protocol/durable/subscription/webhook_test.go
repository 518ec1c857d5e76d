package subscription

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/webhook"
)

// TestWebhook: a webhook that is done gets what is new, once and in order, and nothing
// that was there before.
func TestWebhook(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream("events/old", "1", "2")
		w.hook("s", `"pattern":"events/*"`)
		is(t, "before", w.told(), "")
		w.say("events/old", "3")
		is(t, "a message", w.told(), "events/old 2-3")
		w.stream("other/x", "1")
		w.stream("events/deep/x", "1")
		w.stream("events/new", "1")
		is(t, "a new stream", w.told(), "events/new 0-1")
		w.stream("events/empty")
		is(t, "an empty stream", w.told(), "")
		s := w.subscription("s")
		is(t, "status", s.Status, "active")
		is(t, "generation", s.Generation, 2)
		b, _ := json.Marshal(s.Streams)
		is(t, "streams", string(b), `[{"path":"events/new","link_type":"glob","acked_offset":"`+positionOf(4, 1)+`"},{"path":"events/old","link_type":"glob","acked_offset":"`+positionOf(1, 3)+`"}]`)
	})
}

// TestOneWakeAtATime: what is appended while a wake is on its way comes with the next
// wake, in a higher generation.
func TestOneWakeAtATime(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"**"`)
		release := make(chan bool)
		w.answers(func(*notification) (int, string) {
			<-release
			return 200, `{"done":true}`
		})
		w.stream("a", "1")
		is(t, "first", w.told(), "a 0-1")
		w.say("a", "2", "3")
		w.stream("b", "1")
		is(t, "meanwhile", w.told(), "")
		release <- true
		n := w.taken()
		if len(n) != 1 || n[0].Generation != 2 || len(n[0].Streams) != 2 {
			t.Fatalf("got %+v", n)
		}
		close(release)
		is(t, "then", w.told(), "")
	})
}

// TestCallback: a webhook that is not done calls back. Its lease is extended by each call,
// and fences off a worker that is too late.
func TestCallback(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"**","lease_ttl_ms":10000`)
		w.answers(func(*notification) (int, string) { return 202, "<html>thanks</html>" })
		w.stream("a", "1", "2")
		n := w.taken()[0]
		is(t, "the URL", n.CallbackURL, "http://example.com"+root+"/subscriptions/s/callback")
		working := strings.Replace(done(n.Wake, n.Generation, "a 1"), `"done":true`, `"done":false`, 1)
		for range 5 { // longer than the lease
			time.Sleep(8 * time.Second)
			w.expect(200, "POST", "/subscriptions/s/callback", n.CallbackToken, working, nil)
		}
		is(t, "during the lease", w.told(), "")
		is(t, "acked", short(w.subscription("s").Streams[0].Acked), "1")
		time.Sleep(11 * time.Second)
		late := w.taken()
		if len(late) != 1 || late[0].Generation != 2 || late[0].Wake == n.Wake {
			t.Fatalf("after the lease: %+v", late)
		}
		w.refused(codeFenced, "POST", "/subscriptions/s/callback", n.CallbackToken, working)
		w.refused(codeFenced, "POST", "/subscriptions/s/callback", n.CallbackToken, done(late[0].Wake, 2, "a 2"))
		w.refused(codeFenced, "POST", "/subscriptions/s/callback", late[0].CallbackToken, done(n.Wake, 2, "a 2"))
		w.refused(codeFenced, "POST", "/subscriptions/s/callback", late[0].CallbackToken, done(late[0].Wake, 1, "a 2"))
		var answer struct {
			OK   bool `json:"ok"`
			Next bool `json:"next_wake"`
		}
		w.expect(200, "POST", "/subscriptions/s/callback", late[0].CallbackToken, done(late[0].Wake, 2, "a 2"), &answer)
		if !answer.OK || answer.Next {
			t.Errorf("got %+v", answer)
		}
		time.Sleep(time.Hour)
		is(t, "when nothing is pending", w.told(), "")
	})
}

// TestReportBeforeTheAnswer: a receiver that reports before it answers that it is done has
// acknowledged the later of both.
func TestReportBeforeTheAnswer(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"**"`)
		w.answers(func(n *notification) (int, string) {
			w.say("b", "2", "3")
			report := strings.Replace(done(n.Wake, n.Generation, "b 3"), `"done":true`, `"done":false`, 1)
			w.expect(200, "POST", "/subscriptions/s/callback", n.CallbackToken, report, nil)
			return 200, `{"done":true}`
		})
		w.stream("b", "1")
		is(t, "told", w.told(), "b 0-1")
		is(t, "acked", short(w.subscription("s").Streams[0].Acked), "3")
		w.restart()
		is(t, "after a restart", w.told(), "")
	})
}

// TestDoneWithMorePending: a report that ends a wake says whether another begins.
func TestDoneWithMorePending(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"**"`)
		w.answers(func(*notification) (int, string) { return 200, "" })
		w.stream("a", "1", "2")
		n := w.taken()[0]
		var answer map[string]bool
		w.expect(200, "POST", "/subscriptions/s/callback", n.CallbackToken, done(n.Wake, 1, "a 1"), &answer)
		is(t, "next_wake", answer["next_wake"], true)
		is(t, "the next wake", w.told(), "a 1-2")
	})
}

// TestAckOfTheOnlyTrigger: with a filter, events after the last trigger are not pending.
func TestAckOfTheOnlyTrigger(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"**","filter":"question-asked"`)
		w.answers(func(*notification) (int, string) { return 200, "" })
		ask, other := tapedeck.Event{Type: tapedeck.PermissionRequested}, tapedeck.Event{Type: "CUSTOM"}
		w.session("a", ask, other, ask, other, other)
		n := w.taken()[0]
		report := func(at int64) bool {
			var answer map[string]bool
			w.expect(200, "POST", "/subscriptions/s/callback", n.CallbackToken, done(n.Wake, n.Generation, fmt.Sprint("sessions/a ", at)), &answer)
			return answer["next_wake"]
		}
		is(t, "after the first", report(2), true)
		n = w.taken()[0]
		if e := n.Streams[0].Events; len(e) != 1 || short(e[0].Offset) != "3" {
			t.Errorf("the second wake has %+v", e)
		}
		is(t, "after the second", report(4), false)
		w.restart()
		is(t, "after a restart", w.told(), "")
	})
}

func TestTokens(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"**","lease_ttl_ms":600000`)
		w.hook("other", `"pattern":"none"`)
		w.answers(func(*notification) (int, string) { return 200, "" })
		w.stream("a", "1")
		n := w.taken()[0]
		body, sum, _ := strings.Cut(n.CallbackToken, ".")
		for _, token := range []string{"x", ".", body, body + ".", "." + sum, body + "." + sum[1:], "A" + n.CallbackToken[1:], n.CallbackToken + "A", strings.Repeat("a", 1<<16)} {
			w.refused(codeToken, "POST", "/subscriptions/s/callback", token, done(n.Wake, 1))
		}
		w.refused(codeToken, "POST", "/subscriptions/s/callback", "", done(n.Wake, 1))
		w.refused(codeToken, "POST", "/subscriptions/other/callback", n.CallbackToken, done(n.Wake, 1))
		w.refused(codeInvalid, "POST", "/subscriptions/s/ack", n.CallbackToken, done(n.Wake, 1))
		w.refused(codeNotFound, "POST", "/subscriptions/none/callback", n.CallbackToken, done(n.Wake, 1))
		for range 145 { // a lease of ten minutes, for more than a day
			code, _ := w.call("POST", "/subscriptions/s/callback", n.CallbackToken, `{"wake_id":"`+n.Wake+`","generation":1}`)
			if code != 200 {
				break
			}
			time.Sleep(599 * time.Second)
		}
		w.refused(codeExpired, "POST", "/subscriptions/s/callback", n.CallbackToken, done(n.Wake, 1))
	})
}

// TestBackoff: a webhook that fails gets the same wake again, after pauses that grow from
// a second to a minute. A restart does not shorten a pause.
func TestBackoff(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"**"`)
		for _, broken := range []func(*notification) (int, string){
			func(*notification) (int, string) { return 500, `{"done":true}` },
			func(*notification) (int, string) { return 307, `{"done":true}` },
			func(*notification) (int, string) { return 0, "connection reset" },
		} {
			w.answers(broken)
			if w.subscription("s").Generation == 0 {
				w.stream("a", "1")
			} else {
				w.say("a", "x")
			}
			w.settle()
			time.Sleep(10 * time.Minute)
			w.mu.Lock()
			times := w.times
			w.mu.Unlock()
			if len(times) < 10 {
				t.Fatalf("%d attempts", len(times))
			}
			for i := 1; i < len(times); i++ {
				want := min(time.Second<<(i-1), time.Minute)
				if i > 7 {
					want = time.Minute
				}
				if got := times[i].Sub(times[i-1]); got < want*8/10-time.Millisecond || got > want*12/10+time.Millisecond {
					t.Errorf("pause %d takes %v, want about %v", i, got, want)
				}
			}
			first := w.taken()[0]
			s := w.subscription("s")
			if s.Status != "failed" || s.LastError == "" || s.NextAttempt.IsZero() || s.Generation != first.Generation {
				t.Errorf("the subscription is %+v", s)
			}
			next := s.NextAttempt
			w.restart()
			time.Sleep(time.Until(next) - 10*time.Millisecond)
			is(t, "before the next attempt", w.told(), "")
			w.answers(nil)
			time.Sleep(20 * time.Millisecond)
			last := w.taken()
			if len(last) != 1 || last[0].Wake != first.Wake || last[0].Generation != first.Generation {
				t.Fatalf("the attempt after the restart is %+v", last)
			}
			if s := w.subscription("s"); s.Status != "active" || s.LastError != "" || s.Failures != 0 {
				t.Errorf("after it: %+v", s)
			}
		}
	})
}

// TestRestart: what happens while no process runs, or while it dies, is delivered by the
// next one. Nothing is delivered that was acknowledged.
func TestRestart(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream("old", "1")
		w.stream("idle", "1")
		w.hook("s", `"pattern":"**"`)
		w.hook("runs", `"pattern":"sessions/*","filter":"run-finished"`)
		w.say("old", "2")
		w.session("a", tapedeck.Event{Type: tapedeck.RunStarted, Invocation: "i"})
		w.settle()
		w.taken()
		w.stop()
		w.say("old", "3")
		w.stream("new", "1")
		w.session("a", tapedeck.Event{Type: tapedeck.RunFinished, Invocation: "i"})
		w.start()
		is(t, "after the restart", sorted(w.told()), "new 0-1, old 2-3, sessions/a 0-3, sessions/a 2-3")
		w.restart()
		is(t, "after another", w.told(), "")
	})
}

// TestRestartDuringLease: a wake that a receiver has accepted is not sent again before
// its lease ends, and its token stays valid.
func TestRestartDuringLease(t *testing.T) {
	bubble(t, func(w *world) {
		keys := w.d.keys
		w.hook("s", `"pattern":"**","lease_ttl_ms":60000`)
		w.answers(func(*notification) (int, string) { return 200, "" })
		w.stream("a", "1")
		n := w.taken()[0]
		w.stop()
		w.start()
		w.d.keys = keys // those of a folder survive
		is(t, "after the restart", w.told(), "")
		w.expect(200, "POST", "/subscriptions/s/callback", n.CallbackToken, `{"wake_id":"`+n.Wake+`","generation":1}`, nil)
		time.Sleep(61 * time.Second)
		is(t, "after the lease", w.told(), "a 0-1")
	})
}

// TestCrashDuringDelivery: a wake whose receiver may have it keeps its id and generation,
// so that the receiver can recognize it, and its token is of use.
func TestCrashDuringDelivery(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"**"`)
		hang := func(*notification) (int, string) {
			time.Sleep(time.Second)
			return 200, `{"done":true}`
		}
		w.answers(hang)
		w.stream("a", "1")
		first := w.taken()
		w.restart()
		w.answers(nil)
		second := w.taken()
		if len(first) != 1 || len(second) != 1 || first[0].Wake != second[0].Wake || second[0].Generation != 1 {
			t.Errorf("before the crash: %+v; after it: %+v", first, second)
		}
	})
}

// TestDeletedSessions: a wake that is repeated does not tell of a deleted stream. If
// nothing else is pending, it is not repeated.
func TestDeletedSessions(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"**"`)
		w.answers(func(*notification) (int, string) { return 500, "" })
		w.stream("a", "1")
		w.stream("b", "1")
		w.session("c")
		w.settle()
		w.remove("stream/a")
		w.remove("c")
		w.taken()
		time.Sleep(1500 * time.Millisecond)
		is(t, "the next attempt", w.told(), "b 0-1")
		w.remove("stream/b")
		time.Sleep(time.Hour)
		is(t, "after the last was deleted", w.told(), "")
		w.answers(nil)
		w.stream("b", "x", "y")
		time.Sleep(time.Minute)
		is(t, "recreated", w.told(), "b 0-2")
	})
}

// TestExpiredStreams: a wake does not tell of a stream that has expired.
func TestExpiredStreams(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"**"`)
		w.answers(func(*notification) (int, string) { return 500, "" })
		for path, ttl := range map[string]time.Duration{"short": 500 * time.Millisecond, "long": 0} {
			_, err := w.hub.Create(w.t.Context(), tapedeck.Spec{
				ID: tapedeck.StreamPrefix + path, Kind: tapedeck.KindStream, ContentType: "text/plain", TTL: ttl, Chunks: [][]byte{{1}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		w.taken()
		time.Sleep(1500 * time.Millisecond)
		is(t, "told", w.told(), "long 0-1")
	})
}

// TestSlowWebhook: a webhook that never answers holds up neither writers nor other
// subscriptions. Its request ends with the lease.
func TestSlowWebhook(t *testing.T) {
	bubble(t, func(w *world) {
		ended := make(chan bool, 1)
		w.d.client = webhook.New(nil, roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/never" {
				<-r.Context().Done()
				ended <- true
				return nil, r.Context().Err()
			}
			return w.RoundTrip(r)
		}))
		w.expect(201, "PUT", "/subscriptions/slow", "", `{"type":"webhook","webhook":{"url":"https://hook.example/never"},"pattern":"*","lease_ttl_ms":2000}`, nil)
		w.hook("quick", `"pattern":"*"`)
		began := time.Now()
		for i := range 50 {
			if i == 0 {
				w.stream("a")
			}
			w.say("a", "x")
			is(t, "the quick one", w.told(), fmt.Sprintf("a %d-%d", i, i+1))
		}
		is(t, "the slow one still waits", len(ended), 0)
		<-ended
		is(t, "the end of the request", time.Since(began).Round(100*time.Millisecond), 2*time.Second)
		w.settle()
		is(t, "the reason", w.subscription("slow").LastError, "the webhook failed: it did not answer in time")
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDeleteDuringDelivery: a deleted subscription ends its request at once, and a late
// callback changes nothing.
func TestDeleteDuringDelivery(t *testing.T) {
	bubble(t, func(w *world) {
		var got notification
		ended := make(chan struct{})
		w.d.client = webhook.New(nil, roundTripper(func(r *http.Request) (*http.Response, error) {
			_ = json.NewDecoder(r.Body).Decode(&got)
			<-r.Context().Done()
			close(ended)
			return nil, r.Context().Err()
		}))
		w.hook("s", `"pattern":"*"`)
		w.stream("a", "1")
		w.settle()
		began := time.Now()
		w.expect(204, "DELETE", "/subscriptions/s", "", "", nil)
		w.expect(204, "DELETE", "/subscriptions/s", "", "", nil)
		<-ended
		is(t, "time that has passed", time.Since(began), 0)
		w.settle()
		states, err := w.store.Subscriptions().All(w.t.Context())
		if len(states) != 0 || err != nil {
			t.Errorf("the store has %v, %v", states, err)
		}
		w.refused(codeNotFound, "POST", "/subscriptions/s/callback", got.CallbackToken, done(got.Wake, 1, "a 1"))
		w.d.client = webhook.New(nil, w)
		w.hook("s", `"pattern":"*"`)
		w.refused(codeFenced, "POST", "/subscriptions/s/callback", got.CallbackToken, done(got.Wake, 1, "a 1"))
		w.say("a", "2")
		is(t, "the new one", w.told(), "a 1-2")
	})
}

// TestFullDisk: a store that fails loses no wake.
func TestFullDisk(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"*"`)
		w.stream("a")
		w.answers(func(n *notification) (int, string) {
			w.full.Store(true) // the answer cannot be stored
			return 200, `{"done":true}`
		})
		w.say("a", "1")
		is(t, "first", w.told(), "a 0-1")
		w.refused(codeUnavailable, "PUT", "/subscriptions/x", "", `{"type":"webhook","webhook":{"url":"https://hook.example/x"},"pattern":"*"}`)
		w.refused(codeUnavailable, "DELETE", "/subscriptions/s", "", "")
		w.answers(nil)
		w.full.Store(false)
		time.Sleep(time.Minute)
		is(t, "again", w.told(), "a 0-1")
		is(t, "acked", short(w.subscription("s").Streams[0].Acked), "1")
	})
}

// TestSaysDone: only a JSON object with done says that a receiver is done.
func TestSaysDone(t *testing.T) {
	for answer, want := range map[string]bool{
		`{"done":true}`: true, ` {"more":1,"done":true} `: true, `{"done":false}`: false, `{"done":"true"}`: false, `[{"done":true}]`: false,
		"": false, "<html>done: true</html>": false, `{"done":true,"x":"` + strings.Repeat("x", webhook.MaxAnswer) + `"}`: false,
	} {
		if saysDone([]byte(answer)) != want {
			t.Errorf("%.40s: not %t", answer, want)
		}
	}
}
