package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/a2a"
	"github.com/tapedeck/tapedeck/runner/runnertest"
	"github.com/tapedeck/tapedeck/view"
)

func TestRunner(t *testing.T) {
	task := func(s string) *tapedeck.Invocation { return &tapedeck.Invocation{Task: s} }
	for _, path := range []string{modern, old} {
		t.Run(path, func(t *testing.T) {
			runnertest.Run(t, func(t testing.TB) runnertest.Harness {
				return runnertest.Harness{
					Runner: serveElsewhere(t, path), Talk: *task("talk"), Text: "One two three", Endless: *task("endless"), Fail: task("fail"),
					Abilities: runnertest.Abilities{Tools: task("tool"), Resume: task("again")},
				}
			})
		})
	}
}

// run runs an invocation and returns its text and its events.
func run(t *testing.T, r *a2a.Runner, in tapedeck.Invocation) (string, []tapedeck.Event, error) {
	t.Helper()
	in.ID, in.Session, in.Thread = tapedeck.NewID("inv_"), "s", tapedeck.MainThread
	var text strings.Builder
	var events []tapedeck.Event
	for e, err := range r.Run(t.Context(), in) {
		if err != nil {
			return text.String(), events, err
		}
		if e.Type == tapedeck.TextMessageContent {
			text.WriteString(deltaOf(t, e))
		}
		events = append(events, e)
	}
	return text.String(), events, nil
}

func deltaOf(t *testing.T, e tapedeck.Event) string {
	t.Helper()
	var d payload.TextMessageContent
	if err := json.Unmarshal(e.Data, &d); err != nil {
		t.Fatal(err)
	}
	return d.Delta.Whole()
}

// linkOf returns the newest link.
func linkOf(events []tapedeck.Event) *tapedeck.Link {
	var l *tapedeck.Link
	for _, e := range events {
		var d payload.AgentLinked
		if e.Type == tapedeck.AgentLinked && json.Unmarshal(e.Data, &d) == nil {
			l = &tapedeck.Link{Runner: d.Runner, NativeID: d.NativeID}
		}
	}
	return l
}

// An agent that does not stream answers with its task.
func TestNoStreams(t *testing.T) {
	_, r := serve(t, older)
	if text, _, err := run(t, r, tapedeck.Invocation{Task: "talk"}); text != "One two three" || err != nil {
		t.Errorf("got %q %v", text, err)
	}
	if _, _, err := run(t, r, tapedeck.Invocation{Task: "fail"}); !strings.Contains(fmt.Sprint(err), "the agent has failed: the disk is full") {
		t.Errorf("got %v", err)
	}
}

// A stream that breaks is continued, and nothing is said twice.
func TestTheStreamBreaks(t *testing.T) {
	for _, path := range []string{modern, old} {
		t.Run(path, func(t *testing.T) { breaks(t, path) })
	}
}

func breaks(t *testing.T, path string) {
	u, r := serve(t, path)
	text := ""
	for e, err := range r.Run(t.Context(), tapedeck.Invocation{ID: "inv_1", Session: "s", Thread: tapedeck.MainThread, Task: "break"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != tapedeck.TextMessageContent {
			continue
		}
		if text += deltaOf(t, e); text == "before " {
			u.cut()
			close(u.next)
		}
	}
	if text != "before after" {
		t.Errorf("got %q", text)
	}
}

// A run that is stopped cancels the task of the agent.
func TestCancel(t *testing.T) {
	u, r := serve(t, modern)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e, err := range r.Run(ctx, tapedeck.Invocation{ID: "inv_1", Session: "s", Thread: tapedeck.MainThread, Task: "endless"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == tapedeck.TextMessageContent {
			cancel()
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.cancelled) != 1 || u.cancelled[0] != u.asked[0].task {
		t.Errorf("cancelled were %v, want %v", u.cancelled, u.asked)
	}
}

// The next task continues the conversation of the agent. After a rewind there is no
// link, and a new conversation begins with the history.
func TestConversations(t *testing.T) {
	u, r := serve(t, modern)
	_, events, err := run(t, r, tapedeck.Invocation{Task: "one"})
	link := linkOf(events)
	if err != nil || link == nil || link.Runner != "a2a:up" {
		t.Fatalf("got the link %v %v", link, err)
	}
	if _, again, _ := run(t, r, tapedeck.Invocation{Task: "two", Link: link}); linkOf(again).NativeID != link.NativeID || u.ask(1).conversation != u.ask(0).conversation {
		t.Errorf("the conversation is %v, then %v", link, linkOf(again))
	}
	history := func(context.Context) iter.Seq2[tapedeck.Event, error] {
		return func(yield func(tapedeck.Event, error) bool) {
			yield(payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("m", payload.RoleUser, "I am Ada")}), nil)
		}
	}
	text, events, err := run(t, r, tapedeck.Invocation{Task: "three", History: history})
	if err != nil || text != "You said three" || linkOf(events).NativeID == link.NativeID || !strings.Contains(u.ask(2).text, "I am Ada") {
		t.Errorf("got %q %v; the agent was asked %q", text, err, u.ask(2).text)
	}
}

// An agent that waits for input ends its turn, and gets the next message in its task.
func TestTheAgentAsks(t *testing.T) {
	u, r := serve(t, modern)
	text, events, err := run(t, r, tapedeck.Invocation{Task: "ask"})
	if text != "Which one?" || err != nil {
		t.Fatalf("got %q %v", text, err)
	}
	if text, _, err = run(t, r, tapedeck.Invocation{Task: "the red one", Link: linkOf(events)}); text != "You said the red one" || err != nil {
		t.Errorf("got %q %v", text, err)
	}
	if u.ask(1).task != u.ask(0).task {
		t.Errorf("the answer went to the task %q, not %q", u.ask(1).task, u.ask(0).task)
	}
}

// Errors say what has happened and keep no secret.
func TestErrors(t *testing.T) {
	_, r := serve(t, modern)
	none := a2a.New(a2a.Options{Name: "none", URL: "http://ada:pa55word@127.0.0.1:1/s3cret?key=t0psecret"})
	for want, tt := range map[string]struct {
		runner *a2a.Runner
		task   string
	}{
		"the agent has failed: the disk is full": {r, "fail"},
		"the card of the agent none cannot be read: the connection is refused, so nothing listens at its port": {none, "talk"},
	} {
		_, _, err := run(t, tt.runner, tapedeck.Invocation{Task: tt.task})
		if tapedeck.KindOf(err) != tapedeck.Unavailable || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		for _, secret := range []string{"pa55word", "s3cret", "t0psecret"} {
			if strings.Contains(fmt.Sprint(err), secret) {
				t.Errorf("the error has %s: %v", secret, err)
			}
		}
	}
	if err := a2a.New(a2a.Options{}).Available(); !strings.Contains(fmt.Sprint(err), "has no URL") {
		t.Errorf("got %v", err)
	}
}

// A restarted server continues to listen: it asks the agent for the task, and records
// what the log does not have, wherever the earlier process died.
func TestReattach(t *testing.T) {
	for _, task := range []string{"tool", "change", "parts"} {
		t.Run(task, func(t *testing.T) { reattach(t, task) })
	}
}

func reattach(t *testing.T, task string) {
	_, r := serve(t, modern)
	in := tapedeck.Invocation{ID: "inv_1", Session: "s", Thread: tapedeck.MainThread, Task: task}
	var all []tapedeck.Event
	for e, err := range r.Run(t.Context(), in) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	if len(all) < 8 {
		t.Fatalf("only %d events", len(all))
	}
	for n := range len(all) + 1 {
		in.Begun = func(context.Context) iter.Seq2[tapedeck.Event, error] {
			return func(yield func(tapedeck.Event, error) bool) {
				for _, e := range all[:n] {
					if !yield(e, nil) {
						return
					}
				}
			}
		}
		got := slices.Clone(all[:n])
		var failed error
		for e, err := range r.Run(t.Context(), in) {
			if err != nil {
				failed = err
				break
			}
			got = append(got, e)
		}
		known := slices.ContainsFunc(all[:n], func(e tapedeck.Event) bool { return e.Type == tapedeck.Custom })
		if !known {
			if !strings.Contains(fmt.Sprint(failed), "before the agent had accepted the task") {
				t.Errorf("after %d events: %v", n, failed)
			}
			continue
		}
		if failed != nil || outlineOf(t, got) != outlineOf(t, all) {
			t.Errorf("after %d events: got %s, want %s; %v", n, outlineOf(t, got), outlineOf(t, all), failed)
		}
	}
}

// outlineOf returns the text, the calls and the answers of a run.
func outlineOf(t *testing.T, events []tapedeck.Event) string {
	t.Helper()
	text, calls, answers, links := textsOf(events), "", "", 0
	slices.Sort(text) // a task does not say whether an artifact or a message came first
	idOf := func(e tapedeck.Event) string {
		var d payload.ToolCallResult
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		return d.ToolCallID + d.MessageID
	}
	for _, e := range events {
		switch e.Type {
		case tapedeck.ToolCallStart:
			calls += idOf(e)
		case tapedeck.ToolCallResult:
			answers += idOf(e)
		case tapedeck.AgentLinked:
			links++
		}
	}
	return fmt.Sprintf("%q, calls %s, answers %s, %d links", text, calls, answers, links)
}

// An artifact that is replaced, and a message that the agent sends again with another text,
// stay one message. Partial messages are one with the whole that follows them.
func TestTextsThatChange(t *testing.T) {
	for _, path := range []string{modern, old} {
		for task, want := range map[string][]string{"change": {"Four of five", "Done"}, "parts": {"By bus or train", "No"}} {
			_, r := serve(t, path)
			_, events, err := run(t, r, tapedeck.Invocation{Task: task})
			if got := textsOf(events); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, %s: got %q %v, want %q", path, task, got, err, want)
			}
		}
	}
}

// textsOf returns the texts of the messages in a run.
func textsOf(events []tapedeck.Event) (texts []string) {
	var c view.Conversation
	c.Keep()
	for i, e := range events {
		e.Offset, e.Invocation, e.Channel = int64(i), "inv_1", tapedeck.ChannelOf(e.Type)
		c.Apply(&e)
	}
	for _, m := range c.Thread(tapedeck.MainThread).Messages {
		texts = append(texts, m.Text)
	}
	return texts
}

// A redirect is not followed: another server would get the headers, which may have secrets.
func TestRedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked with %q", r.Header.Get("Authorization"))
	}))
	defer other.Close()
	agent := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer agent.Close()
	if _, _, err := run(t, runnerOf(agent.URL, nil), tapedeck.Invocation{Task: "talk"}); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Errorf("got %v", err)
	}
}

// A server that the card names, and that is not the one of the URL, does not get the
// headers.
func TestHeadersOfAnotherServer(t *testing.T) {
	asked := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }))
	defer other.Close()
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Error("the server of the agent does not get the headers")
		}
		fmt.Fprintf(w, `{"name":"a","version":"1","capabilities":{},"supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, other.URL)
	}))
	defer agent.Close()
	if _, _, err := run(t, runnerOf(agent.URL, nil), tapedeck.Invocation{Task: "talk"}); err == nil {
		t.Error("an empty answer is no error")
	}
	if got := <-asked; got != "" {
		t.Errorf("the other server gets %q", got)
	}
}

// An agent that repeats what the request had of secrets does not bring it into the log.
func TestSecretsInErrors(t *testing.T) {
	const query = "key=s3cretkey"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			if got := r.URL.RequestURI(); got != "/x/.well-known/agent-card.json?"+query {
				t.Errorf("the card is asked for at %s", got)
			}
			fmt.Fprintf(w, `{"name":"x","url":"http://%s/rpc?%s","capabilities":{}}`, r.Host, query)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"1","error":{"code":-32603,"message":"%s %s"}}`, r.URL.RawQuery, r.Header.Get("X-Key"))
	}))
	defer server.Close()
	_, _, err := run(t, a2a.New(a2a.Options{Name: "up", URL: server.URL + "/x?" + query, Header: map[string]string{"X-Key": "another-one"}}), tapedeck.Invocation{Task: "hi"})
	if err == nil || strings.Contains(err.Error(), "s3cretkey") || strings.Contains(err.Error(), "another-one") {
		t.Errorf("got %v", err)
	}
}
