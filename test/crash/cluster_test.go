package crash

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

// eventually calls f until it returns nil. A test that waits for it for two minutes fails.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// role returns what a server says of itself, and whether it is ready.
func role(t *testing.T, url string) (role string, ready bool) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/readyz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error(), false
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Header.Get("Tapedeck-Role"), resp.StatusCode == http.StatusOK
}

// runHello runs the agent hello in session a, and returns once the run has ended.
func runHello(t *testing.T, c *client.Client) {
	t.Helper()
	var started api.Started
	eventually(t, "a run begins", func() (err error) {
		started, err = c.Run(t.Context(), api.Task{Session: "a", Agent: "hello", Text: "hello"})
		if tapedeck.KindOf(err) == tapedeck.Conflict { // an attempt that was not certain has begun it
			return nil
		}
		return err
	})
	eventually(t, "the run ends", func() error {
		tasks, err := c.Tasks(t.Context(), "a", client.TaskOptions{})
		if err != nil {
			return err
		}
		for _, task := range tasks.Tasks {
			if task.Invocation == started.Invocation && task.Status == tapedeck.StatusComplete {
				return nil
			}
		}
		return errors.New("it is open")
	})
}

// TestPausedOwner pauses the server that owns the database for longer than its lease. The
// other one takes over. The first one, continued, answers what the other one has written
// since, never less, and takes over when that one is killed.
func TestPausedOwner(t *testing.T) {
	c := pgtest.New(t)
	data := [2]string{t.TempDir() + "/one", t.TempDir() + "/two"}
	var servers [2]*testserver.Server
	var clients [2]*client.Client
	for i := range servers {
		servers[i] = testserver.Start(t, data[i], inCluster(c.URL("postgres"), "0")...)
		clients[i] = clientOf(t, servers[i].URL)
	}
	if got, ready := role(t, servers[0].URL); got != "owner" || !ready {
		t.Fatalf("the first server says %q, %t", got, ready)
	}
	if got, ready := role(t, servers[1].URL); got != "forwards" || !ready {
		t.Fatalf("the second server says %q, %t", got, ready)
	}
	if _, err := clients[1].Create(t.Context(), api.NewSession{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	runHello(t, clients[1])

	if err := syscall.Kill(servers[0].PID, syscall.SIGSTOP); err != nil {
		t.Skip("processes cannot be stopped here: ", err)
	}
	var done tapedeck.Appended
	eventually(t, "the second server takes over", func() (err error) {
		done, err = clients[1].Append(t.Context(), "a", strings.NewReader(`{"type":"test.note","data":{"value":1}}`),
			client.AppendOptions{Producer: &tapedeck.Producer{ID: "w"}})
		return err
	})
	if err := syscall.Kill(servers[0].PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first server answers again", func() error {
		s, err := clients[0].Session(t.Context(), "a")
		if err == nil && s.Head < done.Head {
			t.Errorf("the paused server answers the head %d; another one has stored %d", s.Head, done.Head)
		}
		return err
	})
	// On a machine that stands still for longer than the lease, the first one may own it again.
	owner := 0
	eventually(t, "one server owns the database, and the other one forwards", func() error {
		var roles [2]string
		for i := range servers {
			var ready bool
			if roles[i], ready = role(t, servers[i].URL); roles[i] == "owner" {
				owner = i
			} else if roles[i] != "forwards" || !ready {
				return errors.New(roles[i])
			}
		}
		if roles[0] == roles[1] {
			return errors.New("both are " + roles[0])
		}
		return nil
	})
	other := 1 - owner
	runHello(t, clients[other])

	servers[owner].Kill()
	runHello(t, clients[other])
	if got, ready := role(t, servers[other].URL); got != "owner" || !ready {
		t.Errorf("the other server says %q, %t", got, ready)
	}
	servers[owner] = testserver.Start(t, data[owner], inCluster(c.URL("postgres"), "0")...)
	runHello(t, clientOf(t, servers[owner].URL))
	tasks, err := clients[other].Tasks(t.Context(), "a", client.TaskOptions{})
	if err != nil || len(tasks.Tasks) != 4 {
		t.Errorf("%d runs, %v", len(tasks.Tasks), err)
	}
	for _, task := range tasks.Tasks {
		if task.Status != tapedeck.StatusComplete {
			t.Errorf("run %s is %s", task.Invocation, task.Status)
		}
	}
}

// TestClusterAddress: with --standby, a server does not start if the other servers cannot know
// its address.
func TestClusterAddress(t *testing.T) {
	place := []string{"serve", "--data", t.TempDir(), "--insecure", "--postgres", "postgres://nobody@127.0.0.1:1/none", "--standby"}
	says(t, false, append(place, "--listen", "0.0.0.0:0"), "--cluster-address")
	says(t, false, append(place, "--listen", "127.0.0.1:0", "--cluster-address", "deck1"), "http://10.0.0.1:4747")
	says(t, false, append(place, "--listen", "127.0.0.1:0", "--demo"), "--standby")
}
