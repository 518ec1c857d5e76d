package subscription

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

func sorted(list string) string {
	parts := strings.Split(list, ", ")
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// pull creates a subscription of type pull-wake.
func (w *world) pull(id, members string) {
	w.t.Helper()
	w.expect(201, "PUT", "/subscriptions/"+id, "", `{"type":"pull-wake","wake_stream":"wake/pool",`+members+`}`, nil)
}

func (w *world) claim(id string) claimed {
	w.t.Helper()
	var c claimed
	w.expect(200, "POST", "/subscriptions/"+id+"/claim", "", `{"worker":"w"}`, &c)
	return c
}

// TestPullWake: a wake is announced once, claimed by one worker, and begins again when
// the worker releases it or dies.
func TestPullWake(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream("wake/pool")
		w.pull("s", `"pattern":"**","lease_ttl_ms":5000`)
		w.refused(codeNoWork, "POST", "/subscriptions/s/claim", "", `{"worker":"w"}`)
		w.stream("a", "1")
		w.say("a", "2")
		is(t, "announced", strings.Count(w.read("wake/pool"), `{"type":"wake","subscription_id":"s","stream":"a","generation":1,"ts":`), 1)
		c := w.claim("s")
		is(t, "its end", short(c.Streams[0].Tail), "2")
		w.refused(codeClaimed, "POST", "/subscriptions/s/claim", "", `{"worker":"x"}`)
		report := fmt.Sprintf(`{"wake_id":%q,"generation":1}`, c.Wake)
		w.expect(204, "POST", "/subscriptions/s/release", c.Token, report, nil)
		w.refused(codeFenced, "POST", "/subscriptions/s/release", c.Token, report)
		w.refused(codeFenced, "POST", "/subscriptions/s/ack", c.Token, report)
		is(t, "announced after the release", strings.Count(w.read("wake/pool"), `"generation":2`), 1)
		c = w.claim("s")
		time.Sleep(4 * time.Second)
		report = fmt.Sprintf(`{"wake_id":%q,"generation":2}`, c.Wake)
		w.expect(200, "POST", "/subscriptions/s/ack", c.Token, report, nil)
		time.Sleep(4 * time.Second)
		is(t, "during the lease", strings.Contains(w.read("wake/pool"), `"generation":3`), false)
		time.Sleep(2 * time.Second)
		is(t, "announced after the lease", strings.Count(w.read("wake/pool"), `"generation":3`), 1)
		w.refused(codeFenced, "POST", "/subscriptions/s/ack", c.Token, done(c.Wake, 2, "a 2"))
		c = w.claim("s")
		w.expect(200, "POST", "/subscriptions/s/ack", c.Token, done(c.Wake, 3, "a 2"), nil)
		time.Sleep(time.Hour)
		is(t, "announcements", strings.Count(w.read("wake/pool"), "\n"), 3)
	})
}

// TestClaimSeesTheAppendBefore: a worker that learned of an append by other means can
// claim at once.
func TestClaimSeesTheAppendBefore(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream("wake/pool")
		w.stream("a")
		w.pull("s", `"streams":["a"]`)
		for i := range int64(20) {
			w.say("a", "x") // no goroutine of the dispatcher has run since
			c := w.claim("s")
			w.expect(200, "POST", "/subscriptions/s/ack", c.Token, done(c.Wake, c.Generation, fmt.Sprint("a ", i+1)), nil)
		}
	})
}

// TestDeletedBeforeTheClaim: a worker that finds nothing is told of the next event.
func TestDeletedBeforeTheClaim(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream("wake/pool")
		w.pull("s", `"pattern":"*"`)
		w.stream("a", "1")
		w.read("wake/pool")
		w.remove("stream/a")
		w.refused(codeNoWork, "POST", "/subscriptions/s/claim", "", `{"worker":"w"}`)
		w.stream("b", "1")
		is(t, "announcements", strings.Count(w.read("wake/pool"), "\n"), 2)
		w.remove("stream/b")
		w.refused(codeNoWork, "POST", "/subscriptions/s/claim", "", `{"worker":"w"}`)
		w.restart()
		w.stream("c", "1")
		is(t, "announcements after a restart", strings.Count(w.read("wake/pool"), "\n"), 3)
	})
}

// TestWakeStreams: a subscription without its wake stream waits for it. Wakes wake nobody,
// or two subscriptions could wake each other for ever.
func TestWakeStreams(t *testing.T) {
	bubble(t, func(w *world) {
		w.pull("s", `"pattern":"**"`)
		w.expect(201, "PUT", "/subscriptions/t", "", `{"type":"pull-wake","pattern":"**","wake_stream":"wake/other"}`, nil)
		w.stream("wake/other")
		w.stream("a", "1")
		w.settle()
		if s := w.subscription("s"); s.Status != "failed" || !strings.Contains(s.LastError, "wake stream") {
			t.Errorf("without the wake stream: %+v", s)
		}
		w.stream("wake/pool")
		time.Sleep(time.Minute)
		is(t, "announcements", strings.Count(w.read("wake/pool"), "\n"), 1)
		for _, id := range []string{"s", "t"} {
			c := w.claim(id)
			is(t, "streams", len(c.Streams), 1)
			w.expect(200, "POST", "/subscriptions/"+id+"/ack", c.Token, done(c.Wake, c.Generation, "a 1"), nil)
		}
		time.Sleep(time.Hour)
		is(t, "announcements after an hour", strings.Count(w.read("wake/pool")+w.read("wake/other"), "\n"), 2)
	})
}

func TestAcks(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream("wake/pool")
		w.stream("unwatched", "1")
		w.pull("s", `"pattern":"a/*","streams":["later"],"lease_ttl_ms":600000`)
		w.stream("a/x", "1", "2", "3")
		c := w.claim("s")
		ackOf := func(stream, offset string) string {
			return fmt.Sprintf(`{"wake_id":%q,"generation":1,"acks":[{"stream":%q,"offset":%q}]}`, c.Wake, stream, offset)
		}
		w.expect(200, "POST", "/subscriptions/s/ack", c.Token, ackOf("a/x", position(2)), nil)
		for _, a := range [][2]string{
			{"a/x", position(1)}, {"a/x", position(4)}, {"a/x", "-1"}, {"a/x", "now"}, {"a/x", ""}, {"a/x", "2"}, {"a/x", strings.Repeat("9", 33)},
			{"a/x", positionOf(99, 2)}, {"a/x", position(2) + "_"}, {"a/x", position(2) + "_x"}, {"a/x", position(2) + ".3"},
			{"a/none", position(0)}, {"later", position(0)}, {"unwatched", position(1)}, {"wake/pool", position(0)}, {"", position(1)}, {"../a", position(1)},
			{"sessions/none", position(1)},
		} {
			w.refused(codeOffset, "POST", "/subscriptions/s/ack", c.Token, ackOf(a[0], a[1]))
		}
		two := fmt.Sprintf(`{"wake_id":%q,"generation":1,"acks":[{"stream":"a/x","offset":%q},{"stream":"a/none","offset":%q}]}`, c.Wake, position(3), position(1))
		w.refused(codeOffset, "POST", "/subscriptions/s/ack", c.Token, two)
		is(t, "acked", short(w.subscription("s").Streams[1].Acked), "2")
		part := position(2)[:17] + "0000000000000005" // five bytes of the third message
		w.expect(200, "POST", "/subscriptions/s/ack", c.Token, ackOf("a/x", part), nil)
		is(t, "a part of a record", short(w.subscription("s").Streams[1].Acked), "2")
	})
}

func TestExplicitStreams(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream("m/a", "1", "2")
		w.stream("m/c", "1")
		w.hook("s", `"streams":["m/none","/m/a/"],"pattern":"g/*"`)
		w.stream("m/none", "1")
		is(t, "created later", w.told(), "m/none 0-1")
		w.stream("g/x", "1")
		is(t, "the pattern", w.told(), "g/x 0-1")
		w.expect(204, "POST", "/subscriptions/s/streams", "", `{"streams":["m/c","g/x","m/a"]}`, nil)
		is(t, "what was there", w.told(), "")
		w.say("m/c", "2")
		is(t, "what is new", w.told(), "m/c 1-2")
		is(t, "the type", w.subscription("s").Streams[0].Path+w.subscription("s").Streams[0].Type, "g/xexplicit")
		for _, p := range []string{"m%2Fc", "g/x", "m/c", "never"} {
			w.expect(204, "DELETE", "/subscriptions/s/streams/"+p, "", "", nil)
		}
		w.say("m/c", "3")
		w.say("g/x", "2")
		is(t, "without m/c", w.told(), "g/x 1-2")
		w.expect(204, "POST", "/subscriptions/s/streams", "", `{"streams":["m/c"]}`, nil)
		w.restart()
		is(t, "linked again", w.told(), "")
		w.say("m/c", "4")
		is(t, "from there on", w.told(), "m/c 3-4")
	})
}

// TestRemoveWhilePending: a stream that was removed is not in the next attempt.
func TestRemoveWhilePending(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"streams":["a","b"]`)
		w.answers(func(*notification) (int, string) { return 500, "" })
		w.stream("a", "1")
		w.stream("b", "1")
		w.settle()
		w.expect(204, "DELETE", "/subscriptions/s/streams/a", "", "", nil)
		w.taken()
		time.Sleep(2 * time.Second)
		is(t, "the next attempt", w.told(), "b 0-1")
	})
}

func outcome(kind string) []byte {
	if kind == payload.OutcomeInterrupt {
		return []byte(`{"threadId":"main","runId":"i","outcome":{"type":"interrupt","interrupts":[{"id":"q","reason":"r"}]}}`)
	}
	return []byte(`{"threadId":"main","runId":"i"}`)
}

// TestFilters: each filter selects its events of sessions, and tells which.
func TestFilters(t *testing.T) {
	bubble(t, func(w *world) {
		for _, f := range []string{"run-finished", "question-asked", "task-added"} {
			w.hook(f, `"pattern":"**","filter":"`+f+`"`)
		}
		told := func() string {
			var out []string
			for _, n := range w.taken() {
				for _, s := range n.Streams {
					for _, e := range s.Events {
						out = append(out, fmt.Sprintf("%s %s/%s %s %s", n.Subscription, s.Path, short(e.Offset), e.Type, e.Invocation))
					}
				}
			}
			return sorted(strings.Join(out, ", "))
		}
		w.stream("plain", `{"type":"RUN_FINISHED"}`)
		message := func(role, invocation string) tapedeck.Event {
			return tapedeck.Event{Type: tapedeck.MessageAdded, Invocation: invocation, Data: []byte(`{"message":{"id":"m","role":"` + role + `","content":"say RUN_FINISHED"}}`)}
		}
		w.session("a", message("system", "i"), message("user", ""))
		is(t, "nothing yet", told(), "")
		w.session("a", message("user", "i"))
		is(t, "a task", told(), "task-added sessions/a/3 message.added i")
		w.session("a", tapedeck.Event{Type: tapedeck.RunStarted, Invocation: "i"}, tapedeck.Event{Type: tapedeck.PermissionRequested, Invocation: "i"},
			tapedeck.Event{Type: "TEXT_MESSAGE_CONTENT", Invocation: "i", Data: []byte(`{"delta":"\"RUN_FINISHED\""}`)})
		is(t, "a question", told(), "question-asked sessions/a/5 permission.requested i")
		w.session("a", tapedeck.Event{Type: tapedeck.RunFinished, Invocation: "i", Data: outcome("")})
		is(t, "an end", told(), "run-finished sessions/a/7 RUN_FINISHED i")
		w.session("a", tapedeck.Event{Type: tapedeck.RunStarted, Invocation: "j"}, tapedeck.Event{Type: tapedeck.RunError, Invocation: "j"})
		is(t, "a failure", told(), "run-finished sessions/a/9 RUN_ERROR j")
		w.session("a", tapedeck.Event{Type: tapedeck.RunStarted, Invocation: "k"},
			tapedeck.Event{Type: tapedeck.RunFinished, Invocation: "k", Data: outcome(payload.OutcomeInterrupt)})
		is(t, "an interrupt", told(), "question-asked sessions/a/11 RUN_FINISHED k, run-finished sessions/a/11 RUN_FINISHED k")
	})
}

// TestErasedEvents: an event that was erased triggers no wake any more.
func TestErasedEvents(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"sessions/*","filter":"question-asked"`)
		w.answers(func(*notification) (int, string) { return 500, "" })
		w.session("a", tapedeck.Event{Type: tapedeck.PermissionRequested, Invocation: "i"}, tapedeck.Event{Type: tapedeck.PermissionRequested, Invocation: "j"})
		w.taken()
		erase := func(from, to int64) {
			_, err := w.hub.Erase(w.t.Context(), tapedeck.Erasure{
				Session: "a", Ranges: []tapedeck.OffsetRange{{From: from, To: to}}, Events: []tapedeck.Event{{Type: tapedeck.SessionRedacted}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		erase(1, 2)
		time.Sleep(2 * time.Second)
		n := w.taken()
		if len(n) != 1 || len(n[0].Streams[0].Events) != 1 || n[0].Streams[0].Events[0].Invocation != "j" {
			t.Fatalf("after the first erasure: %+v", n)
		}
		erase(2, 3)
		time.Sleep(time.Hour)
		is(t, "after both", w.told(), "")
		w.answers(nil)
		w.restart()
		is(t, "after a restart", w.told(), "")
	})
}

// TestManyTriggers: a wake tells of a bounded number of events, and the next wake of the
// others.
func TestManyTriggers(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"sessions/*","filter":"run-finished"`)
		w.stop()
		var all []tapedeck.Event
		for i := range 25_000 {
			e := tapedeck.Event{Type: "CUSTOM"}
			if i%100 == 0 {
				e.Type = tapedeck.RunError
			}
			all = append(all, e)
		}
		w.session("a")
		if _, err := w.hub.Append(w.t.Context(), tapedeck.Append{Session: "a", Events: all}); err != nil {
			t.Fatal(err)
		}
		w.start()
		next := int64(1)
		for _, n := range w.taken() {
			if len(n.Streams[0].Events) > maxTriggers {
				t.Errorf("a wake has %d events", len(n.Streams[0].Events))
			}
			for _, e := range n.Streams[0].Events {
				is(t, "the event", short(e.Offset), fmt.Sprint(next))
				next += 100
			}
		}
		is(t, "the end", next, 25_001)
	})
}

// TestManyStreams: a wake tells of a bounded number of streams, and each gets its turn.
func TestManyStreams(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"*"`)
		w.stop()
		for i := range 2500 {
			w.stream(fmt.Sprint("s", i), "1")
		}
		w.start()
		seen := map[string]int{}
		for _, n := range w.taken() {
			if len(n.Streams) > maxInWake {
				t.Errorf("a wake has %d streams", len(n.Streams))
			}
			for _, s := range n.Streams {
				seen[s.Path]++
			}
		}
		is(t, "streams", len(seen), 2500)
	})
}

// TestEveryMessageIsProcessed: writers append while workers claim, acknowledge a part,
// release, or die, and the process restarts. The workers process every message of every
// stream in order, and at the end nothing is pending.
func TestEveryMessageIsProcessed(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream("wake/pool")
		w.pull("s", `"pattern":"a/**","lease_ttl_ms":1000`)
		random := rand.New(rand.NewPCG(1, 2))
		heads, acked := map[string]int64{}, map[string]int64{}
		for step := range 3000 {
			path := fmt.Sprint("a/", random.IntN(5))
			switch random.IntN(12) {
			case 0, 1, 2, 3, 4:
				if _, ok := heads[path]; !ok {
					w.stream(path)
				}
				w.say(path, "m")
				heads[path]++
			case 5:
				time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
			case 6:
				if random.IntN(10) == 0 {
					keys := w.d.keys
					w.restart()
					w.d.keys = keys
				}
			default:
				w.work(random, heads, acked, step == 2999)
			}
		}
		for range 100 {
			time.Sleep(2 * time.Second)
			w.work(random, heads, acked, true)
		}
		for p, head := range heads {
			is(t, p, acked[p], head)
		}
		w.refused(codeNoWork, "POST", "/subscriptions/s/claim", "", `{"worker":"w"}`)
	})
}

// work claims a wake, if there is one, and processes some of it.
func (w *world) work(random *rand.Rand, heads, acked map[string]int64, all bool) {
	w.t.Helper()
	code, _ := w.call("POST", "/subscriptions/s/claim", "", `{"worker":"probe"}`)
	pending := false
	for p, head := range heads {
		pending = pending || acked[p] < head
	}
	if code == 409 {
		return
	}
	if !pending {
		w.t.Fatal("a wake began though nothing is pending")
	}
	s := w.d.all()[0]
	s.mu.Lock()
	wake, generation := *s.state.Wake, s.state.Generation
	streams, _, _ := s.snapshot(w.t.Context())
	s.mu.Unlock()
	token, _ := w.d.newToken("s", &wake, generation)
	r := done(wake.ID, generation)
	var acks []string
	for _, info := range streams {
		is(w.t, info.Path+" is acknowledged", short(info.Acked), fmt.Sprint(acked[info.Path]))
		is(w.t, info.Path+" ends", short(info.Tail), fmt.Sprint(heads[info.Path]))
		at := acked[info.Path] + random.Int64N(heads[info.Path]-acked[info.Path]+1)
		if all {
			at = heads[info.Path]
		}
		acks = append(acks, fmt.Sprint(info.Path, " ", at))
	}
	switch k := random.IntN(4); {
	case all || k < 2:
		r = done(wake.ID, generation, acks...)
		w.expect(200, "POST", "/subscriptions/s/ack", token, r, nil)
		for _, a := range acks {
			path, at, _ := strings.Cut(a, " ")
			var n int64
			fmt.Sscan(at, &n)
			acked[path] = n
		}
	case k == 2:
		w.expect(204, "POST", "/subscriptions/s/release", token, r, nil)
	} // otherwise it dies
}
