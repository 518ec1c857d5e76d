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
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"github.com/tapedeck/tapedeck/internal/testserver"
)

// startProxy starts a server whose agent "team.far" is the agent "hello" of another
// server, and returns the client for it.
func startProxy(ctx context.Context, t *testing.T, far *testserver.Server) *a2aclient.Client {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "tapedeck.toml")
	text := fmt.Sprintf("[[agent]]\nname = \"team.far\"\nkind = \"a2a\"\nurl = %q\n", far.URL+"/a2a/hello")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := testserver.Start(t, filepath.Join(dir, "data"), "--config", config)
	c, err := a2aclient.NewFromEndpoints(ctx, []*sdk.AgentInterface{sdk.NewAgentInterface(s.URL+"/api/a2a/team/far", sdk.TransportProtocolJSONRPC)})
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	far := testserver.Start(t, filepath.Join(t.TempDir(), "data"))
	c := startProxy(ctx, t, far)
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	data := filepath.Join(t.TempDir(), "data")
	far := testserver.Start(t, data)
	c := startProxy(ctx, t, far)
	u, err := url.Parse(far.URL)
	if err != nil {
		t.Fatal(err)
	}
	said, state, parts := "", sdk.TaskStateUnspecified, 0
	m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(strings.Repeat("word ", 300)))
	for e, err := range c.SendStreamingMessage(ctx, &sdk.SendMessageRequest{Message: m}) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case *sdk.TaskArtifactUpdateEvent:
			said += e.Artifact.Parts[0].Text()
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
	if state != sdk.TaskStateFailed || !strings.HasPrefix(said, "Hello! You asked: word word") {
		t.Errorf("got %s and %q", state, said)
	}
}
