package a2a

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"

	"github.com/tapedeck/tapedeck/internal/testserver"
)

// limited returns a context for a test. Its time begins when the program is built.
func limited(t *testing.T) context.Context {
	t.Helper()
	testserver.Binary(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// connect returns the client for an agent of a server, made from its card.
func connect(ctx context.Context, t *testing.T, s *testserver.Server, binding sdk.TransportProtocol) *a2aclient.Client {
	t.Helper()
	card, err := agentcard.DefaultResolver.Resolve(ctx, s.URL+"/a2a/hello/")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range card.SupportedInterfaces {
		if i.ProtocolBinding == binding && i.ProtocolVersion == sdk.Version {
			c, err := a2aclient.NewFromEndpoints(ctx, []*sdk.AgentInterface{i})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
	}
	t.Fatalf("the card has no interface %s: %v", binding, card.SupportedInterfaces)
	return nil
}

func message(steps, text string) *sdk.SendMessageRequest {
	m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(text))
	m.SetMeta("tapedeckConfig", map[string]any{"steps": []any{map[string]any{"say": steps, "rate": 20}}})
	return &sdk.SendMessageRequest{Message: m}
}

// text returns the text of the artifacts.
func text(t *sdk.Task) string {
	var b strings.Builder
	for _, a := range t.Artifacts {
		for _, p := range a.Parts {
			b.WriteString(p.Text())
		}
	}
	return b.String()
}

// artifacts are the artifacts of a task, as its updates make them.
type artifacts []*sdk.Artifact

func (l *artifacts) apply(e *sdk.TaskArtifactUpdateEvent) {
	i := slices.IndexFunc(*l, func(a *sdk.Artifact) bool { return a.ID == e.Artifact.ID })
	switch {
	case i < 0:
		*l = append(*l, &sdk.Artifact{ID: e.Artifact.ID, Parts: slices.Clone(e.Artifact.Parts)})
	case e.Append:
		(*l)[i].Parts = append((*l)[i].Parts, e.Artifact.Parts...)
	default:
		(*l)[i].Parts = slices.Clone(e.Artifact.Parts)
	}
}

func (l artifacts) text() string { return text(&sdk.Task{Artifacts: l}) }

// A run is streamed, its server is killed in the middle, and after the restart the task
// has failed and its stream resumes after each event of the log.
func TestKillInTheMiddle(t *testing.T) {
	for _, binding := range []sdk.TransportProtocol{sdk.TransportProtocolJSONRPC, sdk.TransportProtocolHTTPJSON} {
		t.Run(string(binding), func(t *testing.T) { killInTheMiddle(t, binding) })
	}
}

func killInTheMiddle(t *testing.T, binding sdk.TransportProtocol) {
	ctx := limited(t)
	data := filepath.Join(t.TempDir(), "data")
	s := testserver.Start(t, data)
	c := connect(ctx, t, s, binding)

	var task *sdk.Task
	var said artifacts
	parts := 0
	for e, err := range c.SendStreamingMessage(ctx, message(strings.Repeat("on and on ", 50), "go")) {
		if err != nil {
			break // the server was killed
		}
		switch e := e.(type) {
		case *sdk.Task:
			task = e
		case *sdk.TaskArtifactUpdateEvent:
			said.apply(e)
			if parts++; parts == 5 {
				s.Kill()
			}
		}
	}
	if task == nil || parts < 5 {
		t.Fatalf("got the task %v and %d parts", task, parts)
	}
	s = testserver.Start(t, data)
	c = connect(ctx, t, s, binding)
	now, err := c.GetTask(ctx, &sdk.GetTaskRequest{ID: task.ID})
	if err != nil {
		t.Fatal(err)
	}
	if now.Status.State != sdk.TaskStateFailed || !strings.HasPrefix(text(now), said.text()) {
		t.Errorf("the task is %s and has %q, want failed and at least %q", now.Status.State, text(now), said.text())
	}
	for _, err := range c.SubscribeToTask(ctx, &sdk.SubscribeToTaskRequest{ID: task.ID}) {
		if !errors.Is(err, sdk.ErrUnsupportedOperation) {
			t.Errorf("subscribing to a task that has ended: %v", err)
		}
	}
	resumes(ctx, t, c, now)
}

// resumes resumes the stream of a task after each offset of it.
func resumes(ctx context.Context, t *testing.T, c *a2aclient.Client, want *sdk.Task) {
	t.Helper()
	last := int(want.Metadata["tapedeckOffset"].(float64))
	for offset := 1; offset <= last; offset++ {
		after := a2aclient.AttachServiceParams(ctx, a2aclient.ServiceParams{"Last-Event-ID": {fmt.Sprint(offset)}})
		var got artifacts
		state := sdk.TaskStateUnspecified
		for e, err := range c.SubscribeToTask(after, &sdk.SubscribeToTaskRequest{ID: want.ID}) {
			if err != nil {
				t.Fatalf("after %d: %v", offset, err)
			}
			switch e := e.(type) {
			case *sdk.Task:
				got, state = slices.Clone(e.Artifacts), e.Status.State
			case *sdk.TaskStatusUpdateEvent:
				state = e.Status.State
			case *sdk.TaskArtifactUpdateEvent:
				got.apply(e)
			}
		}
		if got.text() != text(want) || state != want.Status.State {
			t.Errorf("after %d: %s and %q, want %s and %q", offset, state, got.text(), want.Status.State, text(want))
		}
	}
}

// The client cancels a task, lists tasks, and gets errors that it knows.
func TestVerbsOfTheClient(t *testing.T) {
	ctx := limited(t)
	s := testserver.Start(t, filepath.Join(t.TempDir(), "data"))
	for _, binding := range []sdk.TransportProtocol{sdk.TransportProtocolJSONRPC, sdk.TransportProtocolHTTPJSON} {
		c := connect(ctx, t, s, binding)
		in := message(strings.Repeat("on and on ", 500), "go")
		in.Config = &sdk.SendMessageConfig{ReturnImmediately: true}
		r, err := c.SendMessage(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		id := r.(*sdk.Task).ID
		cancelled, err := c.CancelTask(ctx, &sdk.CancelTaskRequest{ID: id})
		if err != nil || cancelled.Status.State != sdk.TaskStateCanceled {
			t.Errorf("got %v %v", cancelled, err)
		}
		if _, err := c.CancelTask(ctx, &sdk.CancelTaskRequest{ID: id}); !errors.Is(err, sdk.ErrTaskNotCancelable) {
			t.Errorf("a second cancel: %v", err)
		}
		if _, err := c.GetTask(ctx, &sdk.GetTaskRequest{ID: "none"}); !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Errorf("an unknown task: %v", err)
		}
		list, err := c.ListTasks(ctx, &sdk.ListTasksRequest{ContextID: cancelled.ContextID})
		if err != nil || len(list.Tasks) != 1 || list.Tasks[0].ID != id {
			t.Errorf("got %v %v", list, err)
		}
		card, err := c.GetExtendedAgentCard(ctx, &sdk.GetExtendedAgentCardRequest{})
		if err != nil || card.Name != "hello" {
			t.Errorf("got %v %v", card, err)
		}
	}
}
