package a2a

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"github.com/tapedeck/tapedeck/internal/testserver"
)

// A proxy is a server whose agent "team.far" is the agent "hello" of another server.
type proxy struct {
	dir    string
	server *testserver.Server
}

func newProxy(t *testing.T, far *testserver.Server) *proxy {
	t.Helper()
	p := &proxy{dir: t.TempDir()}
	text := fmt.Sprintf("[[agent]]\nname = \"team.far\"\nkind = \"a2a\"\nurl = %q\n", far.URL+"/a2a/hello")
	if err := os.WriteFile(p.config(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *proxy) config() string { return filepath.Join(p.dir, "tapedeck.toml") }

// start starts the server, again if it was killed, and returns the client for the agent.
func (p *proxy) start(ctx context.Context, t *testing.T) *a2aclient.Client {
	t.Helper()
	p.server = testserver.Start(t, filepath.Join(p.dir, "data"), "--config", p.config())
	c, err := a2aclient.NewFromEndpoints(ctx, []*sdk.AgentInterface{sdk.NewAgentInterface(p.server.URL+"/api/a2a/team/far", sdk.TransportProtocolJSONRPC)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ask(ctx context.Context, t *testing.T, c *a2aclient.Client, m *sdk.Message) *sdk.Task {
	t.Helper()
	r, err := c.SendMessage(ctx, &sdk.SendMessageRequest{Message: m})
	if err != nil {
		t.Fatal(err)
	}
	task, ok := r.(*sdk.Task)
	if !ok {
		t.Fatalf("the answer is %T", r)
	}
	return task
}

// An agent of another server is used through this one: its turns are tasks here, and a
// rewind here makes it forget.
func TestProxy(t *testing.T) {
	ctx := limited(t)
	far := testserver.Start(t, filepath.Join(t.TempDir(), "data"))
	c := newProxy(t, far).start(ctx, t)
	first := ask(ctx, t, c, sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("blue")))
	if first.Status.State != sdk.TaskStateCompleted || !strings.HasPrefix(text(first), "Hello! You asked: blue\n") || len(first.History) != 2 {
		t.Fatalf("got %s, %q and %d messages", first.Status.State, text(first), len(first.History))
	}
	next := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("green"))
	next.ContextID = first.ContextID
	second := ask(ctx, t, c, next)
	if !strings.HasPrefix(text(second), "Hello! You asked: green\n") {
		t.Errorf("got %q", text(second))
	}
	back := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(""))
	back.ContextID = first.ContextID
	back.SetMeta("kagent_rewind_before_invocation_id", second.Metadata["kagent_invocation_id"])
	if left := ask(ctx, t, c, back); len(left.History) != 2 || left.History[0].Parts[0].Text() != "blue" {
		t.Errorf("after the rewind: %v", left.History)
	}
	again := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("red"))
	again.ContextID = first.ContextID
	if got := text(ask(ctx, t, c, again)); !strings.Contains(got, "blue") || strings.Contains(got, "green") {
		t.Errorf("the agent knows %q", got)
	}
}

// The other server dies in the middle of a run. The run here has what arrived, and it
// ends as the agent reports after its restart.
func TestProxyOfAServerThatDies(t *testing.T) {
	ctx := limited(t)
	data := filepath.Join(t.TempDir(), "data")
	far := testserver.Start(t, data)
	c := newProxy(t, far).start(ctx, t)
	u, err := url.Parse(far.URL)
	if err != nil {
		t.Fatal(err)
	}
	var said artifacts
	state, parts := sdk.TaskStateUnspecified, 0
	m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(strings.Repeat("word ", 300)))
	for e, err := range c.SendStreamingMessage(ctx, &sdk.SendMessageRequest{Message: m}) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case *sdk.TaskArtifactUpdateEvent:
			said.apply(e)
			if parts++; parts == 5 {
				far.Kill()
				testserver.Start(t, data, "--listen", net.JoinHostPort(u.Hostname(), u.Port()))
			}
		case *sdk.TaskStatusUpdateEvent:
			if state = e.Status.State; state == sdk.TaskStateFailed {
				if got := e.Status.Message.Parts[0].Text(); !strings.Contains(got, "the agent has failed: the server was restarted") {
					t.Errorf("the reason is %q", got)
				}
			}
		}
	}
	if state != sdk.TaskStateFailed || !strings.HasPrefix(said.text(), "Hello! You asked: word word") {
		t.Errorf("got %s and %q", state, said.text())
	}
}

// This server dies in the middle of a run of an agent that works elsewhere. After the
// restart the run continues: nothing is lost, also not what the agent said meanwhile.
func TestProxyThatDies(t *testing.T) {
	ctx := limited(t)
	far := testserver.Start(t, filepath.Join(t.TempDir(), "data"))
	p := newProxy(t, far)
	c := p.start(ctx, t)
	words := strings.TrimSpace(strings.Repeat("word ", 100))
	var first *sdk.Task
	var seen artifacts
	parts := 0
	for e, err := range c.SendStreamingMessage(ctx, &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(words))}) {
		if err != nil {
			break // the server was killed
		}
		switch e := e.(type) {
		case *sdk.Task:
			first = e
		case *sdk.TaskArtifactUpdateEvent:
			seen.apply(e)
			if parts++; parts == 5 {
				p.server.Kill()
			}
		}
	}
	c = p.start(ctx, t)
	now, err := c.GetTask(ctx, &sdk.GetTaskRequest{ID: first.ID})
	if err != nil || now.Status.State != sdk.TaskStateWorking || !strings.HasPrefix(text(now), seen.text()) {
		t.Fatalf("after the restart the task is %+v, %v", now, err)
	}
	for e, err := range c.SubscribeToTask(ctx, &sdk.SubscribeToTaskRequest{ID: first.ID}) {
		if err != nil {
			t.Fatalf("%v after %v", err, e)
		}
	}
	if now, err = c.GetTask(ctx, &sdk.GetTaskRequest{ID: first.ID}); err != nil {
		t.Fatal(err)
	}
	want := "Hello! You asked: " + words + "\n\nI am a script"
	if now.Status.State != sdk.TaskStateCompleted || !strings.HasPrefix(text(now), want) || strings.Count(text(now), "I am a script") != 1 {
		t.Errorf("at the end it is %s and has %q", now.Status.State, text(now))
	}
	resumes(ctx, t, c, now)
}
