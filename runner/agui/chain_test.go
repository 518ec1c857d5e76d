package agui_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/testmodel"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/agui"
)

// A chain is a server whose agent is behind the AG-UI endpoint of another server.
type chain struct {
	testing.TB
	near, far *deck.Deck
	tasks     []string // what the agent was told, with the history before it
	actions   []string // what the agent did with permission
}

// link returns a chain. handler is the other server; nil for a Tapedeck.
func link(t testing.TB, handler http.Handler) *chain {
	t.Helper()
	c := &chain{TB: t}
	if handler == nil {
		c.far = c.open(deck.Agent{Name: "helper", Runner: tapedeck.RunnerFunc(c.help)})
		handler = c.far.Handler()
	}
	c.near = c.open(deck.Agent{Name: "remote", Kind: "agui", Runner: agui.New(agui.Options{Name: "remote", URL: "http://far.invalid/agui/helper", HTTP: testmodel.Transport(handler)})})
	return c
}

func (c *chain) open(a deck.Agent) *deck.Deck {
	c.Helper()
	d, err := deck.Open(c.Context(), "", deck.Options{InMemory: true, NoScreen: true, AnyHost: true, Agents: []deck.Agent{a}})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = d.Close(context.WithoutCancel(c.Context())) })
	return d
}

// help is the agent: "ask" asks before it does something, "wait" never ends, and
// anything else is repeated.
func (c *chain) help(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		c.tasks = append(c.tasks, strings.Join(append(said(c, in.History(ctx)), in.Task), " | "))
		id := tapedeck.NewID("msg_")
		say := func(text string) bool {
			return yield(payload.NewEvent(payload.TextMessageStart{MessageID: id, Role: payload.RoleAssistant}), nil) &&
				yield(payload.NewEvent(payload.TextMessageContent{MessageID: id, Delta: payload.Piece(text)}), nil)
		}
		switch in.Task {
		case "ask":
			call := tapedeck.NewID("call_")
			_ = yield(payload.NewEvent(payload.ToolCallStart{ToolCallID: call, ToolCallName: "rm"}), nil) &&
				yield(payload.NewEvent(payload.ToolCallArgs{ToolCallID: call, Delta: `{"path":"x"}`}), nil) &&
				yield(payload.NewEvent(payload.ToolCallEnd{ToolCallID: call}), nil)
			choice, err := in.Ask(ctx, tapedeck.Question{ToolCallID: call, Message: "Remove x?", Action: &tapedeck.PermissionAction{Command: "rm x"},
				Options: []tapedeck.PermissionOption{{ID: "yes", Name: "Yes", Kind: "allow_once"}, {ID: "no", Name: "No", Kind: "reject_once"}}})
			if err != nil || ctx.Err() != nil {
				return
			}
			c.actions = append(c.actions, choice.Option)
			_ = yield(payload.NewEvent(payload.ToolCallResult{MessageID: call + ".r", ToolCallID: call, Content: payload.Text("done: " + choice.Option), Role: payload.RoleTool}), nil)
		case "pick":
			c.actions = append(c.actions, string(in.Input))
			_ = yield(payload.NewEvent(payload.ToolCallStart{ToolCallID: id, ToolCallName: "pick"}), nil) &&
				yield(payload.NewEvent(payload.ToolCallEnd{ToolCallID: id}), nil)
			return
		case "wait":
			if say("half a sen") {
				<-ctx.Done()
			}
			return
		}
		if say("You said " + in.Task) {
			yield(payload.NewEvent(payload.TextMessageEnd{MessageID: id}), nil)
		}
	}
}

// said returns the messages in a history.
func said(t testing.TB, events iter.Seq2[tapedeck.Event, error]) (list []string) {
	for e, err := range events {
		if err != nil {
			t.Error(err)
			return nil
		}
		switch e.Type {
		case tapedeck.MessageAdded:
			m := decode[payload.MessageAdded](t, e).Message
			list = append(list, m.Role+" "+m.Text())
		case tapedeck.TextMessageContent:
			list = append(list, decode[payload.TextMessageContent](t, e).Delta.Whole())
		}
	}
	return list
}

// run gives a task to the near agent, and calls on for each event until the run ends.
func (c *chain) run(task string, on func(tapedeck.Event)) api.Started {
	c.Helper()
	s, err := c.near.Run(c.Context(), api.Task{Session: "s", Create: true, Text: task})
	if err != nil {
		c.Fatal(err)
	}
	for e, err := range c.near.Follow(c.Context(), "s", s.Offset) {
		if err != nil {
			c.Fatal(err)
		}
		if on != nil {
			on(e)
		}
		if e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError {
			break
		}
	}
	synctest.Wait()
	return s
}

// sessions returns the sessions of the far server, the oldest first.
func (c *chain) sessions() []tapedeck.Session {
	c.Helper()
	page, err := c.far.Sessions(c.Context(), tapedeck.Filter{})
	if err != nil {
		c.Fatal(err)
	}
	slices.Reverse(page.Sessions)
	return page.Sessions
}

// conversation returns the conversation of a session, as people see it.
func (c *chain) conversation(d *deck.Deck, session string) string {
	c.Helper()
	list, err := d.Session(session).Messages(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	var out []string
	for _, m := range list {
		out = append(out, m.ID+" "+m.Role+" "+m.Text)
	}
	return strings.Join(out, " | ")
}

// Both servers have the same conversation, and a second task continues it.
func TestTwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := link(t, nil)
		c.run("one", nil)
		c.run("two", nil)
		far := c.sessions()
		if len(far) != 1 {
			t.Fatalf("the far server has %d sessions", len(far))
		}
		near := c.conversation(c.near, "s")
		if got := c.conversation(c.far, far[0].ID); got != near || !strings.HasSuffix(near, "assistant You said two") {
			t.Errorf("near: %s\nfar: %s", near, got)
		}
		if want := []string{"one", "user one | You said one | two"}; !slices.Equal(c.tasks, want) {
			t.Errorf("the agent was told %q", c.tasks)
		}
	})
}

// After a rewind the far agent gets only what is active.
func TestRewindTwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := link(t, nil)
		c.run("one", nil)
		wrong := c.run("wrong", nil)
		if _, err := c.near.Session("s").Rewind(t.Context(), api.Rewind{BeforeInvocation: wrong.Invocation}); err != nil {
			t.Fatal(err)
		}
		c.run("two", nil)
		if got := c.tasks[2]; got != "user one | assistant You said one | two" || len(c.sessions()) != 2 {
			t.Errorf("the agent was told %q in %d sessions", got, len(c.sessions()))
		}
		c.run("three", nil)
		if len(c.sessions()) != 2 {
			t.Errorf("the next task is in session %d of the far server", len(c.sessions()))
		}
	})
}

// A question of the far agent is asked here, and it gets the answer.
func TestQuestionTwoServers(t *testing.T) {
	for _, option := range []string{"yes", "no"} {
		synctest.Test(t, func(t *testing.T) {
			c := link(t, nil)
			c.run("ask", func(e tapedeck.Event) {
				if e.Type != tapedeck.PermissionRequested {
					return
				}
				q := decode[payload.PermissionRequested](t, e)
				if q.Message != "Remove x?" || q.Action == nil || q.Action.Command != "rm x" || len(q.Options) != 2 || q.ToolCallID == "" {
					t.Errorf("the question is %s", e.Data)
				}
				if _, err := c.near.Session("s").Answer(t.Context(), api.Answer{Permission: q.ID, Option: option}); err != nil {
					t.Error(err)
				}
			})
			far := c.sessions()
			if !slices.Equal(c.actions, []string{option}) || len(far) != 1 || far[0].Status != tapedeck.StatusComplete {
				t.Errorf("the agent got %v, its sessions are %+v", c.actions, far)
			}
			now, err := c.near.Session("s").Info(t.Context())
			if got := c.conversation(c.near, "s"); err != nil || now.Status != tapedeck.StatusComplete || got != c.conversation(c.far, far[0].ID) {
				t.Errorf("the run is %s with %s, %v", now.Status, got, err)
			}
			for e, err := range c.near.Session("s").Events(t.Context(), 0) {
				if err != nil || e.Type == tapedeck.MessagesSnapshot {
					t.Errorf("the log repeats its messages: %s %v", e.Data, err)
				}
			}
		})
	}
}

// A tool of a front end works through both servers: its front end answers in the next
// run, in which the user says nothing.
func TestFrontEndToolTwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := link(t, nil)
		post := func(run, messages string) string {
			body := `{"threadId":"s","runId":"` + run + `","messages":[` + messages + `],"tools":[{"name":"pick"}],"context":[],"state":{},"forwardedProps":{}}`
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/agui/remote", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			c.near.Handler().ServeHTTP(w, r)
			synctest.Wait()
			return w.Body.String()
		}
		const user = `{"id":"u","role":"user","content":"pick"}`
		first := post("r1", user)
		_, rest, found := strings.Cut(first, `"toolCallId":"`)
		call, _, _ := strings.Cut(rest, `"`)
		if !found || !strings.Contains(first, tapedeck.RunFinished) || len(c.actions) != 1 || !strings.Contains(c.actions[0], `"tools":[{"name":"pick"}]`) {
			t.Fatalf("the front end got %s; the agent got %v", first, c.actions)
		}
		made := `{"id":"` + call + `","role":"assistant","toolCalls":[{"id":"` + call + `","type":"function","function":{"name":"pick","arguments":""}}]}`
		second := post("r2", user+`,`+made+`,{"id":"a","role":"tool","toolCallId":"`+call+`","content":"red"}`)
		if want := "user pick | tool red | Continue where you left off."; c.tasks[1] != want || len(c.sessions()) != 1 || !strings.Contains(second, "You said") {
			t.Errorf("the agent was told %q, the front end got %s", c.tasks[1], second)
		}
	})
}

// A cancel here stops the far agent, also while it waits for an answer. The next task
// has a new session there, with what was said until then.
func TestCancelTwoServers(t *testing.T) {
	for task, at := range map[string]string{"wait": tapedeck.TextMessageContent, "ask": tapedeck.PermissionRequested} {
		synctest.Test(t, func(t *testing.T) {
			c := link(t, nil)
			c.run(task, func(e tapedeck.Event) {
				if e.Type == at {
					if _, err := c.near.Session("s").Cancel(t.Context(), e.Invocation); err != nil {
						t.Error(err)
					}
				}
			})
			far := c.sessions()
			if far[0].Status != tapedeck.StatusCancelled || len(c.actions) > 0 {
				t.Errorf("the session of the far agent is %s, it did %v", far[0].Status, c.actions)
			}
			c.run("go on", nil)
			told := c.tasks[1]
			if len(c.sessions()) != 2 || !strings.Contains(told, "user "+task) || !strings.HasSuffix(told, "go on") || task == "wait" && !strings.Contains(told, "assistant half a sen") {
				t.Errorf("then the agent was told %q", told)
			}
		})
	}
}

// An agent of an earlier version sends chunks. The engine gets them in the form of the
// log, and ends what the agent did not.
func TestChunksAndEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const chunks = `data: {"type":"THINKING_START"}` + "\n\n" + `data: {"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"Go "}` + "\n\n" +
			`data: {"type":"TEXT_MESSAGE_CHUNK","delta":"by train."}` + "\n\n" + `data: {"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"book","delta":"{}"}` + "\n\n"
		c := link(t, answering(begun+chunks+ended))
		c.run("hi", nil)
		s, err := c.near.Session("s").Info(t.Context())
		if got := c.conversation(c.near, "s"); err != nil || s.Status != tapedeck.StatusComplete || !strings.HasSuffix(got, "m assistant Go by train.") {
			t.Errorf("the run is %s with %s, %v", s.Status, got, err)
		}
	})
}

// A run whose agent breaks has failed, and keeps what the agent said. The next task
// sends it again.
func TestBrokenAgentAndEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bodies := []string{}
		c := link(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(b))
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, begun+`data: {"type":"TEXT_MESSAGE_CHUNK","messageId":"m`+fmt.Sprint(len(bodies))+`","delta":"half a"}`+"\n\n")
			panic(http.ErrAbortHandler)
		}))
		message := ""
		on := func(e tapedeck.Event) {
			if e.Type == tapedeck.RunError {
				message = decode[payload.RunError](t, e).Message
			}
		}
		c.run("hi", on)
		if !strings.HasPrefix(message, "the connection to the agent broke before its run had ended") {
			t.Errorf("the error is %q", message)
		}
		c.run("again", on)
		if len(bodies) != 2 || !strings.Contains(bodies[1], `"content":"half a"`) {
			t.Errorf("the second of %d requests is %s", len(bodies), bodies[len(bodies)-1])
		}
	})
}
