package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/protocol/a2a"
)

// work is a task with everything that has a counterpart in the protocol.
const work = "say Hello to you\ntool Read\nsay It is done"

// A client has the task that it makes of a stream, as the libraries of clients do.
type client struct {
	task
	texts map[string]string // of the artifacts, by id
}

// follow applies the events of a stream.
func (a *answer) follow() *client {
	a.Helper()
	if len(a.frames) == 0 {
		a.Fatalf("no stream: %d %s", a.Status, a.Body)
	}
	c := &client{task: *a.taskIn(string(a.frames[0].Data)), texts: map[string]string{}}
	for _, x := range c.Artifacts {
		c.texts[x.ID] = x.Parts[0].Text
	}
	for _, f := range a.frames[1:] {
		c.apply(a, f.Data)
	}
	return c
}

func (c *client) apply(a *answer, data []byte) {
	type update struct {
		Kind     string
		Status   struct{ State string }
		Append   bool
		Artifact struct {
			ID    string `json:"artifactId"`
			Parts []partForm
		}
	}
	var env struct {
		Result struct {
			update
			StatusUpdate, ArtifactUpdate *update
		}
	}
	var said struct {
		Result struct {
			Status       struct{ Message *messageForm }
			StatusUpdate struct {
				Status struct{ Message *messageForm }
			}
		}
	}
	if json.Unmarshal(data, &env) != nil || json.Unmarshal(data, &said) != nil {
		a.Fatalf("cannot read %s", data)
	}
	u, m := &env.Result.update, said.Result.Status.Message
	if s := env.Result.StatusUpdate; s != nil {
		u, m, u.Kind = s, said.Result.StatusUpdate.Status.Message, "status-update"
		u.Kind = "status-update"
	}
	if s := env.Result.ArtifactUpdate; s != nil {
		u = s
		u.Kind = "artifact-update"
	}
	switch u.Kind {
	case "status-update":
		c.Status.State = u.Status.State
		if m != nil {
			c.History = append(c.History, *m)
		}
	case "artifact-update":
		if !u.Append {
			c.texts[u.Artifact.ID] = ""
		}
		c.texts[u.Artifact.ID] += u.Artifact.Parts[0].Text
	default:
		a.Errorf("an unknown update: %s", data)
	}
}

// same checks that the client has what the server says.
func (c *client) same(a *answer, want *task) {
	a.Helper()
	texts := map[string]string{}
	for _, x := range want.Artifacts {
		texts[x.ID] = x.Parts[0].Text
	}
	if c.Status.State != want.Status.State {
		a.Errorf("the state is %s, want %s", c.Status.State, want.Status.State)
	}
	if diff := cmp.Diff(want.History, c.History); diff != "" {
		a.Errorf("history (-server +client)\n%s", diff)
	}
	if diff := cmp.Diff(texts, c.texts); diff != "" {
		a.Errorf("artifacts (-server +client)\n%s", diff)
	}
}

// A client that applies the events of a stream to its first task gets the task.
func TestStreamMakesTheTask(t *testing.T) {
	for _, policy := range []a2a.Policy{a2a.PerTurn, a2a.PerSession} {
		t.Run(string(policy), func(t *testing.T) {
			inBubble(t, a2a.Options{Policy: policy}, func(w *world) {
				s := w.call("SendStreamingMessage", message("m1", work, ""))
				c := s.follow()
				want := w.call("GetTask", fmt.Sprintf(`{"id":%q}`, c.ID)).task()
				c.same(s, want)
				if got, words := want.words(), "user: "+work+" | agent: Hello to you | agent: Read | agent: Read | agent: It is done"; got != words {
					t.Errorf("got %q, want %q", got, words)
				}
				if len(want.Artifacts) != 2 || want.Artifacts[0].Parts[0].Text != "Hello to you" {
					t.Errorf("got %v", want.Artifacts)
				}
				for _, m := range want.History {
					if id := m.Metadata["kagent_invocation_id"]; id == nil || id != m.Metadata["adk_invocation_id"] || m.TaskID != want.ID {
						t.Errorf("the message %s has the metadata %v and the task %s", m.ID, m.Metadata, m.TaskID)
					}
				}
				s = w.call03("message/stream", message03("m2", work, ""))
				c = s.follow()
				c.same(s, w.call03("tasks/get", fmt.Sprintf(`{"id":%q}`, c.ID)).task())
				if last := string(s.frames[len(s.frames)-1].Data); !strings.Contains(last, `"final":true`) {
					t.Errorf("the last event is not final: %s", last)
				}
			})
		})
	}
}

// A client that resumes after any event gets the task as of that event, and then exactly
// the events that it has missed; also if the task has ended, and after a restart.
func TestResumeAfterEveryEvent(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		all := w.call("SendStreamingMessage", message("m1", work, ""))
		id := all.follow().ID
		_ = w.call("SendMessage", message("m2", "say Something else", ""))
		w.stop()
		w.start(a2a.Options{})
		want := w.call("GetTask", fmt.Sprintf(`{"id":%q}`, id)).task()
		if len(all.frames) < 8 {
			t.Fatalf("only %d events", len(all.frames))
		}
		for i, f := range all.frames {
			if f.ID == "" { // more of the same event of the log follows
				continue
			}
			s := w.call("SubscribeToTask", fmt.Sprintf(`{"id":%q}`, id), "Last-Event-ID", f.ID)
			if len(s.frames) == 0 || s.frames[0].ID != f.ID {
				t.Fatalf("after %s got %s", f.ID, s.Body)
			}
			if diff := cmp.Diff(all.frames[i+1:], s.frames[1:]); diff != "" {
				t.Errorf("after %s (-want +got)\n%s", f.ID, diff)
			}
			s.follow().same(s, want)
		}
	})
}

// A client that subscribes while the agent works gets the rest; two clients get the same.
func TestSubscribeWhileItWorks(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		now := w.call("SendMessage", strings.Replace(message("m1", "say One two\nsleep\nsay Three", ""), `{"message"`, `{"configuration":{"returnImmediately":true},"message"`, 1)).task()
		if now.Status.State != "TASK_STATE_SUBMITTED" {
			t.Errorf("got %+v", now)
		}
		got := make(chan *answer)
		for range 2 {
			go func() { got <- w.call("SubscribeToTask", fmt.Sprintf(`{"id":%q}`, now.ID)) }()
		}
		a, b := <-got, <-got
		if diff := cmp.Diff(a.frames[1:], b.frames[1:]); diff != "" {
			t.Errorf("two clients got different events\n%s", diff)
		}
		for _, s := range []*answer{a, b} {
			s.follow().same(s, w.call("GetTask", fmt.Sprintf(`{"id":%q}`, now.ID)).task())
		}
		w.call("SubscribeToTask", fmt.Sprintf(`{"id":%q}`, now.ID)).fails(-32004, "has ended; get the task, or send Last-Event-ID")
	})
}

// A run that no server finished has failed after the restart.
func TestTaskOfADeadServerFails(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		now := w.call("SendMessage", strings.Replace(message("m1", "say Hello\nwait", ""), `{"message"`, `{"configuration":{"returnImmediately":true},"message"`, 1)).task()
		time.Sleep(time.Second) // in the bubble: until the agent rests
		dead := w.engine
		defer func() { _ = dead.Shutdown(w.Context()) }()
		w.start(a2a.Options{}) // the old engine goes on, but nothing asks it
		if n, err := w.engine.Recover(w.Context()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		s := w.call("SubscribeToTask", fmt.Sprintf(`{"id":%q}`, now.ID), "Last-Event-ID", "2")
		c := s.follow()
		if c.Status.State != "TASK_STATE_FAILED" || !strings.Contains(c.words(), "the server was restarted while the agent was running") {
			t.Errorf("got %s %s", c.Status.State, c.words())
		}
	})
}

// A server that stops ends the streams, also of a task that waits.
func TestStreamsEndWithTheServer(t *testing.T) {
	inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
		stop, end := context.WithCancel(w.Context())
		defer end()
		w.stop()
		w.start(a2a.Options{Policy: a2a.PerSession, Stop: stop})
		w.call("SendMessage", message("m1", "say Hi", ""))
		ended := make(chan *answer)
		go func() { ended <- w.call("SubscribeToTask", `{"id":"c"}`) }()
		time.Sleep(time.Minute) // in the bubble: until the stream waits
		select {
		case a := <-ended:
			t.Errorf("the stream has ended: %s", a.Body)
		default:
			end()
			if a := <-ended; !strings.Contains(a.Body, ": heartbeat") {
				t.Errorf("a silent stream has no heartbeat: %s", a.Body)
			}
		}
	})
}

// Runs of other protocols are tasks, too.
func TestRunsOfOtherProtocolsAreTasks(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		r, err := w.engine.Start(w.Context(), api.Task{Session: "c", Create: true, Text: "say Hi"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // in the bubble: until the agent rests
		got := w.call("GetTask", fmt.Sprintf(`{"id":"c~%s"}`, r.Invocation)).task()
		if got.words() != "user: say Hi | agent: Hi" || got.Status.State != "TASK_STATE_COMPLETED" {
			t.Errorf("got %s %s", got.Status.State, got.words())
		}
	})
}

// A client that comes back to a task of a session that was recreated gets none of its events,
// also if the new session has a task of the same name.
func TestIncarnation(t *testing.T) {
	inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
		w.call("SendMessage", message("m1", "say Mine", ""))
		head, err := w.hub.Head(w.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		last := fmt.Sprintf("%d@%d", head.Head-2, head.Gen)
		s := w.call("SubscribeToTask", `{"id":"c"}`, "Last-Event-ID", last)
		if len(s.frames) == 0 || s.frames[0].ID != last {
			t.Fatalf("after %s got %s", last, s.Body)
		}
		if err := w.engine.Delete(w.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		w.call("SendMessage", message("m2", "say Other words", ""))
		s = w.call("SubscribeToTask", `{"id":"c"}`, "Last-Event-ID", last)
		s.fails(-32001, "another history")
		if strings.Contains(s.Body, "Other words") {
			t.Errorf("it has words of the other session: %s", s.Body)
		}
		for _, wrong := range []string{"1@", "1@0", "1@x", "@1"} {
			w.call("SubscribeToTask", `{"id":"c"}`, "Last-Event-ID", wrong).fails(-32602, "has no event")
		}
	})
}
