package task_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/task"
)

// received returns the events that a client has received, as place and type. It checks
// that the id of each frame is the sequence of its event and the incarnation of the session.
func received(t *testing.T, s *apitest.Client) string {
	t.Helper()
	return receivedWith(t, s, `^%d@\d+$`)
}

// receivedWith is received for ids of another form.
func receivedWith(t *testing.T, s *apitest.Client, form string) string {
	t.Helper()
	var b strings.Builder
	for _, f := range s.Frames(t) {
		var e taskEvent
		if err := json.Unmarshal(f.Data, &e); err != nil || !regexp.MustCompile(fmt.Sprintf(form, e.Sequence)).MatchString(f.ID) || f.Event != "" {
			t.Errorf("frame %s %q %s: %v", f.ID, f.Event, f.Data, err)
		}
		fmt.Fprintf(&b, "%s %s, ", e.place(), e.Type)
	}
	return strings.TrimSuffix(b.String(), ", ")
}

const run1, run2 = "1 user_message, 2 agent_start, 4 message, 5 message, 6 agent_complete", "7 user_message, 8 agent_start, 10 message, 11 message, 12 agent_complete"

// When a stream begins and when it ends. The session has its first event and the events of
// before. Then the client connects, then come the events of after.
func TestStream(t *testing.T) {
	nothing := func(*testing.T, log) {}
	one := func(t *testing.T, l log) { l.play(t, "a") }
	two := func(t *testing.T, l log) { l.play(t, "a"); l.play(t, "b") }
	half := func(t *testing.T, l log) { l.play(t, "a"); l.play(t, "b", "RUN_FINISHED") }
	finish := func(t *testing.T, l log) { l.finish(t, "b") }
	for _, c := range []struct {
		name          string
		before, after func(*testing.T, log)
		query, last   string
		want          string
		open          bool // the stream does not end
	}{
		{"the first task", nothing, one, "", "", run1, false},
		{"a task that was over before", one, nothing, "", "", run1, false},
		{"the next task, open", half, finish, "", "", run2, false},
		{"the next task, over before", two, nothing, "", "", run2, false},
		{"from the beginning", two, nothing, "&from=0", "", run1 + ", " + run2, false},
		{"from the beginning, with an open run", half, finish, "&from=0", "", run1 + ", " + run2, false},
		{"from the head, for the next", one, func(t *testing.T, l log) { l.play(t, "b") }, "&from=7", "", run2, false},
		{"after the end of the last but one", half, finish, "", "6000", run2, false},
		{"in the middle of the last but one", half, finish, "", "3000", "4 message, 5 message, 6 agent_complete, " + run2, false},
		{"in the middle of the last", half, finish, "", "9000", "10 message, 11 message, 12 agent_complete", false},
		{"the same, with a parameter", half, finish, "&lastEventId=9000", "", "10 message, 11 message, 12 agent_complete", false},
		{"after all events so far", half, finish, "", "11000", "12 agent_complete", false},
		{"after the end", two, nothing, "", "12000", "", false},
		{"what is new", half, finish, "&begin=new", "", "12 agent_complete", false},
		{"what is new, with a cursor", half, finish, "&begin=new", "9000", "10 message, 11 message, 12 agent_complete", false},
		{"what is new, after a task", one, func(t *testing.T, l log) { l.play(t, "b") }, "&begin=new", "", run2, false},
		{"one invocation", two, nothing, "&invocation=a", "", run1, false},
		{"one invocation, open", half, finish, "&invocation=b", "", run2, false},
		{"two at once", func(t *testing.T, l log) { l.play(t, "a", "RUN_FINISHED"); l.play(t, "b", "RUN_FINISHED") },
			func(t *testing.T, l log) { l.finish(t, "a"); l.finish(t, "b") }, "", "",
			"1 user_message, 2 agent_start, 4 message, 5 message, 6 user_message, 7 agent_start, 9 message, 10 message, 11 agent_complete, 12 agent_complete", false},
		{"until=none", one, func(t *testing.T, l log) { l.play(t, "b") }, "&until=none", "", run1 + ", " + run2, true},
		{"no run yet", nothing, nothing, "", "", "", true},
		{"no run yet, resumed", nothing, nothing, "", "0", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, l := newHandler()
				l.create(t, created())
				c.before(t, l)
				s := watch(t, h, "s/stream?format=task&token=x"+c.query, "Last-Event-ID", c.last)
				synctest.Wait()
				c.after(t, l)
				synctest.Wait()
				if got := received(t, s); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				select {
				case <-s.Done:
					if c.open {
						t.Error("it has ended")
					}
				default:
					if !c.open {
						t.Error("it has not ended")
					}
					s.Disconnect()
					return
				}
				if c.want == "" && s.Status != http.StatusNoContent {
					t.Errorf("status %d", s.Status)
				}
				last := s.LastID(t)
				if last == "" {
					last = c.last
				}
				again := watch(t, h, "s/stream?format=task"+c.query, "Last-Event-ID", last)
				if <-again.Done; again.Status != http.StatusNoContent {
					t.Errorf("a reconnect after the end gets %d: an EventSource would go on for ever", again.Status)
				}
			})
		})
	}
}

func TestStreamHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := newHandler()
		l.create(t, created())
		s := watch(t, h, "s/events?format=task&token=secret", "Accept", "text/event-stream")
		synctest.Wait()
		for name, want := range map[string]string{
			"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache, no-transform",
			"Connection": "keep-alive", "X-Accel-Buffering": "no",
		} {
			if got := s.Header().Get(name); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		<-time.After(time.Minute) // of the bubble's time
		if n := strings.Count(s.Text(), ": heartbeat\n\n"); n < 2 {
			t.Errorf("%d heartbeats in a minute", n)
		}
		s.Disconnect()
	})
}

// Wherever the connection is lost, each event arrives once.
func TestReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := newHandler()
		l.create(t, created())
		l.play(t, "a", "TEXT_MESSAGE_CONTENT")
		var s apitest.Client
		want := "1 user_message, 2 agent_start"
		for i := range 50 {
			s.Open(t, h, "s/stream?format=task", "Last-Event-ID", s.LastID(t))
			if i%3 > 0 {
				synctest.Wait() // it has caught up
			}
			l.append(t, tapedeck.Event{Type: "TEXT_MESSAGE_CONTENT", Invocation: "a", Data: json.RawMessage(fmt.Sprintf(`{"messageId":"m","delta":"%d,"}`, i))})
			want += fmt.Sprintf(", %d message", i+4)
			if i%2 > 0 {
				synctest.Wait() // it has received that
			}
			s.Disconnect()
		}
		end := do("TEXT_MESSAGE_END", `{~messageId~:~m~}`)
		end.Invocation = "a"
		l.append(t, end)
		l.finish(t, "a")
		s.Open(t, h, "s/stream?format=task", "Last-Event-ID", s.LastID(t))
		<-s.Done
		if got := received(t, &s); !strings.HasPrefix(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if !strings.Contains(s.Text(), `"full_text":"0,1,2,`) {
			t.Errorf("the text is not whole in\n%s", s.Text())
		}
	})
}

// An open run that can have no other end ends with an error for its followers.
func TestStreamIsCutOff(t *testing.T) {
	for _, c := range []struct {
		name, typ string
		end       func(*testing.T, log) error
		again     int
	}{
		{"closed", "closed", func(t *testing.T, l log) error { return l.close(t) }, 204},
		{"deleted", "deleted", func(t *testing.T, l log) error { return l.Delete(t.Context(), "s") }, 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, l := newHandler()
				l.create(t, created())
				l.play(t, "a", "TEXT_MESSAGE_END")
				s := watch(t, h, "s/stream?format=task")
				synctest.Wait()
				if err := c.end(t, l); err != nil {
					t.Fatal(err)
				}
				<-s.Done
				if !strings.Contains(s.Text(), `"error_type":"`+c.typ+`"`) || !strings.HasSuffix(received(t, s), " error") {
					t.Errorf("it ends with\n%s", s.Text())
				}
				again := watch(t, h, "s/stream?format=task", "Last-Event-ID", s.LastID(t))
				if <-again.Done; again.Status != c.again {
					t.Errorf("a reconnect gets %d", again.Status)
				}
			})
		})
	}
}

// The history has the finished events, in pages of any size.
func TestHistory(t *testing.T) {
	h, l := newHandler()
	l.create(t, created())
	l.play(t, "a")
	l.play(t, "b", "TEXT_MESSAGE_END")
	var whole []taskEvent
	for limit := 20; limit > 0; limit-- {
		var got []taskEvent
		for from := int64(0); ; {
			p := readTasks(t, h, fmt.Sprintf("s/events/history?from=%d&limit=%d", from, limit))
			if got = append(got, p.Events...); p.Next == p.Head {
				break
			}
			if from = p.Next; len(p.Events) != limit {
				t.Fatalf("a page of %d has %d", limit, len(p.Events))
			}
		}
		var types []string
		for _, e := range got {
			types = append(types, fmt.Sprintf("%s %s", e.place(), e.Type))
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

// brokenViews fail when an offset is read.
type brokenViews struct {
	task.Views
	at int64
}

func (v brokenViews) Effective(ctx context.Context, session string, from, at int64) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for e, err := range v.Views.Effective(ctx, session, from, at) {
			if err == nil && e.Offset == v.at {
				err = errors.New("the disk is broken")
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Without a limit one answer is the whole history, however long it is. If that fails in the
// middle, the connection breaks, so that no client takes a part for the whole.
func TestWholeHistory(t *testing.T) {
	const count = 25_000
	h, l := newHandler()
	l.create(t, created())
	events := make([]tapedeck.Event, count)
	for i := range events {
		events[i] = do("message.added", fmt.Sprintf(`{"message":{"id":"m%d","role":"user","content":"%0700d"}}`, i, i))
	}
	l.append(t, events...)
	p := readTasks(t, h, "s/events/history")
	if n := len(p.Events); n != count || p.Next != p.Head || p.Events[n-1].Sequence != count*1000 {
		t.Errorf("%d events, next %d of %d", n, p.Next, p.Head)
	}
	if p := readTasks(t, h, "s/events/history?limit=10000"); len(p.Events) != 10_000 || p.Next == p.Head {
		t.Errorf("a page has %d events, next %d of %d", len(p.Events), p.Next, p.Head)
	}
	for at, begun := range map[int64]bool{1: false, 20_000: true} {
		h := task.New(task.Options{Sessions: l.Hub, Views: brokenViews{projection.New(projection.Options{Store: l.Hub}), at}})
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if broken := recover() == http.ErrAbortHandler; broken != begun {
					t.Errorf("a failure at %d breaks the connection: %t", at, broken)
				}
			}()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/sessions/s/events/history", nil))
		}()
		if !begun && w.Code != http.StatusInternalServerError {
			t.Errorf("a failure at %d: %d", at, w.Code)
		}
	}
}

// Reverted events are not in the history. They are in a stream of all events.
func TestHistoryIsActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := newHandler()
		l.create(t, created())
		l.play(t, "a")
		l.play(t, "b")
		l.append(t, tapedeck.Event{Type: tapedeck.SessionRewound, Data: json.RawMessage(`{"marker":"mrk_1","toOffset":7}`)})
		l.play(t, "c")
		const run3 = "14 user_message, 15 agent_start, 17 message, 18 message, 19 agent_complete"
		for query, want := range map[string]string{
			"from=0": "1 user_message, 2 agent_start, 5 message, 6 agent_complete, 14 user_message, 15 agent_start, 18 message, 19 agent_complete",
			"from=5": "5 message, 6 agent_complete, 14 user_message, 15 agent_start, 18 message, 19 agent_complete",
			"from=9": "14 user_message, 15 agent_start, 18 message, 19 agent_complete",
			// Before the rewind the second run was active.
			"at=13": "1 user_message, 2 agent_start, 5 message, 6 agent_complete, 7 user_message, 8 agent_start, 11 message, 12 agent_complete",
			"at=14": "1 user_message, 2 agent_start, 5 message, 6 agent_complete",
		} {
			var got []string
			for _, e := range readTasks(t, h, "s/events/history?"+query).Events {
				got = append(got, fmt.Sprintf("%s %s", e.place(), e.Type))
			}
			if s := strings.Join(got, ", "); s != want {
				t.Errorf("%s\ngot  %s\nwant %s", query, s, want)
			}
		}
		for view, want := range map[string]string{"effective": run1 + ", " + run3, "all": run1 + ", " + run2 + ", " + run3} {
			s := watch(t, h, "s/stream?format=task&from=0&view="+view)
			<-s.Done
			if got := received(t, s); got != want {
				t.Errorf("view=%s\ngot  %s\nwant %s", view, got, want)
			}
		}
	})
}

// Wrong requests are refused.
func TestQueries(t *testing.T) {
	h, l := newHandler()
	l.create(t, created())
	for target, want := range map[string]int{
		"s/events?format=task&channel=chunks":       400,
		"s/stream?format=task&type=RUN_STARTED":     400,
		"s/stream?format=task&from=9":               400,
		"s/stream?format=task&lastEventId=1000":     400,
		"s/stream?format=tusk":                      400,
		"s/stream?format=task&begin=later":          400,
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
		s := watch(t, h, target)
		if <-s.Done; s.Status != want {
			t.Errorf("%s: %d, want %d: %s", target, s.Status, want, s.Text())
		}
	}
}

// A fork in the middle of a run does not wait for the end of the inherited run.
func TestStreamOfAFork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := newHandler()
		first := func(typ string) tapedeck.Event {
			return tapedeck.Event{Type: typ, Invocation: "a", Data: json.RawMessage(`{}`)}
		}
		if _, err := l.Create(t.Context(), tapedeck.Spec{ID: "parent", Events: []tapedeck.Event{
			{Type: tapedeck.SessionCreated}, first(tapedeck.RunStarted), first(tapedeck.RunFinished), do("RUN_STARTED", `{}`),
		}}); err != nil {
			t.Fatal(err)
		}
		forked := tapedeck.Event{Type: tapedeck.SessionForked, Data: json.RawMessage(`{"parent":"parent","at":4}`)}
		if _, err := l.Create(t.Context(), tapedeck.Spec{ID: "s", Parent: "parent", ForkAt: new(int64(4)), Events: []tapedeck.Event{forked}}); err != nil {
			t.Fatal(err)
		}
		s := watch(t, h, "s/stream?format=task")
		synctest.Wait()
		l.play(t, "b")
		<-s.Done
		if got, want := received(t, s), "3 agent_start, 5 user_message, 6 agent_start, 8 message, 9 message, 10 agent_complete"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// TestDefault: a client of the protocol names no format, and may accept anything.
func TestDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, l := newHandler()
		api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(r.Method + " " + r.Header.Get("Accept")))
		})
		h := task.Default(tasks, api)
		l.create(t, created())
		l.play(t, "a")
		for _, accept := range []string{"text/event-stream", "*/*", ""} {
			c := watch(t, h, "s/events?token=x", "Accept", accept)
			synctest.Wait()
			if got := receivedWith(t, c, "^%d$"); got != run1 {
				t.Errorf("accepting %q: %s", accept, got)
			}
			c.Disconnect()
		}
		if p := readTasks(t, h, "s/events/history"); len(p.Events) == 0 {
			t.Error("there is no history")
		}
		page := watch(t, h, "s/events", "Accept", "application/json")
		if <-page.Done; page.Status != http.StatusOK || !strings.HasPrefix(page.Text(), `{"events":`) {
			t.Errorf("accepting JSON: %d %s", page.Status, page.Text())
		}
		for target, accept := range map[string]string{
			"s/stream?format=native": "", "s/events?format=native": "text/event-stream", "s/snapshot": "", "/events": "",
		} {
			c := watch(t, h, target)
			if <-c.Done; c.Status != http.StatusTeapot || c.Text() != "GET "+accept {
				t.Errorf("%s is not answered by the API: %d %s", target, c.Status, c.Text())
			}
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/v1/sessions/s/events", nil)); w.Code != http.StatusTeapot {
			t.Errorf("an append: %d %s", w.Code, w.Body)
		}
	})
}

// A session has a status that clients of the protocol know.
func TestSession(t *testing.T) {
	ask := tapedeck.Event{Type: tapedeck.PermissionRequested, Invocation: "a", Data: json.RawMessage(`{"id":"p","message":"May I?","options":[{"id":"yes"}]}`)}
	for want, end := range map[string]tapedeck.Event{
		`running`: ask, `complete`: do("RUN_FINISHED", `{~outcome~:{~type~:~interrupt~,~interrupts~:[{}]}}`),
		`failed`: do("RUN_ERROR", `{~message~:~no~,~code~:~interrupted_by_restart~}`), `cancelled`: do("RUN_FINISHED", `{~outcome~:{~type~:~cancelled~},~metadata~:{~tapedeck~:{~resumable~:false}}}`),
	} {
		tasks, l := newHandler()
		h := task.Default(tasks, http.NotFoundHandler())
		l.create(t, created())
		l.play(t, "a", "RUN_FINISHED")
		end.Invocation = "a"
		l.append(t, end)
		s := watch(t, h, "s")
		if <-s.Done; s.Status != http.StatusOK || !strings.Contains(s.Text(), `"status":"`+want+`"`) || (want == "cancelled") != strings.Contains(s.Text(), `"resumable":false`) {
			t.Errorf("after %s: %d %s", end.Type, s.Status, s.Text())
		}
	}
	tasks, _ := newHandler()
	for target, want := range map[string]int{"none": 404, "none?x=1": 400} {
		s := watch(t, task.Default(tasks, http.NotFoundHandler()), target)
		if <-s.Done; s.Status != want {
			t.Errorf("%s: %d %s", target, s.Status, s.Text())
		}
	}
}

// TestErrorsAreJSON: a path or a method that the protocol does not have is an error of
// the form of all errors.
func TestErrorsAreJSON(t *testing.T) {
	h, _ := newHandler()
	for request, want := range map[string]int{
		"POST /api/v1/sessions/s/stream": 405, "GET /api/v1/sessions": 404, "GET /api/v1/sessions//stream": 404, "GET /api/v1/sessions/../stream": 404,
	} {
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != want || !strings.HasPrefix(w.Body.String(), `{"error":{"kind":`) {
			t.Errorf("%s: %d %s", request, w.Code, w.Body)
		}
	}
}

// TestDisconnectCancelsNothing: a run stays open when its client disconnects.
func TestDisconnectCancelsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := newHandler()
		l.create(t, created())
		l.play(t, "a", "RUN_FINISHED")
		c := watch(t, h, "s/stream")
		synctest.Wait()
		c.Disconnect()
		synctest.Wait()
		if head, err := l.Head(t.Context(), "s"); err != nil || len(head.Runs) != 1 {
			t.Errorf("the runs are %v, %v", head.Runs, err)
		}
	})
}

// A breaking log fails while it is followed.
type breaking struct {
	*hub.Hub
	err error
}

func (b breaking) Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error] {
	return func(yield func(tapedeck.Page, error) bool) {
		for p, err := range b.Hub.Follow(ctx, session, o) {
			if yield(p, err) {
				yield(tapedeck.Page{}, b.err)
			}
			return
		}
	}
}

// TestBrokenStreamsTellNothing: a stream that breaks off ends without the reason. The
// server's log has it.
func TestBrokenStreamsTellNothing(t *testing.T) {
	for _, err := range []error{errors.New("disk /home/ada/secret.db"), tapedeck.Errorf(tapedeck.Internal, "row 7 of the secret")} {
		var out bytes.Buffer
		_, l := newHandler()
		l.create(t, created())
		l.play(t, "a", "RUN_FINISHED")
		h := l.handler(task.Options{Sessions: breaking{l.Hub, err}, Logger: slog.New(slog.NewTextHandler(&out, nil))})
		c := watch(t, h, "s/stream")
		<-c.Done
		if got := c.Text(); got == "" || strings.Contains(got, "secret") || !strings.Contains(out.String(), "secret") {
			t.Errorf("%v: the client got %s\nand the log %s", err, got, &out)
		}
	}
}

// A page that comes back to a session that was recreated is told so, and gets none of its
// events. An EventSource stops at 410.
func TestIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := newHandler()
		l.create(t, created())
		l.play(t, "a")
		var s apitest.Client
		s.Open(t, h, "s/stream?format=task&from=0", "Last-Event-ID", "")
		<-s.Done
		last := s.LastID(t)
		ways := [][2]string{
			{"s/stream?format=task", last}, {"s/stream?format=task&lastEventId=" + last, ""}, {"s/stream?format=task&from=2@1", ""},
			{"s/stream?format=task", "2001@1"}, {"s/stream?format=task", "90000@1"}, {"s/events?format=task&from=2@1", ""}, {"s/events/history?from=2@1", ""},
		}
		ask := func(way [2]string) (int, string) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/sessions/"+way[0], nil)
			r.Header.Set("Last-Event-ID", way[1])
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		if status, body := ask(ways[0]); last != "6000@1" || status != http.StatusNoContent {
			t.Fatalf("%s: %d %s", last, status, body)
		}
		if err := l.Delete(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		l.create(t, created())
		l.play(t, "b")
		l.play(t, "c")
		for _, way := range ways {
			if status, body := ask(way); status != http.StatusGone || !strings.Contains(body, `"kind":"replaced"`) || strings.Contains(body, "agent_") {
				t.Errorf("%v: %d %s", way, status, body)
			}
		}
		for _, last := range []string{"6@", "6@0", "6@x", "@1", "6@1@1", "6@1.1", "6.1"} {
			if status, body := ask([2]string{"s/stream?format=task", last}); status != http.StatusBadRequest {
				t.Errorf("%s: %d %s", last, status, body)
			}
		}
	})
}
