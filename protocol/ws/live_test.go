package ws_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/protocol/ws"
)

// paths are those of the session "s".
var paths = map[string]string{ws.Native: "/sessions/s/ws", ws.Replay: "/sessions/s/ws/replay"}

// say appends an event with a text to a session.
func (w *world) say(t *testing.T, session, text string) {
	t.Helper()
	data, _ := json.Marshal(map[string]string{"text": text})
	if _, err := w.Append(t.Context(), tapedeck.Append{Session: session, Events: []tapedeck.Event{{Type: "acme.said", Data: data}}}); err != nil {
		t.Fatal(err)
	}
}

func within(t *testing.T, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "s", "other")
		defer w.stop(t)
		f(t, w)
	})
}

// TestStuckReader: a client that reads nothing slows nobody. It loses its socket after a
// minute, and nothing else.
func TestStuckReader(t *testing.T) {
	for _, protocol := range []string{ws.Native, ws.Replay} {
		within(t, func(t *testing.T, w *world) {
			p := w.dial(t, paths[protocol], protocol)
			defer func() { _ = p.CloseNow() }()
			if protocol == ws.Native {
				p.send(t, `{"type":"follow"}`)
			}
			p.received()
			thaw := p.freeze()
			begun := time.Now()
			for i := range 200 {
				w.say(t, "s", fmt.Sprint(i, strings.Repeat("x", 1000)))
				e := tapedeck.Event{Type: "message.added", Thread: "thread_e", Data: json.RawMessage(`{"message":{"id":"m","role":"assistant","content":"hello"}}`)}
				if _, err := w.Append(t.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{e}}); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(begun); took > 0 {
				t.Errorf("%s: the writer waited for %v", protocol, took)
			}
			time.Sleep(50 * time.Second)
			synctest.Wait()
			if n := w.Followers(); n != 1 {
				t.Errorf("%s: after 50 s there are %d followers", protocol, n)
			}
			time.Sleep(20 * time.Second)
			synctest.Wait()
			if n := w.Followers(); n != 0 {
				t.Errorf("%s: after 70 s there are %d followers", protocol, n)
			}
			thaw()
			if got := p.received(); !strings.Contains(got, "close -1") {
				t.Errorf("%s: the socket did not break: %.300s", protocol, got)
			}
		})
	}
}

// TestSlowReader: a client that stalls for less than a minute gets everything.
func TestSlowReader(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		p := w.dial(t, "/ws")
		defer func() { _ = p.CloseNow() }()
		p.send(t, `{"type":"follow","session":"s","from":1}`)
		p.received()
		thaw := p.freeze()
		for i := range 300 {
			w.say(t, "s", fmt.Sprint("number ", i, strings.Repeat("x", 1000)))
		}
		time.Sleep(50 * time.Second)
		thaw()
		got := p.received()
		for i := range 300 {
			at := strings.Index(got, fmt.Sprintf("number %dx", i))
			if at < 0 {
				t.Fatalf("number %d is missing", i)
			}
			got = got[at:]
		}
	})
}

// TestWriterWhoReadsNothing: the server stops reading from a client that does not read its
// acknowledgements, and so bounds what it keeps.
func TestWriterWhoReadsNothing(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		p := w.dial(t, "/sessions/s/ws")
		defer func() { _ = p.CloseNow() }()
		thaw := p.freeze()
		const all = 200_000
		sent, stopped := 0, make(chan struct{})
		go func() {
			defer close(stopped)
			for sent < all {
				var b strings.Builder
				for range 1000 {
					fmt.Fprintf(&b, `{"type":"append","seq":%d,"events":[{"type":"acme.said"}]}`+"\n", sent)
					sent++
				}
				if p.Write(t.Context(), websocket.MessageText, []byte(b.String())) != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if sent > 20_000 {
			t.Errorf("%d appends were accepted without an answer", sent)
		}
		w.say(t, "other", "nobody waits")
		time.Sleep(70 * time.Second)
		synctest.Wait()
		_ = p.CloseNow()
		<-stopped
		thaw()
		s, err := w.Session("s").Info(t.Context())
		if err != nil || s.Head < 2 || s.Head > 20_000 {
			t.Errorf("the head is %d, %v", s.Head, err)
		}
	})
}

// TestLargeEvents: an event that is larger than a buffer arrives as it is.
func TestLargeEvents(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		p := w.dial(t, "/sessions/s/ws")
		defer func() { _ = p.CloseNow() }()
		text := strings.Repeat("0123456789abcdef", 200_000)
		w.say(t, "s", "before")
		w.say(t, "s", text)
		w.say(t, "s", "after")
		p.send(t, `{"type":"follow","from":1,"types":["acme.said"]}`)
		var n int
		for line := range strings.Lines(p.received()) {
			var f struct{ Event tapedeck.Event }
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Fatalf("%v in %.100s", err, line)
			}
			if strings.Contains(string(f.Event.Data), text) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("the large event arrived %d times", n)
		}
		large := `{"type":"append","seq":0,"events":[{"type":"acme.said","data":{"text":"` + text + `"}}]}`
		p.send(t, large)
		if got := p.received(); !strings.Contains(got, `"ack"`) {
			t.Errorf("a large append: %.300s", got)
		}
	})
}

// TestBadMessages: a message that no frame can be read from ends the socket with an error
// and a code.
func TestBadMessages(t *testing.T) {
	for _, protocol := range []string{ws.Native, ws.Replay} {
		for want, send := range map[string]func(*testing.T, *peer){
			"close 1003": func(t *testing.T, p *peer) { _ = p.Write(t.Context(), websocket.MessageBinary, []byte("x")) },
			"close 1009": func(t *testing.T, p *peer) {
				_ = p.Write(t.Context(), websocket.MessageText, []byte(strings.Repeat("x", 9<<20))) // the server closes the connection meanwhile
			},
			"close 1008": func(t *testing.T, p *peer) { p.send(t, `"x"`) }, // only tapedeck.v1
		} {
			if protocol == ws.Replay && want == "close 1008" {
				want = `"message":"a message is one JSON object; this one is not"`
			}
			within(t, func(t *testing.T, w *world) {
				p := w.dial(t, paths[protocol], protocol)
				defer func() { _ = p.CloseNow() }()
				go send(t, p)
				synctest.Wait()
				got := p.received()
				if !strings.Contains(got, want) || !strings.Contains(got, `"type":"error"`) {
					t.Errorf("%s: got %.300s, want an error and %s", protocol, got, want)
				}
				w.say(t, "s", "the server lives")
			})
		}
	}
}

// TestLateMessage: a message that does not arrive in time ends the socket.
func TestLateMessage(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		p := w.dial(t, "/sessions/s/ws")
		defer func() { _ = p.CloseNow() }()
		m, err := p.Writer(t.Context(), websocket.MessageText)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = m.Write([]byte(strings.Repeat(" ", 5000))) // larger than the buffer of the client
		time.Sleep(20 * time.Second)
		if got := p.received(); strings.Contains(got, "close") {
			t.Errorf("after 20 s: %s", got)
		}
		time.Sleep(20 * time.Second)
		if got := p.received(); !strings.Contains(got, "close") {
			t.Errorf("after 40 s the socket is open: %s", got)
		}
	})
}

// TestHeartbeat: a silent socket stays open and says that it lives.
func TestHeartbeat(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		p, r := w.dial(t, "/sessions/s/ws"), w.dial(t, paths[ws.Replay])
		defer func() { _, _ = p.CloseNow(), r.CloseNow() }()
		time.Sleep(5 * time.Minute)
		if got := p.received(); strings.Count(got, `{"type":"heartbeat"}`) < 10 || strings.Contains(got, "close") {
			t.Errorf("in five minutes: %s", got)
		}
		if got := r.received(); got != "" {
			t.Errorf("the replay socket got %s", got)
		}
		w.say(t, "s", "x")
	})
}

// TestServerStops: a socket learns that the server stops.
func TestServerStops(t *testing.T) {
	for _, protocol := range []string{ws.Native, ws.Replay} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, "s")
			p := w.dial(t, paths[protocol], protocol)
			defer func() { _ = p.CloseNow() }()
			p.send(t, map[string]string{ws.Native: `{"type":"follow"}`, ws.Replay: `{"type":"replay.request","elementId":"e"}`}[protocol])
			p.received()
			w.stop(t)
			if got := p.received(); !strings.Contains(got, "the server stops") || !strings.Contains(got, "close 1001") {
				t.Errorf("%s: %s", protocol, got)
			}
		})
	}
}

// TestInvalidText: bytes that are not UTF-8 end a socket of tapedeck.replay.v1, and nothing
// else is stored in their place.
func TestInvalidText(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		p := w.dial(t, paths[ws.Replay])
		defer func() { _ = p.CloseNow() }()
		p.send(t, `{"type":"task.thinking","elementId":"e","message":"before"}`)
		before := p.received()
		p.send(t, "{\"type\":\"task.thinking\",\"elementId\":\"e\",\"message\":\"a\xffb\"}")
		if got := before + p.received(); !strings.Contains(got, `"before"`) || !strings.Contains(got, "is not valid UTF-8") || !strings.Contains(got, "close 1007") {
			t.Errorf("got %s", got)
		}
		if s, err := w.Session("s").Info(t.Context()); err != nil || s.Head != 3 {
			t.Errorf("the session has %d events, %v", s.Head, err)
		}
	})
}

// TestRewindOfAll: a rewind after which an element has nothing left sends its history, which
// is empty, so that a page does not keep what it shows.
func TestRewindOfAll(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		p := w.dial(t, paths[ws.Replay])
		defer func() { _ = p.CloseNow() }()
		p.send(t, `{"type":"task.thinking","elementId":"e","message":"before"}`)
		p.received()
		if _, err := w.Session("s").Rewind(t.Context(), api.Rewind{ToOffset: new(int64(1))}); err != nil {
			t.Fatal(err)
		}
		if got := p.received(); !strings.Contains(got, `{"type":"messages.snapshot","elementId":"e","threadId":"thread_e","messages":[],"thinking":[],"tools":[]}`) {
			t.Errorf("got %s", got)
		}
	})
}

// TestJumpOfSeveralThreads: a rewind and a clear of one thread that revert others with it are
// sent for each element that loses something, and for no other.
func TestJumpOfSeveralThreads(t *testing.T) {
	for want, jump := range map[string]func(t *testing.T, s *deck.Session) error{
		`{"type":"messages.snapshot","elementId":"e","threadId":"thread_e","messages":[]`: func(t *testing.T, s *deck.Session) error {
			_, err := s.Rewind(t.Context(), api.Rewind{ToOffset: new(int64(1)), Thread: "main"})
			return err
		},
		`{"type":"clear.history","elementId":"e"`: func(t *testing.T, s *deck.Session) error {
			_, err := s.Clear(t.Context(), "main")
			return err
		},
	} {
		within(t, func(t *testing.T, w *world) {
			var events []tapedeck.Event
			for _, line := range []string{
				`main main RUN_STARTED {"threadId":"main","runId":"main"}`,
				`thread_e e RUN_STARTED {"threadId":"thread_e","runId":"e","parentRunId":"main"}`,
				`thread_e e message.added {"message":{"id":"m","role":"assistant","content":"hello"}}`,
				`thread_e e RUN_FINISHED {"threadId":"thread_e","runId":"e"}`,
				`main main RUN_FINISHED {"threadId":"main","runId":"main"}`,
			} {
				part := strings.SplitN(line, " ", 4)
				events = append(events, tapedeck.Event{Thread: part[0], Invocation: part[1], Type: part[2], Data: json.RawMessage(part[3])})
			}
			if _, err := w.Append(t.Context(), tapedeck.Append{Session: "s", Events: events}); err != nil {
				t.Fatal(err)
			}
			p := w.dial(t, paths[ws.Replay])
			defer func() { _ = p.CloseNow() }()
			p.send(t, `{"type":"task.thinking","elementId":"f","message":"stays"}`)
			p.received()
			if err := jump(t, w.Session("s")); err != nil {
				t.Fatal(err)
			}
			if got := p.received(); !strings.Contains(got, want) || strings.Contains(got, `"elementId":"f"`) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// A client that comes back to a session that was recreated is told so, and gets none of its
// events. The first frame of each follow has what the client sends then.
func TestIncarnation(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		w.say(t, "s", "mine")
		p := w.dial(t, paths[ws.Native])
		defer func() { _ = p.CloseNow() }()
		p.send(t, `{"type":"follow","until":"terminal"}`)
		synctest.Wait()
		first, rest, _ := strings.Cut(p.received(), "\n")
		if !strings.HasSuffix(first, `},"incarnation":1}`) || strings.Count(rest, "incarnation") != 1 || !strings.Contains(rest, `"next":2,"incarnation":1}`) {
			t.Fatalf("%s\n%s", first, rest)
		}
		p.send(t, `{"type":"unfollow"}`)
		p.send(t, `{"type":"follow","from":1,"incarnation":1}`)
		synctest.Wait()
		if got := p.received(); !strings.Contains(got, `"mine"`) {
			t.Errorf("the same session: %s", got)
		}
		if got := w.ask(t, "DELETE /api/v1/sessions/s HTTP/1.1\nHost: localhost\n\n"); strings.Contains(got, "error") {
			t.Fatal(got)
		}
		if _, err := w.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
			t.Fatal(err)
		}
		for range 9 {
			w.say(t, "s", "others")
		}
		synctest.Wait()
		if got := p.received(); !strings.Contains(got, `"reason":"deleted"`) || strings.Contains(got, "others") {
			t.Errorf("a follower of the deleted session: %s", got)
		}
		for _, from := range []string{"2", "0", "90"} {
			p.send(t, `{"type":"follow","from":`+from+`,"incarnation":1}`)
			synctest.Wait()
			if got := p.received(); !strings.Contains(got, `"session":"s","error":{"kind":"replaced"`) || strings.Contains(got, "others") {
				t.Errorf("from %s: %s", from, got)
			}
		}
		p.send(t, `{"type":"follow","from":9}`)
		synctest.Wait()
		if got := p.received(); !strings.Contains(got, "others") || !strings.Contains(got, `"incarnation":3`) {
			t.Errorf("an offset alone: %s", got)
		}
	})
}

// TestLargeHistory: a history has at most 16 MiB, and counts the messages before.
func TestLargeHistory(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		const count, size = 20, 1 << 20
		for i := range count {
			data := fmt.Appendf(nil, `{"message":{"id":"m%d","role":"assistant","content":%q}}`, i, strings.Repeat("x", size))
			if _, err := w.Append(t.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{{Type: tapedeck.MessageAdded, Thread: "thread_e", Data: data}}}); err != nil {
				t.Fatal(err)
			}
		}
		p := w.dial(t, paths[ws.Replay])
		defer func() { _ = p.CloseNow() }()
		p.send(t, `{"type":"replay.request","elementId":"e"}`)
		got := p.received()
		if n := strings.Count(got, `"role":"assistant"`); n != 15 || !strings.Contains(got, `"earlier":5`) || len(got) > 16<<20 {
			t.Errorf("%d messages in %d bytes", n, len(got))
		}
	})
}

// TestHistoryOfAnOlderWorkflow: a page that connects later finds the history of an element of
// a workflow that is not the newest of its session.
func TestHistoryOfAnOlderWorkflow(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		add := func(thread, typ, data string) {
			t.Helper()
			if _, err := w.Append(t.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{{Type: typ, Thread: thread, Invocation: "inv_" + thread, Data: json.RawMessage(data)}}}); err != nil {
				t.Fatal(err)
			}
		}
		for thread, names := range map[string][2]string{"other": {"Z", "other:thread_Z"}, "main": {"Y", "thread_Y"}} {
			add(thread, tapedeck.RunStarted, `{}`)
			add(thread, tapedeck.WorkflowStarted, `{"process":"P","digest":"sha256:x","xml":"<x/>"}`)
			add(thread, tapedeck.WorkflowEntered, fmt.Sprintf(`{"element":%q,"elementType":"serviceTask","activation":"1","thread":%q,"attempt":1}`, names[0], names[1]))
			add(names[1], tapedeck.MessageAdded, fmt.Sprintf(`{"message":{"id":"m","role":"assistant","content":"of %s"}}`, names[0]))
		}
		p := w.dial(t, paths[ws.Replay])
		defer func() { _ = p.CloseNow() }()
		for _, element := range []string{"Z", "Y"} {
			p.send(t, fmt.Sprintf(`{"type":"replay.request","elementId":%q}`, element))
			if got := p.received(); !strings.Contains(got, `"content":"of `+element) {
				t.Error(element, got)
			}
		}
	})
}
