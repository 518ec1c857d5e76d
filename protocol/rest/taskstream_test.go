package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/protocol/rest"
)

// heard returns the task events that a screen has got, as sequence and type, and
// checks that each frame has the number of its event as id, and nothing else.
func heard(t *testing.T, s *screen) string {
	t.Helper()
	var b strings.Builder
	for _, f := range s.frames(t) {
		var e taskEvent
		if err := json.Unmarshal(f.Data, &e); err != nil || fmt.Sprint(e.Sequence) != f.ID || f.Event != "" {
			t.Errorf("frame %s %q %s: %v", f.ID, f.Event, f.Data, err)
		}
		fmt.Fprintf(&b, "%v %s, ", e.Sequence, e.Type)
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// play appends a run of an invocation: user, start, one message, and the end.
func (g *engine) play(t *testing.T, invocation string, until ...string) {
	t.Helper()
	for _, e := range []tapedeck.Event{
		do("message.added", `{~message~:{~id~:~u~,~role~:~user~,~content~:~Hi~}}`),
		do("RUN_STARTED", `{}`),
		do("TEXT_MESSAGE_START", `{~messageId~:~m~}`), do("TEXT_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~a~}`),
		do("TEXT_MESSAGE_END", `{~messageId~:~m~}`), do("RUN_FINISHED", `{}`),
	} {
		if e.Invocation = invocation; slices.Contains(until, e.Type) {
			return
		}
		g.append(t, "s", e)
	}
}

func (g *engine) finish(t *testing.T, invocation string) {
	e := do("RUN_FINISHED", `{}`)
	e.Invocation = invocation
	g.append(t, "s", e)
}

const run1, run2 = "1 user_message, 2 agent_start, 4 message, 5 message, 6 agent_complete", "7 user_message, 8 agent_start, 10 message, 11 message, 12 agent_complete"

// TestTaskStreamsWithoutAParameter: a client of the protocol names no format, and
// may be one that accepts anything.
func TestTaskStreamsWithoutAParameter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door, g := newDoor(rest.Options{Task: true})
		g.session(t, "s", 0)
		g.play(t, "a")
		for _, accept := range []string{"text/event-stream", "*/*", ""} {
			s := watch(t, door, "s/events?token=x", "Accept", accept)
			synctest.Wait()
			if got := heard(t, s); got != run1 {
				t.Errorf("accepting %q: %s", accept, got)
			}
			s.leave()
		}
		s := watch(t, door, "s/stream?format=native&until=terminal&invocation=a")
		synctest.Wait()
		if frames := s.frames(t); len(frames) < 7 || frames[len(frames)-1].Event != "end" {
			t.Errorf("native, if it is asked for: %d frames", len(frames))
		}
		s.leave()
		if p := readTasks(t, door, "s/events/history"); len(p.Events) == 0 {
			t.Error("there is no history")
		}
	})
}

// When a stream begins and when it ends. The session has its first event, then
// what before does; then the client comes, then after.
func TestTaskStream(t *testing.T) {
	nothing := func(*testing.T, *engine) {}
	one := func(t *testing.T, g *engine) { g.play(t, "a") }
	two := func(t *testing.T, g *engine) { g.play(t, "a"); g.play(t, "b") }
	half := func(t *testing.T, g *engine) { g.play(t, "a"); g.play(t, "b", "RUN_FINISHED") }
	finish := func(t *testing.T, g *engine) { g.finish(t, "b") }
	for _, c := range []struct {
		name          string
		before, after func(*testing.T, *engine)
		query, last   string
		want          string
		open          bool // it does not end
	}{
		{"the first task", nothing, one, "", "", run1, false},
		{"a task that was over before", one, nothing, "", "", run1, false},
		{"the next task, under way", half, finish, "", "", run2, false},
		{"the next task, over before", two, nothing, "", "", run2, false},
		{"from the beginning", two, nothing, "&from=0", "", run1 + ", " + run2, false},
		{"from the beginning, under way", half, finish, "&from=0", "", run1 + ", " + run2, false},
		{"from the head, for the next", one, func(t *testing.T, g *engine) { g.play(t, "b") }, "&from=7", "", run2, false},
		{"after the end of the last but one", half, finish, "", "6", run2, false},
		{"in the middle of the last but one", half, finish, "", "3", "4 message, 5 message, 6 agent_complete, " + run2, false},
		{"in the middle of the last", half, finish, "", "9", "10 message, 11 message, 12 agent_complete", false},
		{"the same, told in the query", half, finish, "&lastEventId=9", "", "10 message, 11 message, 12 agent_complete", false},
		{"after all that has happened so far", half, finish, "", "11", "12 agent_complete", false},
		{"after the end", two, nothing, "", "12", "", false},
		{"one invocation", two, nothing, "&invocation=a", "", run1, false},
		{"one invocation, under way", half, finish, "&invocation=b", "", run2, false},
		{"two at once", func(t *testing.T, g *engine) { g.play(t, "a", "RUN_FINISHED"); g.play(t, "b", "RUN_FINISHED") },
			func(t *testing.T, g *engine) { g.finish(t, "a"); g.finish(t, "b") }, "", "",
			"1 user_message, 2 agent_start, 4 message, 5 message, 6 user_message, 7 agent_start, 9 message, 10 message, 11 agent_complete, 12 agent_complete", false},
		{"without an end", one, func(t *testing.T, g *engine) { g.play(t, "b") }, "&until=none", "", run1 + ", " + run2, true},
		{"nothing has run yet", nothing, nothing, "", "", "", true},
		{"nothing has run yet, again", nothing, nothing, "", "0", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				door, g := newDoor(rest.Options{})
				g.session(t, "s", 0)
				c.before(t, g)
				s := watch(t, door, "s/stream?format=task&token=x"+c.query, "Last-Event-ID", c.last)
				synctest.Wait()
				c.after(t, g)
				synctest.Wait()
				if got := heard(t, s); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				select {
				case <-s.done:
					if c.open {
						t.Error("it has ended")
					}
				default:
					if !c.open {
						t.Error("it has not ended")
					}
					s.leave()
					return
				}
				if c.want == "" && s.status != http.StatusNoContent {
					t.Errorf("status %d", s.status)
				}
				last := s.lastID(t)
				if last == "" {
					last = c.last
				}
				again := watch(t, door, "s/stream?format=task"+c.query, "Last-Event-ID", last)
				if <-again.done; again.status != http.StatusNoContent {
					t.Errorf("a reconnect after the end gets %d: an EventSource would go on for ever", again.status)
				}
			})
		})
	}
}

func TestTaskStreamHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door, g := newDoor(rest.Options{})
		g.session(t, "s", 0)
		s := watch(t, door, "s/events?format=task&token=secret", "Accept", "text/event-stream")
		synctest.Wait()
		for name, want := range map[string]string{
			"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache, no-transform",
			"Connection": "keep-alive", "X-Accel-Buffering": "no",
		} {
			if got := s.header.Get(name); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		<-time.After(time.Minute) // of the bubble's time
		if n := strings.Count(s.text(), ": heartbeat\n\n"); n < 2 {
			t.Errorf("%d heartbeats in a minute", n)
		}
		s.leave()
	})
}

// Wherever the connection is lost, an event comes once.
func TestTaskReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door, g := newDoor(rest.Options{})
		g.session(t, "s", 0)
		g.play(t, "a", "TEXT_MESSAGE_CONTENT")
		var s screen
		want := "1 user_message, 2 agent_start"
		for i := range 50 {
			s.open(t, door, "s/stream?format=task", "Last-Event-ID", s.lastID(t))
			if i%3 > 0 {
				synctest.Wait() // it has caught up
			}
			g.append(t, "s", tapedeck.Event{Type: "TEXT_MESSAGE_CONTENT", Invocation: "a", Data: json.RawMessage(fmt.Sprintf(`{"messageId":"m","delta":"%d,"}`, i))})
			want += fmt.Sprintf(", %d message", i+4)
			if i%2 > 0 {
				synctest.Wait() // it has seen that
			}
			s.leave()
		}
		end := do("TEXT_MESSAGE_END", `{~messageId~:~m~}`)
		end.Invocation = "a"
		g.append(t, "s", end)
		g.finish(t, "a")
		s.open(t, door, "s/stream?format=task", "Last-Event-ID", s.lastID(t))
		<-s.done
		if got := heard(t, &s); !strings.HasPrefix(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if !strings.Contains(s.text(), `"full_text":"0,1,2,`) {
			t.Errorf("the text is not whole in\n%s", s.text())
		}
	})
}

// A run that nobody can end any more ends with an error for those who wait.
func TestTaskStreamIsCutOff(t *testing.T) {
	for _, c := range []struct {
		name, typ string
		end       func(*testing.T, *engine) error
		again     int
	}{
		{"closed", "closed", func(t *testing.T, g *engine) error { return g.Close(t.Context(), "s", "") }, 204},
		{"deleted", "deleted", func(t *testing.T, g *engine) error { return g.Delete(t.Context(), "s") }, 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				door, g := newDoor(rest.Options{})
				g.session(t, "s", 0)
				g.play(t, "a", "TEXT_MESSAGE_END")
				s := watch(t, door, "s/stream?format=task")
				synctest.Wait()
				if err := c.end(t, g); err != nil {
					t.Fatal(err)
				}
				<-s.done
				if !strings.Contains(s.text(), `"error_type":"`+c.typ+`"`) || !strings.HasSuffix(heard(t, s), " error") {
					t.Errorf("it ends with\n%s", s.text())
				}
				again := watch(t, door, "s/stream?format=task", "Last-Event-ID", s.lastID(t))
				if <-again.done; again.status != c.again {
					t.Errorf("a reconnect gets %d", again.status)
				}
			})
		})
	}
}

// The history has what is finished, in pages of any size.
func TestTaskHistory(t *testing.T) {
	door, g := newDoor(rest.Options{})
	g.session(t, "s", 0)
	g.play(t, "a")
	g.play(t, "b", "TEXT_MESSAGE_END")
	var whole []taskEvent
	for limit := 20; limit > 0; limit-- {
		var got []taskEvent
		for from := int64(0); ; {
			p := readTasks(t, door, fmt.Sprintf("s/events/history?from=%d&limit=%d", from, limit))
			if got = append(got, p.Events...); p.Next == p.Head {
				break
			}
			if from = p.Next; len(p.Events) != limit {
				t.Fatalf("a page of %d has %d", limit, len(p.Events))
			}
		}
		var types []string
		for _, e := range got {
			types = append(types, fmt.Sprintf("%v %s", e.Sequence, e.Type))
			if e.Data["is_partial"] == true {
				t.Error("it has a partial message")
			}
		}
		if s := strings.Join(types, ", "); s != "1 user_message, 2 agent_start, 5 message, 6 agent_complete, 7 user_message, 8 agent_start" {
			t.Errorf("in pages of %d: %s", limit, s)
		}
		if whole == nil {
			whole = got
		}
	}
	if whole[2].Data["full_text"] != "a" || whole[0].Timestamp == "" {
		t.Errorf("got %+v", whole)
	}
}

// What was taken back is not in the history, and in the stream only for those
// who want everything.
func TestTaskHistoryIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door, g := newDoor(rest.Options{})
		g.session(t, "s", 0)
		g.play(t, "a")
		g.play(t, "b")
		g.append(t, "s", tapedeck.Event{Type: tapedeck.SessionRewound, Data: json.RawMessage(`{"marker":"mrk_1","toOffset":7}`)})
		g.play(t, "c")
		const run3 = "14 user_message, 15 agent_start, 17 message, 18 message, 19 agent_complete"
		for query, want := range map[string]string{
			"from=0": "1 user_message, 2 agent_start, 5 message, 6 agent_complete, 14 user_message, 15 agent_start, 18 message, 19 agent_complete",
			"from=5": "5 message, 6 agent_complete, 14 user_message, 15 agent_start, 18 message, 19 agent_complete",
			"from=9": "14 user_message, 15 agent_start, 18 message, 19 agent_complete",
			// Before the rewind the second run was in force.
			"at=13": "1 user_message, 2 agent_start, 5 message, 6 agent_complete, 7 user_message, 8 agent_start, 11 message, 12 agent_complete",
			"at=14": "1 user_message, 2 agent_start, 5 message, 6 agent_complete",
		} {
			var got []string
			for _, e := range readTasks(t, door, "s/events/history?"+query).Events {
				got = append(got, fmt.Sprintf("%v %s", e.Sequence, e.Type))
			}
			if s := strings.Join(got, ", "); s != want {
				t.Errorf("%s\ngot  %s\nwant %s", query, s, want)
			}
		}
		for view, want := range map[string]string{"effective": run1 + ", " + run3, "all": run1 + ", " + run2 + ", " + run3} {
			s := watch(t, door, "s/stream?format=task&from=0&view="+view)
			<-s.done
			if got := heard(t, s); got != want {
				t.Errorf("view=%s\ngot  %s\nwant %s", view, got, want)
			}
		}
	})
}

// What cannot be is refused.
func TestTaskQueries(t *testing.T) {
	door, g := newDoor(rest.Options{})
	g.session(t, "s", 0)
	for target, want := range map[string]int{
		"s/events?format=task&channel=chunks":       400,
		"s/stream?format=task&type=RUN_STARTED":     400,
		"s/stream?format=task&from=9":               400,
		"s/stream?format=task&lastEventId=1":        400,
		"s/stream?format=tusk":                      400,
		"s/events?format=task&reverse=true":         400,
		"s/events?format=task&from=2":               400,
		"s/events?format=task&limit=0":              400,
		"s/stream?format=task&invocation=inv_1":     404,
		"s/stream?format=task&from=0&invocation=i":  404,
		"s/events?format=task&token=x":              200,
		"s/events/history?from=2":                   400,
		"s/events/history?limit=10001":              400,
		"s/events/history?channel=chunks":           400,
		"s/events/history?thread=..":                400,
		"s/events/history?token=x&thread=main":      200,
		"none/events/history":                       404,
		"none/events?format=task":                   404,
		"none/stream?format=task&lastEventId=1":     404,
		"s/stream?format=task&lastEventId=99999999": 400,
	} {
		s := watch(t, door, target)
		if <-s.done; s.status != want {
			t.Errorf("%s: %d, want %d: %s", target, s.status, want, s.text())
		}
	}
}

// A fork in the middle of a run does not wait for the end of what it has
// inherited.
func TestTaskStreamOfAFork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door, g := newDoor(rest.Options{})
		if _, _, err := g.Hub.Create(t.Context(), tapedeck.Spec{ID: "parent", Events: []tapedeck.Event{
			{Type: tapedeck.SessionCreated}, runEvent(tapedeck.RunStarted, "a"), runEvent(tapedeck.RunFinished, "a"), do("RUN_STARTED", `{}`),
		}}); err != nil {
			t.Fatal(err)
		}
		forked := tapedeck.Event{Type: tapedeck.SessionForked, Data: json.RawMessage(`{"parent":"parent","at":4}`)}
		if _, _, err := g.Hub.Create(t.Context(), tapedeck.Spec{ID: "s", Parent: "parent", ForkAt: new(int64(4)), Events: []tapedeck.Event{forked}}); err != nil {
			t.Fatal(err)
		}
		s := watch(t, door, "s/stream?format=task")
		synctest.Wait()
		g.play(t, "b")
		<-s.done
		if got, want := heard(t, s), "3 agent_start, 5 user_message, 6 agent_start, 8 message, 9 message, 10 agent_complete"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
