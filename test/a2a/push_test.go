package a2a

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"github.com/tapedeck/tapedeck/internal/testserver"
)

// A hook receives push notifications. It decodes them with the types of the SDK.
type hook struct {
	t *testing.T
	*httptest.Server
	told chan struct{} // receives after each notification that was taken

	mu     sync.Mutex
	parts  []piece[*sdk.TaskArtifactUpdateEvent]
	states []piece[sdk.TaskState]
	refuse bool
}

// A piece is what a notification tells, with the offset at which it begins.
type piece[T any] struct {
	from int
	what T
}

// with returns pieces with another one. A notification that is repeated begins at the offset
// of an earlier one, and may have more than that: it replaces what was told from there on.
func with[T any](list []piece[T], from int, what T) []piece[T] {
	for len(list) > 0 && list[len(list)-1].from >= from {
		list = list[:len(list)-1]
	}
	return append(list, piece[T]{from, what})
}

func newHook(t *testing.T) *hook {
	h := &hook{t: t, told: make(chan struct{}, 1000)}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if got := r.Header.Get("X-A2A-Notification-Token"); got != "token-1" {
		h.t.Errorf("the token is %q", got)
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var e sdk.StreamResponse
	if err := json.Unmarshal(b, &e); err != nil {
		h.t.Errorf("%v in %s", err, b)
		return
	}
	var from, to int
	if _, err := fmt.Sscanf(r.Header.Get("Tapedeck-Offsets"), "%d-%d", &from, &to); err != nil || from > to {
		h.t.Errorf("the offsets are %q: %v", r.Header.Get("Tapedeck-Offsets"), err)
	}
	switch e := e.Event.(type) {
	case *sdk.TaskArtifactUpdateEvent:
		h.parts = with(h.parts, from, e)
	case *sdk.TaskStatusUpdateEvent:
		h.states = with(h.states, from, e.Status.State)
	}
	h.told <- struct{}{}
}

func (h *hook) text() string {
	var l artifacts
	for _, p := range h.parts {
		l.apply(p.what)
	}
	return l.text()
}

// state returns the newest state.
func (h *hook) state() sdk.TaskState {
	if len(h.states) == 0 {
		return sdk.TaskStateUnspecified
	}
	return h.states[len(h.states)-1].what
}

// until waits until the condition holds.
func (h *hook) until(ctx context.Context, what string, holds func() bool) {
	h.t.Helper()
	for {
		h.mu.Lock()
		ok := holds()
		h.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-h.told:
		case <-ctx.Done():
			h.t.Fatalf("no notification of %s; it has %v and %q", what, h.states, h.text())
		}
	}
}

func (h *hook) ended() bool { return h.state().Terminal() }

func (h *hook) config(id string) *sdk.PushConfig {
	return &sdk.PushConfig{ID: id, URL: h.URL, Token: "token-1"}
}

// The client sets, gets, lists and deletes configs, and its receiver is told of a run to
// its end.
func TestPushOfTheClient(t *testing.T) {
	ctx := limited(t)
	s := testserver.Start(t, filepath.Join(t.TempDir(), "data"), "--webhook-allow", "127.0.0.1")
	for _, binding := range []sdk.TransportProtocol{sdk.TransportProtocolJSONRPC, sdk.TransportProtocolHTTPJSON} {
		t.Run(string(binding), func(t *testing.T) {
			h, c := newHook(t), connect(ctx, t, s, binding)
			in := message(strings.Repeat("on and on ", 10), "go")
			in.Config = &sdk.SendMessageConfig{ReturnImmediately: true, PushConfig: h.config("mine")}
			r, err := c.SendMessage(ctx, in)
			if err != nil {
				t.Fatal(err)
			}
			task := r.(*sdk.Task).ID
			second := h.config("")
			second.TaskID, second.URL = task, h.URL+"/second"
			made, err := c.CreateTaskPushConfig(ctx, second)
			if err != nil || made.ID == "" || made.Token != "token-1" {
				t.Fatalf("got %+v, %v", made, err)
			}
			if got, err := c.GetTaskPushConfig(ctx, &sdk.GetTaskPushConfigRequest{TaskID: task, ID: "mine"}); err != nil || got.URL != h.URL || got.TaskID != task {
				t.Errorf("got %+v, %v", got, err)
			}
			if err := c.DeleteTaskPushConfig(ctx, &sdk.DeleteTaskPushConfigRequest{TaskID: task, ID: made.ID}); err != nil {
				t.Error(err)
			}
			list, err := c.ListTaskPushConfigs(ctx, &sdk.ListTaskPushConfigRequest{TaskID: task})
			if err != nil || len(list) != 1 || list[0].ID != "mine" {
				t.Errorf("got %v, %v", list, err)
			}
			h.until(ctx, "the end", h.ended)
			h.has(ctx, c, task, sdk.TaskStateCompleted)
		})
	}
}

// The server is killed in the middle of a run, while its receiver takes nothing or is up to
// date. After the restart the receiver is told of everything that it lacks, and that the run
// has failed: it has what the task has.
func TestPushAcrossKill(t *testing.T) {
	ctx := limited(t)
	data := filepath.Join(t.TempDir(), "data")
	s := testserver.Start(t, data, "--webhook-allow", "127.0.0.1")
	for round := range 6 {
		h, c := newHook(t), connect(ctx, t, s, sdk.TransportProtocolJSONRPC)
		in := message(strings.Repeat("on and on ", 200), "go")
		in.Config = &sdk.SendMessageConfig{ReturnImmediately: true, PushConfig: h.config("mine")}
		r, err := c.SendMessage(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		id := r.(*sdk.Task).ID
		h.until(ctx, "some words", func() bool { return len(h.text()) > 20 })
		h.refuses(round%2 == 0)
		parts := 0
		for _, err := range c.SubscribeToTask(ctx, &sdk.SubscribeToTaskRequest{ID: id}) {
			if parts++; err != nil || parts > 2*round {
				break
			}
		}
		s.Kill()
		h.refuses(false)
		s = testserver.Start(t, data, "--webhook-allow", "127.0.0.1")
		h.until(ctx, "the end", h.ended)
		h.has(ctx, connect(ctx, t, s, sdk.TransportProtocolJSONRPC), id, sdk.TaskStateFailed)
	}
}

func (h *hook) refuses(refuses bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refuse = refuses
}

// has compares what the receiver was told with the task.
func (h *hook) has(ctx context.Context, c *a2aclient.Client, id sdk.TaskID, state sdk.TaskState) {
	h.t.Helper()
	now, err := c.GetTask(ctx, &sdk.GetTaskRequest{ID: id})
	if err != nil {
		h.t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state() != state || now.Status.State != state || h.text() != text(now) {
		h.t.Errorf("the receiver has %s and %q, the task %s and %q", h.state(), h.text(), now.Status.State, text(now))
	}
}
