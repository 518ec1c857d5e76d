package a2a_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A receiver is the network of push notifications: every request reaches it.
type receiver struct {
	mu     sync.Mutex
	answer func(n *notified) (status int) // nil: 204; the status 0 is a failure of the connection
	got    []*notified
}

// A notified is a notification as its receiver sees it.
type notified struct {
	path    string
	header  http.Header
	body    string
	at      time.Time
	context context.Context
}

func (r *receiver) RoundTrip(q *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	n := &notified{q.URL.Path, q.Header, string(b), time.Now(), q.Context()}
	r.mu.Lock()
	r.got = append(r.got, n)
	answer := r.answer
	r.mu.Unlock()
	status := http.StatusNoContent
	if answer != nil {
		status = answer(n)
	}
	switch {
	case q.Context().Err() != nil:
		return nil, q.Context().Err()
	case status == 0:
		return nil, errors.New("no connection")
	}
	return &http.Response{StatusCode: status, Body: http.NoBody}, nil
}

func (r *receiver) answers(f func(n *notified) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

// taken returns what was received since the last call, when nothing more happens now.
func (r *receiver) taken() []*notified {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

// told returns what was received in short: states of status updates and tasks, parts of
// artifacts, each in its own form.
func (r *receiver) told() string {
	var out []string
	for _, n := range r.taken() {
		out = append(out, n.short())
	}
	return strings.Join(out, " | ")
}

func (n *notified) short() string {
	type status struct{ Status struct{ State string } }
	var b struct {
		status        // of 0.3
		Kind   string `json:"kind"`
		Task   *struct {
			status
			History []json.RawMessage
		}
		StatusUpdate   *status
		ArtifactUpdate *struct {
			Artifact struct{ Parts []struct{ Text string } }
		}
	}
	if err := json.Unmarshal([]byte(n.body), &b); err != nil {
		return n.body
	}
	state := func(s status) string { return strings.ToLower(strings.TrimPrefix(s.Status.State, "TASK_STATE_")) }
	switch {
	case b.Task != nil:
		return fmt.Sprint("task ", state(b.Task.status), " ", len(b.Task.History))
	case b.StatusUpdate != nil:
		return state(*b.StatusUpdate)
	case b.ArtifactUpdate != nil:
		return fmt.Sprintf("%q", b.ArtifactUpdate.Artifact.Parts[0].Text)
	}
	return b.Kind + " " + state(b.status)
}

func is(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got)\n%s", what, d)
	}
}

const hook = `{"id":"p","url":"https://hook.example/a","token":"tok-1","authentication":{"scheme":"Bearer","credentials":"cred-1"}}`

// pushed returns the parameters of a message with a config; the answer does not wait.
func pushed(params, config string) string {
	return strings.Replace(params, `{"message"`, `{"configuration":{"returnImmediately":true,"taskPushNotificationConfig":`+config+`},"message"`, 1)
}

func pushed03(params, config string) string {
	return strings.Replace(params, `{"message"`, `{"configuration":{"blocking":false,"pushNotificationConfig":`+config+`},"message"`, 1)
}

// config returns the parameters of a config of a task.
func config(task, id, url string) string {
	return fmt.Sprintf(`{"taskId":%q,"id":%q,"url":%q}`, task, id, url)
}
